//! `SnapshotHeaderRecord`, versions 0-0.

use super::prelude::*;

/// `SnapshotHeaderRecord`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SnapshotHeaderRecord {
    /// `Version`, versions 0+.
    pub version: i16,
    /// `LastContainedLogTimestamp`, versions 0+.
    pub last_contained_log_timestamp: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SnapshotHeaderRecord {
    const FIELDS: &'static [Field] = &[
        Field::new("Version", Kind::Fixed(2), 0, 0),
        Field::new("LastContainedLogTimestamp", Kind::Fixed(8), 0, 0),
    ];
}

impl FromWire for SnapshotHeaderRecord {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.version = r.i16()?;
        m.last_contained_log_timestamp = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SnapshotHeaderRecord {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.version);
        w.i64(self.last_contained_log_timestamp);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SnapshotHeaderRecord {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.version = Random::random(g, v, f);
        m.last_contained_log_timestamp = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for SnapshotHeaderRecord {
    const NAME: &'static str = "SnapshotHeaderRecord";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}
