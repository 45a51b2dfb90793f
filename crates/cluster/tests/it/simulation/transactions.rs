//! Producers with transactions, and readers of what is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use moldau_cluster::{LogId, Outcome, Reader, ReaderOptions, Records};
use moldau_records::{Marker, iter_batches};
use tokio::task::JoinHandle;

use super::owners::Decision;
use super::{LOGS, Life, log};
use crate::batches::{inside, records};
use crate::faults::{FaultySequencer, FaultyStore, pass};

impl Life {
    /// Transactions of one producer. Now and then it gives up in the middle of one; then that is
    /// aborted under the next epoch, while batches of it may be under way.
    pub(super) fn transactions(&self, id: i64) -> JoinHandle<()> {
        let (writers, acknowledged) = (self.writers.clone(), self.acknowledged.clone());
        let (owners, pause) = (self.owners.clone(), self.long_pause());
        let mut random = fastrand::Rng::with_seed(self.seed ^ (id.cast_unsigned() << 32));
        tokio::spawn(async move {
            let (mut epoch, mut sequences) = (0, BTreeMap::<i32, i32>::new());
            for number in 0..TRANSACTIONS {
                let gives_up = random.u32(..4) == 0;
                let mut partitions = BTreeSet::new();
                for n in 0..random.u32(1..4) {
                    let partition = random.i32(0..LOGS);
                    partitions.insert(partition);
                    let sequence = sequences.entry(partition).or_default();
                    let value = value(id, number, n);
                    let sent = inside(log(partition), (id, epoch), *sequence, &value);
                    *sequence += 1;
                    if gives_up && random.bool() {
                        // It is under way, and nobody waits for it.
                        drop(writers[random.usize(..2)].append(vec![sent]));
                        break;
                    }
                    let offset = loop {
                        let answer = match writers[random.usize(..2)].append(vec![sent.clone()]) {
                            Ok(pending) => pending.outcomes().await,
                            Err(error) => Err(error),
                        };
                        match answer.as_deref() {
                            Ok(
                                [
                                    Outcome::Appended { base_offset, .. }
                                    | Outcome::Duplicate { base_offset, .. },
                                ],
                            ) => break *base_offset,
                            Err(error) if error.is_retriable() => {}
                            other => panic!("{other:?}"),
                        }
                    };
                    acknowledged.lock().unwrap().insert((log(partition), value), offset);
                }
                if gives_up {
                    epoch += 1;
                    sequences.clear();
                }
                let commits = !gives_up && random.u32(..3) > 0;
                let partitions = partitions.into_iter().collect();
                let wanted = Decision { producer: id, number, epoch, commits, partitions };
                assert_eq!(owners.end(wanted).await, commits, "a decision is kept");
                pass(Duration::from_millis(random.u64(..2_000))).await;
                if number == TRANSACTIONS / 2 {
                    pass(pause).await;
                }
            }
        })
    }

    /// Reads what is committed, as it becomes so.
    pub(super) fn committed_reader(&self) -> JoinHandle<()> {
        let options =
            ReaderOptions { cache_bytes: 4_000, block_bytes: 256, ..ReaderOptions::default() };
        let reader = Reader::new(self.sequencer.clone(), self.store.clone(), options);
        let judge = self.judge();
        tokio::spawn(async move {
            let mut seen = Seen::default();
            loop {
                for partition in 0..LOGS {
                    // What has no answer is read again.
                    drop(seen.read_on(&reader, log(partition), &judge).await);
                    judge.judge(&seen, log(partition));
                }
                pass(Duration::from_millis(700)).await;
            }
        })
    }

    /// Reads what is committed when everything has ended.
    pub(super) async fn verify_committed(&self) {
        let reader =
            Reader::new(self.sequencer.clone(), self.store.clone(), ReaderOptions::default());
        let (judge, mut seen) = (self.judge(), Seen::default());
        for partition in 0..LOGS {
            let log = log(partition);
            while seen.read_on(&reader, log, &judge).await.unwrap() {}
            judge.judge(&seen, log);
            let end = reader.read_committed(log, seen.position(log), 1).await.unwrap();
            assert_eq!(end.last_stable_offset, end.high_watermark, "all transactions have ended");
            assert_eq!(seen.position(log), end.high_watermark);
        }
    }

    fn judge(&self) -> Judge {
        Judge { owners: self.owners.clone(), acknowledged: self.acknowledged.clone() }
    }
}

/// What a reader of committed records was given.
#[derive(Default)]
struct Seen {
    positions: BTreeMap<LogId, i64>,
    values: BTreeSet<(LogId, String)>,
}

impl Seen {
    fn position(&self, log: LogId) -> i64 {
        self.positions.get(&log).copied().unwrap_or(0)
    }

    /// Reads once; whether it came further.
    async fn read_on(
        &mut self,
        reader: &Reader<FaultySequencer, FaultyStore>,
        log: LogId,
        judge: &Judge,
    ) -> Result<bool, moldau_cluster::Error> {
        let position = self.position(log);
        let read = reader.read_committed(log, position, 300).await.inspect_err(|error| {
            assert!(error.is_retriable(), "{error}");
        })?;
        for (offset, value) in visible(&read) {
            if offset >= position {
                assert!(judge.counts(&value), "{value} at {offset} is not committed");
                assert!(self.values.insert((log, value)), "a record is there twice");
            }
        }
        assert!(read.next_offset >= position && read.next_offset <= read.last_stable_offset);
        self.positions.insert(log, read.next_offset);
        Ok(read.next_offset > position)
    }
}

/// What a reader must see, and must not.
struct Judge {
    owners: super::owners::Owners,
    acknowledged: super::Acknowledged,
}

impl Judge {
    /// Whether a record counts by now.
    fn counts(&self, value: &str) -> bool {
        transaction(value).is_none_or(|transaction| self.owners.commits(transaction))
    }

    /// Nothing below the position is missing.
    fn judge(&self, seen: &Seen, log: LogId) {
        for (record, offset) in &*self.acknowledged.lock().unwrap() {
            let is_due = record.0 == log && *offset < seen.position(log) && self.counts(&record.1);
            assert!(!is_due || seen.values.contains(record), "{record:?} is missing");
        }
    }
}

/// The records that a consumer with `read_committed` gives to its application.
fn visible(read: &Records) -> Vec<(i64, String)> {
    let mut aborted = read.aborted.iter().peekable();
    let (mut producers, mut visible) = (BTreeSet::new(), Vec::new());
    for bytes in &read.batches {
        for batch in iter_batches(bytes).map(Result::unwrap) {
            while let Some(begun) =
                aborted.next_if(|aborted| aborted.first_offset <= batch.last_offset())
            {
                producers.insert(begun.producer_id);
            }
            if batch.is_control() {
                if batch.marker() == Some(Marker::Abort) {
                    producers.remove(&batch.producer_id());
                }
            } else if !batch.is_transactional() || !producers.contains(&batch.producer_id()) {
                visible.extend(records(&[batch.bytes().to_vec().into()]));
            }
        }
    }
    visible
}

fn value(producer: i64, number: u32, n: u32) -> String {
    format!("t {producer} {number} {n}")
}

/// The transaction of a value, by producer and number.
fn transaction(value: &str) -> Option<(i64, u32)> {
    let mut words = value.strip_prefix("t ")?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

const TRANSACTIONS: u32 = 5;
