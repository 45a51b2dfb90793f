//! `OffsetForLeaderEpochResponse`, versions 2-4, API key 23.

use super::prelude::*;

/// `OffsetForLeaderEpochResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetForLeaderEpochResponse {
    /// `ThrottleTimeMs`, versions 2+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 2+.
    pub topics: Vec<OffsetForLeaderTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetForLeaderEpochResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 2, 4),
        Field::new("Topics", Kind::Array(&Kind::Struct(OffsetForLeaderTopicResult::FIELDS)), 2, 4),
    ];
}

impl FromWire for OffsetForLeaderEpochResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OffsetForLeaderEpochResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "OffsetForLeaderEpochResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetForLeaderEpochResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OffsetForLeaderTopicResult` of `OffsetForLeaderEpochResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetForLeaderTopicResult {
    /// `Topic`, versions 2+.
    pub topic: String,
    /// `Partitions`, versions 2+.
    pub partitions: Vec<EpochEndOffset>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OffsetForLeaderTopicResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 2, 4).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(EpochEndOffset::FIELDS)), 2, 4),
    ];
}

impl FromWire for OffsetForLeaderTopicResult {
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

impl ToWire for OffsetForLeaderTopicResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("OffsetForLeaderTopicResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OffsetForLeaderTopicResult {
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

/// `EpochEndOffset` of `OffsetForLeaderEpochResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochEndOffset {
    /// `ErrorCode`, versions 2+.
    pub error_code: i16,
    /// `Partition`, versions 2+.
    pub partition: i32,
    /// `LeaderEpoch`, versions 2+.
    pub leader_epoch: i32,
    /// `EndOffset`, versions 2+.
    pub end_offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            partition: Default::default(),
            leader_epoch: -1,
            end_offset: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for EpochEndOffset {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 2, 4),
        Field::new("Partition", Kind::Fixed(4), 2, 4),
        Field::new("LeaderEpoch", Kind::Fixed(4), 2, 4),
        Field::new("EndOffset", Kind::Fixed(8), 2, 4),
    ];
}

impl FromWire for EpochEndOffset {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.partition = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.end_offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for EpochEndOffset {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.i32(self.partition);
        w.i32(self.leader_epoch);
        w.i64(self.end_offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("EpochEndOffset.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for EpochEndOffset {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.partition = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.end_offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for OffsetForLeaderEpochResponse {
    const NAME: &'static str = "OffsetForLeaderEpochResponse";
    const VERSIONS: VersionRange = VersionRange::new(2, 4);
    const FLEXIBLE_FROM: i16 = 4;
}

impl Response for OffsetForLeaderEpochResponse {
    const KEY: ApiKey = ApiKey::OffsetForLeaderEpoch;
}
