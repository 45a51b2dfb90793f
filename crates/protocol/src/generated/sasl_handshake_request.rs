//! `SaslHandshakeRequest`, versions 0-1, API key 17.

use super::prelude::*;

/// `SaslHandshakeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SaslHandshakeRequest {
    /// `Mechanism`, versions 0+.
    pub mechanism: String,
}

impl Structure for SaslHandshakeRequest {
    const FIELDS: &'static [Field] = &[Field::new("Mechanism", Kind::Text, 0, 1)];
}

impl FromWire for SaslHandshakeRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.mechanism = r.string(f)?;
        Ok(m)
    }
}

impl ToWire for SaslHandshakeRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.mechanism, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for SaslHandshakeRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.mechanism = Random::random(g, v, f);
        m
    }
}

impl Message for SaslHandshakeRequest {
    const NAME: &'static str = "SaslHandshakeRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}

impl Request for SaslHandshakeRequest {
    const KEY: ApiKey = ApiKey::SaslHandshake;
    type Response = super::SaslHandshakeResponse;
}
