//! `OffsetCommitResponse`, versions 2-10, API key 8.

use super::prelude::*;

/// `OffsetCommitResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetCommitResponse {
    /// `ThrottleTimeMs`, versions 3+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 2+.
    pub topics: Vec<OffsetCommitResponseTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetCommitResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 3, 10),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetCommitResponseTopic::FIELDS)), 2, 10),
    ];
}

impl FromWire for OffsetCommitResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 3 {
            m.throttle_time_ms = r.i32()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetCommitResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 3 {
            w.i32(self.throttle_time_ms);
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetCommitResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetCommitResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 3 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetCommitResponseTopic` of `OffsetCommitResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetCommitResponseTopic {
    /// `Name`, versions 2-9.
    pub name: String,
    /// `TopicId`, versions 10+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 2+.
    pub partitions: Vec<OffsetCommitResponsePartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetCommitResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 2, 9).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 10, 10).of(Entity::TopicId),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetCommitResponsePartition::FIELDS)),
            2,
            10,
        ),
    ];
}

impl FromWire for OffsetCommitResponseTopic {
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

impl ToWire for OffsetCommitResponseTopic {
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
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetCommitResponseTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetCommitResponseTopic {
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

/// `OffsetCommitResponsePartition` of `OffsetCommitResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetCommitResponsePartition {
    /// `PartitionIndex`, versions 2+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 2+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetCommitResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 2, 10),
        Field::new("ErrorCode", Kind::Fixed(2), 2, 10),
    ];
}

impl FromWire for OffsetCommitResponsePartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetCommitResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "OffsetCommitResponsePartition.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetCommitResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for OffsetCommitResponse {
    const NAME: &'static str = "OffsetCommitResponse";
    const VERSIONS: VersionRange = VersionRange::new(2, 10);
    const FLEXIBLE_FROM: i16 = 8;
}

impl Response for OffsetCommitResponse {
    const KEY: ApiKey = ApiKey::OffsetCommit;
}
