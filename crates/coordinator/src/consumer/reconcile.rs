//! How a member comes from what it holds to what the target gives it: first it gives up, then it
//! gets what others have given up. After `CurrentAssignmentBuilder` of Kafka 4.4.

use std::collections::BTreeSet;

use moldau_protocol::Uuid;

use super::{ConsumerMember, MemberState, OwnedPartitions, Partitions};

/// What the next state of a member depends on.
pub(super) struct Reconciliation<'a> {
    pub(super) target_epoch: i32,
    pub(super) target: &'a Partitions,
    /// Topics that the member subscribes to; others are taken from it at once.
    pub(super) subscribed: &'a BTreeSet<Uuid>,
    pub(super) subscription_changed: bool,
    /// What the member says it holds; none where it says nothing.
    pub(super) owned: Option<&'a Partitions>,
    /// Whether another member holds the partition.
    pub(super) is_held: &'a dyn Fn(Uuid, i32) -> bool,
}

impl Reconciliation<'_> {
    pub(super) fn next(&self, member: &ConsumerMember) -> ConsumerMember {
        match member.state {
            MemberState::Stable if member.epoch == self.target_epoch => self.narrowed(member),
            MemberState::UnrevokedPartitions if self.owns_any(&member.revoking) => {
                self.narrowed(member)
            }
            MemberState::Stable
            | MemberState::UnrevokedPartitions
            | MemberState::UnreleasedPartitions => self.advanced(member),
        }
    }

    /// Takes from the member what it no longer subscribes to.
    fn narrowed(&self, member: &ConsumerMember) -> ConsumerMember {
        let mut next = member.clone();
        if !self.subscription_changed {
            return next;
        }
        let dropped: OwnedPartitions =
            next.assigned.extract_if(.., |topic, _| !self.subscribed.contains(topic)).collect();
        if dropped.is_empty() {
            return next;
        }
        next.previous_epoch = next.epoch;
        let mut revoking = next.revoking.clone();
        for (topic, partitions) in dropped {
            revoking.entry(topic).or_default().extend(partitions);
        }
        if self.owns_any(&revoking) {
            next.state = MemberState::UnrevokedPartitions;
            next.revoking = revoking;
        }
        next
    }

    fn advanced(&self, member: &ConsumerMember) -> ConsumerMember {
        let mut next = member.clone();
        let (mut kept, mut revoking) = (OwnedPartitions::new(), OwnedPartitions::new());
        for (topic, partitions) in &member.assigned {
            let target = self.wanted(topic);
            for (index, epoch) in partitions {
                let goes_on = target.is_some_and(|target| target.contains(index));
                let place = if goes_on { &mut kept } else { &mut revoking };
                place.entry(*topic).or_default().insert(*index, *epoch);
            }
        }
        next.previous_epoch = member.epoch;
        if !revoking.is_empty() && self.owns_any(&revoking) {
            next.state = MemberState::UnrevokedPartitions;
            (next.assigned, next.revoking) = (kept, revoking);
            return next;
        }
        let mut waits = false;
        for topic in self.target.keys() {
            for index in self.wanted(topic).into_iter().flatten() {
                if kept.get(topic).is_some_and(|held| held.contains_key(index)) {
                    continue;
                }
                if (self.is_held)(*topic, *index) {
                    waits = true;
                } else {
                    kept.entry(*topic).or_default().insert(*index, self.target_epoch);
                }
            }
        }
        next.state = if waits { MemberState::UnreleasedPartitions } else { MemberState::Stable };
        next.epoch = self.target_epoch;
        (next.assigned, next.revoking) = (kept, OwnedPartitions::new());
        next
    }

    /// What the target gives of a topic, if the member still subscribes to it.
    fn wanted(&self, topic: &Uuid) -> Option<&BTreeSet<i32>> {
        self.target.get(topic).filter(|_| self.subscribed.contains(topic))
    }

    /// Whether the member may still read any of these; one that says nothing may.
    fn owns_any(&self, partitions: &OwnedPartitions) -> bool {
        let Some(owned) = self.owned else { return true };
        owned.iter().any(|(topic, indexes)| {
            let held = partitions.get(topic);
            held.is_some_and(|held| indexes.iter().any(|index| held.contains_key(index)))
        })
    }
}
