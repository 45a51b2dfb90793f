//! `HeartbeatRequest`, versions 0-4, API key 12.

use super::prelude::*;

/// `HeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct HeartbeatRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `GenerationId`, versions 0+.
    pub generation_id: i32,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `GroupInstanceId`, versions 3+, null in versions 3+.
    pub group_instance_id: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for HeartbeatRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 4).of(Entity::GroupId),
        Field::new("GenerationId", Kind::Fixed(4), 0, 4),
        Field::new("MemberId", Kind::Text, 0, 4),
        Field::new("GroupInstanceId", Kind::Text, 3, 4).nullable(3, 4),
    ];
}

impl FromWire for HeartbeatRequest {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.generation_id = r.i32()?;
        m.member_id = r.string(f)?;
        if v >= 3 {
            m.group_instance_id = r.nullable_string(f, true)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for HeartbeatRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.i32(self.generation_id);
        w.string(&self.member_id, f)?;
        if v >= 3 {
            w.nullable_string(self.group_instance_id.as_deref(), f, true, "GroupInstanceId")?;
        } else if self.group_instance_id.is_some() {
            return Err(EncodeError::absent("HeartbeatRequest.GroupInstanceId", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("HeartbeatRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for HeartbeatRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.generation_id = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        if v >= 3 {
            m.group_instance_id = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for HeartbeatRequest {
    const NAME: &'static str = "HeartbeatRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 4);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Request for HeartbeatRequest {
    const KEY: ApiKey = ApiKey::Heartbeat;
    type Response = super::HeartbeatResponse;
}
