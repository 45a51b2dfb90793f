//! `EndTxnMarker`, versions 0-0.

use super::prelude::*;

/// `EndTxnMarker`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EndTxnMarker {
    /// `CoordinatorEpoch`, versions 0+.
    pub coordinator_epoch: i32,
}

impl Structure for EndTxnMarker {
    const FIELDS: &'static [Field] = &[Field::new("CoordinatorEpoch", Kind::Fixed(4), 0, 0)];
}

impl FromWire for EndTxnMarker {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.coordinator_epoch = r.i32()?;
        Ok(m)
    }
}

impl ToWire for EndTxnMarker {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.coordinator_epoch);
        Ok(())
    }
}

#[cfg(test)]
impl Random for EndTxnMarker {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.coordinator_epoch = Random::random(g, v, f);
        m
    }
}

impl Message for EndTxnMarker {
    const NAME: &'static str = "EndTxnMarker";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}
