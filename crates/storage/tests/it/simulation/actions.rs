//! What a life consists of.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor, NO_TIMESTAMP, Producer};
use moldau_storage::{AppendError, Error, Isolation, Log, Lsn, ReadOutcome, Storage};

use super::life::{Pending, Phase, World};
use super::model::{Cleanup, LogModel, Record};
use super::reader::{follow, poll_once, records_of, run};
use crate::sim_disk::Trouble;
use crate::world::AppendBytes;

type Action = (u32, fn(&World));

/// Every action and how often it is done, before the seed's own preferences.
pub(crate) const ACTIONS: [Action; 20] = [
    (16, |world| world.append()),
    (8, |world| world.step()),
    (1, |world| world.settle()),
    (2, |world| world.prepare()),
    (4, |world| world.upkeep(1)),
    (2, |world| world.upkeep(100)),
    (2, |world| world.compact()),
    (3, |world| world.checkpoint()),
    (2, |world| world.apply_retention()),
    (2, |world| world.delete_records()),
    (1, |world| world.delete_topic()),
    (2, |world| world.send_again()),
    (1, |world| world.send_wrongly()),
    (2, |world| world.read()),
    (2, |world| world.go_on_reading()),
    (1, |world| world.follow()),
    (1, |world| world.look_up()),
    (2, |world| world.append_metadata()),
    (3, |world| world.burst()),
    (1, |world| world.make_trouble()),
];

impl World {
    pub(crate) fn act(&self) {
        let total: u32 = self.setup.weights.iter().sum();
        let mut at = self.below(total.max(1) as usize) as u32;
        self.now.borrow_mut().ms += self.below(200) as i64;
        for ((_, action), weight) in ACTIONS.iter().zip(&self.setup.weights) {
            if at < *weight {
                return action(self);
            }
            at -= weight;
        }
        self.append();
    }

    /// Does what another thread may do while work in the background waits for the disk.
    pub(crate) fn interrupted(&self) {
        let phase = self.now.borrow().phase;
        self.go_on_with(Phase::Interrupt);
        self.count("interrupt");
        match self.below(14) {
            0..3 => self.append(),
            3 => self.step(),
            4 => self.delete_records(),
            5 => self.apply_retention(),
            6 => self.delete_topic(),
            7 => self.append_metadata(),
            8 => self.read(),
            9 => self.go_on_reading(),
            10 => self.prepare(),
            11 => self.send_again(),
            // Each of them is done by one thread at a time.
            _ if phase == Phase::Checkpoint => {
                let rewrote = self.storage().step_upkeep();
                rewrote.unwrap_or_else(|error| {
                    self.explain(&error);
                    false
                });
                self.count("upkeep beside a checkpoint");
            }
            _ => {
                self.write_checkpoint();
                self.count("checkpoint beside upkeep");
            }
        }
        self.acknowledge();
        if !self.disk.is_dead() {
            self.go_on_with(phase);
        }
    }

    fn during(&self, phase: Phase, work: impl FnOnce(&Storage)) {
        self.enter(phase);
        work(&self.storage());
        if !self.disk.is_dead() {
            self.enter(Phase::Other);
        } else {
            self.disk.state().interrupt = None;
        }
    }

    /// A topic that is there and one of its partitions.
    fn pick(&self) -> Option<(u32, usize, Arc<Log>)> {
        let model = self.model.borrow();
        let there: Vec<_> = model.topics.iter().filter(|(_, it)| it.deletion.is_none()).collect();
        if there.is_empty() {
            return None;
        }
        let (number, topic) = there[self.below(there.len())];
        let partition = self.below(topic.logs.len());
        let log = self.storage().log(topic.id, partition as i32);
        Some((*number, partition, log))
    }

    fn with_log<T>(&self, topic: u32, partition: usize, f: impl FnOnce(&mut LogModel) -> T) -> T {
        let mut model = self.model.borrow_mut();
        f(&mut model.topics.get_mut(&topic).unwrap().logs[partition])
    }

    pub(crate) fn append(&self) {
        if let Some((topic, partition, log)) = self.pick() {
            self.append_to(topic, partition, &log);
        }
    }

