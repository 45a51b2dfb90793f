//! `CreatePartitionsResponse`, versions 0-3, API key 37.

use super::prelude::*;

/// `CreatePartitionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatePartitionsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Results`, versions 0+.
    pub results: Vec<CreatePartitionsTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatePartitionsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 3),
        Field::new(
            "Results",
            Kind::Array(&Kind::Struct(CreatePartitionsTopicResult::FIELDS)),
            0,
            3,
        ),
    ];
}

impl FromWire for CreatePartitionsResponse {
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

impl ToWire for CreatePartitionsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatePartitionsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatePartitionsResponse {
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

/// `CreatePartitionsTopicResult` of `CreatePartitionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatePartitionsTopicResult {
    /// `Name`, versions 0+.
    pub name: String,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatePartitionsTopicResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 3).of(Entity::TopicName),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 3),
        Field::new("ErrorMessage", Kind::Text, 0, 3).nullable(0, 3).of(Entity::Explanation),
    ];
}

impl FromWire for CreatePartitionsTopicResult {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatePartitionsTopicResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "CreatePartitionsTopicResult.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatePartitionsTopicResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for CreatePartitionsResponse {
    const NAME: &'static str = "CreatePartitionsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for CreatePartitionsResponse {
    const KEY: ApiKey = ApiKey::CreatePartitions;
}
