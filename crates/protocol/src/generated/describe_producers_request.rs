//! `DescribeProducersRequest`, versions 0-0, API key 61.

use super::prelude::*;

/// `DescribeProducersRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeProducersRequest {
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicRequest>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeProducersRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("Topics", Kind::Array(&Kind::Struct(TopicRequest::FIELDS)), 0, 0)];
}

impl FromWire for DescribeProducersRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeProducersRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeProducersRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicRequest` of `DescribeProducersRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicRequest {
    /// `Name`, versions 0+.
    pub name: String,
    /// `PartitionIndexes`, versions 0+.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("PartitionIndexes", Kind::Array(&Kind::Fixed(4)), 0, 0),
    ];
}

impl FromWire for TopicRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partition_indexes = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partition_indexes, v, f)?;
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
        m.partition_indexes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeProducersRequest {
    const NAME: &'static str = "DescribeProducersRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DescribeProducersRequest {
    const KEY: ApiKey = ApiKey::DescribeProducers;
    type Response = super::DescribeProducersResponse;
}
