//! ConsumerGroupHeartbeat of a member that comes or stays, after `GroupMetadataManager` of Kafka
//! 4.4. Differs in one point: a regular expression is resolved in the heartbeat that brings it,
//! where Kafka resolves it in the background and bumps the epoch of the group later.

use std::collections::BTreeSet;

use moldau_protocol::{ErrorCode, Uuid};

use super::reconcile::Reconciliation;
use super::{
    ConsumerGroup, ConsumerMember, JOIN_EPOCH, MemberState, Partitions, STATIC_LEAVE_EPOCH, pattern,
};
use crate::assignor::{Assignment, MemberTopics};
use crate::config::Config;
use crate::reply::{ConsumerHeartbeatReply, Refused};
use crate::request::ConsumerHeartbeat;
use crate::step::Step;
use crate::timers::Timer;
use crate::topics::Topics;

/// How often at most the topics of regular expressions are looked for again, as in Kafka: a client
/// that creates topics all the time would keep the coordinator busy with nothing else.
const REGEX_REFRESH_INTERVAL_MS_MIN: i64 = 10_000;

/// What a request makes of a member.
pub(super) struct MemberChange<'a> {
    pub(super) before: ConsumerMember,
    pub(super) after: ConsumerMember,
    /// The id of the static member whose place it takes.
    pub(super) replaced: Option<String>,
    /// What the member says it holds.
    pub(super) owned: Option<&'a Partitions>,
}

impl ConsumerGroup {
    pub(crate) fn heartbeat(
        &mut self,
        step: &mut Step<'_>,
        request: &ConsumerHeartbeat,
        topics: &dyn Topics,
    ) -> Result<ConsumerHeartbeatReply, Refused> {
        let id = request.member_id.as_str();
        let before = self.admitted(step.config, request)?;
        let after = updated(&before, request);
        if after.regex != before.regex
            && let Some(regex) = &after.regex
        {
            check_pattern(regex)?;
        }
        let replaced = self.replaced(request.instance_id.as_deref(), id);
        let change = MemberChange { before, after, replaced, owned: request.owned.as_ref() };
        let before_partitions = change.before.assigned_partitions();
        let after = self.apply(step, change, topics);
        // Deadlines of the classic protocol, which the member may have followed before.
        self.timers.cancel(&Timer::Rejoin(id.to_owned()));
        self.timers.cancel(&Timer::FetchAssignment(id.to_owned()));
        self.extend_session(step, id);
        let is_full = request.rebalance_timeout_ms != -1
            && (request.topics.is_some() || request.regex.is_some())
            && request.owned.is_some();
        let is_assigned = request.member_epoch == JOIN_EPOCH
            || is_full
            || before_partitions != after.assigned_partitions();
        Ok(ConsumerHeartbeatReply {
            error: ErrorCode::None,
            message: None,
            member_id: after.member_id.clone(),
            member_epoch: after.epoch,
            heartbeat_interval_ms: step.settings(&self.id).heartbeat_interval_ms,
            assignment: is_assigned.then(|| after.assigned_partitions()),
        })
    }

    /// Makes a member what a request says, with everything that follows for the group, and returns
    /// it as it then is.
    pub(super) fn apply(
        &mut self,
        step: &mut Step<'_>,
        change: MemberChange<'_>,
        topics: &dyn Topics,
    ) -> ConsumerMember {
        let MemberChange { before, mut after, replaced, owned } = change;
        let id = after.member_id.clone();
        let mut targets = BTreeSet::new();
        let default = step.config.default_assignor();
        let asks_anew = before.assignor != after.assignor;
        let preferred = asks_anew.then(|| self.preferred_assignor(default));
        if let Some(former) = &replaced {
            let target = self.target.get(former).cloned().unwrap_or_default();
            self.take_member(former);
            self.target.insert(id.clone(), target);
            targets.insert(id.clone());
        }
        if self.members.get(&id) != Some(&after) {
            self.put_member(after.clone());
        }
        let is_resolved = self.resolve(step, &after, topics);
        let subscription_changed = before.topics != after.topics || before.regex != after.regex;
        let bump = subscription_changed
            || is_resolved
            || preferred.is_some_and(|before| self.preferred_assignor(default) != before);
        let head = self.head();
        self.follow_topics(topics, bump);
        targets.extend(self.follow_epoch(step, topics));
        self.reconcile(step, &mut after, owned, subscription_changed, topics);
        let is_changed = after != before
            || replaced.is_some()
            || self.head() != head
            || !targets.is_empty()
            || !self.is_written;
        if is_changed {
            self.put_member(after.clone());
            // A group that was a classic one a moment ago is written whole.
            let all = (!self.is_written).then(|| self.members.keys().cloned().collect());
            let changed: Vec<String> = all.unwrap_or_else(|| vec![id]);
            let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
            if !self.is_written {
                targets.extend(self.target.keys().cloned());
            }
            self.write(step, &changed, replaced.into_iter().collect(), &targets);
        }
        after
    }

