//! `DescribeClientQuotasRequest`, versions 0-1, API key 48.

use super::prelude::*;

/// `DescribeClientQuotasRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeClientQuotasRequest {
    /// `Components`, versions 0+.
    pub components: Vec<ComponentData>,
    /// `Strict`, versions 0+.
    pub strict: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeClientQuotasRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Components", Kind::Array(&Kind::Struct(ComponentData::FIELDS)), 0, 1),
        Field::new("Strict", Kind::Fixed(1), 0, 1),
    ];
}

impl FromWire for DescribeClientQuotasRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.components = r.array(v, f)?;
        m.strict = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeClientQuotasRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.components, v, f)?;
        w.bool(self.strict);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribeClientQuotasRequest.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeClientQuotasRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.components = Random::random(g, v, f);
        m.strict = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ComponentData` of `DescribeClientQuotasRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentData {
    /// `EntityType`, versions 0+.
    pub entity_type: String,
    /// `MatchType`, versions 0+.
    pub match_type: i8,
    /// `Match`, versions 0+, null in versions 0+.
    pub r#match: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ComponentData {
    fn default() -> Self {
        Self {
            entity_type: Default::default(),
            match_type: Default::default(),
            r#match: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ComponentData {
    const FIELDS: &'static [Field] = &[
        Field::new("EntityType", Kind::Text, 0, 1),
        Field::new("MatchType", Kind::Fixed(1), 0, 1),
        Field::new("Match", Kind::Text, 0, 1).nullable(0, 1),
    ];
}

impl FromWire for ComponentData {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.entity_type = r.string(f)?;
        m.match_type = r.i8()?;
        m.r#match = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ComponentData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.entity_type, f)?;
        w.i8(self.match_type);
        w.nullable_string(self.r#match.as_deref(), f, true, "Match")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ComponentData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ComponentData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.entity_type = Random::random(g, v, f);
        m.match_type = Random::random(g, v, f);
        m.r#match = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeClientQuotasRequest {
    const NAME: &'static str = "DescribeClientQuotasRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for DescribeClientQuotasRequest {
    const KEY: ApiKey = ApiKey::DescribeClientQuotas;
    type Response = super::DescribeClientQuotasResponse;
}
