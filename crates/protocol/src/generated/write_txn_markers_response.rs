//! `WriteTxnMarkersResponse`, versions 1-2, API key 27.

use super::prelude::*;

/// `WriteTxnMarkersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteTxnMarkersResponse {
    /// `Markers`, versions 1+.
    pub markers: Vec<WritableTxnMarkerResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WriteTxnMarkersResponse {
    const FIELDS: &'static [Field] =
        &[Field::new("Markers", Kind::Array(&Kind::Struct(WritableTxnMarkerResult::FIELDS)), 1, 2)];
}

impl FromWire for WriteTxnMarkersResponse {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.markers = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for WriteTxnMarkersResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.markers, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WriteTxnMarkersResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.markers = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `WritableTxnMarkerResult` of `WriteTxnMarkersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WritableTxnMarkerResult {
    /// `ProducerId`, versions 1+.
    pub producer_id: i64,
    /// `Topics`, versions 1+.
    pub topics: Vec<WritableTxnMarkerTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WritableTxnMarkerResult {
    const FIELDS: &'static [Field] = &[
        Field::new("ProducerId", Kind::Fixed(8), 1, 2),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(WritableTxnMarkerTopicResult::FIELDS)),
            1,
            2,
        ),
    ];
}

impl FromWire for WritableTxnMarkerResult {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.producer_id = r.i64()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for WritableTxnMarkerResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.producer_id);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WritableTxnMarkerResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.producer_id = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `WritableTxnMarkerTopicResult` of `WriteTxnMarkersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WritableTxnMarkerTopicResult {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<WritableTxnMarkerPartitionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WritableTxnMarkerTopicResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 2).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(WritableTxnMarkerPartitionResult::FIELDS)),
            1,
            2,
        ),
    ];
}

impl FromWire for WritableTxnMarkerTopicResult {
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

impl ToWire for WritableTxnMarkerTopicResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WritableTxnMarkerTopicResult {
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

/// `WritableTxnMarkerPartitionResult` of `WriteTxnMarkersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WritableTxnMarkerPartitionResult {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WritableTxnMarkerPartitionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
    ];
}

impl FromWire for WritableTxnMarkerPartitionResult {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for WritableTxnMarkerPartitionResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WritableTxnMarkerPartitionResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for WriteTxnMarkersResponse {
    const NAME: &'static str = "WriteTxnMarkersResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for WriteTxnMarkersResponse {
    const KEY: ApiKey = ApiKey::WriteTxnMarkers;
}
