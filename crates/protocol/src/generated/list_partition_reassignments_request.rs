//! `ListPartitionReassignmentsRequest`, versions 0-0, API key 46.

use super::prelude::*;

/// `ListPartitionReassignmentsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPartitionReassignmentsRequest {
    /// `TimeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// `Topics`, versions 0+, null in versions 0+.
    pub topics: Option<Vec<ListPartitionReassignmentsTopics>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ListPartitionReassignmentsRequest {
    fn default() -> Self {
        Self { timeout_ms: 60000, topics: None, unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for ListPartitionReassignmentsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TimeoutMs", Kind::Fixed(4), 0, 0),
        Field::new(
            "Topics",
            Kind::Array(&Kind::Struct(ListPartitionReassignmentsTopics::FIELDS)),
            0,
            0,
        )
        .nullable(0, 0),
    ];
}

impl FromWire for ListPartitionReassignmentsRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.timeout_ms = r.i32()?;
        m.topics = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListPartitionReassignmentsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.timeout_ms);
        w.nullable_array(self.topics.as_deref(), v, f, true, "Topics")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListPartitionReassignmentsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.timeout_ms = Random::random(g, v, f);
        m.topics = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ListPartitionReassignmentsTopics` of `ListPartitionReassignmentsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListPartitionReassignmentsTopics {
    /// `Name`, versions 0+.
    pub name: String,
    /// `PartitionIndexes`, versions 0+.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListPartitionReassignmentsTopics {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0).of(Entity::TopicName),
        Field::new("PartitionIndexes", Kind::Array(&Kind::Fixed(4)), 0, 0),
    ];
}

impl FromWire for ListPartitionReassignmentsTopics {
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

impl ToWire for ListPartitionReassignmentsTopics {
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
impl Random for ListPartitionReassignmentsTopics {
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

impl Message for ListPartitionReassignmentsRequest {
    const NAME: &'static str = "ListPartitionReassignmentsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for ListPartitionReassignmentsRequest {
    const KEY: ApiKey = ApiKey::ListPartitionReassignments;
    type Response = super::ListPartitionReassignmentsResponse;
}
