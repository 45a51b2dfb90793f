//! `AlterShareGroupOffsetsResponse`, versions 0-0, API key 91.

use super::prelude::*;

/// `AlterShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterShareGroupOffsetsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Responses`, versions 0+.
    pub responses: Vec<AlterShareGroupOffsetsResponseTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterShareGroupOffsetsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
        Field::new(
            "Responses",
            Kind::Array(&Kind::Struct(AlterShareGroupOffsetsResponseTopic::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for AlterShareGroupOffsetsResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.responses = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterShareGroupOffsetsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.responses, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterShareGroupOffsetsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.responses = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AlterShareGroupOffsetsResponseTopic` of `AlterShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterShareGroupOffsetsResponseTopic {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<AlterShareGroupOffsetsResponsePartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterShareGroupOffsetsResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 0, 0).of(Entity::TopicId),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(AlterShareGroupOffsetsResponsePartition::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for AlterShareGroupOffsetsResponseTopic {
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

impl ToWire for AlterShareGroupOffsetsResponseTopic {
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
impl Random for AlterShareGroupOffsetsResponseTopic {
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

/// `AlterShareGroupOffsetsResponsePartition` of `AlterShareGroupOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterShareGroupOffsetsResponsePartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterShareGroupOffsetsResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
    ];
}

impl FromWire for AlterShareGroupOffsetsResponsePartition {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterShareGroupOffsetsResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterShareGroupOffsetsResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterShareGroupOffsetsResponse {
    const NAME: &'static str = "AlterShareGroupOffsetsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for AlterShareGroupOffsetsResponse {
    const KEY: ApiKey = ApiKey::AlterShareGroupOffsets;
}
