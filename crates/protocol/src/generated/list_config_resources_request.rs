//! `ListConfigResourcesRequest`, versions 0-1, API key 74.

use super::prelude::*;

/// `ListConfigResourcesRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListConfigResourcesRequest {
    /// `ResourceTypes`, versions 1+.
    pub resource_types: Vec<i8>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListConfigResourcesRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("ResourceTypes", Kind::Array(&Kind::Fixed(1)), 1, 1)];
}

impl FromWire for ListConfigResourcesRequest {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.resource_types = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListConfigResourcesRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.array(&self.resource_types, v, f)?;
        } else if !self.resource_types.is_empty() {
            return Err(EncodeError::absent("ListConfigResourcesRequest.ResourceTypes", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListConfigResourcesRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.resource_types = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListConfigResourcesRequest {
    const NAME: &'static str = "ListConfigResourcesRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for ListConfigResourcesRequest {
    const KEY: ApiKey = ApiKey::ListConfigResources;
    type Response = super::ListConfigResourcesResponse;
}
