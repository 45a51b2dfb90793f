//! `ElectLeadersRequest`, versions 0-2, API key 43.

use super::prelude::*;

/// `ElectLeadersRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ElectLeadersRequest {
    /// `ElectionType`, versions 1+.
    pub election_type: i8,
    /// `TopicPartitions`, versions 0+, null in versions 0+.
    pub topic_partitions: Option<Vec<TopicPartitions>>,
    /// `TimeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ElectLeadersRequest {
    fn default() -> Self {
        Self {
            election_type: Default::default(),
            topic_partitions: Some(Default::default()),
            timeout_ms: 60000,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ElectLeadersRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ElectionType", Kind::Fixed(1), 1, 2),
        Field::new("TopicPartitions", Kind::Array(&Kind::Struct(TopicPartitions::FIELDS)), 0, 2)
            .nullable(0, 2),
        Field::new("TimeoutMs", Kind::Fixed(4), 0, 2),
    ];
}

impl FromWire for ElectLeadersRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 1 {
            m.election_type = r.i8()?;
        }
        m.topic_partitions = r.nullable_array(v, f, true)?;
        m.timeout_ms = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ElectLeadersRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 1 {
            w.i8(self.election_type);
        } else if self.election_type != 0 {
            return Err(EncodeError::absent("ElectLeadersRequest.ElectionType", v));
        }
        w.nullable_array(self.topic_partitions.as_deref(), v, f, true, "TopicPartitions")?;
        w.i32(self.timeout_ms);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ElectLeadersRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ElectLeadersRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 1 {
            m.election_type = Random::random(g, v, f);
        }
        m.topic_partitions = g.nullable(true, v, f);
        m.timeout_ms = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicPartitions` of `ElectLeadersRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartitions {
    /// `Topic`, versions 0+.
    pub topic: String,
    /// `Partitions`, versions 0+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicPartitions {
    const FIELDS: &'static [Field] = &[
        Field::new("Topic", Kind::Text, 0, 2).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 0, 2),
    ];
}

impl FromWire for TopicPartitions {
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

impl ToWire for TopicPartitions {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.topic, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("TopicPartitions.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicPartitions {
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

impl Message for ElectLeadersRequest {
    const NAME: &'static str = "ElectLeadersRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for ElectLeadersRequest {
    const KEY: ApiKey = ApiKey::ElectLeaders;
    type Response = super::ElectLeadersResponse;
}
