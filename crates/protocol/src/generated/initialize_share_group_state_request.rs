//! `InitializeShareGroupStateRequest`, versions 0-0, API key 83.

use super::prelude::*;

/// `InitializeShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InitializeShareGroupStateRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `Topics`, versions 0+.
    pub topics: Vec<InitializeStateData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for InitializeShareGroupStateRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 0).of(Entity::GroupId),
        Field::new("Topics", Kind::Array(&Kind::Struct(InitializeStateData::FIELDS)), 0, 0),
    ];
}

impl FromWire for InitializeShareGroupStateRequest {
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

impl ToWire for InitializeShareGroupStateRequest {
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
impl Random for InitializeShareGroupStateRequest {
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

/// `InitializeStateData` of `InitializeShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InitializeStateData {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for InitializeStateData {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 0).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 0, 0),
    ];
}

impl FromWire for InitializeStateData {
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

impl ToWire for InitializeStateData {
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
impl Random for InitializeStateData {
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

/// `PartitionData` of `InitializeShareGroupStateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `StateEpoch`, versions 0+.
    pub state_epoch: i32,
    /// `StartOffset`, versions 0+.
    pub start_offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 0, 0),
        Field::new("StateEpoch", Kind::Fixed(4), 0, 0),
        Field::new("StartOffset", Kind::Fixed(8), 0, 0),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 17;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.state_epoch = r.i32()?;
        m.start_offset = r.i64()?;
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
        w.i64(self.start_offset);
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
        m.start_offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for InitializeShareGroupStateRequest {
    const NAME: &'static str = "InitializeShareGroupStateRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for InitializeShareGroupStateRequest {
    const KEY: ApiKey = ApiKey::InitializeShareGroupState;
    type Response = super::InitializeShareGroupStateResponse;
}
