//! `DeleteRecordsRequest`, versions 0-2, API key 21.

use super::prelude::*;

/// `DeleteRecordsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteRecordsRequest {
    /// `Topics`, versions 0+.
    pub topics: Vec<DeleteRecordsTopic>,
    /// `TimeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteRecordsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Struct(DeleteRecordsTopic::FIELDS)), 0, 2),
        Field::new("TimeoutMs", Kind::Fixed(4), 0, 2),
    ];
}

impl FromWire for DeleteRecordsRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.array(v, f)?;
        m.timeout_ms = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteRecordsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topics, v, f)?;
        w.i32(self.timeout_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteRecordsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteRecordsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = Random::random(g, v, f);
        m.timeout_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DeleteRecordsTopic` of `DeleteRecordsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteRecordsTopic {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<DeleteRecordsPartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteRecordsTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 2).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(DeleteRecordsPartition::FIELDS)), 0, 2),
    ];
}

impl FromWire for DeleteRecordsTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteRecordsTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteRecordsTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteRecordsTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DeleteRecordsPartition` of `DeleteRecordsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteRecordsPartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `Offset`, versions 0+.
    pub offset: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DeleteRecordsPartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 2),
        Field::new("Offset", Kind::Fixed(8), 0, 2),
    ];
}

impl FromWire for DeleteRecordsPartition {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.offset = r.i64()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DeleteRecordsPartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i64(self.offset);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DeleteRecordsPartition.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DeleteRecordsPartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.offset = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DeleteRecordsRequest {
    const NAME: &'static str = "DeleteRecordsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for DeleteRecordsRequest {
    const KEY: ApiKey = ApiKey::DeleteRecords;
    type Response = super::DeleteRecordsResponse;
}
