//! `SnapshotFooterRecord`, versions 0-0.

use super::prelude::*;

/// `SnapshotFooterRecord`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SnapshotFooterRecord {
    /// `Version`, versions 0+.
    pub version: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SnapshotFooterRecord {
    const FIELDS: &'static [Field] = &[Field::new("Version", Kind::Fixed(2), 0, 0)];
}

impl FromWire for SnapshotFooterRecord {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.version = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SnapshotFooterRecord {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.version);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SnapshotFooterRecord {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.version = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for SnapshotFooterRecord {
    const NAME: &'static str = "SnapshotFooterRecord";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}
