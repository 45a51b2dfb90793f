//! `DescribeProducersResponse`, versions 0-0, API key 61.

use super::prelude::*;

/// `DescribeProducersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeProducersResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeProducersResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicResponse::FIELDS)), 0, 0),
    ];
}

impl FromWire for DescribeProducersResponse {
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

impl ToWire for DescribeProducersResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeProducersResponse {
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

/// `TopicResponse` of `DescribeProducersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicResponse {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionResponse::FIELDS)), 0, 0),
    ];
}

impl FromWire for TopicResponse {
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

impl ToWire for TopicResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicResponse {
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

/// `PartitionResponse` of `DescribeProducersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionResponse {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `ActiveProducers`, versions 0+.
    pub active_producers: Vec<ProducerState>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
        Field::new("ActiveProducers", Kind::Array(&Kind::Struct(ProducerState::FIELDS)), 0, 0),
    ];
}

impl FromWire for PartitionResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.active_producers = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.active_producers, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.active_producers = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ProducerState` of `DescribeProducersResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerState {
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 0+.
    pub producer_epoch: i32,
    /// `LastSequence`, versions 0+.
    pub last_sequence: i32,
    /// `LastTimestamp`, versions 0+.
    pub last_timestamp: i64,
    /// `CoordinatorEpoch`, versions 0+.
    pub coordinator_epoch: i32,
    /// `CurrentTxnStartOffset`, versions 0+.
    pub current_txn_start_offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ProducerState {
    fn default() -> Self {
        Self {
            producer_id: Default::default(),
            producer_epoch: Default::default(),
            last_sequence: -1,
            last_timestamp: -1,
            coordinator_epoch: Default::default(),
            current_txn_start_offset: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ProducerState {
    const FIELDS: &'static [Field] = &[
        Field::new("ProducerId", Kind::Fixed(8), 0, 0),
        Field::new("ProducerEpoch", Kind::Fixed(4), 0, 0),
        Field::new("LastSequence", Kind::Fixed(4), 0, 0),
        Field::new("LastTimestamp", Kind::Fixed(8), 0, 0),
        Field::new("CoordinatorEpoch", Kind::Fixed(4), 0, 0),
        Field::new("CurrentTxnStartOffset", Kind::Fixed(8), 0, 0),
    ];
}

impl FromWire for ProducerState {
    const SIZE_MIN: usize = 37;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i32()?;
        m.last_sequence = r.i32()?;
        m.last_timestamp = r.i64()?;
        m.coordinator_epoch = r.i32()?;
        m.current_txn_start_offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ProducerState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.producer_id);
        w.i32(self.producer_epoch);
        w.i32(self.last_sequence);
        w.i64(self.last_timestamp);
        w.i32(self.coordinator_epoch);
        w.i64(self.current_txn_start_offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ProducerState {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        m.last_sequence = Random::random(g, v, f);
        m.last_timestamp = Random::random(g, v, f);
        m.coordinator_epoch = Random::random(g, v, f);
        m.current_txn_start_offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeProducersResponse {
    const NAME: &'static str = "DescribeProducersResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeProducersResponse {
    const KEY: ApiKey = ApiKey::DescribeProducers;
}
