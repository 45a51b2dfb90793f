//! `AlterPartitionResponse`, versions 2-3, API key 56.

use super::prelude::*;

/// `AlterPartitionResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterPartitionResponse {
    /// `ThrottleTimeMs`, versions 2+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 2+.
    pub error_code: i16,
    /// `Topics`, versions 2+.
    pub topics: Vec<TopicData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterPartitionResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 2, 3),
        Field::new("ErrorCode", Kind::Fixed(2), 2, 3),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 2, 3),
    ];
}

impl FromWire for AlterPartitionResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterPartitionResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterPartitionResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `AlterPartitionResponse`.
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

/// `PartitionData` of `AlterPartitionResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 2+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 2+.
    pub error_code: i16,
    /// `LeaderId`, versions 2+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 2+.
    pub leader_epoch: i32,
    /// `Isr`, versions 2+.
    pub isr: Vec<i32>,
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
        Field::new("ErrorCode", Kind::Fixed(2), 2, 3),
        Field::new("LeaderId", Kind::Fixed(4), 2, 3),
        Field::new("LeaderEpoch", Kind::Fixed(4), 2, 3),
        Field::new("Isr", Kind::Array(&Kind::Fixed(4)), 2, 3),
        Field::new("LeaderRecoveryState", Kind::Fixed(1), 2, 3),
        Field::new("PartitionEpoch", Kind::Fixed(4), 2, 3),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.leader_id = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.isr = r.array(v, f)?;
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
        w.i16(self.error_code);
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        w.array(&self.isr, v, f)?;
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
        m.error_code = Random::random(g, v, f);
        m.leader_id = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.isr = Random::random(g, v, f);
        m.leader_recovery_state = Random::random(g, v, f);
        m.partition_epoch = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterPartitionResponse {
    const NAME: &'static str = "AlterPartitionResponse";
    const VERSIONS: VersionRange = VersionRange::new(2, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for AlterPartitionResponse {
    const KEY: ApiKey = ApiKey::AlterPartition;
}
