//! Partitions of which background tasks take care, not handlers: who has them, and when they are
//! free to be given back to the group.
//!
//! The runtime offers a partition that the group assigned; one task takes it and holds it until it
//! is recalled and the task has stopped. Then the runtime gives it back, so no two members work on
//! it, unless a task takes longer than the drain timeout or the group has lost sight of the member.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use moldau_client::TopicPartition;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Claim {
    Offered,
    Held,
    /// Held, and to be given up.
    Recalled,
    /// Recalled, and assigned again since.
    OfferedAgain,
}

/// The partitions and who has them. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(watch::Sender<BTreeMap<TopicPartition, Claim>>);

impl Claims {
    /// The member has the partition.
    pub(crate) fn offer(&self, partition: TopicPartition) {
        self.0.send_modify(|claims| match claims.entry(partition) {
            Entry::Vacant(entry) => drop(entry.insert(Claim::Offered)),
            Entry::Occupied(mut entry) => {
                if *entry.get() == Claim::Recalled {
                    entry.insert(Claim::OfferedAgain);
                }
            }
        });
    }

    /// The member has to give partitions back, or has lost them.
    pub(crate) fn recall(&self, partitions: &[TopicPartition]) {
        self.0.send_modify(|claims| {
            for partition in partitions {
                match claims.get_mut(partition) {
                    Some(Claim::Offered) => drop(claims.remove(partition)),
                    Some(claim) => *claim = Claim::Recalled,
                    None => {}
                }
            }
        });
    }

    /// Whether no task holds any of them.
    pub(crate) fn are_free(&self, partitions: &[TopicPartition]) -> bool {
        let claims = self.0.borrow();
        !partitions.iter().any(|partition| claims.contains_key(partition))
    }

    /// Tells of every change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }

    /// Waits for a partition of `topic`, and takes it.
    pub(crate) async fn take(&self, topic: &str) -> Hold {
        let mut changes = self.0.subscribe();
        loop {
            let mut taken = None;
            self.0.send_if_modified(|claims| {
                let mut offered = claims.iter_mut().filter(|(_, it)| **it == Claim::Offered);
                if let Some((partition, claim)) = offered.find(|(it, _)| &*it.topic == topic) {
                    *claim = Claim::Held;
                    taken = Some(partition.clone());
                }
                taken.is_some()
            });
            if let Some(partition) = taken {
                return Hold { claims: self.clone(), partition };
            }
            // The sender lives as long as these claims.
            drop(changes.changed().await);
        }
    }
}

/// A partition that a task takes care of, until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    claims: Claims,
    pub(crate) partition: TopicPartition,
}

impl Hold {
    /// Waits until the task has to give it up.
    pub(crate) async fn recalled(&self) {
        let is_recalled =
            |claims: &BTreeMap<_, _>| claims.get(&self.partition) != Some(&Claim::Held);
        // The sender lives as long as the claims.
        drop(self.claims.0.subscribe().wait_for(is_recalled).await);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.claims.0.send_modify(|claims| match claims.get_mut(&self.partition) {
            Some(claim @ Claim::OfferedAgain) => *claim = Claim::Offered,
            _ => drop(claims.remove(&self.partition)),
        });
    }
}

#[cfg(test)]
mod tests;
