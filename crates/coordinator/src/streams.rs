//! One streams group (KIP-1071): its topology, its members, its epochs, its target assignment.
//!
//! | epoch | grows when |
//! |---|---|
//! | of the group | a member comes, goes or says something else of itself; its topics change |
//! | of the target | a target assignment is computed for the epoch of the group |
//! | of a member | the member has given up all that the target takes from it |
//! | of the endpoints | a member with an endpoint gets other tasks or another endpoint |
//!
//! A member gets an active task once no other member has it. A process never has the active task
//! and a copy of its state at once, nor two copies, but while one turns into the other.

mod commits;
mod configured;
mod endpoints;
mod heartbeat;
mod holders;
mod leaving;
mod reconcile;
mod stored;

use std::collections::BTreeMap;

use moldau_protocol::ErrorCode;

use crate::offsets::Offsets;
use crate::reply::{GroupState, StreamsGroupDescription, StreamsMemberDescription};
use crate::step::Step;
use crate::streams_assignor;
use crate::streams_record::{AssignmentConfigs, StreamsMember, StreamsTasks};
use crate::streams_topology::StreamsTopology;
use crate::timers::{Timer, Timers};

use configured::Configured;
use holders::Holders;

/// Epoch that a member sends with its first heartbeat.
pub(crate) const JOIN_EPOCH: i32 = 0;
/// Epoch of a member that leaves.
pub(crate) const LEAVE_EPOCH: i32 = -1;
/// Epoch of a static member that leaves and will come back.
pub(crate) const STATIC_LEAVE_EPOCH: i32 = -2;
/// Epoch of a group and of its target before its first member, as in Kafka.
const INITIAL_EPOCH: i32 = 1;
/// The epoch of no topology.
const NO_TOPOLOGY: i32 = -1;

/// Sums of offsets by subtopology and partition.
type OffsetSums = BTreeMap<String, BTreeMap<i32, i64>>;

/// A streams group.
#[derive(Debug)]
pub(crate) struct StreamsGroup {
    id: String,
    epoch: i32,
    target_epoch: i32,
    /// When the target was computed; 0 where the next one need not wait.
    target_timestamp_ms: i64,
    target: BTreeMap<String, StreamsTasks>,
    members: BTreeMap<String, StreamsMember>,
    /// Member id of each static member.
    static_members: BTreeMap<String, String>,
    /// Who has which tasks.
    holders: Holders,
    topology: Option<StreamsTopology>,
    /// The topology with the topics that exist; none after a start.
    configured: Option<Configured>,
    /// Epoch of the topology whose topics all exist; -1 where some do not.
    validated_epoch: i32,
    /// What the epoch of the group was made with.
    assignment: AssignmentConfigs,
    /// Of the topics as the epoch of the group knows them; 0 where it knows none.
    metadata_hash: i64,
    /// The version of the topics that were looked at; none after a start.
    seen_version: Option<u64>,
    /// What members say of their copies of states. Not stored: they say it again.
    task_offsets: BTreeMap<String, TaskOffsets>,
    /// The member that asked for the end of the application.
    shutdown_by: Option<String>,
    endpoint_epoch: i32,
    pub(crate) offsets: Offsets,
    timers: Timers,
    /// Whether the journal has heard of the group.
    is_written: bool,
}

/// How far the copies of states of a member are, and how far they have to come.
#[derive(Clone, Debug, Default)]
struct TaskOffsets {
    current: OffsetSums,
    end: OffsetSums,
}

impl StreamsGroup {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            epoch: INITIAL_EPOCH,
            target_epoch: INITIAL_EPOCH,
            target_timestamp_ms: 0,
            target: BTreeMap::new(),
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            holders: Holders::default(),
            topology: None,
            configured: None,
            validated_epoch: NO_TOPOLOGY,
            assignment: AssignmentConfigs::NONE,
            metadata_hash: 0,
            seen_version: None,
            task_offsets: BTreeMap::new(),
            shutdown_by: None,
            endpoint_epoch: 0,
            offsets: Offsets::default(),
            timers: Timers::default(),
            is_written: false,
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        let topology_epoch = self.topology.as_ref().map(|topology| topology.epoch);
        if self.members.is_empty() {
            GroupState::Empty
        } else if topology_epoch != Some(self.validated_epoch) {
            GroupState::NotReady
        } else if self.epoch > self.target_epoch {
            GroupState::Assigning
        } else if self.members.values().all(|member| member.is_at(self.target_epoch)) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
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
        let is_member = |id: &String| self.members.contains_key(id);
        self.static_members.len() == statics
            && self.static_members.values().all(is_member)
            && self.target.keys().all(is_member)
            && self.task_offsets.keys().all(is_member)
            && self.holders == Holders::of(self.members.values())
            && self.target_epoch <= self.epoch
            && self.members.values().all(|member| member.epoch <= self.target_epoch)
    }

    /// As StreamsGroupDescribe shows it.
    pub(crate) fn describe(&self) -> StreamsGroupDescription {
        let members = self.members.values().map(|member| {
            let offsets = self.task_offsets.get(&member.member_id).cloned().unwrap_or_default();
            StreamsMemberDescription {
                target: self.target.get(&member.member_id).cloned().unwrap_or_default(),
                task_offsets: offsets.current,
                task_end_offsets: offsets.end,
                member: member.clone(),
            }
        });
        let topology = self.topology.clone().unwrap_or_default();
        StreamsGroupDescription {
            group_id: self.id.clone(),
            state: self.state(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            assignor: streams_assignor::NAME,
            topology: match self.configured.as_ref().filter(|configured| configured.is_ready()) {
                Some(configured) => configured.described(topology),
                None => topology,
            },
            members: members.collect(),
        }
    }

    /// Makes `member` the state of its member, and the holder of its tasks.
    fn put_member(&mut self, member: StreamsMember) {
        let id = member.member_id.clone();
        if let Some(before) = self.members.remove(&id) {
            self.forget(&before);
        }
        self.holders.add(&member);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), id.clone());
        }
        self.members.insert(id, member);
    }

    /// Takes a member out, with its part of the target and its timers.
    fn take_member(&mut self, id: &str) -> Option<StreamsMember> {
        let member = self.members.remove(id)?;
        self.forget(&member);
        self.target.remove(id);
        self.task_offsets.remove(id);
        self.timers.cancel(&Timer::Member(id.to_owned()));
        self.timers.cancel(&Timer::Revocation(id.to_owned()));
        Some(member)
    }

    fn forget(&mut self, member: &StreamsMember) {
        self.holders.remove(member);
        if let Some(instance_id) = &member.instance_id
            && self.static_members.get(instance_id) == Some(&member.member_id)
        {
            self.static_members.remove(instance_id);
        }
    }

    fn extend_session(&mut self, step: &Step<'_>, id: &str) {
        let timeout_ms = step.streams_settings(&self.id).session_timeout_ms;
        self.timers.schedule(Timer::Member(id.to_owned()), step.after_ms(timeout_ms));
    }

    /// The member that a request names, checked as Kafka does it.
    fn static_member(&self, id: &str, instance_id: &str) -> Result<&StreamsMember, ErrorCode> {
        let current = self.static_members.get(instance_id).and_then(|id| self.members.get(id));
        match current {
            None => Err(ErrorCode::UnknownMemberId),
            Some(member) if member.member_id != id => Err(ErrorCode::FencedInstanceId),
            Some(member) => Ok(member),
        }
    }
}
