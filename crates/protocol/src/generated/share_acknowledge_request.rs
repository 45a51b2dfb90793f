//! `ShareAcknowledgeRequest`, versions 1-2, API key 79.

use super::prelude::*;

/// `ShareAcknowledgeRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareAcknowledgeRequest {
    /// `GroupId`, versions 1+, null in versions 1+.
    pub group_id: Option<String>,
    /// `MemberId`, versions 1+, null in versions 1+.
    pub member_id: Option<String>,
    /// `ShareSessionEpoch`, versions 1+.
    pub share_session_epoch: i32,
    /// `IsRenewAck`, versions 2+.
    pub is_renew_ack: bool,
    /// `Topics`, versions 1+.
    pub topics: Vec<AcknowledgeTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ShareAcknowledgeRequest {
    fn default() -> Self {
        Self {
            group_id: None,
            member_id: Some(Default::default()),
            share_session_epoch: Default::default(),
            is_renew_ack: Default::default(),
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ShareAcknowledgeRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 1, 2).nullable(1, 2).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 1, 2).nullable(1, 2),
        Field::new("ShareSessionEpoch", Kind::Fixed(4), 1, 2),
        Field::new("IsRenewAck", Kind::Fixed(1), 2, 2),
        Field::new("Topics", Kind::Array(&Kind::Struct(AcknowledgeTopic::FIELDS)), 1, 2),
    ];
}

impl FromWire for ShareAcknowledgeRequest {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.nullable_string(f, true)?;
        m.member_id = r.nullable_string(f, true)?;
        m.share_session_epoch = r.i32()?;
        if v >= 2 {
            m.is_renew_ack = r.bool()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareAcknowledgeRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.group_id.as_deref(), f, true, "GroupId")?;
        w.nullable_string(self.member_id.as_deref(), f, true, "MemberId")?;
        w.i32(self.share_session_epoch);
        if v >= 2 {
            w.bool(self.is_renew_ack);
        } else if self.is_renew_ack {
            return Err(EncodeError::absent("ShareAcknowledgeRequest.IsRenewAck", v));
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareAcknowledgeRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = g.nullable(true, v, f);
        m.member_id = g.nullable(true, v, f);
        m.share_session_epoch = Random::random(g, v, f);
        if v >= 2 {
            m.is_renew_ack = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AcknowledgeTopic` of `ShareAcknowledgeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AcknowledgeTopic {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<AcknowledgePartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AcknowledgeTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 2).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(AcknowledgePartition::FIELDS)), 1, 2),
    ];
}

impl FromWire for AcknowledgeTopic {
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

impl ToWire for AcknowledgeTopic {
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
impl Random for AcknowledgeTopic {
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

/// `AcknowledgePartition` of `ShareAcknowledgeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AcknowledgePartition {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `AcknowledgementBatches`, versions 1+.
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AcknowledgePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 2),
        Field::new(
            "AcknowledgementBatches",
            Kind::Array(&Kind::Struct(AcknowledgementBatch::FIELDS)),
            1,
            2,
        ),
    ];
}

impl FromWire for AcknowledgePartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.acknowledgement_batches = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AcknowledgePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.array(&self.acknowledgement_batches, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AcknowledgePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.acknowledgement_batches = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AcknowledgementBatch` of `ShareAcknowledgeRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AcknowledgementBatch {
    /// `FirstOffset`, versions 1+.
    pub first_offset: i64,
    /// `LastOffset`, versions 1+.
    pub last_offset: i64,
    /// `AcknowledgeTypes`, versions 1+.
    pub acknowledge_types: Vec<i8>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AcknowledgementBatch {
    const FIELDS: &'static [Field] = &[
        Field::new("FirstOffset", Kind::Fixed(8), 1, 2),
        Field::new("LastOffset", Kind::Fixed(8), 1, 2),
        Field::new("AcknowledgeTypes", Kind::Array(&Kind::Fixed(1)), 1, 2),
    ];
}

impl FromWire for AcknowledgementBatch {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.first_offset = r.i64()?;
        m.last_offset = r.i64()?;
        m.acknowledge_types = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AcknowledgementBatch {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.array(&self.acknowledge_types, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AcknowledgementBatch {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.first_offset = Random::random(g, v, f);
        m.last_offset = Random::random(g, v, f);
        m.acknowledge_types = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ShareAcknowledgeRequest {
    const NAME: &'static str = "ShareAcknowledgeRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for ShareAcknowledgeRequest {
    const KEY: ApiKey = ApiKey::ShareAcknowledge;
    type Response = super::ShareAcknowledgeResponse;
}
