//! `ElectLeadersResponse`, versions 0-2, API key 43.

use super::prelude::*;

/// `ElectLeadersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ElectLeadersResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ReplicaElectionResults`, versions 0+.
    pub replica_election_results: Vec<ReplicaElectionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ElectLeadersResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 2),
        Field::new(
            "ReplicaElectionResults",
            Kind::Array(&Kind::Struct(ReplicaElectionResult::FIELDS)),
            0,
            2,
        ),
    ];
}

impl FromWire for ElectLeadersResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        if v >= 1 {
            m.error_code = r.i16()?;
        }
        m.replica_election_results = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ElectLeadersResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        if v >= 1 {
            w.i16(self.error_code);
        } else if self.error_code != 0 {
            return Err(EncodeError::absent("ElectLeadersResponse.ErrorCode", v));
        }
        w.array(&self.replica_election_results, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ElectLeadersResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ElectLeadersResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        if v >= 1 {
            m.error_code = Random::random(g, v, f);
        }
        m.replica_election_results = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReplicaElectionResult` of `ElectLeadersResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReplicaElectionResult {
    /// `Topic`, versions 0+.
    pub topic: String,
    /// `PartitionResult`, versions 0+.
    pub partition_result: Vec<PartitionResult>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReplicaElectionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 0, 2).of(Entity::TopicName),
        Field::new("PartitionResult", Kind::Array(&Kind::Struct(PartitionResult::FIELDS)), 0, 2),
    ];
}

impl FromWire for ReplicaElectionResult {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic = r.string(f)?;
        m.partition_result = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReplicaElectionResult {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partition_result, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ReplicaElectionResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReplicaElectionResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic = Random::random(g, v, f);
        m.partition_result = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `PartitionResult` of `ElectLeadersResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionResult {
    /// `PartitionId`, versions 0+.
    pub partition_id: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for PartitionResult {
    fn default() -> Self {
        Self {
            partition_id: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for PartitionResult {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionId", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 0, 2).nullable(0, 2).of(Entity::Explanation),
    ];
}

impl FromWire for PartitionResult {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_id = r.i32()?;
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
        w.i32(self.partition_id);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("PartitionResult.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PartitionResult {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_id = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ElectLeadersResponse {
    const NAME: &'static str = "ElectLeadersResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Response for ElectLeadersResponse {
    const KEY: ApiKey = ApiKey::ElectLeaders;
}