    /// The member of the request as it was, or as it begins.
    fn admitted(
        &self,
        config: &Config,
        request: &ConsumerHeartbeat,
    ) -> Result<ConsumerMember, Refused> {
        let id = request.member_id.as_str();
        let joins = request.member_epoch == JOIN_EPOCH;
        let is_known = self.members.contains_key(id);
        let instance = request.instance_id.as_deref();
        let is_known_static = instance.is_some_and(|id| self.static_members.contains_key(id));
        let size_max = config.consumer.group_size_max;
        if !is_known && !is_known_static && self.members.len() >= size_max {
            let message = format!("the consumer group has {size_max} members, and has no more");
            return Err((ErrorCode::GroupMaxSizeReached, message));
        }
        let unknown = || {
            let message = format!("member {id} is not a member of group {}", self.id);
            (ErrorCode::UnknownMemberId, message)
        };
        let Some(instance_id) = instance else {
            return match self.members.get(id) {
                Some(member) => {
                    check_epoch(member, request)?;
                    Ok(member.clone())
                }
                None if joins => Ok(ConsumerMember::new(id)),
                None => Err(unknown()),
            };
        };
        if !joins {
            let member = self.static_member(id, instance_id).map_err(|error| {
                (error, format!("instance {instance_id} is not the one of member {id}"))
            })?;
            check_epoch(member, request)?;
            return Ok(member.clone());
        }
        let current = self.static_members.get(instance_id).and_then(|id| self.members.get(id));
        match current {
            None => match self.members.get(id) {
                Some(member) => Ok(member.clone()),
                None => Ok(ConsumerMember::new(id)),
            },
            Some(member) if member.epoch != STATIC_LEAVE_EPOCH && member.classic.is_none() => {
                let message = format!(
                    "instance {instance_id} is in use by member {}, which has not left",
                    member.member_id
                );
                Err((ErrorCode::UnreleasedInstanceId, message))
            }
            Some(member) => {
                let member_id = id.to_owned();
                Ok(ConsumerMember { member_id, epoch: 0, previous_epoch: 0, ..member.clone() })
            }
        }
    }

    /// The id under which a static member that comes back was here before.
    pub(super) fn replaced(&self, instance_id: Option<&str>, id: &str) -> Option<String> {
        let instance_id = instance_id?;
        self.static_members.get(instance_id).filter(|former| *former != id).cloned()
    }

    /// Finds the topics of regular expressions, where it is time to, and says whether one of them
    /// has other topics than before.
    fn resolve(&mut self, step: &Step<'_>, member: &ConsumerMember, topics: &dyn Topics) -> bool {
        if self.regexes.subscribers.is_empty() {
            self.regexes.topics.clear();
            return false;
        }
        let wanted = &self.regexes.subscribers;
        self.regexes.topics.retain(|regex, _| wanted.contains_key(regex));
        let own = member.regex.as_ref();
        let is_new = own.is_some_and(|regex| !self.regexes.topics.contains_key(regex));
        let age_ms = step.now_ms.saturating_sub(self.regexes.refreshed_at_ms);
        let is_incomplete = self.regexes.topics.len() < wanted.len();
        let is_stale = self.regexes.version != Some(topics.version());
        let interval_ms = i64::from(step.config.consumer.regex_refresh_interval_ms);
        let refreshes = (age_ms >= REGEX_REFRESH_INTERVAL_MS_MIN && is_stale)
            || is_incomplete
            || age_ms >= interval_ms;
        if !(is_new || refreshes) {
            return false;
        }
        let mut is_changed = false;
        for regex in wanted.keys().filter(|regex| refreshes || Some(*regex) == own) {
            // Those that are stored were valid when they came.
            let Ok(compiled) = pattern::compile(regex, pattern::BYTES_MAX) else { continue };
            let found: BTreeSet<String> =
                topics.matching(&|name| compiled.is_match(name)).into_iter().collect();
            is_changed |= self.regexes.topics.get(regex).is_some_and(|before| *before != found);
            self.regexes.topics.insert(regex.clone(), found);
        }
        if refreshes {
            self.regexes.version = Some(topics.version());
            self.regexes.refreshed_at_ms = step.now_ms;
        }
        is_changed
    }

    /// Bumps the epoch if asked to, or if subscribed topics are other than it knew them.
    fn follow_topics(&mut self, topics: &dyn Topics, bump: bool) {
        let is_unknown = self.metadata_hash == 0;
        if !bump && !is_unknown && self.seen_version == Some(topics.version()) {
            return;
        }
        let hash = self.hash_of_topics(topics);
        // An epoch whose target is not computed yet takes the topics as they are then.
        if bump || (!is_unknown && hash != self.metadata_hash) {
            self.epoch = self.epoch.saturating_add(1);
        }
        self.metadata_hash = hash;
        self.seen_version = Some(topics.version());
    }

