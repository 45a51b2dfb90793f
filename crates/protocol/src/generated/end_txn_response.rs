//! `EndTxnResponse`, versions 0-5, API key 26.

use super::prelude::*;

/// `EndTxnResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct EndTxnResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ProducerId`, versions 5+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 5+.
    pub producer_epoch: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for EndTxnResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            producer_id: -1,
            producer_epoch: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for EndTxnResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 5),
        Field::new("ProducerId", Kind::Fixed(8), 5, 5),
        Field::new("ProducerEpoch", Kind::Fixed(2), 5, 5),
    ];
}

impl FromWire for EndTxnResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        if v >= 5 {
            m.producer_id = r.i64()?;
        }
        if v >= 5 {
            m.producer_epoch = r.i16()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EndTxnResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        if v >= 5 {
            w.i64(self.producer_id);
        }
        if v >= 5 {
            w.i16(self.producer_epoch);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("EndTxnResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EndTxnResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        if v >= 5 {
            m.producer_id = Random::random(g, v, f);
        }
        if v >= 5 {
            m.producer_epoch = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for EndTxnResponse {
    const NAME: &'static str = "EndTxnResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Response for EndTxnResponse {
    const KEY: ApiKey = ApiKey::EndTxn;
}
