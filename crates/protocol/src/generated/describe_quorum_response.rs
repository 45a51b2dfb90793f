//! `DescribeQuorumResponse`, versions 0-2, API key 55.

use super::prelude::*;

/// `DescribeQuorumResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeQuorumResponse {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 2+, null in versions 2+.
    pub error_message: Option<String>,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicData>,
    /// `Nodes`, versions 2+.
    pub nodes: Vec<Node>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeQuorumResponse {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            topics: Default::default(),
            nodes: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeQuorumResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 2, 2).nullable(2, 2).of(Entity::Explanation),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 0, 2),
        Field::new("Nodes", Kind::Array(&Kind::Struct(Node::FIELDS)), 2, 2),
    ];
}

impl FromWire for DescribeQuorumResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        if v >= 2 {
            m.error_message = r.nullable_string(f, true)?;
        }
        m.topics = r.array(v, f)?;
        if v >= 2 {
            m.nodes = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeQuorumResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        if v >= 2 {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        }
        w.array(&self.topics, v, f)?;
        if v >= 2 {
            w.array(&self.nodes, v, f)?;
        } else if !self.nodes.is_empty() {
            return Err(EncodeError::absent("DescribeQuorumResponse.Nodes", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeQuorumResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        if v >= 2 {
            m.error_message = g.nullable(true, v, f);
        }
        m.topics = Random::random(g, v, f);
        if v >= 2 {
            m.nodes = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `DescribeQuorumResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicData {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicData {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 2).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 0, 2),
    ];
}

impl FromWire for TopicData {
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

impl ToWire for TopicData {
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
impl Random for TopicData {
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

/// `PartitionData` of `DescribeQuorumResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 2+, null in versions 2+.
    pub error_message: Option<String>,
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `HighWatermark`, versions 0+.
    pub high_watermark: i64,
    /// `CurrentVoters`, versions 0+.
    pub current_voters: Vec<ReplicaState>,
    /// `Observers`, versions 0+.
    pub observers: Vec<ReplicaState>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            leader_id: Default::default(),
            leader_epoch: Default::default(),
            high_watermark: Default::default(),
            current_voters: Default::default(),
            observers: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 2, 2).nullable(2, 2).of(Entity::Explanation),
        Field::new("LeaderId", Kind::Fixed(4), 0, 2),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 2),
        Field::new("HighWatermark", Kind::Fixed(8), 0, 2),
        Field::new("CurrentVoters", Kind::Array(&Kind::Struct(ReplicaState::FIELDS)), 0, 2),
        Field::new("Observers", Kind::Array(&Kind::Struct(ReplicaState::FIELDS)), 0, 2),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 25;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        if v >= 2 {
            m.error_message = r.nullable_string(f, true)?;
        }
        m.leader_id = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.high_watermark = r.i64()?;
        m.current_voters = r.array(v, f)?;
        m.observers = r.array(v, f)?;
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
        if v >= 2 {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        }
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        w.i64(self.high_watermark);
        w.array(&self.current_voters, v, f)?;
        w.array(&self.observers, v, f)?;
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
        if v >= 2 {
            m.error_message = g.nullable(true, v, f);
        }
        m.leader_id = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.high_watermark = Random::random(g, v, f);
        m.current_voters = Random::random(g, v, f);
        m.observers = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReplicaState` of `DescribeQuorumResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaState {
    /// `ReplicaId`, versions 0+.
    pub replica_id: i32,
    /// `ReplicaDirectoryId`, versions 2+.
    pub replica_directory_id: Uuid,
    /// `LogEndOffset`, versions 0+.
    pub log_end_offset: i64,
    /// `LastFetchTimestamp`, versions 1+.
    pub last_fetch_timestamp: i64,
    /// `LastCaughtUpTimestamp`, versions 1+.
    pub last_caught_up_timestamp: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self {
            replica_id: Default::default(),
            replica_directory_id: Default::default(),
            log_end_offset: Default::default(),
            last_fetch_timestamp: -1,
            last_caught_up_timestamp: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ReplicaState {
    const FIELDS: &'static [Field] = &[
        Field::new("ReplicaId", Kind::Fixed(4), 0, 2),
        Field::new("ReplicaDirectoryId", Kind::Uuid, 2, 2),
        Field::new("LogEndOffset", Kind::Fixed(8), 0, 2),
        Field::new("LastFetchTimestamp", Kind::Fixed(8), 1, 2),
        Field::new("LastCaughtUpTimestamp", Kind::Fixed(8), 1, 2),
    ];
}

impl FromWire for ReplicaState {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.replica_id = r.i32()?;
        if v >= 2 {
            m.replica_directory_id = r.uuid()?;
        }
        m.log_end_offset = r.i64()?;
        if v >= 1 {
            m.last_fetch_timestamp = r.i64()?;
        }
        if v >= 1 {
            m.last_caught_up_timestamp = r.i64()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReplicaState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.replica_id);
        if v >= 2 {
            w.uuid(self.replica_directory_id);
        } else if self.replica_directory_id != Uuid::ZERO {
            return Err(EncodeError::absent("ReplicaState.ReplicaDirectoryId", v));
        }
        w.i64(self.log_end_offset);
        if v >= 1 {
            w.i64(self.last_fetch_timestamp);
        }
        if v >= 1 {
            w.i64(self.last_caught_up_timestamp);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReplicaState {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.replica_id = Random::random(g, v, f);
        if v >= 2 {
            m.replica_directory_id = Random::random(g, v, f);
        }
        m.log_end_offset = Random::random(g, v, f);
        if v >= 1 {
            m.last_fetch_timestamp = Random::random(g, v, f);
        }
        if v >= 1 {
            m.last_caught_up_timestamp = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Node` of `DescribeQuorumResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Node {
    /// `NodeId`, versions 2+.
    pub node_id: i32,
    /// `Listeners`, versions 2+.
    pub listeners: Vec<Listener>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Node {
    const FIELDS: &'static [Field] = &[
        Field::new("NodeId", Kind::Fixed(4), 2, 2),
        Field::new("Listeners", Kind::Array(&Kind::Struct(Listener::FIELDS)), 2, 2),
    ];
}

impl FromWire for Node {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.node_id = r.i32()?;
        m.listeners = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Node {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.node_id);
        w.array(&self.listeners, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Node {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.node_id = Random::random(g, v, f);
        m.listeners = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Listener` of `DescribeQuorumResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Listener {
    /// `Name`, versions 2+.
    pub name: String,
    /// `Host`, versions 2+.
    pub host: String,
    /// `Port`, versions 2+.
    pub port: u16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Listener {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 2, 2),
        Field::new("Host", Kind::Text, 2, 2),
        Field::new("Port", Kind::Fixed(2), 2, 2),
    ];
}

impl FromWire for Listener {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.host = r.string(f)?;
        m.port = r.u16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Listener {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.string(&self.host, f)?;
        w.u16(self.port);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Listener {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeQuorumResponse {
    const NAME: &'static str = "DescribeQuorumResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeQuorumResponse {
    const KEY: ApiKey = ApiKey::DescribeQuorum;
}
