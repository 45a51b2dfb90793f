//! `DescribeGroupsRequest`, versions 0-6, API key 15.

use super::prelude::*;

/// `DescribeGroupsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeGroupsRequest {
    /// `Groups`, versions 0+.
    pub groups: Vec<String>,
    /// `IncludeAuthorizedOperations`, versions 3+.
    pub include_authorized_operations: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeGroupsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Groups", Kind::Array(&Kind::Text), 0, 6).of(Entity::GroupId),
        Field::new("IncludeAuthorizedOperations", Kind::Fixed(1), 3, 6),
    ];
}

impl FromWire for DescribeGroupsRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.groups = r.array(v, f)?;
        if v >= 3 {
            m.include_authorized_operations = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeGroupsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.groups, v, f)?;
        if v >= 3 {
            w.bool(self.include_authorized_operations);
        } else if self.include_authorized_operations {
            return Err(EncodeError::absent(
                "DescribeGroupsRequest.IncludeAuthorizedOperations",
                v,
            ));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeGroupsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeGroupsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.groups = Random::random(g, v, f);
        if v >= 3 {
            m.include_authorized_operations = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeGroupsRequest {
    const NAME: &'static str = "DescribeGroupsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 6);
    const FLEXIBLE_FROM: i16 = 5;
}

impl Request for DescribeGroupsRequest {
    const KEY: ApiKey = ApiKey::DescribeGroups;
    type Response = super::DescribeGroupsResponse;
}
