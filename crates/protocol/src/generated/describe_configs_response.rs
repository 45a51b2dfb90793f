//! `DescribeConfigsResponse`, versions 1-4, API key 32.

use super::prelude::*;

/// `DescribeConfigsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeConfigsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `Results`, versions 1+.
    pub results: Vec<DescribeConfigsResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeConfigsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 4),
        Field::new("Results", Kind::Array(&Kind::Struct(DescribeConfigsResult::FIELDS)), 1, 4),
    ];
}

impl FromWire for DescribeConfigsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeConfigsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeConfigsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeConfigsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeConfigsResult` of `DescribeConfigsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResult {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `ResourceType`, versions 1+.
    pub resource_type: i8,
    /// `ResourceName`, versions 1+.
    pub resource_name: String,
    /// `Configs`, versions 1+.
    pub configs: Vec<DescribeConfigsResourceResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeConfigsResult {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            resource_type: Default::default(),
            resource_name: Default::default(),
            configs: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeConfigsResult {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 4),
        Field::new("ErrorMessage", Kind::Text, 1, 4).nullable(1, 4).of(Entity::Explanation),
        Field::new("ResourceType", Kind::Fixed(1), 1, 4),
        Field::new("ResourceName", Kind::Text, 1, 4),
        Field::new(
            "Configs",
            Kind::Array(&Kind::Struct(DescribeConfigsResourceResult::FIELDS)),
            1,
            4,
        ),
    ];
}

impl FromWire for DescribeConfigsResult {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.resource_type = r.i8()?;
        m.resource_name = r.string(f)?;
        m.configs = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeConfigsResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.i8(self.resource_type);
        w.string(&self.resource_name, f)?;
        w.array(&self.configs, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeConfigsResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeConfigsResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.resource_type = Random::random(g, v, f);
        m.resource_name = Random::random(g, v, f);
        m.configs = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeConfigsResourceResult` of `DescribeConfigsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResourceResult {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Value`, versions 1+, null in versions 1+.
    pub value: Option<String>,
    /// `ReadOnly`, versions 1+.
    pub read_only: bool,
    /// `ConfigSource`, versions 1+.
    pub config_source: i8,
    /// `IsSensitive`, versions 1+.
    pub is_sensitive: bool,
    /// `Synonyms`, versions 1+.
    pub synonyms: Vec<DescribeConfigsSynonym>,
    /// `ConfigType`, versions 3+.
    pub config_type: i8,
    /// `Documentation`, versions 3+, null in versions 3+.
    pub documentation: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeConfigsResourceResult {
    fn default() -> Self {
        Self {
            name: Default::default(),
            value: Some(Default::default()),
            read_only: Default::default(),
            config_source: -1,
            is_sensitive: Default::default(),
            synonyms: Default::default(),
            config_type: Default::default(),
            documentation: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeConfigsResourceResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 4),
        Field::new("Value", Kind::Text, 1, 4).nullable(1, 4),
        Field::new("ReadOnly", Kind::Fixed(1), 1, 4),
        Field::new("ConfigSource", Kind::Fixed(1), 1, 4),
        Field::new("IsSensitive", Kind::Fixed(1), 1, 4),
        Field::new("Synonyms", Kind::Array(&Kind::Struct(DescribeConfigsSynonym::FIELDS)), 1, 4),
        Field::new("ConfigType", Kind::Fixed(1), 3, 4),
        Field::new("Documentation", Kind::Text, 3, 4).nullable(3, 4),
    ];
}

impl FromWire for DescribeConfigsResourceResult {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.value = r.nullable_string(f, true)?;
        m.read_only = r.bool()?;
        m.config_source = r.i8()?;
        m.is_sensitive = r.bool()?;
        m.synonyms = r.array(v, f)?;
        if v >= 3 {
            m.config_type = r.i8()?;
        }
        if v >= 3 {
            m.documentation = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeConfigsResourceResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.nullable_string(self.value.as_deref(), f, true, "Value")?;
        w.bool(self.read_only);
        w.i8(self.config_source);
        w.bool(self.is_sensitive);
        w.array(&self.synonyms, v, f)?;
        if v >= 3 {
            w.i8(self.config_type);
        }
        if v >= 3 {
            w.nullable_string(self.documentation.as_deref(), f, true, "Documentation")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribeConfigsResourceResult.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeConfigsResourceResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.value = g.nullable(true, v, f);
        m.read_only = Random::random(g, v, f);
        m.config_source = Random::random(g, v, f);
        m.is_sensitive = Random::random(g, v, f);
        m.synonyms = Random::random(g, v, f);
        if v >= 3 {
            m.config_type = Random::random(g, v, f);
        }
        if v >= 3 {
            m.documentation = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeConfigsSynonym` of `DescribeConfigsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsSynonym {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Value`, versions 1+, null in versions 1+.
    pub value: Option<String>,
    /// `Source`, versions 1+.
    pub source: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeConfigsSynonym {
    fn default() -> Self {
        Self {
            name: Default::default(),
            value: Some(Default::default()),
            source: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeConfigsSynonym {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 4),
        Field::new("Value", Kind::Text, 1, 4).nullable(1, 4),
        Field::new("Source", Kind::Fixed(1), 1, 4),
    ];
}

impl FromWire for DescribeConfigsSynonym {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.value = r.nullable_string(f, true)?;
        m.source = r.i8()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeConfigsSynonym {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.nullable_string(self.value.as_deref(), f, true, "Value")?;
        w.i8(self.source);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeConfigsSynonym.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeConfigsSynonym {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.value = g.nullable(true, v, f);
        m.source = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeConfigsResponse {
    const NAME: &'static str = "DescribeConfigsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 4);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Response for DescribeConfigsResponse {
    const KEY: ApiKey = ApiKey::DescribeConfigs;
}
