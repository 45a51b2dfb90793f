//! The commit of an object.

use std::time::Duration;

use crate::sequencer::{
    BatchEntry, Commit, Extent, ObjectKey, Outcome, Part, ProducerBatch, Refusal,
};
use crate::{Answer, Error};

use super::state::{Fence, Log, Mark, Object, Placed, Producer, State};

impl State {
    /// As [`crate::Sequencer::commit`].
    ///
    /// # Errors
    /// [`Error::ObjectDead`]; [`Error::KeyExpired`].
    pub fn commit(&mut self, commit: &Commit) -> Answer<Vec<Outcome>> {
        if let Some(object) = self.objects.get(&commit.key) {
            return object.answers.clone().ok_or(Error::ObjectDead(commit.key));
        }
        self.admit(commit.key)?;
        let outcomes: Vec<Outcome> =
            commit.batches.iter().map(|batch| self.append(commit.key, batch)).collect();
        let live = self
            .logs
            .values()
            .flat_map(|log| log.extents.values())
            .filter(|placed| placed.extent.object == commit.key)
            .count();
        let answers = Some(outcomes.clone());
        self.commits += 1;
        let object = Object { sequence: self.commits, live, deleted: false, answers };
        self.objects.insert(commit.key, object);
        Ok(outcomes)
    }

    fn append(&mut self, key: ObjectKey, batch: &BatchEntry) -> Outcome {
        let fence = batch.producer.and_then(|sent| self.fences.get(&sent.id));
        let (fence, clock) = (fence.cloned().unwrap_or_default(), self.clock);
        let Some(log) = self.log_mut(batch.log) else {
            return Outcome::Refused(Refusal::UnknownTopicOrPartition);
        };
        match log.check(batch, fence.epoch) {
            Ok(None) => {
                let base_offset = log.append(key, batch);
                log.note_producer(batch, base_offset, &fence, clock);
                Outcome::Appended { base_offset, start_offset: log.start_offset }
            }
            Ok(Some(base_offset)) => {
                Outcome::Duplicate { base_offset, start_offset: log.start_offset }
            }
            Err(refusal) => Outcome::Refused(refusal),
        }
    }
}

impl Log {
    /// Whether the batch may be appended; its first offset if the log holds it already.
    fn check(&self, batch: &BatchEntry, fence: i16) -> Result<Option<i64>, Refusal> {
        if batch.leader_epoch >= 0 && batch.leader_epoch < self.leader_epoch {
            return Err(Refusal::FencedLeaderEpoch);
        }
        if batch.leader_epoch > self.leader_epoch {
            return Err(Refusal::UnknownLeaderEpoch);
        }
        let Some(sent) = batch.producer else { return Ok(None) };
        if let Some(producer) = self.producers.get(&sent.id)
            && let Some(base_offset) = producer.check(sent, batch.part)?
        {
            return Ok(Some(base_offset));
        }
        let opens = batch.part == Part::Inside && !self.transactions.open.contains_key(&sent.id);
        if opens && sent.epoch < fence {
            return Err(Refusal::InvalidProducerEpoch);
        }
        if batch.part == Part::Outside && self.transactions.open.contains_key(&sent.id) {
            return Err(Refusal::InvalidTxnState);
        }
        Ok(None)
    }

    fn append(&mut self, key: ObjectKey, batch: &BatchEntry) -> i64 {
        let base_offset = self.next_offset;
        self.next_offset += i64::from(batch.offsets_count);
        self.end_bytes += i64::from(batch.size);
        self.peak_timestamp = self.peak_timestamp.max(batch.max_timestamp);
        let last_offset = self.next_offset - 1;
        let mut extent = Extent {
            base_offset,
            last_offset,
            object: key,
            position: batch.position,
            size: batch.size,
            leader_epoch: self.leader_epoch,
            sorted: false,
            max_timestamp: batch.max_timestamp,
        };
        if let Some(last) = self.extents.last_entry() {
            let before = last.get().extent;
            let end = before.position + i64::from(before.size);
            if before.object == key && end == batch.position {
                last.remove();
                extent.base_offset = before.base_offset;
                extent.position = before.position;
                extent.size += before.size;
                extent.max_timestamp = extent.max_timestamp.max(before.max_timestamp);
            }
        }
        let (peak_timestamp, end_bytes) = (self.peak_timestamp, self.end_bytes);
        self.extents.insert(last_offset, Placed { extent, peak_timestamp, end_bytes });
        base_offset
    }

    /// One that the log meets again takes the decisions that logs have forgotten.
    fn note_producer(
        &mut self,
        batch: &BatchEntry,
        base_offset: i64,
        fence: &Fence,
        now: Duration,
    ) {
        let Some(sent) = batch.producer else { return };
        let met = || Producer {
            ended: fence.decision.map(|decision| (decision, base_offset)),
            ..Producer::default()
        };
        let producer = self.producers.entry(sent.id).or_insert_with(met);
        producer.appended_at = now;
        producer.record(sent, batch, base_offset);
        self.transactions.note(batch, base_offset);
    }
}

impl Producer {
    fn check(&self, sent: ProducerBatch, part: Part) -> Result<Option<i64>, Refusal> {
        if let (Part::Marker(marker), Some((decision, base_offset))) = (part, self.ended)
            && (0..=decision).contains(&marker.decision)
        {
            // It ended its transaction already; the one that is open is a later one.
            return Ok(Some(base_offset));
        }
        if sent.epoch < self.epoch {
            return Err(Refusal::InvalidProducerEpoch);
        }
        if matches!(part, Part::Marker(_)) {
            return Ok(None);
        }
        let next = if sent.epoch > self.epoch {
            0
        } else {
            let same = self.marks.iter().find(|mark| {
                mark.first_sequence == sent.first_sequence
                    && mark.last_sequence == sent.last_sequence
            });
            if let Some(mark) = same {
                return Ok(Some(mark.base_offset));
            }
            self.marks.last().map_or(0, |mark| mark.last_sequence.checked_add(1).unwrap_or(0))
        };
        if sent.first_sequence == next { Ok(None) } else { Err(Refusal::OutOfOrderSequenceNumber) }
    }

    fn record(&mut self, sent: ProducerBatch, batch: &BatchEntry, base_offset: i64) {
        self.last_timestamp = batch.max_timestamp;
        if sent.epoch != self.epoch {
            self.marks.clear();
            self.epoch = sent.epoch;
        }
        // The end of a transaction has no sequence.
        if let Part::Marker(marker) = batch.part {
            if self.ended.map_or(-1, |(decision, _)| decision) < marker.decision {
                self.ended = Some((marker.decision, base_offset));
            }
            return;
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.remove(0);
        }
        let ProducerBatch { first_sequence, last_sequence, .. } = sent;
        self.marks.push(Mark { first_sequence, last_sequence, base_offset });
    }
}

/// Kafka's `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`.
const MARKS_MAX: usize = 5;
