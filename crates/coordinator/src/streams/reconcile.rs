//! How a member comes from the tasks that it has to those of the target: first it gives up, then it
//! gets what others have given up. After `CurrentAssignmentBuilder` of Kafka 4.4.
//!
//! A task that changes its role in one member stays there: the copy of the state becomes the
//! active task once that is free, and the active task becomes a copy at once.

use super::holders::Holders;
use crate::consumer_member::MemberState;
use crate::streams_record::{MemberTasks, OwnedTasks, StreamsMember, StreamsTasks, TaskIds};

/// What the next state of a member depends on.
pub(super) struct Reconciliation<'a> {
    pub(super) target_epoch: i32,
    pub(super) target: &'a StreamsTasks,
    /// What the member says it has; none where it says nothing.
    pub(super) owned: Option<&'a StreamsTasks>,
    pub(super) holders: &'a Holders,
}

/// What the target changes for a member.
#[derive(Default)]
struct Changes {
    kept: MemberTasks,
    lost: MemberTasks,
    /// Tasks that are free for the member.
    gained: StreamsTasks,
    /// Whether others still have tasks that the member is to get.
    waits: bool,
}

impl Reconciliation<'_> {
    pub(super) fn next(&self, member: &StreamsMember) -> StreamsMember {
        match member.state {
            MemberState::Stable if member.epoch == self.target_epoch => member.clone(),
            MemberState::UnrevokedPartitions if self.owns_any(&member.revoking) => member.clone(),
            MemberState::UnrevokedPartitions => self.advanced(member, member.epoch + 1),
            MemberState::Stable | MemberState::UnreleasedPartitions => {
                self.advanced(member, member.epoch)
            }
        }
    }

    /// `epoch` is that of the member if it has to give up something more.
    fn advanced(&self, member: &StreamsMember, epoch: i32) -> StreamsMember {
        let mut changes = Changes::default();
        self.compare_active(member, &mut changes);
        self.compare_standby(member, &mut changes);
        let has_to_give_up = !changes.lost.is_empty() && self.owns_any(&changes.lost);
        self.keep_copies(member, &mut changes, has_to_give_up);
        let mut next = member.clone();
        next.previous_epoch = member.epoch;
        if has_to_give_up {
            next.epoch = epoch;
            next.state = MemberState::UnrevokedPartitions;
            (next.assigned, next.revoking) = (changes.kept, changes.lost);
            return next;
        }
        next.epoch = self.target_epoch;
        next.state = match changes.waits {
            true => MemberState::UnreleasedPartitions,
            false => MemberState::Stable,
        };
        for (id, partitions) in changes.gained.active {
            let gained = partitions.into_iter().map(|partition| (partition, self.target_epoch));
            changes.kept.active.entry(id).or_default().extend(gained);
        }
        for (id, partitions) in changes.gained.standby {
            changes.kept.standby.entry(id).or_default().extend(partitions);
        }
        (next.assigned, next.revoking) = (changes.kept, MemberTasks::default());
        next
    }

    fn compare_active(&self, member: &StreamsMember, changes: &mut Changes) {
        let (process, current) = (member.process_id.as_str(), &member.assigned);
        for (id, partitions) in &current.active {
            for (partition, epoch) in partitions {
                let goes_on = has(&self.target.active, id, *partition);
                let place = if goes_on { &mut changes.kept } else { &mut changes.lost };
                place.active.entry(id.clone()).or_default().insert(*partition, *epoch);
            }
        }
        for (id, partition) in each(&self.target.active) {
            if has_owned(&current.active, id, partition) {
                continue;
            }
            let is_copied = self.holders.is_standby_on(process, id, partition)
                && !has(&current.standby, id, partition);
            if self.holders.is_active(id, partition) || is_copied {
                changes.waits = true;
            } else {
                changes.gained.active.entry(id.to_owned()).or_default().insert(partition);
            }
        }
    }

    fn compare_standby(&self, member: &StreamsMember, changes: &mut Changes) {
        let (process, current) = (member.process_id.as_str(), &member.assigned);
        for (id, partition) in each(&current.standby) {
            // What becomes an active task is not given up.
            if has(&self.target.standby, id, partition) {
                changes.kept.standby.entry(id.to_owned()).or_default().insert(partition);
            } else if !has(&self.target.active, id, partition) {
                changes.lost.standby.entry(id.to_owned()).or_default().insert(partition);
            }
        }
        for (id, partition) in each(&self.target.standby) {
            if has(&current.standby, id, partition) {
                continue;
            }
            let is_own = has_owned(&current.active, id, partition);
            let is_active = self.holders.is_active_on(process, id, partition) && !is_own;
            if is_active || self.holders.is_standby_on(process, id, partition) {
                changes.waits = true;
            } else {
                let place =
                    if is_own { &mut changes.kept.standby } else { &mut changes.gained.standby };
                place.entry(id.to_owned()).or_default().insert(partition);
            }
        }
    }

    /// A copy that is to become an active task stays until it does.
    fn keep_copies(&self, member: &StreamsMember, changes: &mut Changes, has_to_give_up: bool) {
        for (id, partition) in each(&member.assigned.standby) {
            let becomes_active = has(&self.target.active, id, partition);
            let is_free = !has_to_give_up && has(&changes.gained.active, id, partition);
            if becomes_active && !is_free {
                changes.kept.standby.entry(id.to_owned()).or_default().insert(partition);
            }
        }
    }

    /// Whether the member may still run any of these; one that says nothing may.
    fn owns_any(&self, tasks: &MemberTasks) -> bool {
        let Some(owned) = self.owned else { return true };
        each(&owned.active).any(|(id, partition)| has_owned(&tasks.active, id, partition))
            || each(&owned.standby).any(|(id, partition)| has(&tasks.standby, id, partition))
    }
}

pub(super) fn each(tasks: &TaskIds) -> impl Iterator<Item = (&str, i32)> {
    let tasks = tasks.iter();
    tasks.flat_map(|(id, partitions)| partitions.iter().map(|it| (id.as_str(), *it)))
}

pub(super) fn has(tasks: &TaskIds, id: &str, partition: i32) -> bool {
    tasks.get(id).is_some_and(|partitions| partitions.contains(&partition))
}

pub(super) fn has_owned(tasks: &OwnedTasks, id: &str, partition: i32) -> bool {
    tasks.get(id).is_some_and(|partitions| partitions.contains_key(&partition))
}
