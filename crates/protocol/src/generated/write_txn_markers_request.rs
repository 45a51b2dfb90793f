//! `WriteTxnMarkersRequest`, versions 1-2, API key 27.

use super::prelude::*;

/// `WriteTxnMarkersRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteTxnMarkersRequest {
    /// `Markers`, versions 1+.
    pub markers: Vec<WritableTxnMarker>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WriteTxnMarkersRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("Markers", Kind::Array(&Kind::Struct(WritableTxnMarker::FIELDS)), 1, 2)];
}

impl FromWire for WriteTxnMarkersRequest {
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

impl ToWire for WriteTxnMarkersRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.markers, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WriteTxnMarkersRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.markers = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `WritableTxnMarker` of `WriteTxnMarkersRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WritableTxnMarker {
    /// `ProducerId`, versions 1+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 1+.
    pub producer_epoch: i16,
    /// `TransactionResult`, versions 1+.
    pub transaction_result: bool,
    /// `Topics`, versions 1+.
    pub topics: Vec<WritableTxnMarkerTopic>,
    /// `CoordinatorEpoch`, versions 1+.
    pub coordinator_epoch: i32,
    /// `TransactionVersion`, versions 2+.
    pub transaction_version: i8,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WritableTxnMarker {
    const FIELDS: &'static [Field] = &[
        Field::new("ProducerId", Kind::Fixed(8), 1, 2),
        Field::new("ProducerEpoch", Kind::Fixed(2), 1, 2),
        Field::new("TransactionResult", Kind::Fixed(1), 1, 2),
        Field::new("Topics", Kind::Array(&Kind::Struct(WritableTxnMarkerTopic::FIELDS)), 1, 2),
        Field::new("CoordinatorEpoch", Kind::Fixed(4), 1, 2),
        Field::new("TransactionVersion", Kind::Fixed(1), 2, 2),
    ];
}

impl FromWire for WritableTxnMarker {
    const SIZE_MIN: usize = 17;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        m.transaction_result = r.bool()?;
        m.topics = r.array(v, f)?;
        m.coordinator_epoch = r.i32()?;
        if v >= 2 {
            m.transaction_version = r.i8()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for WritableTxnMarker {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.bool(self.transaction_result);
        w.array(&self.topics, v, f)?;
        w.i32(self.coordinator_epoch);
        if v >= 2 {
            w.i8(self.transaction_version);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WritableTxnMarker {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        m.transaction_result = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        m.coordinator_epoch = Random::random(g, v, f);
        if v >= 2 {
            m.transaction_version = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `WritableTxnMarkerTopic` of `WriteTxnMarkersRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WritableTxnMarkerTopic {
    /// `Name`, versions 1+.
    pub name: String,
    /// `PartitionIndexes`, versions 1+.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for WritableTxnMarkerTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 2).of(Entity::TopicName),
        Field::new("PartitionIndexes", Kind::Array(&Kind::Fixed(4)), 1, 2),
    ];
}

impl FromWire for WritableTxnMarkerTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partition_indexes = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for WritableTxnMarkerTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partition_indexes, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for WritableTxnMarkerTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partition_indexes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for WriteTxnMarkersRequest {
    const NAME: &'static str = "WriteTxnMarkersRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Request for WriteTxnMarkersRequest {
    const KEY: ApiKey = ApiKey::WriteTxnMarkers;
    type Response = super::WriteTxnMarkersResponse;
}
