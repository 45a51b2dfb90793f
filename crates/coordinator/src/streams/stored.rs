//! From a streams group to its records, and back.

use std::collections::BTreeSet;

use super::StreamsGroup;
use crate::consumer_member::MemberState;
use crate::record::GroupRecord;
use crate::step::Step;
use crate::streams_record::StreamsChange;
use crate::timers::Timer;

impl StreamsGroup {
    /// A change of nothing but the epochs.
    pub(super) fn head(&self) -> StreamsChange {
        StreamsChange {
            group_id: self.id.clone(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            target_timestamp_ms: self.target_timestamp_ms,
            metadata_hash: self.metadata_hash,
            validated_epoch: self.validated_epoch,
            assignment: self.assignment.clone(),
            topology: None,
            removed: Vec::new(),
            members: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Records a change of the group: its head, and the targets of the members `targets`.
    pub(super) fn write(
        &mut self,
        step: &mut Step<'_>,
        change: StreamsChange,
        targets: BTreeSet<String>,
    ) {
        self.is_written = true;
        let targets = targets.into_iter().map(|id| {
            let target = self.target.get(&id).cloned().unwrap_or_default();
            (id, target)
        });
        let change = StreamsChange { targets: targets.collect(), ..change };
        step.record(GroupRecord::StreamsChanged(Box::new(change)));
    }

    /// Takes over a stored change.
    pub(crate) fn replay(&mut self, change: StreamsChange) {
        self.is_written = true;
        self.epoch = change.epoch;
        self.target_epoch = change.target_epoch;
        self.target_timestamp_ms = change.target_timestamp_ms;
        self.metadata_hash = change.metadata_hash;
        self.validated_epoch = change.validated_epoch;
        self.assignment = change.assignment;
        if change.topology.is_some() {
            self.topology = change.topology;
        }
        for id in &change.removed {
            self.take_member(id);
        }
        for member in change.members {
            self.put_member(member);
        }
        self.target.extend(change.targets);
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
        let head = StreamsChange { topology: self.topology.clone(), ..self.head() };
        let head = self.is_written.then_some(head);
        let members = self.members.values().map(|member| {
            let target = self.target.get(&member.member_id);
            let targets = target.map(|target| (member.member_id.clone(), target.clone()));
            StreamsChange {
                members: vec![member.clone()],
                targets: targets.into_iter().collect(),
                ..self.head()
            }
        });
        let offsets = self.offsets.snapshot().map(|topic| GroupRecord::OffsetsCommitted {
            group_id: self.id.clone(),
            topics: vec![topic],
        });
        let changes = head.into_iter().chain(members).map(Box::new);
        changes.map(GroupRecord::StreamsChanged).chain(offsets)
    }
}
