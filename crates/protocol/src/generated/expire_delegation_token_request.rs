//! `ExpireDelegationTokenRequest`, versions 1-2, API key 40.

use super::prelude::*;

/// `ExpireDelegationTokenRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ExpireDelegationTokenRequest {
    /// `Hmac`, versions 1+.
    pub hmac: Bytes,
    /// `ExpiryTimePeriodMs`, versions 1+.
    pub expiry_time_period_ms: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ExpireDelegationTokenRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Hmac", Kind::Bytes, 1, 2),
        Field::new("ExpiryTimePeriodMs", Kind::Fixed(8), 1, 2),
    ];
}

impl FromWire for ExpireDelegationTokenRequest {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.hmac = r.bytes(f)?;
        m.expiry_time_period_ms = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ExpireDelegationTokenRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.bytes(&self.hmac, f)?;
        w.i64(self.expiry_time_period_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "ExpireDelegationTokenRequest.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ExpireDelegationTokenRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.hmac = Random::random(g, v, f);
        m.expiry_time_period_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ExpireDelegationTokenRequest {
    const NAME: &'static str = "ExpireDelegationTokenRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for ExpireDelegationTokenRequest {
    const KEY: ApiKey = ApiKey::ExpireDelegationToken;
    type Response = super::ExpireDelegationTokenResponse;
}
