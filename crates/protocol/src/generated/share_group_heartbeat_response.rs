//! `ShareGroupHeartbeatResponse`, versions 1-1, API key 76.

use super::prelude::*;

/// `ShareGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareGroupHeartbeatResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `MemberId`, versions 1+, null in versions 1+.
    pub member_id: Option<String>,
    /// `MemberEpoch`, versions 1+.
    pub member_epoch: i32,
    /// `HeartbeatIntervalMs`, versions 1+.
    pub heartbeat_interval_ms: i32,
    /// `Assignment`, versions 1+, null in versions 1+.
    pub assignment: Option<Assignment>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareGroupHeartbeatResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 1),
        Field::new("ErrorMessage", Kind::Text, 1, 1).nullable(1, 1).of(Entity::Explanation),
        Field::new("MemberId", Kind::Text, 1, 1).nullable(1, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 1, 1),
        Field::new("HeartbeatIntervalMs", Kind::Fixed(4), 1, 1),
        Field::new("Assignment", Kind::Struct(Assignment::FIELDS), 1, 1).nullable(1, 1),
    ];
}

impl FromWire for ShareGroupHeartbeatResponse {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.member_id = r.nullable_string(f, true)?;
        m.member_epoch = r.i32()?;
        m.heartbeat_interval_ms = r.i32()?;
        m.assignment = r.nullable_struct(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareGroupHeartbeatResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.nullable_string(self.member_id.as_deref(), f, true, "MemberId")?;
        w.i32(self.member_epoch);
        w.i32(self.heartbeat_interval_ms);
        w.nullable_struct(self.assignment.as_ref(), v, f, true, "Assignment")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareGroupHeartbeatResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.member_id = g.nullable(true, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.heartbeat_interval_ms = Random::random(g, v, f);
        m.assignment = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Assignment` of `ShareGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Assignment {
    /// `TopicPartitions`, versions 1+.
    pub topic_partitions: Vec<TopicPartitions>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Assignment {
    const FIELDS: &'static [Field] =
        &[Field::new("TopicPartitions", Kind::Array(&Kind::Struct(TopicPartitions::FIELDS)), 1, 1)];
}

impl FromWire for Assignment {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Assignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topic_partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Assignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicPartitions` of `ShareGroupHeartbeatResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartitions {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicPartitions {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 1).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 1, 1),
    ];
}

impl FromWire for TopicPartitions {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_id = r.uuid()?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicPartitions {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.uuid(self.topic_id);
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicPartitions {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_id = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ShareGroupHeartbeatResponse {
    const NAME: &'static str = "ShareGroupHeartbeatResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for ShareGroupHeartbeatResponse {
    const KEY: ApiKey = ApiKey::ShareGroupHeartbeat;
}
