//! `ShareGroupDescribeResponse`, versions 1-1, API key 77.

use super::prelude::*;

/// `ShareGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ShareGroupDescribeResponse {
    /// `ThrottleTimeMs`, versions 1+.
    pub throttle_time_ms: i32,
    /// `Groups`, versions 1+.
    pub groups: Vec<DescribedGroup>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ShareGroupDescribeResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 1, 1),
        Field::new("Groups", Kind::Array(&Kind::Struct(DescribedGroup::FIELDS)), 1, 1),
    ];
}

impl FromWire for ShareGroupDescribeResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.groups = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ShareGroupDescribeResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.array(&self.groups, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ShareGroupDescribeResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.groups = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribedGroup` of `ShareGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    /// `ErrorCode`, versions 1+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 1+, null in versions 1+.
    pub error_message: Option<String>,
    /// `GroupId`, versions 1+.
    pub group_id: String,
    /// `GroupState`, versions 1+.
    pub group_state: String,
    /// `GroupEpoch`, versions 1+.
    pub group_epoch: i32,
    /// `AssignmentEpoch`, versions 1+.
    pub assignment_epoch: i32,
    /// `AssignorName`, versions 1+.
    pub assignor_name: String,
    /// `Members`, versions 1+.
    pub members: Vec<Member>,
    /// `AuthorizedOperations`, versions 1+.
    pub authorized_operations: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            error_message: None,
            group_id: Default::default(),
            group_state: Default::default(),
            group_epoch: Default::default(),
            assignment_epoch: Default::default(),
            assignor_name: Default::default(),
            members: Default::default(),
            authorized_operations: -2147483648,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribedGroup {
    const FIELDS: &'static [Field] = &[
        Field::new("ErrorCode", Kind::Fixed(2), 1, 1),
        Field::new("ErrorMessage", Kind::Text, 1, 1).nullable(1, 1).of(Entity::Explanation),
        Field::new("GroupId", Kind::Text, 1, 1).of(Entity::GroupId),
        Field::new("GroupState", Kind::Text, 1, 1),
        Field::new("GroupEpoch", Kind::Fixed(4), 1, 1),
        Field::new("AssignmentEpoch", Kind::Fixed(4), 1, 1),
        Field::new("AssignorName", Kind::Text, 1, 1),
        Field::new("Members", Kind::Array(&Kind::Struct(Member::FIELDS)), 1, 1),
        Field::new("AuthorizedOperations", Kind::Fixed(4), 1, 1),
    ];
}

impl FromWire for DescribedGroup {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        m.group_id = r.string(f)?;
        m.group_state = r.string(f)?;
        m.group_epoch = r.i32()?;
        m.assignment_epoch = r.i32()?;
        m.assignor_name = r.string(f)?;
        m.members = r.array(v, f)?;
        m.authorized_operations = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribedGroup {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        w.string(&self.group_id, f)?;
        w.string(&self.group_state, f)?;
        w.i32(self.group_epoch);
        w.i32(self.assignment_epoch);
        w.string(&self.assignor_name, f)?;
        w.array(&self.members, v, f)?;
        w.i32(self.authorized_operations);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribedGroup {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        m.group_id = Random::random(g, v, f);
        m.group_state = Random::random(g, v, f);
        m.group_epoch = Random::random(g, v, f);
        m.assignment_epoch = Random::random(g, v, f);
        m.assignor_name = Random::random(g, v, f);
        m.members = Random::random(g, v, f);
        m.authorized_operations = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Member` of `ShareGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Member {
    /// `MemberId`, versions 1+.
    pub member_id: String,
    /// `RackId`, versions 1+, null in versions 1+.
    pub rack_id: Option<String>,
    /// `MemberEpoch`, versions 1+.
    pub member_epoch: i32,
    /// `ClientId`, versions 1+.
    pub client_id: String,
    /// `ClientHost`, versions 1+.
    pub client_host: String,
    /// `SubscribedTopicNames`, versions 1+.
    pub subscribed_topic_names: Vec<String>,
    /// `Assignment`, versions 1+.
    pub assignment: Assignment,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Member {
    const FIELDS: &'static [Field] = &[
        Field::new("MemberId", Kind::Text, 1, 1),
        Field::new("RackId", Kind::Text, 1, 1).nullable(1, 1),
        Field::new("MemberEpoch", Kind::Fixed(4), 1, 1),
        Field::new("ClientId", Kind::Text, 1, 1),
        Field::new("ClientHost", Kind::Text, 1, 1),
        Field::new("SubscribedTopicNames", Kind::Array(&Kind::Text), 1, 1).of(Entity::TopicName),
        Field::new("Assignment", Kind::Struct(Assignment::FIELDS), 1, 1),
    ];
}

impl FromWire for Member {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.member_id = r.string(f)?;
        m.rack_id = r.nullable_string(f, true)?;
        m.member_epoch = r.i32()?;
        m.client_id = r.string(f)?;
        m.client_host = r.string(f)?;
        m.subscribed_topic_names = r.array(v, f)?;
        m.assignment = Assignment::read(r, v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Member {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.member_id, f)?;
        w.nullable_string(self.rack_id.as_deref(), f, true, "RackId")?;
        w.i32(self.member_epoch);
        w.string(&self.client_id, f)?;
        w.string(&self.client_host, f)?;
        w.array(&self.subscribed_topic_names, v, f)?;
        self.assignment.write(w, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Member {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.member_id = Random::random(g, v, f);
        m.rack_id = g.nullable(true, v, f);
        m.member_epoch = Random::random(g, v, f);
        m.client_id = Random::random(g, v, f);
        m.client_host = Random::random(g, v, f);
        m.subscribed_topic_names = Random::random(g, v, f);
        m.assignment = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Assignment` of `ShareGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Assignment {
    /// `TopicPartitions`, versions 1+.
    pub topic_partitions: Vec<TopicPartitions>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Assignment {
    const FIELDS: &'static [Field] =
        &[Field::new("TopicPartitions", Kind::Array(&Kind::Struct(TopicPartitions::FIELDS)), 1, 1)];
}

impl FromWire for Assignment {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Assignment {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.topic_partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Assignment {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopicPartitions` of `ShareGroupDescribeResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicPartitions {
    /// `TopicId`, versions 1+.
    pub topic_id: Uuid,
    /// `TopicName`, versions 1+.
    pub topic_name: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopicPartitions {
    const FIELDS: &'static [Field] = &[
        Field::new("TopicId", Kind::Uuid, 1, 1).of(Entity::TopicId),
        Field::new("TopicName", Kind::Text, 1, 1).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 1, 1),
    ];
}

impl FromWire for TopicPartitions {
    const SIZE_MIN: usize = 19;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.topic_id = r.uuid()?;
        m.topic_name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopicPartitions {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.uuid(self.topic_id);
        w.string(&self.topic_name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopicPartitions {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.topic_id = Random::random(g, v, f);
        m.topic_name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ShareGroupDescribeResponse {
    const NAME: &'static str = "ShareGroupDescribeResponse";
    const VERSIONS: VersionRange = VersionRange::new(1, 1);
    const FLEXIBLE_FROM: i16 = 1;
}

impl Response for ShareGroupDescribeResponse {
    const KEY: ApiKey = ApiKey::ShareGroupDescribe;
}
