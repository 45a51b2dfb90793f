//! `OffsetDeleteRequest`, versions 0-0, API key 47.

use super::prelude::*;

/// `OffsetDeleteRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetDeleteRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+.
    pub topics: Vec<OffsetDeleteRequestTopic>,
}

impl Structure for OffsetDeleteRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 0).of(Entity::GroupId),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetDeleteRequestTopic::FIELDS)), 0, 0),
    ];
}

impl FromWire for OffsetDeleteRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.topics = r.array(v, f)?;
        Ok(m)
    }
}

impl ToWire for OffsetDeleteRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.array(&self.topics, v, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetDeleteRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        m
    }
}

/// `OffsetDeleteRequestTopic` of `OffsetDeleteRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetDeleteRequestTopic {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<OffsetDeleteRequestPartition>,
}

impl Structure for OffsetDeleteRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetDeleteRequestPartition::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for OffsetDeleteRequestTopic {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        Ok(m)
    }
}

impl ToWire for OffsetDeleteRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetDeleteRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        m
    }
}

/// `OffsetDeleteRequestPartition` of `OffsetDeleteRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetDeleteRequestPartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
}

impl Structure for OffsetDeleteRequestPartition {
    const FIELDS: &'static [Field] = &[Field::new("PartitionIndex", Kind::Fixed(4), 0, 0)];
}

impl FromWire for OffsetDeleteRequestPartition {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        Ok(m)
    }
}

impl ToWire for OffsetDeleteRequestPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetDeleteRequestPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m
    }
}

impl Message for OffsetDeleteRequest {
    const NAME: &'static str = "OffsetDeleteRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}

impl Request for OffsetDeleteRequest {
    const KEY: ApiKey = ApiKey::OffsetDelete;
    type Response = super::OffsetDeleteResponse;
}
