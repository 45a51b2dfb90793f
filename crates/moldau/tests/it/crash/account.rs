//! One topic under kills: what was sent, what was acknowledged, what a reader may find.
//!
//! Each partition has one idempotent producer, so that its record number n must stand at offset n
//! and nowhere else. Key, value and whether there is a value follow from the partition and the
//! number: what a reader finds is judged at once, and nothing of it has to be kept.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use moldau_client::{
    Cluster, Delivery, Error, PartitionHandle, Producer, ProducerOptions, Record, TopicPartition,
};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::ledger::{number, write_value};
use crate::traffic::{PATIENCE, now_ms, soon};

/// Keys of a partition of a compacted topic: few, so that most records are soon superseded.
const KEYS: u64 = 16;

/// One record in so many has no value.
const TOMBSTONE_SHARE: u64 = 8;

/// Most records sent to one partition before another has its turn.
const RUN_MAX: u64 = 6;

/// Bytes under way: several batches for each partition, so that a kill always meets some.
const BUFFER_BYTES: usize = 512 << 10;

/// Time between the turns of a producer: the data shall be much, but not all that a disk takes.
const TICK: Duration = Duration::from_millis(5);

/// Problems kept: the first tell what went wrong, a thousand of one kind tell no more.
const PROBLEMS_MAX: usize = 20;

/// What is wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Problems(Arc<Mutex<Vec<String>>>);

impl Problems {
    pub(super) fn add(&self, problem: String) {
        let mut problems = self.0.lock().expect("no panic under the lock");
        if problems.len() < PROBLEMS_MAX {
            problems.push(problem);
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic under the lock").clone()
    }
}

/// A topic and how it is written.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) topic: String,
    pub(super) partitions: i32,
    pub(super) configs: Vec<(&'static str, &'static str)>,
    /// Whether the oldest records may leave.
    pub(super) deletes: bool,
    /// Whether records leave whose key has a younger one.
    pub(super) compacts: bool,
    pub(super) value_bytes: Range<usize>,
    /// Runs of records that a producer sends at a time.
    pub(super) runs_per_tick: u32,
}

/// What is known of a topic.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) plan: Plan,
    /// In the records of partition 0; the other partitions follow. No two topics share a stamp,
    /// not even if they have the name in common.
    stamp: u32,
    problems: Problems,
    /// Guards what producer, readers and those who delete know.
    partitions: Mutex<Vec<Known>>,
}

/// What is known of a partition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) sent: i64,
    /// Records that were acknowledged.
    pub(super) acknowledged: i64,
    /// Offset after the last of them.
    pub(super) acknowledged_end: i64,
    /// Offset before which all was deleted and acknowledged to be.
    pub(super) start: i64,
    /// How far a reader came.
    pub(super) read_to: i64,
}

impl Account {
    pub(super) fn new(plan: Plan, stamp: u32, problems: &Problems) -> Arc<Self> {
        let partitions = vec![Known::default(); usize::try_from(plan.partitions).unwrap()];
        let problems = problems.clone();
        Arc::new(Self { plan, stamp, problems, partitions: Mutex::new(partitions) })
    }

    pub(super) fn known(&self) -> Vec<Known> {
        self.lock().clone()
    }

    pub(super) fn known_of(&self, partition: i32) -> Known {
        self.lock()[usize::try_from(partition).unwrap()]
    }

    pub(super) fn note(&self, partition: i32, note: impl FnOnce(&mut Known)) {
        note(&mut self.lock()[usize::try_from(partition).unwrap()]);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.partitions.lock().expect("no panic under the lock")
    }

    pub(super) fn topic_partitions(&self) -> impl Iterator<Item = TopicPartition> {
        let topic: Arc<str> = self.plan.topic.as_str().into();
        let of = move |partition| TopicPartition { topic: Arc::clone(&topic), partition };
        (0..self.plan.partitions).map(of)
    }

    pub(super) fn problem(&self, partition: i32, problem: &str) {
        self.problems.add(format!("{}-{partition}: {problem}", self.plan.topic));
    }

    fn stamp(&self, partition: i32) -> u32 {
        self.stamp + u32::try_from(partition).unwrap()
    }

