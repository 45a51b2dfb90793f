//! `ListOffsetsResponse`, versions 1-11, API key 2.

use super::prelude::*;

/// `ListOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListOffsetsResponse {
    /// `ThrottleTimeMs`, versions 2+.
    pub throttle_time_ms: i32,
    /// `Topics`, versions 1+.
    pub topics: Vec<ListOffsetsTopicResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListOffsetsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 2, 11),
        Field::new("Topics", Kind::Array(&Kind::Struct(ListOffsetsTopicResponse::FIELDS)), 1, 11),
    ];
}

impl FromWire for ListOffsetsResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 2 {
            m.throttle_time_ms = r.i32()?;
        }
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListOffsetsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 2 {
            w.i32(self.throttle_time_ms);
        }
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListOffsetsResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListOffsetsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 2 {
            m.throttle_time_ms = Random::random(g, v, f);
        }
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `ListOffsetsTopicResponse` of `ListOffsetsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListOffsetsTopicResponse {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<ListOffsetsPartitionResponse>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ListOffsetsTopicResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 11).of(Entity::TopicName),
        Field::new(
            "Partitions",
            Kind::Array(&Kind::Struct(ListOffsetsPartitionResponse::FIELDS)),
            1,
            11,
        ),
    ];
}

impl FromWire for ListOffsetsTopicResponse {
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

impl ToWire for ListOffsetsTopicResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ListOffsetsTopicResponse.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListOffsetsTopicResponse {
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

/// `ListOffsetsPartitionResponse` of `ListOffsetsResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListOffsetsPartitionResponse {
    /// `PartitionIndex`, versions 1+.
    pub partition_index: i32,
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `Timestamp`, versions 1+.
    pub timestamp: i64,
    /// `Offset`, versions 1+.
    pub offset: i64,
    /// `LeaderEpoch`, versions 4+.
    pub leader_epoch: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ListOffsetsPartitionResponse {
    fn default() -> Self {
        Self {
            partition_index: Default::default(),
            error_code: Default::default(),
            timestamp: -1,
            offset: -1,
            leader_epoch: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ListOffsetsPartitionResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("PartitionIndex", Kind::Fixed(4), 1, 11),
        Field::new("ErrorCode", Kind::Fixed(2), 1, 11),
        Field::new("Timestamp", Kind::Fixed(8), 1, 11),
        Field::new("Offset", Kind::Fixed(8), 1, 11),
        Field::new("LeaderEpoch", Kind::Fixed(4), 4, 11),
    ];
}

impl FromWire for ListOffsetsPartitionResponse {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.partition_index = r.i32()?;
        m.error_code = r.i16()?;
        m.timestamp = r.i64()?;
        m.offset = r.i64()?;
        if v >= 4 {
            m.leader_epoch = r.i32()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ListOffsetsPartitionResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.partition_index);
        w.i16(self.error_code);
        w.i64(self.timestamp);
        w.i64(self.offset);
        if v >= 4 {
            w.i32(self.leader_epoch);
        } else if self.leader_epoch != -1 {
            return Err(EncodeError::absent("ListOffsetsPartitionResponse.LeaderEpoch", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent(
                "ListOffsetsPartitionResponse.unknown_tagged_fields",
                v,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ListOffsetsPartitionResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.partition_index = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.timestamp = Random::random(g, v, f);
        m.offset = Random::random(g, v, f);
        if v >= 4 {
            m.leader_epoch = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ListOffsetsResponse {
    const NAME: &'static str = "ListOffsetsResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 11);
    const FLEXIBLE_FROM: i16 = 6;
}

impl Response for ListOffsetsResponse {
    const KEY: ApiKey = ApiKey::ListOffsets;
}
