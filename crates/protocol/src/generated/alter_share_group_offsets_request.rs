//! `AlterShareGroupOffsetsRequest`, versions 0-0, API key 91.

use super::prelude::*;

/// `AlterShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterShareGroupOffsetsRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+.
    pub topics: Vec<AlterShareGroupOffsetsRequestTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterShareGroupOffsetsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 0).of(Entity::GroupId),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(AlterShareGroupOffsetsRequestTopic::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for AlterShareGroupOffsetsRequest {
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

impl ToWire for AlterShareGroupOffsetsRequest {
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
impl Random for AlterShareGroupOffsetsRequest {
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

/// `AlterShareGroupOffsetsRequestTopic` of `AlterShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterShareGroupOffsetsRequestTopic {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<AlterShareGroupOffsetsRequestPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterShareGroupOffsetsRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(AlterShareGroupOffsetsRequestPartition::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for AlterShareGroupOffsetsRequestTopic {
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

impl ToWire for AlterShareGroupOffsetsRequestTopic {
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
impl Random for AlterShareGroupOffsetsRequestTopic {
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

/// `AlterShareGroupOffsetsRequestPartition` of `AlterShareGroupOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterShareGroupOffsetsRequestPartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `StartOffset`, versions 0+.
    pub start_offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterShareGroupOffsetsRequestPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("StartOffset", Kind::Fixed(8), 0, 0),
    ];
}

impl FromWire for AlterShareGroupOffsetsRequestPartition {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.start_offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterShareGroupOffsetsRequestPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.start_offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterShareGroupOffsetsRequestPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.start_offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterShareGroupOffsetsRequest {
    const NAME: &'static str = "AlterShareGroupOffsetsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for AlterShareGroupOffsetsRequest {
    const KEY: ApiKey = ApiKey::AlterShareGroupOffsets;
    type Response = super::AlterShareGroupOffsetsResponse;
}
