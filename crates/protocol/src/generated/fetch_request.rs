//! `FetchRequest`, versions 4-18, API key 1.

use super::prelude::*;

/// `FetchRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchRequest {
    /// `ClusterId`, versions 12+, null in versions 12+, tag 0.
    pub cluster_id: Option<String>,
    /// `ReplicaId`, versions 4-14.
    pub replica_id: i32,
    /// `ReplicaState`, versions 15+, tag 1.
    pub replica_state: ReplicaState,
    /// `MaxWaitMs`, versions 4+.
    pub max_wait_ms: i32,
    /// `MinBytes`, versions 4+.
    pub min_bytes: i32,
    /// `MaxBytes`, versions 4+.
    pub max_bytes: i32,
    /// `IsolationLevel`, versions 4+.
    pub isolation_level: i8,
    /// `SessionId`, versions 7+.
    pub session_id: i32,
    /// `SessionEpoch`, versions 7+.
    pub session_epoch: i32,
    /// `Topics`, versions 4+.
    pub topics: Vec<FetchTopic>,
    /// `ForgottenTopicsData`, versions 7+.
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// `RackId`, versions 11+.
    pub rack_id: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for FetchRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: -1,
            replica_state: Default::default(),
            max_wait_ms: Default::default(),
            min_bytes: Default::default(),
            max_bytes: 2147483647,
            isolation_level: Default::default(),
            session_id: Default::default(),
            session_epoch: -1,
            topics: Default::default(),
            forgotten_topics_data: Default::default(),
            rack_id: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for FetchRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 12, 18).nullable(12, 18).tagged(0),
        Field::new("ReplicaId", Kind::Fixed(4), 4, 14),
        Field::new("ReplicaState", Kind::Struct(ReplicaState::FIELDS), 15, 18).tagged(1),
        Field::new("MaxWaitMs", Kind::Fixed(4), 4, 18),
        Field::new("MinBytes", Kind::Fixed(4), 4, 18),
        Field::new("MaxBytes", Kind::Fixed(4), 4, 18),
        Field::new("IsolationLevel", Kind::Fixed(1), 4, 18),
        Field::new("SessionId", Kind::Fixed(4), 7, 18),
        Field::new("SessionEpoch", Kind::Fixed(4), 7, 18),
        Field::new("Topics", Kind::Array(&Kind::Struct(FetchTopic::FIELDS)), 4, 18),
        Field::new(
            "ForgottenTopicsData",
            Kind::Array(&Kind::Struct(ForgottenTopic::FIELDS)),
            7,
            18,
        ),
        Field::new("RackId", Kind::Text, 11, 18),
    ];
}

