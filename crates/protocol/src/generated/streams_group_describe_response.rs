//! `StreamsGroupDescribeResponse`, versions 0-1, API key 89.

use super::prelude::*;

/// `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StreamsGroupDescribeResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Groups`, versions 0+.
    pub groups: Vec<DescribedGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for StreamsGroupDescribeResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("Groups", Kind::Array(&Kind::Struct(DescribedGroup::FIELDS)), 0, 1),
    ];
}

impl FromWire for StreamsGroupDescribeResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for StreamsGroupDescribeResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for StreamsGroupDescribeResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribedGroup` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `GroupState`, versions 0+.
    pub group_state: String,
    /// `GroupEpoch`, versions 0+.
    pub group_epoch: i32,
    /// `AssignmentEpoch`, versions 0+.
    pub assignment_epoch: i32,
    /// `Topology`, versions 0+, null in versions 0+.
    pub topology: Option<Topology>,
    /// `Members`, versions 0+.
    pub members: Vec<Member>,
    /// `AuthorizedOperations`, versions 0+.
    pub authorized_operations: i32,
    /// `TopologyDescription`, versions 1+, null in versions 1+.
    pub topology_description: Option<TopologyDescription>,
    /// `TopologyDescriptionStatus`, versions 1+.
    pub topology_description_status: i8,
    /// `AssignorName`, versions 1+, null in versions 1+.
    pub assignor_name: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: None,
            group_id: Default::default(),
            group_state: Default::default(),
            group_epoch: Default::default(),
            assignment_epoch: Default::default(),
            topology: None,
            members: Default::default(),
            authorized_operations: -2147483648,
            topology_description: None,
            topology_description_status: Default::default(),
            assignor_name: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribedGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
        Field::new("GroupId", Kind::Text, 0, 1).of(Entity::GroupId),
        Field::new("GroupState", Kind::Text, 0, 1),
        Field::new("GroupEpoch", Kind::Fixed(4), 0, 1),
        Field::new("AssignmentEpoch", Kind::Fixed(4), 0, 1),
        Field::new("Topology", Kind::Struct(Topology::FIELDS), 0, 1).nullable(0, 1),
        Field::new("Members", Kind::Array(&Kind::Struct(Member::FIELDS)), 0, 1),
        Field::new("AuthorizedOperations", Kind::Fixed(4), 0, 1),
        Field::new("TopologyDescription", Kind::Struct(TopologyDescription::FIELDS), 1, 1)
            .nullable(1, 1),
        Field::new("TopologyDescriptionStatus", Kind::Fixed(1), 1, 1),
        Field::new("AssignorName", Kind::Text, 1, 1).nullable(1, 1),
    ];
}

impl FromWire for DescribedGroup {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.group_id = r.string(f)?;
        m.group_state = r.string(f)?;
        m.group_epoch = r.i32()?;
        m.assignment_epoch = r.i32()?;
        m.topology = r.nullable_struct(v, f, true)?;
        m.members = r.array(v, f)?;
        m.authorized_operations = r.i32()?;
        if v >= 1 {
            m.topology_description = r.nullable_struct(v, f, true)?;
        }
        if v >= 1 {
            m.topology_description_status = r.i8()?;
        }
        if v >= 1 {
            m.assignor_name = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribedGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.string(&self.group_id, f)?;
        w.string(&self.group_state, f)?;
        w.i32(self.group_epoch);
        w.i32(self.assignment_epoch);
        w.nullable_struct(self.topology.as_ref(), v, f, true, "Topology")?;
        w.array(&self.members, v, f)?;
        w.i32(self.authorized_operations);
        if v >= 1 {
            w.nullable_struct(
                self.topology_description.as_ref(),
                v,
                f,
                true,
                "TopologyDescription",
            )?;
        } else if self.topology_description.is_some() {
            return Err(EncodeError::absent("DescribedGroup.TopologyDescription", v));
        }
        if v >= 1 {
            w.i8(self.topology_description_status);
        } else if self.topology_description_status != 0 {
            return Err(EncodeError::absent("DescribedGroup.TopologyDescriptionStatus", v));
        }
        if v >= 1 {
            w.nullable_string(self.assignor_name.as_deref(), f, true, "AssignorName")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribedGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.group_id = Random::random(g, v, f);
        m.group_state = Random::random(g, v, f);
        m.group_epoch = Random::random(g, v, f);
        m.assignment_epoch = Random::random(g, v, f);
        m.topology = g.nullable(true, v, f);
        m.members = Random::random(g, v, f);
        m.authorized_operations = Random::random(g, v, f);
        if v >= 1 {
            m.topology_description = g.nullable(true, v, f);
        }
        if v >= 1 {
            m.topology_description_status = Random::random(g, v, f);
        }
        if v >= 1 {
            m.assignor_name = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Topology` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Topology {
    /// `Epoch`, versions 0+.
    pub epoch: i32,
    /// `Subtopologies`, versions 0+, null in versions 0+.
    pub subtopologies: Option<Vec<Subtopology>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Topology {
    const FIELDS: &'static [Field] = &[
        Field::new("Epoch", Kind::Fixed(4), 0, 1),
        Field::new("Subtopologies", Kind::Array(&Kind::Struct(Subtopology::FIELDS)), 0, 1)
            .nullable(0, 1),
    ];
}

