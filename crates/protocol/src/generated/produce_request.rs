//! `ProduceRequest`, versions 3-13, API key 0.

use super::prelude::*;

/// `ProduceRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProduceRequest {
    /// `TransactionalId`, versions 3+, null in versions 3+.
    pub transactional_id: Option<String>,
    /// `Acks`, versions 3+.
    pub acks: i16,
    /// `TimeoutMs`, versions 3+.
    pub timeout_ms: i32,
    /// `TopicData`, versions 3+.
    pub topic_data: Vec<TopicProduceData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ProduceRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 3, 13)
            .nullable(3, 13)
            .of(Entity::TransactionalId),
        Field::new("Acks", Kind::Fixed(2), 3, 13),
        Field::new("TimeoutMs", Kind::Fixed(4), 3, 13),
        Field::new("TopicData", Kind::Array(&Kind::Struct(TopicProduceData::FIELDS)), 3, 13),
    ];
}

impl FromWire for ProduceRequest {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.nullable_string(f, true)?;
        m.acks = r.i16()?;
        m.timeout_ms = r.i32()?;
        m.topic_data = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ProduceRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.transactional_id.as_deref(), f, true, "TransactionalId")?;
        w.i16(self.acks);
        w.i32(self.timeout_ms);
        w.array(&self.topic_data, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ProduceRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ProduceRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = g.nullable(true, v, f);
        m.acks = Random::random(g, v, f);
        m.timeout_ms = Random::random(g, v, f);
        m.topic_data = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicProduceData` of `ProduceRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicProduceData {
    /// `Name`, versions 3-12.
    pub name: String,
    /// `TopicId`, versions 13+.
    pub topic_id: Uuid,
    /// `PartitionData`, versions 3+.
    pub partition_data: Vec<PartitionProduceData>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicProduceData {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 3, 12).of(Entity::TopicName),
        Field::new("TopicId", Kind::Uuid, 13, 13).of(Entity::TopicId),
        Field::new(
            "PartitionData",
            Kind::Array(&Kind::Struct(PartitionProduceData::FIELDS)),
            3,
            13,
        ),
    ];
}

impl FromWire for TopicProduceData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v <= 12 {
            m.name = r.string(f)?;
        }
        if v >= 13 {
            m.topic_id = r.uuid()?;
        }
        m.partition_data = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicProduceData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v <= 12 {
            w.string(&self.name, f)?;
        }
        if v >= 13 {
            w.uuid(self.topic_id);
        }
        w.array(&self.partition_data, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("TopicProduceData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicProduceData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v <= 12 {
            m.name = Random::random(g, v, f);
        }
        if v >= 13 {
            m.topic_id = Random::random(g, v, f);
        }
        m.partition_data = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `PartitionProduceData` of `ProduceRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionProduceData {
    /// `Index`, versions 3+.
    pub index: i32,
    /// `Records`, versions 3+, null in versions 3+.
    pub records: Option<Bytes>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PartitionProduceData {
    const FIELDS: &'static [Field] = &[
        Field::new("Index", Kind::Fixed(4), 3, 13),
        Field::new("Records", Kind::Bytes, 3, 13).nullable(3, 13),
    ];
}

impl FromWire for PartitionProduceData {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.index = r.i32()?;
        m.records = r.nullable_bytes(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PartitionProduceData {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.index);
        w.nullable_bytes(self.records.as_deref(), f, true, "Records")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("PartitionProduceData.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionProduceData {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.index = Random::random(g, v, f);
        m.records = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ProduceRequest {
    const NAME: &'static str = "ProduceRequest";
    const VERSIONS: VersionRange = VersionRange::new(3, 13);
    const FLEXIBLE_FROM: i16 = 9;
}

impl Request for ProduceRequest {
    const KEY: ApiKey = ApiKey::Produce;
    type Response = super::ProduceResponse;
}
