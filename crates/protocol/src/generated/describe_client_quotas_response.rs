//! `DescribeClientQuotasResponse`, versions 0-1, API key 48.

use super::prelude::*;

/// `DescribeClientQuotasResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClientQuotasResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Entries`, versions 0+, null in versions 0+.
    pub entries: Option<Vec<EntryData>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeClientQuotasResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            entries: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeClientQuotasResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
        Field::new("Entries", Kind::Array(&Kind::Struct(EntryData::FIELDS)), 0, 1).nullable(0, 1),
    ];
}

impl FromWire for DescribeClientQuotasResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.entries = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeClientQuotasResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.nullable_array(self.entries.as_deref(), v, f, true, "Entries")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribeClientQuotasResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeClientQuotasResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.entries = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EntryData` of `DescribeClientQuotasResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EntryData {
    /// `Entity`, versions 0+.
    pub entity: Vec<EntityData>,
    /// `Values`, versions 0+.
    pub values: Vec<ValueData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for EntryData {
    const FIELDS: &'static [Field] = &[
        Field::new("Entity", Kind::Array(&Kind::Struct(EntityData::FIELDS)), 0, 1),
        Field::new("Values", Kind::Array(&Kind::Struct(ValueData::FIELDS)), 0, 1),
    ];
}

impl FromWire for EntryData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.entity = r.array(v, f)?;
        m.values = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EntryData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.entity, v, f)?;
        w.array(&self.values, v, f)?;
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
        m.entity = Random::random(g, v, f);
        m.values = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EntityData` of `DescribeClientQuotasResponse`.
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

/// `ValueData` of `DescribeClientQuotasResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ValueData {
    /// `Key`, versions 0+.
    pub key: String,
    /// `Value`, versions 0+.
    pub value: f64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ValueData {
    const FIELDS: &'static [Field] =
        &[Field::new("Key", Kind::Text, 0, 1), Field::new("Value", Kind::Fixed(8), 0, 1)];
}

impl FromWire for ValueData {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.key = r.string(f)?;
        m.value = r.f64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ValueData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.key, f)?;
        w.f64(self.value);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ValueData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ValueData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.key = Random::random(g, v, f);
        m.value = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeClientQuotasResponse {
    const NAME: &'static str = "DescribeClientQuotasResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for DescribeClientQuotasResponse {
    const KEY: ApiKey = ApiKey::DescribeClientQuotas;
}
