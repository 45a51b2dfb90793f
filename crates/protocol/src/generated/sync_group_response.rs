//! `SyncGroupResponse`, versions 0-5, API key 14.

use super::prelude::*;

/// `SyncGroupResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SyncGroupResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ProtocolType`, versions 5+, null in versions 5+.
    pub protocol_type: Option<String>,
    /// `ProtocolName`, versions 5+, null in versions 5+.
    pub protocol_name: Option<String>,
    /// `Assignment`, versions 0+.
    pub assignment: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SyncGroupResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 5),
        Field::new("ProtocolType", Kind::Text, 5, 5).nullable(5, 5),
        Field::new("ProtocolName", Kind::Text, 5, 5).nullable(5, 5),
        Field::new("Assignment", Kind::Bytes, 0, 5),
    ];
}

impl FromWire for SyncGroupResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = r.i32()?;
        }
        m.error_code = r.i16()?;
        if v >= 5 {
            m.protocol_type = r.nullable_string(f, true)?;
        }
        if v >= 5 {
            m.protocol_name = r.nullable_string(f, true)?;
        }
        m.assignment = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SyncGroupResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.i32(self.throttle_time_ms);
        }
        w.i16(self.error_code);
        if v >= 5 {
            w.nullable_string(self.protocol_type.as_deref(), f, true, "ProtocolType")?;
        }
        if v >= 5 {
            w.nullable_string(self.protocol_name.as_deref(), f, true, "ProtocolName")?;
        }
        w.bytes(&self.assignment, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("SyncGroupResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SyncGroupResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        if v >= 5 {
            m.protocol_type = g.nullable(true, v, f);
        }
        if v >= 5 {
            m.protocol_name = g.nullable(true, v, f);
        }
        m.assignment = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for SyncGroupResponse {
    const NAME: &'static str = "SyncGroupResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Response for SyncGroupResponse {
    const KEY: ApiKey = ApiKey::SyncGroup;
}
