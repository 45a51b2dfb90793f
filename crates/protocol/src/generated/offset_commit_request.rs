//! `OffsetCommitRequest`, versions 2-10, API key 8.

use super::prelude::*;

/// `OffsetCommitRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitRequest {
    /// `GroupId`, versions 2+.
    pub group_id: String,
    /// `GenerationIdOrMemberEpoch`, versions 2+.
    pub generation_id_or_member_epoch: i32,
    /// `MemberId`, versions 2+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 7+, null in versions 7+.
    pub group_instance_id: Option<String>,
    /// `RetentionTimeMs`, versions 2-4.
    pub retention_time_ms: i64,
    /// `Topics`, versions 2+.
    pub topics: Vec<OffsetCommitRequestTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetCommitRequest {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            generation_id_or_member_epoch: -1,
            member_id: Default::default(),
            group_instance_id: None,
            retention_time_ms: -1,
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for OffsetCommitRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 2, 10).of(Entity::GroupId),
        Field::new("GenerationIdOrMemberEpoch", Kind::Fixed(4), 2, 10),
        Field::new("MemberId", Kind::Text, 2, 10),
        Field::new("GroupInstanceId", Kind::Text, 7, 10).nullable(7, 10),
        Field::new("RetentionTimeMs", Kind::Fixed(8), 2, 4),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetCommitRequestTopic::FIELDS)), 2, 10),
    ];
}

impl FromWire for OffsetCommitRequest {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.generation_id_or_member_epoch = r.i32()?;
        m.member_id = r.string(f)?;
        if v >= 7 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        if v <= 4 {
            m.retention_time_ms = r.i64()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetCommitRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.i32(self.generation_id_or_member_epoch);
        w.string(&self.member_id, f)?;
        if v >= 7 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        } else if self.group_instance_id.is_some() {
            return Err(EncodeError::absent("OffsetCommitRequest.GroupInstanceId", v));
        }
        if v <= 4 {
            w.i64(self.retention_time_ms);
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetCommitRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetCommitRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.generation_id_or_member_epoch = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        if v >= 7 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        if v <= 4 {
            m.retention_time_ms = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetCommitRequestTopic` of `OffsetCommitRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetCommitRequestTopic {
    /// `Name`, versions 2-9.
    pub name: String,
    /// `TopicId`, versions 10+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 2+.
    pub partitions: Vec<OffsetCommitRequestPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetCommitRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 2, 9).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 10, 10).of(Entity::TopicId),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetCommitRequestPartition::FIELDS)),
            2,
            10,
        ),
    ];
}

impl FromWire for OffsetCommitRequestTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 9 {
            m.name = r.string(f)?;
        }
        if v >= 10 {
            m.topic_id = r.uuid()?;
        }
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetCommitRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 9 {
            w.string(&self.name, f)?;
        }
        if v >= 10 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetCommitRequestTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetCommitRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 9 {
            m.name = Random::random(g, v, f);
        }
        if v >= 10 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetCommitRequestPartition` of `OffsetCommitRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitRequestPartition {
    /// `PartitionIndex`, versions 2+.
    pub partition_index: i32,
    /// `CommittedOffset`, versions 2+.
    pub committed_offset: i64,
    /// `CommittedLeaderEpoch`, versions 6+.
    pub committed_leader_epoch: i32,
    /// `CommittedMetadata`, versions 2+, null in versions 2+.
    pub committed_metadata: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetCommitRequestPartition {
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

impl Structure for OffsetCommitRequestPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 2, 10),
        Field::new("CommittedOffset", Kind::Fixed(8), 2, 10),
        Field::new("CommittedLeaderEpoch", Kind::Fixed(4), 6, 10),
        Field::new("CommittedMetadata", Kind::Text, 2, 10).nullable(2, 10),
    ];
}

impl FromWire for OffsetCommitRequestPartition {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.committed_offset = r.i64()?;
        if v >= 6 {
            m.committed_leader_epoch = r.i32()?;
        }
        m.committed_metadata = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetCommitRequestPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.committed_offset);
        if v >= 6 {
            w.i32(self.committed_leader_epoch);
        }
        w.nullable_string(self.committed_metadata.as_deref(), f, true, "CommittedMetadata")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "OffsetCommitRequestPartition.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetCommitRequestPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.committed_offset = Random::random(g, v, f);
        if v >= 6 {
            m.committed_leader_epoch = Random::random(g, v, f);
        }
        m.committed_metadata = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for OffsetCommitRequest {
    const NAME: &'static str = "OffsetCommitRequest";
    const VERSIONS: VersionRange = VersionRange::new(2, 10);
    const FLEXIBLE_FROM: i16 = 8;
}

impl Request for OffsetCommitRequest {
    const KEY: ApiKey = ApiKey::OffsetCommit;
    type Response = super::OffsetCommitResponse;
}
