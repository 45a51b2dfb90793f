//! `ListPartitionReassignmentsResponse`, versions 0-0, API key 46.

use super::prelude::*;

/// `ListPartitionReassignmentsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPartitionReassignmentsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `Topics`, versions 0+.
    pub topics: Vec<OngoingTopicReassignment>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ListPartitionReassignmentsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: Some(Default::default()),
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ListPartitionReassignmentsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ErrorMessage", Kind::Text, 0, 0).nullable(0, 0).of(Entity::Explanation),
        Field::new("Topics", Kind::Array(&Kind::Struct(OngoingTopicReassignment::FIELDS)), 0, 0),
    ];
}

impl FromWire for ListPartitionReassignmentsResponse {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListPartitionReassignmentsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListPartitionReassignmentsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `OngoingTopicReassignment` of `ListPartitionReassignmentsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OngoingTopicReassignment {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<OngoingPartitionReassignment>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OngoingTopicReassignment {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(OngoingPartitionReassignment::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for OngoingTopicReassignment {
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

impl ToWire for OngoingTopicReassignment {
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
impl Random for OngoingTopicReassignment {
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

/// `OngoingPartitionReassignment` of `ListPartitionReassignmentsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OngoingPartitionReassignment {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `Replicas`, versions 0+.
    pub replicas: Vec<i32>,
    /// `AddingReplicas`, versions 0+.
    pub adding_replicas: Vec<i32>,
    /// `RemovingReplicas`, versions 0+.
    pub removing_replicas: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for OngoingPartitionReassignment {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 0),
        Field::new("Replicas", Kind::Array(&Kind::Fixed(4)), 0, 0),
        Field::new("AddingReplicas", Kind::Array(&Kind::Fixed(4)), 0, 0),
        Field::new("RemovingReplicas", Kind::Array(&Kind::Fixed(4)), 0, 0),
    ];
}

impl FromWire for OngoingPartitionReassignment {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.replicas = r.array(v, f)?;
        m.adding_replicas = r.array(v, f)?;
        m.removing_replicas = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for OngoingPartitionReassignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.array(&self.replicas, v, f)?;
        w.array(&self.adding_replicas, v, f)?;
        w.array(&self.removing_replicas, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for OngoingPartitionReassignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.replicas = Random::random(g, v, f);
        m.adding_replicas = Random::random(g, v, f);
        m.removing_replicas = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListPartitionReassignmentsResponse {
    const NAME: &'static str = "ListPartitionReassignmentsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for ListPartitionReassignmentsResponse {
    const KEY: ApiKey = ApiKey::ListPartitionReassignments;
}
