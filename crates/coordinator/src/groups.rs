//! All groups of one broker.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::{ErrorCode, Uuid};

use crate::any_group::AnyGroup;
use crate::commits::refuse_commit;
use crate::config::{Config, MEMBER_METADATA_BYTES_MAX, NAME_BYTES_MAX, PROTOCOLS_MAX};
use crate::group::Step;
use crate::group_config::GroupOverrides;
use crate::member_ids::MemberIds;
use crate::offered_protocol::Protocol;
use crate::offsets::{Offsets, not_committed};
use crate::record::{GroupRecord, TopicOffsets};
use crate::reply::{
    Effects, FetchedOffset, GroupDescription, GroupState, GroupType, JoinReply, LeaveReply,
    ListedGroup, Reply, SyncReply,
};
use crate::request::{
    HeartbeatRequest, JoinRequest, LeaveRequest, OffsetCommitRequest, OffsetDeleteRequest,
    SyncRequest, Token,
};
use crate::topics::Topics;

mod consumer;
mod share;
mod streams;

/// The group coordinator: every group, its members and its committed offsets.
///
/// Times are milliseconds since the Unix epoch; they are stored with offsets. Requests that may
/// change something return [`Effects`]; those that only look return their answer.
#[derive(Debug)]
pub struct Groups {
    config: Config,
    groups: BTreeMap<String, AnyGroup>,
    /// What groups override of the configuration, whether they exist or not.
    overrides: BTreeMap<String, GroupOverrides>,
    /// The earliest deadline of each group that has one.
    deadlines: BTreeSet<(i64, String)>,
    retention_check_at_ms: i64,
    member_ids: MemberIds,
}

impl Groups {
    /// A coordinator without groups. `seed` makes the member ids hard to guess and should be
    /// random; equal seeds give equal ids.
    pub fn new(config: Config, seed: u64, now_ms: i64) -> Self {
        let retention_check_at_ms =
            now_ms.saturating_add(config.offsets_retention_check_interval_ms);
        Self {
            config,
            groups: BTreeMap::new(),
            overrides: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            retention_check_at_ms,
            member_ids: MemberIds::new(seed),
        }
    }

    /// JoinGroup. The reply may come out of a later step.
    pub fn join(
        &mut self,
        now_ms: i64,
        mut request: JoinRequest,
        topics: &dyn Topics,
        token: Token,
    ) -> Effects {
        unique(&mut request.protocols);
        if let Err(error) = self.check_join(&request) {
            let reply = JoinReply::refused(&request.member_id, error);
            return Effects::reply(token, Reply::Join(reply));
        }
        if request.member_id.is_empty() && !self.ensure(&request.group_id, now_ms) {
            let reply = JoinReply::refused("", ErrorCode::PolicyViolation);
            return Effects::reply(token, Reply::Join(reply));
        }
        let prefix = request.instance_id.as_deref().unwrap_or(&request.client_id);
        let new_id = self.member_ids.next(prefix);
        let refused = |error| Reply::Join(JoinReply::refused(&request.member_id, error));
        let stepped = self.step(now_ms, &request.group_id, |group, step| match group {
            AnyGroup::Classic(group) => group.join(step, &request, token, new_id),
            AnyGroup::Consumer(consumers) if consumers.members() > 0 => {
                let epoch = consumers.epoch();
                let reply = consumers.join(step, &request, new_id, topics);
                step.reply(token, Reply::Join(reply));
                // The last member of the consumer protocol may have given its place to a static
                // one. If that reads the same topics, nobody has to join again.
                let is_stable = consumers.epoch() == epoch && consumers.is_stable();
                group.settle(step, &request.group_id, topics, !is_stable);
            }
            AnyGroup::Share(_) => {
                step.reply(token, refused(ErrorCode::InconsistentGroupProtocol));
            }
            AnyGroup::Streams(streams) if streams.members() > 0 => {
                step.reply(token, refused(ErrorCode::InconsistentGroupProtocol));
            }
            AnyGroup::Consumer(_) | AnyGroup::Streams(_) if !request.member_id.is_empty() => {
                step.reply(token, refused(ErrorCode::UnknownMemberId));
            }
            AnyGroup::Consumer(_) | AnyGroup::Streams(_) => {
                let group = group.as_classic(&request.group_id, now_ms);
                group.begin(step);
                group.join(step, &request, token, new_id);
            }
        });
        stepped.unwrap_or_else(|| Effects::reply(token, refused(ErrorCode::UnknownMemberId)))
    }

