//! `DeleteTopicsRequest`, versions 1-6, API key 20.

use super::prelude::*;

/// `DeleteTopicsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteTopicsRequest {
    /// `Topics`, versions 6+.
    pub topics: Vec<DeleteTopicState>,
    /// `TopicNames`, versions 1-5.
    pub topic_names: Vec<String>,
    /// `TimeoutMs`, versions 1+.
    pub timeout_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteTopicsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Struct(DeleteTopicState::FIELDS)), 6, 6),
        Field::new("TopicNames", Kind::Array(&Kind::Text), 1, 5).of(Entity::TopicName),
        Field::new("TimeoutMs", Kind::Fixed(4), 1, 6),
    ];
}

impl FromWire for DeleteTopicsRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 6 {
            m.topics = r.array(v, f)?;
        }
        if v <= 5 {
            m.topic_names = r.array(v, f)?;
        }
        m.timeout_ms = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteTopicsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 6 {
            w.array(&self.topics, v, f)?;
        } else if !self.topics.is_empty() {
            return Err(EncodeError::absent("DeleteTopicsRequest.Topics", v));
        }
        if v <= 5 {
            w.array(&self.topic_names, v, f)?;
        }
        w.i32(self.timeout_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteTopicsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteTopicsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 6 {
            m.topics = Random::random(g, v, f);
        }
        if v <= 5 {
            m.topic_names = Random::random(g, v, f);
        }
        m.timeout_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DeleteTopicState` of `DeleteTopicsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteTopicState {
    /// `Name`, versions 6+, null in versions 6+.
    pub name: Option<String>,
    /// `TopicId`, versions 6+.
    pub topic_id: Uuid,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteTopicState {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 6, 6).nullable(6, 6).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 6, 6).of(Entity::TopicId),
    ];
}

impl FromWire for DeleteTopicState {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.nullable_string(f, true)?;
        m.topic_id = r.uuid()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteTopicState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.name.as_deref(), f, true, "Name")?;
        w.uuid(self.topic_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteTopicState {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = g.nullable(true, v, f);
        m.topic_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DeleteTopicsRequest {
    const NAME: &'static str = "DeleteTopicsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 6);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Request for DeleteTopicsRequest {
    const KEY: ApiKey = ApiKey::DeleteTopics;
    type Response = super::DeleteTopicsResponse;
}
