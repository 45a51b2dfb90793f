//! `DescribeLogDirsResponse`, versions 1-5, API key 35.

use super::prelude::*;

/// `DescribeLogDirsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeLogDirsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 3+.
    pub error_code: i16,
    /// `Results`, versions 1+.
    pub results: Vec<DescribeLogDirsResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeLogDirsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 3, 5),
        Field::new("Results", Kind::Array(&Kind::Struct(DescribeLogDirsResult::FIELDS)), 1, 5),
    ];
}

impl FromWire for DescribeLogDirsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        if v >= 3 {
            m.error_code = r.i16()?;
        }
        m.results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeLogDirsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        if v >= 3 {
            w.i16(self.error_code);
        }
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeLogDirsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeLogDirsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        if v >= 3 {
            m.error_code = Random::random(g, v, f);
        }
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeLogDirsResult` of `DescribeLogDirsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsResult {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `LogDir`, versions 1+.
    pub log_dir: String,
    /// `Topics`, versions 1+.
    pub topics: Vec<DescribeLogDirsTopic>,
    /// `TotalBytes`, versions 4+.
    pub total_bytes: i64,
    /// `UsableBytes`, versions 4+.
    pub usable_bytes: i64,
    /// `IsCordoned`, versions 5+.
    pub is_cordoned: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeLogDirsResult {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            log_dir: Default::default(),
            topics: Default::default(),
            total_bytes: -1,
            usable_bytes: -1,
            is_cordoned: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeLogDirsResult {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 5),
        Field::new("LogDir", Kind::Text, 1, 5),
        Field::new("Topics", Kind::Array(&Kind::Struct(DescribeLogDirsTopic::FIELDS)), 1, 5),
        Field::new("TotalBytes", Kind::Fixed(8), 4, 5),
        Field::new("UsableBytes", Kind::Fixed(8), 4, 5),
        Field::new("IsCordoned", Kind::Fixed(1), 5, 5),
    ];
}

impl FromWire for DescribeLogDirsResult {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.log_dir = r.string(f)?;
        m.topics = r.array(v, f)?;
        if v >= 4 {
            m.total_bytes = r.i64()?;
        }
        if v >= 4 {
            m.usable_bytes = r.i64()?;
        }
        if v >= 5 {
            m.is_cordoned = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeLogDirsResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.string(&self.log_dir, f)?;
        w.array(&self.topics, v, f)?;
        if v >= 4 {
            w.i64(self.total_bytes);
        }
        if v >= 4 {
            w.i64(self.usable_bytes);
        }
        if v >= 5 {
            w.bool(self.is_cordoned);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeLogDirsResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeLogDirsResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.log_dir = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if v >= 4 {
            m.total_bytes = Random::random(g, v, f);
        }
        if v >= 4 {
            m.usable_bytes = Random::random(g, v, f);
        }
        if v >= 5 {
            m.is_cordoned = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeLogDirsTopic` of `DescribeLogDirsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeLogDirsTopic {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<DescribeLogDirsPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeLogDirsTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 5).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(DescribeLogDirsPartition::FIELDS)),
            1,
            5,
        ),
    ];
}

impl FromWire for DescribeLogDirsTopic {
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

impl ToWire for DescribeLogDirsTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeLogDirsTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeLogDirsTopic {
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

/// `DescribeLogDirsPartition` of `DescribeLogDirsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeLogDirsPartition {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `PartitionSize`, versions 1+.
    pub partition_size: i64,
    /// `OffsetLag`, versions 1+.
    pub offset_lag: i64,
    /// `IsFutureKey`, versions 1+.
    pub is_future_key: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeLogDirsPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 5),
        Field::new("PartitionSize", Kind::Fixed(8), 1, 5),
        Field::new("OffsetLag", Kind::Fixed(8), 1, 5),
        Field::new("IsFutureKey", Kind::Fixed(1), 1, 5),
    ];
}

impl FromWire for DescribeLogDirsPartition {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.partition_size = r.i64()?;
        m.offset_lag = r.i64()?;
        m.is_future_key = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeLogDirsPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.partition_size);
        w.i64(self.offset_lag);
        w.bool(self.is_future_key);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeLogDirsPartition.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeLogDirsPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.partition_size = Random::random(g, v, f);
        m.offset_lag = Random::random(g, v, f);
        m.is_future_key = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeLogDirsResponse {
    const NAME: &'static str = "DescribeLogDirsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 5);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for DescribeLogDirsResponse {
    const KEY: ApiKey = ApiKey::DescribeLogDirs;
}
