//! `CreateAclsResponse`, versions 1-3, API key 30.

use super::prelude::*;

/// `CreateAclsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateAclsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `Results`, versions 1+.
    pub results: Vec<AclCreationResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreateAclsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 3),
        Field::new("Results", Kind::Array(&Kind::Struct(AclCreationResult::FIELDS)), 1, 3),
    ];
}

impl FromWire for CreateAclsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreateAclsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreateAclsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreateAclsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AclCreationResult` of `CreateAclsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct AclCreationResult {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AclCreationResult {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AclCreationResult {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 3),
        Field::new("ErrorMessage", Kind::Text, 1, 3).nullable(1, 3).of(Entity::Explanation),
    ];
}

impl FromWire for AclCreationResult {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AclCreationResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AclCreationResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AclCreationResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for CreateAclsResponse {
    const NAME: &'static str = "CreateAclsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for CreateAclsResponse {
    const KEY: ApiKey = ApiKey::CreateAcls;
}
