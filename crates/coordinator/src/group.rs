//! One group: its members, its state, and how one generation follows another.
//!
//! | state | left by |
//! |---|---|
//! | Empty | a member joins: PreparingRebalance, with the initial delay |
//! | PreparingRebalance | all members joined or the time is over: CompletingRebalance, or Empty |
//! | CompletingRebalance | the leader's sync: Stable; a member comes or goes: PreparingRebalance |
//! | Stable | a member comes, goes or changes: PreparingRebalance |

mod join;
mod member;
mod membership;
mod offsets;
mod stored;
mod sync;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use moldau_protocol::ErrorCode;

use crate::offered_protocol::Protocol;
use crate::offsets::Offsets;
use crate::record::GroupMetadata;
use crate::reply::{GroupDescription, GroupState, MemberDescription};
pub(crate) use crate::step::Step;
use crate::timers::{Timer, Timers};
use member::Member;

/// Protocol type of consumers, whose member metadata names the subscribed topics.
const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

/// How often at most it is looked again whether one of several static members came back.
const JOIN_RETRY_MS_MIN: i32 = 1_000;

/// The join phase of a group that was empty: it waits a fixed delay for more members, again and
/// again while members come, up to the rebalance timeout.
#[derive(Debug)]
struct InitialDelay {
    member_added: bool,
    delay_ms: i32,
    remaining_ms: i32,
}

#[derive(Debug)]
enum Phase {
    Empty,
    Preparing { initial: Option<InitialDelay> },
    Completing,
    Stable,
}

/// How the members agree on what they do.
#[derive(Debug, Default)]
struct Protocols {
    /// The protocol type, such as `consumer`; none before the first member.
    kind: Option<String>,
    /// The protocol of this generation.
    chosen: Option<String>,
    /// How many members offer each protocol.
    offers: HashMap<String, usize>,
}

/// One classic group.
#[derive(Debug)]
pub(crate) struct Group {
    id: String,
    phase: Phase,
    generation: i32,
    protocols: Protocols,
    leader: Option<String>,
    state_timestamp_ms: i64,
    members: BTreeMap<String, Member>,
    /// Member id of each static member.
    static_members: BTreeMap<String, String>,
    /// Ids given out with MEMBER_ID_REQUIRED that did not join yet.
    pending_members: BTreeSet<String>,
    /// Members of this generation that did not sync yet.
    pending_syncs: BTreeSet<String>,
    joins_waiting: usize,
    /// `None` where the topics are unknown: not a consumer group, or unreadable metadata.
    subscribed_topics: Option<BTreeSet<String>>,
    pub(crate) offsets: Offsets,
    timers: Timers,
    /// The metadata as last written; a rebalance under way is not part of it.
    written: Option<GroupMetadata>,
}

