//! `DescribeTopicPartitionsResponse`, versions 0-0, API key 75.

use super::prelude::*;

/// `DescribeTopicPartitionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeTopicPartitionsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 0+.
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    /// `NextCursor`, versions 0+, null in versions 0+.
    pub next_cursor: Option<Cursor>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeTopicPartitionsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(DescribeTopicPartitionsResponseTopic::FIELDS)),
            0,
            0,
        ),
        Field::new("NextCursor", Kind::Struct(Cursor::FIELDS), 0, 0).nullable(0, 0),
    ];
}

impl FromWire for DescribeTopicPartitionsResponse {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.topics = r.array(v, f)?;
        m.next_cursor = r.nullable_struct(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeTopicPartitionsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.topics, v, f)?;
        w.nullable_struct(self.next_cursor.as_ref(), v, f, true, "NextCursor")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeTopicPartitionsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        m.next_cursor = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeTopicPartitionsResponseTopic` of `DescribeTopicPartitionsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsResponseTopic {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Name`, versions 0+, null in versions 0+.
    pub name: Option<String>,
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `IsInternal`, versions 0+.
    pub is_internal: bool,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    /// `TopicAuthorizedOperations`, versions 0+.
    pub topic_authorized_operations: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeTopicPartitionsResponseTopic {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            name: Some(Default::default()),
            topic_id: Default::default(),
            is_internal: Default::default(),
            partitions: Default::default(),
            topic_authorized_operations: -2147483648,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeTopicPartitionsResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("Name", Kind::Text, 0, 0).nullable(0, 0).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 0, 0).of(Entity::TopicId),
        Field::new("IsInternal", Kind::Fixed(1), 0, 0),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(DescribeTopicPartitionsResponsePartition::FIELDS)),
            0,
            0,
        ),
        Field::new("TopicAuthorizedOperations", Kind::Fixed(4), 0, 0),
    ];
}

impl FromWire for DescribeTopicPartitionsResponseTopic {
    const SIZE_MIN: usize = 26;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.name = r.nullable_string(f, true)?;
        m.topic_id = r.uuid()?;
        m.is_internal = r.bool()?;
        m.partitions = r.array(v, f)?;
        m.topic_authorized_operations = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeTopicPartitionsResponseTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.name.as_deref(), f, true, "Name")?;
        w.uuid(self.topic_id);
        w.bool(self.is_internal);
        w.array(&self.partitions, v, f)?;
        w.i32(self.topic_authorized_operations);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeTopicPartitionsResponseTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.name = g.nullable(true, v, f);
        m.topic_id = Random::random(g, v, f);
        m.is_internal = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        m.topic_authorized_operations = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeTopicPartitionsResponsePartition` of `DescribeTopicPartitionsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsResponsePartition {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `ReplicaNodes`, versions 0+.
    pub replica_nodes: Vec<i32>,
    /// `IsrNodes`, versions 0+.
    pub isr_nodes: Vec<i32>,
    /// `EligibleLeaderReplicas`, versions 0+, null in versions 0+.
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// `LastKnownElr`, versions 0+, null in versions 0+.
    pub last_known_elr: Option<Vec<i32>>,
    /// `OfflineReplicas`, versions 0+.
    pub offline_replicas: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeTopicPartitionsResponsePartition {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            partition_index: Default::default(),
            leader_id: Default::default(),
            leader_epoch: -1,
            replica_nodes: Default::default(),
            isr_nodes: Default::default(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            offline_replicas: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeTopicPartitionsResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("LeaderId", Kind::Fixed(4), 0, 0),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 0),
        Field::new("ReplicaNodes", Kind::Array(&Kind::Fixed(4)), 0, 0),
        Field::new("IsrNodes", Kind::Array(&Kind::Fixed(4)), 0, 0),
        Field::new("EligibleLeaderReplicas", Kind::Array(&Kind::Fixed(4)), 0, 0).nullable(0, 0),
        Field::new("LastKnownElr", Kind::Array(&Kind::Fixed(4)), 0, 0).nullable(0, 0),
        Field::new("OfflineReplicas", Kind::Array(&Kind::Fixed(4)), 0, 0),
    ];
}

impl FromWire for DescribeTopicPartitionsResponsePartition {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.partition_index = r.i32()?;
        m.leader_id = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.replica_nodes = r.array(v, f)?;
        m.isr_nodes = r.array(v, f)?;
        m.eligible_leader_replicas = r.nullable_array(v, f, true)?;
        m.last_known_elr = r.nullable_array(v, f, true)?;
        m.offline_replicas = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeTopicPartitionsResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.i32(self.partition_index);
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        w.array(&self.replica_nodes, v, f)?;
        w.array(&self.isr_nodes, v, f)?;
        w.nullable_array(
            self.eligible_leader_replicas.as_deref(),
            v,
            f,
            true,
            "EligibleLeaderReplicas",
        )?;
        w.nullable_array(self.last_known_elr.as_deref(), v, f, true, "LastKnownElr")?;
        w.array(&self.offline_replicas, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeTopicPartitionsResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.partition_index = Random::random(g, v, f);
        m.leader_id = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.replica_nodes = Random::random(g, v, f);
        m.isr_nodes = Random::random(g, v, f);
        m.eligible_leader_replicas = g.nullable(true, v, f);
        m.last_known_elr = g.nullable(true, v, f);
        m.offline_replicas = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Cursor` of `DescribeTopicPartitionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cursor {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Cursor {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
    ];
}

impl FromWire for Cursor {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_name = r.string(f)?;
        m.partition_index = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Cursor {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic_name, f)?;
        w.i32(self.partition_index);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Cursor {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_name = Random::random(g, v, f);
        m.partition_index = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeTopicPartitionsResponse {
    const NAME: &'static str = "DescribeTopicPartitionsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeTopicPartitionsResponse {
    const KEY: ApiKey = ApiKey::DescribeTopicPartitions;
}
