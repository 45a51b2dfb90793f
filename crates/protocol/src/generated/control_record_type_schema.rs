//! `ControlRecordTypeSchema`, versions 0-0.

use super::prelude::*;

/// `ControlRecordTypeSchema`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ControlRecordTypeSchema {
    /// `Type`, versions 0+.
    pub r#type: i16,
}

impl Structure for ControlRecordTypeSchema {
    const FIELDS: &'static [Field] = &[Field::new("Type", Kind::Fixed(2), 0, 0)];
}

impl FromWire for ControlRecordTypeSchema {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.r#type = r.i16()?;
        Ok(m)
    }
}

impl ToWire for ControlRecordTypeSchema {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.r#type);
        Ok(())
    }
}

#[cfg(test)]
impl Random for ControlRecordTypeSchema {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.r#type = Random::random(g, v, f);
        m
    }
}

impl Message for ControlRecordTypeSchema {
    const NAME: &'static str = "ControlRecordTypeSchema";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}
