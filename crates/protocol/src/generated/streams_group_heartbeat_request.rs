//! `StreamsGroupHeartbeatRequest`, versions 0-1, API key 88.

use super::prelude::*;

/// `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamsGroupHeartbeatRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `MemberEpoch`, versions 0+.
    pub member_epoch: i32,
    /// `EndpointInformationEpoch`, versions 0+.
    pub endpoint_information_epoch: i32,
    /// `InstanceId`, versions 0+, null in versions 0+.
    pub instance_id: Option<String>,
    /// `RackId`, versions 0+, null in versions 0+.
    pub rack_id: Option<String>,
    /// `RebalanceTimeoutMs`, versions 0+.
    pub rebalance_timeout_ms: i32,
    /// `Topology`, versions 0+, null in versions 0+.
    pub topology: Option<Topology>,
    /// `ActiveTasks`, versions 0+, null in versions 0+.
    pub active_tasks: Option<Vec<TaskIds>>,
    /// `StandbyTasks`, versions 0+, null in versions 0+.
    pub standby_tasks: Option<Vec<TaskIds>>,
    /// `WarmupTasks`, versions 0+, null in versions 0+.
    pub warmup_tasks: Option<Vec<TaskIds>>,
    /// `ProcessId`, versions 0+, null in versions 0+.
    pub process_id: Option<String>,
    /// `UserEndpoint`, versions 0+, null in versions 0+.
    pub user_endpoint: Option<Endpoint>,
    /// `ClientTags`, versions 0+, null in versions 0+.
    pub client_tags: Option<Vec<KeyValue>>,
    /// `TaskOffsets`, versions 0+, null in versions 0+.
    pub task_offsets: Option<Vec<TaskOffset>>,
    /// `TaskEndOffsets`, versions 0+, null in versions 0+.
    pub task_end_offsets: Option<Vec<TaskOffset>>,
    /// `ShutdownApplication`, versions 0+.
    pub shutdown_application: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for StreamsGroupHeartbeatRequest {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            member_id: Default::default(),
            member_epoch: Default::default(),
            endpoint_information_epoch: Default::default(),
            instance_id: None,
            rack_id: None,
            rebalance_timeout_ms: -1,
            topology: None,
            active_tasks: None,
            standby_tasks: None,
            warmup_tasks: None,
            process_id: None,
            user_endpoint: None,
            client_tags: None,
            task_offsets: None,
            task_end_offsets: None,
            shutdown_application: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for StreamsGroupHeartbeatRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 1).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 0, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 0, 1),
        Field::new("EndpointInformationEpoch", Kind::Fixed(4), 0, 1),
        Field::new("InstanceId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("RackId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("RebalanceTimeoutMs", Kind::Fixed(4), 0, 1),
        Field::new("Topology", Kind::Struct(Topology::FIELDS), 0, 1).nullable(0, 1),
        Field::new("ActiveTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1).nullable(0, 1),
        Field::new("StandbyTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1)
            .nullable(0, 1),
        Field::new("WarmupTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1).nullable(0, 1),
        Field::new("ProcessId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("UserEndpoint", Kind::Struct(Endpoint::FIELDS), 0, 1).nullable(0, 1),
        Field::new("ClientTags", Kind::Array(&Kind::Struct(KeyValue::FIELDS)), 0, 1).nullable(0, 1),
        Field::new("TaskOffsets", Kind::Array(&Kind::Struct(TaskOffset::FIELDS)), 0, 1)
            .nullable(0, 1),
        Field::new("TaskEndOffsets", Kind::Array(&Kind::Struct(TaskOffset::FIELDS)), 0, 1)
            .nullable(0, 1),
        Field::new("ShutdownApplication", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for StreamsGroupHeartbeatRequest {
    const SIZE_MIN: usize = 27;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.member_id = r.string(f)?;
        m.member_epoch = r.i32()?;
        m.endpoint_information_epoch = r.i32()?;
        m.instance_id = r.nullable_string(f, true)?;
        m.rack_id = r.nullable_string(f, true)?;
        m.rebalance_timeout_ms = r.i32()?;
        m.topology = r.nullable_struct(v, f, true)?;
        m.active_tasks = r.nullable_array(v, f, true)?;
        m.standby_tasks = r.nullable_array(v, f, true)?;
        m.warmup_tasks = r.nullable_array(v, f, true)?;
        m.process_id = r.nullable_string(f, true)?;
        m.user_endpoint = r.nullable_struct(v, f, true)?;
        m.client_tags = r.nullable_array(v, f, true)?;
        m.task_offsets = r.nullable_array(v, f, true)?;
        m.task_end_offsets = r.nullable_array(v, f, true)?;
        m.shutdown_application = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for StreamsGroupHeartbeatRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.string(&self.member_id, f)?;
        w.i32(self.member_epoch);
        w.i32(self.endpoint_information_epoch);
        w.nullable_string(self.instance_id.as_deref(), f, true, "InstanceId")?;
        w.nullable_string(self.rack_id.as_deref(), f, true, "RackId")?;
        w.i32(self.rebalance_timeout_ms);
        w.nullable_struct(self.topology.as_ref(), v, f, true, "Topology")?;
        w.nullable_array(self.active_tasks.as_deref(), v, f, true, "ActiveTasks")?;
        w.nullable_array(self.standby_tasks.as_deref(), v, f, true, "StandbyTasks")?;
        w.nullable_array(self.warmup_tasks.as_deref(), v, f, true, "WarmupTasks")?;
        w.nullable_string(self.process_id.as_deref(), f, true, "ProcessId")?;
        w.nullable_struct(self.user_endpoint.as_ref(), v, f, true, "UserEndpoint")?;
        w.nullable_array(self.client_tags.as_deref(), v, f, true, "ClientTags")?;
        w.nullable_array(self.task_offsets.as_deref(), v, f, true, "TaskOffsets")?;
        w.nullable_array(self.task_end_offsets.as_deref(), v, f, true, "TaskEndOffsets")?;
        w.bool(self.shutdown_application);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for StreamsGroupHeartbeatRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.endpoint_information_epoch = Random::random(g, v, f);
        m.instance_id = g.nullable(true, v, f);
        m.rack_id = g.nullable(true, v, f);
        m.rebalance_timeout_ms = Random::random(g, v, f);
        m.topology = g.nullable(true, v, f);
        m.active_tasks = g.nullable(true, v, f);
        m.standby_tasks = g.nullable(true, v, f);
        m.warmup_tasks = g.nullable(true, v, f);
        m.process_id = g.nullable(true, v, f);
        m.user_endpoint = g.nullable(true, v, f);
        m.client_tags = g.nullable(true, v, f);
        m.task_offsets = g.nullable(true, v, f);
        m.task_end_offsets = g.nullable(true, v, f);
        m.shutdown_application = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Topology` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Topology {
    /// `Epoch`, versions 0+.
    pub epoch: i32,
    /// `Subtopologies`, versions 0+.
    pub subtopologies: Vec<Subtopology>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Topology {
    const FIELDS: &'static [Field] = &[
        Field::new("Epoch", Kind::Fixed(4), 0, 1),
        Field::new("Subtopologies", Kind::Array(&Kind::Struct(Subtopology::FIELDS)), 0, 1),
    ];
}

impl FromWire for Topology {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.epoch = r.i32()?;
        m.subtopologies = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Topology {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.epoch);
        w.array(&self.subtopologies, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Topology {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.epoch = Random::random(g, v, f);
        m.subtopologies = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Subtopology` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Subtopology {
    /// `SubtopologyId`, versions 0+.
    pub subtopology_id: String,
    /// `SourceTopics`, versions 0+.
    pub source_topics: Vec<String>,
    /// `SourceTopicRegex`, versions 0+.
    pub source_topic_regex: Vec<String>,
    /// `StateChangelogTopics`, versions 0+.
    pub state_changelog_topics: Vec<TopicInfo>,
    /// `RepartitionSinkTopics`, versions 0+.
    pub repartition_sink_topics: Vec<String>,
    /// `RepartitionSourceTopics`, versions 0+.
    pub repartition_source_topics: Vec<TopicInfo>,
    /// `CopartitionGroups`, versions 0+.
    pub copartition_groups: Vec<CopartitionGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Subtopology {
    const FIELDS: &'static [Field] = &[
        Field::new("SubtopologyId", Kind::Text, 0, 1),
        Field::new("SourceTopics", Kind::Array(&Kind::Text), 0, 1).of(Entity::TopicName),
        Field::new("SourceTopicRegex", Kind::Array(&Kind::Text), 0, 1),
        Field::new("StateChangelogTopics", Kind::Array(&Kind::Struct(TopicInfo::FIELDS)), 0, 1),
        Field::new("RepartitionSinkTopics", Kind::Array(&Kind::Text), 0, 1).of(Entity::TopicName),
        Field::new("RepartitionSourceTopics", Kind::Array(&Kind::Struct(TopicInfo::FIELDS)), 0, 1),
        Field::new("CopartitionGroups", Kind::Array(&Kind::Struct(CopartitionGroup::FIELDS)), 0, 1),
    ];
}

impl FromWire for Subtopology {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopology_id = r.string(f)?;
        m.source_topics = r.array(v, f)?;
        m.source_topic_regex = r.array(v, f)?;
        m.state_changelog_topics = r.array(v, f)?;
        m.repartition_sink_topics = r.array(v, f)?;
        m.repartition_source_topics = r.array(v, f)?;
        m.copartition_groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Subtopology {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.subtopology_id, f)?;
        w.array(&self.source_topics, v, f)?;
        w.array(&self.source_topic_regex, v, f)?;
        w.array(&self.state_changelog_topics, v, f)?;
        w.array(&self.repartition_sink_topics, v, f)?;
        w.array(&self.repartition_source_topics, v, f)?;
        w.array(&self.copartition_groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Subtopology {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopology_id = Random::random(g, v, f);
        m.source_topics = Random::random(g, v, f);
        m.source_topic_regex = Random::random(g, v, f);
        m.state_changelog_topics = Random::random(g, v, f);
        m.repartition_sink_topics = Random::random(g, v, f);
        m.repartition_source_topics = Random::random(g, v, f);
        m.copartition_groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicInfo` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicInfo {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: i32,
    /// `ReplicationFactor`, versions 0+.
    pub replication_factor: i16,
    /// `TopicConfigs`, versions 0+.
    pub topic_configs: Vec<KeyValue>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicInfo {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Fixed(4), 0, 1),
        Field::new("ReplicationFactor", Kind::Fixed(2), 0, 1),
        Field::new("TopicConfigs", Kind::Array(&Kind::Struct(KeyValue::FIELDS)), 0, 1),
    ];
}

impl FromWire for TopicInfo {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.i32()?;
        m.replication_factor = r.i16()?;
        m.topic_configs = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicInfo {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i32(self.partitions);
        w.i16(self.replication_factor);
        w.array(&self.topic_configs, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicInfo {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        m.replication_factor = Random::random(g, v, f);
        m.topic_configs = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `KeyValue` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct KeyValue {
    /// `Key`, versions 0+.
    pub key: String,
    /// `Value`, versions 0+.
    pub value: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for KeyValue {
    const FIELDS: &'static [Field] =
        &[Field::new("Key", Kind::Text, 0, 1), Field::new("Value", Kind::Text, 0, 1)];
}

impl FromWire for KeyValue {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.key = r.string(f)?;
        m.value = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for KeyValue {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.key, f)?;
        w.string(&self.value, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for KeyValue {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.key = Random::random(g, v, f);
        m.value = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CopartitionGroup` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CopartitionGroup {
    /// `SourceTopics`, versions 0+.
    pub source_topics: Vec<i16>,
    /// `SourceTopicRegex`, versions 0+.
    pub source_topic_regex: Vec<i16>,
    /// `RepartitionSourceTopics`, versions 0+.
    pub repartition_source_topics: Vec<i16>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CopartitionGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("SourceTopics", Kind::Array(&Kind::Fixed(2)), 0, 1),
        Field::new("SourceTopicRegex", Kind::Array(&Kind::Fixed(2)), 0, 1),
        Field::new("RepartitionSourceTopics", Kind::Array(&Kind::Fixed(2)), 0, 1),
    ];
}

impl FromWire for CopartitionGroup {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.source_topics = r.array(v, f)?;
        m.source_topic_regex = r.array(v, f)?;
        m.repartition_source_topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CopartitionGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.source_topics, v, f)?;
        w.array(&self.source_topic_regex, v, f)?;
        w.array(&self.repartition_source_topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CopartitionGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.source_topics = Random::random(g, v, f);
        m.source_topic_regex = Random::random(g, v, f);
        m.repartition_source_topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TaskIds` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TaskIds {
    /// `SubtopologyId`, versions 0+.
    pub subtopology_id: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TaskIds {
    const FIELDS: &'static [Field] = &[
        Field::new("SubtopologyId", Kind::Text, 0, 1),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 1),
    ];
}

impl FromWire for TaskIds {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopology_id = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TaskIds {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.subtopology_id, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TaskIds {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopology_id = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Endpoint` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Endpoint {
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: u16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Endpoint {
    const FIELDS: &'static [Field] =
        &[Field::new("Host", Kind::Text, 0, 1), Field::new("Port", Kind::Fixed(2), 0, 1)];
}

impl FromWire for Endpoint {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.host = r.string(f)?;
        m.port = r.u16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Endpoint {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.host, f)?;
        w.u16(self.port);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Endpoint {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TaskOffset` of `StreamsGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TaskOffset {
    /// `SubtopologyId`, versions 0+.
    pub subtopology_id: String,
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `Offset`, versions 0+.
    pub offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TaskOffset {
    const FIELDS: &'static [Field] = &[
        Field::new("SubtopologyId", Kind::Text, 0, 1),
        Field::new("Partition", Kind::Fixed(4), 0, 1),
        Field::new("Offset", Kind::Fixed(8), 0, 1),
    ];
}

impl FromWire for TaskOffset {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopology_id = r.string(f)?;
        m.partition = r.i32()?;
        m.offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TaskOffset {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.subtopology_id, f)?;
        w.i32(self.partition);
        w.i64(self.offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TaskOffset {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopology_id = Random::random(g, v, f);
        m.partition = Random::random(g, v, f);
        m.offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for StreamsGroupHeartbeatRequest {
    const NAME: &'static str = "StreamsGroupHeartbeatRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for StreamsGroupHeartbeatRequest {
    const KEY: ApiKey = ApiKey::StreamsGroupHeartbeat;
    type Response = super::StreamsGroupHeartbeatResponse;
}
