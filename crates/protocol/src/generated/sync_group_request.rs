//! `SyncGroupRequest`, versions 0-5, API key 14.

use super::prelude::*;

/// `SyncGroupRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SyncGroupRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `GenerationId`, versions 0+.
    pub generation_id: i32,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 3+, null in versions 3+.
    pub group_instance_id: Option<String>,
    /// `ProtocolType`, versions 5+, null in versions 5+.
    pub protocol_type: Option<String>,
    /// `ProtocolName`, versions 5+, null in versions 5+.
    pub protocol_name: Option<String>,
    /// `Assignments`, versions 0+.
    pub assignments: Vec<SyncGroupRequestAssignment>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SyncGroupRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 5).of(Entity::GroupId),
        Field::new("GenerationId", Kind::Fixed(4), 0, 5),
        Field::new("MemberId", Kind::Text, 0, 5),
        Field::new("GroupInstanceId", Kind::Text, 3, 5).nullable(3, 5),
        Field::new("ProtocolType", Kind::Text, 5, 5).nullable(5, 5),
        Field::new("ProtocolName", Kind::Text, 5, 5).nullable(5, 5),
        Field::new(
            "Assignments",
            Kind::Array(&Kind::Struct(SyncGroupRequestAssignment::FIELDS)),
            0,
            5,
        ),
    ];
}

impl FromWire for SyncGroupRequest {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.generation_id = r.i32()?;
        m.member_id = r.string(f)?;
        if v >= 3 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        if v >= 5 {
            m.protocol_type = r.nullable_string(f, true)?;
        }
        if v >= 5 {
            m.protocol_name = r.nullable_string(f, true)?;
        }
        m.assignments = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SyncGroupRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.i32(self.generation_id);
        w.string(&self.member_id, f)?;
        if v >= 3 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        } else if self.group_instance_id.is_some() {
            return Err(EncodeError::absent("SyncGroupRequest.GroupInstanceId", v));
        }
        if v >= 5 {
            w.nullable_string(self.protocol_type.as_deref(), f, true, "ProtocolType")?;
        }
        if v >= 5 {
            w.nullable_string(self.protocol_name.as_deref(), f, true, "ProtocolName")?;
        }
        w.array(&self.assignments, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("SyncGroupRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SyncGroupRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.generation_id = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        if v >= 3 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        if v >= 5 {
            m.protocol_type = g.nullable(true, v, f);
        }
        if v >= 5 {
            m.protocol_name = g.nullable(true, v, f);
        }
        m.assignments = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `SyncGroupRequestAssignment` of `SyncGroupRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SyncGroupRequestAssignment {
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `Assignment`, versions 0+.
    pub assignment: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for SyncGroupRequestAssignment {
    const FIELDS: &'static [Field] =
        &[Field::new("MemberId", Kind::Text, 0, 5), Field::new("Assignment", Kind::Bytes, 0, 5)];
}

impl FromWire for SyncGroupRequestAssignment {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        m.assignment = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for SyncGroupRequestAssignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        w.bytes(&self.assignment, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("SyncGroupRequestAssignment.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for SyncGroupRequestAssignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        m.assignment = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for SyncGroupRequest {
    const NAME: &'static str = "SyncGroupRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Request for SyncGroupRequest {
    const KEY: ApiKey = ApiKey::SyncGroup;
    type Response = super::SyncGroupResponse;
}
