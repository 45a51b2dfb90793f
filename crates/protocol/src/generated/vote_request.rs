//! `VoteRequest`, versions 0-2, API key 52.

use super::prelude::*;

/// `VoteRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteRequest {
    /// `ClusterId`, versions 0+, null in versions 0+.
    pub cluster_id: Option<String>,
    /// `VoterId`, versions 1+.
    pub voter_id: i32,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for VoteRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            voter_id: -1,
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for VoteRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 0, 2).nullable(0, 2),
        Field::new("VoterId", Kind::Fixed(4), 1, 2),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 0, 2),
    ];
}

impl FromWire for VoteRequest {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.cluster_id = r.nullable_string(f, true)?;
        if v >= 1 {
            m.voter_id = r.i32()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for VoteRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        if v >= 1 {
            w.i32(self.voter_id);
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for VoteRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.cluster_id = g.nullable(true, v, f);
        if v >= 1 {
            m.voter_id = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `VoteRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicData {
    /// `TopicName`, versions 0+.
    pub topic_name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicData {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicName", Kind::Text, 0, 2).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 0, 2),
    ];
}

impl FromWire for TopicData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic_name, f)?;
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
        m.topic_name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `PartitionData` of `VoteRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ReplicaEpoch`, versions 0+.
    pub replica_epoch: i32,
    /// `ReplicaId`, versions 0+.
    pub replica_id: i32,
    /// `ReplicaDirectoryId`, versions 1+.
    pub replica_directory_id: Uuid,
    /// `VoterDirectoryId`, versions 1+.
    pub voter_directory_id: Uuid,
    /// `LastOffsetEpoch`, versions 0+.
    pub last_offset_epoch: i32,
    /// `LastOffset`, versions 0+.
    pub last_offset: i64,
    /// `PreVote`, versions 2+.
    pub pre_vote: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 2),
        Field::new("ReplicaEpoch", Kind::Fixed(4), 0, 2),
        Field::new("ReplicaId", Kind::Fixed(4), 0, 2),
        Field::new("ReplicaDirectoryId", Kind::Uuid, 1, 2),
        Field::new("VoterDirectoryId", Kind::Uuid, 1, 2),
        Field::new("LastOffsetEpoch", Kind::Fixed(4), 0, 2),
        Field::new("LastOffset", Kind::Fixed(8), 0, 2),
        Field::new("PreVote", Kind::Fixed(1), 2, 2),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 25;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.replica_epoch = r.i32()?;
        m.replica_id = r.i32()?;
        if v >= 1 {
            m.replica_directory_id = r.uuid()?;
        }
        if v >= 1 {
            m.voter_directory_id = r.uuid()?;
        }
        m.last_offset_epoch = r.i32()?;
        m.last_offset = r.i64()?;
        if v >= 2 {
            m.pre_vote = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i32(self.replica_epoch);
        w.i32(self.replica_id);
        if v >= 1 {
            w.uuid(self.replica_directory_id);
        }
        if v >= 1 {
            w.uuid(self.voter_directory_id);
        }
        w.i32(self.last_offset_epoch);
        w.i64(self.last_offset);
        if v >= 2 {
            w.bool(self.pre_vote);
        } else if self.pre_vote {
            return Err(EncodeError::absent("PartitionData.PreVote", v));
        }
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
        m.replica_epoch = Random::random(g, v, f);
        m.replica_id = Random::random(g, v, f);
        if v >= 1 {
            m.replica_directory_id = Random::random(g, v, f);
        }
        if v >= 1 {
            m.voter_directory_id = Random::random(g, v, f);
        }
        m.last_offset_epoch = Random::random(g, v, f);
        m.last_offset = Random::random(g, v, f);
        if v >= 2 {
            m.pre_vote = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for VoteRequest {
    const NAME: &'static str = "VoteRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for VoteRequest {
    const KEY: ApiKey = ApiKey::Vote;
    type Response = super::VoteResponse;
}
