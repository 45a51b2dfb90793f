//! `JoinGroupResponse`, versions 0-9, API key 11.

use super::prelude::*;

/// `JoinGroupResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinGroupResponse {
    /// `ThrottleTimeMs`, versions 2+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `GenerationId`, versions 0+.
    pub generation_id: i32,
    /// `ProtocolType`, versions 7+, null in versions 7+.
    pub protocol_type: Option<String>,
    /// `ProtocolName`, versions 0+, null in versions 7+.
    pub protocol_name: Option<String>,
    /// `Leader`, versions 0+.
    pub leader: String,
    /// `SkipAssignment`, versions 9+.
    pub skip_assignment: bool,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `Members`, versions 0+.
    pub members: Vec<JoinGroupResponseMember>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for JoinGroupResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            generation_id: -1,
            protocol_type: None,
            protocol_name: Some(Default::default()),
            leader: Default::default(),
            skip_assignment: Default::default(),
            member_id: Default::default(),
            members: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for JoinGroupResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 2, 9),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 9),
        Field::new("GenerationId", Kind::Fixed(4), 0, 9),
        Field::new("ProtocolType", Kind::Text, 7, 9).nullable(7, 9),
        Field::new("ProtocolName", Kind::Text, 0, 9).nullable(7, 9),
        Field::new("Leader", Kind::Text, 0, 9),
        Field::new("SkipAssignment", Kind::Fixed(1), 9, 9),
        Field::new("MemberId", Kind::Text, 0, 9),
        Field::new("Members", Kind::Array(&Kind::Struct(JoinGroupResponseMember::FIELDS)), 0, 9),
    ];
}

impl FromWire for JoinGroupResponse {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 2 {
            m.throttle_time_ms = r.i32()?;
        }
        m.error_code = r.i16()?;
        m.generation_id = r.i32()?;
        if v >= 7 {
            m.protocol_type = r.nullable_string(f, true)?;
        }
        m.protocol_name = r.nullable_string(f, v >= 7)?;
        m.leader = r.string(f)?;
        if v >= 9 {
            m.skip_assignment = r.bool()?;
        }
        m.member_id = r.string(f)?;
        m.members = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for JoinGroupResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 2 {
            w.i32(self.throttle_time_ms);
        }
        w.i16(self.error_code);
        w.i32(self.generation_id);
        if v >= 7 {
            w.nullable_string(self.protocol_type.as_deref(), f, true, "ProtocolType")?;
        }
        w.nullable_string(self.protocol_name.as_deref(), f, v >= 7, "ProtocolName")?;
        w.string(&self.leader, f)?;
        if v >= 9 {
            w.bool(self.skip_assignment);
        } else if self.skip_assignment {
            return Err(EncodeError::absent("JoinGroupResponse.SkipAssignment", v));
        }
        w.string(&self.member_id, f)?;
        w.array(&self.members, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("JoinGroupResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for JoinGroupResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 2 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        m.generation_id = Random::random(g, v, f);
        if v >= 7 {
            m.protocol_type = g.nullable(true, v, f);
        }
        m.protocol_name = g.nullable(v >= 7, v, f);
        m.leader = Random::random(g, v, f);
        if v >= 9 {
            m.skip_assignment = Random::random(g, v, f);
        }
        m.member_id = Random::random(g, v, f);
        m.members = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `JoinGroupResponseMember` of `JoinGroupResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JoinGroupResponseMember {
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 5+, null in versions 5+.
    pub group_instance_id: Option<String>,
    /// `Metadata`, versions 0+.
    pub metadata: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for JoinGroupResponseMember {
    const FIELDS: &'static [Field] = &[
        Field::new("MemberId", Kind::Text, 0, 9),
        Field::new("GroupInstanceId", Kind::Text, 5, 9).nullable(5, 9),
        Field::new("Metadata", Kind::Bytes, 0, 9),
    ];
}

impl FromWire for JoinGroupResponseMember {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        if v >= 5 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        m.metadata = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for JoinGroupResponseMember {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        if v >= 5 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        }
        w.bytes(&self.metadata, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("JoinGroupResponseMember.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for JoinGroupResponseMember {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        if v >= 5 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        m.metadata = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for JoinGroupResponse {
    const NAME: &'static str = "JoinGroupResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 9);
    const FLEXIBLE_FROM: i16 = 6;
}

impl Response for JoinGroupResponse {
    const KEY: ApiKey = ApiKey::JoinGroup;
}
