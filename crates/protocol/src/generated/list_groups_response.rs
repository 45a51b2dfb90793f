//! `ListGroupsResponse`, versions 0-5, API key 16.

use super::prelude::*;

/// `ListGroupsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListGroupsResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `Groups`, versions 0+.
    pub groups: Vec<ListedGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListGroupsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 5),
        Field::new("Groups", Kind::Array(&Kind::Struct(ListedGroup::FIELDS)), 0, 5),
    ];
}

impl FromWire for ListGroupsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = r.i32()?;
        }
        m.error_code = r.i16()?;
        m.groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListGroupsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.i32(self.throttle_time_ms);
        }
        w.i16(self.error_code);
        w.array(&self.groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListGroupsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListGroupsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        m.groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ListedGroup` of `ListGroupsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListedGroup {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `ProtocolType`, versions 0+.
    pub protocol_type: String,
    /// `GroupState`, versions 4+.
    pub group_state: String,
    /// `GroupType`, versions 5+.
    pub group_type: String,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListedGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 5).of(Entity::GroupId),
        Field::new("ProtocolType", Kind::Text, 0, 5),
        Field::new("GroupState", Kind::Text, 4, 5),
        Field::new("GroupType", Kind::Text, 5, 5),
    ];
}

impl FromWire for ListedGroup {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.protocol_type = r.string(f)?;
        if v >= 4 {
            m.group_state = r.string(f)?;
        }
        if v >= 5 {
            m.group_type = r.string(f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListedGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.string(&self.protocol_type, f)?;
        if v >= 4 {
            w.string(&self.group_state, f)?;
        }
        if v >= 5 {
            w.string(&self.group_type, f)?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListedGroup.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListedGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.protocol_type = Random::random(g, v, f);
        if v >= 4 {
            m.group_state = Random::random(g, v, f);
        }
        if v >= 5 {
            m.group_type = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListGroupsResponse {
    const NAME: &'static str = "ListGroupsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Response for ListGroupsResponse {
    const KEY: ApiKey = ApiKey::ListGroups;
}
