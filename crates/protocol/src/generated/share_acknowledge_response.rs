//! `ShareAcknowledgeResponse`, versions 1-2, API key 79.

use super::prelude::*;

/// `ShareAcknowledgeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareAcknowledgeResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `AcquisitionLockTimeoutMs`, versions 2+.
    pub acquisition_lock_timeout_ms: i32,
    /// `Responses`, versions 1+.
    pub responses: Vec<ShareAcknowledgeTopicResponse>,
    /// `NodeEndpoints`, versions 1+.
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareAcknowledgeResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
        Field::new("ErrorMessage", Kind::Text, 1, 2).nullable(1, 2).of(Entity::Explanation),
        Field::new("AcquisitionLockTimeoutMs", Kind::Fixed(4), 2, 2),
        Field::new(
            "Responses",
            Kind::Array(&Kind::Struct(ShareAcknowledgeTopicResponse::FIELDS)),
            1,
            2,
        ),
        Field::new("NodeEndpoints", Kind::Array(&Kind::Struct(NodeEndpoint::FIELDS)), 1, 2),
    ];
}

impl FromWire for ShareAcknowledgeResponse {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if v >= 2 {
            m.acquisition_lock_timeout_ms = r.i32()?;
        }
        m.responses = r.array(v, f)?;
        m.node_endpoints = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareAcknowledgeResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if v >= 2 {
            w.i32(self.acquisition_lock_timeout_ms);
        }
        w.array(&self.responses, v, f)?;
        w.array(&self.node_endpoints, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareAcknowledgeResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if v >= 2 {
            m.acquisition_lock_timeout_ms = Random::random(g, v, f);
        }
        m.responses = Random::random(g, v, f);
        m.node_endpoints = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ShareAcknowledgeTopicResponse` of `ShareAcknowledgeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareAcknowledgeTopicResponse {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareAcknowledgeTopicResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 2).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 1, 2),
    ];
}

impl FromWire for ShareAcknowledgeTopicResponse {
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

impl ToWire for ShareAcknowledgeTopicResponse {
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
impl Random for ShareAcknowledgeTopicResponse {
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

/// `PartitionData` of `ShareAcknowledgeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `CurrentLeader`, versions 1+.
    pub current_leader: LeaderIdAndEpoch,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
        Field::new("ErrorMessage", Kind::Text, 1, 2).nullable(1, 2).of(Entity::Explanation),
        Field::new("CurrentLeader", Kind::Struct(LeaderIdAndEpoch::FIELDS), 1, 2),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 17;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.current_leader = LeaderIdAndEpoch::read(r, v, f)?;
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
        self.current_leader.write(w, v, f)?;
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
        m.current_leader = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `LeaderIdAndEpoch` of `ShareAcknowledgeResponse`.
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

/// `NodeEndpoint` of `ShareAcknowledgeResponse`.
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

impl Message for ShareAcknowledgeResponse {
    const NAME: &'static str = "ShareAcknowledgeResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for ShareAcknowledgeResponse {
    const KEY: ApiKey = ApiKey::ShareAcknowledge;
}