impl FromWire for Topology {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.epoch = r.i32()?;
        m.subtopologies = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Topology {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.epoch);
        w.nullable_array(self.subtopologies.as_deref(), v, f, true, "Subtopologies")?;
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
        m.subtopologies = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Subtopology` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Subtopology {
    /// `SubtopologyId`, versions 0+.
    pub subtopology_id: String,
    /// `SourceTopics`, versions 0+.
    pub source_topics: Vec<String>,
    /// `RepartitionSinkTopics`, versions 0+.
    pub repartition_sink_topics: Vec<String>,
    /// `StateChangelogTopics`, versions 0+.
    pub state_changelog_topics: Vec<TopicInfo>,
    /// `RepartitionSourceTopics`, versions 0+.
    pub repartition_source_topics: Vec<TopicInfo>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Subtopology {
    const FIELDS: &'static [Field] = &[
        Field::new("SubtopologyId", Kind::Text, 0, 1),
        Field::new("SourceTopics", Kind::Array(&Kind::Text), 0, 1).of(Entity::TopicName),
        Field::new("RepartitionSinkTopics", Kind::Array(&Kind::Text), 0, 1).of(Entity::TopicName),
        Field::new("StateChangelogTopics", Kind::Array(&Kind::Struct(TopicInfo::FIELDS)), 0, 1),
        Field::new("RepartitionSourceTopics", Kind::Array(&Kind::Struct(TopicInfo::FIELDS)), 0, 1),
    ];
}

impl FromWire for Subtopology {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopology_id = r.string(f)?;
        m.source_topics = r.array(v, f)?;
        m.repartition_sink_topics = r.array(v, f)?;
        m.state_changelog_topics = r.array(v, f)?;
        m.repartition_source_topics = r.array(v, f)?;
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
        w.array(&self.repartition_sink_topics, v, f)?;
        w.array(&self.state_changelog_topics, v, f)?;
        w.array(&self.repartition_source_topics, v, f)?;
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
        m.repartition_sink_topics = Random::random(g, v, f);
        m.state_changelog_topics = Random::random(g, v, f);
        m.repartition_source_topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicInfo` of `StreamsGroupDescribeResponse`.
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

/// `KeyValue` of `StreamsGroupDescribeResponse`.
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

/// `Member` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Member {
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `MemberEpoch`, versions 0+.
    pub member_epoch: i32,
    /// `InstanceId`, versions 0+, null in versions 0+.
    pub instance_id: Option<String>,
    /// `RackId`, versions 0+, null in versions 0+.
    pub rack_id: Option<String>,
    /// `ClientId`, versions 0+.
    pub client_id: String,
    /// `ClientHost`, versions 0+.
    pub client_host: String,
    /// `TopologyEpoch`, versions 0+.
    pub topology_epoch: i32,
    /// `ProcessId`, versions 0+.
    pub process_id: String,
    /// `UserEndpoint`, versions 0+, null in versions 0+.
    pub user_endpoint: Option<Endpoint>,
    /// `ClientTags`, versions 0+.
    pub client_tags: Vec<KeyValue>,
    /// `TaskOffsets`, versions 0+.
    pub task_offsets: Vec<TaskOffset>,
    /// `TaskEndOffsets`, versions 0+.
    pub task_end_offsets: Vec<TaskOffset>,
    /// `Assignment`, versions 0+.
    pub assignment: Assignment,
    /// `TargetAssignment`, versions 0+.
    pub target_assignment: Assignment,
    /// `IsClassic`, versions 0+.
    pub is_classic: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Member {
    const FIELDS: &'static [Field] = &[
        Field::new("MemberId", Kind::Text, 0, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 0, 1),
        Field::new("InstanceId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("RackId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("ClientId", Kind::Text, 0, 1),
        Field::new("ClientHost", Kind::Text, 0, 1),
        Field::new("TopologyEpoch", Kind::Fixed(4), 0, 1),
        Field::new("ProcessId", Kind::Text, 0, 1),
        Field::new("UserEndpoint", Kind::Struct(Endpoint::FIELDS), 0, 1).nullable(0, 1),
        Field::new("ClientTags", Kind::Array(&Kind::Struct(KeyValue::FIELDS)), 0, 1),
        Field::new("TaskOffsets", Kind::Array(&Kind::Struct(TaskOffset::FIELDS)), 0, 1),
        Field::new("TaskEndOffsets", Kind::Array(&Kind::Struct(TaskOffset::FIELDS)), 0, 1),
        Field::new("Assignment", Kind::Struct(Assignment::FIELDS), 0, 1),
        Field::new("TargetAssignment", Kind::Struct(Assignment::FIELDS), 0, 1),
        Field::new("IsClassic", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for Member {
    const SIZE_MIN: usize = 28;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        m.member_epoch = r.i32()?;
        m.instance_id = r.nullable_string(f, true)?;
        m.rack_id = r.nullable_string(f, true)?;
        m.client_id = r.string(f)?;
        m.client_host = r.string(f)?;
        m.topology_epoch = r.i32()?;
        m.process_id = r.string(f)?;
        m.user_endpoint = r.nullable_struct(v, f, true)?;
        m.client_tags = r.array(v, f)?;
        m.task_offsets = r.array(v, f)?;
        m.task_end_offsets = r.array(v, f)?;
        m.assignment = Assignment::read(r, v, f)?;
        m.target_assignment = Assignment::read(r, v, f)?;
        m.is_classic = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Member {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        w.i32(self.member_epoch);
        w.nullable_string(self.instance_id.as_deref(), f, true, "InstanceId")?;
        w.nullable_string(self.rack_id.as_deref(), f, true, "RackId")?;
        w.string(&self.client_id, f)?;
        w.string(&self.client_host, f)?;
        w.i32(self.topology_epoch);
        w.string(&self.process_id, f)?;
        w.nullable_struct(self.user_endpoint.as_ref(), v, f, true, "UserEndpoint")?;
        w.array(&self.client_tags, v, f)?;
        w.array(&self.task_offsets, v, f)?;
        w.array(&self.task_end_offsets, v, f)?;
        self.assignment.write(w, v, f)?;
        self.target_assignment.write(w, v, f)?;
        w.bool(self.is_classic);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Member {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.instance_id = g.nullable(true, v, f);
        m.rack_id = g.nullable(true, v, f);
        m.client_id = Random::random(g, v, f);
        m.client_host = Random::random(g, v, f);
        m.topology_epoch = Random::random(g, v, f);
        m.process_id = Random::random(g, v, f);
        m.user_endpoint = g.nullable(true, v, f);
        m.client_tags = Random::random(g, v, f);
        m.task_offsets = Random::random(g, v, f);
        m.task_end_offsets = Random::random(g, v, f);
        m.assignment = Random::random(g, v, f);
        m.target_assignment = Random::random(g, v, f);
        m.is_classic = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Endpoint` of `StreamsGroupDescribeResponse`.
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

/// `TaskOffset` of `StreamsGroupDescribeResponse`.
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

/// `Assignment` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Assignment {
    /// `ActiveTasks`, versions 0+.
    pub active_tasks: Vec<TaskIds>,
    /// `StandbyTasks`, versions 0+.
    pub standby_tasks: Vec<TaskIds>,
    /// `WarmupTasks`, versions 0+.
    pub warmup_tasks: Vec<TaskIds>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Assignment {
    const FIELDS: &'static [Field] = &[
        Field::new("ActiveTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1),
        Field::new("StandbyTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1),
        Field::new("WarmupTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1),
    ];
}

impl FromWire for Assignment {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.active_tasks = r.array(v, f)?;
        m.standby_tasks = r.array(v, f)?;
        m.warmup_tasks = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Assignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.active_tasks, v, f)?;
        w.array(&self.standby_tasks, v, f)?;
        w.array(&self.warmup_tasks, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Assignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.active_tasks = Random::random(g, v, f);
        m.standby_tasks = Random::random(g, v, f);
        m.warmup_tasks = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TaskIds` of `StreamsGroupDescribeResponse`.
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

/// `TopologyDescription` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescription {
    /// `Subtopologies`, versions 1+.
    pub subtopologies: Vec<TopologyDescriptionSubtopology>,
    /// `GlobalStores`, versions 1+.
    pub global_stores: Vec<TopologyDescriptionGlobalStore>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescription {
    const FIELDS: &'static [Field] = &[
        Field::new(
            "Subtopologies",
            Kind::Array(&Kind::Struct(TopologyDescriptionSubtopology::FIELDS)),
            1,
            1,
        ),
        Field::new(
            "GlobalStores",
            Kind::Array(&Kind::Struct(TopologyDescriptionGlobalStore::FIELDS)),
            1,
            1,
        ),
    ];
}

impl FromWire for TopologyDescription {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopologies = r.array(v, f)?;
        m.global_stores = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescription {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.subtopologies, v, f)?;
        w.array(&self.global_stores, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescription {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopologies = Random::random(g, v, f);
        m.global_stores = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescriptionSubtopology` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescriptionSubtopology {
    /// `SubtopologyId`, versions 1+.
    pub subtopology_id: String,
    /// `Nodes`, versions 1+.
    pub nodes: Vec<TopologyDescriptionNode>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescriptionSubtopology {
    const FIELDS: &'static [Field] = &[
        Field::new("SubtopologyId", Kind::Text, 1, 1),
        Field::new("Nodes", Kind::Array(&Kind::Struct(TopologyDescriptionNode::FIELDS)), 1, 1),
    ];
}

impl FromWire for TopologyDescriptionSubtopology {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopology_id = r.string(f)?;
        m.nodes = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescriptionSubtopology {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.subtopology_id, f)?;
        w.array(&self.nodes, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescriptionSubtopology {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopology_id = Random::random(g, v, f);
        m.nodes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescriptionNode` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescriptionNode {
    /// `Name`, versions 1+.
    pub name: String,
    /// `NodeType`, versions 1+.
    pub node_type: i8,
    /// `SourceTopics`, versions 1+.
    pub source_topics: Vec<String>,
    /// `SinkTopic`, versions 1+, null in versions 1+.
    pub sink_topic: Option<String>,
    /// `Stores`, versions 1+.
    pub stores: Vec<String>,
    /// `Successors`, versions 1+.
    pub successors: Vec<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescriptionNode {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 1),
        Field::new("NodeType", Kind::Fixed(1), 1, 1),
        Field::new("SourceTopics", Kind::Array(&Kind::Text), 1, 1).of(Entity::TopicName),
        Field::new("SinkTopic", Kind::Text, 1, 1).nullable(1, 1).of(Entity::TopicName),
        Field::new("Stores", Kind::Array(&Kind::Text), 1, 1),
        Field::new("Successors", Kind::Array(&Kind::Text), 1, 1),
    ];
}

impl FromWire for TopologyDescriptionNode {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.node_type = r.i8()?;
        m.source_topics = r.array(v, f)?;
        m.sink_topic = r.nullable_string(f, true)?;
        m.stores = r.array(v, f)?;
        m.successors = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescriptionNode {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i8(self.node_type);
        w.array(&self.source_topics, v, f)?;
        w.nullable_string(self.sink_topic.as_deref(), f, true, "SinkTopic")?;
        w.array(&self.stores, v, f)?;
        w.array(&self.successors, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescriptionNode {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.node_type = Random::random(g, v, f);
        m.source_topics = Random::random(g, v, f);
        m.sink_topic = g.nullable(true, v, f);
        m.stores = Random::random(g, v, f);
        m.successors = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescriptionGlobalStore` of `StreamsGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescriptionGlobalStore {
    /// `Source`, versions 1+.
    pub source: TopologyDescriptionNode,
    /// `Processor`, versions 1+.
    pub processor: TopologyDescriptionNode,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescriptionGlobalStore {
    const FIELDS: &'static [Field] = &[
        Field::new("Source", Kind::Struct(TopologyDescriptionNode::FIELDS), 1, 1),
        Field::new("Processor", Kind::Struct(TopologyDescriptionNode::FIELDS), 1, 1),
    ];
}

impl FromWire for TopologyDescriptionGlobalStore {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.source = TopologyDescriptionNode::read(r, v, f)?;
        m.processor = TopologyDescriptionNode::read(r, v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescriptionGlobalStore {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        self.source.write(w, v, f)?;
        self.processor.write(w, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescriptionGlobalStore {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.source = Random::random(g, v, f);
        m.processor = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for StreamsGroupDescribeResponse {
    const NAME: &'static str = "StreamsGroupDescribeResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for StreamsGroupDescribeResponse {
    const KEY: ApiKey = ApiKey::StreamsGroupDescribe;
}
