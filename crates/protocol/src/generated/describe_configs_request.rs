//! `DescribeConfigsRequest`, versions 1-4, API key 32.

use super::prelude::*;

/// `DescribeConfigsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeConfigsRequest {
    /// `Resources`, versions 1+.
    pub resources: Vec<DescribeConfigsResource>,
    /// `IncludeSynonyms`, versions 1+.
    pub include_synonyms: bool,
    /// `IncludeDocumentation`, versions 3+.
    pub include_documentation: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeConfigsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Resources", Kind::Array(&Kind::Struct(DescribeConfigsResource::FIELDS)), 1, 4),
        Field::new("IncludeSynonyms", Kind::Fixed(1), 1, 4),
        Field::new("IncludeDocumentation", Kind::Fixed(1), 3, 4),
    ];
}

impl FromWire for DescribeConfigsRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resources = r.array(v, f)?;
        m.include_synonyms = r.bool()?;
        if v >= 3 {
            m.include_documentation = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeConfigsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.resources, v, f)?;
        w.bool(self.include_synonyms);
        if v >= 3 {
            w.bool(self.include_documentation);
        } else if self.include_documentation {
            return Err(EncodeError::absent("DescribeConfigsRequest.IncludeDocumentation", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeConfigsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeConfigsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resources = Random::random(g, v, f);
        m.include_synonyms = Random::random(g, v, f);
        if v >= 3 {
            m.include_documentation = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeConfigsResource` of `DescribeConfigsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResource {
    /// `ResourceType`, versions 1+.
    pub resource_type: i8,
    /// `ResourceName`, versions 1+.
    pub resource_name: String,
    /// `ConfigurationKeys`, versions 1+, null in versions 1+.
    pub configuration_keys: Option<Vec<String>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeConfigsResource {
    fn default() -> Self {
        Self {
            resource_type: Default::default(),
            resource_name: Default::default(),
            configuration_keys: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeConfigsResource {
    const FIELDS: &'static [Field] = &[
        Field::new("ResourceType", Kind::Fixed(1), 1, 4),
        Field::new("ResourceName", Kind::Text, 1, 4),
        Field::new("ConfigurationKeys", Kind::Array(&Kind::Text), 1, 4).nullable(1, 4),
    ];
}

impl FromWire for DescribeConfigsResource {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        m.configuration_keys = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeConfigsResource {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        w.nullable_array(self.configuration_keys.as_deref(), v, f, true, "ConfigurationKeys")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeConfigsResource.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeConfigsResource {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        m.configuration_keys = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeConfigsRequest {
    const NAME: &'static str = "DescribeConfigsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 4);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Request for DescribeConfigsRequest {
    const KEY: ApiKey = ApiKey::DescribeConfigs;
    type Response = super::DescribeConfigsResponse;
}
