//! `AlterConfigsResponse`, versions 0-2, API key 33.

use super::prelude::*;

/// `AlterConfigsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterConfigsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Responses`, versions 0+.
    pub responses: Vec<AlterConfigsResourceResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterConfigsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 2),
        Field::new(
            "Responses",
            Kind::Array(&Kind::Struct(AlterConfigsResourceResponse::FIELDS)),
            0,
            2,
        ),
    ];
}

impl FromWire for AlterConfigsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.responses = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterConfigsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.responses, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterConfigsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterConfigsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.responses = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AlterConfigsResourceResponse` of `AlterConfigsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterConfigsResourceResponse {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `ResourceType`, versions 0+.
    pub resource_type: i8,
    /// `ResourceName`, versions 0+.
    pub resource_name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AlterConfigsResourceResponse {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            resource_type: Default::default(),
            resource_name: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AlterConfigsResourceResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 0, 2).nullable(0, 2).of(Entity::Explanation),
        Field::new("ResourceType", Kind::Fixed(1), 0, 2),
        Field::new("ResourceName", Kind::Text, 0, 2),
    ];
}

impl FromWire for AlterConfigsResourceResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterConfigsResourceResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "AlterConfigsResourceResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterConfigsResourceResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterConfigsResponse {
    const NAME: &'static str = "AlterConfigsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for AlterConfigsResponse {
    const KEY: ApiKey = ApiKey::AlterConfigs;
}
