//! `CreateTopicsResponse`, versions 2-7, API key 19.

use super::prelude::*;

/// `CreateTopicsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateTopicsResponse {
    /// `ThrottleTimeMs`, versions 2+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 2+.
    pub topics: Vec<CreatableTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreateTopicsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 2, 7),
        Field::new("Topics", Kind::Array(&Kind::Struct(CreatableTopicResult::FIELDS)), 2, 7),
    ];
}

impl FromWire for CreateTopicsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreateTopicsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreateTopicsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreateTopicsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatableTopicResult` of `CreateTopicsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicResult {
    /// `Name`, versions 2+.
    pub name: String,
    /// `TopicId`, versions 7+.
    pub topic_id: Uuid,
    /// `ErrorCode`, versions 2+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 2+, null in versions 2+.
    pub error_message: Option<String>,
    /// `TopicConfigErrorCode`, versions 5+, tag 0.
    pub topic_config_error_code: i16,
    /// `NumPartitions`, versions 5+.
    pub num_partitions: i32,
    /// `ReplicationFactor`, versions 5+.
    pub replication_factor: i16,
    /// `Configs`, versions 5+, null in versions 5+.
    pub configs: Option<Vec<CreatableTopicConfigs>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CreatableTopicResult {
    fn default() -> Self {
        Self {
            name: Default::default(),
            topic_id: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            topic_config_error_code: Default::default(),
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CreatableTopicResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 2, 7).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 7, 7).of(Entity::TopicId),
        Field::new("ErrorCode", Kind::Fixed(2), 2, 7),
        Field::new("ErrorMessage", Kind::Text, 2, 7).nullable(2, 7).of(Entity::Explanation),
        Field::new("TopicConfigErrorCode", Kind::Fixed(2), 5, 7).tagged(0),
        Field::new("NumPartitions", Kind::Fixed(4), 5, 7),
        Field::new("ReplicationFactor", Kind::Fixed(2), 5, 7),
        Field::new("Configs", Kind::Array(&Kind::Struct(CreatableTopicConfigs::FIELDS)), 5, 7)
            .nullable(5, 7),
    ];
}

impl FromWire for CreatableTopicResult {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        if v >= 7 {
            m.topic_id = r.uuid()?;
        }
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if v >= 5 {
            m.num_partitions = r.i32()?;
        }
        if v >= 5 {
            m.replication_factor = r.i16()?;
        }
        if v >= 5 {
            m.configs = r.nullable_array(v, f, true)?;
        }
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.topic_config_error_code = r.i16()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for CreatableTopicResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        if v >= 7 {
            w.uuid(self.topic_id);
        }
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if v >= 5 {
            w.i32(self.num_partitions);
        }
        if v >= 5 {
            w.i16(self.replication_factor);
        }
        if v >= 5 {
            w.nullable_array(self.configs.as_deref(), v, f, true, "Configs")?;
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if self.topic_config_error_code != 0 {
                tags.field(0, |w| {
                    w.i16(self.topic_config_error_code);
                    Ok(())
                })?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatableTopicResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatableTopicResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        if v >= 7 {
            m.topic_id = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if v >= 5 {
            m.topic_config_error_code = Random::random(g, v, f);
        }
        if v >= 5 {
            m.num_partitions = Random::random(g, v, f);
        }
        if v >= 5 {
            m.replication_factor = Random::random(g, v, f);
        }
        if v >= 5 {
            m.configs = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatableTopicConfigs` of `CreateTopicsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicConfigs {
    /// `Name`, versions 5+.
    pub name: String,
    /// `Value`, versions 5+, null in versions 5+.
    pub value: Option<String>,
    /// `ReadOnly`, versions 5+.
    pub read_only: bool,
    /// `ConfigSource`, versions 5+.
    pub config_source: i8,
    /// `IsSensitive`, versions 5+.
    pub is_sensitive: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CreatableTopicConfigs {
    fn default() -> Self {
        Self {
            name: Default::default(),
            value: Some(Default::default()),
            read_only: Default::default(),
            config_source: -1,
            is_sensitive: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CreatableTopicConfigs {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 5, 7),
        Field::new("Value", Kind::Text, 5, 7).nullable(5, 7),
        Field::new("ReadOnly", Kind::Fixed(1), 5, 7),
        Field::new("ConfigSource", Kind::Fixed(1), 5, 7),
        Field::new("IsSensitive", Kind::Fixed(1), 5, 7),
    ];
}

impl FromWire for CreatableTopicConfigs {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.value = r.nullable_string(f, true)?;
        m.read_only = r.bool()?;
        m.config_source = r.i8()?;
        m.is_sensitive = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatableTopicConfigs {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.nullable_string(self.value.as_deref(), f, true, "Value")?;
        w.bool(self.read_only);
        w.i8(self.config_source);
        w.bool(self.is_sensitive);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatableTopicConfigs {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.value = g.nullable(true, v, f);
        m.read_only = Random::random(g, v, f);
        m.config_source = Random::random(g, v, f);
        m.is_sensitive = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for CreateTopicsResponse {
    const NAME: &'static str = "CreateTopicsResponse";
    const VERSIONS: VersionRange = VersionRange::new(2, 7);
    const FLEXIBLE_FROM: i16 = 5;
}

impl Response for CreateTopicsResponse {
    const KEY: ApiKey = ApiKey::CreateTopics;
}
