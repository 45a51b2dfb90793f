//! `ShareFetchRequest`, versions 1-2, API key 78.

use super::prelude::*;

/// `ShareFetchRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareFetchRequest {
    /// `GroupId`, versions 1+, null in versions 1+.
    pub group_id: Option<String>,
    /// `MemberId`, versions 1+, null in versions 1+.
    pub member_id: Option<String>,
    /// `ShareSessionEpoch`, versions 1+.
    pub share_session_epoch: i32,
    /// `MaxWaitMs`, versions 1+.
    pub max_wait_ms: i32,
    /// `MinBytes`, versions 1+.
    pub min_bytes: i32,
    /// `MaxBytes`, versions 1+.
    pub max_bytes: i32,
    /// `MaxRecords`, versions 1+.
    pub max_records: i32,
    /// `BatchSize`, versions 1+.
    pub batch_size: i32,
    /// `ShareAcquireMode`, versions 2+.
    pub share_acquire_mode: i8,
    /// `IsRenewAck`, versions 2+.
    pub is_renew_ack: bool,
    /// `Topics`, versions 1+.
    pub topics: Vec<FetchTopic>,
    /// `ForgottenTopicsData`, versions 1+.
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ShareFetchRequest {
    fn default() -> Self {
        Self {
            group_id: None,
            member_id: Some(Default::default()),
            share_session_epoch: Default::default(),
            max_wait_ms: Default::default(),
            min_bytes: Default::default(),
            max_bytes: 2147483647,
            max_records: Default::default(),
            batch_size: Default::default(),
            share_acquire_mode: Default::default(),
            is_renew_ack: Default::default(),
            topics: Default::default(),
            forgotten_topics_data: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ShareFetchRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 1, 2).nullable(1, 2).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 1, 2).nullable(1, 2),
        Field::new("ShareSessionEpoch", Kind::Fixed(4), 1, 2),
        Field::new("MaxWaitMs", Kind::Fixed(4), 1, 2),
        Field::new("MinBytes", Kind::Fixed(4), 1, 2),
        Field::new("MaxBytes", Kind::Fixed(4), 1, 2),
        Field::new("MaxRecords", Kind::Fixed(4), 1, 2),
        Field::new("BatchSize", Kind::Fixed(4), 1, 2),
        Field::new("ShareAcquireMode", Kind::Fixed(1), 2, 2),
        Field::new("IsRenewAck", Kind::Fixed(1), 2, 2),
        Field::new("Topics", Kind::Array(&Kind::Struct(FetchTopic::FIELDS)), 1, 2),
        Field::new("ForgottenTopicsData", Kind::Array(&Kind::Struct(ForgottenTopic::FIELDS)), 1, 2),
    ];
}

impl FromWire for ShareFetchRequest {
    const SIZE_MIN: usize = 29;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.nullable_string(f, true)?;
        m.member_id = r.nullable_string(f, true)?;
        m.share_session_epoch = r.i32()?;
        m.max_wait_ms = r.i32()?;
        m.min_bytes = r.i32()?;
        m.max_bytes = r.i32()?;
        m.max_records = r.i32()?;
        m.batch_size = r.i32()?;
        if v >= 2 {
            m.share_acquire_mode = r.i8()?;
        }
        if v >= 2 {
            m.is_renew_ack = r.bool()?;
        }
        m.topics = r.array(v, f)?;
        m.forgotten_topics_data = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareFetchRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.group_id.as_deref(), f, true, "GroupId")?;
        w.nullable_string(self.member_id.as_deref(), f, true, "MemberId")?;
        w.i32(self.share_session_epoch);
        w.i32(self.max_wait_ms);
        w.i32(self.min_bytes);
        w.i32(self.max_bytes);
        w.i32(self.max_records);
        w.i32(self.batch_size);
        if v >= 2 {
            w.i8(self.share_acquire_mode);
        }
        if v >= 2 {
            w.bool(self.is_renew_ack);
        } else if self.is_renew_ack {
            return Err(EncodeError::absent("ShareFetchRequest.IsRenewAck", v));
        }
        w.array(&self.topics, v, f)?;
        w.array(&self.forgotten_topics_data, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareFetchRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = g.nullable(true, v, f);
        m.member_id = g.nullable(true, v, f);
        m.share_session_epoch = Random::random(g, v, f);
        m.max_wait_ms = Random::random(g, v, f);
        m.min_bytes = Random::random(g, v, f);
        m.max_bytes = Random::random(g, v, f);
        m.max_records = Random::random(g, v, f);
        m.batch_size = Random::random(g, v, f);
        if v >= 2 {
            m.share_acquire_mode = Random::random(g, v, f);
        }
        if v >= 2 {
            m.is_renew_ack = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        m.forgotten_topics_data = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `FetchTopic` of `ShareFetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchTopic {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<FetchPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FetchTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 2).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(FetchPartition::FIELDS)), 1, 2),
    ];
}

impl FromWire for FetchTopic {
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

impl ToWire for FetchTopic {
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
impl Random for FetchTopic {
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

/// `FetchPartition` of `ShareFetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchPartition {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `AcknowledgementBatches`, versions 1+.
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FetchPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 2),
        Field::new(
            "AcknowledgementBatches",
            Kind::Array(&Kind::Struct(AcknowledgementBatch::FIELDS)),
            1,
            2,
        ),
    ];
}

impl FromWire for FetchPartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.acknowledgement_batches = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for FetchPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.array(&self.acknowledgement_batches, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FetchPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.acknowledgement_batches = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AcknowledgementBatch` of `ShareFetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AcknowledgementBatch {
    /// `FirstOffset`, versions 1+.
    pub first_offset: i64,
    /// `LastOffset`, versions 1+.
    pub last_offset: i64,
    /// `AcknowledgeTypes`, versions 1+.
    pub acknowledge_types: Vec<i8>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AcknowledgementBatch {
    const FIELDS: &'static [Field] = &[
        Field::new("FirstOffset", Kind::Fixed(8), 1, 2),
        Field::new("LastOffset", Kind::Fixed(8), 1, 2),
        Field::new("AcknowledgeTypes", Kind::Array(&Kind::Fixed(1)), 1, 2),
    ];
}

impl FromWire for AcknowledgementBatch {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.first_offset = r.i64()?;
        m.last_offset = r.i64()?;
        m.acknowledge_types = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AcknowledgementBatch {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.array(&self.acknowledge_types, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AcknowledgementBatch {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.first_offset = Random::random(g, v, f);
        m.last_offset = Random::random(g, v, f);
        m.acknowledge_types = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ForgottenTopic` of `ShareFetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ForgottenTopic {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ForgottenTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 2).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 1, 2),
    ];
}

impl FromWire for ForgottenTopic {
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

impl ToWire for ForgottenTopic {
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
impl Random for ForgottenTopic {
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

impl Message for ShareFetchRequest {
    const NAME: &'static str = "ShareFetchRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for ShareFetchRequest {
    const KEY: ApiKey = ApiKey::ShareFetch;
    type Response = super::ShareFetchResponse;
}
