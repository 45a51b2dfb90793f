//! `AssignReplicasToDirsRequest`, versions 0-0, API key 73.

use super::prelude::*;

/// `AssignReplicasToDirsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AssignReplicasToDirsRequest {
    /// `BrokerId`, versions 0+.
    pub broker_id: i32,
    /// `BrokerEpoch`, versions 0+.
    pub broker_epoch: i64,
    /// `Directories`, versions 0+.
    pub directories: Vec<DirectoryData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AssignReplicasToDirsRequest {
    fn default() -> Self {
        Self {
            broker_id: Default::default(),
            broker_epoch: -1,
            directories: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AssignReplicasToDirsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 0, 0),
        Field::new("BrokerEpoch", Kind::Fixed(8), 0, 0),
        Field::new("Directories", Kind::Array(&Kind::Struct(DirectoryData::FIELDS)), 0, 0),
    ];
}

impl FromWire for AssignReplicasToDirsRequest {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.broker_epoch = r.i64()?;
        m.directories = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AssignReplicasToDirsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.i64(self.broker_epoch);
        w.array(&self.directories, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AssignReplicasToDirsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.broker_epoch = Random::random(g, v, f);
        m.directories = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DirectoryData` of `AssignReplicasToDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DirectoryData {
    /// `Id`, versions 0+.
    pub id: Uuid,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DirectoryData {
    const FIELDS: &'static [Field] = &[
        Field::new("Id", Kind::Uuid, 0, 0),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 0, 0),
    ];
}

impl FromWire for DirectoryData {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.id = r.uuid()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DirectoryData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.uuid(self.id);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DirectoryData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `AssignReplicasToDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicData {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicData {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 0).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 0, 0),
    ];
}

impl FromWire for TopicData {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_id = r.uuid()?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.uuid(self.topic_id);
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_id = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `PartitionData` of `AssignReplicasToDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[Field::new("PartitionIndex", Kind::Fixed(4), 0, 0)];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AssignReplicasToDirsRequest {
    const NAME: &'static str = "AssignReplicasToDirsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for AssignReplicasToDirsRequest {
    const KEY: ApiKey = ApiKey::AssignReplicasToDirs;
    type Response = super::AssignReplicasToDirsResponse;
}
