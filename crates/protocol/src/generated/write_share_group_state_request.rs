//! `WriteShareGroupStateRequest`, versions 0-1, API key 85.

use super::prelude::*;

/// `WriteShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteShareGroupStateRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+.
    pub topics: Vec<WriteStateData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WriteShareGroupStateRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 1).of(Entity::GroupId),
        Field::new("Topics", Kind::Array(&Kind::Struct(WriteStateData::FIELDS)), 0, 1),
    ];
}

impl FromWire for WriteShareGroupStateRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for WriteShareGroupStateRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WriteShareGroupStateRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `WriteStateData` of `WriteShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteStateData {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WriteStateData {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 1).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 0, 1),
    ];
}

impl FromWire for WriteStateData {
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

impl ToWire for WriteStateData {
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
impl Random for WriteStateData {
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

/// `PartitionData` of `WriteShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionData {
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `StateEpoch`, versions 0+.
    pub state_epoch: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `StartOffset`, versions 0+.
    pub start_offset: i64,
    /// `DeliveryCompleteCount`, versions 1+.
    pub delivery_complete_count: i32,
    /// `StateBatches`, versions 0+.
    pub state_batches: Vec<StateBatch>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition: Default::default(),
            state_epoch: Default::default(),
            leader_epoch: Default::default(),
            start_offset: Default::default(),
            delivery_complete_count: -1,
            state_batches: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 0, 1),
        Field::new("StateEpoch", Kind::Fixed(4), 0, 1),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 1),
        Field::new("StartOffset", Kind::Fixed(8), 0, 1),
        Field::new("DeliveryCompleteCount", Kind::Fixed(4), 1, 1),
        Field::new("StateBatches", Kind::Array(&Kind::Struct(StateBatch::FIELDS)), 0, 1),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.state_epoch = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.start_offset = r.i64()?;
        if v >= 1 {
            m.delivery_complete_count = r.i32()?;
        }
        m.state_batches = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition);
        w.i32(self.state_epoch);
        w.i32(self.leader_epoch);
        w.i64(self.start_offset);
        if v >= 1 {
            w.i32(self.delivery_complete_count);
        }
        w.array(&self.state_batches, v, f)?;
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
        m.partition = Random::random(g, v, f);
        m.state_epoch = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.start_offset = Random::random(g, v, f);
        if v >= 1 {
            m.delivery_complete_count = Random::random(g, v, f);
        }
        m.state_batches = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `StateBatch` of `WriteShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StateBatch {
    /// `FirstOffset`, versions 0+.
    pub first_offset: i64,
    /// `LastOffset`, versions 0+.
    pub last_offset: i64,
    /// `DeliveryState`, versions 0+.
    pub delivery_state: i8,
    /// `DeliveryCount`, versions 0+.
    pub delivery_count: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for StateBatch {
    const FIELDS: &'static [Field] = &[
        Field::new("FirstOffset", Kind::Fixed(8), 0, 1),
        Field::new("LastOffset", Kind::Fixed(8), 0, 1),
        Field::new("DeliveryState", Kind::Fixed(1), 0, 1),
        Field::new("DeliveryCount", Kind::Fixed(2), 0, 1),
    ];
}

impl FromWire for StateBatch {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.first_offset = r.i64()?;
        m.last_offset = r.i64()?;
        m.delivery_state = r.i8()?;
        m.delivery_count = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for StateBatch {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.i8(self.delivery_state);
        w.i16(self.delivery_count);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for StateBatch {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.first_offset = Random::random(g, v, f);
        m.last_offset = Random::random(g, v, f);
        m.delivery_state = Random::random(g, v, f);
        m.delivery_count = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for WriteShareGroupStateRequest {
    const NAME: &'static str = "WriteShareGroupStateRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for WriteShareGroupStateRequest {
    const KEY: ApiKey = ApiKey::WriteShareGroupState;
    type Response = super::WriteShareGroupStateResponse;
}
