//! `InitProducerIdResponse`, versions 0-6, API key 22.

use super::prelude::*;

/// `InitProducerIdResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct InitProducerIdResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 0+.
    pub producer_epoch: i16,
    /// `OngoingTxnProducerId`, versions 6+.
    pub ongoing_txn_producer_id: i64,
    /// `OngoingTxnProducerEpoch`, versions 6+.
    pub ongoing_txn_producer_epoch: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for InitProducerIdResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            producer_id: -1,
            producer_epoch: Default::default(),
            ongoing_txn_producer_id: -1,
            ongoing_txn_producer_epoch: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for InitProducerIdResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 6),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 6),
        Field::new("ProducerId", Kind::Fixed(8), 0, 6),
        Field::new("ProducerEpoch", Kind::Fixed(2), 0, 6),
        Field::new("OngoingTxnProducerId", Kind::Fixed(8), 6, 6),
        Field::new("OngoingTxnProducerEpoch", Kind::Fixed(2), 6, 6),
    ];
}

impl FromWire for InitProducerIdResponse {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        if v >= 6 {
            m.ongoing_txn_producer_id = r.i64()?;
        }
        if v >= 6 {
            m.ongoing_txn_producer_epoch = r.i16()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for InitProducerIdResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        if v >= 6 {
            w.i64(self.ongoing_txn_producer_id);
        } else if self.ongoing_txn_producer_id != -1 {
            return Err(EncodeError::absent("InitProducerIdResponse.OngoingTxnProducerId", v));
        }
        if v >= 6 {
            w.i16(self.ongoing_txn_producer_epoch);
        } else if self.ongoing_txn_producer_epoch != -1 {
            return Err(EncodeError::absent("InitProducerIdResponse.OngoingTxnProducerEpoch", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("InitProducerIdResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for InitProducerIdResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        if v >= 6 {
            m.ongoing_txn_producer_id = Random::random(g, v, f);
        }
        if v >= 6 {
            m.ongoing_txn_producer_epoch = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for InitProducerIdResponse {
    const NAME: &'static str = "InitProducerIdResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 6);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for InitProducerIdResponse {
    const KEY: ApiKey = ApiKey::InitProducerId;
}
