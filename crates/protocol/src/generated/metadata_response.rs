//! `MetadataResponse`, versions 0-13, API key 3.

use super::prelude::*;

/// `MetadataResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponse {
    /// `ThrottleTimeMs`, versions 3+.
    pub throttle_time_ms: i32,
    /// `Brokers`, versions 0+.
    pub brokers: Vec<MetadataResponseBroker>,
    /// `ClusterId`, versions 2+, null in versions 2+.
    pub cluster_id: Option<String>,
    /// `ControllerId`, versions 1+.
    pub controller_id: i32,
    /// `Topics`, versions 0+.
    pub topics: Vec<MetadataResponseTopic>,
    /// `ClusterAuthorizedOperations`, versions 8-10.
    pub cluster_authorized_operations: i32,
    /// `ErrorCode`, versions 13+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for MetadataResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            brokers: Default::default(),
            cluster_id: None,
            controller_id: -1,
            topics: Default::default(),
            cluster_authorized_operations: -2147483648,
            error_code: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for MetadataResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 3, 13),
        Field::new("Brokers", Kind::Array(&Kind::Struct(MetadataResponseBroker::FIELDS)), 0, 13),
        Field::new("ClusterId", Kind::Text, 2, 13).nullable(2, 13),
        Field::new("ControllerId", Kind::Fixed(4), 1, 13),
        Field::new("Topics", Kind::Array(&Kind::Struct(MetadataResponseTopic::FIELDS)), 0, 13),
        Field::new("ClusterAuthorizedOperations", Kind::Fixed(4), 8, 10),
        Field::new("ErrorCode", Kind::Fixed(2), 13, 13),
    ];
}