    /// Whether this is the record that was sent to stand at this offset.
    pub(super) fn is_record(
        &self,
        partition: i32,
        offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> bool {
        let stamp = self.stamp(partition);
        let Ok(expected) = u64::try_from(offset) else { return false };
        let is_value = match value {
            Some(value) => !self.is_tombstone(offset) && number(stamp, value) == Some(expected),
            None => self.is_tombstone(offset),
        };
        is_value && key == self.key(partition, offset).as_ref().map(<[u8; 8]>::as_slice)
    }

    fn key(&self, partition: i32, offset: i64) -> Option<[u8; 8]> {
        let key = u64::from(self.stamp(partition)) << 32 | key_number(offset);
        self.plan.compacts.then(|| key.to_be_bytes())
    }

    fn is_tombstone(&self, offset: i64) -> bool {
        self.plan.compacts && (hash(offset) >> 16).is_multiple_of(TOMBSTONE_SHARE)
    }

    /// Says what is wrong if these are the last records that were found of each key in a compacted
    /// partition that has these offsets. A tombstone may have left, but only after all that it
    /// stands for.
    pub(super) fn check_keys(&self, partition: i32, range: Range<i64>, found: &HashMap<u64, i64>) {
        for key in 0..KEYS {
            let mut offsets = range.clone().rev();
            let Some(last) = offsets.find(|offset| key_number(*offset) == key) else { continue };
            let found = found.get(&key).copied();
            if found != Some(last) && !(found.is_none() && self.is_tombstone(last)) {
                let what = if self.is_tombstone(last) { "deleted" } else { "written" };
                let problem = format!("key {key} was {what} at {last}, the last is {found:?}");
                self.problem(partition, &problem);
            }
        }
    }

    fn note_delivery(&self, delivery: &Delivery<'_>) {
        let partition = delivery.partition;
        let Some(first) = delivery.tokens.first().copied() else { return };
        let count = i64::try_from(delivery.tokens.len()).unwrap();
        let first = i64::try_from(first).unwrap();
        if let Some(error) = delivery.error {
            self.problem(partition, &format!("{count} from {first} not delivered: {error}"));
            return;
        }
        if let Some(base_offset) = delivery.base_offset.filter(|base| *base != first) {
            self.problem(partition, &format!("{count} from {first} stand at {base_offset}"));
        }
        self.note(partition, |known| {
            known.acknowledged += count;
            known.acknowledged_end = known.acknowledged_end.max(first + count);
        });
    }
}

/// Which of the keys a record has.
pub(super) fn key_number(offset: i64) -> u64 {
    (hash(offset) >> 40) % KEYS
}

/// Spreads what follows from a number (Fibonacci hashing).
fn hash(offset: i64) -> u64 {
    offset.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Sends the records of a topic.
pub(super) struct Writer {
    pub(super) account: Arc<Account>,
    producer: Producer,
    partitions: Vec<PartitionHandle>,
    random: fastrand::Rng,
    value: Vec<u8>,
}

impl Writer {
    /// Starts to write to a topic that exists. What is acknowledged counts as progress.
    pub(super) async fn start(
        cluster: &Cluster,
        account: &Arc<Account>,
        progress: &watch::Sender<u64>,
        random: fastrand::Rng,
    ) -> Self {
        let (noting, progress) = (Arc::clone(account), progress.clone());
        let sink = move |delivery: &Delivery<'_>| {
            noting.note_delivery(delivery);
            progress.send_modify(|count| *count += delivery.tokens.len() as u64);
        };
        let options = ProducerOptions {
            buffer_bytes_max: BUFFER_BYTES,
            delivery_timeout: PATIENCE,
            ..ProducerOptions::default()
        };
        let producer = soon("a producer id", Producer::start(cluster, options, sink)).await;
        let producer = producer.unwrap();
        let mut partitions = Vec::new();
        for partition in 0..account.plan.partitions {
            let handle = soon("a topic", producer.partition(&account.plan.topic, partition)).await;
            partitions.push(handle.unwrap());
        }
        Self { account: Arc::clone(account), producer, partitions, random, value: Vec::new() }
    }

    /// Sends a few records to one partition.
    pub(super) async fn send_run(&mut self) {
        let partition = self.random.i32(0..self.account.plan.partitions);
        for _ in 0..self.random.u64(1..=RUN_MAX) {
            self.send(partition).await;
        }
    }

    async fn send(&mut self, partition: i32) {
        let mut offset = 0;
        self.account.note(partition, |known| {
            offset = known.sent;
            known.sent += 1;
        });
        let token = u64::try_from(offset).unwrap();
        let length = self.random.usize(self.account.plan.value_bytes.clone());
        write_value(&mut self.value, self.account.stamp(partition), token, length);
        let key = self.account.key(partition, offset);
        let record = Record {
            token,
            timestamp: now_ms(),
            key: key.as_ref().map(<[u8; 8]>::as_slice),
            value: (!self.account.is_tombstone(offset)).then_some(&self.value),
            headers: &[],
        };
        let handle = self.partitions[usize::try_from(partition).unwrap()];
        while let Err(error) = self.producer.send(handle, &record) {
            assert!(matches!(error, Error::BufferFull), "{error}");
            // Room for the record and its framing.
            let room = self.producer.room(length + 128);
            soon("room in the buffer", room).await;
        }
    }

    /// Sends at its pace until told to stop, then waits until everything has an outcome.
    pub(super) async fn send_until(mut self, stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !*stop.borrow() {
            ticks.tick().await;
            for _ in 0..self.account.plan.runs_per_tick {
                self.send_run().await;
            }
        }
        self.flush().await;
    }

    /// Waits until everything has an outcome.
    pub(super) async fn flush(&self) {
        soon("a flush", self.producer.flush()).await;
    }
}

mod tests {
    use super::*;

