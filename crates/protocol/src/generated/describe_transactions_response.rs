//! `DescribeTransactionsResponse`, versions 0-0, API key 65.

use super::prelude::*;

/// `DescribeTransactionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeTransactionsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `TransactionStates`, versions 0+.
    pub transaction_states: Vec<TransactionState>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeTransactionsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("TransactionStates", Kind::Array(&Kind::Struct(TransactionState::FIELDS)), 0, 0),
    ];
}

impl FromWire for DescribeTransactionsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.transaction_states = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeTransactionsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.transaction_states, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeTransactionsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.transaction_states = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TransactionState` of `DescribeTransactionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactionState {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `TransactionalId`, versions 0+.
    pub transactional_id: String,
    /// `TransactionState`, versions 0+.
    pub transaction_state: String,
    /// `TransactionTimeoutMs`, versions 0+.
    pub transaction_timeout_ms: i32,
    /// `TransactionStartTimeMs`, versions 0+.
    pub transaction_start_time_ms: i64,
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 0+.
    pub producer_epoch: i16,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TransactionState {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("TransactionalId", Kind::Text, 0, 0).of(Entity::TransactionalId),
        Field::new("TransactionState", Kind::Text, 0, 0),
        Field::new("TransactionTimeoutMs", Kind::Fixed(4), 0, 0),
        Field::new("TransactionStartTimeMs", Kind::Fixed(8), 0, 0),
        Field::new("ProducerId", Kind::Fixed(8), 0, 0),
        Field::new("ProducerEpoch", Kind::Fixed(2), 0, 0),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 0, 0),
    ];
}

impl FromWire for TransactionState {
    const SIZE_MIN: usize = 28;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.transactional_id = r.string(f)?;
        m.transaction_state = r.string(f)?;
        m.transaction_timeout_ms = r.i32()?;
        m.transaction_start_time_ms = r.i64()?;
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TransactionState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.string(&self.transactional_id, f)?;
        w.string(&self.transaction_state, f)?;
        w.i32(self.transaction_timeout_ms);
        w.i64(self.transaction_start_time_ms);
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TransactionState {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.transactional_id = Random::random(g, v, f);
        m.transaction_state = Random::random(g, v, f);
        m.transaction_timeout_ms = Random::random(g, v, f);
        m.transaction_start_time_ms = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `DescribeTransactionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicData {
    /// `Topic`, versions 0+.
    pub topic: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicData {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 0),
    ];
}

impl FromWire for TopicData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeTransactionsResponse {
    const NAME: &'static str = "DescribeTransactionsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeTransactionsResponse {
    const KEY: ApiKey = ApiKey::DescribeTransactions;
}
