//! `TxnOffsetCommitRequest`, versions 0-6, API key 28.

use super::prelude::*;

/// `TxnOffsetCommitRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnOffsetCommitRequest {
    /// `TransactionalId`, versions 0+.
    pub transactional_id: String,
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 0+.
    pub producer_epoch: i16,
    /// `GenerationIdOrMemberEpoch`, versions 3+.
    pub generation_id_or_member_epoch: i32,
    /// `MemberId`, versions 3+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 3+, null in versions 3+.
    pub group_instance_id: Option<String>,
    /// `Topics`, versions 0+.
    pub topics: Vec<TxnOffsetCommitRequestTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for TxnOffsetCommitRequest {
    fn default() -> Self {
        Self {
            transactional_id: Default::default(),
            group_id: Default::default(),
            producer_id: Default::default(),
            producer_epoch: Default::default(),
            generation_id_or_member_epoch: -1,
            member_id: Default::default(),
            group_instance_id: None,
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for TxnOffsetCommitRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 0, 6).of(Entity::TransactionalId),
        Field::new("GroupId", Kind::Text, 0, 6).of(Entity::GroupId),
        Field::new("ProducerId", Kind::Fixed(8), 0, 6),
        Field::new("ProducerEpoch", Kind::Fixed(2), 0, 6),
        Field::new("GenerationIdOrMemberEpoch", Kind::Fixed(4), 3, 6),
        Field::new("MemberId", Kind::Text, 3, 6),
        Field::new("GroupInstanceId", Kind::Text, 3, 6).nullable(3, 6),
        Field::new("Topics", Kind::Array(&Kind::Struct(TxnOffsetCommitRequestTopic::FIELDS)), 0, 6),
    ];
}

impl FromWire for TxnOffsetCommitRequest {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.string(f)?;
        m.group_id = r.string(f)?;
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        if v >= 3 {
            m.generation_id_or_member_epoch = r.i32()?;
        }
        if v >= 3 {
            m.member_id = r.string(f)?;
        }
        if v >= 3 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TxnOffsetCommitRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.transactional_id, f)?;
        w.string(&self.group_id, f)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        if v >= 3 {
            w.i32(self.generation_id_or_member_epoch);
        } else if self.generation_id_or_member_epoch != -1 {
            return Err(EncodeError::absent("TxnOffsetCommitRequest.GenerationIdOrMemberEpoch", v));
        }
        if v >= 3 {
            w.string(&self.member_id, f)?;
        } else if !self.member_id.is_empty() {
            return Err(EncodeError::absent("TxnOffsetCommitRequest.MemberId", v));
        }
        if v >= 3 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        } else if self.group_instance_id.is_some() {
            return Err(EncodeError::absent("TxnOffsetCommitRequest.GroupInstanceId", v));
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("TxnOffsetCommitRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TxnOffsetCommitRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = Random::random(g, v, f);
        m.group_id = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        if v >= 3 {
            m.generation_id_or_member_epoch = Random::random(g, v, f);
        }
        if v >= 3 {
            m.member_id = Random::random(g, v, f);
        }
        if v >= 3 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TxnOffsetCommitRequestTopic` of `TxnOffsetCommitRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TxnOffsetCommitRequestTopic {
    /// `Name`, versions 0-5.
    pub name: String,
    /// `TopicId`, versions 6+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<TxnOffsetCommitRequestPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TxnOffsetCommitRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 5).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 6, 6).of(Entity::TopicId),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(TxnOffsetCommitRequestPartition::FIELDS)),
            0,
            6,
        ),
    ];
}

impl FromWire for TxnOffsetCommitRequestTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 5 {
            m.name = r.string(f)?;
        }
        if v >= 6 {
            m.topic_id = r.uuid()?;
        }
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TxnOffsetCommitRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 5 {
            w.string(&self.name, f)?;
        }
        if v >= 6 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "TxnOffsetCommitRequestTopic.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TxnOffsetCommitRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 5 {
            m.name = Random::random(g, v, f);
        }
        if v >= 6 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TxnOffsetCommitRequestPartition` of `TxnOffsetCommitRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnOffsetCommitRequestPartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `CommittedOffset`, versions 0+.
    pub committed_offset: i64,
    /// `CommittedLeaderEpoch`, versions 2+.
    pub committed_leader_epoch: i32,
    /// `CommittedMetadata`, versions 0+, null in versions 0+.
    pub committed_metadata: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for TxnOffsetCommitRequestPartition {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            committed_offset: Default::default(),
            committed_leader_epoch: -1,
            committed_metadata: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for TxnOffsetCommitRequestPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 6),
        Field::new("CommittedOffset", Kind::Fixed(8), 0, 6),
        Field::new("CommittedLeaderEpoch", Kind::Fixed(4), 2, 6),
        Field::new("CommittedMetadata", Kind::Text, 0, 6).nullable(0, 6),
    ];
}

impl FromWire for TxnOffsetCommitRequestPartition {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.committed_offset = r.i64()?;
        if v >= 2 {
            m.committed_leader_epoch = r.i32()?;
        }
        m.committed_metadata = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TxnOffsetCommitRequestPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.committed_offset);
        if v >= 2 {
            w.i32(self.committed_leader_epoch);
        }
        w.nullable_string(self.committed_metadata.as_deref(), f, true, "CommittedMetadata")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "TxnOffsetCommitRequestPartition.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TxnOffsetCommitRequestPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.committed_offset = Random::random(g, v, f);
        if v >= 2 {
            m.committed_leader_epoch = Random::random(g, v, f);
        }
        m.committed_metadata = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for TxnOffsetCommitRequest {
    const NAME: &'static str = "TxnOffsetCommitRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 6);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for TxnOffsetCommitRequest {
    const KEY: ApiKey = ApiKey::TxnOffsetCommit;
    type Response = super::TxnOffsetCommitResponse;
}
