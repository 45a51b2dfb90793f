//! `AlterPartitionReassignmentsResponse`, versions 0-1, API key 45.

use super::prelude::*;

/// `AlterPartitionReassignmentsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPartitionReassignmentsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `AllowReplicationFactorChange`, versions 1+.
    pub allow_replication_factor_change: bool,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Responses`, versions 0+.
    pub responses: Vec<ReassignableTopicResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AlterPartitionReassignmentsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            allow_replication_factor_change: true,
            error_code: Default::default(),
            error_message: Some(Default::default()),
            responses: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AlterPartitionReassignmentsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 1),
        Field::new("AllowReplicationFactorChange", Kind::Fixed(1), 1, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
        Field::new(
            "Responses",
            Kind::Array(&Kind::Struct(ReassignableTopicResponse::FIELDS)),
            0,
            1,
        ),
    ];
}

impl FromWire for AlterPartitionReassignmentsResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        if v >= 1 {
            m.allow_replication_factor_change = r.bool()?;
        }
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.responses = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterPartitionReassignmentsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        if v >= 1 {
            w.bool(self.allow_replication_factor_change);
        }
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.responses, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterPartitionReassignmentsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        if v >= 1 {
            m.allow_replication_factor_change = Random::random(g, v, f);
        }
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.responses = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReassignableTopicResponse` of `AlterPartitionReassignmentsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReassignableTopicResponse {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<ReassignablePartitionResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReassignableTopicResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(ReassignablePartitionResponse::FIELDS)),
            0,
            1,
        ),
    ];
}

impl FromWire for ReassignableTopicResponse {
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

impl ToWire for ReassignableTopicResponse {
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
impl Random for ReassignableTopicResponse {
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

/// `ReassignablePartitionResponse` of `AlterPartitionReassignmentsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReassignablePartitionResponse {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ReassignablePartitionResponse {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ReassignablePartitionResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 1),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 1),
        Field::new("ErrorMessage", Kind::Text, 0, 1).nullable(0, 1).of(Entity::Explanation),
    ];
}

impl FromWire for ReassignablePartitionResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReassignablePartitionResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReassignablePartitionResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterPartitionReassignmentsResponse {
    const NAME: &'static str = "AlterPartitionReassignmentsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for AlterPartitionReassignmentsResponse {
    const KEY: ApiKey = ApiKey::AlterPartitionReassignments;
}
