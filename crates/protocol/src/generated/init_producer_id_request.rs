//! `InitProducerIdRequest`, versions 0-5, API key 22.

use super::prelude::*;

/// `InitProducerIdRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct InitProducerIdRequest {
    /// `TransactionalId`, versions 0+, null in versions 0+.
    pub transactional_id: Option<String>,
    /// `TransactionTimeoutMs`, versions 0+.
    pub transaction_timeout_ms: i32,
    /// `ProducerId`, versions 3+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 3+.
    pub producer_epoch: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for InitProducerIdRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(Default::default()),
            transaction_timeout_ms: Default::default(),
            producer_id: -1,
            producer_epoch: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for InitProducerIdRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 0, 5).nullable(0, 5).of(Entity::TransactionalId),
        Field::new("TransactionTimeoutMs", Kind::Fixed(4), 0, 5),
        Field::new("ProducerId", Kind::Fixed(8), 3, 5),
        Field::new("ProducerEpoch", Kind::Fixed(2), 3, 5),
    ];
}

impl FromWire for InitProducerIdRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.nullable_string(f, true)?;
        m.transaction_timeout_ms = r.i32()?;
        if v >= 3 {
            m.producer_id = r.i64()?;
        }
        if v >= 3 {
            m.producer_epoch = r.i16()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for InitProducerIdRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.transactional_id.as_deref(), f, true, "TransactionalId")?;
        w.i32(self.transaction_timeout_ms);
        if v >= 3 {
            w.i64(self.producer_id);
        } else if self.producer_id != -1 {
            return Err(EncodeError::absent("InitProducerIdRequest.ProducerId", v));
        }
        if v >= 3 {
            w.i16(self.producer_epoch);
        } else if self.producer_epoch != -1 {
            return Err(EncodeError::absent("InitProducerIdRequest.ProducerEpoch", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("InitProducerIdRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for InitProducerIdRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = g.nullable(true, v, f);
        m.transaction_timeout_ms = Random::random(g, v, f);
        if v >= 3 {
            m.producer_id = Random::random(g, v, f);
        }
        if v >= 3 {
            m.producer_epoch = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for InitProducerIdRequest {
    const NAME: &'static str = "InitProducerIdRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for InitProducerIdRequest {
    const KEY: ApiKey = ApiKey::InitProducerId;
    type Response = super::InitProducerIdResponse;
}
