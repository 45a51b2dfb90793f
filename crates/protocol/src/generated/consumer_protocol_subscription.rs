//! `ConsumerProtocolSubscription`, versions 0-3.

use super::prelude::*;

/// `ConsumerProtocolSubscription`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerProtocolSubscription {
    /// `Topics`, versions 0+.
    pub topics: Vec<String>,
    /// `UserData`, versions 0+, null in versions 0+.
    pub user_data: Option<Bytes>,
    /// `OwnedPartitions`, versions 1+.
    pub owned_partitions: Vec<TopicPartition>,
    /// `GenerationId`, versions 2+.
    pub generation_id: i32,
    /// `RackId`, versions 3+, null in versions 3+.
    pub rack_id: Option<String>,
}

impl Default for ConsumerProtocolSubscription {
    fn default() -> Self {
        Self {
            topics: Default::default(),
            user_data: None,
            owned_partitions: Default::default(),
            generation_id: -1,
            rack_id: None,
        }
    }
}

impl Structure for ConsumerProtocolSubscription {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Text), 0, 3).of(Entity::TopicName),
        Field::new("UserData", Kind::Bytes, 0, 3).nullable(0, 3),
        Field::new("OwnedPartitions", Kind::Array(&Kind::Struct(TopicPartition::FIELDS)), 1, 3),
        Field::new("GenerationId", Kind::Fixed(4), 2, 3),
        Field::new("RackId", Kind::Text, 3, 3).nullable(3, 3),
    ];
}

impl FromWire for ConsumerProtocolSubscription {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.array(v, f)?;
        m.user_data = r.nullable_bytes(f, true)?;
        if v >= 1 {
            m.owned_partitions = r.array(v, f)?;
        }
        if v >= 2 {
            m.generation_id = r.i32()?;
        }
        if v >= 3 {
            m.rack_id = r.nullable_string(f, true)?;
        }
        Ok(m)
    }
}

impl ToWire for ConsumerProtocolSubscription {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topics, v, f)?;
        w.nullable_bytes(self.user_data.as_deref(), f, true, "UserData")?;
        if v >= 1 {
            w.array(&self.owned_partitions, v, f)?;
        }
        if v >= 2 {
            w.i32(self.generation_id);
        }
        if v >= 3 {
            w.nullable_string(self.rack_id.as_deref(), f, true, "RackId")?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ConsumerProtocolSubscription {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = Random::random(g, v, f);
        m.user_data = g.nullable(true, v, f);
        if v >= 1 {
            m.owned_partitions = Random::random(g, v, f);
        }
        if v >= 2 {
            m.generation_id = Random::random(g, v, f);
        }
        if v >= 3 {
            m.rack_id = g.nullable(true, v, f);
        }
        m
    }
}

/// `TopicPartition` of `ConsumerProtocolSubscription`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartition {
    /// `Topic`, versions 1+.
    pub topic: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<i32>,
}

impl Structure for TopicPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 1, 3).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 1, 3),
    ];
}

impl FromWire for TopicPartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic = r.string(f)?;
        m.partitions = r.array(v, f)?;
        Ok(m)
    }
}

impl ToWire for TopicPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        m
    }
}

impl Message for ConsumerProtocolSubscription {
    const NAME: &'static str = "ConsumerProtocolSubscription";
    const VERSIONS: VersionRange = VersionRange::new(0, 3);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}
