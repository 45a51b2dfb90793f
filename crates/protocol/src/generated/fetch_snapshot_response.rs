//! `FetchSnapshotResponse`, versions 0-1, API key 59.

use super::prelude::*;

/// `FetchSnapshotResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchSnapshotResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicSnapshot>,
    /// `NodeEndpoints`, versions 1+, tag 0.
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FetchSnapshotResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicSnapshot::FIELDS)), 0, 1),
        Field::new("NodeEndpoints", Kind::Array(&Kind::Struct(NodeEndpoint::FIELDS)), 1, 1)
            .tagged(0),
    ];
}

impl FromWire for FetchSnapshotResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.topics = r.array(v, f)?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 1 => m.node_endpoints = r.array(v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for FetchSnapshotResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.array(&self.topics, v, f)?;
        if v < 1 && !self.node_endpoints.is_empty() {
            return Err(EncodeError::absent("FetchSnapshotResponse.NodeEndpoints", v));
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 1 && !self.node_endpoints.is_empty() {
                tags.field(0, |w| w.array(&self.node_endpoints, v, f))?;
            }
            tags.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchSnapshotResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if v >= 1 {
            m.node_endpoints = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicSnapshot` of `FetchSnapshotResponse`.
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

/// `PartitionSnapshot` of `FetchSnapshotResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionSnapshot {
    /// `Index`, versions 0+.
    pub index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `SnapshotId`, versions 0+.
    pub snapshot_id: SnapshotId,
    /// `CurrentLeader`, versions 0+, tag 0.
    pub current_leader: LeaderIdAndEpoch,
    /// `Size`, versions 0+.
    pub size: i64,
    /// `Position`, versions 0+.
    pub position: i64,
    /// `UnalignedRecords`, versions 0+.
    pub unaligned_records: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionSnapshot {
    const FIELDS: &'static [Field] = &[
        Field::new("Index", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("SnapshotId", Kind::Struct(SnapshotId::FIELDS), 0, 1),
        Field::new("CurrentLeader", Kind::Struct(LeaderIdAndEpoch::FIELDS), 0, 1).tagged(0),
        Field::new("Size", Kind::Fixed(8), 0, 1),
        Field::new("Position", Kind::Fixed(8), 0, 1),
        Field::new("UnalignedRecords", Kind::Bytes, 0, 1),
    ];
}

impl FromWire for PartitionSnapshot {
    const SIZE_MIN: usize = 37;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.index = r.i32()?;
        m.error_code = r.i16()?;
        m.snapshot_id = SnapshotId::read(r, v, f)?;
        m.size = r.i64()?;
        m.position = r.i64()?;
        m.unaligned_records = r.bytes(f)?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.current_leader = LeaderIdAndEpoch::read(r, v, f)?,
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
        w.i32(self.index);
        w.i16(self.error_code);
        self.snapshot_id.write(w, v, f)?;
        w.i64(self.size);
        w.i64(self.position);
        w.bytes(&self.unaligned_records, f)?;
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if self.current_leader != LeaderIdAndEpoch::default() {
                tags.field(0, |w| self.current_leader.write(w, v, f))?;
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
        m.index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.snapshot_id = Random::random(g, v, f);
        m.current_leader = Random::random(g, v, f);
        m.size = Random::random(g, v, f);
        m.position = Random::random(g, v, f);
        m.unaligned_records = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `SnapshotId` of `FetchSnapshotResponse`.
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

/// `LeaderIdAndEpoch` of `FetchSnapshotResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LeaderIdAndEpoch {
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for LeaderIdAndEpoch {
    const FIELDS: &'static [Field] = &[
        Field::new("LeaderId", Kind::Fixed(4), 0, 1),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 1),
    ];
}

impl FromWire for LeaderIdAndEpoch {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.leader_id = r.i32()?;
        m.leader_epoch = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for LeaderIdAndEpoch {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for LeaderIdAndEpoch {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.leader_id = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `NodeEndpoint` of `FetchSnapshotResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NodeEndpoint {
    /// `NodeId`, versions 1+.
    pub node_id: i32,
    /// `Host`, versions 1+.
    pub host: String,
    /// `Port`, versions 1+.
    pub port: u16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for NodeEndpoint {
    const FIELDS: &'static [Field] = &[
        Field::new("NodeId", Kind::Fixed(4), 1, 1),
        Field::new("Host", Kind::Text, 1, 1),
        Field::new("Port", Kind::Fixed(2), 1, 1),
    ];
}

impl FromWire for NodeEndpoint {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.node_id = r.i32()?;
        m.host = r.string(f)?;
        m.port = r.u16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for NodeEndpoint {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.node_id);
        w.string(&self.host, f)?;
        w.u16(self.port);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for NodeEndpoint {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.node_id = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for FetchSnapshotResponse {
    const NAME: &'static str = "FetchSnapshotResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for FetchSnapshotResponse {
    const KEY: ApiKey = ApiKey::FetchSnapshot;
}
