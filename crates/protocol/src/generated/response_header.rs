//! `ResponseHeader`, versions 0-1.

use super::prelude::*;

/// `ResponseHeader`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ResponseHeader {
    /// `CorrelationId`, versions 0+.
    pub correlation_id: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ResponseHeader {
    const FIELDS: &'static [Field] = &[Field::new("CorrelationId", Kind::Fixed(4), 0, 1)];
}

impl FromWire for ResponseHeader {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.correlation_id = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ResponseHeader {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.correlation_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ResponseHeader.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ResponseHeader {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.correlation_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ResponseHeader {
    const NAME: &'static str = "ResponseHeader";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}
