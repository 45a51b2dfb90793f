//! A group of any type, as far as it does not matter which.

use moldau_protocol::ErrorCode;

use crate::commits::refuse_commit;
use crate::consumer::ConsumerGroup;
use crate::group::Group;
use crate::offsets::Offsets;
use crate::record::GroupRecord;
use crate::reply::{GroupState, GroupType, ListedGroup, Reply};
use crate::request::{OffsetCommitRequest, OffsetDeleteRequest, Token};
use crate::share::ShareGroup;
use crate::step::Step;
use crate::streams::StreamsGroup;
use crate::topics::Topics;

/// Protocol type of a group whose members read topics.
const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

/// Protocol type of a share group.
const SHARE_PROTOCOL_TYPE: &str = "share";

/// Protocol type of a streams group.
const STREAMS_PROTOCOL_TYPE: &str = "streams";

#[derive(Debug)]
pub(crate) enum AnyGroup {
    Classic(Group),
    Consumer(ConsumerGroup),
    Share(ShareGroup),
    Streams(Box<StreamsGroup>),
}

impl AnyGroup {
    pub(crate) fn classic(id: String, now_ms: i64) -> Self {
        Self::Classic(Group::new(id, now_ms))
    }

    /// Its committed offsets; a share group has none.
    pub(crate) fn offsets(&self) -> Option<&Offsets> {
        match self {
            Self::Classic(group) => Some(&group.offsets),
            Self::Consumer(group) => Some(&group.offsets),
            Self::Streams(group) => Some(&group.offsets),
            Self::Share(_) => None,
        }
    }

    pub(crate) fn offsets_mut(&mut self) -> Option<&mut Offsets> {
        match self {
            Self::Classic(group) => Some(&mut group.offsets),
            Self::Consumer(group) => Some(&mut group.offsets),
            Self::Streams(group) => Some(&mut group.offsets),
            Self::Share(_) => None,
        }
    }

    /// The group as a classic one. One of the consumer protocol becomes it, and keeps its offsets.
    pub(crate) fn as_classic(&mut self, id: &str, now_ms: i64) -> &mut Group {
        if !matches!(self, Self::Classic(_)) {
            let mut classic = Group::new(id.to_owned(), now_ms);
            classic.offsets = self.offsets_mut().map(std::mem::take).unwrap_or_default();
            *self = Self::Classic(classic);
        }
        match self {
            Self::Classic(group) => group,
            _ => unreachable!("it was turned into a classic group"),
        }
    }

    /// The group as one of the consumer protocol. A classic one becomes it, and keeps its offsets.
    pub(crate) fn as_consumer(&mut self, id: &str) -> &mut ConsumerGroup {
        if !matches!(self, Self::Consumer(_)) {
            let offsets = self.offsets_mut().map(std::mem::take).unwrap_or_default();
            *self = Self::Consumer(ConsumerGroup::new(id.to_owned(), offsets));
        }
        match self {
            Self::Consumer(group) => group,
            _ => unreachable!("it was turned into one of the consumer protocol"),
        }
    }

    /// The group as a share group.
    pub(crate) fn as_share(&mut self, id: &str) -> &mut ShareGroup {
        if !matches!(self, Self::Share(_)) {
            *self = Self::Share(ShareGroup::new(id.to_owned()));
        }
        match self {
            Self::Share(group) => group,
            _ => unreachable!("it was turned into a share group"),
        }
    }

    /// Makes a group of the consumer protocol a classic one if all its members follow the classic
    /// protocol and the policy allows it. They keep what they hold, and join again if it
    /// `rebalances`.
    pub(crate) fn settle(
        &mut self,
        step: &mut Step<'_>,
        id: &str,
        topics: &dyn Topics,
        rebalances: bool,
    ) {
        let Self::Consumer(consumers) = self else { return };
        let size_max = step.config.group_size_max;
        if !step.config.consumer.migration.downgrades()
            || !consumers.is_all_classic()
            || consumers.members() > size_max
        {
            return;
        }
        let members = consumers.classic_members(topics);
        if let Some(mut group) = Group::migrated(step, id, consumers.epoch(), members, rebalances) {
            group.offsets = std::mem::take(&mut consumers.offsets);
            *self = Self::Classic(group);
        }
    }

