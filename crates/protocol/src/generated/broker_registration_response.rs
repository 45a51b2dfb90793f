//! `BrokerRegistrationResponse`, versions 0-4, API key 62.

use super::prelude::*;

/// `BrokerRegistrationResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerRegistrationResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `BrokerEpoch`, versions 0+.
    pub broker_epoch: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for BrokerRegistrationResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            broker_epoch: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for BrokerRegistrationResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 4),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 4),
        Field::new("BrokerEpoch", Kind::Fixed(8), 0, 4),
    ];
}

impl FromWire for BrokerRegistrationResponse {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.broker_epoch = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for BrokerRegistrationResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.i64(self.broker_epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for BrokerRegistrationResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.broker_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for BrokerRegistrationResponse {
    const NAME: &'static str = "BrokerRegistrationResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 4);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for BrokerRegistrationResponse {
    const KEY: ApiKey = ApiKey::BrokerRegistration;
}
