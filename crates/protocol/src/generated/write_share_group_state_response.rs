//! `WriteShareGroupStateResponse`, versions 0-1, API key 85.

use super::prelude::*;

/// `WriteShareGroupStateResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteShareGroupStateResponse {
    /// `Results`, versions 0+.
    pub results: Vec<WriteStateResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WriteShareGroupStateResponse {
    const FIELDS: &'static [Field] =
        &[Field::new("Results", Kind::Array(&Kind::Struct(WriteStateResult::FIELDS)), 0, 1)];
}

impl FromWire for WriteShareGroupStateResponse {
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

impl ToWire for WriteShareGroupStateResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WriteShareGroupStateResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `WriteStateResult` of `WriteShareGroupStateResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteStateResult {
    /// `TopicId`, versions 0+.
    pub topic_id: Uuid,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<PartitionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WriteStateResult {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 0, 1).of(Entity::TopicId),
        Field::new("Partitions", Kind::Array(&Kind::Struct(PartitionResult::FIELDS)), 0, 1),
    ];
}

impl FromWire for WriteStateResult {
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

impl ToWire for WriteStateResult {
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
impl Random for WriteStateResult {
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

/// `PartitionResult` of `WriteShareGroupStateResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionResult {
    /// `Partition`, versions 0+.
    pub partition: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Partition", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
    ];
}

impl FromWire for PartitionResult {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
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
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for WriteShareGroupStateResponse {
    const NAME: &'static str = "WriteShareGroupStateResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for WriteShareGroupStateResponse {
    const KEY: ApiKey = ApiKey::WriteShareGroupState;
}
