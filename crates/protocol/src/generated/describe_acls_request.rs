//! `DescribeAclsRequest`, versions 1-3, API key 29.

use super::prelude::*;

/// `DescribeAclsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeAclsRequest {
    /// `ResourceTypeFilter`, versions 1+.
    pub resource_type_filter: i8,
    /// `ResourceNameFilter`, versions 1+, null in versions 1+.
    pub resource_name_filter: Option<String>,
    /// `PatternTypeFilter`, versions 1+.
    pub pattern_type_filter: i8,
    /// `PrincipalFilter`, versions 1+, null in versions 1+.
    pub principal_filter: Option<String>,
    /// `HostFilter`, versions 1+, null in versions 1+.
    pub host_filter: Option<String>,
    /// `Operation`, versions 1+.
    pub operation: i8,
    /// `PermissionType`, versions 1+.
    pub permission_type: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeAclsRequest {
    fn default() -> Self {
        Self {
            resource_type_filter: Default::default(),
            resource_name_filter: Some(Default::default()),
            pattern_type_filter: 3,
            principal_filter: Some(Default::default()),
            host_filter: Some(Default::default()),
            operation: Default::default(),
            permission_type: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeAclsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ResourceTypeFilter", Kind::Fixed(1), 1, 3),
        Field::new("ResourceNameFilter", Kind::Text, 1, 3).nullable(1, 3),
        Field::new("PatternTypeFilter", Kind::Fixed(1), 1, 3),
        Field::new("PrincipalFilter", Kind::Text, 1, 3).nullable(1, 3),
        Field::new("HostFilter", Kind::Text, 1, 3).nullable(1, 3),
        Field::new("Operation", Kind::Fixed(1), 1, 3),
        Field::new("PermissionType", Kind::Fixed(1), 1, 3),
    ];
}

impl FromWire for DescribeAclsRequest {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resource_type_filter = r.i8()?;
        m.resource_name_filter = r.nullable_string(f, true)?;
        m.pattern_type_filter = r.i8()?;
        m.principal_filter = r.nullable_string(f, true)?;
        m.host_filter = r.nullable_string(f, true)?;
        m.operation = r.i8()?;
        m.permission_type = r.i8()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeAclsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.resource_type_filter);
        w.nullable_string(self.resource_name_filter.as_deref(), f, true, "ResourceNameFilter")?;
        w.i8(self.pattern_type_filter);
        w.nullable_string(self.principal_filter.as_deref(), f, true, "PrincipalFilter")?;
        w.nullable_string(self.host_filter.as_deref(), f, true, "HostFilter")?;
        w.i8(self.operation);
        w.i8(self.permission_type);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeAclsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeAclsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resource_type_filter = Random::random(g, v, f);
        m.resource_name_filter = g.nullable(true, v, f);
        m.pattern_type_filter = Random::random(g, v, f);
        m.principal_filter = g.nullable(true, v, f);
        m.host_filter = g.nullable(true, v, f);
        m.operation = Random::random(g, v, f);
        m.permission_type = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeAclsRequest {
    const NAME: &'static str = "DescribeAclsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for DescribeAclsRequest {
    const KEY: ApiKey = ApiKey::DescribeAcls;
    type Response = super::DescribeAclsResponse;
}
