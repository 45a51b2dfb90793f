//! `RenewDelegationTokenResponse`, versions 1-2, API key 39.

use super::prelude::*;

/// `RenewDelegationTokenResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RenewDelegationTokenResponse {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ExpiryTimestampMs`, versions 1+.
    pub expiry_timestamp_ms: i64,
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for RenewDelegationTokenResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
        Field::new("ExpiryTimestampMs", Kind::Fixed(8), 1, 2),
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 2),
    ];
}

impl FromWire for RenewDelegationTokenResponse {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.expiry_timestamp_ms = r.i64()?;
        m.throttle_time_ms = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for RenewDelegationTokenResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.i64(self.expiry_timestamp_ms);
        w.i32(self.throttle_time_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "RenewDelegationTokenResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for RenewDelegationTokenResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.expiry_timestamp_ms = Random::random(g, v, f);
        m.throttle_time_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for RenewDelegationTokenResponse {
    const NAME: &'static str = "RenewDelegationTokenResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for RenewDelegationTokenResponse {
    const KEY: ApiKey = ApiKey::RenewDelegationToken;
}
