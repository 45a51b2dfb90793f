//! Partitions that are given back: handlers finish their current record, then what is done is
//! committed, then the group gets them.

use std::time::Duration;

use moldau_client::TopicPartition;

use super::{Runtime, Stage};
use crate::member::Command;
use crate::scheduler::PartitionId;

/// Why partitions are drained.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// The group wants them.
    Revocation,
    /// The app ends.
    Shutdown,
}

/// Partitions that are given back together.
#[derive(Debug)]
pub(super) struct Drain {
    ids: Vec<PartitionId>,
    partitions: Vec<TopicPartition>,
    purpose: Purpose,
    /// When handlers that still run are cancelled.
    pub(super) deadline: Duration,
}

impl Drain {
    pub(super) fn covers(&self, id: PartitionId) -> bool {
        self.ids.contains(&id)
    }

    /// Whether the partition is given back with it.
    pub(super) fn holds(&self, partition: &TopicPartition) -> bool {
        self.purpose == Purpose::Shutdown || self.partitions.contains(partition)
    }
}

impl Runtime {
    pub(super) fn start_drain(&mut self, partitions: Vec<TopicPartition>, purpose: Purpose) {
        let ids: Vec<_> =
            partitions.iter().filter_map(|name| self.by_name.get(name).copied()).collect();
        for id in &ids {
            self.scheduler.drain(*id);
            if let Some(reading) = self.readings.get(id) {
                self.fetcher.unassign(&reading.name);
            }
        }
        self.recall(&partitions);
        let deadline = self.services.clock.now().saturating_add(self.services.drain_timeout);
        self.drains.push(Drain { ids, partitions, purpose, deadline });
    }

    /// Asks background tasks for partitions that they were offered.
    pub(super) fn recall(&mut self, partitions: &[TopicPartition]) {
        self.offered.retain(|offered| !partitions.contains(offered));
        self.services.claims.recall(partitions);
    }

    pub(super) fn shut_down(&mut self) {
        self.stage = Stage::Draining;
        let partitions = self.by_name.keys().chain(&self.offered).cloned().collect();
        self.start_drain(partitions, Purpose::Shutdown);
    }

    /// Others have partitions that were lost: nobody waits for them.
    pub(super) fn end_lost_drains(&mut self, lost: &[TopicPartition]) {
        for drain in &mut self.drains {
            drain.partitions.retain(|partition| !lost.contains(partition));
        }
        self.drains.retain(|it| it.purpose == Purpose::Shutdown || !it.partitions.is_empty());
    }

    /// Gives back what is drained, or is not drained in time.
    pub(super) async fn end_drains(&mut self) {
        if self.drains.is_empty() {
            return;
        }
        let now = self.services.clock.now();
        let (scheduler, claims) = (&self.scheduler, &self.services.claims);
        let ended: Vec<Drain> = self
            .drains
            .extract_if(.., |drain| {
                let is_idle = drain.ids.iter().all(|id| scheduler.is_idle(*id));
                drain.deadline <= now || (is_idle && claims.are_free(&drain.partitions))
            })
            .collect();
        for Drain { ids, partitions, purpose, .. } in ended {
            let (seen, commits) = (self.seen, self.forget_all(ids));
            self.tell_assignment();
            match purpose {
                Purpose::Revocation => {
                    self.member.tell(Command::GiveUp { seen, commits, partitions }).await;
                }
                Purpose::Shutdown => {
                    self.stage = Stage::Leaving;
                    self.member.tell(Command::Leave { seen, commits }).await;
                }
            }
        }
    }
}
