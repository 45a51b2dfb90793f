//! `DeleteGroupsResponse`, versions 0-3, API key 42.

use super::prelude::*;

/// `DeleteGroupsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteGroupsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Results`, versions 0+.
    pub results: Vec<DeletableGroupResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteGroupsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 3),
        Field::new("Results", Kind::Array(&Kind::Struct(DeletableGroupResult::FIELDS)), 0, 3),
    ];
}

impl FromWire for DeleteGroupsResponse {
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

impl ToWire for DeleteGroupsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteGroupsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteGroupsResponse {
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

/// `DeletableGroupResult` of `DeleteGroupsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeletableGroupResult {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 3+, null in versions 3+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeletableGroupResult {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 3).of(Entity::GroupId),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 3),
        Field::new("ErrorMessage", Kind::Text, 3, 3).nullable(3, 3).of(Entity::Explanation),
    ];
}

impl FromWire for DeletableGroupResult {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.error_code = r.i16()?;
        if v >= 3 {
            m.error_message = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeletableGroupResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.i16(self.error_code);
        if v >= 3 {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeletableGroupResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeletableGroupResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        if v >= 3 {
            m.error_message = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DeleteGroupsResponse {
    const NAME: &'static str = "DeleteGroupsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for DeleteGroupsResponse {
    const KEY: ApiKey = ApiKey::DeleteGroups;
}
