//! One group of the consumer protocol (KIP-848): its members, its epochs, its target assignment.
//!
//! | epoch | grows when |
//! |---|---|
//! | of the group | a member comes, goes or subscribes to something else; its topics change |
//! | of the target | a target assignment is computed for the epoch of the group |
//! | of a member | the member has given up all that the target takes from it |
//!
//! A partition has one owner: the member that holds it, or that was asked to give it up and did
//! not say yet that it has.

mod classic;
mod commits;
mod heartbeat;
mod leaving;
pub(crate) mod pattern;
mod reconcile;
mod stored;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use moldau_protocol::{ErrorCode, Uuid};

use crate::assignor::Assignor;
use crate::consumer_member::{ConsumerMember, MemberState, OwnedPartitions, Partitions};
use crate::consumer_record::ConsumerChange;
use crate::offsets::Offsets;
use crate::record::GroupRecord;
use crate::reply::{ConsumerGroupDescription, ConsumerMemberDescription, GroupState};
use crate::step::Step;
use crate::timers::{Timer, Timers};
use crate::topics::{Topics, hash_of};

pub(crate) use heartbeat::check_pattern;

/// Epoch that a member sends with its first heartbeat.
pub(crate) const JOIN_EPOCH: i32 = 0;
/// Epoch of a member that leaves.
pub(crate) const LEAVE_EPOCH: i32 = -1;
/// Epoch of a static member that leaves and will come back.
pub(crate) const STATIC_LEAVE_EPOCH: i32 = -2;

/// A group of the consumer protocol.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    id: String,
    epoch: i32,
    target_epoch: i32,
    /// When the target was computed; 0 where the next one need not wait.
    target_timestamp_ms: i64,
    target: BTreeMap<String, Partitions>,
    members: BTreeMap<String, ConsumerMember>,
    /// Member id of each static member.
    static_members: BTreeMap<String, String>,
    /// The member that holds each partition.
    owners: HashMap<(Uuid, i32), String>,
    /// Of the subscribed topics as the epoch of the group knows them; 0 where it knows none.
    metadata_hash: i64,
    /// The version of the topics that were looked at; none after a start.
    seen_version: Option<u64>,
    regexes: Regexes,
    pub(crate) offsets: Offsets,
    timers: Timers,
    /// Whether the journal has heard of the group.
    is_written: bool,
}

/// Topics of each regular expression that members subscribe to. They are not stored: a broker that
/// starts looks for them again.
#[derive(Debug, Default)]
struct Regexes {
    /// How many members subscribe to each.
    subscribers: BTreeMap<String, usize>,
    topics: BTreeMap<String, BTreeSet<String>>,
    version: Option<u64>,
    refreshed_at_ms: i64,
}

