//! One share group (KIP-932): its members, its epochs, its target assignment.
//!
//! Members share partitions, so nothing has to be given up before another may have it: a member
//! takes over its part of the target with its next heartbeat.
//!
//! | epoch | grows when |
//! |---|---|
//! | of the group | a member comes, goes or subscribes to something else; its topics change |
//! | of the target | a target assignment is computed for the epoch of the group |
//! | of a member | the member takes over its part of the target |

mod heartbeat;
mod stored;

use std::collections::BTreeMap;

use crate::consumer_member::Partitions;
use crate::record::GroupRecord;
use crate::reply::{GroupState, ShareGroupDescription};
use crate::share_assignor;
use crate::share_record::{ShareChange, ShareMember};
use crate::step::Step;
use crate::timers::{Timer, Timers};

/// Epoch that a member sends with its first heartbeat.
pub(crate) const JOIN_EPOCH: i32 = 0;
/// Epoch of a member that leaves.
pub(crate) const LEAVE_EPOCH: i32 = -1;
/// Epoch of a group before its first member, as in Kafka.
const INITIAL_EPOCH: i32 = 1;

/// A share group. It lives until an administrator deletes it.
#[derive(Debug)]
pub(crate) struct ShareGroup {
    id: String,
    epoch: i32,
    target_epoch: i32,
    /// When the target was computed; 0 where the next one need not wait.
    target_timestamp_ms: i64,
    target: BTreeMap<String, Partitions>,
    members: BTreeMap<String, ShareMember>,
    /// Of the subscribed topics as the epoch of the group knows them; 0 where it knows none.
    metadata_hash: i64,
    /// The version of the topics that were looked at; none after a start.
    seen_version: Option<u64>,
    timers: Timers,
    /// Whether the journal has heard of the group.
    is_written: bool,
}

impl ShareGroup {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            epoch: INITIAL_EPOCH,
            target_epoch: 0,
            target_timestamp_ms: 0,
            target: BTreeMap::new(),
            members: BTreeMap::new(),
            metadata_hash: 0,
            seen_version: None,
            timers: Timers::default(),
            is_written: false,
        }
    }

    /// A group that the journal knows before it has members, and the record of it.
    pub(crate) fn created(id: String) -> (Self, GroupRecord) {
        // Nobody has to get anything: the target is that of the epoch.
        let new = Self::new(id);
        let group = Self { is_written: true, target_epoch: new.epoch, ..new };
        let record = GroupRecord::ShareChanged(group.head());
        (group, record)
    }

    pub(crate) fn state(&self) -> GroupState {
        if self.members.is_empty() { GroupState::Empty } else { GroupState::Stable }
    }

    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        self.timers.earliest()
    }

    /// Whether nothing would be lost without the group.
    pub(crate) fn is_blank(&self) -> bool {
        !self.is_written && self.members.is_empty()
    }

    /// Whether what is kept beside the members agrees with them.
    pub(crate) fn is_consistent(&self) -> bool {
        self.target.keys().all(|id| self.members.contains_key(id))
            && self.target_epoch <= self.epoch
            && self.members.values().all(|member| member.epoch <= self.target_epoch)
    }

    /// The topics that its members subscribe to.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &str> {
        self.members.values().flat_map(|member| &member.topics).map(String::as_str)
    }

    /// As ShareGroupDescribe shows it.
    pub(crate) fn describe(&self) -> ShareGroupDescription {
        ShareGroupDescription {
            group_id: self.id.clone(),
            state: self.state(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            assignor: share_assignor::NAME,
            members: self.members.values().cloned().collect(),
        }
    }

    fn extend_session(&mut self, step: &Step<'_>, id: &str) {
        let timeout_ms = step.share_settings(&self.id).session_timeout_ms;
        self.timers.schedule(Timer::Member(id.to_owned()), step.after_ms(timeout_ms));
    }

    /// Acts on every deadline that has come.
    pub(crate) fn expire(&mut self, step: &mut Step<'_>) {
        let mut gone = Vec::new();
        while let Some(timer) = self.timers.pop_due(step.now_ms) {
            match timer {
                Timer::Member(id) => gone.push(id),
                Timer::Join
                | Timer::Sync
                | Timer::Revocation(_)
                | Timer::Rejoin(_)
                | Timer::FetchAssignment(_) => {}
            }
        }
        self.put_out(step, gone);
    }

    /// Takes members out. The target is computed anew with the next heartbeat of another.
    fn put_out(&mut self, step: &mut Step<'_>, ids: Vec<String>) {
        let gone: Vec<String> = ids.into_iter().filter(|id| self.take_member(id)).collect();
        if gone.is_empty() {
            return;
        }
        self.epoch = self.epoch.saturating_add(1);
        self.metadata_hash = 0;
        if self.members.is_empty() {
            self.target_epoch = self.epoch;
            self.target_timestamp_ms = 0;
        }
        self.write(step, ShareChange { removed: gone, ..self.head() });
    }

    /// Takes a member out, with its part of the target and its timer.
    fn take_member(&mut self, id: &str) -> bool {
        self.target.remove(id);
        self.timers.cancel(&Timer::Member(id.to_owned()));
        self.members.remove(id).is_some()
    }
}
