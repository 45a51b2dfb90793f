//! `ListTransactionsResponse`, versions 0-2, API key 66.

use super::prelude::*;

/// `ListTransactionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListTransactionsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `UnknownStateFilters`, versions 0+.
    pub unknown_state_filters: Vec<String>,
    /// `TransactionStates`, versions 0+.
    pub transaction_states: Vec<TransactionState>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListTransactionsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("UnknownStateFilters", Kind::Array(&Kind::Text), 0, 2),
        Field::new("TransactionStates", Kind::Array(&Kind::Struct(TransactionState::FIELDS)), 0, 2),
    ];
}

impl FromWire for ListTransactionsResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.unknown_state_filters = r.array(v, f)?;
        m.transaction_states = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListTransactionsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.array(&self.unknown_state_filters, v, f)?;
        w.array(&self.transaction_states, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListTransactionsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.unknown_state_filters = Random::random(g, v, f);
        m.transaction_states = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TransactionState` of `ListTransactionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactionState {
    /// `TransactionalId`, versions 0+.
    pub transactional_id: String,
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `TransactionState`, versions 0+.
    pub transaction_state: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TransactionState {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 0, 2).of(Entity::TransactionalId),
        Field::new("ProducerId", Kind::Fixed(8), 0, 2),
        Field::new("TransactionState", Kind::Text, 0, 2),
    ];
}

impl FromWire for TransactionState {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.string(f)?;
        m.producer_id = r.i64()?;
        m.transaction_state = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TransactionState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.transactional_id, f)?;
        w.i64(self.producer_id);
        w.string(&self.transaction_state, f)?;
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
        m.transactional_id = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.transaction_state = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListTransactionsResponse {
    const NAME: &'static str = "ListTransactionsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for ListTransactionsResponse {
    const KEY: ApiKey = ApiKey::ListTransactions;
}
