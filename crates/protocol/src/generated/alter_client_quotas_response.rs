//! `AlterClientQuotasResponse`, versions 0-1, API key 49.

use super::prelude::*;

/// `AlterClientQuotasResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterClientQuotasResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `Entries`, versions 0+.
    pub entries: Vec<EntryData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterClientQuotasResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("Entries", Kind::Array(&Kind::Struct(EntryData::FIELDS)), 0, 1),
    ];
}

impl FromWire for AlterClientQuotasResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.entries = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterClientQuotasResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.entries, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterClientQuotasResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterClientQuotasResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.entries = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EntryData` of `AlterClientQuotasResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryData {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Entity`, versions 0+.
    pub entity: Vec<EntityData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for EntryData {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: Some(Default::default()),
            entity: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for EntryData {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
        Field::new("Entity", Kind::Array(&Kind::Struct(EntityData::FIELDS)), 0, 1),
    ];
}

impl FromWire for EntryData {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.entity = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EntryData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.entity, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("EntryData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EntryData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.entity = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EntityData` of `AlterClientQuotasResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityData {
    /// `EntityType`, versions 0+.
    pub entity_type: String,
    /// `EntityName`, versions 0+, null in versions 0+.
    pub entity_name: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for EntityData {
    fn default() -> Self {
        Self {
            entity_type: Default::default(),
            entity_name: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for EntityData {
    const FIELDS: &'static [Field] = &[
        Field::new("EntityType", Kind::Text, 0, 1),
        Field::new("EntityName", Kind::Text, 0, 1).nullable(0, 1),
    ];
}

impl FromWire for EntityData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.entity_type = r.string(f)?;
        m.entity_name = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EntityData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.entity_type, f)?;
        w.nullable_string(self.entity_name.as_deref(), f, true, "EntityName")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("EntityData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EntityData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.entity_type = Random::random(g, v, f);
        m.entity_name = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterClientQuotasResponse {
    const NAME: &'static str = "AlterClientQuotasResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for AlterClientQuotasResponse {
    const KEY: ApiKey = ApiKey::AlterClientQuotas;
}
