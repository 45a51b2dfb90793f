//! `AddOffsetsToTxnRequest`, versions 0-4, API key 25.

use super::prelude::*;

/// `AddOffsetsToTxnRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddOffsetsToTxnRequest {
    /// `TransactionalId`, versions 0+.
    pub transactional_id: String,
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 0+.
    pub producer_epoch: i16,
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddOffsetsToTxnRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 0, 4).of(Entity::TransactionalId),
        Field::new("ProducerId", Kind::Fixed(8), 0, 4),
        Field::new("ProducerEpoch", Kind::Fixed(2), 0, 4),
        Field::new("GroupId", Kind::Text, 0, 4).of(Entity::GroupId),
    ];
}

impl FromWire for AddOffsetsToTxnRequest {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.string(f)?;
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        m.group_id = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddOffsetsToTxnRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.transactional_id, f)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.string(&self.group_id, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AddOffsetsToTxnRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddOffsetsToTxnRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        m.group_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AddOffsetsToTxnRequest {
    const NAME: &'static str = "AddOffsetsToTxnRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 4);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for AddOffsetsToTxnRequest {
    const KEY: ApiKey = ApiKey::AddOffsetsToTxn;
    type Response = super::AddOffsetsToTxnResponse;
}
