//! `ConsumerGroupHeartbeatRequest`, versions 0-1, API key 68.

use super::prelude::*;

/// `ConsumerGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerGroupHeartbeatRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `MemberEpoch`, versions 0+.
    pub member_epoch: i32,
    /// `InstanceId`, versions 0+, null in versions 0+.
    pub instance_id: Option<String>,
    /// `RackId`, versions 0+, null in versions 0+.
    pub rack_id: Option<String>,
    /// `RebalanceTimeoutMs`, versions 0+.
    pub rebalance_timeout_ms: i32,
    /// `SubscribedTopicNames`, versions 0+, null in versions 0+.
    pub subscribed_topic_names: Option<Vec<String>>,
    /// `SubscribedTopicRegex`, versions 1+, null in versions 1+.
    pub subscribed_topic_regex: Option<String>,
    /// `ServerAssignor`, versions 0+, null in versions 0+.
    pub server_assignor: Option<String>,
    /// `TopicPartitions`, versions 0+, null in versions 0+.
    pub topic_partitions: Option<Vec<TopicPartitions>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ConsumerGroupHeartbeatRequest {
    fn default() -> Self {
        Self {
            group_id: Default::default(),
            member_id: Default::default(),
            member_epoch: Default::default(),
            instance_id: None,
            rack_id: None,
            rebalance_timeout_ms: -1,
            subscribed_topic_names: None,
            subscribed_topic_regex: None,
            server_assignor: None,
            topic_partitions: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ConsumerGroupHeartbeatRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 1).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 0, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 0, 1),
        Field::new("InstanceId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("RackId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("RebalanceTimeoutMs", Kind::Fixed(4), 0, 1),
        Field::new("SubscribedTopicNames", Kind::Array(&Kind::Text), 0, 1)
            .nullable(0, 1)
            .of(Entity::TopicName),
        Field::new("SubscribedTopicRegex", Kind::Text, 1, 1).nullable(1, 1),
        Field::new("ServerAssignor", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("TopicPartitions", Kind::Array(&Kind::Struct(TopicPartitions::FIELDS)), 0, 1)
            .nullable(0, 1),
    ];
}

impl FromWire for ConsumerGroupHeartbeatRequest {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.member_id = r.string(f)?;
        m.member_epoch = r.i32()?;
        m.instance_id = r.nullable_string(f, true)?;
        m.rack_id = r.nullable_string(f, true)?;
        m.rebalance_timeout_ms = r.i32()?;
        m.subscribed_topic_names = r.nullable_array(v, f, true)?;
        if v >= 1 {
            m.subscribed_topic_regex = r.nullable_string(f, true)?;
        }
        m.server_assignor = r.nullable_string(f, true)?;
        m.topic_partitions = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ConsumerGroupHeartbeatRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.string(&self.member_id, f)?;
        w.i32(self.member_epoch);
        w.nullable_string(self.instance_id.as_deref(), f, true, "InstanceId")?;
        w.nullable_string(self.rack_id.as_deref(), f, true, "RackId")?;
        w.i32(self.rebalance_timeout_ms);
        w.nullable_array(
            self.subscribed_topic_names.as_deref(),
            v,
            f,
            true,
            "SubscribedTopicNames",
        )?;
        if v >= 1 {
            w.nullable_string(
                self.subscribed_topic_regex.as_deref(),
                f,
                true,
                "SubscribedTopicRegex",
            )?;
        } else if self.subscribed_topic_regex.is_some() {
            return Err(EncodeError::absent(
                "ConsumerGroupHeartbeatRequest.SubscribedTopicRegex",
                v,
            ));
        }
        w.nullable_string(self.server_assignor.as_deref(), f, true, "ServerAssignor")?;
        w.nullable_array(self.topic_partitions.as_deref(), v, f, true, "TopicPartitions")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ConsumerGroupHeartbeatRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.instance_id = g.nullable(true, v, f);
        m.rack_id = g.nullable(true, v, f);
        m.rebalance_timeout_ms = Random::random(g, v, f);
        m.subscribed_topic_names = g.nullable(true, v, f);
        if v >= 1 {
            m.subscribed_topic_regex = g.nullable(true, v, f);
        }
        m.server_assignor = g.nullable(true, v, f);
        m.topic_partitions = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicPartitions` of `ConsumerGroupHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartitions {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicPartitions {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 1).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 1),
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

impl Message for ConsumerGroupHeartbeatRequest {
    const NAME: &'static str = "ConsumerGroupHeartbeatRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for ConsumerGroupHeartbeatRequest {
    const KEY: ApiKey = ApiKey::ConsumerGroupHeartbeat;
    type Response = super::ConsumerGroupHeartbeatResponse;
}
