//! `CreatePartitionsRequest`, versions 0-3, API key 37.

use super::prelude::*;

/// `CreatePartitionsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatePartitionsRequest {
    /// `Topics`, versions 0+.
    pub topics: Vec<CreatePartitionsTopic>,
    /// `TimeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// `ValidateOnly`, versions 0+.
    pub validate_only: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatePartitionsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("Topics", Kind::Array(&Kind::Struct(CreatePartitionsTopic::FIELDS)), 0, 3),
        Field::new("TimeoutMs", Kind::Fixed(4), 0, 3),
        Field::new("ValidateOnly", Kind::Fixed(1), 0, 3),
    ];
}

impl FromWire for CreatePartitionsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.array(v, f)?;
        m.timeout_ms = r.i32()?;
        m.validate_only = r.bool()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatePartitionsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topics, v, f)?;
        w.i32(self.timeout_ms);
        w.bool(self.validate_only);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatePartitionsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatePartitionsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = Random::random(g, v, f);
        m.timeout_ms = Random::random(g, v, f);
        m.validate_only = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatePartitionsTopic` of `CreatePartitionsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePartitionsTopic {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Count`, versions 0+.
    pub count: i32,
    /// `Assignments`, versions 0+, null in versions 0+.
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CreatePartitionsTopic {
    fn default() -> Self {
        Self {
            name: Default::default(),
            count: Default::default(),
            assignments: Some(Default::default()),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CreatePartitionsTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 3).of(Entity::TopicName),
        Field::new("Count", Kind::Fixed(4), 0, 3),
        Field::new(
            "Assignments",
            Kind::Array(&Kind::Struct(CreatePartitionsAssignment::FIELDS)),
            0,
            3,
        )
        .nullable(0, 3),
    ];
}

impl FromWire for CreatePartitionsTopic {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.count = r.i32()?;
        m.assignments = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatePartitionsTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i32(self.count);
        w.nullable_array(self.assignments.as_deref(), v, f, true, "Assignments")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatePartitionsTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatePartitionsTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.count = Random::random(g, v, f);
        m.assignments = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CreatePartitionsAssignment` of `CreatePartitionsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatePartitionsAssignment {
    /// `BrokerIds`, versions 0+.
    pub broker_ids: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for CreatePartitionsAssignment {
    const FIELDS: &'static [Field] = &[Field::new("BrokerIds", Kind::Array(&Kind::Fixed(4)), 0, 3)];
}

impl FromWire for CreatePartitionsAssignment {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_ids = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CreatePartitionsAssignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.broker_ids, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("CreatePartitionsAssignment.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CreatePartitionsAssignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_ids = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for CreatePartitionsRequest {
    const NAME: &'static str = "CreatePartitionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 3);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for CreatePartitionsRequest {
    const KEY: ApiKey = ApiKey::CreatePartitions;
    type Response = super::CreatePartitionsResponse;
}
