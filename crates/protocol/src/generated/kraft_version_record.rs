//! `KRaftVersionRecord`, versions 0-0.

use super::prelude::*;

/// `KRaftVersionRecord`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct KRaftVersionRecord {
    /// `Version`, versions 0+.
    pub version: i16,
    /// `KRaftVersion`, versions 0+.
    pub kraft_version: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for KRaftVersionRecord {
    const FIELDS: &'static [Field] = &[
        Field::new("Version", Kind::Fixed(2), 0, 0),
        Field::new("KRaftVersion", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for KRaftVersionRecord {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.version = r.i16()?;
        m.kraft_version = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for KRaftVersionRecord {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.version);
        w.i16(self.kraft_version);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for KRaftVersionRecord {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.version = Random::random(g, v, f);
        m.kraft_version = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for KRaftVersionRecord {
    const NAME: &'static str = "KRaftVersionRecord";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}
