//! Answers to those who ask for figures, or pause partitions.

use std::collections::HashMap;

use super::{PartitionId, Runtime};
use crate::status::{PartitionStatus, Pause, Question};

impl Runtime {
    pub(super) fn answer(&mut self, question: Question) {
        // Whoever asked may be gone.
        match question {
            Question::Partitions(asker) => drop(asker.send(self.partitions())),
            Question::SetPaused(partition, paused, asker) => {
                let id = self.by_name.get(&partition);
                let is_read = id.is_some_and(|id| self.scheduler.set_paused(*id, paused));
                if asker.send(is_read).is_err() {
                    tracing::debug!(?partition, "whoever asked for a pause is gone");
                }
            }
        }
    }

    fn partitions(&mut self) -> Vec<PartitionStatus> {
        let now = self.services.clock.now();
        let mut stalled = HashMap::new();
        for job in &mut self.jobs {
            let done = self.scheduler.done(job.ticket);
            if job.seen_done != done {
                (job.seen_done, job.seen_at) = (done, now);
            }
            let since = stalled.entry(job.ticket.partition).or_insert(job.seen_at);
            *since = job.seen_at.min(*since);
        }
        let metadata = self.cluster.metadata();
        let ids: Vec<PartitionId> = self.readings.keys().copied().collect();
        let statuses = ids.into_iter().filter_map(|id| {
            let (reading, figures) = (self.readings.get(&id)?, self.scheduler.figures(id)?);
            let is_draining = self.drains.iter().any(|drain| drain.covers(id));
            let is_gone = !metadata.topics.contains_key(&reading.name.topic);
            let gone = || format!("topic {} does not exist", reading.name.topic);
            let blocked = self.services.board.blocked(&reading.name);
            let blocked = blocked.map(|(at, cause)| format!("blocked at offset {at}: {cause}"));
            let is_blocked = blocked.is_some();
            let trouble = reading.unreadable.clone().or_else(|| is_gone.then(gone)).or(blocked);
            let paused = if is_draining {
                Some(Pause::Draining)
            } else if figures.is_paused {
                Some(Pause::Asked)
            } else if is_gone {
                Some(Pause::Unreadable)
            } else {
                let blocked = is_blocked.then_some(Pause::Blocked);
                reading
                    .paused()
                    .filter(|it| *it == Pause::Unreadable)
                    .or(blocked)
                    .or(reading.paused())
            };
            Some(PartitionStatus {
                topic: reading.name.topic.to_string(),
                partition: reading.name.partition,
                done_to: reading.is_placed().then_some(figures.done_to),
                position: reading.is_placed().then_some(figures.position),
                end: reading.end,
                lag: None,
                queued_records: figures.records,
                queued_bytes: figures.bytes,
                running: figures.running,
                stalled: stalled.get(&id).map(|since| now.saturating_sub(*since)),
                retrying: figures.retrying,
                delayed: figures.delayed,
                paused,
                trouble,
                handled: figures.handled,
            })
        });
        statuses.collect()
    }
}