    /// The group as a streams group. A classic one becomes it, and keeps its offsets.
    pub(crate) fn as_streams(&mut self, id: &str) -> &mut StreamsGroup {
        if !matches!(self, Self::Streams(_)) {
            let mut streams = Box::new(StreamsGroup::new(id.to_owned()));
            streams.offsets = self.offsets_mut().map(std::mem::take).unwrap_or_default();
            *self = Self::Streams(streams);
        }
        match self {
            Self::Streams(group) => group,
            _ => unreachable!("it was turned into a streams group"),
        }
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        match self {
            Self::Classic(group) => group.deadline(),
            Self::Consumer(group) => group.deadline(),
            Self::Share(group) => group.deadline(),
            Self::Streams(group) => group.deadline(),
        }
    }

    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_blank(),
            Self::Consumer(group) => group.is_blank(),
            Self::Share(group) => group.is_blank(),
            Self::Streams(group) => group.is_blank(),
        }
    }

    /// Whether the group may go without being asked to. A share group never may.
    pub(crate) fn is_unused(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_unused(),
            Self::Consumer(group) => group.is_unused(),
            Self::Streams(group) => group.is_unused(),
            Self::Share(_) => false,
        }
    }

    pub(crate) fn is_consistent(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_consistent(),
            Self::Consumer(group) => group.is_consistent(),
            Self::Share(group) => group.is_consistent(),
            Self::Streams(group) => group.is_consistent(),
        }
    }

    /// Whether the group has no members, so that it may be deleted or change its type.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_deletable(),
            Self::Consumer(group) => group.members() == 0,
            Self::Share(group) => group.members() == 0,
            Self::Streams(group) => group.members() == 0,
        }
    }

    pub(crate) fn group_type(&self) -> GroupType {
        match self {
            Self::Classic(_) => GroupType::Classic,
            Self::Consumer(_) => GroupType::Consumer,
            Self::Share(_) => GroupType::Share,
            Self::Streams(_) => GroupType::Streams,
        }
    }

    pub(crate) fn members(&self) -> usize {
        match self {
            Self::Classic(group) => group.members(),
            Self::Consumer(group) => group.members(),
            Self::Share(group) => group.members(),
            Self::Streams(group) => group.members(),
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        match self {
            Self::Classic(group) => group.state(),
            Self::Consumer(group) => group.state(),
            Self::Share(group) => group.state(),
            Self::Streams(group) => group.state(),
        }
    }

    pub(crate) fn listed(&self, id: &str) -> ListedGroup {
        let protocol_type = match self {
            Self::Classic(group) => group.protocol_type(),
            Self::Consumer(_) => CONSUMER_PROTOCOL_TYPE,
            Self::Share(_) => SHARE_PROTOCOL_TYPE,
            Self::Streams(_) => STREAMS_PROTOCOL_TYPE,
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
            Self::Streams(group) => group.offset_commit(step, request, token),
            Self::Share(_) => {
                let error = ErrorCode::GroupIdNotFound;
                let refused = request.topics.iter().map(|topic| refuse_commit(topic, error));
                step.reply(token, Reply::OffsetCommit(refused.collect()));
            }
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
            Self::Streams(group) => group.offset_delete(step, request, token),
            Self::Share(_) => {
                step.reply(token, Reply::OffsetDelete(Err(ErrorCode::GroupIdNotFound)));
            }
        }
    }

    /// Whether OffsetFetch may come from this member.
    pub(crate) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(_) | Self::Share(_) => Ok(()),
            Self::Consumer(group) => group.check_fetch(member_id, epoch),
            Self::Streams(group) => group.check_fetch(member_id, epoch),
        }
    }

    pub(crate) fn expire(&mut self, step: &mut Step<'_>) {
        match self {
            Self::Classic(group) => group.expire(step),
            Self::Consumer(group) => group.expire(step),
            Self::Share(group) => group.expire(step),
            Self::Streams(group) => group.expire(step),
        }
    }

    pub(crate) fn expire_offsets(&mut self, step: &mut Step<'_>) {
        match self {
            Self::Classic(group) => group.expire_offsets(step),
            Self::Consumer(group) => group.expire_offsets(step),
            Self::Streams(group) => group.expire_offsets(step),
            Self::Share(_) => {}
        }
    }

    pub(crate) fn recover(&mut self, step: &mut Step<'_>) {
        match self {
            Self::Classic(group) => group.recover(step),
            Self::Consumer(group) => group.recover(step),
            Self::Share(group) => group.recover(step),
            Self::Streams(group) => group.recover(step),
        }
    }

    pub(crate) fn snapshot(&self) -> Box<dyn Iterator<Item = GroupRecord> + '_> {
        match self {
            Self::Classic(group) => Box::new(group.snapshot()),
            Self::Consumer(group) => Box::new(group.snapshot()),
            Self::Share(group) => Box::new(group.snapshot()),
            Self::Streams(group) => Box::new(group.snapshot()),
        }
    }
}
