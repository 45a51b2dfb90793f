//! `FindCoordinatorRequest`, versions 0-6, API key 10.

use super::prelude::*;

/// `FindCoordinatorRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FindCoordinatorRequest {
    /// `Key`, versions 0-3.
    pub key: String,
    /// `KeyType`, versions 1+.
    pub key_type: i8,
    /// `CoordinatorKeys`, versions 4+.
    pub coordinator_keys: Vec<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FindCoordinatorRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Key", Kind::Text, 0, 3),
        Field::new("KeyType", Kind::Fixed(1), 1, 6),
        Field::new("CoordinatorKeys", Kind::Array(&Kind::Text), 4, 6),
    ];
}

impl FromWire for FindCoordinatorRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 3 {
            m.key = r.string(f)?;
        }
        if v >= 1 {
            m.key_type = r.i8()?;
        }
        if v >= 4 {
            m.coordinator_keys = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for FindCoordinatorRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 3 {
            w.string(&self.key, f)?;
        } else if !self.key.is_empty() {
            return Err(EncodeError::absent("FindCoordinatorRequest.Key", v));
        }
        if v >= 1 {
            w.i8(self.key_type);
        } else if self.key_type != 0 {
            return Err(EncodeError::absent("FindCoordinatorRequest.KeyType", v));
        }
        if v >= 4 {
            w.array(&self.coordinator_keys, v, f)?;
        } else if !self.coordinator_keys.is_empty() {
            return Err(EncodeError::absent("FindCoordinatorRequest.CoordinatorKeys", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("FindCoordinatorRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FindCoordinatorRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 3 {
            m.key = Random::random(g, v, f);
        }
        if v >= 1 {
            m.key_type = Random::random(g, v, f);
        }
        if v >= 4 {
            m.coordinator_keys = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for FindCoordinatorRequest {
    const NAME: &'static str = "FindCoordinatorRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 6);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for FindCoordinatorRequest {
    const KEY: ApiKey = ApiKey::FindCoordinator;
    type Response = super::FindCoordinatorResponse;
}
