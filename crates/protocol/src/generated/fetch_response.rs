//! `FetchResponse`, versions 4-18, API key 1.

use super::prelude::*;

/// `FetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchResponse {
    /// `ThrottleTimeMs`, versions 4+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 7+.
    pub error_code: i16,
    /// `SessionId`, versions 7+.
    pub session_id: i32,
    /// `Responses`, versions 4+.
    pub responses: Vec<FetchableTopicResponse>,
    /// `NodeEndpoints`, versions 16+, tag 0.
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FetchResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 4, 18),
        Field::new("ErrorCode", Kind::Fixed(2), 7, 18),
        Field::new("SessionId", Kind::Fixed(4), 7, 18),
        Field::new("Responses", Kind::Array(&Kind::Struct(FetchableTopicResponse::FIELDS)), 4, 18),
        Field::new("NodeEndpoints", Kind::Array(&Kind::Struct(NodeEndpoint::FIELDS)), 16, 18)
            .tagged(0),
    ];
}

impl FromWire for FetchResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        if v >= 7 {
            m.error_code = r.i16()?;
        }
        if v >= 7 {
            m.session_id = r.i32()?;
        }
        m.responses = r.array(v, f)?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 16 => m.node_endpoints = r.array(v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for FetchResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        if v >= 7 {
            w.i16(self.error_code);
        }
        if v >= 7 {
            w.i32(self.session_id);
        } else if self.session_id != 0 {
            return Err(EncodeError::absent("FetchResponse.SessionId", v));
        }
        w.array(&self.responses, v, f)?;
        if v < 16 && !self.node_endpoints.is_empty() {
            return Err(EncodeError::absent("FetchResponse.NodeEndpoints", v));
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 16 && !self.node_endpoints.is_empty() {
                tags.field(0, |w| w.array(&self.node_endpoints, v, f))?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("FetchResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        if v >= 7 {
            m.error_code = Random::random(g, v, f);
        }
        if v >= 7 {
            m.session_id = Random::random(g, v, f);
        }
        m.responses = Random::random(g, v, f);
        if v >= 16 {
            m.node_endpoints = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `FetchableTopicResponse` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchableTopicResponse {
    /// `Topic`, versions 4-12.
    pub topic: String,
    /// `TopicId`, versions 13+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 4+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FetchableTopicResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 4, 12).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 13, 18).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 4, 18),
    ];
}

impl FromWire for FetchableTopicResponse {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 12 {
            m.topic = r.string(f)?;
        }
        if v >= 13 {
            m.topic_id = r.uuid()?;
        }
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for FetchableTopicResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 12 {
            w.string(&self.topic, f)?;
        }
        if v >= 13 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("FetchableTopicResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchableTopicResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 12 {
            m.topic = Random::random(g, v, f);
        }
        if v >= 13 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `PartitionData` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 4+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 4+.
    pub error_code: i16,
    /// `HighWatermark`, versions 4+.
    pub high_watermark: i64,
    /// `LastStableOffset`, versions 4+.
    pub last_stable_offset: i64,
    /// `LogStartOffset`, versions 5+.
    pub log_start_offset: i64,
    /// `DivergingEpoch`, versions 12+, tag 0.
    pub diverging_epoch: EpochEndOffset,
    /// `CurrentLeader`, versions 12+, tag 1.
    pub current_leader: LeaderIdAndEpoch,
    /// `SnapshotId`, versions 12+, tag 2.
    pub snapshot_id: SnapshotId,
    /// `AbortedTransactions`, versions 4+, null in versions 4+.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// `PreferredReadReplica`, versions 11+.
    pub preferred_read_replica: i32,
    /// `Records`, versions 4+, null in versions 4+.
    pub records: Option<Bytes>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            error_code: Default::default(),
            high_watermark: Default::default(),
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: Default::default(),
            current_leader: Default::default(),
            snapshot_id: Default::default(),
            aborted_transactions: Some(Default::default()),
            preferred_read_replica: -1,
            records: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 4, 18),
        Field::new("ErrorCode", Kind::Fixed(2), 4, 18),
        Field::new("HighWatermark", Kind::Fixed(8), 4, 18),
        Field::new("LastStableOffset", Kind::Fixed(8), 4, 18),
        Field::new("LogStartOffset", Kind::Fixed(8), 5, 18),
        Field::new("DivergingEpoch", Kind::Struct(EpochEndOffset::FIELDS), 12, 18).tagged(0),
        Field::new("CurrentLeader", Kind::Struct(LeaderIdAndEpoch::FIELDS), 12, 18).tagged(1),
        Field::new("SnapshotId", Kind::Struct(SnapshotId::FIELDS), 12, 18).tagged(2),
        Field::new(
            "AbortedTransactions",
            Kind::Array(&Kind::Struct(AbortedTransaction::FIELDS)),
            4,
            18,
        )
        .nullable(4, 18),
        Field::new("PreferredReadReplica", Kind::Fixed(4), 11, 18),
        Field::new("Records", Kind::Bytes, 4, 18).nullable(4, 18),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 30;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.high_watermark = r.i64()?;
        m.last_stable_offset = r.i64()?;
        if v >= 5 {
            m.log_start_offset = r.i64()?;
        }
        m.aborted_transactions = r.nullable_array(v, f, true)?;
        if v >= 11 {
            m.preferred_read_replica = r.i32()?;
        }
        m.records = r.nullable_bytes(f, true)?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.diverging_epoch = EpochEndOffset::read(r, v, f)?,
                    1 => m.current_leader = LeaderIdAndEpoch::read(r, v, f)?,
                    2 => m.snapshot_id = SnapshotId::read(r, v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        w.i64(self.high_watermark);
        w.i64(self.last_stable_offset);
        if v >= 5 {
            w.i64(self.log_start_offset);
        }
        if v < 12 && self.diverging_epoch != EpochEndOffset::default() {
            return Err(EncodeError::absent("PartitionData.DivergingEpoch", v));
        }
        if v < 12 && self.current_leader != LeaderIdAndEpoch::default() {
            return Err(EncodeError::absent("PartitionData.CurrentLeader", v));
        }
        if v < 12 && self.snapshot_id != SnapshotId::default() {
            return Err(EncodeError::absent("PartitionData.SnapshotId", v));
        }
        w.nullable_array(self.aborted_transactions.as_deref(), v, f, true, "AbortedTransactions")?;
        if v >= 11 {
            w.i32(self.preferred_read_replica);
        } else if self.preferred_read_replica != -1 {
            return Err(EncodeError::absent("PartitionData.PreferredReadReplica", v));
        }
        w.nullable_bytes(self.records.as_deref(), f, true, "Records")?;
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if self.diverging_epoch != EpochEndOffset::default() {
                tags.field(0, |w| self.diverging_epoch.write(w, v, f))?;
            }
            if self.current_leader != LeaderIdAndEpoch::default() {
                tags.field(1, |w| self.current_leader.write(w, v, f))?;
            }
            if self.snapshot_id != SnapshotId::default() {
                tags.field(2, |w| self.snapshot_id.write(w, v, f))?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("PartitionData.unknown_tagged_fields", v));
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
        m.high_watermark = Random::random(g, v, f);
        m.last_stable_offset = Random::random(g, v, f);
        if v >= 5 {
            m.log_start_offset = Random::random(g, v, f);
        }
        if v >= 12 {
            m.diverging_epoch = Random::random(g, v, f);
        }
        if v >= 12 {
            m.current_leader = Random::random(g, v, f);
        }
        if v >= 12 {
            m.snapshot_id = Random::random(g, v, f);
        }
        m.aborted_transactions = g.nullable(true, v, f);
        if v >= 11 {
            m.preferred_read_replica = Random::random(g, v, f);
        }
        m.records = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EpochEndOffset` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochEndOffset {
    /// `Epoch`, versions 12+.
    pub epoch: i32,
    /// `EndOffset`, versions 12+.
    pub end_offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self { epoch: -1, end_offset: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for EpochEndOffset {
    const FIELDS: &'static [Field] = &[
        Field::new("Epoch", Kind::Fixed(4), 12, 18),
        Field::new("EndOffset", Kind::Fixed(8), 12, 18),
    ];
}

impl FromWire for EpochEndOffset {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.epoch = r.i32()?;
        m.end_offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EpochEndOffset {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.epoch);
        w.i64(self.end_offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EpochEndOffset {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.epoch = Random::random(g, v, f);
        m.end_offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `LeaderIdAndEpoch` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderIdAndEpoch {
    /// `LeaderId`, versions 12+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 12+.
    pub leader_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for LeaderIdAndEpoch {
    const FIELDS: &'static [Field] = &[
        Field::new("LeaderId", Kind::Fixed(4), 12, 18),
        Field::new("LeaderEpoch", Kind::Fixed(4), 12, 18),
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

/// `SnapshotId` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotId {
    /// `EndOffset`, versions 12+.
    pub end_offset: i64,
    /// `Epoch`, versions 12+.
    pub epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for SnapshotId {
    fn default() -> Self {
        Self { end_offset: -1, epoch: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for SnapshotId {
    const FIELDS: &'static [Field] = &[
        Field::new("EndOffset", Kind::Fixed(8), 12, 18),
        Field::new("Epoch", Kind::Fixed(4), 12, 18),
    ];
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

/// `AbortedTransaction` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AbortedTransaction {
    /// `ProducerId`, versions 4+.
    pub producer_id: i64,
    /// `FirstOffset`, versions 4+.
    pub first_offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AbortedTransaction {
    const FIELDS: &'static [Field] = &[
        Field::new("ProducerId", Kind::Fixed(8), 4, 18),
        Field::new("FirstOffset", Kind::Fixed(8), 4, 18),
    ];
}

impl FromWire for AbortedTransaction {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.producer_id = r.i64()?;
        m.first_offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AbortedTransaction {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.producer_id);
        w.i64(self.first_offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AbortedTransaction.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AbortedTransaction {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.producer_id = Random::random(g, v, f);
        m.first_offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `NodeEndpoint` of `FetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NodeEndpoint {
    /// `NodeId`, versions 16+.
    pub node_id: i32,
    /// `Host`, versions 16+.
    pub host: String,
    /// `Port`, versions 16+.
    pub port: i32,
    /// `Rack`, versions 16+, null in versions 16+.
    pub rack: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for NodeEndpoint {
    const FIELDS: &'static [Field] = &[
        Field::new("NodeId", Kind::Fixed(4), 16, 18),
        Field::new("Host", Kind::Text, 16, 18),
        Field::new("Port", Kind::Fixed(4), 16, 18),
        Field::new("Rack", Kind::Text, 16, 18).nullable(16, 18),
    ];
}

impl FromWire for NodeEndpoint {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.node_id = r.i32()?;
        m.host = r.string(f)?;
        m.port = r.i32()?;
        m.rack = r.nullable_string(f, true)?;
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
        w.i32(self.port);
        w.nullable_string(self.rack.as_deref(), f, true, "Rack")?;
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
        m.rack = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for FetchResponse {
    const NAME: &'static str = "FetchResponse";
    const VERSIONS: VersionRange = VersionRange::new(4, 18);
    const FLEXIBLE_FROM: i16 = 12;
}

impl Response for FetchResponse {
    const KEY: ApiKey = ApiKey::Fetch;
}
