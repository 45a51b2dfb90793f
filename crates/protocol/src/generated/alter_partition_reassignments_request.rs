//! `AlterPartitionReassignmentsRequest`, versions 0-1, API key 45.

use super::prelude::*;

/// `AlterPartitionReassignmentsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPartitionReassignmentsRequest {
    /// `TimeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// `AllowReplicationFactorChange`, versions 1+.
    pub allow_replication_factor_change: bool,
    /// `Topics`, versions 0+.
    pub topics: Vec<ReassignableTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AlterPartitionReassignmentsRequest {
    fn default() -> Self {
        Self {
            timeout_ms: 60000,
            allow_replication_factor_change: true,
            topics: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AlterPartitionReassignmentsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("TimeoutMs", Kind::Fixed(4), 0, 1),
        Field::new("AllowReplicationFactorChange", Kind::Fixed(1), 1, 1),
        Field::new("Topics", Kind::Array(&Kind::Struct(ReassignableTopic::FIELDS)), 0, 1),
    ];
}

impl FromWire for AlterPartitionReassignmentsRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.timeout_ms = r.i32()?;
        if v >= 1 {
            m.allow_replication_factor_change = r.bool()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterPartitionReassignmentsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.timeout_ms);
        if v >= 1 {
            w.bool(self.allow_replication_factor_change);
        } else if !self.allow_replication_factor_change {
            return Err(EncodeError::absent(
                "AlterPartitionReassignmentsRequest.AllowReplicationFactorChange",
                v,
            ));
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterPartitionReassignmentsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.timeout_ms = Random::random(g, v, f);
        if v >= 1 {
            m.allow_replication_factor_change = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ReassignableTopic` of `AlterPartitionReassignmentsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReassignableTopic {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<ReassignablePartition>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReassignableTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Struct(ReassignablePartition::FIELDS)), 0, 1),
    ];
}

impl FromWire for ReassignableTopic {
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

impl ToWire for ReassignableTopic {
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
impl Random for ReassignableTopic {
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

/// `ReassignablePartition` of `AlterPartitionReassignmentsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReassignablePartition {
    /// `PartitionIndex`, versions 0+.
    pub partition_index: i32,
    /// `Replicas`, versions 0+, null in versions 0+.
    pub replicas: Option<Vec<i32>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ReassignablePartition {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 0, 1),
        Field::new("Replicas", Kind::Array(&Kind::Fixed(4)), 0, 1).nullable(0, 1),
    ];
}

impl FromWire for ReassignablePartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.replicas = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ReassignablePartition {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.nullable_array(self.replicas.as_deref(), v, f, true, "Replicas")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ReassignablePartition {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.replicas = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterPartitionReassignmentsRequest {
    const NAME: &'static str = "AlterPartitionReassignmentsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for AlterPartitionReassignmentsRequest {
    const KEY: ApiKey = ApiKey::AlterPartitionReassignments;
    type Response = super::AlterPartitionReassignmentsResponse;
}
