//! What is handled and to be committed, and the way back when a transaction was aborted.

use moldau_client::{CommittedOffset, TopicPartition};

use super::reading::Reading;
use super::{Committing, Runtime, Stage};
use crate::ledger::Commit;
use crate::member::{Command, Commits};
use crate::scheduler::PartitionId;

impl Runtime {
    /// Sends what has changed since the last commit.
    pub(super) async fn commit(&mut self) {
        if self.stage == Stage::Leaving {
            return;
        }
        let commits = self.take_settled();
        if !commits.offsets.is_empty() {
            self.committing = Committing::Yes;
            self.member.tell(Command::Commit { seen: self.seen, commits }).await;
        }
    }

    /// What has changed since it was last taken.
    fn take_settled(&mut self) -> Commits {
        let mut commits = Commits::default();
        let mut pending = self.pending.as_ref().map(|pending| pending.lock());
        for id in self.scheduler.take_changed() {
            let Some(reading) = self.readings.get(&id) else { continue };
            if let Some(commit) = self.scheduler.take_commit(id) {
                commits.offsets.push((reading.name.clone(), committed_offset(commit, reading)));
                if let Some(pending) = &mut pending {
                    commits.outputs.extend(pending.take(id));
                }
            }
        }
        commits
    }

    /// Whether a transaction is to take what handlers returned before they go on.
    pub(super) fn is_full(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_full())
    }

    /// Stops reading partitions; returns their last commits.
    pub(super) fn forget_all(&mut self, ids: Vec<PartitionId>) -> Commits {
        let mut all = Commits::default();
        for id in ids {
            let Commits { offsets, outputs } = self.forget(id);
            all.offsets.extend(offsets);
            all.outputs.extend(outputs);
        }
        all
    }

    /// Stops reading a partition; returns its last commit.
    pub(super) fn forget(&mut self, id: PartitionId) -> Commits {
        let Some(reading) = self.readings.remove(&id) else { return Commits::default() };
        self.fetcher.unassign(&reading.name);
        self.by_name.remove(&reading.name);
        let TopicPartition { topic, partition } = &reading.name;
        self.services.board.unblock(topic, *partition, 0..=i64::MAX);
        self.held_bytes -= reading.held_bytes();
        if !self.scheduler.is_idle(id) {
            self.cancel(id);
        }
        if let Some(figures) = self.scheduler.figures(id) {
            reading.figures.retire(figures.handled);
        }
        let mut pending = self.pending.as_ref().map(|pending| pending.lock());
        let outputs = pending.as_mut().map(|pending| pending.close(id)).unwrap_or_default();
        let commit = self.scheduler.remove(id).map(|commit| committed_offset(commit, &reading));
        let offsets = commit.map(|commit| (reading.name, commit)).into_iter().collect();
        Commits { offsets, outputs }
    }

    /// Handles again what an aborted transaction held.
    pub(super) async fn rewind(
        &mut self,
        partitions: Vec<(TopicPartition, Option<CommittedOffset>)>,
    ) {
        self.seen.rewinds += 1;
        self.committing = Committing::No;
        for (partition, committed) in partitions {
            let Some(id) = self.by_name.get(&partition).copied() else { continue };
            let begun_at = self.readings.get(&id).and_then(|reading| reading.begun_at);
            drop(self.forget(id));
            // One that is given back is handled again by its next owner.
            if !self.drains.iter().any(|drain| drain.holds(&partition)) {
                // Reading may have begun at what was the end then.
                let committed = committed.or_else(|| begun_at.map(CommittedOffset::at));
                self.assign(partition, committed).await;
            }
        }
    }
}

fn committed_offset(commit: Commit, reading: &Reading) -> CommittedOffset {
    let at = CommittedOffset::at(commit.offset);
    let topic_id = reading.topic.as_ref().map_or(at.topic_id, |topic| topic.id);
    CommittedOffset { metadata: commit.metadata, topic_id, ..at }
}