    /// SyncGroup. The reply may come out of a later step.
    pub fn sync(
        &mut self,
        now_ms: i64,
        request: &SyncRequest,
        topics: &dyn Topics,
        token: Token,
    ) -> Effects {
        let refused = |error| Effects::reply(token, Reply::Sync(SyncReply::refused(error)));
        if let Err(error) = check_group_id(&request.group_id) {
            return refused(error);
        }
        let stepped = self.step(now_ms, &request.group_id, |group, step| match group {
            AnyGroup::Classic(group) => group.sync(step, request, token),
            AnyGroup::Consumer(group) => {
                let reply = group.sync(step, request, topics);
                step.reply(token, Reply::Sync(reply));
            }
            AnyGroup::Share(_) | AnyGroup::Streams(_) => {
                let reply = SyncReply::refused(ErrorCode::UnknownMemberId);
                step.reply(token, Reply::Sync(reply));
            }
        });
        stepped.unwrap_or_else(|| refused(ErrorCode::UnknownMemberId))
    }

    /// Heartbeat. The reply comes out at once.
    pub fn heartbeat(&mut self, now_ms: i64, request: &HeartbeatRequest, token: Token) -> Effects {
        let refused = |error| Effects::reply(token, Reply::Heartbeat(error));
        if let Err(error) = check_group_id(&request.group_id) {
            return refused(error);
        }
        let stepped = self.step(now_ms, &request.group_id, |group, step| {
            let error = match group {
                AnyGroup::Classic(group) => group.heartbeat(step, request),
                AnyGroup::Consumer(group) => group.classic_heartbeat(step, request),
                AnyGroup::Share(_) | AnyGroup::Streams(_) => ErrorCode::UnknownMemberId,
            };
            step.effects.replies.push((token, Reply::Heartbeat(error)));
        });
        stepped.unwrap_or_else(|| refused(ErrorCode::UnknownMemberId))
    }

    /// LeaveGroup. The reply comes out at once.
    pub fn leave(
        &mut self,
        now_ms: i64,
        request: &LeaveRequest,
        topics: &dyn Topics,
        token: Token,
    ) -> Effects {
        let refused =
            |error| Effects::reply(token, Reply::Leave(LeaveReply { error, members: Vec::new() }));
        if let Err(error) = check_group_id(&request.group_id) {
            return refused(error);
        }
        let stepped = self.step(now_ms, &request.group_id, |group, step| match group {
            AnyGroup::Classic(group) => group.leave(step, request, token),
            AnyGroup::Consumer(consumers) => {
                consumers.leave_group(step, request, token);
                group.settle(step, &request.group_id, topics, true);
            }
            AnyGroup::Share(_) | AnyGroup::Streams(_) => {
                let error = ErrorCode::UnknownMemberId;
                step.reply(token, Reply::Leave(LeaveReply { error, members: Vec::new() }));
            }
        });
        stepped.unwrap_or_else(|| refused(ErrorCode::UnknownMemberId))
    }

    /// OffsetCommit. The reply comes out at once. Whether the topics exist is for the caller to
    /// check.
    pub fn offset_commit(
        &mut self,
        now_ms: i64,
        request: &OffsetCommitRequest,
        token: Token,
    ) -> Effects {
        let refused = |error| {
            let topics = request.topics.iter().map(|topic| refuse_commit(topic, error));
            Effects::reply(token, Reply::OffsetCommit(topics.collect()))
        };
        if request.group_id.len() > NAME_BYTES_MAX {
            return refused(ErrorCode::InvalidGroupId);
        }
        if request.generation < 0 && !self.ensure(&request.group_id, now_ms) {
            return refused(ErrorCode::PolicyViolation);
        }
        let stepped = self.step(now_ms, &request.group_id, |group, step| {
            group.offset_commit(step, request, token);
        });
        stepped.unwrap_or_else(|| refused(ErrorCode::IllegalGeneration))
    }

