//! `ShareFetchResponse`, versions 1-2, API key 78.

use super::prelude::*;

/// `ShareFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareFetchResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `AcquisitionLockTimeoutMs`, versions 1+.
    pub acquisition_lock_timeout_ms: i32,
    /// `Responses`, versions 1+.
    pub responses: Vec<ShareFetchableTopicResponse>,
    /// `NodeEndpoints`, versions 1+.
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareFetchResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
        Field::new("ErrorMessage", Kind::Text, 1, 2).nullable(1, 2).of(Entity::Explanation),
        Field::new("AcquisitionLockTimeoutMs", Kind::Fixed(4), 1, 2),
        Field::new(
            "Responses",
            Kind::Array(&Kind::Struct(ShareFetchableTopicResponse::FIELDS)),
            1,
            2,
        ),
        Field::new("NodeEndpoints", Kind::Array(&Kind::Struct(NodeEndpoint::FIELDS)), 1, 2),
    ];
}

impl FromWire for ShareFetchResponse {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.acquisition_lock_timeout_ms = r.i32()?;
        m.responses = r.array(v, f)?;
        m.node_endpoints = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareFetchResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.i32(self.acquisition_lock_timeout_ms);
        w.array(&self.responses, v, f)?;
        w.array(&self.node_endpoints, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareFetchResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.acquisition_lock_timeout_ms = Random::random(g, v, f);
        m.responses = Random::random(g, v, f);
        m.node_endpoints = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ShareFetchableTopicResponse` of `ShareFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareFetchableTopicResponse {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareFetchableTopicResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 2).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 1, 2),
    ];
}

impl FromWire for ShareFetchableTopicResponse {
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

impl ToWire for ShareFetchableTopicResponse {
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
impl Random for ShareFetchableTopicResponse {
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

/// `PartitionData` of `ShareFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `AcknowledgeErrorCode`, versions 1+.
    pub acknowledge_error_code: i16,
    /// `AcknowledgeErrorMessage`, versions 1+, null in versions 1+.
    pub acknowledge_error_message: Option<String>,
    /// `CurrentLeader`, versions 1+.
    pub current_leader: LeaderIdAndEpoch,
    /// `Records`, versions 1+.
    pub records: Bytes,
    /// `AcquiredRecords`, versions 1+.
    pub acquired_records: Vec<AcquiredRecords>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
        Field::new("ErrorMessage", Kind::Text, 1, 2).nullable(1, 2).of(Entity::Explanation),
        Field::new("AcknowledgeErrorCode", Kind::Fixed(2), 1, 2),
        Field::new("AcknowledgeErrorMessage", Kind::Text, 1, 2)
            .nullable(1, 2)
            .of(Entity::Explanation),
        Field::new("CurrentLeader", Kind::Struct(LeaderIdAndEpoch::FIELDS), 1, 2),
        Field::new("Records", Kind::Bytes, 1, 2),
        Field::new("AcquiredRecords", Kind::Array(&Kind::Struct(AcquiredRecords::FIELDS)), 1, 2),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.acknowledge_error_code = r.i16()?;
        m.acknowledge_error_message = r.nullable_string(f, true)?;
        m.current_leader = LeaderIdAndEpoch::read(r, v, f)?;
        m.records = r.bytes(f)?;
        m.acquired_records = r.array(v, f)?;
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
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.i16(self.acknowledge_error_code);
        w.nullable_string(
            self.acknowledge_error_message.as_deref(),
            f,
            true,
            "AcknowledgeErrorMessage",
        )?;
        self.current_leader.write(w, v, f)?;
        w.bytes(&self.records, f)?;
        w.array(&self.acquired_records, v, f)?;
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
        m.error_message = g.nullable(true, v, f);
        m.acknowledge_error_code = Random::random(g, v, f);
        m.acknowledge_error_message = g.nullable(true, v, f);
        m.current_leader = Random::random(g, v, f);
        m.records = Random::random(g, v, f);
        m.acquired_records = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `LeaderIdAndEpoch` of `ShareFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LeaderIdAndEpoch {
    /// `LeaderId`, versions 1+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 1+.
    pub leader_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for LeaderIdAndEpoch {
    const FIELDS: &'static [Field] = &[
        Field::new("LeaderId", Kind::Fixed(4), 1, 2),
        Field::new("LeaderEpoch", Kind::Fixed(4), 1, 2),
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

/// `AcquiredRecords` of `ShareFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AcquiredRecords {
    /// `FirstOffset`, versions 1+.
    pub first_offset: i64,
    /// `LastOffset`, versions 1+.
    pub last_offset: i64,
    /// `DeliveryCount`, versions 1+.
    pub delivery_count: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AcquiredRecords {
    const FIELDS: &'static [Field] = &[
        Field::new("FirstOffset", Kind::Fixed(8), 1, 2),
        Field::new("LastOffset", Kind::Fixed(8), 1, 2),
        Field::new("DeliveryCount", Kind::Fixed(2), 1, 2),
    ];
}

impl FromWire for AcquiredRecords {
    const SIZE_MIN: usize = 19;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.first_offset = r.i64()?;
        m.last_offset = r.i64()?;
        m.delivery_count = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AcquiredRecords {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.i16(self.delivery_count);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AcquiredRecords {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.first_offset = Random::random(g, v, f);
        m.last_offset = Random::random(g, v, f);
        m.delivery_count = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `NodeEndpoint` of `ShareFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NodeEndpoint {
    /// `NodeId`, versions 1+.
    pub node_id: i32,
    /// `Host`, versions 1+.
    pub host: String,
    /// `Port`, versions 1+.
    pub port: i32,
    /// `Rack`, versions 1+, null in versions 1+.
    pub rack: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for NodeEndpoint {
    const FIELDS: &'static [Field] = &[
        Field::new("NodeId", Kind::Fixed(4), 1, 2),
        Field::new("Host", Kind::Text, 1, 2),
        Field::new("Port", Kind::Fixed(4), 1, 2),
        Field::new("Rack", Kind::Text, 1, 2).nullable(1, 2),
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

impl Message for ShareFetchResponse {
    const NAME: &'static str = "ShareFetchResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for ShareFetchResponse {
    const KEY: ApiKey = ApiKey::ShareFetch;
}
