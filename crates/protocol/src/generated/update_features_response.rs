//! `UpdateFeaturesResponse`, versions 0-2, API key 57.

use super::prelude::*;

/// `UpdateFeaturesResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateFeaturesResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Results`, versions 0-1.
    pub results: Vec<UpdatableFeatureResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for UpdateFeaturesResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            results: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for UpdateFeaturesResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 0, 2).nullable(0, 2).of(Entity::Explanation),
        Field::new("Results", Kind::Array(&Kind::Struct(UpdatableFeatureResult::FIELDS)), 0, 1),
    ];
}

impl FromWire for UpdateFeaturesResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if v <= 1 {
            m.results = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UpdateFeaturesResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if v <= 1 {
            w.array(&self.results, v, f)?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UpdateFeaturesResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if v <= 1 {
            m.results = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `UpdatableFeatureResult` of `UpdateFeaturesResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatableFeatureResult {
    /// `Feature`, versions 0-1.
    pub feature: String,
    /// `ErrorCode`, versions 0-1.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0-1, null in versions 0-1.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for UpdatableFeatureResult {
    fn default() -> Self {
        Self {
            feature: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for UpdatableFeatureResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Feature", Kind::Text, 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
    ];
}

impl FromWire for UpdatableFeatureResult {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.feature = r.string(f)?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UpdatableFeatureResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.feature, f)?;
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UpdatableFeatureResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.feature = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for UpdateFeaturesResponse {
    const NAME: &'static str = "UpdateFeaturesResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for UpdateFeaturesResponse {
    const KEY: ApiKey = ApiKey::UpdateFeatures;
}
