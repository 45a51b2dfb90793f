//! `ReadShareGroupStateSummaryResponse`, versions 0-1, API key 87.

use super::prelude::*;

/// `ReadShareGroupStateSummaryResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadShareGroupStateSummaryResponse {
    /// `Results`, versions 0+.
    pub results: Vec<ReadStateSummaryResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReadShareGroupStateSummaryResponse {
    const FIELDS: &'static [Field] =
        &[Field::new("Results", Kind::Array(&Kind::Struct(ReadStateSummaryResult::FIELDS)), 0, 1)];
}

impl FromWire for ReadShareGroupStateSummaryResponse {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReadShareGroupStateSummaryResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReadShareGroupStateSummaryResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReadStateSummaryResult` of `ReadShareGroupStateSummaryResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadStateSummaryResult {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReadStateSummaryResult {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 1).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionResult::FIELDS)), 0, 1),
    ];
}

impl FromWire for ReadStateSummaryResult {
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

impl ToWire for ReadStateSummaryResult {
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
impl Random for ReadStateSummaryResult {
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

/// `PartitionResult` of `ReadShareGroupStateSummaryResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionResult {
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `StateEpoch`, versions 0+.
    pub state_epoch: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `StartOffset`, versions 0+.
    pub start_offset: i64,
    /// `DeliveryCompleteCount`, versions 1+.
    pub delivery_complete_count: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for PartitionResult {
    fn default() -> Self {
        Self {
            partition: Default::default(),
            error_code: Default::default(),
            error_message: None,
            state_epoch: Default::default(),
            leader_epoch: Default::default(),
            start_offset: Default::default(),
            delivery_complete_count: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for PartitionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
        Field::new("StateEpoch", Kind::Fixed(4), 0, 1),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 1),
        Field::new("StartOffset", Kind::Fixed(8), 0, 1),
        Field::new("DeliveryCompleteCount", Kind::Fixed(4), 1, 1),
    ];
}

impl FromWire for PartitionResult {
    const SIZE_MIN: usize = 24;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.state_epoch = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.start_offset = r.i64()?;
        if v >= 1 {
            m.delivery_complete_count = r.i32()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.i32(self.state_epoch);
        w.i32(self.leader_epoch);
        w.i64(self.start_offset);
        if v >= 1 {
            w.i32(self.delivery_complete_count);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.state_epoch = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.start_offset = Random::random(g, v, f);
        if v >= 1 {
            m.delivery_complete_count = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ReadShareGroupStateSummaryResponse {
    const NAME: &'static str = "ReadShareGroupStateSummaryResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for ReadShareGroupStateSummaryResponse {
    const KEY: ApiKey = ApiKey::ReadShareGroupStateSummary;
}
