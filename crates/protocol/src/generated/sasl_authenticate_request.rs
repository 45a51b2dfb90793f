//! `SaslAuthenticateRequest`, versions 0-2, API key 36.

use super::prelude::*;

/// `SaslAuthenticateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SaslAuthenticateRequest {
    /// `AuthBytes`, versions 0+.
    pub auth_bytes: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SaslAuthenticateRequest {
    const FIELDS: &'static [Field] = &[Field::new("AuthBytes", Kind::Bytes, 0, 2)];
}

impl FromWire for SaslAuthenticateRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.auth_bytes = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SaslAuthenticateRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.bytes(&self.auth_bytes, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("SaslAuthenticateRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SaslAuthenticateRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.auth_bytes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for SaslAuthenticateRequest {
    const NAME: &'static str = "SaslAuthenticateRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for SaslAuthenticateRequest {
    const KEY: ApiKey = ApiKey::SaslAuthenticate;
    type Response = super::SaslAuthenticateResponse;
}
