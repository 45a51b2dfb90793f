//! `DescribeUserScramCredentialsRequest`, versions 0-0, API key 50.

use super::prelude::*;

/// `DescribeUserScramCredentialsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeUserScramCredentialsRequest {
    /// `Users`, versions 0+, null in versions 0+.
    pub users: Option<Vec<UserName>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeUserScramCredentialsRequest {
    fn default() -> Self {
        Self { users: Some(Default::default()), unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for DescribeUserScramCredentialsRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("Users", Kind::Array(&Kind::Struct(UserName::FIELDS)), 0, 0).nullable(0, 0)];
}

impl FromWire for DescribeUserScramCredentialsRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.users = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeUserScramCredentialsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_array(self.users.as_deref(), v, f, true, "Users")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeUserScramCredentialsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.users = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `UserName` of `DescribeUserScramCredentialsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UserName {
    /// `Name`, versions 0+.
    pub name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for UserName {
    const FIELDS: &'static [Field] = &[Field::new("Name", Kind::Text, 0, 0)];
}

impl FromWire for UserName {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UserName {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UserName {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeUserScramCredentialsRequest {
    const NAME: &'static str = "DescribeUserScramCredentialsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DescribeUserScramCredentialsRequest {
    const KEY: ApiKey = ApiKey::DescribeUserScramCredentials;
    type Response = super::DescribeUserScramCredentialsResponse;
}
