//! `DeleteShareGroupOffsetsRequest`, versions 0-0, API key 92.

use super::prelude::*;

/// `DeleteShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteShareGroupOffsetsRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+.
    pub topics: Vec<DeleteShareGroupOffsetsRequestTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteShareGroupOffsetsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 0).of(Entity::GroupId),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(DeleteShareGroupOffsetsRequestTopic::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for DeleteShareGroupOffsetsRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteShareGroupOffsetsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteShareGroupOffsetsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DeleteShareGroupOffsetsRequestTopic` of `DeleteShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteShareGroupOffsetsRequestTopic {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteShareGroupOffsetsRequestTopic {
    const FIELDS: &'static [Field] =
        &[Field::new("TopicName", Kind::Text, 0, 0).of(Entity::TopicName)];
}

impl FromWire for DeleteShareGroupOffsetsRequestTopic {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_name = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteShareGroupOffsetsRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic_name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteShareGroupOffsetsRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_name = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DeleteShareGroupOffsetsRequest {
    const NAME: &'static str = "DeleteShareGroupOffsetsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DeleteShareGroupOffsetsRequest {
    const KEY: ApiKey = ApiKey::DeleteShareGroupOffsets;
    type Response = super::DeleteShareGroupOffsetsResponse;
}
