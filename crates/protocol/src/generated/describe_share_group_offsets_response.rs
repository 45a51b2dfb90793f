//! `DescribeShareGroupOffsetsResponse`, versions 0-1, API key 90.

use super::prelude::*;

/// `DescribeShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeShareGroupOffsetsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Groups`, versions 0+.
    pub groups: Vec<DescribeShareGroupOffsetsResponseGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeShareGroupOffsetsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new(
            "Groups",
            Kind::Array(&Kind::Struct(DescribeShareGroupOffsetsResponseGroup::FIELDS)),
            0,
            1,
        ),
    ];
}

impl FromWire for DescribeShareGroupOffsetsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeShareGroupOffsetsResponseGroup` of `DescribeShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeShareGroupOffsetsResponseGroup {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+.
    pub topics: Vec<DescribeShareGroupOffsetsResponseTopic>,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeShareGroupOffsetsResponseGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 1).of(Entity::GroupId),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(DescribeShareGroupOffsetsResponseTopic::FIELDS)),
            0,
            1,
        ),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
    ];
}

impl FromWire for DescribeShareGroupOffsetsResponseGroup {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.topics = r.array(v, f)?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsResponseGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.array(&self.topics, v, f)?;
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsResponseGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeShareGroupOffsetsResponseTopic` of `DescribeShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeShareGroupOffsetsResponseTopic {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<DescribeShareGroupOffsetsResponsePartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeShareGroupOffsetsResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 0, 1).of(Entity::TopicId),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(DescribeShareGroupOffsetsResponsePartition::FIELDS)),
            0,
            1,
        ),
    ];
}

impl FromWire for DescribeShareGroupOffsetsResponseTopic {
    const SIZE_MIN: usize = 19;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_name = r.string(f)?;
        m.topic_id = r.uuid()?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsResponseTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic_name, f)?;
        w.uuid(self.topic_id);
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsResponseTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_name = Random::random(g, v, f);
        m.topic_id = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeShareGroupOffsetsResponsePartition` of `DescribeShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeShareGroupOffsetsResponsePartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `StartOffset`, versions 0+.
    pub start_offset: i64,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `Lag`, versions 1+.
    pub lag: i64,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeShareGroupOffsetsResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            start_offset: Default::default(),
            leader_epoch: Default::default(),
            lag: -1,
            error_code: Default::default(),
            error_message: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeShareGroupOffsetsResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 1),
        Field::new("StartOffset", Kind::Fixed(8), 0, 1),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 1),
        Field::new("Lag", Kind::Fixed(8), 1, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
    ];
}

impl FromWire for DescribeShareGroupOffsetsResponsePartition {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.start_offset = r.i64()?;
        m.leader_epoch = r.i32()?;
        if v >= 1 {
            m.lag = r.i64()?;
        }
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeShareGroupOffsetsResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.start_offset);
        w.i32(self.leader_epoch);
        if v >= 1 {
            w.i64(self.lag);
        }
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeShareGroupOffsetsResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.start_offset = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        if v >= 1 {
            m.lag = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeShareGroupOffsetsResponse {
    const NAME: &'static str = "DescribeShareGroupOffsetsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeShareGroupOffsetsResponse {
    const KEY: ApiKey = ApiKey::DescribeShareGroupOffsets;
}
