//! `CreateAclsRequest`, versions 1-3, API key 30.

use super::prelude::*;

/// `CreateAclsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateAclsRequest {
    /// `Creations`, versions 1+.
    pub creations: Vec<AclCreation>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreateAclsRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("Creations", Kind::Array(&Kind::Struct(AclCreation::FIELDS)), 1, 3)];
}

impl FromWire for CreateAclsRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.creations = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreateAclsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.creations, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreateAclsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreateAclsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.creations = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AclCreation` of `CreateAclsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AclCreation {
    /// `ResourceType`, versions 1+.
    pub resource_type: i8,
    /// `ResourceName`, versions 1+.
    pub resource_name: String,
    /// `ResourcePatternType`, versions 1+.
    pub resource_pattern_type: i8,
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

impl Default for AclCreation {
    fn default() -> Self {
        Self {
            resource_type: Default::default(),
            resource_name: Default::default(),
            resource_pattern_type: 3,
            principal: Default::default(),
            host: Default::default(),
            operation: Default::default(),
            permission_type: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AclCreation {
    const FIELDS: &'static [Field] = &[
        Field::new("ResourceType", Kind::Fixed(1), 1, 3),
        Field::new("ResourceName", Kind::Text, 1, 3),
        Field::new("ResourcePatternType", Kind::Fixed(1), 1, 3),
        Field::new("Principal", Kind::Text, 1, 3),
        Field::new("Host", Kind::Text, 1, 3),
        Field::new("Operation", Kind::Fixed(1), 1, 3),
        Field::new("PermissionType", Kind::Fixed(1), 1, 3),
    ];
}

impl FromWire for AclCreation {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        m.resource_pattern_type = r.i8()?;
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

impl ToWire for AclCreation {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        w.i8(self.resource_pattern_type);
        w.string(&self.principal, f)?;
        w.string(&self.host, f)?;
        w.i8(self.operation);
        w.i8(self.permission_type);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AclCreation.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AclCreation {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        m.resource_pattern_type = Random::random(g, v, f);
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

impl Message for CreateAclsRequest {
    const NAME: &'static str = "CreateAclsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for CreateAclsRequest {
    const KEY: ApiKey = ApiKey::CreateAcls;
    type Response = super::CreateAclsResponse;
}
