//! `UnregisterControllerRequest`, versions 0-0, API key 94.

use super::prelude::*;

/// `UnregisterControllerRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UnregisterControllerRequest {
    /// `ControllerId`, versions 0+.
    pub controller_id: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for UnregisterControllerRequest {
    const FIELDS: &'static [Field] = &[Field::new("ControllerId", Kind::Fixed(4), 0, 0)];
}

impl FromWire for UnregisterControllerRequest {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.controller_id = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UnregisterControllerRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.controller_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UnregisterControllerRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.controller_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for UnregisterControllerRequest {
    const NAME: &'static str = "UnregisterControllerRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for UnregisterControllerRequest {
    const KEY: ApiKey = ApiKey::UnregisterController;
    type Response = super::UnregisterControllerResponse;
}
