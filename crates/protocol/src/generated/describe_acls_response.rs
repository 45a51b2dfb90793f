//! `DescribeAclsResponse`, versions 1-3, API key 29.

use super::prelude::*;

/// `DescribeAclsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeAclsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `Resources`, versions 1+.
    pub resources: Vec<DescribeAclsResource>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeAclsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            resources: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeAclsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 3),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 3),
        Field::new("ErrorMessage", Kind::Text, 1, 3).nullable(1, 3).of(Entity::Explanation),
        Field::new("Resources", Kind::Array(&Kind::Struct(DescribeAclsResource::FIELDS)), 1, 3),
    ];
}

impl FromWire for DescribeAclsResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.resources = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeAclsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.resources, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeAclsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeAclsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.resources = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeAclsResource` of `DescribeAclsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeAclsResource {
    /// `ResourceType`, versions 1+.
    pub resource_type: i8,
    /// `ResourceName`, versions 1+.
    pub resource_name: String,
    /// `PatternType`, versions 1+.
    pub pattern_type: i8,
    /// `Acls`, versions 1+.
    pub acls: Vec<AclDescription>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeAclsResource {
    fn default() -> Self {
        Self {
            resource_type: Default::default(),
            resource_name: Default::default(),
            pattern_type: 3,
            acls: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeAclsResource {
    const FIELDS: &'static [Field] = &[
        Field::new("ResourceType", Kind::Fixed(1), 1, 3),
        Field::new("ResourceName", Kind::Text, 1, 3),
        Field::new("PatternType", Kind::Fixed(1), 1, 3),
        Field::new("Acls", Kind::Array(&Kind::Struct(AclDescription::FIELDS)), 1, 3),
    ];
}

impl FromWire for DescribeAclsResource {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        m.pattern_type = r.i8()?;
        m.acls = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeAclsResource {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        w.i8(self.pattern_type);
        w.array(&self.acls, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeAclsResource.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeAclsResource {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        m.pattern_type = Random::random(g, v, f);
        m.acls = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AclDescription` of `DescribeAclsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AclDescription {
    /// `Principal`, versions 1+.
    pub principal: String,
    /// `Host`, versions 1+.
    pub host: String,
    /// `Operation`, versions 1+.
    pub operation: i8,
    /// `PermissionType`, versions 1+.
    pub permission_type: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AclDescription {
    const FIELDS: &'static [Field] = &[
        Field::new("Principal", Kind::Text, 1, 3),
        Field::new("Host", Kind::Text, 1, 3),
        Field::new("Operation", Kind::Fixed(1), 1, 3),
        Field::new("PermissionType", Kind::Fixed(1), 1, 3),
    ];
}

impl FromWire for AclDescription {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.principal = r.string(f)?;
        m.host = r.string(f)?;
        m.operation = r.i8()?;
        m.permission_type = r.i8()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AclDescription {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.principal, f)?;
        w.string(&self.host, f)?;
        w.i8(self.operation);
        w.i8(self.permission_type);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AclDescription.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AclDescription {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.principal = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.operation = Random::random(g, v, f);
        m.permission_type = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeAclsResponse {
    const NAME: &'static str = "DescribeAclsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for DescribeAclsResponse {
    const KEY: ApiKey = ApiKey::DescribeAcls;
}
