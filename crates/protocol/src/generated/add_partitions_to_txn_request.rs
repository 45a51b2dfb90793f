//! `AddPartitionsToTxnRequest`, versions 0-5, API key 24.

use super::prelude::*;

/// `AddPartitionsToTxnRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnRequest {
    /// `Transactions`, versions 4+.
    pub transactions: Vec<AddPartitionsToTxnTransaction>,
    /// `V3AndBelowTransactionalId`, versions 0-3.
    pub v3_and_below_transactional_id: String,
    /// `V3AndBelowProducerId`, versions 0-3.
    pub v3_and_below_producer_id: i64,
    /// `V3AndBelowProducerEpoch`, versions 0-3.
    pub v3_and_below_producer_epoch: i16,
    /// `V3AndBelowTopics`, versions 0-3.
    pub v3_and_below_topics: Vec<AddPartitionsToTxnTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnRequest {
    const FIELDS: &'static [Field] = &[
        Field::new(
            "Transactions",
            Kind::Array(&Kind::Struct(AddPartitionsToTxnTransaction::FIELDS)),
            4,
            5,
        ),
        Field::new("V3AndBelowTransactionalId", Kind::Text, 0, 3).of(Entity::TransactionalId),
        Field::new("V3AndBelowProducerId", Kind::Fixed(8), 0, 3),
        Field::new("V3AndBelowProducerEpoch", Kind::Fixed(2), 0, 3),
        Field::new(
            "V3AndBelowTopics",
            Kind::Array(&Kind::Struct(AddPartitionsToTxnTopic::FIELDS)),
            0,
            3,
        ),
    ];
}

impl FromWire for AddPartitionsToTxnRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 4 {
            m.transactions = r.array(v, f)?;
        }
        if v <= 3 {
            m.v3_and_below_transactional_id = r.string(f)?;
        }
        if v <= 3 {
            m.v3_and_below_producer_id = r.i64()?;
        }
        if v <= 3 {
            m.v3_and_below_producer_epoch = r.i16()?;
        }
        if v <= 3 {
            m.v3_and_below_topics = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddPartitionsToTxnRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 4 {
            w.array(&self.transactions, v, f)?;
        } else if !self.transactions.is_empty() {
            return Err(EncodeError::absent("AddPartitionsToTxnRequest.Transactions", v));
        }
        if v <= 3 {
            w.string(&self.v3_and_below_transactional_id, f)?;
        } else if !self.v3_and_below_transactional_id.is_empty() {
            return Err(EncodeError::absent(
                "AddPartitionsToTxnRequest.V3AndBelowTransactionalId",
                v,
            ));
        }
        if v <= 3 {
            w.i64(self.v3_and_below_producer_id);
        } else if self.v3_and_below_producer_id != 0 {
            return Err(EncodeError::absent("AddPartitionsToTxnRequest.V3AndBelowProducerId", v));
        }
        if v <= 3 {
            w.i16(self.v3_and_below_producer_epoch);
        } else if self.v3_and_below_producer_epoch != 0 {
            return Err(EncodeError::absent(
                "AddPartitionsToTxnRequest.V3AndBelowProducerEpoch",
                v,
            ));
        }
        if v <= 3 {
            w.array(&self.v3_and_below_topics, v, f)?;
        } else if !self.v3_and_below_topics.is_empty() {
            return Err(EncodeError::absent("AddPartitionsToTxnRequest.V3AndBelowTopics", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AddPartitionsToTxnRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 4 {
            m.transactions = Random::random(g, v, f);
        }
        if v <= 3 {
            m.v3_and_below_transactional_id = Random::random(g, v, f);
        }
        if v <= 3 {
            m.v3_and_below_producer_id = Random::random(g, v, f);
        }
        if v <= 3 {
            m.v3_and_below_producer_epoch = Random::random(g, v, f);
        }
        if v <= 3 {
            m.v3_and_below_topics = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AddPartitionsToTxnTransaction` of `AddPartitionsToTxnRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnTransaction {
    /// `TransactionalId`, versions 4+.
    pub transactional_id: String,
    /// `ProducerId`, versions 4+.
    pub producer_id: i64,
    /// `ProducerEpoch`, versions 4+.
    pub producer_epoch: i16,
    /// `VerifyOnly`, versions 4+.
    pub verify_only: bool,
    /// `Topics`, versions 4+.
    pub topics: Vec<AddPartitionsToTxnTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnTransaction {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 4, 5).of(Entity::TransactionalId),
        Field::new("ProducerId", Kind::Fixed(8), 4, 5),
        Field::new("ProducerEpoch", Kind::Fixed(2), 4, 5),
        Field::new("VerifyOnly", Kind::Fixed(1), 4, 5),
        Field::new("Topics", Kind::Array(&Kind::Struct(AddPartitionsToTxnTopic::FIELDS)), 4, 5),
    ];
}

impl FromWire for AddPartitionsToTxnTransaction {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.string(f)?;
        m.producer_id = r.i64()?;
        m.producer_epoch = r.i16()?;
        m.verify_only = r.bool()?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddPartitionsToTxnTransaction {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.transactional_id, f)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.bool(self.verify_only);
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnTransaction {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = Random::random(g, v, f);
        m.producer_id = Random::random(g, v, f);
        m.producer_epoch = Random::random(g, v, f);
        m.verify_only = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AddPartitionsToTxnTopic` of `AddPartitionsToTxnRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnTopic {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 5).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 5),
    ];
}

impl FromWire for AddPartitionsToTxnTopic {
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

impl ToWire for AddPartitionsToTxnTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AddPartitionsToTxnTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnTopic {
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

impl Message for AddPartitionsToTxnRequest {
    const NAME: &'static str = "AddPartitionsToTxnRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for AddPartitionsToTxnRequest {
    const KEY: ApiKey = ApiKey::AddPartitionsToTxn;
    type Response = super::AddPartitionsToTxnResponse;
}
