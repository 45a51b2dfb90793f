//! `AlterPartitionRequest`, versions 2-3, API key 56.

use super::prelude::*;

/// `AlterPartitionRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPartitionRequest {
    /// `BrokerId`, versions 2+.
    pub broker_id: i32,
    /// `BrokerEpoch`, versions 2+.
    pub broker_epoch: i64,
    /// `Topics`, versions 2+.
    pub topics: Vec<TopicData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AlterPartitionRequest {
    fn default() -> Self {
        Self {
            broker_id: Default::default(),
            broker_epoch: -1,
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AlterPartitionRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 2, 3),
        Field::new("BrokerEpoch", Kind::Fixed(8), 2, 3),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 2, 3),
    ];
}

impl FromWire for AlterPartitionRequest {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.broker_epoch = r.i64()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterPartitionRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.i64(self.broker_epoch);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterPartitionRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.broker_epoch = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `AlterPartitionRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicData {
    /// `TopicId`, versions 2+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 2+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicData {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 2, 3).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 2, 3),
    ];
}

impl FromWire for TopicData {
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

impl ToWire for TopicData {
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
impl Random for TopicData {
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

/// `PartitionData` of `AlterPartitionRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 2+.
    pub partition_index: i32,
    /// `LeaderEpoch`, versions 2+.
    pub leader_epoch: i32,
    /// `NewIsr`, version 2.
    pub new_isr: Vec<i32>,
    /// `NewIsrWithEpochs`, versions 3+.
    pub new_isr_with_epochs: Vec<BrokerState>,
    /// `LeaderRecoveryState`, versions 2+.
    pub leader_recovery_state: i8,
    /// `PartitionEpoch`, versions 2+.
    pub partition_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 2, 3),
        Field::new("LeaderEpoch", Kind::Fixed(4), 2, 3),
        Field::new("NewIsr", Kind::Array(&Kind::Fixed(4)), 2, 2),
        Field::new("NewIsrWithEpochs", Kind::Array(&Kind::Struct(BrokerState::FIELDS)), 3, 3),
        Field::new("LeaderRecoveryState", Kind::Fixed(1), 2, 3),
        Field::new("PartitionEpoch", Kind::Fixed(4), 2, 3),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.leader_epoch = r.i32()?;
        if v <= 2 {
            m.new_isr = r.array(v, f)?;
        }
        if v >= 3 {
            m.new_isr_with_epochs = r.array(v, f)?;
        }
        m.leader_recovery_state = r.i8()?;
        m.partition_epoch = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i32(self.leader_epoch);
        if v <= 2 {
            w.array(&self.new_isr, v, f)?;
        } else if !self.new_isr.is_empty() {
            return Err(EncodeError::absent("PartitionData.NewIsr", v));
        }
        if v >= 3 {
            w.array(&self.new_isr_with_epochs, v, f)?;
        } else if !self.new_isr_with_epochs.is_empty() {
            return Err(EncodeError::absent("PartitionData.NewIsrWithEpochs", v));
        }
        w.i8(self.leader_recovery_state);
        w.i32(self.partition_epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        if v <= 2 {
            m.new_isr = Random::random(g, v, f);
        }
        if v >= 3 {
            m.new_isr_with_epochs = Random::random(g, v, f);
        }
        m.leader_recovery_state = Random::random(g, v, f);
        m.partition_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `BrokerState` of `AlterPartitionRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerState {
    /// `BrokerId`, versions 3+.
    pub broker_id: i32,
    /// `BrokerEpoch`, versions 3+.
    pub broker_epoch: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for BrokerState {
    fn default() -> Self {
        Self { broker_id: Default::default(), broker_epoch: -1, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for BrokerState {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 3, 3),
        Field::new("BrokerEpoch", Kind::Fixed(8), 3, 3),
    ];
}

impl FromWire for BrokerState {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.broker_epoch = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for BrokerState {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.i64(self.broker_epoch);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for BrokerState {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.broker_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterPartitionRequest {
    const NAME: &'static str = "AlterPartitionRequest";
    const VERSIONS: VersionRange = VersionRange::new(2, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for AlterPartitionRequest {
    const KEY: ApiKey = ApiKey::AlterPartition;
    type Response = super::AlterPartitionResponse;
}
