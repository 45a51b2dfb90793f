//! `DescribeTopicPartitionsRequest`, versions 0-0, API key 75.

use super::prelude::*;

/// `DescribeTopicPartitionsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsRequest {
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicRequest>,
    /// `ResponsePartitionLimit`, versions 0+.
    pub response_partition_limit: i32,
    /// `Cursor`, versions 0+, null in versions 0+.
    pub cursor: Option<Cursor>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeTopicPartitionsRequest {
    fn default() -> Self {
        Self {
            topics: Default::default(),
            response_partition_limit: 2000,
            cursor: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeTopicPartitionsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicRequest::FIELDS)), 0, 0),
        Field::new("ResponsePartitionLimit", Kind::Fixed(4), 0, 0),
        Field::new("Cursor", Kind::Struct(Cursor::FIELDS), 0, 0).nullable(0, 0),
    ];
}

impl FromWire for DescribeTopicPartitionsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.array(v, f)?;
        m.response_partition_limit = r.i32()?;
        m.cursor = r.nullable_struct(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeTopicPartitionsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topics, v, f)?;
        w.i32(self.response_partition_limit);
        w.nullable_struct(self.cursor.as_ref(), v, f, true, "Cursor")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeTopicPartitionsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = Random::random(g, v, f);
        m.response_partition_limit = Random::random(g, v, f);
        m.cursor = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicRequest` of `DescribeTopicPartitionsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicRequest {
    /// `Name`, versions 0+.
    pub name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicRequest {
    const FIELDS: &'static [Field] = &[Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName)];
}

impl FromWire for TopicRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Cursor` of `DescribeTopicPartitionsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cursor {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Cursor {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
    ];
}

impl FromWire for Cursor {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_name = r.string(f)?;
        m.partition_index = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Cursor {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic_name, f)?;
        w.i32(self.partition_index);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Cursor {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_name = Random::random(g, v, f);
        m.partition_index = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeTopicPartitionsRequest {
    const NAME: &'static str = "DescribeTopicPartitionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DescribeTopicPartitionsRequest {
    const KEY: ApiKey = ApiKey::DescribeTopicPartitions;
    type Response = super::DescribeTopicPartitionsResponse;
}
