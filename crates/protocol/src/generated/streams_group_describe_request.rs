//! `StreamsGroupDescribeRequest`, versions 0-1, API key 89.

use super::prelude::*;

/// `StreamsGroupDescribeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StreamsGroupDescribeRequest {
    /// `GroupIds`, versions 0+.
    pub group_ids: Vec<String>,
    /// `IncludeAuthorizedOperations`, versions 0+.
    pub include_authorized_operations: bool,
    /// `IncludeTopologyDescription`, versions 1+.
    pub include_topology_description: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for StreamsGroupDescribeRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupIds", Kind::Array(&Kind::Text), 0, 1).of(Entity::GroupId),
        Field::new("IncludeAuthorizedOperations", Kind::Fixed(1), 0, 1),
        Field::new("IncludeTopologyDescription", Kind::Fixed(1), 1, 1),
    ];
}

impl FromWire for StreamsGroupDescribeRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_ids = r.array(v, f)?;
        m.include_authorized_operations = r.bool()?;
        if v >= 1 {
            m.include_topology_description = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for StreamsGroupDescribeRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.group_ids, v, f)?;
        w.bool(self.include_authorized_operations);
        if v >= 1 {
            w.bool(self.include_topology_description);
        } else if self.include_topology_description {
            return Err(EncodeError::absent(
                "StreamsGroupDescribeRequest.IncludeTopologyDescription",
                v,
            ));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for StreamsGroupDescribeRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_ids = Random::random(g, v, f);
        m.include_authorized_operations = Random::random(g, v, f);
        if v >= 1 {
            m.include_topology_description = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for StreamsGroupDescribeRequest {
    const NAME: &'static str = "StreamsGroupDescribeRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for StreamsGroupDescribeRequest {
    const KEY: ApiKey = ApiKey::StreamsGroupDescribe;
    type Response = super::StreamsGroupDescribeResponse;
}
