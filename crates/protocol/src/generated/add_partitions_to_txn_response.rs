//! `AddPartitionsToTxnResponse`, versions 0-5, API key 24.

use super::prelude::*;

/// `AddPartitionsToTxnResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 4+.
    pub error_code: i16,
    /// `ResultsByTransaction`, versions 4+.
    pub results_by_transaction: Vec<AddPartitionsToTxnResult>,
    /// `ResultsByTopicV3AndBelow`, versions 0-3.
    pub results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 5),
        Field::new("ErrorCode", Kind::Fixed(2), 4, 5),
        Field::new(
            "ResultsByTransaction",
            Kind::Array(&Kind::Struct(AddPartitionsToTxnResult::FIELDS)),
            4,
            5,
        ),
        Field::new(
            "ResultsByTopicV3AndBelow",
            Kind::Array(&Kind::Struct(AddPartitionsToTxnTopicResult::FIELDS)),
            0,
            3,
        ),
    ];
}

impl FromWire for AddPartitionsToTxnResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        if v >= 4 {
            m.error_code = r.i16()?;
        }
        if v >= 4 {
            m.results_by_transaction = r.array(v, f)?;
        }
        if v <= 3 {
            m.results_by_topic_v3_and_below = r.array(v, f)?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddPartitionsToTxnResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        if v >= 4 {
            w.i16(self.error_code);
        }
        if v >= 4 {
            w.array(&self.results_by_transaction, v, f)?;
        } else if !self.results_by_transaction.is_empty() {
            return Err(EncodeError::absent("AddPartitionsToTxnResponse.ResultsByTransaction", v));
        }
        if v <= 3 {
            w.array(&self.results_by_topic_v3_and_below, v, f)?;
        } else if !self.results_by_topic_v3_and_below.is_empty() {
            return Err(EncodeError::absent(
                "AddPartitionsToTxnResponse.ResultsByTopicV3AndBelow",
                v,
            ));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AddPartitionsToTxnResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        if v >= 4 {
            m.error_code = Random::random(g, v, f);
        }
        if v >= 4 {
            m.results_by_transaction = Random::random(g, v, f);
        }
        if v <= 3 {
            m.results_by_topic_v3_and_below = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AddPartitionsToTxnResult` of `AddPartitionsToTxnResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnResult {
    /// `TransactionalId`, versions 4+.
    pub transactional_id: String,
    /// `TopicResults`, versions 4+.
    pub topic_results: Vec<AddPartitionsToTxnTopicResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnResult {
    const FIELDS: &'static [Field] = &[
        Field::new("TransactionalId", Kind::Text, 4, 5).of(Entity::TransactionalId),
        Field::new(
            "TopicResults",
            Kind::Array(&Kind::Struct(AddPartitionsToTxnTopicResult::FIELDS)),
            4,
            5,
        ),
    ];
}

impl FromWire for AddPartitionsToTxnResult {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_id = r.string(f)?;
        m.topic_results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddPartitionsToTxnResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.transactional_id, f)?;
        w.array(&self.topic_results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_id = Random::random(g, v, f);
        m.topic_results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AddPartitionsToTxnTopicResult` of `AddPartitionsToTxnResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnTopicResult {
    /// `Name`, versions 0+.
    pub name: String,
    /// `ResultsByPartition`, versions 0+.
    pub results_by_partition: Vec<AddPartitionsToTxnPartitionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnTopicResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 5).of(Entity::TopicName),
        Field::new(
            "ResultsByPartition",
            Kind::Array(&Kind::Struct(AddPartitionsToTxnPartitionResult::FIELDS)),
            0,
            5,
        ),
    ];
}

impl FromWire for AddPartitionsToTxnTopicResult {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.results_by_partition = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddPartitionsToTxnTopicResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.results_by_partition, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "AddPartitionsToTxnTopicResult.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnTopicResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.results_by_partition = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AddPartitionsToTxnPartitionResult` of `AddPartitionsToTxnResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnPartitionResult {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `PartitionErrorCode`, versions 0+.
    pub partition_error_code: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AddPartitionsToTxnPartitionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 5),
        Field::new("PartitionErrorCode", Kind::Fixed(2), 0, 5),
    ];
}

impl FromWire for AddPartitionsToTxnPartitionResult {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.partition_error_code = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddPartitionsToTxnPartitionResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.partition_error_code);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "AddPartitionsToTxnPartitionResult.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddPartitionsToTxnPartitionResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.partition_error_code = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AddPartitionsToTxnResponse {
    const NAME: &'static str = "AddPartitionsToTxnResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Response for AddPartitionsToTxnResponse {
    const KEY: ApiKey = ApiKey::AddPartitionsToTxn;
}
