//! `CreateDelegationTokenResponse`, versions 1-3, API key 38.

use super::prelude::*;

/// `CreateDelegationTokenResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateDelegationTokenResponse {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `PrincipalType`, versions 1+.
    pub principal_type: String,
    /// `PrincipalName`, versions 1+.
    pub principal_name: String,
    /// `TokenRequesterPrincipalType`, versions 3+.
    pub token_requester_principal_type: String,
    /// `TokenRequesterPrincipalName`, versions 3+.
    pub token_requester_principal_name: String,
    /// `IssueTimestampMs`, versions 1+.
    pub issue_timestamp_ms: i64,
    /// `ExpiryTimestampMs`, versions 1+.
    pub expiry_timestamp_ms: i64,
    /// `MaxTimestampMs`, versions 1+.
    pub max_timestamp_ms: i64,
    /// `TokenId`, versions 1+.
    pub token_id: String,
    /// `Hmac`, versions 1+.
    pub hmac: Bytes,
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreateDelegationTokenResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 3),
        Field::new("PrincipalType", Kind::Text, 1, 3),
        Field::new("PrincipalName", Kind::Text, 1, 3),
        Field::new("TokenRequesterPrincipalType", Kind::Text, 3, 3),
        Field::new("TokenRequesterPrincipalName", Kind::Text, 3, 3),
        Field::new("IssueTimestampMs", Kind::Fixed(8), 1, 3),
        Field::new("ExpiryTimestampMs", Kind::Fixed(8), 1, 3),
        Field::new("MaxTimestampMs", Kind::Fixed(8), 1, 3),
        Field::new("TokenId", Kind::Text, 1, 3),
        Field::new("Hmac", Kind::Bytes, 1, 3),
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 3),
    ];
}

impl FromWire for CreateDelegationTokenResponse {
    const SIZE_MIN: usize = 35;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.principal_type = r.string(f)?;
        m.principal_name = r.string(f)?;
        if v >= 3 {
            m.token_requester_principal_type = r.string(f)?;
        }
        if v >= 3 {
            m.token_requester_principal_name = r.string(f)?;
        }
        m.issue_timestamp_ms = r.i64()?;
        m.expiry_timestamp_ms = r.i64()?;
        m.max_timestamp_ms = r.i64()?;
        m.token_id = r.string(f)?;
        m.hmac = r.bytes(f)?;
        m.throttle_time_ms = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreateDelegationTokenResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.string(&self.principal_type, f)?;
        w.string(&self.principal_name, f)?;
        if v >= 3 {
            w.string(&self.token_requester_principal_type, f)?;
        } else if !self.token_requester_principal_type.is_empty() {
            return Err(EncodeError::absent(
                "CreateDelegationTokenResponse.TokenRequesterPrincipalType",
                v,
            ));
        }
        if v >= 3 {
            w.string(&self.token_requester_principal_name, f)?;
        } else if !self.token_requester_principal_name.is_empty() {
            return Err(EncodeError::absent(
                "CreateDelegationTokenResponse.TokenRequesterPrincipalName",
                v,
            ));
        }
        w.i64(self.issue_timestamp_ms);
        w.i64(self.expiry_timestamp_ms);
        w.i64(self.max_timestamp_ms);
        w.string(&self.token_id, f)?;
        w.bytes(&self.hmac, f)?;
        w.i32(self.throttle_time_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "CreateDelegationTokenResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreateDelegationTokenResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.principal_type = Random::random(g, v, f);
        m.principal_name = Random::random(g, v, f);
        if v >= 3 {
            m.token_requester_principal_type = Random::random(g, v, f);
        }
        if v >= 3 {
            m.token_requester_principal_name = Random::random(g, v, f);
        }
        m.issue_timestamp_ms = Random::random(g, v, f);
        m.expiry_timestamp_ms = Random::random(g, v, f);
        m.max_timestamp_ms = Random::random(g, v, f);
        m.token_id = Random::random(g, v, f);
        m.hmac = Random::random(g, v, f);
        m.throttle_time_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for CreateDelegationTokenResponse {
    const NAME: &'static str = "CreateDelegationTokenResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for CreateDelegationTokenResponse {
    const KEY: ApiKey = ApiKey::CreateDelegationToken;
}
