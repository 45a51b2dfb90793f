//! From a group to its records, and back.

use super::{ConsumerChange, ConsumerGroup, MemberState};
use crate::record::GroupRecord;
use crate::step::Step;
use crate::timers::Timer;

impl ConsumerGroup {
    /// A change of nothing but the epochs.
    pub(super) fn head(&self) -> ConsumerChange {
        ConsumerChange {
            group_id: self.id.clone(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            target_timestamp_ms: self.target_timestamp_ms,
            metadata_hash: self.metadata_hash,
            removed: Vec::new(),
            members: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Takes over a stored change.
    pub(crate) fn replay(&mut self, change: ConsumerChange) {
        self.is_written = true;
        self.epoch = change.epoch;
        self.target_epoch = change.target_epoch;
        self.target_timestamp_ms = change.target_timestamp_ms;
        self.metadata_hash = change.metadata_hash;
        for id in &change.removed {
            self.take_member(id);
        }
        for member in change.members {
            self.put_member(member);
        }
        for (id, target) in change.targets {
            self.target.insert(id, target);
        }
    }

    /// Starts the sessions of restored members, who had no chance to send heartbeats.
    pub(crate) fn recover(&mut self, step: &mut Step<'_>) {
        let members = self.members.values();
        let members = members.map(|it| (it.member_id.clone(), it.state, it.rebalance_timeout_ms));
        for (id, state, rebalance_timeout_ms) in members.collect::<Vec<_>>() {
            self.extend_session(step, &id);
            if state == MemberState::UnrevokedPartitions {
                let at_ms = step.after_ms(rebalance_timeout_ms);
                self.timers.schedule(Timer::Revocation(id), at_ms);
            }
        }
    }

    /// Records that restore what is written of this group: one for each member, so that none
    /// grows with the group.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = GroupRecord> + '_ {
        let head = self.is_written.then(|| self.head());
        let members = self.members.values().map(|member| {
            let target = self.target.get(&member.member_id);
            ConsumerChange {
                members: vec![member.clone()],
                targets: target
                    .map(|it| (member.member_id.clone(), it.clone()))
                    .into_iter()
                    .collect(),
                ..self.head()
            }
        });
        let offsets = self.offsets.snapshot().map(|topic| GroupRecord::OffsetsCommitted {
            group_id: self.id.clone(),
            topics: vec![topic],
        });
        head.into_iter().chain(members).map(GroupRecord::ConsumerChanged).chain(offsets)
    }
}
