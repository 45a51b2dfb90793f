//! `FetchSnapshotRequest`, versions 0-1, API key 59.

use super::prelude::*;

/// `FetchSnapshotRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchSnapshotRequest {
    /// `ClusterId`, versions 0+, null in versions 0+, tag 0.
    pub cluster_id: Option<String>,
    /// `ReplicaId`, versions 0+.
    pub replica_id: i32,
    /// `MaxBytes`, versions 0+.
    pub max_bytes: i32,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicSnapshot>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for FetchSnapshotRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: -1,
            max_bytes: 2147483647,
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for FetchSnapshotRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 0, 1).nullable(0, 1).tagged(0),
        Field::new("ReplicaId", Kind::Fixed(4), 0, 1),
        Field::new("MaxBytes", Kind::Fixed(4), 0, 1),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicSnapshot::FIELDS)), 0, 1),
    ];
}

impl FromWire for FetchSnapshotRequest {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.replica_id = r.i32()?;
        m.max_bytes = r.i32()?;
        m.topics = r.array(v, f)?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.cluster_id = r.nullable_string(f, true)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for FetchSnapshotRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.replica_id);
        w.i32(self.max_bytes);
        w.array(&self.topics, v, f)?;
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if self.cluster_id.is_some() {
                tags.field(0, |w| {
                    w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")
                })?;
            }
            tags.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchSnapshotRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.cluster_id = g.nullable(true, v, f);
        m.replica_id = Random::random(g, v, f);
        m.max_bytes = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicSnapshot` of `FetchSnapshotRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicSnapshot {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionSnapshot>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicSnapshot {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionSnapshot::FIELDS)), 0, 1),
    ];
}

impl FromWire for TopicSnapshot {
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

impl ToWire for TopicSnapshot {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicSnapshot {
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

/// `PartitionSnapshot` of `FetchSnapshotRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionSnapshot {
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `CurrentLeaderEpoch`, versions 0+.
    pub current_leader_epoch: i32,
    /// `SnapshotId`, versions 0+.
    pub snapshot_id: SnapshotId,
    /// `Position`, versions 0+.
    pub position: i64,
    /// `ReplicaDirectoryId`, versions 1+, tag 0.
    pub replica_directory_id: Uuid,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionSnapshot {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 0, 1),
        Field::new("CurrentLeaderEpoch", Kind::Fixed(4), 0, 1),
        Field::new("SnapshotId", Kind::Struct(SnapshotId::FIELDS), 0, 1),
        Field::new("Position", Kind::Fixed(8), 0, 1),
        Field::new("ReplicaDirectoryId", Kind::Uuid, 1, 1).tagged(0),
    ];
}

impl FromWire for PartitionSnapshot {
    const SIZE_MIN: usize = 30;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.current_leader_epoch = r.i32()?;
        m.snapshot_id = SnapshotId::read(r, v, f)?;
        m.position = r.i64()?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 1 => m.replica_directory_id = r.uuid()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionSnapshot {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition);
        w.i32(self.current_leader_epoch);
        self.snapshot_id.write(w, v, f)?;
        w.i64(self.position);
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 1 && self.replica_directory_id != Uuid::ZERO {
                tags.field(0, |w| {
                    w.uuid(self.replica_directory_id);
                    Ok(())
                })?;
            }
            tags.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionSnapshot {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition = Random::random(g, v, f);
        m.current_leader_epoch = Random::random(g, v, f);
        m.snapshot_id = Random::random(g, v, f);
        m.position = Random::random(g, v, f);
        if v >= 1 {
            m.replica_directory_id = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `SnapshotId` of `FetchSnapshotRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SnapshotId {
    /// `EndOffset`, versions 0+.
    pub end_offset: i64,
    /// `Epoch`, versions 0+.
    pub epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SnapshotId {
    const FIELDS: &'static [Field] =
        &[Field::new("EndOffset", Kind::Fixed(8), 0, 1), Field::new("Epoch", Kind::Fixed(4), 0, 1)];
}

impl FromWire for SnapshotId {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.end_offset = r.i64()?;
        m.epoch = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SnapshotId {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.end_offset);
        w.i32(self.epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SnapshotId {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.end_offset = Random::random(g, v, f);
        m.epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for FetchSnapshotRequest {
    const NAME: &'static str = "FetchSnapshotRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for FetchSnapshotRequest {
    const KEY: ApiKey = ApiKey::FetchSnapshot;
    type Response = super::FetchSnapshotResponse;
}
