//! `ListTransactionsRequest`, versions 0-2, API key 66.

use super::prelude::*;

/// `ListTransactionsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListTransactionsRequest {
    /// `StateFilters`, versions 0+.
    pub state_filters: Vec<String>,
    /// `ProducerIdFilters`, versions 0+.
    pub producer_id_filters: Vec<i64>,
    /// `DurationFilter`, versions 1+.
    pub duration_filter: i64,
    /// `TransactionalIdPattern`, versions 2+, null in versions 2+.
    pub transactional_id_pattern: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ListTransactionsRequest {
    fn default() -> Self {
        Self {
            state_filters: Default::default(),
            producer_id_filters: Default::default(),
            duration_filter: -1,
            transactional_id_pattern: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ListTransactionsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("StateFilters", Kind::Array(&Kind::Text), 0, 2),
        Field::new("ProducerIdFilters", Kind::Array(&Kind::Fixed(8)), 0, 2),
        Field::new("DurationFilter", Kind::Fixed(8), 1, 2),
        Field::new("TransactionalIdPattern", Kind::Text, 2, 2).nullable(2, 2),
    ];
}

impl FromWire for ListTransactionsRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.state_filters = r.array(v, f)?;
        m.producer_id_filters = r.array(v, f)?;
        if v >= 1 {
            m.duration_filter = r.i64()?;
        }
        if v >= 2 {
            m.transactional_id_pattern = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListTransactionsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.state_filters, v, f)?;
        w.array(&self.producer_id_filters, v, f)?;
        if v >= 1 {
            w.i64(self.duration_filter);
        } else if self.duration_filter != -1 {
            return Err(EncodeError::absent("ListTransactionsRequest.DurationFilter", v));
        }
        if v >= 2 {
            w.nullable_string(
                self.transactional_id_pattern.as_deref(),
                f,
                true,
                "TransactionalIdPattern",
            )?;
        } else if self.transactional_id_pattern.is_some() {
            return Err(EncodeError::absent("ListTransactionsRequest.TransactionalIdPattern", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListTransactionsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.state_filters = Random::random(g, v, f);
        m.producer_id_filters = Random::random(g, v, f);
        if v >= 1 {
            m.duration_filter = Random::random(g, v, f);
        }
        if v >= 2 {
            m.transactional_id_pattern = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListTransactionsRequest {
    const NAME: &'static str = "ListTransactionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for ListTransactionsRequest {
    const KEY: ApiKey = ApiKey::ListTransactions;
    type Response = super::ListTransactionsResponse;
}
