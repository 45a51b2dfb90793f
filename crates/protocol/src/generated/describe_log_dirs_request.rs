//! `DescribeLogDirsRequest`, versions 1-5, API key 35.

use super::prelude::*;

/// `DescribeLogDirsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsRequest {
    /// `Topics`, versions 1+, null in versions 1+.
    pub topics: Option<Vec<DescribableLogDirTopic>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeLogDirsRequest {
    fn default() -> Self {
        Self { topics: Some(Default::default()), unknown_tagged_fields: Vec::new() }
    }
}

impl Structure for DescribeLogDirsRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("Topics", Kind::Array(&Kind::Struct(DescribableLogDirTopic::FIELDS)), 1, 5)
            .nullable(1, 5)];
}

impl FromWire for DescribeLogDirsRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topics = r.nullable_array(v, f, true)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeLogDirsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_array(self.topics.as_deref(), v, f, true, "Topics")?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribeLogDirsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeLogDirsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topics = g.nullable(true, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribableLogDirTopic` of `DescribeLogDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribableLogDirTopic {
    /// `Topic`, versions 1+.
    pub topic: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribableLogDirTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 1, 5).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 1, 5),
    ];
}

impl FromWire for DescribableLogDirTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribableLogDirTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("DescribableLogDirTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribableLogDirTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeLogDirsRequest {
    const NAME: &'static str = "DescribeLogDirsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 5);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for DescribeLogDirsRequest {
    const KEY: ApiKey = ApiKey::DescribeLogDirs;
    type Response = super::DescribeLogDirsResponse;
}