    /// Whether a member may commit offsets as part of a transaction (KIP-447). Without a generation
    /// and a member anyone may, as before that.
    ///
    /// # Errors
    ///
    /// What Kafka answers where it may not.
    pub fn check_transactional_commit(
        &self,
        group_id: &str,
        generation: i32,
        (member_id, instance_id): (&str, Option<&str>),
        partitions: &[(Uuid, i32)],
    ) -> Result<(), ErrorCode> {
        if group_id.len() > NAME_BYTES_MAX {
            return Err(ErrorCode::InvalidGroupId);
        }
        match self.groups.get(group_id) {
            Some(AnyGroup::Classic(group)) => {
                group.check_transactional_commit(generation, member_id, instance_id)
            }
            Some(AnyGroup::Consumer(group)) => {
                let member = (member_id, instance_id);
                group.check_transactional_commit(generation, member, partitions)
            }
            Some(AnyGroup::Streams(group)) => {
                let member = (member_id, instance_id);
                group.check_transactional_commit(generation, member, partitions)
            }
            Some(AnyGroup::Share(_)) => Err(ErrorCode::GroupIdNotFound),
            None if generation >= 0 => Err(ErrorCode::IllegalGeneration),
            None if self.groups.len() >= self.config.groups_max => Err(ErrorCode::PolicyViolation),
            None => Ok(()),
        }
    }

    /// The records that commit the offsets of a transaction, for the journal and then, once it has
    /// taken them, for [`Groups::transaction_committed`].
    pub fn transactional_records(offsets: Vec<(String, TopicOffsets)>) -> Vec<GroupRecord> {
        let record = |(group_id, topic)| {
            let topics = vec![topic];
            GroupRecord::OffsetsCommitted { group_id, topics }
        };
        offsets.into_iter().map(record).collect()
    }

    /// Takes up what a transaction committed. A group that is gone meanwhile is there again.
    pub fn transaction_committed(&mut self, now_ms: i64, record: GroupRecord) {
        if let GroupRecord::OffsetsCommitted { group_id, topics } = record {
            let new = || AnyGroup::classic(group_id.clone(), now_ms);
            let group = self.groups.entry(group_id.clone()).or_insert_with(new);
            if let Some(offsets) = group.offsets_mut() {
                offsets.replay_committed(topics);
            }
        }
    }

    /// OffsetFetch of the listed partitions, or of all that have an offset with `None`.
    ///
    /// The offsets may be those of a commit whose record is not durable yet: deliver the answer
    /// after the records of the steps before it.
    pub fn offset_fetch(
        &self,
        group_id: &str,
        topics: Option<&[(String, Vec<i32>)]>,
    ) -> Vec<(String, Vec<FetchedOffset>)> {
        let offsets = self.groups.get(group_id).and_then(AnyGroup::offsets);
        let Some(topics) = topics else {
            return offsets.map(Offsets::fetch_all).unwrap_or_default();
        };
        let fetch = |topic: &str, partition: i32| match offsets {
            Some(offsets) => offsets.fetch(topic, partition),
            None => not_committed(partition),
        };
        let listed = topics.iter().map(|(topic, partitions)| {
            let offsets = partitions.iter().map(|partition| fetch(topic, *partition));
            (topic.clone(), offsets.collect())
        });
        listed.collect()
    }

    /// OffsetDelete. The reply comes out at once.
    pub fn offset_delete(
        &mut self,
        now_ms: i64,
        request: &OffsetDeleteRequest,
        token: Token,
    ) -> Effects {
        let stepped = self.step(now_ms, &request.group_id, |group, step| {
            group.offset_delete(step, request, token);
        });
        stepped.unwrap_or_else(|| {
            Effects::reply(token, Reply::OffsetDelete(Err(ErrorCode::GroupIdNotFound)))
        })
    }

