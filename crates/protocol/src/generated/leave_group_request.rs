//! `LeaveGroupRequest`, versions 0-5, API key 13.

use super::prelude::*;

/// `LeaveGroupRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LeaveGroupRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `MemberId`, versions 0-2.
    pub member_id: String,
    /// `Members`, versions 3+.
    pub members: Vec<MemberIdentity>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for LeaveGroupRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 5).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 0, 2),
        Field::new("Members", Kind::Array(&Kind::Struct(MemberIdentity::FIELDS)), 3, 5),
    ];
}

impl FromWire for LeaveGroupRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        if v <= 2 {
            m.member_id = r.string(f)?;
        }
        if v >= 3 {
            m.members = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for LeaveGroupRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        if v <= 2 {
            w.string(&self.member_id, f)?;
        } else if !self.member_id.is_empty() {
            return Err(EncodeError::absent("LeaveGroupRequest.MemberId", v));
        }
        if v >= 3 {
            w.array(&self.members, v, f)?;
        } else if !self.members.is_empty() {
            return Err(EncodeError::absent("LeaveGroupRequest.Members", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("LeaveGroupRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for LeaveGroupRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        if v <= 2 {
            m.member_id = Random::random(g, v, f);
        }
        if v >= 3 {
            m.members = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `MemberIdentity` of `LeaveGroupRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MemberIdentity {
    /// `MemberId`, versions 3+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 3+, null in versions 3+.
    pub group_instance_id: Option<String>,
    /// `Reason`, versions 5+, null in versions 5+.
    pub reason: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for MemberIdentity {
    const FIELDS: &'static [Field] = &[
        Field::new("MemberId", Kind::Text, 3, 5),
        Field::new("GroupInstanceId", Kind::Text, 3, 5).nullable(3, 5),
        Field::new("Reason", Kind::Text, 5, 5).nullable(5, 5),
    ];
}

impl FromWire for MemberIdentity {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        m.group_instance_id = r.nullable_string(f, true)?;
        if v >= 5 {
            m.reason = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for MemberIdentity {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        if v >= 5 {
            w.nullable_string(self.reason.as_deref(), f, true, "Reason")?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("MemberIdentity.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for MemberIdentity {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        m.group_instance_id = g.nullable(true, v, f);
        if v >= 5 {
            m.reason = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for LeaveGroupRequest {
    const NAME: &'static str = "LeaveGroupRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Request for LeaveGroupRequest {
    const KEY: ApiKey = ApiKey::LeaveGroup;
    type Response = super::LeaveGroupResponse;
}
