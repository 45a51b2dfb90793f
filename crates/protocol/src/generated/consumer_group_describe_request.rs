//! `ConsumerGroupDescribeRequest`, versions 0-1, API key 69.

use super::prelude::*;

/// `ConsumerGroupDescribeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ConsumerGroupDescribeRequest {
    /// `GroupIds`, versions 0+.
    pub group_ids: Vec<String>,
    /// `IncludeAuthorizedOperations`, versions 0+.
    pub include_authorized_operations: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ConsumerGroupDescribeRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupIds", Kind::Array(&Kind::Text), 0, 1).of(Entity::GroupId),
        Field::new("IncludeAuthorizedOperations", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for ConsumerGroupDescribeRequest {
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

impl ToWire for ConsumerGroupDescribeRequest {
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
impl Random for ConsumerGroupDescribeRequest {
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

impl Message for ConsumerGroupDescribeRequest {
    const NAME: &'static str = "ConsumerGroupDescribeRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for ConsumerGroupDescribeRequest {
    const KEY: ApiKey = ApiKey::ConsumerGroupDescribe;
    type Response = super::ConsumerGroupDescribeResponse;
}
