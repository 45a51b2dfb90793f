//! `IncrementalAlterConfigsRequest`, versions 0-1, API key 44.

use super::prelude::*;

/// `IncrementalAlterConfigsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IncrementalAlterConfigsRequest {
    /// `Resources`, versions 0+.
    pub resources: Vec<AlterConfigsResource>,
    /// `ValidateOnly`, versions 0+.
    pub validate_only: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for IncrementalAlterConfigsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Resources", Kind::Array(&Kind::Struct(AlterConfigsResource::FIELDS)), 0, 1),
        Field::new("ValidateOnly", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for IncrementalAlterConfigsRequest {
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

impl ToWire for IncrementalAlterConfigsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.resources, v, f)?;
        w.bool(self.validate_only);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "IncrementalAlterConfigsRequest.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for IncrementalAlterConfigsRequest {
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

/// `AlterConfigsResource` of `IncrementalAlterConfigsRequest`.
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
        Field::new("ResourceType", Kind::Fixed(1), 0, 1),
        Field::new("ResourceName", Kind::Text, 0, 1),
        Field::new("Configs", Kind::Array(&Kind::Struct(AlterableConfig::FIELDS)), 0, 1),
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

/// `AlterableConfig` of `IncrementalAlterConfigsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterableConfig {
    /// `Name`, versions 0+.
    pub name: String,
    /// `ConfigOperation`, versions 0+.
    pub config_operation: i8,
    /// `Value`, versions 0+, null in versions 0+.
    pub value: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AlterableConfig {
    fn default() -> Self {
        Self {
            name: Default::default(),
            config_operation: Default::default(),
            value: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AlterableConfig {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 1),
        Field::new("ConfigOperation", Kind::Fixed(1), 0, 1),
        Field::new("Value", Kind::Text, 0, 1).nullable(0, 1),
    ];
}

impl FromWire for AlterableConfig {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.config_operation = r.i8()?;
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
        w.i8(self.config_operation);
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
        m.config_operation = Random::random(g, v, f);
        m.value = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for IncrementalAlterConfigsRequest {
    const NAME: &'static str = "IncrementalAlterConfigsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for IncrementalAlterConfigsRequest {
    const KEY: ApiKey = ApiKey::IncrementalAlterConfigs;
    type Response = super::IncrementalAlterConfigsResponse;
}
