//! `OffsetForLeaderEpochRequest`, versions 2-4, API key 23.

use super::prelude::*;

/// `OffsetForLeaderEpochRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetForLeaderEpochRequest {
    /// `ReplicaId`, versions 3+.
    pub replica_id: i32,
    /// `Topics`, versions 2+.
    pub topics: Vec<OffsetForLeaderTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetForLeaderEpochRequest {
    fn default() -> Self {
        Self { replica_id: -2, topics: Default::default(), unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for OffsetForLeaderEpochRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ReplicaId", Kind::Fixed(4), 3, 4),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetForLeaderTopic::FIELDS)), 2, 4),
    ];
}

impl FromWire for OffsetForLeaderEpochRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 3 {
            m.replica_id = r.i32()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetForLeaderEpochRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 3 {
            w.i32(self.replica_id);
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "OffsetForLeaderEpochRequest.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetForLeaderEpochRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 3 {
            m.replica_id = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetForLeaderTopic` of `OffsetForLeaderEpochRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetForLeaderTopic {
    /// `Topic`, versions 2+.
    pub topic: String,
    /// `Partitions`, versions 2+.
    pub partitions: Vec<OffsetForLeaderPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetForLeaderTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 2, 4).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OffsetForLeaderPartition::FIELDS)),
            2,
            4,
        ),
    ];
}

impl FromWire for OffsetForLeaderTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetForLeaderTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetForLeaderTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetForLeaderTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetForLeaderPartition` of `OffsetForLeaderEpochRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetForLeaderPartition {
    /// `Partition`, versions 2+.
    pub partition: i32,
    /// `CurrentLeaderEpoch`, versions 2+.
    pub current_leader_epoch: i32,
    /// `LeaderEpoch`, versions 2+.
    pub leader_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for OffsetForLeaderPartition {
    fn default() -> Self {
        Self {
            partition: Default::default(),
            current_leader_epoch: -1,
            leader_epoch: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for OffsetForLeaderPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 2, 4),
        Field::new("CurrentLeaderEpoch", Kind::Fixed(4), 2, 4),
        Field::new("LeaderEpoch", Kind::Fixed(4), 2, 4),
    ];
}

impl FromWire for OffsetForLeaderPartition {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.current_leader_epoch = r.i32()?;
        m.leader_epoch = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetForLeaderPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition);
        w.i32(self.current_leader_epoch);
        w.i32(self.leader_epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetForLeaderPartition.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetForLeaderPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition = Random::random(g, v, f);
        m.current_leader_epoch = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for OffsetForLeaderEpochRequest {
    const NAME: &'static str = "OffsetForLeaderEpochRequest";
    const VERSIONS: VersionRange = VersionRange::new(2, 4);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Request for OffsetForLeaderEpochRequest {
    const KEY: ApiKey = ApiKey::OffsetForLeaderEpoch;
    type Response = super::OffsetForLeaderEpochResponse;
}