    fn table(stamp: u32, problems: &Problems) -> Arc<Account> {
        let plan = Plan {
            topic: "table".to_owned(),
            partitions: 2,
            configs: Vec::new(),
            deletes: false,
            compacts: true,
            value_bytes: 20..30,
            runs_per_tick: 1,
        };
        Account::new(plan, stamp, problems)
    }

    #[test]
    fn record_is_identified_by_topic_partition_and_offset() {
        let account = table(7, &Problems::default());
        let (mut value, offset) = (Vec::new(), 5);
        assert!(!account.is_tombstone(offset));
        let key = account.key(1, offset).unwrap();
        write_value(&mut value, account.stamp(1), 5, 30);
        let is_record = |account: &Account, partition, offset, value: Option<&[u8]>| {
            account.is_record(partition, offset, Some(&key), value)
        };
        assert!(is_record(&account, 1, offset, Some(&value)));
        assert!(!is_record(&account, 0, offset, Some(&value)));
        assert!(!is_record(&account, 1, 6, Some(&value)));
        assert!(!is_record(&account, 1, offset, None));
        assert!(!is_record(&table(8, &Problems::default()), 1, offset, Some(&value)));
        assert!(!account.is_record(1, offset, None, Some(&value)));
    }

    #[test]
    fn lost_and_resurrected_keys_are_detected() {
        let (end, problems) = (400, Problems::default());
        let account = table(0, &problems);
        let last: HashMap<_, _> = (0..end).map(|offset| (key_number(offset), offset)).collect();
        let (deleted, written): (Vec<i64>, Vec<_>) =
            last.values().partition(|offset| account.is_tombstone(**offset));
        let check = |found: &HashMap<u64, i64>| {
            account.check_keys(0, 0..end, found);
            problems.all().len()
        };
        assert_eq!(check(&last), 0);
        let mut found = last.clone();
        found.remove(&key_number(deleted[0]));
        assert_eq!(check(&found), 0, "a tombstone may leave");
        let before = |last: i64| {
            let mut offsets = (0..last).rev();
            offsets.find(|offset| key_number(*offset) == key_number(last)).unwrap()
        };
        found.insert(key_number(deleted[0]), before(deleted[0]));
        assert_eq!(check(&found), 1, "a deleted key is back");
        found.insert(key_number(written[0]), before(written[0]));
        assert_eq!(check(&found), 3, "and another has its old value");
        found.remove(&key_number(written[0]));
        assert_eq!(check(&found), 5, "or none");
    }
}
