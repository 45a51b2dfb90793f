//! `OffsetFetchRequest`, versions 1-10, API key 9.

use super::prelude::*;

/// `OffsetFetchRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchRequest {
    /// `GroupId`, versions 1-7.
    pub group_id: String,
    /// `Topics`, versions 1-7, null in versions 2-7.
    pub topics: Option<Vec<OffsetFetchRequestTopic>>,
    /// `Groups`, versions 8+.
    pub groups: Vec<OffsetFetchRequestGroup>,
    /// `RequireStable`, versions 7+.
    pub require_stable: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetFetchRequest {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            topics: Some(Default::default()),
            groups: Default::default(),
            require_stable: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for OffsetFetchRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 1, 7).of(Entity::GroupId),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetFetchRequestTopic::FIELDS)), 1, 7)
            .nullable(2, 7),
        Field::new("Groups", Kind::Array(&Kind::Struct(OffsetFetchRequestGroup::FIELDS)), 8, 10),
        Field::new("RequireStable", Kind::Fixed(1), 7, 10),
    ];
}

impl FromWire for OffsetFetchRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 7 {
            m.group_id = r.string(f)?;
        }
        if v <= 7 {
            m.topics = r.nullable_array(v, f, v >= 2)?;
        }
        if v >= 8 {
            m.groups = r.array(v, f)?;
        }
        if v >= 7 {
            m.require_stable = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 7 {
            w.string(&self.group_id, f)?;
        } else if !self.group_id.is_empty() {
            return Err(EncodeError::absent("OffsetFetchRequest.GroupId", v));
        }
        if v <= 7 {
            w.nullable_array(self.topics.as_deref(), v, f, v >= 2, "Topics")?;
        } else if self.topics.as_ref().is_none_or(|value| !value.is_empty()) {
            return Err(EncodeError::absent("OffsetFetchRequest.Topics", v));
        }
        if v >= 8 {
            w.array(&self.groups, v, f)?;
        } else if !self.groups.is_empty() {
            return Err(EncodeError::absent("OffsetFetchRequest.Groups", v));
        }
        if v >= 7 {
            w.bool(self.require_stable);
        } else if self.require_stable {
            return Err(EncodeError::absent("OffsetFetchRequest.RequireStable", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetFetchRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 7 {
            m.group_id = Random::random(g, v, f);
        }
        if v <= 7 {
            m.topics = g.nullable(v >= 2, v, f);
        }
        if v >= 8 {
            m.groups = Random::random(g, v, f);
        }
        if v >= 7 {
            m.require_stable = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchRequestTopic` of `OffsetFetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchRequestTopic {
    /// `Name`, versions 1-7.
    pub name: String,
    /// `PartitionIndexes`, versions 1-7.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetFetchRequestTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 7).of(Entity::TopicName),
        Field::new("PartitionIndexes", Kind::Array(&Kind::Fixed(4)), 1, 7),
    ];
}

impl FromWire for OffsetFetchRequestTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partition_indexes = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchRequestTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partition_indexes, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetFetchRequestTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchRequestTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partition_indexes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchRequestGroup` of `OffsetFetchRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchRequestGroup {
    /// `GroupId`, versions 8+.
    pub group_id: String,
    /// `MemberId`, versions 9+, null in versions 9+.
    pub member_id: Option<String>,
    /// `MemberEpoch`, versions 9+.
    pub member_epoch: i32,
    /// `Topics`, versions 8+, null in versions 8+.
    pub topics: Option<Vec<OffsetFetchRequestTopics>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetFetchRequestGroup {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            member_id: None,
            member_epoch: -1,
            topics: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for OffsetFetchRequestGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 8, 10).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 9, 10).nullable(9, 10),
        Field::new("MemberEpoch", Kind::Fixed(4), 9, 10),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetFetchRequestTopics::FIELDS)), 8, 10)
            .nullable(8, 10),
    ];
}

impl FromWire for OffsetFetchRequestGroup {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        if v >= 9 {
            m.member_id = r.nullable_string(f, true)?;
        }
        if v >= 9 {
            m.member_epoch = r.i32()?;
        }
        m.topics = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchRequestGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        if v >= 9 {
            w.nullable_string(self.member_id.as_deref(), f, true, "MemberId")?;
        }
        if v >= 9 {
            w.i32(self.member_epoch);
        }
        w.nullable_array(self.topics.as_deref(), v, f, true, "Topics")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchRequestGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        if v >= 9 {
            m.member_id = g.nullable(true, v, f);
        }
        if v >= 9 {
            m.member_epoch = Random::random(g, v, f);
        }
        m.topics = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchRequestTopics` of `OffsetFetchRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchRequestTopics {
    /// `Name`, versions 8-9.
    pub name: String,
    /// `TopicId`, versions 10+.
    pub topic_id: Uuid,
    /// `PartitionIndexes`, versions 8+.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetFetchRequestTopics {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 8, 9).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 10, 10).of(Entity::TopicId),
        Field::new("PartitionIndexes", Kind::Array(&Kind::Fixed(4)), 8, 10),
    ];
}

impl FromWire for OffsetFetchRequestTopics {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 9 {
            m.name = r.string(f)?;
        }
        if v >= 10 {
            m.topic_id = r.uuid()?;
        }
        m.partition_indexes = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchRequestTopics {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 9 {
            w.string(&self.name, f)?;
        }
        if v >= 10 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partition_indexes, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchRequestTopics {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 9 {
            m.name = Random::random(g, v, f);
        }
        if v >= 10 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partition_indexes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for OffsetFetchRequest {
    const NAME: &'static str = "OffsetFetchRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 10);
    const FLEXIBLE_FROM: i16 = 6;
}

impl Request for OffsetFetchRequest {
    const KEY: ApiKey = ApiKey::OffsetFetch;
    type Response = super::OffsetFetchResponse;
}
