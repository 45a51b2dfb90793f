//! `DeleteTopicsResponse`, versions 1-6, API key 20.

use super::prelude::*;

/// `DeleteTopicsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteTopicsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `Responses`, versions 1+.
    pub responses: Vec<DeletableTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteTopicsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 6),
        Field::new("Responses", Kind::Array(&Kind::Struct(DeletableTopicResult::FIELDS)), 1, 6),
    ];
}

impl FromWire for DeleteTopicsResponse {
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

impl ToWire for DeleteTopicsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.responses, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteTopicsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteTopicsResponse {
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

/// `DeletableTopicResult` of `DeleteTopicsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletableTopicResult {
    /// `Name`, versions 1+, null in versions 6+.
    pub name: Option<String>,
    /// `TopicId`, versions 6+.
    pub topic_id: Uuid,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 5+, null in versions 5+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DeletableTopicResult {
    fn default() -> Self {
        Self {
            name: Some(Default::default()),
            topic_id: Default::default(),
            error_code: Default::default(),
            error_message: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DeletableTopicResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 6).nullable(6, 6).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 6, 6).of(Entity::TopicId),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 6),
        Field::new("ErrorMessage", Kind::Text, 5, 6).nullable(5, 6).of(Entity::Explanation),
    ];
}

impl FromWire for DeletableTopicResult {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.nullable_string(f, v >= 6)?;
        if v >= 6 {
            m.topic_id = r.uuid()?;
        }
        m.error_code = r.i16()?;
        if v >= 5 {
            m.error_message = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeletableTopicResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.name.as_deref(), f, v >= 6, "Name")?;
        if v >= 6 {
            w.uuid(self.topic_id);
        }
        w.i16(self.error_code);
        if v >= 5 {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeletableTopicResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeletableTopicResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = g.nullable(v >= 6, v, f);
        if v >= 6 {
            m.topic_id = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        if v >= 5 {
            m.error_message = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DeleteTopicsResponse {
    const NAME: &'static str = "DeleteTopicsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 6);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Response for DeleteTopicsResponse {
    const KEY: ApiKey = ApiKey::DeleteTopics;
}
