//! `UnregisterBrokerRequest`, versions 0-0, API key 64.

use super::prelude::*;

/// `UnregisterBrokerRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UnregisterBrokerRequest {
    /// `BrokerId`, versions 0+.
    pub broker_id: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for UnregisterBrokerRequest {
    const FIELDS: &'static [Field] = &[Field::new("BrokerId", Kind::Fixed(4), 0, 0)];
}

impl FromWire for UnregisterBrokerRequest {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UnregisterBrokerRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UnregisterBrokerRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for UnregisterBrokerRequest {
    const NAME: &'static str = "UnregisterBrokerRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for UnregisterBrokerRequest {
    const KEY: ApiKey = ApiKey::UnregisterBroker;
    type Response = super::UnregisterBrokerResponse;
}
