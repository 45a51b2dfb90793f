//! `ApiVersionsResponse`, versions 0-5, API key 18.

use super::prelude::*;

/// `ApiVersionsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiVersionsResponse {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ApiKeys`, versions 0+.
    pub api_keys: Vec<ApiVersion>,
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `SupportedFeatures`, versions 3+, tag 0.
    pub supported_features: Vec<SupportedFeatureKey>,
    /// `FinalizedFeaturesEpoch`, versions 3+, tag 1.
    pub finalized_features_epoch: i64,
    /// `FinalizedFeatures`, versions 3+, tag 2.
    pub finalized_features: Vec<FinalizedFeatureKey>,
    /// `ZkMigrationReady`, versions 3+, tag 3.
    pub zk_migration_ready: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ApiVersionsResponse {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            api_keys: Default::default(),
            throttle_time_ms: Default::default(),
            supported_features: Default::default(),
            finalized_features_epoch: -1,
            finalized_features: Default::default(),
            zk_migration_ready: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ApiVersionsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 5),
        Field::new("ApiKeys", Kind::Array(&Kind::Struct(ApiVersion::FIELDS)), 0, 5),
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 5),
        Field::new(
            "SupportedFeatures",
            Kind::Array(&Kind::Struct(SupportedFeatureKey::FIELDS)),
            3,
            5,
        )
        .tagged(0),
        Field::new("FinalizedFeaturesEpoch", Kind::Fixed(8), 3, 5).tagged(1),
        Field::new(
            "FinalizedFeatures",
            Kind::Array(&Kind::Struct(FinalizedFeatureKey::FIELDS)),
            3,
            5,
        )
        .tagged(2),
        Field::new("ZkMigrationReady", Kind::Fixed(1), 3, 5).tagged(3),
    ];
}

impl FromWire for ApiVersionsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.api_keys = r.array(v, f)?;
        if v >= 1 {
            m.throttle_time_ms = r.i32()?;
        }
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.supported_features = r.array(v, f)?,
                    1 => m.finalized_features_epoch = r.i64()?,
                    2 => m.finalized_features = r.array(v, f)?,
                    3 => m.zk_migration_ready = r.bool()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for ApiVersionsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.array(&self.api_keys, v, f)?;
        if v >= 1 {
            w.i32(self.throttle_time_ms);
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if !self.supported_features.is_empty() {
                tags.field(0, |w| w.array(&self.supported_features, v, f))?;
            }
            if self.finalized_features_epoch != -1 {
                tags.field(1, |w| {
                    w.i64(self.finalized_features_epoch);
                    Ok(())
                })?;
            }
            if !self.finalized_features.is_empty() {
                tags.field(2, |w| w.array(&self.finalized_features, v, f))?;
            }
            if self.zk_migration_ready {
                tags.field(3, |w| {
                    w.bool(self.zk_migration_ready);
                    Ok(())
                })?;
            }
            tags.finish()?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ApiVersionsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ApiVersionsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.api_keys = Random::random(g, v, f);
        if v >= 1 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        if v >= 3 {
            m.supported_features = Random::random(g, v, f);
        }
        if v >= 3 {
            m.finalized_features_epoch = Random::random(g, v, f);
        }
        if v >= 3 {
            m.finalized_features = Random::random(g, v, f);
        }
        if v >= 3 {
            m.zk_migration_ready = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ApiVersion` of `ApiVersionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ApiVersion {
    /// `ApiKey`, versions 0+.
    pub api_key: i16,
    /// `MinVersion`, versions 0+.
    pub min_version: i16,
    /// `MaxVersion`, versions 0+.
    pub max_version: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ApiVersion {
    const FIELDS: &'static [Field] = &[
        Field::new("ApiKey", Kind::Fixed(2), 0, 5),
        Field::new("MinVersion", Kind::Fixed(2), 0, 5),
        Field::new("MaxVersion", Kind::Fixed(2), 0, 5),
    ];
}

impl FromWire for ApiVersion {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.api_key = r.i16()?;
        m.min_version = r.i16()?;
        m.max_version = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ApiVersion {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.api_key);
        w.i16(self.min_version);
        w.i16(self.max_version);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ApiVersion.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ApiVersion {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.api_key = Random::random(g, v, f);
        m.min_version = Random::random(g, v, f);
        m.max_version = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `SupportedFeatureKey` of `ApiVersionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SupportedFeatureKey {
    /// `Name`, versions 3+.
    pub name: String,
    /// `MinVersion`, versions 3+.
    pub min_version: i16,
    /// `MaxVersion`, versions 3+.
    pub max_version: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SupportedFeatureKey {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 3, 5),
        Field::new("MinVersion", Kind::Fixed(2), 3, 5),
        Field::new("MaxVersion", Kind::Fixed(2), 3, 5),
    ];
}

impl FromWire for SupportedFeatureKey {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.min_version = r.i16()?;
        m.max_version = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SupportedFeatureKey {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i16(self.min_version);
        w.i16(self.max_version);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SupportedFeatureKey {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.min_version = Random::random(g, v, f);
        m.max_version = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `FinalizedFeatureKey` of `ApiVersionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FinalizedFeatureKey {
    /// `Name`, versions 3+.
    pub name: String,
    /// `MaxVersionLevel`, versions 3+.
    pub max_version_level: i16,
    /// `MinVersionLevel`, versions 3+.
    pub min_version_level: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for FinalizedFeatureKey {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 3, 5),
        Field::new("MaxVersionLevel", Kind::Fixed(2), 3, 5),
        Field::new("MinVersionLevel", Kind::Fixed(2), 3, 5),
    ];
}

impl FromWire for FinalizedFeatureKey {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.max_version_level = r.i16()?;
        m.min_version_level = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for FinalizedFeatureKey {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i16(self.max_version_level);
        w.i16(self.min_version_level);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FinalizedFeatureKey {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.max_version_level = Random::random(g, v, f);
        m.min_version_level = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ApiVersionsResponse {
    const NAME: &'static str = "ApiVersionsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Response for ApiVersionsResponse {
    const KEY: ApiKey = ApiKey::ApiVersions;
}
