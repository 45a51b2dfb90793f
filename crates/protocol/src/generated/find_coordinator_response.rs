//! `FindCoordinatorResponse`, versions 0-6, API key 10.

use super::prelude::*;

/// `FindCoordinatorResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct FindCoordinatorResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0-3.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1-3, null in versions 1-3.
    pub error_message: Option<String>,
    /// `NodeId`, versions 0-3.
    pub node_id: i32,
    /// `Host`, versions 0-3.
    pub host: String,
    /// `Port`, versions 0-3.
    pub port: i32,
    /// `Coordinators`, versions 4+.
    pub coordinators: Vec<Coordinator>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for FindCoordinatorResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            node_id: Default::default(),
            host: Default::default(),
            port: Default::default(),
            coordinators: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for FindCoordinatorResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 6),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 3),
        Field::new("ErrorMessage", Kind::Text, 1, 3).nullable(1, 3).of(Entity::Explanation),
        Field::new("NodeId", Kind::Fixed(4), 0, 3),
        Field::new("Host", Kind::Text, 0, 3),
        Field::new("Port", Kind::Fixed(4), 0, 3),
        Field::new("Coordinators", Kind::Array(&Kind::Struct(Coordinator::FIELDS)), 4, 6),
    ];
}

impl FromWire for FindCoordinatorResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = r.i32()?;
        }
        if v <= 3 {
            m.error_code = r.i16()?;
        }
        if (1..=3).contains(&v) {
            m.error_message = r.nullable_string(f, true)?;
        }
        if v <= 3 {
            m.node_id = r.i32()?;
        }
        if v <= 3 {
            m.host = r.string(f)?;
        }
        if v <= 3 {
            m.port = r.i32()?;
        }
        if v >= 4 {
            m.coordinators = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for FindCoordinatorResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.i32(self.throttle_time_ms);
        }
        if v <= 3 {
            w.i16(self.error_code);
        } else if self.error_code != 0 {
            return Err(EncodeError::absent("FindCoordinatorResponse.ErrorCode", v));
        }
        if (1..=3).contains(&v) {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        }
        if v <= 3 {
            w.i32(self.node_id);
        } else if self.node_id != 0 {
            return Err(EncodeError::absent("FindCoordinatorResponse.NodeId", v));
        }
        if v <= 3 {
            w.string(&self.host, f)?;
        } else if !self.host.is_empty() {
            return Err(EncodeError::absent("FindCoordinatorResponse.Host", v));
        }
        if v <= 3 {
            w.i32(self.port);
        } else if self.port != 0 {
            return Err(EncodeError::absent("FindCoordinatorResponse.Port", v));
        }
        if v >= 4 {
            w.array(&self.coordinators, v, f)?;
        } else if !self.coordinators.is_empty() {
            return Err(EncodeError::absent("FindCoordinatorResponse.Coordinators", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("FindCoordinatorResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for FindCoordinatorResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        if v <= 3 {
            m.error_code = Random::random(g, v, f);
        }
        if (1..=3).contains(&v) {
            m.error_message = g.nullable(true, v, f);
        }
        if v <= 3 {
            m.node_id = Random::random(g, v, f);
        }
        if v <= 3 {
            m.host = Random::random(g, v, f);
        }
        if v <= 3 {
            m.port = Random::random(g, v, f);
        }
        if v >= 4 {
            m.coordinators = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Coordinator` of `FindCoordinatorResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinator {
    /// `Key`, versions 4+.
    pub key: String,
    /// `NodeId`, versions 4+.
    pub node_id: i32,
    /// `Host`, versions 4+.
    pub host: String,
    /// `Port`, versions 4+.
    pub port: i32,
    /// `ErrorCode`, versions 4+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 4+, null in versions 4+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for Coordinator {
    fn default() -> Self {
        Self {
            key: Default::default(),
            node_id: Default::default(),
            host: Default::default(),
            port: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for Coordinator {
    const FIELDS: &'static [Field] = &[
        Field::new("Key", Kind::Text, 4, 6),
        Field::new("NodeId", Kind::Fixed(4), 4, 6),
        Field::new("Host", Kind::Text, 4, 6),
        Field::new("Port", Kind::Fixed(4), 4, 6),
        Field::new("ErrorCode", Kind::Fixed(2), 4, 6),
        Field::new("ErrorMessage", Kind::Text, 4, 6).nullable(4, 6).of(Entity::Explanation),
    ];
}

impl FromWire for Coordinator {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.key = r.string(f)?;
        m.node_id = r.i32()?;
        m.host = r.string(f)?;
        m.port = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Coordinator {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.key, f)?;
        w.i32(self.node_id);
        w.string(&self.host, f)?;
        w.i32(self.port);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Coordinator {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.key = Random::random(g, v, f);
        m.node_id = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for FindCoordinatorResponse {
    const NAME: &'static str = "FindCoordinatorResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 6);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Response for FindCoordinatorResponse {
    const KEY: ApiKey = ApiKey::FindCoordinator;
}
