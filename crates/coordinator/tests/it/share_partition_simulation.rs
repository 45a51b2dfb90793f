//! Random consumers of one share partition, from printed seeds.
//!
//! The log has batches that are not for delivery, and gaps; its start moves. Members take records
//! in both modes, accept, release, reject, renew and skip them, hold them too long, and leave. The
//! broker crashes, loses what was not durable, and comes back from its records or from a snapshot.
//! Half of the groups have dead letters, durable before their records are archived.
//! No record that is done with comes again, none has two holders, none comes too often, and in the
//! end every record was accepted, rejected, or delivered as often as it may be, and of a group with
//! dead letters every record that was given up has one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fastrand::Rng;
use moldau_coordinator::share_partitions::{
    Acknowledgement, AcquireLimits, AcquireMode, Acquired, Cause, DeadLetters, DeliverySettings,
    Fetched, FetchedBatch, ShareKey, ShareRecord, Shares,
};
use moldau_protocol::Uuid;

use crate::seeds;

const SCHEDULES: u64 = 300;
const STEPS: usize = 400;
const MEMBERS: usize = 4;
const LOCK_MS: i64 = 1_000;

#[test]
fn random_consumers_share_a_partition_without_losing_records() {
    let (count, runs) = seeds::run(SCHEDULES, |seed| Simulation::new(seed).run());
    let mut seen = Seen::default();
    for run in runs {
        seen.accepted += run.accepted;
        seen.spent += run.spent;
        seen.refused += run.refused;
        seen.again += run.again;
        seen.restarts += run.restarts;
        seen.buried += run.buried;
        seen.repeated += run.repeated;
    }
    // A simulation in which nothing happens would keep every promise.
    if count >= SCHEDULES {
        assert!(seen.accepted > 50 * count, "{seen:?}");
        assert!(seen.spent > count, "{seen:?}");
        assert!(seen.refused > count, "{seen:?}");
        assert!(seen.again > 50 * count, "{seen:?}");
        assert!(seen.restarts > count, "{seen:?}");
        assert!(seen.buried > count, "{seen:?}");
        assert!(seen.repeated > count / 10, "{seen:?}");
    }
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    accepted: u64,
    spent: u64,
    refused: u64,
    again: u64,
    restarts: u64,
    buried: u64,
    repeated: u64,
}

/// How a record ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Accepted,
    Rejected,
    Spent,
    /// A gap.
    Missing,
}

/// Who holds a record.
#[derive(Clone, Copy, Debug)]
struct Held {
    member: usize,
    until_ms: i64,
    deliveries: i16,
}