impl FromWire for MetadataResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 3 {
            m.throttle_time_ms = r.i32()?;
        }
        m.brokers = r.array(v, f)?;
        if v >= 2 {
            m.cluster_id = r.nullable_string(f, true)?;
        }
        if v >= 1 {
            m.controller_id = r.i32()?;
        }
        m.topics = r.array(v, f)?;
        if (8..=10).contains(&v) {
            m.cluster_authorized_operations = r.i32()?;
        }
        if v >= 13 {
            m.error_code = r.i16()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MetadataResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 3 {
            w.i32(self.throttle_time_ms);
        }
        w.array(&self.brokers, v, f)?;
        if v >= 2 {
            w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        }
        if v >= 1 {
            w.i32(self.controller_id);
        }
        w.array(&self.topics, v, f)?;
        if (8..=10).contains(&v) {
            w.i32(self.cluster_authorized_operations);
        } else if self.cluster_authorized_operations != -2147483648 {
            return Err(EncodeError::absent("MetadataResponse.ClusterAuthorizedOperations", v));
        }
        if v >= 13 {
            w.i16(self.error_code);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MetadataResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MetadataResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 3 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.brokers = Random::random(g, v, f);
        if v >= 2 {
            m.cluster_id = g.nullable(true, v, f);
        }
        if v >= 1 {
            m.controller_id = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if (8..=10).contains(&v) {
            m.cluster_authorized_operations = Random::random(g, v, f);
        }
        if v >= 13 {
            m.error_code = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `MetadataResponseBroker` of `MetadataResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MetadataResponseBroker {
    /// `NodeId`, versions 0+.
    pub node_id: i32,
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: i32,
    /// `Rack`, versions 1+, null in versions 1+.
    pub rack: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for MetadataResponseBroker {
    const FIELDS: &'static [Field] = &[
        Field::new("NodeId", Kind::Fixed(4), 0, 13),
        Field::new("Host", Kind::Text, 0, 13),
        Field::new("Port", Kind::Fixed(4), 0, 13),
        Field::new("Rack", Kind::Text, 1, 13).nullable(1, 13),
    ];
}

impl FromWire for MetadataResponseBroker {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.node_id = r.i32()?;
        m.host = r.string(f)?;
        m.port = r.i32()?;
        if v >= 1 {
            m.rack = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MetadataResponseBroker {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.node_id);
        w.string(&self.host, f)?;
        w.i32(self.port);
        if v >= 1 {
            w.nullable_string(self.rack.as_deref(), f, true, "Rack")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MetadataResponseBroker.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MetadataResponseBroker {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.node_id = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        if v >= 1 {
            m.rack = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `MetadataResponseTopic` of `MetadataResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponseTopic {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Name`, versions 0+, null in versions 12+.
    pub name: Option<String>,
    /// `TopicId`, versions 10+.
    pub topic_id: Uuid,
    /// `IsInternal`, versions 1+.
    pub is_internal: bool,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<MetadataResponsePartition>,
    /// `TopicAuthorizedOperations`, versions 8+.
    pub topic_authorized_operations: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for MetadataResponseTopic {
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

impl Structure for MetadataResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 13),
        Field::new("Name", Kind::Text, 0, 13).nullable(12, 13).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 10, 13).of(Entity::TopicId),
        Field::new("IsInternal", Kind::Fixed(1), 1, 13),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(MetadataResponsePartition::FIELDS)),
            0,
            13,
        ),
        Field::new("TopicAuthorizedOperations", Kind::Fixed(4), 8, 13),
    ];
}

impl FromWire for MetadataResponseTopic {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.name = r.nullable_string(f, v >= 12)?;
        if v >= 10 {
            m.topic_id = r.uuid()?;
        }
        if v >= 1 {
            m.is_internal = r.bool()?;
        }
        m.partitions = r.array(v, f)?;
        if v >= 8 {
            m.topic_authorized_operations = r.i32()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MetadataResponseTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.name.as_deref(), f, v >= 12, "Name")?;
        if v >= 10 {
            w.uuid(self.topic_id);
        }
        if v >= 1 {
            w.bool(self.is_internal);
        }
        w.array(&self.partitions, v, f)?;
        if v >= 8 {
            w.i32(self.topic_authorized_operations);
        } else if self.topic_authorized_operations != -2147483648 {
            return Err(EncodeError::absent("MetadataResponseTopic.TopicAuthorizedOperations", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MetadataResponseTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MetadataResponseTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.name = g.nullable(v >= 12, v, f);
        if v >= 10 {
            m.topic_id = Random::random(g, v, f);
        }
        if v >= 1 {
            m.is_internal = Random::random(g, v, f);
        }
        m.partitions = Random::random(g, v, f);
        if v >= 8 {
            m.topic_authorized_operations = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `MetadataResponsePartition` of `MetadataResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponsePartition {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 7+.
    pub leader_epoch: i32,
    /// `ReplicaNodes`, versions 0+.
    pub replica_nodes: Vec<i32>,
    /// `IsrNodes`, versions 0+.
    pub isr_nodes: Vec<i32>,
    /// `OfflineReplicas`, versions 5+.
    pub offline_replicas: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for MetadataResponsePartition {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            partition_index: Default::default(),
            leader_id: Default::default(),
            leader_epoch: -1,
            replica_nodes: Default::default(),
            isr_nodes: Default::default(),
            offline_replicas: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for MetadataResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 13),
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 13),
        Field::new("LeaderId", Kind::Fixed(4), 0, 13),
        Field::new("LeaderEpoch", Kind::Fixed(4), 7, 13),
        Field::new("ReplicaNodes", Kind::Array(&Kind::Fixed(4)), 0, 13),
        Field::new("IsrNodes", Kind::Array(&Kind::Fixed(4)), 0, 13),
        Field::new("OfflineReplicas", Kind::Array(&Kind::Fixed(4)), 5, 13),
    ];
}

impl FromWire for MetadataResponsePartition {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.partition_index = r.i32()?;
        m.leader_id = r.i32()?;
        if v >= 7 {
            m.leader_epoch = r.i32()?;
        }
        m.replica_nodes = r.array(v, f)?;
        m.isr_nodes = r.array(v, f)?;
        if v >= 5 {
            m.offline_replicas = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MetadataResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.i32(self.partition_index);
        w.i32(self.leader_id);
        if v >= 7 {
            w.i32(self.leader_epoch);
        }
        w.array(&self.replica_nodes, v, f)?;
        w.array(&self.isr_nodes, v, f)?;
        if v >= 5 {
            w.array(&self.offline_replicas, v, f)?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MetadataResponsePartition.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MetadataResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.partition_index = Random::random(g, v, f);
        m.leader_id = Random::random(g, v, f);
        if v >= 7 {
            m.leader_epoch = Random::random(g, v, f);
        }
        m.replica_nodes = Random::random(g, v, f);
        m.isr_nodes = Random::random(g, v, f);
        if v >= 5 {
            m.offline_replicas = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for MetadataResponse {
    const NAME: &'static str = "MetadataResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 13);
    const FLEXIBLE_FROM: i16 = 9;
}

impl Response for MetadataResponse {
    const KEY: ApiKey = ApiKey::Metadata;
}
