//! `ProduceResponse`, versions 3-13, API key 0.

use super::prelude::*;

/// `ProduceResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProduceResponse {
    /// `Responses`, versions 3+.
    pub responses: Vec<TopicProduceResponse>,
    /// `ThrottleTimeMs`, versions 3+.
    pub throttle_time_ms: i32,
    /// `NodeEndpoints`, versions 10+, tag 0.
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ProduceResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Responses", Kind::Array(&Kind::Struct(TopicProduceResponse::FIELDS)), 3, 13),
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 3, 13),
        Field::new("NodeEndpoints", Kind::Array(&Kind::Struct(NodeEndpoint::FIELDS)), 10, 13)
            .tagged(0),
    ];
}

impl FromWire for ProduceResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.responses = r.array(v, f)?;
        m.throttle_time_ms = r.i32()?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 10 => m.node_endpoints = r.array(v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for ProduceResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.responses, v, f)?;
        w.i32(self.throttle_time_ms);
        if v < 10 && !self.node_endpoints.is_empty() {
            return Err(EncodeError::absent("ProduceResponse.NodeEndpoints", v));
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 10 && !self.node_endpoints.is_empty() {
                tags.field(0, |w| w.array(&self.node_endpoints, v, f))?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ProduceResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ProduceResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.responses = Random::random(g, v, f);
        m.throttle_time_ms = Random::random(g, v, f);
        if v >= 10 {
            m.node_endpoints = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicProduceResponse` of `ProduceResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicProduceResponse {
    /// `Name`, versions 3-12.
    pub name: String,
    /// `TopicId`, versions 13+.
    pub topic_id: Uuid,
    /// `PartitionResponses`, versions 3+.
    pub partition_responses: Vec<PartitionProduceResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicProduceResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 3, 12).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 13, 13).of(Entity::TopicId),
        Field::new(
            "PartitionResponses",
            Kind::Array(&Kind::Struct(PartitionProduceResponse::FIELDS)),
            3,
            13,
        ),
    ];
}