    fn append_to(&self, topic: u32, partition: usize, log: &Arc<Log>) {
        let is_compacted = self.model.borrow().topics[&topic].cleanup.compaction.is_some();
        let producer = (!self.one_in(4)).then(|| {
            let id = 5 + self.below(2) as i64;
            let next = self.with_log(topic, partition, |log| log.next_of(id));
            match self.one_in(16) {
                true => Producer { epoch: next.epoch + 1, base_sequence: 0, ..next },
                false => next,
            }
        });
        let records = self.records(is_compacted);
        let bytes = self.encode(&records, producer);
        let base = self.with_log(topic, partition, |log| log.end());
        match log.append_bytes(&bytes, 0) {
            Ok(appended) => self.with_log(topic, partition, |log| {
                assert_eq!((appended.base_offset, appended.is_duplicate), (base, false));
                log.bytes += bytes.len() as u64;
                log.append(records, producer);
                assert_eq!(appended.last_offset, log.end() - 1);
                log.flies(appended.lsn);
            }),
            Err(AppendError::TooLarge { .. }) => {}
            Err(error) => self.explain_append(error),
        }
    }

    fn records(&self, is_compacted: bool) -> Vec<Record> {
        let now_ms = self.now.borrow().ms;
        let length = match self.below(16) {
            0 => 9_000,
            1 => 20_000,
            _ => 300,
        };
        let count = 1 + self.below(4);
        let record = |_| {
            let key = !self.one_in(if is_compacted { 16 } else { 2 });
            let value = !self.one_in(5);
            let byte = self.below(256) as u8;
            Record {
                timestamp: now_ms - self.below(100) as i64,
                key: key.then(|| vec![b'k', self.below(6) as u8]),
                value: value.then(|| vec![byte; self.below(length)]),
            }
        };
        (0..count).map(record).collect()
    }

