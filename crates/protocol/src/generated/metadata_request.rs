//! `MetadataRequest`, versions 0-13, API key 3.

use super::prelude::*;

/// `MetadataRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRequest {
    /// `Topics`, versions 0+, null in versions 1+.
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// `AllowAutoTopicCreation`, versions 4+.
    pub allow_auto_topic_creation: bool,
    /// `IncludeClusterAuthorizedOperations`, versions 8-10.
    pub include_cluster_authorized_operations: bool,
    /// `IncludeTopicAuthorizedOperations`, versions 8+.
    pub include_topic_authorized_operations: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for MetadataRequest {
    fn default() -> Self {
        Self {
            topics: Some(Default::default()),
            allow_auto_topic_creation: true,
            include_cluster_authorized_operations: Default::default(),
            include_topic_authorized_operations: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for MetadataRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Struct(MetadataRequestTopic::FIELDS)), 0, 13)
            .nullable(1, 13),
        Field::new("AllowAutoTopicCreation", Kind::Fixed(1), 4, 13),
        Field::new("IncludeClusterAuthorizedOperations", Kind::Fixed(1), 8, 10),
        Field::new("IncludeTopicAuthorizedOperations", Kind::Fixed(1), 8, 13),
    ];
}

impl FromWire for MetadataRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.nullable_array(v, f, v >= 1)?;
        if v >= 4 {
            m.allow_auto_topic_creation = r.bool()?;
        }
        if (8..=10).contains(&v) {
            m.include_cluster_authorized_operations = r.bool()?;
        }
        if v >= 8 {
            m.include_topic_authorized_operations = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MetadataRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_array(self.topics.as_deref(), v, f, v >= 1, "Topics")?;
        if v >= 4 {
            w.bool(self.allow_auto_topic_creation);
        } else if !self.allow_auto_topic_creation {
            return Err(EncodeError::absent("MetadataRequest.AllowAutoTopicCreation", v));
        }
        if (8..=10).contains(&v) {
            w.bool(self.include_cluster_authorized_operations);
        } else if self.include_cluster_authorized_operations {
            return Err(EncodeError::absent(
                "MetadataRequest.IncludeClusterAuthorizedOperations",
                v,
            ));
        }
        if v >= 8 {
            w.bool(self.include_topic_authorized_operations);
        } else if self.include_topic_authorized_operations {
            return Err(EncodeError::absent("MetadataRequest.IncludeTopicAuthorizedOperations", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MetadataRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MetadataRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = g.nullable(v >= 1, v, f);
        if v >= 4 {
            m.allow_auto_topic_creation = Random::random(g, v, f);
        }
        if (8..=10).contains(&v) {
            m.include_cluster_authorized_operations = Random::random(g, v, f);
        }
        if v >= 8 {
            m.include_topic_authorized_operations = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `MetadataRequestTopic` of `MetadataRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRequestTopic {
    /// `TopicId`, versions 10+.
    pub topic_id: Uuid,
    /// `Name`, versions 0+, null in versions 10+.
    pub name: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for MetadataRequestTopic {
    fn default() -> Self {
        Self {
            topic_id: Default::default(),
            name: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for MetadataRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 10, 13).of(Entity::TopicId),
        Field::new("Name", Kind::Text, 0, 13).nullable(10, 13).of(Entity::TopicName),
    ];
}

impl FromWire for MetadataRequestTopic {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 10 {
            m.topic_id = r.uuid()?;
        }
        m.name = r.nullable_string(f, v >= 10)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MetadataRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 10 {
            w.uuid(self.topic_id);
        }
        w.nullable_string(self.name.as_deref(), f, v >= 10, "Name")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MetadataRequestTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MetadataRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 10 {
            m.topic_id = Random::random(g, v, f);
        }
        m.name = g.nullable(v >= 10, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for MetadataRequest {
    const NAME: &'static str = "MetadataRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 13);
    const FLEXIBLE_FROM: i16 = 9;
}

impl Request for MetadataRequest {
    const KEY: ApiKey = ApiKey::Metadata;
    type Response = super::MetadataResponse;
}
