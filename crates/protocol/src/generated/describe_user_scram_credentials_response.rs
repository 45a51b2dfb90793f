//! `DescribeUserScramCredentialsResponse`, versions 0-0, API key 50.

use super::prelude::*;

/// `DescribeUserScramCredentialsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeUserScramCredentialsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Results`, versions 0+.
    pub results: Vec<DescribeUserScramCredentialsResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeUserScramCredentialsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            results: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeUserScramCredentialsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
        Field::new(
            "Results",
            Kind::Array(&Kind::Struct(DescribeUserScramCredentialsResult::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for DescribeUserScramCredentialsResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeUserScramCredentialsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeUserScramCredentialsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeUserScramCredentialsResult` of `DescribeUserScramCredentialsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeUserScramCredentialsResult {
    /// `User`, versions 0+.
    pub user: String,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `CredentialInfos`, versions 0+.
    pub credential_infos: Vec<CredentialInfo>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeUserScramCredentialsResult {
    fn default() -> Self {
        Self {
            user: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            credential_infos: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeUserScramCredentialsResult {
    const FIELDS: &'static [Field] = &[
        Field::new("User", Kind::Text, 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
        Field::new("CredentialInfos", Kind::Array(&Kind::Struct(CredentialInfo::FIELDS)), 0, 0),
    ];
}

impl FromWire for DescribeUserScramCredentialsResult {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.user = r.string(f)?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.credential_infos = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeUserScramCredentialsResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.user, f)?;
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.credential_infos, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeUserScramCredentialsResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.user = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.credential_infos = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CredentialInfo` of `DescribeUserScramCredentialsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CredentialInfo {
    /// `Mechanism`, versions 0+.
    pub mechanism: i8,
    /// `Iterations`, versions 0+.
    pub iterations: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CredentialInfo {
    const FIELDS: &'static [Field] = &[
        Field::new("Mechanism", Kind::Fixed(1), 0, 0),
        Field::new("Iterations", Kind::Fixed(4), 0, 0),
    ];
}

impl FromWire for CredentialInfo {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.mechanism = r.i8()?;
        m.iterations = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CredentialInfo {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.mechanism);
        w.i32(self.iterations);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CredentialInfo {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.mechanism = Random::random(g, v, f);
        m.iterations = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeUserScramCredentialsResponse {
    const NAME: &'static str = "DescribeUserScramCredentialsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeUserScramCredentialsResponse {
    const KEY: ApiKey = ApiKey::DescribeUserScramCredentials;
}
