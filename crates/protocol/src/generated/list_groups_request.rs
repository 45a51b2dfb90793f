//! `ListGroupsRequest`, versions 0-5, API key 16.

use super::prelude::*;

/// `ListGroupsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListGroupsRequest {
    /// `StatesFilter`, versions 4+.
    pub states_filter: Vec<String>,
    /// `TypesFilter`, versions 5+.
    pub types_filter: Vec<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListGroupsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("StatesFilter", Kind::Array(&Kind::Text), 4, 5),
        Field::new("TypesFilter", Kind::Array(&Kind::Text), 5, 5),
    ];
}

impl FromWire for ListGroupsRequest {
    const SIZE_MIN: usize = 0;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 4 {
            m.states_filter = r.array(v, f)?;
        }
        if v >= 5 {
            m.types_filter = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListGroupsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 4 {
            w.array(&self.states_filter, v, f)?;
        } else if !self.states_filter.is_empty() {
            return Err(EncodeError::absent("ListGroupsRequest.StatesFilter", v));
        }
        if v >= 5 {
            w.array(&self.types_filter, v, f)?;
        } else if !self.types_filter.is_empty() {
            return Err(EncodeError::absent("ListGroupsRequest.TypesFilter", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListGroupsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListGroupsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 4 {
            m.states_filter = Random::random(g, v, f);
        }
        if v >= 5 {
            m.types_filter = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListGroupsRequest {
    const NAME: &'static str = "ListGroupsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for ListGroupsRequest {
    const KEY: ApiKey = ApiKey::ListGroups;
    type Response = super::ListGroupsResponse;
}
