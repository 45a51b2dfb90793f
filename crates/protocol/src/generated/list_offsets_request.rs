//! `ListOffsetsRequest`, versions 1-11, API key 2.

use super::prelude::*;

/// `ListOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListOffsetsRequest {
    /// `ReplicaId`, versions 1+.
    pub replica_id: i32,
    /// `IsolationLevel`, versions 2+.
    pub isolation_level: i8,
    /// `Topics`, versions 1+.
    pub topics: Vec<ListOffsetsTopic>,
    /// `TimeoutMs`, versions 10+.
    pub timeout_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListOffsetsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ReplicaId", Kind::Fixed(4), 1, 11),
        Field::new("IsolationLevel", Kind::Fixed(1), 2, 11),
        Field::new("Topics", Kind::Array(&Kind::Struct(ListOffsetsTopic::FIELDS)), 1, 11),
        Field::new("TimeoutMs", Kind::Fixed(4), 10, 11),
    ];
}

impl FromWire for ListOffsetsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.replica_id = r.i32()?;
        if v >= 2 {
            m.isolation_level = r.i8()?;
        }
        m.topics = r.array(v, f)?;
        if v >= 10 {
            m.timeout_ms = r.i32()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListOffsetsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.replica_id);
        if v >= 2 {
            w.i8(self.isolation_level);
        } else if self.isolation_level != 0 {
            return Err(EncodeError::absent("ListOffsetsRequest.IsolationLevel", v));
        }
        w.array(&self.topics, v, f)?;
        if v >= 10 {
            w.i32(self.timeout_ms);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListOffsetsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListOffsetsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.replica_id = Random::random(g, v, f);
        if v >= 2 {
            m.isolation_level = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if v >= 10 {
            m.timeout_ms = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ListOffsetsTopic` of `ListOffsetsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListOffsetsTopic {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<ListOffsetsPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListOffsetsTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 11).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(ListOffsetsPartition::FIELDS)), 1, 11),
    ];
}

impl FromWire for ListOffsetsTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListOffsetsTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListOffsetsTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListOffsetsTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ListOffsetsPartition` of `ListOffsetsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListOffsetsPartition {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `CurrentLeaderEpoch`, versions 4+.
    pub current_leader_epoch: i32,
    /// `Timestamp`, versions 1+.
    pub timestamp: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ListOffsetsPartition {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            current_leader_epoch: -1,
            timestamp: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ListOffsetsPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 11),
        Field::new("CurrentLeaderEpoch", Kind::Fixed(4), 4, 11),
        Field::new("Timestamp", Kind::Fixed(8), 1, 11),
    ];
}

impl FromWire for ListOffsetsPartition {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        if v >= 4 {
            m.current_leader_epoch = r.i32()?;
        }
        m.timestamp = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListOffsetsPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        if v >= 4 {
            w.i32(self.current_leader_epoch);
        }
        w.i64(self.timestamp);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListOffsetsPartition.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListOffsetsPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        if v >= 4 {
            m.current_leader_epoch = Random::random(g, v, f);
        }
        m.timestamp = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListOffsetsRequest {
    const NAME: &'static str = "ListOffsetsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 11);
    const FLEXIBLE_FROM: i16 = 6;
}

impl Request for ListOffsetsRequest {
    const KEY: ApiKey = ApiKey::ListOffsets;
    type Response = super::ListOffsetsResponse;
}
