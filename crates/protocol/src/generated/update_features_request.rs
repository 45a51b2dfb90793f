//! `UpdateFeaturesRequest`, versions 0-2, API key 57.

use super::prelude::*;

/// `UpdateFeaturesRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateFeaturesRequest {
    /// `timeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// `FeatureUpdates`, versions 0+.
    pub feature_updates: Vec<FeatureUpdateKey>,
    /// `ValidateOnly`, versions 1+.
    pub validate_only: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for UpdateFeaturesRequest {
    fn default() -> Self {
        Self {
            timeout_ms: 60000,
            feature_updates: Default::default(),
            validate_only: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for UpdateFeaturesRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("timeoutMs", Kind::Fixed(4), 0, 2),
        Field::new("FeatureUpdates", Kind::Array(&Kind::Struct(FeatureUpdateKey::FIELDS)), 0, 2),
        Field::new("ValidateOnly", Kind::Fixed(1), 1, 2),
    ];
}

impl FromWire for UpdateFeaturesRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.timeout_ms = r.i32()?;
        m.feature_updates = r.array(v, f)?;
        if v >= 1 {
            m.validate_only = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UpdateFeaturesRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.timeout_ms);
        w.array(&self.feature_updates, v, f)?;
        if v >= 1 {
            w.bool(self.validate_only);
        } else if self.validate_only {
            return Err(EncodeError::absent("UpdateFeaturesRequest.ValidateOnly", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UpdateFeaturesRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.timeout_ms = Random::random(g, v, f);
        m.feature_updates = Random::random(g, v, f);
        if v >= 1 {
            m.validate_only = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `FeatureUpdateKey` of `UpdateFeaturesRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureUpdateKey {
    /// `Feature`, versions 0+.
    pub feature: String,
    /// `MaxVersionLevel`, versions 0+.
    pub max_version_level: i16,
    /// `AllowDowngrade`, version 0.
    pub allow_downgrade: bool,
    /// `UpgradeType`, versions 1+.
    pub upgrade_type: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for FeatureUpdateKey {
    fn default() -> Self {
        Self {
            feature: Default::default(),
            max_version_level: Default::default(),
            allow_downgrade: Default::default(),
            upgrade_type: 1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for FeatureUpdateKey {
    const FIELDS: &'static [Field] = &[
        Field::new("Feature", Kind::Text, 0, 2),
        Field::new("MaxVersionLevel", Kind::Fixed(2), 0, 2),
        Field::new("AllowDowngrade", Kind::Fixed(1), 0, 0),
        Field::new("UpgradeType", Kind::Fixed(1), 1, 2),
    ];
}

impl FromWire for FeatureUpdateKey {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.feature = r.string(f)?;
        m.max_version_level = r.i16()?;
        if v <= 0 {
            m.allow_downgrade = r.bool()?;
        }
        if v >= 1 {
            m.upgrade_type = r.i8()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for FeatureUpdateKey {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.feature, f)?;
        w.i16(self.max_version_level);
        if v <= 0 {
            w.bool(self.allow_downgrade);
        } else if self.allow_downgrade {
            return Err(EncodeError::absent("FeatureUpdateKey.AllowDowngrade", v));
        }
        if v >= 1 {
            w.i8(self.upgrade_type);
        } else if self.upgrade_type != 1 {
            return Err(EncodeError::absent("FeatureUpdateKey.UpgradeType", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FeatureUpdateKey {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.feature = Random::random(g, v, f);
        m.max_version_level = Random::random(g, v, f);
        if v <= 0 {
            m.allow_downgrade = Random::random(g, v, f);
        }
        if v >= 1 {
            m.upgrade_type = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for UpdateFeaturesRequest {
    const NAME: &'static str = "UpdateFeaturesRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for UpdateFeaturesRequest {
    const KEY: ApiKey = ApiKey::UpdateFeatures;
    type Response = super::UpdateFeaturesResponse;
}
