//! `EnvelopeResponse`, versions 0-0, API key 58.

use super::prelude::*;

/// `EnvelopeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EnvelopeResponse {
    /// `ResponseData`, versions 0+, null in versions 0+.
    pub response_data: Option<Bytes>,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for EnvelopeResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ResponseData", Kind::Bytes, 0, 0).nullable(0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for EnvelopeResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.response_data = r.nullable_bytes(f, true)?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EnvelopeResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_bytes(self.response_data.as_deref(), f, true, "ResponseData")?;
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EnvelopeResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.response_data = g.nullable(true, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for EnvelopeResponse {
    const NAME: &'static str = "EnvelopeResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for EnvelopeResponse {
    const KEY: ApiKey = ApiKey::Envelope;
}
