//! `DescribeDelegationTokenResponse`, versions 1-3, API key 41.

use super::prelude::*;

/// `DescribeDelegationTokenResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeDelegationTokenResponse {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `Tokens`, versions 1+.
    pub tokens: Vec<DescribedDelegationToken>,
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeDelegationTokenResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 3),
        Field::new("Tokens", Kind::Array(&Kind::Struct(DescribedDelegationToken::FIELDS)), 1, 3),
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 3),
    ];
}

impl FromWire for DescribeDelegationTokenResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.tokens = r.array(v, f)?;
        m.throttle_time_ms = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeDelegationTokenResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.array(&self.tokens, v, f)?;
        w.i32(self.throttle_time_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribeDelegationTokenResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeDelegationTokenResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.tokens = Random::random(g, v, f);
        m.throttle_time_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribedDelegationToken` of `DescribeDelegationTokenResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribedDelegationToken {
    /// `PrincipalType`, versions 1+.
    pub principal_type: String,
    /// `PrincipalName`, versions 1+.
    pub principal_name: String,
    /// `TokenRequesterPrincipalType`, versions 3+.
    pub token_requester_principal_type: String,
    /// `TokenRequesterPrincipalName`, versions 3+.
    pub token_requester_principal_name: String,
    /// `IssueTimestamp`, versions 1+.
    pub issue_timestamp: i64,
    /// `ExpiryTimestamp`, versions 1+.
    pub expiry_timestamp: i64,
    /// `MaxTimestamp`, versions 1+.
    pub max_timestamp: i64,
    /// `TokenId`, versions 1+.
    pub token_id: String,
    /// `Hmac`, versions 1+.
    pub hmac: Bytes,
    /// `Renewers`, versions 1+.
    pub renewers: Vec<DescribedDelegationTokenRenewer>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribedDelegationToken {
    const FIELDS: &'static [Field] = &[
        Field::new("PrincipalType", Kind::Text, 1, 3),
        Field::new("PrincipalName", Kind::Text, 1, 3),
        Field::new("TokenRequesterPrincipalType", Kind::Text, 3, 3),
        Field::new("TokenRequesterPrincipalName", Kind::Text, 3, 3),
        Field::new("IssueTimestamp", Kind::Fixed(8), 1, 3),
        Field::new("ExpiryTimestamp", Kind::Fixed(8), 1, 3),
        Field::new("MaxTimestamp", Kind::Fixed(8), 1, 3),
        Field::new("TokenId", Kind::Text, 1, 3),
        Field::new("Hmac", Kind::Bytes, 1, 3),
        Field::new(
            "Renewers",
            Kind::Array(&Kind::Struct(DescribedDelegationTokenRenewer::FIELDS)),
            1,
            3,
        ),
    ];
}

impl FromWire for DescribedDelegationToken {
    const SIZE_MIN: usize = 30;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.principal_type = r.string(f)?;
        m.principal_name = r.string(f)?;
        if v >= 3 {
            m.token_requester_principal_type = r.string(f)?;
        }
        if v >= 3 {
            m.token_requester_principal_name = r.string(f)?;
        }
        m.issue_timestamp = r.i64()?;
        m.expiry_timestamp = r.i64()?;
        m.max_timestamp = r.i64()?;
        m.token_id = r.string(f)?;
        m.hmac = r.bytes(f)?;
        m.renewers = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribedDelegationToken {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.principal_type, f)?;
        w.string(&self.principal_name, f)?;
        if v >= 3 {
            w.string(&self.token_requester_principal_type, f)?;
        } else if !self.token_requester_principal_type.is_empty() {
            return Err(EncodeError::absent(
                "DescribedDelegationToken.TokenRequesterPrincipalType",
                v,
            ));
        }
        if v >= 3 {
            w.string(&self.token_requester_principal_name, f)?;
        } else if !self.token_requester_principal_name.is_empty() {
            return Err(EncodeError::absent(
                "DescribedDelegationToken.TokenRequesterPrincipalName",
                v,
            ));
        }
        w.i64(self.issue_timestamp);
        w.i64(self.expiry_timestamp);
        w.i64(self.max_timestamp);
        w.string(&self.token_id, f)?;
        w.bytes(&self.hmac, f)?;
        w.array(&self.renewers, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribedDelegationToken.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribedDelegationToken {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.principal_type = Random::random(g, v, f);
        m.principal_name = Random::random(g, v, f);
        if v >= 3 {
            m.token_requester_principal_type = Random::random(g, v, f);
        }
        if v >= 3 {
            m.token_requester_principal_name = Random::random(g, v, f);
        }
        m.issue_timestamp = Random::random(g, v, f);
        m.expiry_timestamp = Random::random(g, v, f);
        m.max_timestamp = Random::random(g, v, f);
        m.token_id = Random::random(g, v, f);
        m.hmac = Random::random(g, v, f);
        m.renewers = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribedDelegationTokenRenewer` of `DescribeDelegationTokenResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribedDelegationTokenRenewer {
    /// `PrincipalType`, versions 1+.
    pub principal_type: String,
    /// `PrincipalName`, versions 1+.
    pub principal_name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribedDelegationTokenRenewer {
    const FIELDS: &'static [Field] = &[
        Field::new("PrincipalType", Kind::Text, 1, 3),
        Field::new("PrincipalName", Kind::Text, 1, 3),
    ];
}

impl FromWire for DescribedDelegationTokenRenewer {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.principal_type = r.string(f)?;
        m.principal_name = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribedDelegationTokenRenewer {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.principal_type, f)?;
        w.string(&self.principal_name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribedDelegationTokenRenewer.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribedDelegationTokenRenewer {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.principal_type = Random::random(g, v, f);
        m.principal_name = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeDelegationTokenResponse {
    const NAME: &'static str = "DescribeDelegationTokenResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for DescribeDelegationTokenResponse {
    const KEY: ApiKey = ApiKey::DescribeDelegationToken;
}
