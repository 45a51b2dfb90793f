//! `LeaveGroupResponse`, versions 0-5, API key 13.

use super::prelude::*;

/// `LeaveGroupResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LeaveGroupResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Members`, versions 3+.
    pub members: Vec<MemberResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for LeaveGroupResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 5),
        Field::new("Members", Kind::Array(&Kind::Struct(MemberResponse::FIELDS)), 3, 5),
    ];
}

impl FromWire for LeaveGroupResponse {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = r.i32()?;
        }
        m.error_code = r.i16()?;
        if v >= 3 {
            m.members = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for LeaveGroupResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.i32(self.throttle_time_ms);
        }
        w.i16(self.error_code);
        if v >= 3 {
            w.array(&self.members, v, f)?;
        } else if !self.members.is_empty() {
            return Err(EncodeError::absent("LeaveGroupResponse.Members", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("LeaveGroupResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for LeaveGroupResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        if v >= 3 {
            m.members = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `MemberResponse` of `LeaveGroupResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberResponse {
    /// `MemberId`, versions 3+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 3+, null in versions 3+.
    pub group_instance_id: Option<String>,
    /// `ErrorCode`, versions 3+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for MemberResponse {
    fn default() -> Self {
        Self {
            member_id: Default::default(),
            group_instance_id: Some(Default::default()),
            error_code: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for MemberResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("MemberId", Kind::Text, 3, 5),
        Field::new("GroupInstanceId", Kind::Text, 3, 5).nullable(3, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 3, 5),
    ];
}

impl FromWire for MemberResponse {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        m.group_instance_id = r.nullable_string(f, true)?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MemberResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MemberResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MemberResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        m.group_instance_id = g.nullable(true, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for LeaveGroupResponse {
    const NAME: &'static str = "LeaveGroupResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Response for LeaveGroupResponse {
    const KEY: ApiKey = ApiKey::LeaveGroup;
}
