//! `DescribeDelegationTokenRequest`, versions 1-3, API key 41.

use super::prelude::*;

/// `DescribeDelegationTokenRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeDelegationTokenRequest {
    /// `Owners`, versions 1+, null in versions 1+.
    pub owners: Option<Vec<DescribeDelegationTokenOwner>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeDelegationTokenRequest {
    fn default() -> Self {
        Self { owners: Some(Default::default()), unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for DescribeDelegationTokenRequest {
    const FIELDS: &'static [Field] = &[Field::new(
        "Owners",
        Kind::Array(&Kind::Struct(DescribeDelegationTokenOwner::FIELDS)),
        1,
        3,
    )
    .nullable(1, 3)];
}

impl FromWire for DescribeDelegationTokenRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.owners = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeDelegationTokenRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_array(self.owners.as_deref(), v, f, true, "Owners")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribeDelegationTokenRequest.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeDelegationTokenRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.owners = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeDelegationTokenOwner` of `DescribeDelegationTokenRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeDelegationTokenOwner {
    /// `PrincipalType`, versions 1+.
    pub principal_type: String,
    /// `PrincipalName`, versions 1+.
    pub principal_name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeDelegationTokenOwner {
    const FIELDS: &'static [Field] = &[
        Field::new("PrincipalType", Kind::Text, 1, 3),
        Field::new("PrincipalName", Kind::Text, 1, 3),
    ];
}

impl FromWire for DescribeDelegationTokenOwner {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.principal_type = r.string(f)?;
        m.principal_name = r.string(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeDelegationTokenOwner {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.principal_type, f)?;
        w.string(&self.principal_name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "DescribeDelegationTokenOwner.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeDelegationTokenOwner {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.principal_type = Random::random(g, v, f);
        m.principal_name = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeDelegationTokenRequest {
    const NAME: &'static str = "DescribeDelegationTokenRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for DescribeDelegationTokenRequest {
    const KEY: ApiKey = ApiKey::DescribeDelegationToken;
    type Response = super::DescribeDelegationTokenResponse;
}
