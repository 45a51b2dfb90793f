//! `SaslHandshakeResponse`, versions 0-1, API key 17.

use super::prelude::*;

/// `SaslHandshakeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SaslHandshakeResponse {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Mechanisms`, versions 0+.
    pub mechanisms: Vec<String>,
}

impl Structure for SaslHandshakeResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("Mechanisms", Kind::Array(&Kind::Text), 0, 1),
    ];
}

impl FromWire for SaslHandshakeResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.mechanisms = r.array(v, f)?;
        Ok(m)
    }
}

impl ToWire for SaslHandshakeResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.array(&self.mechanisms, v, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for SaslHandshakeResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.mechanisms = Random::random(g, v, f);
        m
    }
}

impl Message for SaslHandshakeResponse {
    const NAME: &'static str = "SaslHandshakeResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}

impl Response for SaslHandshakeResponse {
    const KEY: ApiKey = ApiKey::SaslHandshake;
}
