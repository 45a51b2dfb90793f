//! `SaslAuthenticateResponse`, versions 0-2, API key 36.

use super::prelude::*;

/// `SaslAuthenticateResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct SaslAuthenticateResponse {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `AuthBytes`, versions 0+.
    pub auth_bytes: Bytes,
    /// `SessionLifetimeMs`, versions 1+.
    pub session_lifetime_ms: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for SaslAuthenticateResponse {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            auth_bytes: Default::default(),
            session_lifetime_ms: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for SaslAuthenticateResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 0, 2).nullable(0, 2).of(Entity::Explanation),
        Field::new("AuthBytes", Kind::Bytes, 0, 2),
        Field::new("SessionLifetimeMs", Kind::Fixed(8), 1, 2),
    ];
}

impl FromWire for SaslAuthenticateResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.auth_bytes = r.bytes(f)?;
        if v >= 1 {
            m.session_lifetime_ms = r.i64()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SaslAuthenticateResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.bytes(&self.auth_bytes, f)?;
        if v >= 1 {
            w.i64(self.session_lifetime_ms);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("SaslAuthenticateResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SaslAuthenticateResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.auth_bytes = Random::random(g, v, f);
        if v >= 1 {
            m.session_lifetime_ms = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for SaslAuthenticateResponse {
    const NAME: &'static str = "SaslAuthenticateResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for SaslAuthenticateResponse {
    const KEY: ApiKey = ApiKey::SaslAuthenticate;
}
