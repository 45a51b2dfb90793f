//! `DefaultPrincipalData`, versions 0-0.

use super::prelude::*;

/// `DefaultPrincipalData`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DefaultPrincipalData {
    /// `Type`, versions 0+.
    pub r#type: String,
    /// `Name`, versions 0+.
    pub name: String,
    /// `TokenAuthenticated`, versions 0+.
    pub token_authenticated: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DefaultPrincipalData {
    const FIELDS: &'static [Field] = &[
        Field::new("Type", Kind::Text, 0, 0),
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("TokenAuthenticated", Kind::Fixed(1), 0, 0),
    ];
}

impl FromWire for DefaultPrincipalData {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.r#type = r.string(f)?;
        m.name = r.string(f)?;
        m.token_authenticated = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DefaultPrincipalData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.r#type, f)?;
        w.string(&self.name, f)?;
        w.bool(self.token_authenticated);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DefaultPrincipalData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.r#type = Random::random(g, v, f);
        m.name = Random::random(g, v, f);
        m.token_authenticated = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DefaultPrincipalData {
    const NAME: &'static str = "DefaultPrincipalData";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}
