//! `ConsumerProtocolAssignment`, versions 0-3.

use super::prelude::*;

/// `ConsumerProtocolAssignment`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ConsumerProtocolAssignment {
    /// `AssignedPartitions`, versions 0+.
    pub assigned_partitions: Vec<TopicPartition>,
    /// `UserData`, versions 0+, null in versions 0+.
    pub user_data: Option<Bytes>,
}

impl Structure for ConsumerProtocolAssignment {
    const FIELDS: &'static [Field] = &[
        Field::new("AssignedPartitions", Kind::Array(&Kind::Struct(TopicPartition::FIELDS)), 0, 3),
        Field::new("UserData", Kind::Bytes, 0, 3).nullable(0, 3),
    ];
}

impl FromWire for ConsumerProtocolAssignment {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.assigned_partitions = r.array(v, f)?;
        m.user_data = r.nullable_bytes(f, true)?;
        Ok(m)
    }
}

impl ToWire for ConsumerProtocolAssignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.assigned_partitions, v, f)?;
        w.nullable_bytes(self.user_data.as_deref(), f, true, "UserData")?;
        Ok(())
    }
}

#[cfg(test)]
impl Random for ConsumerProtocolAssignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.assigned_partitions = Random::random(g, v, f);
        m.user_data = g.nullable(true, v, f);
        m
    }
}

/// `TopicPartition` of `ConsumerProtocolAssignment`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartition {
    /// `Topic`, versions 0+.
    pub topic: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
}

impl Structure for TopicPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 0, 3).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 3),
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

impl Message for ConsumerProtocolAssignment {
    const NAME: &'static str = "ConsumerProtocolAssignment";
    const VERSIONS: VersionRange = VersionRange::new(0, 3);
    const FLEXIBLE_FROM: i16 = i16::MAX;
}
