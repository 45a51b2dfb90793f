//! A group of either type, as far as it does not matter which.

use moldau_protocol::ErrorCode;

use crate::consumer::ConsumerGroup;
use crate::group::Group;
use crate::offsets::Offsets;
use crate::record::GroupRecord;
use crate::reply::{GroupState, GroupType, ListedGroup};
use crate::request::{OffsetCommitRequest, OffsetDeleteRequest, Token};
use crate::step::Step;

/// Protocol type of every group whose members read topics.
const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

#[derive(Debug)]
pub(crate) enum AnyGroup {
    Classic(Group),
    Consumer(ConsumerGroup),
}

impl AnyGroup {
    pub(crate) fn classic(id: String, now_ms: i64) -> Self {
        Self::Classic(Group::new(id, now_ms))
    }

    pub(crate) fn offsets(&self) -> &Offsets {
        match self {
            Self::Classic(group) => &group.offsets,
            Self::Consumer(group) => &group.offsets,
        }
    }

    pub(crate) fn offsets_mut(&mut self) -> &mut Offsets {
        match self {
            Self::Classic(group) => &mut group.offsets,
            Self::Consumer(group) => &mut group.offsets,
        }
    }

    /// The group as a classic one. One of the consumer protocol becomes it, and keeps its offsets.
    pub(crate) fn as_classic(&mut self, id: &str, now_ms: i64) -> &mut Group {
        if let Self::Consumer(group) = self {
            let mut classic = Group::new(id.to_owned(), now_ms);
            classic.offsets = std::mem::take(&mut group.offsets);
            *self = Self::Classic(classic);
        }
        match self {
            Self::Classic(group) => group,
            Self::Consumer(_) => unreachable!("it was turned into a classic group"),
        }
    }

    /// The group as one of the consumer protocol. A classic one becomes it, and keeps its offsets.
    pub(crate) fn as_consumer(&mut self, id: &str) -> &mut ConsumerGroup {
        if let Self::Classic(group) = self {
            let offsets = std::mem::take(&mut group.offsets);
            *self = Self::Consumer(ConsumerGroup::new(id.to_owned(), offsets));
        }
        match self {
            Self::Consumer(group) => group,
            Self::Classic(_) => unreachable!("it was turned into one of the consumer protocol"),
        }
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        match self {
            Self::Classic(group) => group.deadline(),
            Self::Consumer(group) => group.deadline(),
        }
    }

    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_blank(),
            Self::Consumer(group) => group.is_blank(),
        }
    }

    pub(crate) fn is_unused(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_unused(),
            Self::Consumer(group) => group.is_unused(),
        }
    }

    pub(crate) fn is_consistent(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_consistent(),
            Self::Consumer(group) => group.is_consistent(),
        }
    }

    /// Whether the group has no members, so that it may be deleted or change its type.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_deletable(),
            Self::Consumer(group) => group.members() == 0,
        }
    }

    pub(crate) fn group_type(&self) -> GroupType {
        match self {
            Self::Classic(_) => GroupType::Classic,
            Self::Consumer(_) => GroupType::Consumer,
        }
    }

    pub(crate) fn members(&self) -> usize {
        match self {
            Self::Classic(group) => group.members(),
            Self::Consumer(group) => group.members(),
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        match self {
            Self::Classic(group) => group.state(),
            Self::Consumer(group) => group.state(),
        }
    }

    pub(crate) fn listed(&self, id: &str) -> ListedGroup {
        let protocol_type = match self {
            Self::Classic(group) => group.protocol_type(),
            Self::Consumer(_) => CONSUMER_PROTOCOL_TYPE,
        };
        ListedGroup {
            group_id: id.to_owned(),
            group_type: self.group_type(),
            protocol_type: protocol_type.to_owned(),
            state: self.state(),
        }
    }

    pub(crate) fn offset_commit(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetCommitRequest,
        token: Token,
    ) {
        match self {
            Self::Classic(group) => group.offset_commit(step, request, token),
            Self::Consumer(group) => group.offset_commit(step, request, token),
        }
    }

    pub(crate) fn offset_delete(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetDeleteRequest,
        token: Token,
    ) {
        match self {
            Self::Classic(group) => group.offset_delete(step, request, token),
            Self::Consumer(group) => group.offset_delete(step, request, token),
        }
    }

    /// Whether OffsetFetch may come from this member.
    pub(crate) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(_) => Ok(()),
            Self::Consumer(group) => group.check_fetch(member_id, epoch),
        }
    }

    pub(crate) fn expire(&mut self, step: &mut Step<'_>) {
        match self {
            Self::Classic(group) => group.expire(step),
            Self::Consumer(group) => group.expire(step),
        }
    }

    pub(crate) fn expire_offsets(&mut self, step: &mut Step<'_>) {
        match self {
            Self::Classic(group) => group.expire_offsets(step),
            Self::Consumer(group) => group.expire_offsets(step),
        }
    }

    pub(crate) fn recover(&mut self, step: &mut Step<'_>) {
        match self {
            Self::Classic(group) => group.recover(step),
            Self::Consumer(group) => group.recover(step),
        }
    }

    pub(crate) fn snapshot(&self) -> Box<dyn Iterator<Item = GroupRecord> + '_> {
        match self {
            Self::Classic(group) => Box::new(group.snapshot()),
            Self::Consumer(group) => Box::new(group.snapshot()),
        }
    }
}
