//! `OffsetFetchResponse`, versions 1-10, API key 9.

use super::prelude::*;

/// `OffsetFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchResponse {
    /// `ThrottleTimeMs`, versions 3+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 1-7.
    pub topics: Vec<OffsetFetchResponseTopic>,
    /// `ErrorCode`, versions 2-7.
    pub error_code: i16,
    /// `Groups`, versions 8+.
    pub groups: Vec<OffsetFetchResponseGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetFetchResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 3, 10),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetFetchResponseTopic::FIELDS)), 1, 7),
        Field::new("ErrorCode", Kind::Fixed(2), 2, 7),
        Field::new("Groups", Kind::Array(&Kind::Struct(OffsetFetchResponseGroup::FIELDS)), 8, 10),
    ];
}

impl FromWire for OffsetFetchResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 3 {
            m.throttle_time_ms = r.i32()?;
        }
        if v <= 7 {
            m.topics = r.array(v, f)?;
        }
        if (2..=7).contains(&v) {
            m.error_code = r.i16()?;
        }
        if v >= 8 {
            m.groups = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 3 {
            w.i32(self.throttle_time_ms);
        }
        if v <= 7 {
            w.array(&self.topics, v, f)?;
        } else if !self.topics.is_empty() {
            return Err(EncodeError::absent("OffsetFetchResponse.Topics", v));
        }
        if (2..=7).contains(&v) {
            w.i16(self.error_code);
        }
        if v >= 8 {
            w.array(&self.groups, v, f)?;
        } else if !self.groups.is_empty() {
            return Err(EncodeError::absent("OffsetFetchResponse.Groups", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetFetchResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 3 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        if v <= 7 {
            m.topics = Random::random(g, v, f);
        }
        if (2..=7).contains(&v) {
            m.error_code = Random::random(g, v, f);
        }
        if v >= 8 {
            m.groups = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchResponseTopic` of `OffsetFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchResponseTopic {
    /// `Name`, versions 1-7.
    pub name: String,
    /// `Partitions`, versions 1-7.
    pub partitions: Vec<OffsetFetchResponsePartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetFetchResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 7).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetFetchResponsePartition::FIELDS)),
            1,
            7,
        ),
    ];
}

impl FromWire for OffsetFetchResponseTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchResponseTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetFetchResponseTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchResponseTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchResponsePartition` of `OffsetFetchResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchResponsePartition {
    /// `PartitionIndex`, versions 1-7.
    pub partition_index: i32,
    /// `CommittedOffset`, versions 1-7.
    pub committed_offset: i64,
    /// `CommittedLeaderEpoch`, versions 5-7.
    pub committed_leader_epoch: i32,
    /// `Metadata`, versions 1-7, null in versions 1-7.
    pub metadata: Option<String>,
    /// `ErrorCode`, versions 1-7.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetFetchResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            committed_offset: Default::default(),
            committed_leader_epoch: -1,
            metadata: Some(Default::default()),
            error_code: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for OffsetFetchResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 7),
        Field::new("CommittedOffset", Kind::Fixed(8), 1, 7),
        Field::new("CommittedLeaderEpoch", Kind::Fixed(4), 5, 7),
        Field::new("Metadata", Kind::Text, 1, 7).nullable(1, 7),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 7),
    ];
}

impl FromWire for OffsetFetchResponsePartition {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.committed_offset = r.i64()?;
        if v >= 5 {
            m.committed_leader_epoch = r.i32()?;
        }
        m.metadata = r.nullable_string(f, true)?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.committed_offset);
        if v >= 5 {
            w.i32(self.committed_leader_epoch);
        }
        w.nullable_string(self.metadata.as_deref(), f, true, "Metadata")?;
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "OffsetFetchResponsePartition.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.committed_offset = Random::random(g, v, f);
        if v >= 5 {
            m.committed_leader_epoch = Random::random(g, v, f);
        }
        m.metadata = g.nullable(true, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchResponseGroup` of `OffsetFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchResponseGroup {
    /// `GroupId`, versions 8+.
    pub group_id: String,
    /// `Topics`, versions 8+.
    pub topics: Vec<OffsetFetchResponseTopics>,
    /// `ErrorCode`, versions 8+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetFetchResponseGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 8, 10).of(Entity::GroupId),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetFetchResponseTopics::FIELDS)), 8, 10),
        Field::new("ErrorCode", Kind::Fixed(2), 8, 10),
    ];
}

impl FromWire for OffsetFetchResponseGroup {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.topics = r.array(v, f)?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchResponseGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.array(&self.topics, v, f)?;
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchResponseGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchResponseTopics` of `OffsetFetchResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchResponseTopics {
    /// `Name`, versions 8-9.
    pub name: String,
    /// `TopicId`, versions 10+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 8+.
    pub partitions: Vec<OffsetFetchResponsePartitions>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetFetchResponseTopics {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 8, 9).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 10, 10).of(Entity::TopicId),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetFetchResponsePartitions::FIELDS)),
            8,
            10,
        ),
    ];
}

impl FromWire for OffsetFetchResponseTopics {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 9 {
            m.name = r.string(f)?;
        }
        if v >= 10 {
            m.topic_id = r.uuid()?;
        }
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchResponseTopics {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 9 {
            w.string(&self.name, f)?;
        }
        if v >= 10 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchResponseTopics {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 9 {
            m.name = Random::random(g, v, f);
        }
        if v >= 10 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetFetchResponsePartitions` of `OffsetFetchResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchResponsePartitions {
    /// `PartitionIndex`, versions 8+.
    pub partition_index: i32,
    /// `CommittedOffset`, versions 8+.
    pub committed_offset: i64,
    /// `CommittedLeaderEpoch`, versions 8+.
    pub committed_leader_epoch: i32,
    /// `Metadata`, versions 8+, null in versions 8+.
    pub metadata: Option<String>,
    /// `ErrorCode`, versions 8+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetFetchResponsePartitions {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            committed_offset: Default::default(),
            committed_leader_epoch: -1,
            metadata: Some(Default::default()),
            error_code: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for OffsetFetchResponsePartitions {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 8, 10),
        Field::new("CommittedOffset", Kind::Fixed(8), 8, 10),
        Field::new("CommittedLeaderEpoch", Kind::Fixed(4), 8, 10),
        Field::new("Metadata", Kind::Text, 8, 10).nullable(8, 10),
        Field::new("ErrorCode", Kind::Fixed(2), 8, 10),
    ];
}

impl FromWire for OffsetFetchResponsePartitions {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.committed_offset = r.i64()?;
        m.committed_leader_epoch = r.i32()?;
        m.metadata = r.nullable_string(f, true)?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetFetchResponsePartitions {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.committed_offset);
        w.i32(self.committed_leader_epoch);
        w.nullable_string(self.metadata.as_deref(), f, true, "Metadata")?;
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetFetchResponsePartitions {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.committed_offset = Random::random(g, v, f);
        m.committed_leader_epoch = Random::random(g, v, f);
        m.metadata = g.nullable(true, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for OffsetFetchResponse {
    const NAME: &'static str = "OffsetFetchResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 10);
    const FLEXIBLE_FROM: i16 = 6;
}

impl Response for OffsetFetchResponse {
    const KEY: ApiKey = ApiKey::OffsetFetch;
}