impl FromWire for FetchRequest {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 14 {
            m.replica_id = r.i32()?;
        }
        m.max_wait_ms = r.i32()?;
        m.min_bytes = r.i32()?;
        m.max_bytes = r.i32()?;
        m.isolation_level = r.i8()?;
        if v >= 7 {
            m.session_id = r.i32()?;
        }
        if v >= 7 {
            m.session_epoch = r.i32()?;
        }
        m.topics = r.array(v, f)?;
        if v >= 7 {
            m.forgotten_topics_data = r.array(v, f)?;
        }
        if v >= 11 {
            m.rack_id = r.string(f)?;
        }
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.cluster_id = r.nullable_string(f, true)?,
                    1 if v >= 15 => m.replica_state = ReplicaState::read(r, v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for FetchRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 14 {
            w.i32(self.replica_id);
        } else if self.replica_id != -1 {
            return Err(EncodeError::absent("FetchRequest.ReplicaId", v));
        }
        if v < 15 && self.replica_state != ReplicaState::default() {
            return Err(EncodeError::absent("FetchRequest.ReplicaState", v));
        }
        w.i32(self.max_wait_ms);
        w.i32(self.min_bytes);
        w.i32(self.max_bytes);
        w.i8(self.isolation_level);
        if v >= 7 {
            w.i32(self.session_id);
        }
        if v >= 7 {
            w.i32(self.session_epoch);
        }
        w.array(&self.topics, v, f)?;
        if v >= 7 {
            w.array(&self.forgotten_topics_data, v, f)?;
        } else if !self.forgotten_topics_data.is_empty() {
            return Err(EncodeError::absent("FetchRequest.ForgottenTopicsData", v));
        }
        if v >= 11 {
            w.string(&self.rack_id, f)?;
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if self.cluster_id.is_some() {
                tags.field(0, |w| {
                    w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")
                })?;
            }
            if v >= 15 && self.replica_state != ReplicaState::default() {
                tags.field(1, |w| self.replica_state.write(w, v, f))?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("FetchRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 12 {
            m.cluster_id = g.nullable(true, v, f);
        }
        if v <= 14 {
            m.replica_id = Random::random(g, v, f);
        }
        if v >= 15 {
            m.replica_state = Random::random(g, v, f);
        }
        m.max_wait_ms = Random::random(g, v, f);
        m.min_bytes = Random::random(g, v, f);
        m.max_bytes = Random::random(g, v, f);
        m.isolation_level = Random::random(g, v, f);
        if v >= 7 {
            m.session_id = Random::random(g, v, f);
        }
        if v >= 7 {
            m.session_epoch = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if v >= 7 {
            m.forgotten_topics_data = Random::random(g, v, f);
        }
        if v >= 11 {
            m.rack_id = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReplicaState` of `FetchRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaState {
    /// `ReplicaId`, versions 15+.
    pub replica_id: i32,
    /// `ReplicaEpoch`, versions 15+.
    pub replica_epoch: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self { replica_id: -1, replica_epoch: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for ReplicaState {
    const FIELDS: &'static [Field] = &[
        Field::new("ReplicaId", Kind::Fixed(4), 15, 18),
        Field::new("ReplicaEpoch", Kind::Fixed(8), 15, 18),
    ];
}

impl FromWire for ReplicaState {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.replica_id = r.i32()?;
        m.replica_epoch = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReplicaState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.replica_id);
        w.i64(self.replica_epoch);
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
        m.replica_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `FetchTopic` of `FetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchTopic {
    /// `Topic`, versions 4-12.
    pub topic: String,
    /// `TopicId`, versions 13+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 4+.
    pub partitions: Vec<FetchPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FetchTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 4, 12).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 13, 18).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(FetchPartition::FIELDS)), 4, 18),
    ];
}

impl FromWire for FetchTopic {
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

impl ToWire for FetchTopic {
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
            return Err(EncodeError::absent("FetchTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchTopic {
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

/// `FetchPartition` of `FetchRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchPartition {
    /// `Partition`, versions 4+.
    pub partition: i32,
    /// `CurrentLeaderEpoch`, versions 9+.
    pub current_leader_epoch: i32,
    /// `FetchOffset`, versions 4+.
    pub fetch_offset: i64,
    /// `LastFetchedEpoch`, versions 12+.
    pub last_fetched_epoch: i32,
    /// `LogStartOffset`, versions 5+.
    pub log_start_offset: i64,
    /// `PartitionMaxBytes`, versions 4+.
    pub partition_max_bytes: i32,
    /// `ReplicaDirectoryId`, versions 17+, tag 0.
    pub replica_directory_id: Uuid,
    /// `HighWatermark`, versions 18+, tag 1.
    pub high_watermark: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for FetchPartition {
    fn default() -> Self {
        Self {
            partition: Default::default(),
            current_leader_epoch: -1,
            fetch_offset: Default::default(),
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: Default::default(),
            replica_directory_id: Default::default(),
            high_watermark: 9223372036854775807,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for FetchPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 4, 18),
        Field::new("CurrentLeaderEpoch", Kind::Fixed(4), 9, 18),
        Field::new("FetchOffset", Kind::Fixed(8), 4, 18),
        Field::new("LastFetchedEpoch", Kind::Fixed(4), 12, 18),
        Field::new("LogStartOffset", Kind::Fixed(8), 5, 18),
        Field::new("PartitionMaxBytes", Kind::Fixed(4), 4, 18),
        Field::new("ReplicaDirectoryId", Kind::Uuid, 17, 18).tagged(0),
        Field::new("HighWatermark", Kind::Fixed(8), 18, 18).tagged(1),
    ];
}

impl FromWire for FetchPartition {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        if v >= 9 {
            m.current_leader_epoch = r.i32()?;
        }
        m.fetch_offset = r.i64()?;
        if v >= 12 {
            m.last_fetched_epoch = r.i32()?;
        }
        if v >= 5 {
            m.log_start_offset = r.i64()?;
        }
        m.partition_max_bytes = r.i32()?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 17 => m.replica_directory_id = r.uuid()?,
                    1 if v >= 18 => m.high_watermark = r.i64()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for FetchPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition);
        if v >= 9 {
            w.i32(self.current_leader_epoch);
        }
        w.i64(self.fetch_offset);
        if v >= 12 {
            w.i32(self.last_fetched_epoch);
        } else if self.last_fetched_epoch != -1 {
            return Err(EncodeError::absent("FetchPartition.LastFetchedEpoch", v));
        }
        if v >= 5 {
            w.i64(self.log_start_offset);
        }
        w.i32(self.partition_max_bytes);
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 17 && self.replica_directory_id != Uuid::ZERO {
                tags.field(0, |w| {
                    w.uuid(self.replica_directory_id);
                    Ok(())
                })?;
            }
            if v >= 18 && self.high_watermark != 9223372036854775807 {
                tags.field(1, |w| {
                    w.i64(self.high_watermark);
                    Ok(())
                })?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("FetchPartition.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition = Random::random(g, v, f);
        if v >= 9 {
            m.current_leader_epoch = Random::random(g, v, f);
        }
        m.fetch_offset = Random::random(g, v, f);
        if v >= 12 {
            m.last_fetched_epoch = Random::random(g, v, f);
        }
        if v >= 5 {
            m.log_start_offset = Random::random(g, v, f);
        }
        m.partition_max_bytes = Random::random(g, v, f);
        if v >= 17 {
            m.replica_directory_id = Random::random(g, v, f);
        }
        if v >= 18 {
            m.high_watermark = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ForgottenTopic` of `FetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ForgottenTopic {
    /// `Topic`, versions 7-12.
    pub topic: String,
    /// `TopicId`, versions 13+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 7+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ForgottenTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 7, 12).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 13, 18).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 7, 18),
    ];
}

impl FromWire for ForgottenTopic {
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

impl ToWire for ForgottenTopic {
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
            return Err(EncodeError::absent("ForgottenTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ForgottenTopic {
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

impl Message for FetchRequest {
    const NAME: &'static str = "FetchRequest";
    const VERSIONS: VersionRange = VersionRange::new(4, 18);
    const FLEXIBLE_FROM: i16 = 12;
}

impl Request for FetchRequest {
    const KEY: ApiKey = ApiKey::Fetch;
    type Response = super::FetchResponse;
}