impl ConsumerGroup {
    pub(crate) fn new(id: String, offsets: Offsets) -> Self {
        Self {
            id,
            epoch: 0,
            target_epoch: 0,
            target_timestamp_ms: 0,
            target: BTreeMap::new(),
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            owners: HashMap::new(),
            metadata_hash: 0,
            seen_version: None,
            regexes: Regexes::default(),
            offsets,
            timers: Timers::default(),
            is_written: false,
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        if self.members.is_empty() {
            GroupState::Empty
        } else if self.epoch > self.target_epoch {
            GroupState::Assigning
        } else if self.members.values().all(|member| member.is_at(self.target_epoch)) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    /// Whether all members have what the target gives them.
    pub(crate) fn is_stable(&self) -> bool {
        self.state() == GroupState::Stable
    }

    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        self.timers.earliest()
    }

    /// Whether nothing would be lost without the group.
    pub(crate) fn is_blank(&self) -> bool {
        !self.is_written && self.is_unused()
    }

    /// Whether the group has neither members nor offsets.
    pub(crate) fn is_unused(&self) -> bool {
        self.members.is_empty() && self.offsets.is_empty()
    }

    /// Whether what is kept beside the members agrees with them.
    pub(crate) fn is_consistent(&self) -> bool {
        let statics = self.members.values().filter(|member| member.instance_id.is_some()).count();
        let held = self.members.values().map(ConsumerMember::held_count).sum::<usize>();
        let owned_by = |member: &ConsumerMember| {
            let held = member.held();
            held.into_iter().all(|key| self.owners.get(&key) == Some(&member.member_id))
        };
        self.static_members.len() == statics
            && self.owners.len() == held
            && self.members.values().all(owned_by)
            && self.target.keys().all(|id| self.members.contains_key(id))
            && self.target_epoch <= self.epoch
            && self.members.values().all(|member| member.epoch <= self.target_epoch)
    }

    /// As ConsumerGroupDescribe shows it.
    pub(crate) fn describe(&self, default_assignor: Assignor) -> ConsumerGroupDescription {
        let members = self.members.values().map(|member| ConsumerMemberDescription {
            assigned: member.assigned_partitions(),
            target: self.target.get(&member.member_id).cloned().unwrap_or_default(),
            member: member.clone(),
        });
        ConsumerGroupDescription {
            group_id: self.id.clone(),
            state: self.state(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            assignor: self.preferred_assignor(default_assignor).name(),
            members: members.collect(),
        }
    }

    /// The assignor that most members ask for.
    fn preferred_assignor(&self, default: Assignor) -> Assignor {
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for member in self.members.values() {
            let wanted = member.assignor.as_deref().and_then(Assignor::named);
            if let Some(wanted) = wanted {
                *votes.entry(wanted).or_default() += 1;
            }
        }
        let most = votes.into_iter().max_by_key(|(_, count)| *count);
        most.map_or(default, |(assignor, _)| assignor)
    }

    /// Names of all topics that a member subscribes to, also by its regular expression.
    fn topics_of<'a>(&'a self, member: &'a ConsumerMember) -> BTreeSet<&'a str> {
        let matched = member.regex.as_ref().and_then(|regex| self.regexes.topics.get(regex));
        let matched = matched.into_iter().flatten();
        member.topics.iter().chain(matched).map(String::as_str).collect()
    }

    /// Whether a member may be reading the topic.
    fn is_subscribed(&self, topic: &str) -> bool {
        self.members.values().any(|member| self.topics_of(member).contains(topic))
    }

    /// Makes `member` the state of its member, and the owner of what it holds.
    fn put_member(&mut self, member: ConsumerMember) {
        let id = member.member_id.clone();
        if let Some(before) = self.members.remove(&id) {
            self.forget(&before);
        }
        for key in member.held() {
            self.owners.insert(key, id.clone());
        }
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), id.clone());
        }
        if let Some(regex) = &member.regex {
            *self.regexes.subscribers.entry(regex.clone()).or_default() += 1;
        }
        self.members.insert(id, member);
    }

    /// Takes a member out, with its part of the target and its timers.
    fn take_member(&mut self, id: &str) -> Option<ConsumerMember> {
        let member = self.members.remove(id)?;
        self.forget(&member);
        self.target.remove(id);
        self.timers.cancel(&Timer::Member(id.to_owned()));
        self.timers.cancel(&Timer::Revocation(id.to_owned()));
        self.timers.cancel(&Timer::Rejoin(id.to_owned()));
        self.timers.cancel(&Timer::FetchAssignment(id.to_owned()));
        Some(member)
    }

    fn forget(&mut self, member: &ConsumerMember) {
        for key in member.held() {
            if self.owners.get(&key) == Some(&member.member_id) {
                self.owners.remove(&key);
            }
        }
        if let Some(instance_id) = &member.instance_id
            && self.static_members.get(instance_id) == Some(&member.member_id)
        {
            self.static_members.remove(instance_id);
        }
        if let Some(regex) = &member.regex
            && let Some(count) = self.regexes.subscribers.get_mut(regex)
        {
            *count -= 1;
            if *count == 0 {
                self.regexes.subscribers.remove(regex);
            }
        }
    }

    fn extend_session(&mut self, step: &Step<'_>, id: &str) {
        let classic = self.members.get(id).and_then(|member| member.classic.as_ref());
        let settings = step.settings(&self.id);
        let timeout_ms = classic.map_or(settings.session_timeout_ms, |it| it.session_timeout_ms);
        self.timers.schedule(Timer::Member(id.to_owned()), step.after_ms(timeout_ms));
    }

    /// The member that a request names, checked as Kafka does it.
    fn static_member(&self, id: &str, instance_id: &str) -> Result<&ConsumerMember, ErrorCode> {
        let current = self.static_members.get(instance_id).and_then(|id| self.members.get(id));
        match current {
            None => Err(ErrorCode::UnknownMemberId),
            Some(member) if member.member_id != id => Err(ErrorCode::FencedInstanceId),
            Some(member) => Ok(member),
        }
    }

    /// A number that changes with the subscribed topics.
    fn hash_of_topics(&self, topics: &dyn Topics) -> i64 {
        hash_of(self.members.values().flat_map(|member| self.topics_of(member)), topics)
    }

    /// Records a change of the group as it stands: its epochs, the members `changed` and `removed`
    /// and the targets that changed.
    fn write(
        &mut self,
        step: &mut Step<'_>,
        changed: &[&str],
        removed: Vec<String>,
        targets: &BTreeSet<String>,
    ) {
        let members = changed.iter().filter_map(|id| self.members.get(*id)).cloned();
        let targets =
            targets.iter().map(|id| (id.clone(), self.target.get(id).cloned().unwrap_or_default()));
        let change = ConsumerChange {
            members: members.collect(),
            removed,
            targets: targets.collect(),
            ..self.head()
        };
        self.is_written = true;
        step.effects.records.push(GroupRecord::ConsumerChanged(change));
    }
}