struct Simulation {
    rng: Rng,
    seen: Seen,
    settings: DeliverySettings,
    now_ms: i64,
    log: Vec<FetchedBatch>,
    log_start: i64,
    log_end: i64,
    shares: Shares,
    frames: Vec<Vec<u8>>,
    /// Frames before this survive a crash, and their answers are out.
    durable: usize,
    held: HashMap<i64, Held>,
    /// With the frame that says so.
    ended: BTreeMap<i64, (usize, End)>,
    /// Dead letters that are durable.
    letters: HashMap<i64, Cause>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let settings = DeliverySettings {
            lock_duration_ms: LOCK_MS,
            deliveries_max: rng.i16(2..=5),
            locks_max: rng.i64(10..60),
            has_dead_letters: rng.bool(),
        };
        let mut simulation = Self {
            rng,
            seen: Seen::default(),
            settings,
            now_ms: 0,
            log: Vec::new(),
            log_start: 0,
            log_end: 0,
            shares: Shares::default(),
            frames: Vec::new(),
            durable: 0,
            held: HashMap::new(),
            ended: BTreeMap::new(),
            letters: HashMap::new(),
        };
        let placed = simulation.shares.place(key(), 0, true).expect("there is room");
        simulation.write(placed);
        simulation.durable = 1;
        simulation
    }

    fn run(mut self) -> Seen {
        for _ in 0..STEPS {
            self.now_ms += self.rng.i64(0..LOCK_MS / 10);
            self.pass_time();
            let member = self.rng.usize(..MEMBERS);
            match self.rng.u8(..40) {
                0 => self.restart(),
                1 => self.now_ms += self.rng.i64(0..2 * LOCK_MS),
                2 => self.leave(member),
                3 => self.trim(),
                9 => self.bury(),
                8 if self.rng.bool() => self.checkpoint(),
                4..8 => self.durable = self.frames.len(),
                8..14 => self.produce(),
                14..24 => drop(self.fetch(member)),
                _ => self.acknowledge(member),
            }
            self.check();
        }
        self.drain();
        self.seen
    }

    fn produce(&mut self) {
        // What compaction removed.
        if self.rng.u8(..8) == 0 {
            self.log_end += self.rng.i64(1..6);
        }
        let first = self.log_end;
        self.log_end += self.rng.i64(1..25);
        let is_delivered = self.rng.u8(..6) != 0;
        self.log.push(FetchedBatch { first, last: self.log_end - 1, is_delivered });
    }

    fn trim(&mut self) {
        if self.rng.u8(..3) == 0 {
            self.log_start = self.rng.i64(self.log_start..=self.log_end);
            self.log.retain(|batch| batch.last >= self.log_start);
            self.tell_start();
        }
    }

    /// Tells the partition where the log begins. Records that wait for their dead letters keep
    /// those behind them.
    fn tell_start(&mut self) {
        self.shares.log_starts_at(&key(), self.log_start);
        let start = self.shares.get(&key()).expect("it was placed").start();
        self.held.retain(|offset, _| *offset >= start);
    }

    fn fetch(&mut self, member: usize) -> Vec<Acquired> {
        self.tell_start();
        let partition = self.shares.get(&key()).expect("it was placed");
        let Some(offset) = partition.next_offset(&self.settings) else { return Vec::new() };
        let from = self.log.iter().filter(|batch| batch.last >= offset);
        let batches: Vec<_> = from.copied().take(self.rng.usize(1..5)).collect();
        let limits = AcquireLimits {
            mode: if self.rng.bool() {
                AcquireMode::BatchOptimized
            } else {
                AcquireMode::RecordLimit
            },
            records_max: self.rng.i64(1..40),
            batch_size: self.rng.i64(1..40),
        };
        let fetched = Fetched { offset, batches: &batches };
        let acquired = self.shares.acquire(
            self.now_ms,
            &key(),
            &name(member),
            &fetched,
            limits,
            &self.settings,
        );
        let records: i64 = acquired.iter().map(|it| it.last - it.first + 1).sum();
        assert!(limits.mode == AcquireMode::BatchOptimized || records <= limits.records_max);
        for range in &acquired {
            for offset in range.first..=range.last {
                self.delivered(member, offset, range.deliveries);
            }
        }
        acquired
    }

    fn delivered(&mut self, member: usize, offset: i64, deliveries: i16) {
        let batch = self.log.iter().find(|it| (it.first..=it.last).contains(&offset));
        assert!(batch.is_some_and(|batch| batch.is_delivered), "{offset} is not for delivery");
        assert!(!self.ended.contains_key(&offset), "{offset} came again after its end");
        assert!((1..=self.settings.deliveries_max).contains(&deliveries), "{offset}: {deliveries}");
        self.seen.again += u64::from(deliveries > 1);
        let held = Held { member, until_ms: self.now_ms + LOCK_MS, deliveries };
        assert!(self.held.insert(offset, held).is_none(), "{offset} has two holders");
    }

    /// Says something of a range, most often of one that the member holds.
    fn acknowledge(&mut self, member: usize) {
        let mut mine: Vec<i64> =
            self.held.iter().filter(|(_, held)| held.member == member).map(|(at, _)| *at).collect();
        mine.sort_unstable();
        let Some(first) = mine.get(self.rng.usize(..mine.len().max(1))).copied() else { return };
        let length = self.rng.i64(1..30);
        let mut last = first;
        while last - first < length && mine.binary_search(&(last + 1)).is_ok() {
            last += 1;
        }
        if self.rng.u8(..10) == 0 {
            last += self.rng.i64(1..4);
        }
        let count = usize::try_from(last - first + 1).expect("it is small");
        let kinds: Vec<i8> = match self.rng.bool() {
            true => vec![self.kind()],
            false => (0..count).map(|_| self.kind()).collect(),
        };
        let start = self.shares.get(&key()).expect("it was placed").start();
        let is_held = |offset: i64| {
            offset < start || self.held.get(&offset).is_some_and(|held| held.member == member)
        };
        let is_sound = (first..=last).all(is_held);
        let said = [Acknowledgement { first, last, kinds: kinds.clone() }];
        let decided = self.shares.acknowledge(&key(), &name(member), &said, &self.settings);
        assert_eq!(decided.is_ok(), is_sound, "{said:?}");
        let Ok(decided) = decided else {
            self.seen.refused += 1;
            return;
        };
        self.shares.renew(self.now_ms, &key(), &decided.renewed, &self.settings);
        let frame = self.frames.len();
        if let Some(record) = decided.record {
            self.write(record);
        }
        for (offset, at) in (first..=last).zip(0usize..) {
            let kind = *kinds.get(at).unwrap_or(&kinds[0]);
            self.said(frame, offset, kind);
        }
    }

    fn kind(&mut self) -> i8 {
        *self.rng.choice(&[0, 1, 1, 1, 1, 2, 2, 3, 4]).expect("there are some")
    }

    fn said(&mut self, frame: usize, offset: i64, kind: i8) {
        let Some(held) = self.held.remove(&offset) else { return };
        let end = match kind {
            1 => End::Accepted,
            2 if held.deliveries < self.settings.deliveries_max => return,
            0 => End::Missing,
            2 => End::Spent,
            4 => {
                let until_ms = self.now_ms + LOCK_MS;
                self.held.insert(offset, Held { until_ms, ..held });
                return;
            }
            _ => End::Rejected,
        };
        self.ended.insert(offset, (frame, end));
        self.seen.accepted += u64::from(end == End::Accepted);
        self.seen.spent += u64::from(end == End::Spent);
    }

    /// Writes some dead letters, and archives their records if there is no crash between the two.
    fn bury(&mut self) {
        let Some((found, letters)) = self.shares.next_burial(None) else { return };
        assert_eq!(found, key());
        assert!(self.settings.has_dead_letters, "{letters:?}");
        // They lie behind what says that they are due.
        self.durable = self.frames.len();
        let last = self.rng.i64(letters.first..=letters.last);
        for offset in letters.first..=last {
            let repeated = self.letters.insert(offset, letters.cause);
            assert!(repeated.is_none_or(|cause| cause == letters.cause), "{offset}: {letters:?}");
            self.seen.repeated += u64::from(repeated.is_some());
        }
        self.seen.buried += 1;
        if self.rng.u8(..4) == 0 {
            return self.restart();
        }
        let buried = DeadLetters { last, ..letters };
        let record = self.shares.buried(&key(), &buried).expect("they wait");
        self.write(record);
    }

    fn leave(&mut self, member: usize) {
        let released = self.shares.release(&key(), &name(member), &self.settings);
        assert_eq!(released.is_some(), self.held.values().any(|held| held.member == member));
        if let Some(record) = released {
            self.write(record);
        }
        self.take_back(|held| held.member == member);
    }

    fn pass_time(&mut self) {
        while let Some(due) = self.shares.due(self.now_ms) {
            if let Some(record) = self.shares.expire(self.now_ms, &due, &self.settings) {
                self.write(record);
            }
            self.shares.checked(&due);
        }
        let now_ms = self.now_ms;
        self.take_back(|held| held.until_ms <= now_ms);
    }

    /// The last record that was written takes these from their holders.
    fn take_back(&mut self, is_over: impl Fn(&Held) -> bool) {
        let frame = self.frames.len().saturating_sub(1);
        let over = self.held.iter().filter(|(_, held)| is_over(held));
        let spent = over.filter(|(_, held)| held.deliveries == self.settings.deliveries_max);
        let spent: Vec<i64> = spent.map(|(offset, _)| *offset).collect();
        self.seen.spent += u64::try_from(spent.len()).expect("it is small");
        self.ended.extend(spent.into_iter().map(|offset| (offset, (frame, End::Spent))));
        self.held.retain(|_, held| !is_over(held));
    }

    /// Writes a record, and applies it.
    fn write(&mut self, record: ShareRecord) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(ShareRecord::decode(&bytes).as_ref(), Ok(&record));
        self.frames.push(bytes);
        self.shares.apply(record);
    }

    fn restart(&mut self) {
        self.seen.restarts += 1;
        let kept = self.rng.usize(self.durable..=self.frames.len());
        self.frames.truncate(kept);
        self.durable = kept;
        self.ended.retain(|_, (frame, _)| *frame < kept);
        self.held.clear();
        let mut shares = Shares::default();
        for frame in &self.frames {
            shares.apply(ShareRecord::decode(frame).expect("it was written"));
        }
        shares.log_starts_at(&key(), self.log_start);
        self.shares = shares;
    }

    /// Replaces the records by those of the state, in which deliveries are under way.
    fn checkpoint(&mut self) {
        self.frames.clear();
        for record in self.shares.snapshot() {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.frames.push(bytes);
        }
        self.durable = self.frames.len();
        self.ended.values_mut().for_each(|(frame, _)| *frame = 0);
    }

    fn check(&self) {
        let partition = self.shares.get(&key()).expect("it was placed");
        let in_flight = usize::try_from(2 * self.settings.locks_max).expect("it is small");
        assert!(partition.entries() <= in_flight + 1, "{partition:?}");
        for offset in self.held.keys() {
            assert!((partition.start()..partition.end()).contains(offset));
        }
    }

    /// Accepts all that is left.
    fn drain(&mut self) {
        loop {
            self.now_ms += LOCK_MS;
            self.pass_time();
            while self.shares.has_burials() {
                self.bury();
                self.shares.next_burial(None);
            }
            let before = self.shares.get(&key()).expect("it was placed").clone();
            for range in self.fetch(0) {
                let (first, last) = (range.first, range.last);
                let said = [Acknowledgement { first, last, kinds: vec![1] }];
                let decided = self.shares.acknowledge(&key(), &name(0), &said, &self.settings);
                let frame = self.frames.len();
                self.write(decided.expect("it is held").record.expect("it changes something"));
                (first..=last).for_each(|offset| self.said(frame, offset, 1));
            }
            let partition = self.shares.get(&key()).expect("it was placed");
            if *partition == before {
                assert_eq!(partition.next_offset(&self.settings), Some(partition.end()));
                break;
            }
        }
        let partition = self.shares.get(&key()).expect("it was placed");
        assert_eq!(partition.start(), partition.end(), "something is left: {partition:?}");
        let given_up = self.ended.iter().filter_map(|(offset, (_, end))| match end {
            End::Accepted | End::Missing => None,
            End::Rejected => Some((*offset, Cause::Rejected)),
            End::Spent => Some((*offset, Cause::Spent)),
        });
        for (offset, cause) in given_up.filter(|_| self.settings.has_dead_letters) {
            assert_eq!(self.letters.get(&offset), Some(&cause), "{offset} is lost");
        }
        for batch in self.log.iter().filter(|batch| batch.is_delivered) {
            for offset in batch.first.max(self.log_start)..=batch.last {
                assert!(self.ended.contains_key(&offset), "{offset} has no end");
            }
        }
    }
}

fn key() -> ShareKey {
    ShareKey { group_id: "group".into(), topic_id: Uuid::from_bytes([7; 16]), partition: 3 }
}

fn name(member: usize) -> Arc<str> {
    format!("member-{member}").into()
}
