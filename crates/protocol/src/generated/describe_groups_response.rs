//! `DescribeGroupsResponse`, versions 0-6, API key 15.

use super::prelude::*;

/// `DescribeGroupsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeGroupsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `Groups`, versions 0+.
    pub groups: Vec<DescribedGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeGroupsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 6),
        Field::new("Groups", Kind::Array(&Kind::Struct(DescribedGroup::FIELDS)), 0, 6),
    ];
}

impl FromWire for DescribeGroupsResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = r.i32()?;
        }
        m.groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeGroupsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.i32(self.throttle_time_ms);
        }
        w.array(&self.groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeGroupsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeGroupsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribedGroup` of `DescribeGroupsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 6+, null in versions 6+.
    pub error_message: Option<String>,
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `GroupState`, versions 0+.
    pub group_state: String,
    /// `ProtocolType`, versions 0+.
    pub protocol_type: String,
    /// `ProtocolData`, versions 0+.
    pub protocol_data: String,
    /// `Members`, versions 0+.
    pub members: Vec<DescribedGroupMember>,
    /// `AuthorizedOperations`, versions 3+.
    pub authorized_operations: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: None,
            group_id: Default::default(),
            group_state: Default::default(),
            protocol_type: Default::default(),
            protocol_data: Default::default(),
            members: Default::default(),
            authorized_operations: -2147483648,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribedGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 0, 6),
        Field::new("ErrorMessage", Kind::Text, 6, 6).nullable(6, 6).of(Entity::Explanation),
        Field::new("GroupId", Kind::Text, 0, 6).of(Entity::GroupId),
        Field::new("GroupState", Kind::Text, 0, 6),
        Field::new("ProtocolType", Kind::Text, 0, 6),
        Field::new("ProtocolData", Kind::Text, 0, 6),
        Field::new("Members", Kind::Array(&Kind::Struct(DescribedGroupMember::FIELDS)), 0, 6),
        Field::new("AuthorizedOperations", Kind::Fixed(4), 3, 6),
    ];
}

impl FromWire for DescribedGroup {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        if v >= 6 {
            m.error_message = r.nullable_string(f, true)?;
        }
        m.group_id = r.string(f)?;
        m.group_state = r.string(f)?;
        m.protocol_type = r.string(f)?;
        m.protocol_data = r.string(f)?;
        m.members = r.array(v, f)?;
        if v >= 3 {
            m.authorized_operations = r.i32()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribedGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        if v >= 6 {
            w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        } else if self.error_message.is_some() {
            return Err(EncodeError::absent("DescribedGroup.ErrorMessage", v));
        }
        w.string(&self.group_id, f)?;
        w.string(&self.group_state, f)?;
        w.string(&self.protocol_type, f)?;
        w.string(&self.protocol_data, f)?;
        w.array(&self.members, v, f)?;
        if v >= 3 {
            w.i32(self.authorized_operations);
        } else if self.authorized_operations != -2147483648 {
            return Err(EncodeError::absent("DescribedGroup.AuthorizedOperations", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribedGroup.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribedGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        if v >= 6 {
            m.error_message = g.nullable(true, v, f);
        }
        m.group_id = Random::random(g, v, f);
        m.group_state = Random::random(g, v, f);
        m.protocol_type = Random::random(g, v, f);
        m.protocol_data = Random::random(g, v, f);
        m.members = Random::random(g, v, f);
        if v >= 3 {
            m.authorized_operations = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribedGroupMember` of `DescribeGroupsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribedGroupMember {
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 4+, null in versions 4+.
    pub group_instance_id: Option<String>,
    /// `ClientId`, versions 0+.
    pub client_id: String,
    /// `ClientHost`, versions 0+.
    pub client_host: String,
    /// `MemberMetadata`, versions 0+.
    pub member_metadata: Bytes,
    /// `MemberAssignment`, versions 0+.
    pub member_assignment: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribedGroupMember {
    const FIELDS: &'static [Field] = &[
        Field::new("MemberId", Kind::Text, 0, 6),
        Field::new("GroupInstanceId", Kind::Text, 4, 6).nullable(4, 6),
        Field::new("ClientId", Kind::Text, 0, 6),
        Field::new("ClientHost", Kind::Text, 0, 6),
        Field::new("MemberMetadata", Kind::Bytes, 0, 6),
        Field::new("MemberAssignment", Kind::Bytes, 0, 6),
    ];
}

impl FromWire for DescribedGroupMember {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        if v >= 4 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        m.client_id = r.string(f)?;
        m.client_host = r.string(f)?;
        m.member_metadata = r.bytes(f)?;
        m.member_assignment = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribedGroupMember {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        if v >= 4 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        }
        w.string(&self.client_id, f)?;
        w.string(&self.client_host, f)?;
        w.bytes(&self.member_metadata, f)?;
        w.bytes(&self.member_assignment, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribedGroupMember.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribedGroupMember {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        if v >= 4 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        m.client_id = Random::random(g, v, f);
        m.client_host = Random::random(g, v, f);
        m.member_metadata = Random::random(g, v, f);
        m.member_assignment = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeGroupsResponse {
    const NAME: &'static str = "DescribeGroupsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 6);
    const FLEXIBLE_FROM: i16 = 5;
}

impl Response for DescribeGroupsResponse {
    const KEY: ApiKey = ApiKey::DescribeGroups;
}