    /// ListGroups, without its filters.
    pub fn list(&self) -> impl Iterator<Item = ListedGroup> + '_ {
        self.groups.iter().map(|(id, group)| group.listed(id))
    }

    /// Type, state and number of members of every group.
    pub fn sizes(&self) -> impl Iterator<Item = (GroupType, GroupState, usize)> + '_ {
        self.groups.values().map(|group| (group.group_type(), group.state(), group.members()))
    }

    /// DescribeGroups for one group; `None` where there is no classic group of this id.
    pub fn describe(&self, group_id: &str) -> Option<GroupDescription> {
        match self.groups.get(group_id)? {
            AnyGroup::Classic(group) => Some(group.describe()),
            AnyGroup::Consumer(_) | AnyGroup::Share(_) | AnyGroup::Streams(_) => None,
        }
    }

    /// DeleteGroups. The reply comes out at once.
    pub fn delete_groups(&mut self, group_ids: &[String], token: Token) -> Effects {
        let mut effects = Effects::default();
        let mut results = Vec::with_capacity(group_ids.len());
        for id in group_ids {
            let error = match self.groups.get(id) {
                None => ErrorCode::GroupIdNotFound,
                Some(group) if !group.is_empty() => ErrorCode::NonEmptyGroup,
                Some(_) => {
                    self.remove(id);
                    let record = GroupRecord::GroupDeleted { group_id: id.clone() };
                    effects.records.push(record);
                    ErrorCode::None
                }
            };
            results.push((id.clone(), error));
        }
        effects.replies.push((token, Reply::DeleteGroups(results)));
        effects
    }

    /// A topic was deleted: its offsets go, in every group. The record of the deletion stands for
    /// this, so that replay calls it as well.
    pub fn topic_deleted(&mut self, topic: &str) {
        let offsets = self.groups.values_mut().filter_map(AnyGroup::offsets_mut);
        offsets.for_each(|offsets| offsets.remove_topic(topic));
        let blank = self.groups.iter().filter(|(_, group)| group.is_blank());
        for group_id in blank.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.remove(&group_id);
        }
    }

    /// When [`Groups::tick`] has something to do.
    pub fn next_deadline(&self) -> i64 {
        let group = self.deadlines.first().map(|(at_ms, _)| *at_ms);
        group.map_or(self.retention_check_at_ms, |at_ms| at_ms.min(self.retention_check_at_ms))
    }

    /// Acts on every deadline that has come: ends join phases and sessions, expires offsets.
    pub fn tick(&mut self, now_ms: i64, topics: &dyn Topics) -> Effects {
        let mut effects = Effects::default();
        while self.deadlines.first().is_some_and(|(at_ms, _)| *at_ms <= now_ms)
            && let Some((_, id)) = self.deadlines.pop_first()
        {
            let stepped = self.step(now_ms, &id, |group, step| {
                group.expire(step);
                group.settle(step, &id, topics, true);
            });
            effects.append(stepped.unwrap_or_default());
        }
        if self.retention_check_at_ms <= now_ms {
            let interval_ms = self.config.offsets_retention_check_interval_ms.max(1);
            self.retention_check_at_ms = now_ms.saturating_add(interval_ms);
            effects.append(self.step_all(now_ms, AnyGroup::expire_offsets));
            self.remove_unused(&mut effects);
        }
        effects
    }

    /// Takes over a stored record. Only before [`Groups::recovered`].
    pub fn replay(&mut self, record: GroupRecord) {
        match record {
            GroupRecord::GroupDeleted { group_id } => self.remove(&group_id),
            GroupRecord::GroupMetadata(metadata) => {
                let id = metadata.group_id.clone();
                self.replayed(&id).as_classic(&id, 0).restore(metadata);
            }
            GroupRecord::OffsetsCommitted { group_id, topics } => {
                if let Some(offsets) = self.replayed(&group_id).offsets_mut() {
                    offsets.replay_committed(topics);
                }
            }
            GroupRecord::OffsetsDeleted { group_id, topics } => {
                if let Some(offsets) = self.replayed(&group_id).offsets_mut() {
                    offsets.replay_deleted(&topics);
                }
            }
            GroupRecord::ConsumerChanged(change) => {
                let id = change.group_id.clone();
                self.replayed(&id).as_consumer(&id).replay(change);
            }
            GroupRecord::ShareChanged(change) => {
                let id = change.group_id.clone();
                self.replayed(&id).as_share(&id).replay(change);
            }
            GroupRecord::StreamsChanged(change) => {
                let id = change.group_id.clone();
                self.replayed(&id).as_streams(&id).replay(*change);
            }
            GroupRecord::GroupConfigured { group_id, configs } => {
                self.replace_overrides(group_id, configs)
            }
        }
    }

    /// All records are replayed: sessions of restored members start at `now_ms`.
    pub fn recovered(&mut self, now_ms: i64) -> Effects {
        self.step_all(now_ms, AnyGroup::recover)
    }

    /// Records that restore all that was written, for compaction: they stand for all records of
    /// the steps before.
    pub fn snapshot(&self) -> impl Iterator<Item = GroupRecord> + '_ {
        let configured = self.overrides.iter().map(|(group_id, overrides)| {
            let configs = overrides.iter().map(|(key, value)| (key.clone(), value.clone()));
            GroupRecord::GroupConfigured { group_id: group_id.clone(), configs: configs.collect() }
        });
        configured.chain(self.groups.values().flat_map(AnyGroup::snapshot))
    }

    fn check_join(&self, request: &JoinRequest) -> Result<(), ErrorCode> {
        check_group_id(&request.group_id)?;
        let session_ms = request.session_timeout_ms;
        if session_ms < self.config.session_timeout_ms_min
            || session_ms > self.config.session_timeout_ms_max
        {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        let protocols = request.protocols.iter().map(|p| p.name.len() + p.metadata.len());
        let instance_id = request.instance_id.as_deref().map_or(0, str::len);
        let bytes = protocols.sum::<usize>() + instance_id + request.protocol_type.len();
        if request.protocols.len() > PROTOCOLS_MAX || bytes > MEMBER_METADATA_BYTES_MAX {
            return Err(ErrorCode::PolicyViolation);
        }
        Ok(())
    }

    /// Makes sure that the group exists; false where there is no room for one more.
    fn ensure(&mut self, group_id: &str, now_ms: i64) -> bool {
        if self.groups.contains_key(group_id) {
            return true;
        }
        if self.groups.len() >= self.config.groups_max {
            return false;
        }
        self.groups.insert(group_id.to_owned(), AnyGroup::classic(group_id.to_owned(), now_ms));
        true
    }

    /// The group of a stored record. Its limit was checked when the record was written.
    fn replayed(&mut self, group_id: &str) -> &mut AnyGroup {
        let new = || AnyGroup::classic(group_id.to_owned(), 0);
        self.groups.entry(group_id.to_owned()).or_insert_with(new)
    }

    fn remove(&mut self, group_id: &str) {
        if let Some(group) = self.groups.remove(group_id)
            && let Some(at_ms) = group.deadline()
        {
            self.deadlines.remove(&(at_ms, group_id.to_owned()));
        }
    }

    /// One step of one group, `None` where there is no such group. A group that the step leaves
    /// without anything worth keeping goes away.
    fn step(
        &mut self,
        now_ms: i64,
        group_id: &str,
        act: impl FnOnce(&mut AnyGroup, &mut Step<'_>),
    ) -> Option<Effects> {
        let group = self.groups.get_mut(group_id)?;
        let before = group.deadline();
        let mut step = Step {
            now_ms,
            config: &self.config,
            overrides: &self.overrides,
            effects: Effects::default(),
        };
        act(group, &mut step);
        let effects = step.effects;
        debug_assert!(group.is_consistent(), "bookkeeping of group {group_id} went wrong");
        let (after, blank) = (group.deadline(), group.is_blank());
        if before != after {
            if let Some(at_ms) = before {
                self.deadlines.remove(&(at_ms, group_id.to_owned()));
            }
            if let Some(at_ms) = after {
                self.deadlines.insert((at_ms, group_id.to_owned()));
            }
        }
        if blank {
            self.remove(group_id);
        }
        Some(effects)
    }

    fn step_all(
        &mut self,
        now_ms: i64,
        mut act: impl FnMut(&mut AnyGroup, &mut Step<'_>),
    ) -> Effects {
        let mut effects = Effects::default();
        for id in self.groups.keys().cloned().collect::<Vec<_>>() {
            if let Some(stepped) = self.step(now_ms, &id, &mut act) {
                effects.append(stepped);
            }
        }
        effects
    }

    fn remove_unused(&mut self, effects: &mut Effects) {
        let unused = self.groups.iter().filter(|(_, group)| group.is_unused());
        for group_id in unused.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.remove(&group_id);
            effects.records.push(GroupRecord::GroupDeleted { group_id });
        }
    }
}

fn check_group_id(group_id: &str) -> Result<(), ErrorCode> {
    if group_id.is_empty() || group_id.len() > NAME_BYTES_MAX {
        Err(ErrorCode::InvalidGroupId)
    } else {
        Ok(())
    }
}

/// Keeps the first of several protocols of the same name, so that each member counts once.
fn unique(protocols: &mut Vec<Protocol>) {
    if protocols.len() <= PROTOCOLS_MAX {
        let mut seen = BTreeSet::new();
        protocols.retain(|protocol| seen.insert(protocol.name.clone()));
    }
}