impl FromWire for TopicProduceResponse {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 12 {
            m.name = r.string(f)?;
        }
        if v >= 13 {
            m.topic_id = r.uuid()?;
        }
        m.partition_responses = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicProduceResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 12 {
            w.string(&self.name, f)?;
        }
        if v >= 13 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partition_responses, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("TopicProduceResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicProduceResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 12 {
            m.name = Random::random(g, v, f);
        }
        if v >= 13 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partition_responses = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `PartitionProduceResponse` of `ProduceResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionProduceResponse {
    /// `Index`, versions 3+.
    pub index: i32,
    /// `ErrorCode`, versions 3+.
    pub error_code: i16,
    /// `BaseOffset`, versions 3+.
    pub base_offset: i64,
    /// `LogAppendTimeMs`, versions 3+.
    pub log_append_time_ms: i64,
    /// `LogStartOffset`, versions 5+.
    pub log_start_offset: i64,
    /// `RecordErrors`, versions 8+.
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    /// `ErrorMessage`, versions 8+, null in versions 8+.
    pub error_message: Option<String>,
    /// `CurrentLeader`, versions 10+, tag 0.
    pub current_leader: LeaderIdAndEpoch,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for PartitionProduceResponse {
    fn default() -> Self {
        Self {
            index: Default::default(),
            error_code: Default::default(),
            base_offset: Default::default(),
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Default::default(),
            error_message: None,
            current_leader: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for PartitionProduceResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Index", Kind::Fixed(4), 3, 13),
        Field::new("ErrorCode", Kind::Fixed(2), 3, 13),
        Field::new("BaseOffset", Kind::Fixed(8), 3, 13),
        Field::new("LogAppendTimeMs", Kind::Fixed(8), 3, 13),
        Field::new("LogStartOffset", Kind::Fixed(8), 5, 13),
        Field::new(
            "RecordErrors",
            Kind::Array(&Kind::Struct(BatchIndexAndErrorMessage::FIELDS)),
            8,
            13,
        ),
        Field::new("ErrorMessage", Kind::Text, 8, 13).nullable(8, 13).of(Entity::Explanation),
        Field::new("CurrentLeader", Kind::Struct(LeaderIdAndEpoch::FIELDS), 10, 13).tagged(0),
    ];
}

impl FromWire for PartitionProduceResponse {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.index = r.i32()?;
        m.error_code = r.i16()?;
        m.base_offset = r.i64()?;
        m.log_append_time_ms = r.i64()?;
        if v >= 5 {
            m.log_start_offset = r.i64()?;
        }
        if v >= 8 {
            m.record_errors = r.array(v, f)?;
        }
        if v >= 8 {
            m.error_message = r.nullable_string(f, true)?;
        }
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 10 => m.current_leader = LeaderIdAndEpoch::read(r, v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionProduceResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.index);
        w.i16(self.error_code);
        w.i64(self.base_offset);
        w.i64(self.log_append_time_ms);
        if v >= 5 {
            w.i64(self.log_start_offset);
        }
        if v >= 8 {
            w.array(&self.record_errors, v, f)?;
        }
        if v >= 8 {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        }
        if v < 10 && self.current_leader != LeaderIdAndEpoch::default() {
            return Err(EncodeError::absent("PartitionProduceResponse.CurrentLeader", v));
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 10 && self.current_leader != LeaderIdAndEpoch::default() {
                tags.field(0, |w| self.current_leader.write(w, v, f))?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("PartitionProduceResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionProduceResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.base_offset = Random::random(g, v, f);
        m.log_append_time_ms = Random::random(g, v, f);
        if v >= 5 {
            m.log_start_offset = Random::random(g, v, f);
        }
        if v >= 8 {
            m.record_errors = Random::random(g, v, f);
        }
        if v >= 8 {
            m.error_message = g.nullable(true, v, f);
        }
        if v >= 10 {
            m.current_leader = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `BatchIndexAndErrorMessage` of `ProduceResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchIndexAndErrorMessage {
    /// `BatchIndex`, versions 8+.
    pub batch_index: i32,
    /// `BatchIndexErrorMessage`, versions 8+, null in versions 8+.
    pub batch_index_error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for BatchIndexAndErrorMessage {
    const FIELDS: &'static [Field] = &[
        Field::new("BatchIndex", Kind::Fixed(4), 8, 13),
        Field::new("BatchIndexErrorMessage", Kind::Text, 8, 13)
            .nullable(8, 13)
            .of(Entity::Explanation),
    ];
}

impl FromWire for BatchIndexAndErrorMessage {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.batch_index = r.i32()?;
        m.batch_index_error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for BatchIndexAndErrorMessage {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.batch_index);
        w.nullable_string(
            self.batch_index_error_message.as_deref(),
            f,
            true,
            "BatchIndexErrorMessage",
        )?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("BatchIndexAndErrorMessage.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for BatchIndexAndErrorMessage {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.batch_index = Random::random(g, v, f);
        m.batch_index_error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `LeaderIdAndEpoch` of `ProduceResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderIdAndEpoch {
    /// `LeaderId`, versions 10+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 10+.
    pub leader_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for LeaderIdAndEpoch {
    const FIELDS: &'static [Field] = &[
        Field::new("LeaderId", Kind::Fixed(4), 10, 13),
        Field::new("LeaderEpoch", Kind::Fixed(4), 10, 13),
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

/// `NodeEndpoint` of `ProduceResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NodeEndpoint {
    /// `NodeId`, versions 10+.
    pub node_id: i32,
    /// `Host`, versions 10+.
    pub host: String,
    /// `Port`, versions 10+.
    pub port: i32,
    /// `Rack`, versions 10+, null in versions 10+.
    pub rack: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for NodeEndpoint {
    const FIELDS: &'static [Field] = &[
        Field::new("NodeId", Kind::Fixed(4), 10, 13),
        Field::new("Host", Kind::Text, 10, 13),
        Field::new("Port", Kind::Fixed(4), 10, 13),
        Field::new("Rack", Kind::Text, 10, 13).nullable(10, 13),
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

impl Message for ProduceResponse {
    const NAME: &'static str = "ProduceResponse";
    const VERSIONS: VersionRange = VersionRange::new(3, 13);
    const FLEXIBLE_FROM: i16 = 9;
}

impl Response for ProduceResponse {
    const KEY: ApiKey = ApiKey::Produce;
}
