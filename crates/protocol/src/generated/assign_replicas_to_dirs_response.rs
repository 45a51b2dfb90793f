//! `AssignReplicasToDirsResponse`, versions 0-0, API key 73.

use super::prelude::*;

/// `AssignReplicasToDirsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AssignReplicasToDirsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Directories`, versions 0+.
    pub directories: Vec<DirectoryData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AssignReplicasToDirsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("Directories", Kind::Array(&Kind::Struct(DirectoryData::FIELDS)), 0, 0),
    ];
}

impl FromWire for AssignReplicasToDirsResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.directories = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AssignReplicasToDirsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.array(&self.directories, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AssignReplicasToDirsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.directories = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DirectoryData` of `AssignReplicasToDirsResponse`.
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

/// `TopicData` of `AssignReplicasToDirsResponse`.
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

/// `PartitionData` of `AssignReplicasToDirsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
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
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AssignReplicasToDirsResponse {
    const NAME: &'static str = "AssignReplicasToDirsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for AssignReplicasToDirsResponse {
    const KEY: ApiKey = ApiKey::AssignReplicasToDirs;
}
