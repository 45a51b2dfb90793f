//! `EnvelopeRequest`, versions 0-0, API key 58.

use super::prelude::*;

/// `EnvelopeRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvelopeRequest {
    /// `RequestData`, versions 0+.
    pub request_data: Bytes,
    /// `RequestPrincipal`, versions 0+, null in versions 0+.
    pub request_principal: Option<Bytes>,
    /// `ClientHostAddress`, versions 0+.
    pub client_host_address: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for EnvelopeRequest {
    fn default() -> Self {
        Self {
            request_data: Default::default(),
            request_principal: Some(Default::default()),
            client_host_address: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for EnvelopeRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("RequestData", Kind::Bytes, 0, 0),
        Field::new("RequestPrincipal", Kind::Bytes, 0, 0).nullable(0, 0),
        Field::new("ClientHostAddress", Kind::Bytes, 0, 0),
    ];
}

impl FromWire for EnvelopeRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.request_data = r.bytes(f)?;
        m.request_principal = r.nullable_bytes(f, true)?;
        m.client_host_address = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EnvelopeRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.bytes(&self.request_data, f)?;
        w.nullable_bytes(self.request_principal.as_deref(), f, true, "RequestPrincipal")?;
        w.bytes(&self.client_host_address, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EnvelopeRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.request_data = Random::random(g, v, f);
        m.request_principal = g.nullable(true, v, f);
        m.client_host_address = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for EnvelopeRequest {
    const NAME: &'static str = "EnvelopeRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for EnvelopeRequest {
    const KEY: ApiKey = ApiKey::Envelope;
    type Response = super::EnvelopeResponse;
}
