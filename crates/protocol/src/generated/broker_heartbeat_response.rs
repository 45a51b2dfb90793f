//! `BrokerHeartbeatResponse`, versions 0-2, API key 63.

use super::prelude::*;

/// `BrokerHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerHeartbeatResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `IsCaughtUp`, versions 0+.
    pub is_caught_up: bool,
    /// `IsFenced`, versions 0+.
    pub is_fenced: bool,
    /// `ShouldShutDown`, versions 0+.
    pub should_shut_down: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for BrokerHeartbeatResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            is_caught_up: Default::default(),
            is_fenced: true,
            should_shut_down: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for BrokerHeartbeatResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("IsCaughtUp", Kind::Fixed(1), 0, 2),
        Field::new("IsFenced", Kind::Fixed(1), 0, 2),
        Field::new("ShouldShutDown", Kind::Fixed(1), 0, 2),
    ];
}

impl FromWire for BrokerHeartbeatResponse {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.is_caught_up = r.bool()?;
        m.is_fenced = r.bool()?;
        m.should_shut_down = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for BrokerHeartbeatResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.bool(self.is_caught_up);
        w.bool(self.is_fenced);
        w.bool(self.should_shut_down);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for BrokerHeartbeatResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.is_caught_up = Random::random(g, v, f);
        m.is_fenced = Random::random(g, v, f);
        m.should_shut_down = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for BrokerHeartbeatResponse {
    const NAME: &'static str = "BrokerHeartbeatResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for BrokerHeartbeatResponse {
    const KEY: ApiKey = ApiKey::BrokerHeartbeat;
}
