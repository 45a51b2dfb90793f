//! `RequestHeader`, versions 1-2.

use super::prelude::*;

/// `RequestHeader`.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestHeader {
    /// `RequestApiKey`, versions 1+.
    pub request_api_key: i16,
    /// `RequestApiVersion`, versions 1+.
    pub request_api_version: i16,
    /// `CorrelationId`, versions 1+.
    pub correlation_id: i32,
    /// `ClientId`, versions 1+, null in versions 1+.
    pub client_id: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for RequestHeader {
    fn default() -> Self {
        Self {
            request_api_key: Default::default(),
            request_api_version: Default::default(),
            correlation_id: Default::default(),
            client_id: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for RequestHeader {
    const FIELDS: &'static [Field] = &[
        Field::new("RequestApiKey", Kind::Fixed(2), 1, 2),
        Field::new("RequestApiVersion", Kind::Fixed(2), 1, 2),
        Field::new("CorrelationId", Kind::Fixed(4), 1, 2),
        Field::new("ClientId", Kind::Text, 1, 2).nullable(1, 2).never_compact(),
    ];
}

impl FromWire for RequestHeader {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.request_api_key = r.i16()?;
        m.request_api_version = r.i16()?;
        m.correlation_id = r.i32()?;
        m.client_id = r.nullable_string(false, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for RequestHeader {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.request_api_key);
        w.i16(self.request_api_version);
        w.i32(self.correlation_id);
        w.nullable_string(self.client_id.as_deref(), false, true, "ClientId")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("RequestHeader.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for RequestHeader {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.request_api_key = Random::random(g, v, f);
        m.request_api_version = Random::random(g, v, f);
        m.correlation_id = Random::random(g, v, f);
        m.client_id = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for RequestHeader {
    const NAME: &'static str = "RequestHeader";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 2;
}
