//! `DeleteAclsResponse`, versions 1-3, API key 31.

use super::prelude::*;

/// `DeleteAclsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteAclsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `FilterResults`, versions 1+.
    pub filter_results: Vec<DeleteAclsFilterResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteAclsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 3),
        Field::new(
            "FilterResults",
            Kind::Array(&Kind::Struct(DeleteAclsFilterResult::FIELDS)),
            1,
            3,
        ),
    ];
}

impl FromWire for DeleteAclsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.filter_results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteAclsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.filter_results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteAclsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteAclsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.filter_results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DeleteAclsFilterResult` of `DeleteAclsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteAclsFilterResult {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `MatchingAcls`, versions 1+.
    pub matching_acls: Vec<DeleteAclsMatchingAcl>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DeleteAclsFilterResult {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            matching_acls: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DeleteAclsFilterResult {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 3),
        Field::new("ErrorMessage", Kind::Text, 1, 3).nullable(1, 3).of(Entity::Explanation),
        Field::new("MatchingAcls", Kind::Array(&Kind::Struct(DeleteAclsMatchingAcl::FIELDS)), 1, 3),
    ];
}

impl FromWire for DeleteAclsFilterResult {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.matching_acls = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteAclsFilterResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.matching_acls, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteAclsFilterResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteAclsFilterResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.matching_acls = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DeleteAclsMatchingAcl` of `DeleteAclsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteAclsMatchingAcl {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `ResourceType`, versions 1+.
    pub resource_type: i8,
    /// `ResourceName`, versions 1+.
    pub resource_name: String,
    /// `PatternType`, versions 1+.
    pub pattern_type: i8,
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

impl Default for DeleteAclsMatchingAcl {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            resource_type: Default::default(),
            resource_name: Default::default(),
            pattern_type: 3,
            principal: Default::default(),
            host: Default::default(),
            operation: Default::default(),
            permission_type: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DeleteAclsMatchingAcl {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 3),
        Field::new("ErrorMessage", Kind::Text, 1, 3).nullable(1, 3).of(Entity::Explanation),
        Field::new("ResourceType", Kind::Fixed(1), 1, 3),
        Field::new("ResourceName", Kind::Text, 1, 3),
        Field::new("PatternType", Kind::Fixed(1), 1, 3),
        Field::new("Principal", Kind::Text, 1, 3),
        Field::new("Host", Kind::Text, 1, 3),
        Field::new("Operation", Kind::Fixed(1), 1, 3),
        Field::new("PermissionType", Kind::Fixed(1), 1, 3),
    ];
}

impl FromWire for DeleteAclsMatchingAcl {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        m.pattern_type = r.i8()?;
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

impl ToWire for DeleteAclsMatchingAcl {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        w.i8(self.pattern_type);
        w.string(&self.principal, f)?;
        w.string(&self.host, f)?;
        w.i8(self.operation);
        w.i8(self.permission_type);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteAclsMatchingAcl.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteAclsMatchingAcl {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        m.pattern_type = Random::random(g, v, f);
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

impl Message for DeleteAclsResponse {
    const NAME: &'static str = "DeleteAclsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for DeleteAclsResponse {
    const KEY: ApiKey = ApiKey::DeleteAcls;
}
