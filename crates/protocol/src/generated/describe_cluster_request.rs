//! `DescribeClusterRequest`, versions 0-2, API key 60.

use super::prelude::*;

/// `DescribeClusterRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClusterRequest {
    /// `IncludeClusterAuthorizedOperations`, versions 0+.
    pub include_cluster_authorized_operations: bool,
    /// `EndpointType`, versions 1+.
    pub endpoint_type: i8,
    /// `IncludeFencedBrokers`, versions 2+.
    pub include_fenced_brokers: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeClusterRequest {
    fn default() -> Self {
        Self {
            include_cluster_authorized_operations: Default::default(),
            endpoint_type: 1,
            include_fenced_brokers: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeClusterRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("IncludeClusterAuthorizedOperations", Kind::Fixed(1), 0, 2),
        Field::new("EndpointType", Kind::Fixed(1), 1, 2),
        Field::new("IncludeFencedBrokers", Kind::Fixed(1), 2, 2),
    ];
}

impl FromWire for DescribeClusterRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.include_cluster_authorized_operations = r.bool()?;
        if v >= 1 {
            m.endpoint_type = r.i8()?;
        }
        if v >= 2 {
            m.include_fenced_brokers = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeClusterRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.bool(self.include_cluster_authorized_operations);
        if v >= 1 {
            w.i8(self.endpoint_type);
        } else if self.endpoint_type != 1 {
            return Err(EncodeError::absent("DescribeClusterRequest.EndpointType", v));
        }
        if v >= 2 {
            w.bool(self.include_fenced_brokers);
        } else if self.include_fenced_brokers {
            return Err(EncodeError::absent("DescribeClusterRequest.IncludeFencedBrokers", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeClusterRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.include_cluster_authorized_operations = Random::random(g, v, f);
        if v >= 1 {
            m.endpoint_type = Random::random(g, v, f);
        }
        if v >= 2 {
            m.include_fenced_brokers = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeClusterRequest {
    const NAME: &'static str = "DescribeClusterRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DescribeClusterRequest {
    const KEY: ApiKey = ApiKey::DescribeCluster;
    type Response = super::DescribeClusterResponse;
}
