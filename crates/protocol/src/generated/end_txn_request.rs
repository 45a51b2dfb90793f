//! `EndTxnRequest`, versions 0-5, API key 26.

use super::prelude::*;

/// `EndTxnRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EndTxnRequest {
    /// `TransactionalId`, versions 0+.
    pub transactional_id: String,
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 0+.
    pub producer_epoch: i16,
    /// `Committed`, versions 0+.
    pub committed: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for EndTxnRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 0, 5).of(Entity::TransactionalId),
        Field::new("ProducerId", Kind::Fixed(8), 0, 5),
        Field::new("ProducerEpoch", Kind::Fixed(2), 0, 5),
        Field::new("Committed", Kind::Fixed(1), 0, 5),
    ];
}

impl FromWire for EndTxnRequest {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.string(f)?;
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        m.committed = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EndTxnRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.transactional_id, f)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.bool(self.committed);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("EndTxnRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EndTxnRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        m.committed = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for EndTxnRequest {
    const NAME: &'static str = "EndTxnRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for EndTxnRequest {
    const KEY: ApiKey = ApiKey::EndTxn;
    type Response = super::EndTxnResponse;
}