impl Group {
    pub(crate) fn new(id: String, now_ms: i64) -> Self {
        Self {
            id,
            phase: Phase::Empty,
            generation: 0,
            protocols: Protocols::default(),
            leader: None,
            state_timestamp_ms: now_ms,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_members: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            joins_waiting: 0,
            subscribed_topics: None,
            offsets: Offsets::default(),
            timers: Timers::default(),
            written: None,
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        match self.phase {
            Phase::Empty => GroupState::Empty,
            Phase::Preparing { .. } => GroupState::PreparingRebalance,
            Phase::Completing => GroupState::CompletingRebalance,
            Phase::Stable => GroupState::Stable,
        }
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        self.timers.earliest()
    }

    /// Whether nothing would be lost without the group.
    pub(crate) fn is_blank(&self) -> bool {
        self.written.is_none() && self.is_unused()
    }

    /// Whether the group has neither members nor offsets.
    pub(crate) fn is_unused(&self) -> bool {
        matches!(self.phase, Phase::Empty)
            && self.pending_members.is_empty()
            && self.offsets.is_empty()
    }

    /// Whether what is kept by member and counted agrees with the members.
    pub(crate) fn is_consistent(&self) -> bool {
        let joins = self.members.values().filter(|member| member.has_joined()).count();
        let syncs = self.members.values().filter(|member| member.sync.is_some()).count();
        let statics = self.members.values().filter(|member| member.instance_id.is_some()).count();
        let preparing = matches!(self.phase, Phase::Preparing { .. });
        self.joins_waiting == joins
            && self.static_members.len() == statics
            && self.static_members.values().all(|id| self.members.contains_key(id))
            && self.pending_members.iter().all(|id| !self.members.contains_key(id))
            && self.pending_syncs.iter().all(|id| self.members.contains_key(id))
            && self.leader.as_ref().is_none_or(|id| self.members.contains_key(id))
            && (preparing || joins == 0)
            && (matches!(self.phase, Phase::Completing) || syncs == 0)
            && (preparing || matches!(self.phase, Phase::Empty) == self.members.is_empty())
    }

    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// As ListGroups and DescribeGroups show it.
    pub(crate) fn protocol_type(&self) -> &str {
        self.protocols.kind.as_deref().unwrap_or_default()
    }

    pub(crate) fn describe(&self) -> GroupDescription {
        let stable = matches!(self.phase, Phase::Stable);
        let chosen = self.protocols.chosen.as_deref().filter(|_| stable);
        let members = self.members.iter().map(|(id, member)| MemberDescription {
            member_id: id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: chosen.map(|name| member.metadata(name)).unwrap_or_default(),
            assignment: if stable { member.assignment.clone() } else { Default::default() },
        });
        GroupDescription {
            group_id: self.id.clone(),
            state: self.state(),
            generation: self.generation,
            protocol_type: self.protocol_type().to_owned(),
            protocol_name: chosen.unwrap_or_default().to_owned(),
            members: members.collect(),
        }
    }

    fn enter(&mut self, step: &Step<'_>, phase: Phase) {
        self.phase = phase;
        self.state_timestamp_ms = step.now_ms;
    }

    /// The longest rebalance timeout of all members.
    fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0)
    }

    /// Whether a member may offer these protocols: the type is the group's, and at least one of
    /// them is offered by all members.
    fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.members.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocols.kind.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| self.offered_by_all(&protocol.name))
    }

    fn offered_by_all(&self, name: &str) -> bool {
        self.protocols.offers.get(name) == Some(&self.members.len())
    }

    /// Each member votes for the first of its protocols that all members offer. Equal votes go to
    /// the name that sorts first.
    fn select_protocol(&self) -> Option<String> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut names = member.protocols.iter().map(|protocol| protocol.name.as_str());
            if let Some(name) = names.find(|name| self.offered_by_all(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.to_owned())
    }

    fn all_joined(&self) -> bool {
        self.joins_waiting == self.members.len() && self.pending_members.is_empty()
    }

    /// Asks all members to rejoin, or lets the join phase under way go on.
    fn rebalance(&mut self, step: &mut Step<'_>) {
        match self.phase {
            Phase::Preparing { .. } => self.complete_join_if_all_joined(step),
            Phase::Empty | Phase::Completing | Phase::Stable => self.prepare_rebalance(step),
        }
    }

    fn prepare_rebalance(&mut self, step: &mut Step<'_>) {
        if matches!(self.phase, Phase::Completing) {
            self.refuse_waiting_syncs(step, ErrorCode::RebalanceInProgress);
        }
        self.pending_syncs.clear();
        self.timers.cancel(&Timer::Sync);
        if matches!(self.phase, Phase::Empty) {
            let delay_ms = step.config.initial_rebalance_delay_ms.max(0);
            let remaining_ms = self.rebalance_timeout_ms().saturating_sub(delay_ms).max(0);
            let initial = InitialDelay { member_added: false, delay_ms, remaining_ms };
            self.timers.schedule(Timer::Join, step.after_ms(delay_ms));
            self.enter(step, Phase::Preparing { initial: Some(initial) });
            return;
        }
        self.enter(step, Phase::Preparing { initial: None });
        if self.all_joined() {
            self.complete_join(step);
        } else {
            self.timers.schedule(Timer::Join, step.after_ms(self.rebalance_timeout_ms()));
        }
    }

    /// The initial delay is waited for even if all members have joined.
    fn complete_join_if_all_joined(&mut self, step: &mut Step<'_>) {
        if matches!(self.phase, Phase::Preparing { initial: None }) && self.all_joined() {
            self.complete_join(step);
        }
    }

    fn join_timer_fired(&mut self, step: &mut Step<'_>) {
        let Phase::Preparing { initial } = &mut self.phase else { return };
        if let Some(wait) = initial
            && wait.member_added
            && wait.remaining_ms != 0
        {
            let delay_ms = step.config.initial_rebalance_delay_ms.max(0).min(wait.remaining_ms);
            wait.member_added = false;
            wait.remaining_ms = wait.remaining_ms.saturating_sub(wait.delay_ms).max(0);
            wait.delay_ms = delay_ms;
            self.timers.schedule(Timer::Join, step.after_ms(delay_ms));
            return;
        }
        self.complete_join(step);
    }

    /// Ends the join phase: dynamic members that did not rejoin are dropped and the next
    /// generation begins.
    fn complete_join(&mut self, step: &mut Step<'_>) {
        self.timers.cancel(&Timer::Join);
        let absent = self.members.iter().filter(|(_, member)| member.is_absent());
        for id in absent.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.remove_member(step, &id);
        }
        if !self.members.is_empty() && !self.elect_joined_leader() {
            // Only static members are left and none came back. Their sessions end the wait.
            let delay_ms = self.rebalance_timeout_ms().max(JOIN_RETRY_MS_MIN);
            self.timers.schedule(Timer::Join, step.after_ms(delay_ms));
            return;
        }
        self.generation = self.generation.checked_add(1).unwrap_or(0);
        self.pending_syncs.clear();
        if self.members.is_empty() {
            self.protocols.chosen = None;
            self.leader = None;
            self.enter(step, Phase::Empty);
            self.update_subscribed_topics();
            // Names that do not fit a record are found as before after a restart, and expire again.
            let _is_written = self.write(step);
        } else {
            self.begin_generation(step);
        }
    }

    fn begin_generation(&mut self, step: &mut Step<'_>) {
        self.protocols.chosen = self.select_protocol();
        self.enter(step, Phase::Completing);
        self.update_subscribed_topics();
        let leader = self.leader.clone().unwrap_or_default();
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in &ids {
            let with_members = *id == leader;
            let reply = self.joined(id, &leader, with_members, false);
            self.answer_join(step, id, reply);
            if let Some(member) = self.members.get_mut(id) {
                member.is_new = false;
                let deadline = step.after_ms(member.session_timeout_ms);
                self.timers.schedule(Timer::Member(id.clone()), deadline);
            }
        }
        self.pending_syncs.extend(ids);
        self.timers.schedule(Timer::Sync, step.after_ms(self.rebalance_timeout_ms()));
    }

    /// Keeps a leader that rejoined, or else makes the first member that rejoined the leader.
    fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &String| self.members.get(id).is_some_and(|member| member.has_joined());
        if self.leader.as_ref().is_some_and(joined) {
            return true;
        }
        let first = self.members.iter().find(|(_, member)| member.has_joined());
        match first.map(|(id, _)| id.clone()) {
            Some(id) => {
                self.leader = Some(id);
                true
            }
            None => false,
        }
    }

    /// Drops the members that did not fetch their assignment within the rebalance timeout.
    fn sync_timer_fired(&mut self, step: &mut Step<'_>) {
        if !matches!(self.phase, Phase::Completing | Phase::Stable) || self.pending_syncs.is_empty()
        {
            return;
        }
        for id in std::mem::take(&mut self.pending_syncs) {
            self.remove_member(step, &id);
        }
        self.prepare_rebalance(step);
    }
}
