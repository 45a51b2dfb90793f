//! `AlterUserScramCredentialsRequest`, versions 0-0, API key 51.

use super::prelude::*;

/// `AlterUserScramCredentialsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterUserScramCredentialsRequest {
    /// `Deletions`, versions 0+.
    pub deletions: Vec<ScramCredentialDeletion>,
    /// `Upsertions`, versions 0+.
    pub upsertions: Vec<ScramCredentialUpsertion>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterUserScramCredentialsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Deletions", Kind::Array(&Kind::Struct(ScramCredentialDeletion::FIELDS)), 0, 0),
        Field::new(
            "Upsertions",
            Kind::Array(&Kind::Struct(ScramCredentialUpsertion::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for AlterUserScramCredentialsRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.deletions = r.array(v, f)?;
        m.upsertions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterUserScramCredentialsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.deletions, v, f)?;
        w.array(&self.upsertions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterUserScramCredentialsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.deletions = Random::random(g, v, f);
        m.upsertions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ScramCredentialDeletion` of `AlterUserScramCredentialsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ScramCredentialDeletion {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Mechanism`, versions 0+.
    pub mechanism: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ScramCredentialDeletion {
    const FIELDS: &'static [Field] =
        &[Field::new("Name", Kind::Text, 0, 0), Field::new("Mechanism", Kind::Fixed(1), 0, 0)];
}

impl FromWire for ScramCredentialDeletion {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.mechanism = r.i8()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ScramCredentialDeletion {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i8(self.mechanism);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ScramCredentialDeletion {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.mechanism = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ScramCredentialUpsertion` of `AlterUserScramCredentialsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ScramCredentialUpsertion {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Mechanism`, versions 0+.
    pub mechanism: i8,
    /// `Iterations`, versions 0+.
    pub iterations: i32,
    /// `Salt`, versions 0+.
    pub salt: Bytes,
    /// `SaltedPassword`, versions 0+.
    pub salted_password: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ScramCredentialUpsertion {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("Mechanism", Kind::Fixed(1), 0, 0),
        Field::new("Iterations", Kind::Fixed(4), 0, 0),
        Field::new("Salt", Kind::Bytes, 0, 0),
        Field::new("SaltedPassword", Kind::Bytes, 0, 0),
    ];
}

impl FromWire for ScramCredentialUpsertion {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.mechanism = r.i8()?;
        m.iterations = r.i32()?;
        m.salt = r.bytes(f)?;
        m.salted_password = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ScramCredentialUpsertion {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i8(self.mechanism);
        w.i32(self.iterations);
        w.bytes(&self.salt, f)?;
        w.bytes(&self.salted_password, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ScramCredentialUpsertion {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.mechanism = Random::random(g, v, f);
        m.iterations = Random::random(g, v, f);
        m.salt = Random::random(g, v, f);
        m.salted_password = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterUserScramCredentialsRequest {
    const NAME: &'static str = "AlterUserScramCredentialsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for AlterUserScramCredentialsRequest {
    const KEY: ApiKey = ApiKey::AlterUserScramCredentials;
    type Response = super::AlterUserScramCredentialsResponse;
}
