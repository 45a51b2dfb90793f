//! `ListConfigResourcesResponse`, versions 0-1, API key 74.

use super::prelude::*;

/// `ListConfigResourcesResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListConfigResourcesResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ConfigResources`, versions 0+.
    pub config_resources: Vec<ConfigResource>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListConfigResourcesResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ConfigResources", Kind::Array(&Kind::Struct(ConfigResource::FIELDS)), 0, 1),
    ];
}

impl FromWire for ListConfigResourcesResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.config_resources = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListConfigResourcesResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.array(&self.config_resources, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListConfigResourcesResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.config_resources = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ConfigResource` of `ListConfigResourcesResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigResource {
    /// `ResourceName`, versions 0+.
    pub resource_name: String,
    /// `ResourceType`, versions 1+.
    pub resource_type: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ConfigResource {
    fn default() -> Self {
        Self {
            resource_name: Default::default(),
            resource_type: 16,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ConfigResource {
    const FIELDS: &'static [Field] = &[
        Field::new("ResourceName", Kind::Text, 0, 1),
        Field::new("ResourceType", Kind::Fixed(1), 1, 1),
    ];
}

impl FromWire for ConfigResource {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.resource_name = r.string(f)?;
        if v >= 1 {
            m.resource_type = r.i8()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ConfigResource {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.resource_name, f)?;
        if v >= 1 {
            w.i8(self.resource_type);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ConfigResource {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.resource_name = Random::random(g, v, f);
        if v >= 1 {
            m.resource_type = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListConfigResourcesResponse {
    const NAME: &'static str = "ListConfigResourcesResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for ListConfigResourcesResponse {
    const KEY: ApiKey = ApiKey::ListConfigResources;
}
