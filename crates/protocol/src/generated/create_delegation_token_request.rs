//! `CreateDelegationTokenRequest`, versions 1-3, API key 38.

use super::prelude::*;

/// `CreateDelegationTokenRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDelegationTokenRequest {
    /// `OwnerPrincipalType`, versions 3+, null in versions 3+.
    pub owner_principal_type: Option<String>,
    /// `OwnerPrincipalName`, versions 3+, null in versions 3+.
    pub owner_principal_name: Option<String>,
    /// `Renewers`, versions 1+.
    pub renewers: Vec<CreatableRenewers>,
    /// `MaxLifetimeMs`, versions 1+.
    pub max_lifetime_ms: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CreateDelegationTokenRequest {
    fn default() -> Self {
        Self {
            owner_principal_type: Some(Default::default()),
            owner_principal_name: Some(Default::default()),
            renewers: Default::default(),
            max_lifetime_ms: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CreateDelegationTokenRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("OwnerPrincipalType", Kind::Text, 3, 3).nullable(3, 3),
        Field::new("OwnerPrincipalName", Kind::Text, 3, 3).nullable(3, 3),
        Field::new("Renewers", Kind::Array(&Kind::Struct(CreatableRenewers::FIELDS)), 1, 3),
        Field::new("MaxLifetimeMs", Kind::Fixed(8), 1, 3),
    ];
}

impl FromWire for CreateDelegationTokenRequest {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 3 {
            m.owner_principal_type = r.nullable_string(f, true)?;
        }
        if v >= 3 {
            m.owner_principal_name = r.nullable_string(f, true)?;
        }
        m.renewers = r.array(v, f)?;
        m.max_lifetime_ms = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreateDelegationTokenRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 3 {
            w.nullable_string(self.owner_principal_type.as_deref(), f, true, "OwnerPrincipalType")?;
        } else if self.owner_principal_type.as_ref().is_none_or(|value| !value.is_empty()) {
            return Err(EncodeError::absent("CreateDelegationTokenRequest.OwnerPrincipalType", v));
        }
        if v >= 3 {
            w.nullable_string(self.owner_principal_name.as_deref(), f, true, "OwnerPrincipalName")?;
        } else if self.owner_principal_name.as_ref().is_none_or(|value| !value.is_empty()) {
            return Err(EncodeError::absent("CreateDelegationTokenRequest.OwnerPrincipalName", v));
        }
        w.array(&self.renewers, v, f)?;
        w.i64(self.max_lifetime_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "CreateDelegationTokenRequest.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreateDelegationTokenRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 3 {
            m.owner_principal_type = g.nullable(true, v, f);
        }
        if v >= 3 {
            m.owner_principal_name = g.nullable(true, v, f);
        }
        m.renewers = Random::random(g, v, f);
        m.max_lifetime_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatableRenewers` of `CreateDelegationTokenRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatableRenewers {
    /// `PrincipalType`, versions 1+.
    pub principal_type: String,
    /// `PrincipalName`, versions 1+.
    pub principal_name: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatableRenewers {
    const FIELDS: &'static [Field] = &[
        Field::new("PrincipalType", Kind::Text, 1, 3),
        Field::new("PrincipalName", Kind::Text, 1, 3),
    ];
}

impl FromWire for CreatableRenewers {
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

impl ToWire for CreatableRenewers {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.principal_type, f)?;
        w.string(&self.principal_name, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatableRenewers.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatableRenewers {
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

impl Message for CreateDelegationTokenRequest {
    const NAME: &'static str = "CreateDelegationTokenRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for CreateDelegationTokenRequest {
    const KEY: ApiKey = ApiKey::CreateDelegationToken;
    type Response = super::CreateDelegationTokenResponse;
}
