//! `AlterConfigsRequest`, versions 0-2, API key 33.

use super::prelude::*;

/// `AlterConfigsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterConfigsRequest {
    /// `Resources`, versions 0+.
    pub resources: Vec<AlterConfigsResource>,
    /// `ValidateOnly`, versions 0+.
    pub validate_only: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterConfigsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Resources", Kind::Array(&Kind::Struct(AlterConfigsResource::FIELDS)), 0, 2),
        Field::new("ValidateOnly", Kind::Fixed(1), 0, 2),
    ];
}

impl FromWire for AlterConfigsRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resources = r.array(v, f)?;
        m.validate_only = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterConfigsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.resources, v, f)?;
        w.bool(self.validate_only);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterConfigsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterConfigsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resources = Random::random(g, v, f);
        m.validate_only = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AlterConfigsResource` of `AlterConfigsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterConfigsResource {
    /// `ResourceType`, versions 0+.
    pub resource_type: i8,
    /// `ResourceName`, versions 0+.
    pub resource_name: String,
    /// `Configs`, versions 0+.
    pub configs: Vec<AlterableConfig>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterConfigsResource {
    const FIELDS: &'static [Field] = &[
        Field::new("ResourceType", Kind::Fixed(1), 0, 2),
        Field::new("ResourceName", Kind::Text, 0, 2),
        Field::new("Configs", Kind::Array(&Kind::Struct(AlterableConfig::FIELDS)), 0, 2),
    ];
}

impl FromWire for AlterConfigsResource {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        m.configs = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterConfigsResource {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        w.array(&self.configs, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterConfigsResource.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterConfigsResource {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        m.configs = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AlterableConfig` of `AlterConfigsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterableConfig {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Value`, versions 0+, null in versions 0+.
    pub value: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AlterableConfig {
    fn default() -> Self {
        Self {
            name: Default::default(),
            value: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AlterableConfig {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 2),
        Field::new("Value", Kind::Text, 0, 2).nullable(0, 2),
    ];
}

impl FromWire for AlterableConfig {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.value = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterableConfig {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.nullable_string(self.value.as_deref(), f, true, "Value")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterableConfig.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterableConfig {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.value = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterConfigsRequest {
    const NAME: &'static str = "AlterConfigsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for AlterConfigsRequest {
    const KEY: ApiKey = ApiKey::AlterConfigs;
    type Response = super::AlterConfigsResponse;
}
