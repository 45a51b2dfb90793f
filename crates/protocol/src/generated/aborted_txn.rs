//! `AbortedTxn`, versions 0-0.

use super::prelude::*;

/// `AbortedTxn`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AbortedTxn {
    /// `ProducerId`, versions 0+.
    pub producer_id: i64,
    /// `FirstOffset`, versions 0+.
    pub first_offset: i64,
    /// `LastOffset`, versions 0+.
    pub last_offset: i64,
    /// `LastStableOffset`, versions 0+.
    pub last_stable_offset: i64,
}

impl Structure for AbortedTxn {
    const FIELDS: &'static [Field] = &[
        Field::new("ProducerId", Kind::Fixed(8), 0, 0),
        Field::new("FirstOffset", Kind::Fixed(8), 0, 0),
        Field::new("LastOffset", Kind::Fixed(8), 0, 0),
        Field::new("LastStableOffset", Kind::Fixed(8), 0, 0),
    ];
}

impl FromWire for AbortedTxn {
    const SIZE_MIN: usize = 32;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.producer_id = r.i64()?;
        m.first_offset = r.i64()?;
        m.last_offset = r.i64()?;
        m.last_stable_offset = r.i64()?;
        Ok(m)
    }
}

impl ToWire for AbortedTxn {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.producer_id);
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.i64(self.last_stable_offset);
        Ok(())
    }
}

#[cfg(test)]
impl Random for AbortedTxn {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.producer_id = Random::random(g, v, f);
        m.first_offset = Random::random(g, v, f);
        m.last_offset = Random::random(g, v, f);
        m.last_stable_offset = Random::random(g, v, f);
        m
    }
}

impl Message for AbortedTxn {
    const NAME: &'static str = "AbortedTxn";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}
