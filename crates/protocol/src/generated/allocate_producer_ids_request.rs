//! `AllocateProducerIdsRequest`, versions 0-0, API key 67.

use super::prelude::*;

/// `AllocateProducerIdsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocateProducerIdsRequest {
    /// `BrokerId`, versions 0+.
    pub broker_id: i32,
    /// `BrokerEpoch`, versions 0+.
    pub broker_epoch: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AllocateProducerIdsRequest {
    fn default() -> Self {
        Self { broker_id: Default::default(), broker_epoch: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for AllocateProducerIdsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 0, 0),
        Field::new("BrokerEpoch", Kind::Fixed(8), 0, 0),
    ];
}

impl FromWire for AllocateProducerIdsRequest {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.broker_epoch = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AllocateProducerIdsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.i64(self.broker_epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AllocateProducerIdsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.broker_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AllocateProducerIdsRequest {
    const NAME: &'static str = "AllocateProducerIdsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for AllocateProducerIdsRequest {
    const KEY: ApiKey = ApiKey::AllocateProducerIds;
    type Response = super::AllocateProducerIdsResponse;
}
