//! `ShareGroupDescribeRequest`, versions 1-1, API key 77.

use super::prelude::*;

/// `ShareGroupDescribeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareGroupDescribeRequest {
    /// `GroupIds`, versions 1+.
    pub group_ids: Vec<String>,
    /// `IncludeAuthorizedOperations`, versions 1+.
    pub include_authorized_operations: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareGroupDescribeRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupIds", Kind::Array(&Kind::Text), 1, 1).of(Entity::GroupId),
        Field::new("IncludeAuthorizedOperations", Kind::Fixed(1), 1, 1),
    ];
}

impl FromWire for ShareGroupDescribeRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_ids = r.array(v, f)?;
        m.include_authorized_operations = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareGroupDescribeRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.group_ids, v, f)?;
        w.bool(self.include_authorized_operations);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareGroupDescribeRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_ids = Random::random(g, v, f);
        m.include_authorized_operations = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ShareGroupDescribeRequest {
    const NAME: &'static str = "ShareGroupDescribeRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for ShareGroupDescribeRequest {
    const KEY: ApiKey = ApiKey::ShareGroupDescribe;
    type Response = super::ShareGroupDescribeResponse;
}
