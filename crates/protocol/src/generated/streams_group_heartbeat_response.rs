//! `StreamsGroupHeartbeatResponse`, versions 0-1, API key 88.

use super::prelude::*;

/// `StreamsGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamsGroupHeartbeatResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `MemberEpoch`, versions 0+.
    pub member_epoch: i32,
    /// `HeartbeatIntervalMs`, versions 0+.
    pub heartbeat_interval_ms: i32,
    /// `AcceptableRecoveryLagLegacy`, version 0.
    pub acceptable_recovery_lag_legacy: i32,
    /// `TaskOffsetIntervalMs`, versions 0+.
    pub task_offset_interval_ms: i32,
    /// `AcceptableRecoveryLag`, versions 1+.
    pub acceptable_recovery_lag: i64,
    /// `Status`, versions 0+, null in versions 0+.
    pub status: Option<Vec<Status>>,
    /// `ActiveTasks`, versions 0+, null in versions 0+.
    pub active_tasks: Option<Vec<TaskIds>>,
    /// `StandbyTasks`, versions 0+, null in versions 0+.
    pub standby_tasks: Option<Vec<TaskIds>>,
    /// `WarmupTasks`, versions 0+, null in versions 0+.
    pub warmup_tasks: Option<Vec<TaskIds>>,
    /// `TopologyDescriptionRequired`, versions 1+.
    pub topology_description_required: bool,
    /// `EndpointInformationEpoch`, versions 0+.
    pub endpoint_information_epoch: i32,
    /// `PartitionsByUserEndpoint`, versions 0+, null in versions 0+.
    pub partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for StreamsGroupHeartbeatResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: None,
            member_id: Default::default(),
            member_epoch: Default::default(),
            heartbeat_interval_ms: Default::default(),
            acceptable_recovery_lag_legacy: Default::default(),
            task_offset_interval_ms: Default::default(),
            acceptable_recovery_lag: -1,
            status: Some(Default::default()),
            active_tasks: None,
            standby_tasks: None,
            warmup_tasks: None,
            topology_description_required: Default::default(),
            endpoint_information_epoch: Default::default(),
            partitions_by_user_endpoint: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for StreamsGroupHeartbeatResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
        Field::new("MemberId", Kind::Text, 0, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 0, 1),
        Field::new("HeartbeatIntervalMs", Kind::Fixed(4), 0, 1),
        Field::new("AcceptableRecoveryLagLegacy", Kind::Fixed(4), 0, 0),
        Field::new("TaskOffsetIntervalMs", Kind::Fixed(4), 0, 1),
        Field::new("AcceptableRecoveryLag", Kind::Fixed(8), 1, 1),
        Field::new("Status", Kind::Array(&Kind::Struct(Status::FIELDS)), 0, 1).nullable(0, 1),
        Field::new("ActiveTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1).nullable(0, 1),
        Field::new("StandbyTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1)
            .nullable(0, 1),
        Field::new("WarmupTasks", Kind::Array(&Kind::Struct(TaskIds::FIELDS)), 0, 1).nullable(0, 1),
        Field::new("TopologyDescriptionRequired", Kind::Fixed(1), 1, 1),
        Field::new("EndpointInformationEpoch", Kind::Fixed(4), 0, 1),
        Field::new(
            "PartitionsByUserEndpoint",
            Kind::Array(&Kind::Struct(EndpointToPartitions::FIELDS)),
            0,
            1,
        )
        .nullable(0, 1),
    ];
}

