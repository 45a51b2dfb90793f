//! `JoinGroupRequest`, versions 0-9, API key 11.

use super::prelude::*;

/// `JoinGroupRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinGroupRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `SessionTimeoutMs`, versions 0+.
    pub session_timeout_ms: i32,
    /// `RebalanceTimeoutMs`, versions 1+.
    pub rebalance_timeout_ms: i32,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 5+, null in versions 5+.
    pub group_instance_id: Option<String>,
    /// `ProtocolType`, versions 0+.
    pub protocol_type: String,
    /// `Protocols`, versions 0+.
    pub protocols: Vec<JoinGroupRequestProtocol>,
    /// `Reason`, versions 8+, null in versions 8+.
    pub reason: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for JoinGroupRequest {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            session_timeout_ms: Default::default(),
            rebalance_timeout_ms: -1,
            member_id: Default::default(),
            group_instance_id: None,
            protocol_type: Default::default(),
            protocols: Default::default(),
            reason: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for JoinGroupRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 9).of(Entity::GroupId),
        Field::new("SessionTimeoutMs", Kind::Fixed(4), 0, 9),
        Field::new("RebalanceTimeoutMs", Kind::Fixed(4), 1, 9),
        Field::new("MemberId", Kind::Text, 0, 9),
        Field::new("GroupInstanceId", Kind::Text, 5, 9).nullable(5, 9),
        Field::new("ProtocolType", Kind::Text, 0, 9),
        Field::new("Protocols", Kind::Array(&Kind::Struct(JoinGroupRequestProtocol::FIELDS)), 0, 9),
        Field::new("Reason", Kind::Text, 8, 9).nullable(8, 9),
    ];
}

impl FromWire for JoinGroupRequest {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.session_timeout_ms = r.i32()?;
        if v >= 1 {
            m.rebalance_timeout_ms = r.i32()?;
        }
        m.member_id = r.string(f)?;
        if v >= 5 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        m.protocol_type = r.string(f)?;
        m.protocols = r.array(v, f)?;
        if v >= 8 {
            m.reason = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for JoinGroupRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.i32(self.session_timeout_ms);
        if v >= 1 {
            w.i32(self.rebalance_timeout_ms);
        }
        w.string(&self.member_id, f)?;
        if v >= 5 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        } else if self.group_instance_id.is_some() {
            return Err(EncodeError::absent("JoinGroupRequest.GroupInstanceId", v));
        }
        w.string(&self.protocol_type, f)?;
        w.array(&self.protocols, v, f)?;
        if v >= 8 {
            w.nullable_string(self.reason.as_deref(), f, true, "Reason")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("JoinGroupRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for JoinGroupRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.session_timeout_ms = Random::random(g, v, f);
        if v >= 1 {
            m.rebalance_timeout_ms = Random::random(g, v, f);
        }
        m.member_id = Random::random(g, v, f);
        if v >= 5 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        m.protocol_type = Random::random(g, v, f);
        m.protocols = Random::random(g, v, f);
        if v >= 8 {
            m.reason = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `JoinGroupRequestProtocol` of `JoinGroupRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JoinGroupRequestProtocol {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Metadata`, versions 0+.
    pub metadata: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for JoinGroupRequestProtocol {
    const FIELDS: &'static [Field] =
        &[Field::new("Name", Kind::Text, 0, 9), Field::new("Metadata", Kind::Bytes, 0, 9)];
}

impl FromWire for JoinGroupRequestProtocol {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.metadata = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for JoinGroupRequestProtocol {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.bytes(&self.metadata, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("JoinGroupRequestProtocol.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for JoinGroupRequestProtocol {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.metadata = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for JoinGroupRequest {
    const NAME: &'static str = "JoinGroupRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 9);
    const FLEXIBLE_FROM: i16 = 6;
}

impl Request for JoinGroupRequest {
    const KEY: ApiKey = ApiKey::JoinGroup;
    type Response = super::JoinGroupResponse;
}
