//! `OffsetDeleteResponse`, versions 0-0, API key 47.

use super::prelude::*;

/// `OffsetDeleteResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetDeleteResponse {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 0+.
    pub topics: Vec<OffsetDeleteResponseTopic>,
}

impl Structure for OffsetDeleteResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetDeleteResponseTopic::FIELDS)), 0, 0),
    ];
}

impl FromWire for OffsetDeleteResponse {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.throttle_time_ms = r.i32()?;
        m.topics = r.array(v, f)?;
        Ok(m)
    }
}

impl ToWire for OffsetDeleteResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.i32(self.throttle_time_ms);
        w.array(&self.topics, v, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetDeleteResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.throttle_time_ms = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        m
    }
}

/// `OffsetDeleteResponseTopic` of `OffsetDeleteResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetDeleteResponseTopic {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<OffsetDeleteResponsePartition>,
}

impl Structure for OffsetDeleteResponseTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetDeleteResponsePartition::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for OffsetDeleteResponseTopic {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        Ok(m)
    }
}

impl ToWire for OffsetDeleteResponseTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetDeleteResponseTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        m
    }
}

/// `OffsetDeleteResponsePartition` of `OffsetDeleteResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetDeleteResponsePartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
}

impl Structure for OffsetDeleteResponsePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for OffsetDeleteResponsePartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        Ok(m)
    }
}

impl ToWire for OffsetDeleteResponsePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetDeleteResponsePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m
    }
}

impl Message for OffsetDeleteResponse {
    const NAME: &'static str = "OffsetDeleteResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}

impl Response for OffsetDeleteResponse {
    const KEY: ApiKey = ApiKey::OffsetDelete;
}
