//! `ShareGroupHeartbeatRequest`, versions 1-1, API key 76.

use super::prelude::*;

/// `ShareGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareGroupHeartbeatRequest {
    /// `GroupId`, versions 1+.
    pub group_id: String,
    /// `MemberId`, versions 1+.
    pub member_id: String,
    /// `MemberEpoch`, versions 1+.
    pub member_epoch: i32,
    /// `RackId`, versions 1+, null in versions 1+.
    pub rack_id: Option<String>,
    /// `SubscribedTopicNames`, versions 1+, null in versions 1+.
    pub subscribed_topic_names: Option<Vec<String>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareGroupHeartbeatRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 1, 1).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 1, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 1, 1),
        Field::new("RackId", Kind::Text, 1, 1).nullable(1, 1),
        Field::new("SubscribedTopicNames", Kind::Array(&Kind::Text), 1, 1)
            .nullable(1, 1)
            .of(Entity::TopicName),
    ];
}

impl FromWire for ShareGroupHeartbeatRequest {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.member_id = r.string(f)?;
        m.member_epoch = r.i32()?;
        m.rack_id = r.nullable_string(f, true)?;
        m.subscribed_topic_names = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareGroupHeartbeatRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.string(&self.member_id, f)?;
        w.i32(self.member_epoch);
        w.nullable_string(self.rack_id.as_deref(), f, true, "RackId")?;
        w.nullable_array(
            self.subscribed_topic_names.as_deref(),
            v,
            f,
            true,
            "SubscribedTopicNames",
        )?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareGroupHeartbeatRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.rack_id = g.nullable(true, v, f);
        m.subscribed_topic_names = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ShareGroupHeartbeatRequest {
    const NAME: &'static str = "ShareGroupHeartbeatRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for ShareGroupHeartbeatRequest {
    const KEY: ApiKey = ApiKey::ShareGroupHeartbeat;
    type Response = super::ShareGroupHeartbeatResponse;
}
