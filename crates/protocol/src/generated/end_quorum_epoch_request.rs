//! `EndQuorumEpochRequest`, versions 0-1, API key 54.

use super::prelude::*;

/// `EndQuorumEpochRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EndQuorumEpochRequest {
    /// `ClusterId`, versions 0+, null in versions 0+.
    pub cluster_id: Option<String>,
    /// `Topics`, versions 0+.
    pub topics: Vec<TopicData>,
    /// `LeaderEndpoints`, versions 1+.
    pub leader_endpoints: Vec<LeaderEndpoint>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for EndQuorumEpochRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("Topics", Kind::Array(&Kind::Struct(TopicData::FIELDS)), 0, 1),
        Field::new("LeaderEndpoints", Kind::Array(&Kind::Struct(LeaderEndpoint::FIELDS)), 1, 1),
    ];
}

impl FromWire for EndQuorumEpochRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.cluster_id = r.nullable_string(f, true)?;
        m.topics = r.array(v, f)?;
        if v >= 1 {
            m.leader_endpoints = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EndQuorumEpochRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        w.array(&self.topics, v, f)?;
        if v >= 1 {
            w.array(&self.leader_endpoints, v, f)?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("EndQuorumEpochRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EndQuorumEpochRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.cluster_id = g.nullable(true, v, f);
        m.topics = Random::random(g, v, f);
        if v >= 1 {
            m.leader_endpoints = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicData` of `EndQuorumEpochRequest`.
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
        Field::new("TopicName", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionData::FIELDS)), 0, 1),
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
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("TopicData.unknown_tagged_fields", v));
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

/// `PartitionData` of `EndQuorumEpochRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionData {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `PreferredSuccessors`, version 0.
    pub preferred_successors: Vec<i32>,
    /// `PreferredCandidates`, versions 1+.
    pub preferred_candidates: Vec<ReplicaInfo>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionData {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 1),
        Field::new("LeaderId", Kind::Fixed(4), 0, 1),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 1),
        Field::new("PreferredSuccessors", Kind::Array(&Kind::Fixed(4)), 0, 0),
        Field::new("PreferredCandidates", Kind::Array(&Kind::Struct(ReplicaInfo::FIELDS)), 1, 1),
    ];
}

impl FromWire for PartitionData {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.leader_id = r.i32()?;
        m.leader_epoch = r.i32()?;
        if v <= 0 {
            m.preferred_successors = r.array(v, f)?;
        }
        if v >= 1 {
            m.preferred_candidates = r.array(v, f)?;
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
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        if v <= 0 {
            w.array(&self.preferred_successors, v, f)?;
        }
        if v >= 1 {
            w.array(&self.preferred_candidates, v, f)?;
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("PartitionData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.leader_id = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        if v <= 0 {
            m.preferred_successors = Random::random(g, v, f);
        }
        if v >= 1 {
            m.preferred_candidates = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReplicaInfo` of `EndQuorumEpochRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReplicaInfo {
    /// `CandidateId`, versions 1+.
    pub candidate_id: i32,
    /// `CandidateDirectoryId`, versions 1+.
    pub candidate_directory_id: Uuid,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReplicaInfo {
    const FIELDS: &'static [Field] = &[
        Field::new("CandidateId", Kind::Fixed(4), 1, 1),
        Field::new("CandidateDirectoryId", Kind::Uuid, 1, 1),
    ];
}

impl FromWire for ReplicaInfo {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.candidate_id = r.i32()?;
        m.candidate_directory_id = r.uuid()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReplicaInfo {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.candidate_id);
        w.uuid(self.candidate_directory_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReplicaInfo {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.candidate_id = Random::random(g, v, f);
        m.candidate_directory_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `LeaderEndpoint` of `EndQuorumEpochRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LeaderEndpoint {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Host`, versions 1+.
    pub host: String,
    /// `Port`, versions 1+.
    pub port: u16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for LeaderEndpoint {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 1),
        Field::new("Host", Kind::Text, 1, 1),
        Field::new("Port", Kind::Fixed(2), 1, 1),
    ];
}

impl FromWire for LeaderEndpoint {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.host = r.string(f)?;
        m.port = r.u16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for LeaderEndpoint {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.string(&self.host, f)?;
        w.u16(self.port);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for LeaderEndpoint {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for EndQuorumEpochRequest {
    const NAME: &'static str = "EndQuorumEpochRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for EndQuorumEpochRequest {
    const KEY: ApiKey = ApiKey::EndQuorumEpoch;
    type Response = super::EndQuorumEpochResponse;
}