    fn encode(&self, records: &[Record], producer: Option<Producer>) -> Vec<u8> {
        let options = BatchOptions { producer, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for Record { timestamp, key, value } in records {
            builder.append(*timestamp, key.as_deref(), value.as_deref(), []).unwrap();
        }
        let compression = match self.below(64) {
            0..4 => Compression::Lz4,
            4..6 => Compression::Snappy,
            6 => Compression::Zstd,
            7 => Compression::Gzip,
            _ => Compression::None,
        };
        builder.finish(compression, &mut Compressor::default()).unwrap().to_vec()
    }

    /// Small appends to many logs.
    fn burst(&self) {
        let Some((topic, ..)) = self.pick() else { return };
        let (id, partitions) = {
            let topic = &self.model.borrow().topics[&topic];
            (topic.id, topic.logs.len())
        };
        let first = self.below(partitions);
        for partition in (first..partitions).take(if self.one_in(4) { partitions } else { 50 }) {
            if self.disk.is_dead() || self.now.borrow().is_stopped {
                return;
            }
            self.append_to(topic, partition, &self.storage().log(id, partition as i32));
        }
        if partitions > 100 {
            self.count("burst over 500 partitions of a topic");
        }
    }

    /// A producer that got no answer sends one of its last batches again: it gets the first
    /// offsets.
    fn send_again(&self) {
        let Some((topic, partition, log)) = self.pick() else { return };
        let id = 5 + self.below(2) as i64;
        let nth = self.below(5);
        let sent = self.with_log(topic, partition, |log| log.batches_of(id).nth(nth));
        let Some((batch, producer)) = sent else { return };
        let records = vec![Record { timestamp: 1, key: None, value: None }; batch.size];
        let again = log.append_bytes(&self.encode(&records, Some(producer)), 0).unwrap();
        assert_eq!((again.base_offset, again.is_duplicate), (batch.base, true));
        let end = batch.base + batch.size as i64;
        let is_durable = log.high_watermark() >= end;
        assert!(is_durable || again.lsn > self.storage().durable(), "acknowledged too early");
        self.count("duplicate");
    }

    /// A gap in a producer's sequence, or an old epoch, is refused.
    fn send_wrongly(&self) {
        let Some((topic, partition, log)) = self.pick() else { return };
        let id = 5 + self.below(2) as i64;
        let next = self
            .with_log(topic, partition, |log| log.batches_of(id).next().map(|_| log.next_of(id)));
        let Some(next) = next else { return };
        let record = [Record { timestamp: 1, key: None, value: None }];
        let send = |producer| log.append_bytes(&self.encode(&record, Some(producer)), 0);
        let gap = Producer { base_sequence: next.base_sequence + 1, ..next };
        assert!(matches!(send(gap), Err(AppendError::OutOfOrderSequence { .. })));
        if let Some(epoch) = next.epoch.checked_sub(1).filter(|epoch| *epoch >= 0) {
            let old = send(Producer { epoch, ..next });
            assert!(matches!(old, Err(AppendError::InvalidProducerEpoch { .. })));
        }
    }

    pub(crate) fn step(&self) {
        self.storage().step();
        // Waiting tasks get the error of a failed flush.
        let end = self.storage().end();
        if self.disk.state().has_failed
            && let Poll::Ready(Err(error)) =
                poll_once(Pin::new(&mut self.storage().wait_durable(end)))
        {
            self.explain(&error);
        }
    }

    fn settle(&self) {
        while self.storage().step() {}
        self.step();
    }

    fn prepare(&self) {
        self.storage().step_preparation();
    }

    fn upkeep(&self, pieces: usize) {
        for _ in 0..pieces {
            let mut is_over = true;
            self.during(Phase::Upkeep, |storage| {
                if self.one_in(8) {
                    self.disk.die_within(1 + self.below(40) as u64);
                }
                let before = storage.metrics();
                match storage.step_upkeep() {
                    Ok(has_worked) => is_over = !has_worked,
                    Err(error) => self.explain(&error),
                }
                let after = storage.metrics();
                let did = |operation, kind| self.disk.state().done.contains(&(operation, kind));
                if after.segments_removed > before.segments_removed {
                    self.count("removal");
                } else if after.segments_written > before.segments_written {
                    let is_sort = did("read", crate::sim_disk::Kind::Journal);
                    self.count(if is_sort { "sort" } else { "merge" });
                }
            });
            self.acknowledge();
            if is_over || self.disk.is_dead() || self.now.borrow().is_stopped {
                return;
            }
        }
    }

    fn compact(&self) {
        let now_ms = self.now.borrow().ms;
        let mut logs = Vec::new();
        let mut model = self.model.borrow_mut();
        for topic in model.topics.values_mut().filter(|topic| topic.deletion.is_none()) {
            let Some(compaction) = topic.cleanup.compaction else { continue };
            for log in self.storage().logs_of(topic.id) {
                let partition = log.id().partition as usize;
                // What is appended while the cleaning begins may be cleaned as well.
                topic.logs[partition].cleaned(now_ms, i64::MAX);
                logs.push((log, compaction));
            }
        }
        drop(model);
        self.during(Phase::Cleaning, |storage| {
            if self.one_in(8) {
                self.disk.die_within(1 + self.below(40) as u64);
            }
            match storage.compact(&logs, now_ms) {
                Ok(cleaned) if cleaned.records_retained < cleaned.records_read => {
                    self.count("cleaning");
                }
                Ok(_) => {}
                Err(error) => self.explain(&error),
            }
        });
        self.acknowledge();
        let mut model = self.model.borrow_mut();
        for log in model.topics.values_mut().flat_map(|topic| &mut topic.logs) {
            log.cleaning_ended();
        }
    }

    fn checkpoint(&self) {
        self.during(Phase::Checkpoint, |_| {
            if self.one_in(6) {
                self.disk.die_within(1 + self.below(20) as u64);
            }
            self.write_checkpoint();
        });
    }

    fn write_checkpoint(&self) {
        let all = self.model.borrow().metadata.clone();
        let written = self.storage().checkpoint(|writer| {
            let joined = all.iter().flat_map(|entry| [entry.as_slice(), b"\n"]);
            let snapshot = [&b"snapshot\n"[..]].into_iter().chain(joined).collect::<Vec<_>>();
            writer.metadata(&snapshot.concat());
            Ok(())
        });
        match written {
            Ok(retired) => {
                self.count("checkpoint");
                if retired > 0 {
                    self.count("retired");
                }
            }
            Err(error) => self.explain(&error),
        }
    }

    fn apply_retention(&self) {
        let Some((topic, partition, log)) = self.pick() else { return };
        let cleanup = self.model.borrow().topics[&topic].cleanup;
        let now_ms = self.now.borrow().ms;
        let bytes = log.bytes();
        match log.apply_retention(now_ms, cleanup.retention_ms, cleanup.retention_bytes) {
            Ok(trimmed) => self.with_log(topic, partition, |model| {
                if trimmed.start_offset > model.start.1 {
                    self.count("retention");
                    self.check_retention(model, trimmed.start_offset, cleanup);
                    model.trimmed(trimmed.start_offset, trimmed.lsn);
                }
                assert!(log.bytes() <= bytes);
            }),
            Err(error) => self.explain(&error),
        }
    }

    /// What retention by time deletes is old, unless its size was too much.
    fn check_retention(&self, model: &LogModel, start_offset: i64, cleanup: Cleanup) {
        let (Some(retention_ms), None) = (cleanup.retention_ms, cleanup.retention_bytes) else {
            return;
        };
        let oldest_kept = self.now.borrow().ms - retention_ms;
        let may_be_gone = model.may_be_gone();
        for offset in model.start.1..start_offset {
            let is_old = model.records[offset as usize].timestamp < oldest_kept;
            assert!(is_old || may_be_gone(offset), "offset {offset} is too young to be deleted");
        }
    }

    fn delete_records(&self) {
        let Some((topic, partition, log)) = self.pick() else { return };
        let (start, end) = (log.start_offset(), log.high_watermark());
        let before = match self.below(8) {
            0 => -1,
            1 => end,
            _ => start.min(end) + self.below((end - start).max(0) as usize + 1) as i64,
        };
        let beyond = log.delete_records(end + 1);
        assert!(matches!(beyond, Err(Error::OffsetOutOfRange { .. })));
        match log.delete_records(before) {
            Ok(trimmed) => self.with_log(topic, partition, |model| {
                if trimmed.start_offset > model.start.1 {
                    model.trimmed(trimmed.start_offset, trimmed.lsn);
                    self.count("delete records");
                }
            }),
            Err(error) => self.explain(&error),
        }
    }

    fn delete_topic(&self) {
        // Most data must live for long enough to be sorted, merged and cleaned.
        if !self.one_in(4) {
            return;
        }
        let Some((number, _, log)) = self.pick() else { return };
        let id = log.id().topic;
        let deletion: Option<Lsn> = match self.storage().delete_topic(id) {
            Ok(lsn) => Some(lsn),
            Err(error) => {
                self.explain_append(error);
                None
            }
        };
        self.model.borrow_mut().topics.get_mut(&number).unwrap().deletion = Some(deletion);
        assert!(matches!(log.read(0, 1, true), Err(Error::Deleted)));
        let batch = self.encode(&self.records(false), None);
        assert!(matches!(log.append_bytes(&batch, 0), Err(AppendError::Deleted)));
        self.count("delete topic");
        self.create_topic();
    }

    fn append_metadata(&self) {
        let entry = {
            let mut model = self.model.borrow_mut();
            model.entries += 1;
            format!("entry {}", model.entries).into_bytes()
        };
        match self.storage().append_metadata(&entry) {
            Ok(lsn) => {
                let mut model = self.model.borrow_mut();
                model.metadata.push(entry);
                let end = model.metadata.len();
                model.metadata_flying.push((lsn, end));
            }
            Err(error) => self.explain_append(error),
        }
    }

    /// Reads once, and may leave a read that waits for the disk for later.
    fn read(&self) {
        let Some((topic, partition, log)) = self.pick() else { return };
        let (start, end) = (log.start_offset(), log.high_watermark());
        let from = start + self.below((end - start).max(0) as usize + 1) as i64;
        let bytes_max = [1, 500, 20_000, 1 << 20][self.below(4)];
        match log.read(from, bytes_max, self.one_in(2)) {
            Ok(ReadOutcome::Ready(read)) => {
                let found = records_of(&read, from);
                self.with_log(topic, partition, |log| log.check_some(&found));
            }
            Ok(ReadOutcome::Pending(read)) => {
                self.count("read that waits");
                let pending = Pending { topic, partition, from, read };
                self.now.borrow_mut().pending.push(pending);
            }
            Err(Error::OffsetOutOfRange { .. }) if end < start => {}
            Err(error) => self.explain(&error),
        }
    }

    /// Looks after the reads that wait.
    fn go_on_reading(&self) {
        let mut pending = std::mem::take(&mut self.now.borrow_mut().pending);
        pending.retain_mut(|one| {
            let Poll::Ready(outcome) = poll_once(Pin::new(&mut one.read)) else { return true };
            let is_there = |world: &World| {
                let model = world.model.borrow();
                model.topics.get(&one.topic).is_some_and(|topic| topic.deletion.is_none())
            };
            match outcome {
                Ok(read) if is_there(self) => {
                    let found = records_of(&read, one.from);
                    self.with_log(one.topic, one.partition, |log| {
                        let within = |offset| log.records.get(offset as usize);
                        // What was read before a cleaning may be seen after it.
                        assert!(found.iter().all(|(at, record)| within(*at) == Some(record)));
                    });
                    self.count("read that went on");
                }
                Ok(_) => {}
                Err(Error::Deleted) => assert!(!is_there(self)),
                Err(Error::OffsetOutOfRange { start, .. }) => assert!(one.from < start),
                Err(error) => self.explain(&error),
            }
            false
        });
        self.now.borrow_mut().pending.append(&mut pending);
    }

    /// Follows one log from anywhere to its high watermark.
    fn follow(&self) {
        let Some((topic, partition, log)) = self.pick() else { return };
        let (start, end) = (log.start_offset(), log.high_watermark());
        if start > end {
            return;
        }
        let from = start + self.below((end - start) as usize + 1) as i64;
        match follow(&log, from, [1, 700, 50_000][self.below(3)]) {
            Ok(found) => self.with_log(topic, partition, |model| {
                model.check_all(&found.records, from, end);
                assert!(log.bytes() <= 2 * model.bytes, "{} bytes", log.bytes());
            }),
            Err(error) => self.explain(&error),
        }
    }

    /// Looks offsets up by time, and compares with what a reader of the whole log finds.
    fn look_up(&self) {
        let Some((_, _, log)) = self.pick() else { return };
        let storage = self.storage();
        while storage.step() {}
        let found = match follow(&log, log.start_offset(), 50_000) {
            Ok(found) => found.records,
            Err(error) => return self.explain(&error),
        };
        let now_ms = self.now.borrow().ms;
        for _ in 0..3 {
            let timestamp = match found.len() {
                0 => now_ms,
                count => found[self.below(count)].1.timestamp + self.below(3) as i64 - 1,
            };
            let first = found.iter().find(|(_, record)| record.timestamp >= timestamp);
            match run(&storage, log.offset_for_timestamp(timestamp, Isolation::ReadUncommitted)) {
                Ok(answer) => assert_eq!(
                    answer.map(|answer| (answer.offset, answer.timestamp)),
                    first.map(|(offset, record)| (*offset, record.timestamp)),
                    "lookup of {timestamp}"
                ),
                Err(error) => return self.explain(&error),
            }
        }
        let latest = found.iter().map(|(_, record)| record.timestamp).max();
        match run(&storage, log.offset_of_max_timestamp()) {
            Ok(answer) => assert_eq!(
                answer.map(|answer| answer.timestamp),
                latest.filter(|latest| *latest != NO_TIMESTAMP),
            ),
            Err(error) => return self.explain(&error),
        }
        self.count("lookup by time");
    }

    /// The disk runs full, has space again, or fails at some operation.
    fn make_trouble(&self) {
        let mut state = self.disk.state();
        if self.setup.has_little_space {
            let is_full = state.free_bytes < u64::MAX;
            state.free_bytes = if is_full { u64::MAX } else { self.below(1 << 20) as u64 };
            drop(state);
            self.count("disk runs full");
        } else if self.setup.has_troubles && self.one_in(4) {
            let kinds = [Trouble::Error, Trouble::NoSpace, Trouble::ShortWrite];
            state.trouble = Some((self.below(60) as u64, kinds[self.below(3)]));
            drop(state);
            self.count("disk fails");
        }
    }
}
