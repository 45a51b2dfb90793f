//! The partitions that a member holds, and what its owner is still to be told of them: no I/O.

use std::collections::{BTreeSet, VecDeque};

use crate::offsets::TopicPartition;

/// A change of what a member holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MembershipEvent {
    /// The member holds these beside what it had. They are read from the committed offsets on.
    Assigned(Vec<TopicPartition>),
    /// The group wants these back. The member holds them, and may commit, until
    /// [`Membership::revoked`](crate::Membership::revoked) confirms it.
    Revoked(Vec<TopicPartition>),
    /// The group went on without the member. Others may read these; a commit would be refused. The
    /// member joins again by itself.
    Lost(Vec<TopicPartition>),
}

/// What a member holds.
///
/// The queue of events has a limit: between two losses a partition is in it at most once as
/// assigned and once as revoked, and a loss drops what was not taken.
#[derive(Debug, Default)]
pub(super) struct Holding {
    held: BTreeSet<TopicPartition>,
    /// Those of `held` that are to be given up.
    revoking: BTreeSet<TopicPartition>,
    events: VecDeque<MembershipEvent>,
    /// Number of losses; tells offsets of different terms apart.
    losses: u64,
}

impl Holding {
    pub(super) fn held(&self) -> &BTreeSet<TopicPartition> {
        &self.held
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// True if partitions are to be given up and that was not confirmed.
    pub(super) fn is_revoking(&self) -> bool {
        !self.revoking.is_empty()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn next_event(&mut self) -> Option<MembershipEvent> {
        self.events.pop_front()
    }

    /// Holds `partitions` as well; those that it holds already are left out.
    pub(super) fn assign(&mut self, partitions: impl IntoIterator<Item = TopicPartition>) {
        let added = partitions.into_iter().filter(|partition| self.held.insert(partition.clone()));
        let added: Vec<_> = added.collect();
        if !added.is_empty() {
            self.events.push_back(MembershipEvent::Assigned(added));
        }
    }

    /// Asks for `partitions` back, those that it holds and that were not asked for yet.
    pub(super) fn revoke(&mut self, partitions: impl IntoIterator<Item = TopicPartition>) {
        let asked = partitions.into_iter().filter(|partition| {
            self.held.contains(partition) && self.revoking.insert(partition.clone())
        });
        let asked: Vec<_> = asked.collect();
        if !asked.is_empty() {
            self.events.push_back(MembershipEvent::Revoked(asked));
        }
    }

    /// The owner gives up `partitions` that it was asked for, after this number of losses. What
    /// it was told before a later loss counts no more.
    pub(super) fn give_up(&mut self, losses: u64, partitions: &[TopicPartition]) {
        if losses != self.losses {
            return;
        }
        for partition in partitions {
            if self.revoking.remove(partition) {
                self.held.remove(partition);
            }
        }
    }

    /// Loses everything.
    pub(super) fn lose(&mut self) {
        self.losses += 1;
        self.revoking.clear();
        let mut told = std::mem::take(&mut self.held);
        for event in std::mem::take(&mut self.events) {
            match event {
                MembershipEvent::Assigned(partitions) => {
                    for partition in &partitions {
                        told.remove(partition);
                    }
                }
                MembershipEvent::Revoked(_) => {}
                lost @ MembershipEvent::Lost(_) => self.events.push_back(lost),
            }
        }
        if !told.is_empty() {
            self.events.push_back(MembershipEvent::Lost(told.into_iter().collect()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(numbers: &[i32]) -> Vec<TopicPartition> {
        numbers.iter().map(|number| TopicPartition::of("t", *number)).collect()
    }

    #[test]
    fn partitions_are_held_until_their_revocation_is_confirmed() {
        let mut holding = Holding::default();
        holding.assign(partitions(&[0, 1]));
        holding.revoke(partitions(&[1, 2]));
        holding.revoke(partitions(&[1]));
        assert_eq!(holding.next_event(), Some(MembershipEvent::Assigned(partitions(&[0, 1]))));
        assert_eq!(holding.next_event(), Some(MembershipEvent::Revoked(partitions(&[1]))));
        assert_eq!(holding.next_event(), None);
        assert!(holding.is_revoking() && holding.held().len() == 2);
        // 0 was not asked for.
        holding.give_up(0, &partitions(&[0, 1]));
        assert!(!holding.is_revoking());
        assert!(holding.held().iter().eq(&partitions(&[0])));
    }

    #[test]
    fn loss_names_what_the_owner_was_told_of_and_ends_older_confirmations() {
        let mut holding = Holding::default();
        holding.assign(partitions(&[0]));
        holding.next_event();
        holding.assign(partitions(&[1]));
        holding.revoke(partitions(&[0]));
        holding.lose();
        holding.assign(partitions(&[2]));
        holding.lose();
        assert_eq!(holding.next_event(), Some(MembershipEvent::Lost(partitions(&[0]))));
        assert_eq!(holding.next_event(), None);
        holding.assign(partitions(&[0]));
        holding.revoke(partitions(&[0]));
        holding.give_up(0, &partitions(&[0]));
        assert!(holding.is_revoking());
    }
}
