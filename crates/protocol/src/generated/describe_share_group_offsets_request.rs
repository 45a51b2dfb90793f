//! `DescribeShareGroupOffsetsRequest`, versions 0-1, API key 90.

use super::prelude::*;

/// `DescribeShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeShareGroupOffsetsRequest {
    /// `Groups`, versions 0+.
    pub groups: Vec<DescribeShareGroupOffsetsRequestGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeShareGroupOffsetsRequest {
    const FIELDS: &'static [Field] = &[Field::new(
        "Groups",
        Kind::Array(&Kind::Struct(DescribeShareGroupOffsetsRequestGroup::FIELDS)),
        0,
        1,
    )];
}

impl FromWire for DescribeShareGroupOffsetsRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeShareGroupOffsetsRequestGroup` of `DescribeShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeShareGroupOffsetsRequestGroup {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+, null in versions 0+.
    pub topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeShareGroupOffsetsRequestGroup {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            topics: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeShareGroupOffsetsRequestGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 1).of(Entity::GroupId),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(DescribeShareGroupOffsetsRequestTopic::FIELDS)),
            0,
            1,
        )
        .nullable(0, 1),
    ];
}

impl FromWire for DescribeShareGroupOffsetsRequestGroup {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.topics = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsRequestGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.nullable_array(self.topics.as_deref(), v, f, true, "Topics")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsRequestGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.topics = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeShareGroupOffsetsRequestTopic` of `DescribeShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeShareGroupOffsetsRequestTopic {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeShareGroupOffsetsRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 1),
    ];
}

impl FromWire for DescribeShareGroupOffsetsRequestTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic_name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeShareGroupOffsetsRequest {
    const NAME: &'static str = "DescribeShareGroupOffsetsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DescribeShareGroupOffsetsRequest {
    const KEY: ApiKey = ApiKey::DescribeShareGroupOffsets;
    type Response = super::DescribeShareGroupOffsetsResponse;
}
