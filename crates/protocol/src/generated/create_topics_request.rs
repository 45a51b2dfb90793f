//! `CreateTopicsRequest`, versions 2-7, API key 19.

use super::prelude::*;

/// `CreateTopicsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTopicsRequest {
    /// `Topics`, versions 2+.
    pub topics: Vec<CreatableTopic>,
    /// `timeoutMs`, versions 2+.
    pub timeout_ms: i32,
    /// `validateOnly`, versions 2+.
    pub validate_only: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CreateTopicsRequest {
    fn default() -> Self {
        Self {
            topics: Default::default(),
            timeout_ms: 60000,
            validate_only: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CreateTopicsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Struct(CreatableTopic::FIELDS)), 2, 7),
        Field::new("timeoutMs", Kind::Fixed(4), 2, 7),
        Field::new("validateOnly", Kind::Fixed(1), 2, 7),
    ];
}

impl FromWire for CreateTopicsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.array(v, f)?;
        m.timeout_ms = r.i32()?;
        m.validate_only = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreateTopicsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topics, v, f)?;
        w.i32(self.timeout_ms);
        w.bool(self.validate_only);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreateTopicsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreateTopicsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = Random::random(g, v, f);
        m.timeout_ms = Random::random(g, v, f);
        m.validate_only = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatableTopic` of `CreateTopicsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatableTopic {
    /// `Name`, versions 2+.
    pub name: String,
    /// `NumPartitions`, versions 2+.
    pub num_partitions: i32,
    /// `ReplicationFactor`, versions 2+.
    pub replication_factor: i16,
    /// `Assignments`, versions 2+.
    pub assignments: Vec<CreatableReplicaAssignment>,
    /// `Configs`, versions 2+.
    pub configs: Vec<CreatableTopicConfig>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatableTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 2, 7).of(Entity::TopicName),
        Field::new("NumPartitions", Kind::Fixed(4), 2, 7),
        Field::new("ReplicationFactor", Kind::Fixed(2), 2, 7),
        Field::new(
            "Assignments",
            Kind::Array(&Kind::Struct(CreatableReplicaAssignment::FIELDS)),
            2,
            7,
        ),
        Field::new("Configs", Kind::Array(&Kind::Struct(CreatableTopicConfig::FIELDS)), 2, 7),
    ];
}

impl FromWire for CreatableTopic {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.num_partitions = r.i32()?;
        m.replication_factor = r.i16()?;
        m.assignments = r.array(v, f)?;
        m.configs = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatableTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i32(self.num_partitions);
        w.i16(self.replication_factor);
        w.array(&self.assignments, v, f)?;
        w.array(&self.configs, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatableTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatableTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.num_partitions = Random::random(g, v, f);
        m.replication_factor = Random::random(g, v, f);
        m.assignments = Random::random(g, v, f);
        m.configs = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatableReplicaAssignment` of `CreateTopicsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatableReplicaAssignment {
    /// `PartitionIndex`, versions 2+.
    pub partition_index: i32,
    /// `BrokerIds`, versions 2+.
    pub broker_ids: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatableReplicaAssignment {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 2, 7),
        Field::new("BrokerIds", Kind::Array(&Kind::Fixed(4)), 2, 7),
    ];
}

impl FromWire for CreatableReplicaAssignment {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.broker_ids = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatableReplicaAssignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.array(&self.broker_ids, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatableReplicaAssignment.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatableReplicaAssignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.broker_ids = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatableTopicConfig` of `CreateTopicsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicConfig {
    /// `Name`, versions 2+.
    pub name: String,
    /// `Value`, versions 2+, null in versions 2+.
    pub value: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CreatableTopicConfig {
    fn default() -> Self {
        Self {
            name: Default::default(),
            value: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CreatableTopicConfig {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 2, 7),
        Field::new("Value", Kind::Text, 2, 7).nullable(2, 7),
    ];
}

impl FromWire for CreatableTopicConfig {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.value = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatableTopicConfig {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.nullable_string(self.value.as_deref(), f, true, "Value")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatableTopicConfig.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatableTopicConfig {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.value = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for CreateTopicsRequest {
    const NAME: &'static str = "CreateTopicsRequest";
    const VERSIONS: VersionRange = VersionRange::new(2, 7);
    const FLEXIBLE_FROM: i16 = 5;
}

impl Request for CreateTopicsRequest {
    const KEY: ApiKey = ApiKey::CreateTopics;
    type Response = super::CreateTopicsResponse;
}
