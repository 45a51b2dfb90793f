//! `ReadShareGroupStateResponse`, versions 0-0, API key 84.

use super::prelude::*;

/// `ReadShareGroupStateResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadShareGroupStateResponse {
    /// `Results`, versions 0+.
    pub results: Vec<ReadStateResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReadShareGroupStateResponse {
    const FIELDS: &'static [Field] =
        &[Field::new("Results", Kind::Array(&Kind::Struct(ReadStateResult::FIELDS)), 0, 0)];
}

impl FromWire for ReadShareGroupStateResponse {
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

impl ToWire for ReadShareGroupStateResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReadShareGroupStateResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReadStateResult` of `ReadShareGroupStateResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadStateResult {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReadStateResult {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 0).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionResult::FIELDS)), 0, 0),
    ];
}

impl FromWire for ReadStateResult {
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

impl ToWire for ReadStateResult {
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
impl Random for ReadStateResult {
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

/// `PartitionResult` of `ReadShareGroupStateResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionResult {
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `StateEpoch`, versions 0+.
    pub state_epoch: i32,
    /// `StartOffset`, versions 0+.
    pub start_offset: i64,
    /// `StateBatches`, versions 0+.
    pub state_batches: Vec<StateBatch>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
        Field::new("StateEpoch", Kind::Fixed(4), 0, 0),
        Field::new("StartOffset", Kind::Fixed(8), 0, 0),
        Field::new("StateBatches", Kind::Array(&Kind::Struct(StateBatch::FIELDS)), 0, 0),
    ];
}

impl FromWire for PartitionResult {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.state_epoch = r.i32()?;
        m.start_offset = r.i64()?;
        m.state_batches = r.array(v, f)?;
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
        w.i64(self.start_offset);
        w.array(&self.state_batches, v, f)?;
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
        m.start_offset = Random::random(g, v, f);
        m.state_batches = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `StateBatch` of `ReadShareGroupStateResponse`.
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
        Field::new("FirstOffset", Kind::Fixed(8), 0, 0),
        Field::new("LastOffset", Kind::Fixed(8), 0, 0),
        Field::new("DeliveryState", Kind::Fixed(1), 0, 0),
        Field::new("DeliveryCount", Kind::Fixed(2), 0, 0),
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

impl Message for ReadShareGroupStateResponse {
    const NAME: &'static str = "ReadShareGroupStateResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for ReadShareGroupStateResponse {
    const KEY: ApiKey = ApiKey::ReadShareGroupState;
}