    /// Computes the target of the epoch, if there is none and it is time to. Returns the members
    /// whose target changed.
    fn follow_epoch(&mut self, step: &Step<'_>, topics: &dyn Topics) -> BTreeSet<String> {
        if self.target_epoch >= self.epoch || self.is_early(step) {
            return BTreeSet::new();
        }
        let assignor = self.preferred_assignor(step.config.default_assignor());
        let members = self.members.values().map(|member| MemberTopics {
            id: &member.member_id,
            instance_id: member.instance_id.as_deref(),
            topics: self.topic_ids(member, topics),
            current: self.target.get(&member.member_id),
        });
        let mut sizes = std::collections::BTreeMap::new();
        for name in self.members.values().flat_map(|member| self.topics_of(member)) {
            if let Some(topic) = topics.by_name(name) {
                sizes.insert(topic.id, topic.partitions);
            }
        }
        let assigned = assignor.assign(&Assignment { members: members.collect(), sizes });
        let changed = assigned
            .iter()
            .filter(|(id, target)| self.target.get(*id).cloned().unwrap_or_default() != **target);
        let changed = changed.map(|(id, _)| id.clone()).collect();
        self.target = assigned;
        self.target_epoch = self.epoch;
        self.target_timestamp_ms = step.now_ms;
        changed
    }

    /// Whether the next target has to wait.
    pub(super) fn is_early(&self, step: &Step<'_>) -> bool {
        let interval_ms = i64::from(step.settings(&self.id).assignment_interval_ms);
        self.target_timestamp_ms != 0
            && step.now_ms < self.target_timestamp_ms.saturating_add(interval_ms)
    }

    /// Ids of the topics that a member subscribes to and that exist.
    pub(super) fn topic_ids(&self, member: &ConsumerMember, topics: &dyn Topics) -> BTreeSet<Uuid> {
        let names = self.topics_of(member).into_iter();
        names.filter_map(|name| topics.by_name(name)).map(|topic| topic.id).collect()
    }

    fn reconcile(
        &mut self,
        step: &Step<'_>,
        member: &mut ConsumerMember,
        owned: Option<&Partitions>,
        subscription_changed: bool,
        topics: &dyn Topics,
    ) {
        if !subscription_changed && member.is_at(self.target_epoch) {
            return;
        }
        let empty = Partitions::new();
        let id = member.member_id.clone();
        let next = Reconciliation {
            target_epoch: self.target_epoch,
            target: self.target.get(&id).unwrap_or(&empty),
            subscribed: &self.topic_ids(member, topics),
            subscription_changed,
            owned,
            is_held: &|topic, index| {
                self.owners.get(&(topic, index)).is_some_and(|owner| *owner != id)
            },
        }
        .next(member);
        if next == *member {
            return;
        }
        if next.state == MemberState::UnrevokedPartitions {
            let at_ms = step.after_ms(next.rebalance_timeout_ms);
            self.timers.schedule(Timer::Revocation(id), at_ms);
        } else {
            self.timers.cancel(&Timer::Revocation(id));
        }
        *member = next;
    }
}

/// The member with what the request says of it; what is absent stays.
fn updated(member: &ConsumerMember, request: &ConsumerHeartbeat) -> ConsumerMember {
    let mut member = ConsumerMember { classic: None, ..member.clone() };
    if request.instance_id.is_some() {
        member.instance_id.clone_from(&request.instance_id);
    }
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms.max(0);
    }
    if request.assignor.is_some() {
        member.assignor.clone_from(&request.assignor);
    }
    if let Some(topics) = &request.topics {
        member.topics = topics.iter().cloned().collect();
    }
    if let Some(regex) = &request.regex {
        // The empty expression takes back the one before.
        member.regex = Some(regex.clone()).filter(|regex| !regex.is_empty());
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
    member
}

/// A member that missed the answer to its last heartbeat may have the epoch before, as long as it
/// holds nothing that it was not given.
fn check_epoch(member: &ConsumerMember, request: &ConsumerHeartbeat) -> Result<(), Refused> {
    let epoch = request.member_epoch;
    let has_missed_answer = epoch == member.previous_epoch
        && request.owned.as_ref().is_some_and(|owned| member.has_assigned(owned));
    if epoch == JOIN_EPOCH || epoch == member.epoch || (epoch < member.epoch && has_missed_answer) {
        return Ok(());
    }
    let message = format!(
        "the member is in epoch {}, not in {epoch}; it has to give up all partitions and rejoin",
        member.epoch
    );
    Err((ErrorCode::FencedMemberEpoch, message))
}

/// Checks the regular expression of a subscription; the empty one stands for none.
pub(crate) fn check_pattern(regex: &str) -> Result<(), Refused> {
    let refused = |why| {
        let message = format!("{regex} is no regular expression: {why}");
        (ErrorCode::InvalidRegularExpression, message)
    };
    pattern::compile(regex, pattern::BYTES_MAX).map(drop).map_err(refused)
}