impl FromWire for StreamsGroupHeartbeatResponse {
    const SIZE_MIN: usize = 34;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.member_id = r.string(f)?;
        m.member_epoch = r.i32()?;
        m.heartbeat_interval_ms = r.i32()?;
        if v <= 0 {
            m.acceptable_recovery_lag_legacy = r.i32()?;
        }
        m.task_offset_interval_ms = r.i32()?;
        if v >= 1 {
            m.acceptable_recovery_lag = r.i64()?;
        }
        m.status = r.nullable_array(v, f, true)?;
        m.active_tasks = r.nullable_array(v, f, true)?;
        m.standby_tasks = r.nullable_array(v, f, true)?;
        m.warmup_tasks = r.nullable_array(v, f, true)?;
        if v >= 1 {
            m.topology_description_required = r.bool()?;
        }
        m.endpoint_information_epoch = r.i32()?;
        m.partitions_by_user_endpoint = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for StreamsGroupHeartbeatResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.string(&self.member_id, f)?;
        w.i32(self.member_epoch);
        w.i32(self.heartbeat_interval_ms);
        if v <= 0 {
            w.i32(self.acceptable_recovery_lag_legacy);
        } else if self.acceptable_recovery_lag_legacy != 0 {
            return Err(EncodeError::absent(
                "StreamsGroupHeartbeatResponse.AcceptableRecoveryLagLegacy",
                v,
            ));
        }
        w.i32(self.task_offset_interval_ms);
        if v >= 1 {
            w.i64(self.acceptable_recovery_lag);
        }
        w.nullable_array(self.status.as_deref(), v, f, true, "Status")?;
        w.nullable_array(self.active_tasks.as_deref(), v, f, true, "ActiveTasks")?;
        w.nullable_array(self.standby_tasks.as_deref(), v, f, true, "StandbyTasks")?;
        w.nullable_array(self.warmup_tasks.as_deref(), v, f, true, "WarmupTasks")?;
        if v >= 1 {
            w.bool(self.topology_description_required);
        } else if self.topology_description_required {
            return Err(EncodeError::absent(
                "StreamsGroupHeartbeatResponse.TopologyDescriptionRequired",
                v,
            ));
        }
        w.i32(self.endpoint_information_epoch);
        w.nullable_array(
            self.partitions_by_user_endpoint.as_deref(),
            v,
            f,
            true,
            "PartitionsByUserEndpoint",
        )?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for StreamsGroupHeartbeatResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.member_id = Random::random(g, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.heartbeat_interval_ms = Random::random(g, v, f);
        if v <= 0 {
            m.acceptable_recovery_lag_legacy = Random::random(g, v, f);
        }
        m.task_offset_interval_ms = Random::random(g, v, f);
        if v >= 1 {
            m.acceptable_recovery_lag = Random::random(g, v, f);
        }
        m.status = g.nullable(true, v, f);
        m.active_tasks = g.nullable(true, v, f);
        m.standby_tasks = g.nullable(true, v, f);
        m.warmup_tasks = g.nullable(true, v, f);
        if v >= 1 {
            m.topology_description_required = Random::random(g, v, f);
        }
        m.endpoint_information_epoch = Random::random(g, v, f);
        m.partitions_by_user_endpoint = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Status` of `StreamsGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Status {
    /// `StatusCode`, versions 0+.
    pub status_code: i8,
    /// `StatusDetail`, versions 0+.
    pub status_detail: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Status {
    const FIELDS: &'static [Field] = &[
        Field::new("StatusCode", Kind::Fixed(1), 0, 1),
        Field::new("StatusDetail", Kind::Text, 0, 1).of(Entity::Explanation),
    ];
}

impl FromWire for Status {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.status_code = r.i8()?;
        m.status_detail = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Status {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.status_code);
        w.string(&self.status_detail, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Status {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.status_code = Random::random(g, v, f);
        m.status_detail = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TaskIds` of `StreamsGroupHeartbeatResponse`.
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

/// `EndpointToPartitions` of `StreamsGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EndpointToPartitions {
    /// `UserEndpoint`, versions 0+.
    pub user_endpoint: Endpoint,
    /// `ActivePartitions`, versions 0+.
    pub active_partitions: Vec<TopicPartition>,
    /// `StandbyPartitions`, versions 0+.
    pub standby_partitions: Vec<TopicPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for EndpointToPartitions {
    const FIELDS: &'static [Field] = &[
        Field::new("UserEndpoint", Kind::Struct(Endpoint::FIELDS), 0, 1),
        Field::new("ActivePartitions", Kind::Array(&Kind::Struct(TopicPartition::FIELDS)), 0, 1),
        Field::new("StandbyPartitions", Kind::Array(&Kind::Struct(TopicPartition::FIELDS)), 0, 1),
    ];
}

impl FromWire for EndpointToPartitions {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.user_endpoint = Endpoint::read(r, v, f)?;
        m.active_partitions = r.array(v, f)?;
        m.standby_partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EndpointToPartitions {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        self.user_endpoint.write(w, v, f)?;
        w.array(&self.active_partitions, v, f)?;
        w.array(&self.standby_partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EndpointToPartitions {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.user_endpoint = Random::random(g, v, f);
        m.active_partitions = Random::random(g, v, f);
        m.standby_partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Endpoint` of `StreamsGroupHeartbeatResponse`.
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

/// `TopicPartition` of `StreamsGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartition {
    /// `Topic`, versions 0+.
    pub topic: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 1),
    ];
}

impl FromWire for TopicPartition {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for StreamsGroupHeartbeatResponse {
    const NAME: &'static str = "StreamsGroupHeartbeatResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for StreamsGroupHeartbeatResponse {
    const KEY: ApiKey = ApiKey::StreamsGroupHeartbeat;
}
