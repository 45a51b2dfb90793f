//! `AlterClientQuotasRequest`, versions 0-1, API key 49.

use super::prelude::*;

/// `AlterClientQuotasRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterClientQuotasRequest {
    /// `Entries`, versions 0+.
    pub entries: Vec<EntryData>,
    /// `ValidateOnly`, versions 0+.
    pub validate_only: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterClientQuotasRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Entries", Kind::Array(&Kind::Struct(EntryData::FIELDS)), 0, 1),
        Field::new("ValidateOnly", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for AlterClientQuotasRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.entries = r.array(v, f)?;
        m.validate_only = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterClientQuotasRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.entries, v, f)?;
        w.bool(self.validate_only);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterClientQuotasRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterClientQuotasRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.entries = Random::random(g, v, f);
        m.validate_only = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EntryData` of `AlterClientQuotasRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EntryData {
    /// `Entity`, versions 0+.
    pub entity: Vec<EntityData>,
    /// `Ops`, versions 0+.
    pub ops: Vec<OpData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for EntryData {
    const FIELDS: &'static [Field] = &[
        Field::new("Entity", Kind::Array(&Kind::Struct(EntityData::FIELDS)), 0, 1),
        Field::new("Ops", Kind::Array(&Kind::Struct(OpData::FIELDS)), 0, 1),
    ];
}

impl FromWire for EntryData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.entity = r.array(v, f)?;
        m.ops = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EntryData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.entity, v, f)?;
        w.array(&self.ops, v, f)?;
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
        m.ops = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `EntityData` of `AlterClientQuotasRequest`.
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

/// `OpData` of `AlterClientQuotasRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OpData {
    /// `Key`, versions 0+.
    pub key: String,
    /// `Value`, versions 0+.
    pub value: f64,
    /// `Remove`, versions 0+.
    pub remove: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OpData {
    const FIELDS: &'static [Field] = &[
        Field::new("Key", Kind::Text, 0, 1),
        Field::new("Value", Kind::Fixed(8), 0, 1),
        Field::new("Remove", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for OpData {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.key = r.string(f)?;
        m.value = r.f64()?;
        m.remove = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OpData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.key, f)?;
        w.f64(self.value);
        w.bool(self.remove);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OpData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OpData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.key = Random::random(g, v, f);
        m.value = Random::random(g, v, f);
        m.remove = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterClientQuotasRequest {
    const NAME: &'static str = "AlterClientQuotasRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for AlterClientQuotasRequest {
    const KEY: ApiKey = ApiKey::AlterClientQuotas;
    type Response = super::AlterClientQuotasResponse;
}
