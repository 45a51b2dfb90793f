//! `AddOffsetsToTxnResponse`, versions 0-4, API key 25.

use super::prelude::*;

/// `AddOffsetsToTxnResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddOffsetsToTxnResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddOffsetsToTxnResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 4),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 4),
    ];
}

impl FromWire for AddOffsetsToTxnResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddOffsetsToTxnResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AddOffsetsToTxnResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddOffsetsToTxnResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AddOffsetsToTxnResponse {
    const NAME: &'static str = "AddOffsetsToTxnResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 4);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Response for AddOffsetsToTxnResponse {
    const KEY: ApiKey = ApiKey::AddOffsetsToTxn;
}
