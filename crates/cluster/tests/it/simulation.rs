//! Random lives of a cluster, from printed seeds.
//!
//! Producers send through two brokers, and send again what was not answered, perhaps through the
//! other. Readers, a compactor and two collectors run meanwhile. Requests to the store and to the
//! sequencer are lost, answered late, or take effect after they were given up. No offset ever
//! changes its record. Owners of the log of frames come and go, and end transactions; readers of
//! what is committed see all of that and nothing else. In some lives producers pause for longer
//! than logs remember them. Then everything calms down: each
//! acknowledged record is there once, at its offset, and the store holds only what can be read.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.

mod owners;
mod transactions;

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_cluster::sorter::{SortOptions, Sorted, sort};
use moldau_cluster::{
    Error, Find, LogId, Memory, ObjectKey, Outcome, Reader, ReaderOptions, Sequencer, Topic,
    Writer, WriterOptions, garbage,
};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::batches::{batch, records};
use crate::faults::{Faults, FaultySequencer, FaultyStore, pass};

use self::owners::Owners;

/// Offset of each acknowledged record.
type Acknowledged = Arc<Mutex<BTreeMap<(LogId, String), i64>>>;

#[test]
fn random_lives_of_a_cluster_lose_no_acknowledged_record() {
    let (seeds, counts) = (seeds(), Arc::new(Counts::default()));
    for seed in seeds.clone() {
        let life = catch_unwind(AssertUnwindSafe(|| {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async { Life::start(seed, counts.clone()).await.run().await });
        }));
        assert!(life.is_ok(), "failed with MOLDAU_SIMULATION_SEED={seed}");
    }
    let least = u32::try_from(seeds.count() / 2).unwrap();
    let Counts { sorted, takeovers, snapshots, forgotten } = &*counts;
    for (what, count) in [
        ("sorted objects", sorted),
        ("takeovers", takeovers),
        ("snapshots", snapshots),
        ("forgotten producers", forgotten),
    ] {
        let count = count.load(Ordering::Relaxed);
        assert!(count >= least, "{count} {what}: many lives have some");
    }
}

/// What happened in all lives.
#[derive(Default)]
struct Counts {
    sorted: AtomicU32,
    takeovers: AtomicU32,
    snapshots: AtomicU32,
    forgotten: AtomicU32,
}

struct Life {
    seed: u64,
    faults: Faults,
    memory: Memory,
    store: Arc<FaultyStore>,
    sequencer: Arc<FaultySequencer>,
    writers: Arc<[Writer; 2]>,
    owners: Owners,
    acknowledged: Acknowledged,
    counts: Arc<Counts>,
}

impl Life {
    /// Must be called within the runtime.
    async fn start(seed: u64, counts: Arc<Counts>) -> Self {
        let faults = Faults::new(seed);
        let memory = Memory::default();
        let store = Arc::new(FaultyStore::new(faults.clone()));
        let sequencer = Arc::new(FaultySequencer::new(faults.clone(), memory.clone()));
        let topic = Topic { id: Uuid::nil(), name: "topic".into(), partitions: LOGS };
        memory.create_topic(&topic).await.unwrap();
        let options = WriterOptions {
            object_bytes: 600,
            objects_in_flight: 3,
            timeout: Duration::from_secs(10),
            ..WriterOptions::default()
        };
        let writer =
            || Writer::start(sequencer.clone(), store.clone(), Arc::default(), options).unwrap();
        let writers = Arc::new([writer(), writer()]);
        let owners = Owners::new(faults.clone(), memory.clone(), writers.clone());
        let acknowledged = Arc::default();
        Self { seed, faults, memory, store, sequencer, writers, owners, acknowledged, counts }
    }

    async fn run(self) {
        let plain = (0..PRODUCERS).map(|id| self.producer(id));
        let transactional = (PRODUCERS..2 * PRODUCERS).map(|id| self.transactions(id));
        let producers: Vec<_> = plain.chain(transactional).collect();
        let sorters = [self.sorter(), self.sorter()];
        let brokers = (1..).zip([2, 3]).map(|(id, salt)| self.owners.broker(id, self.seed ^ salt));
        let readers = [self.reader(), self.committed_reader()];
        let others = [self.collector(), self.collector(), self.clock(), self.expirer()];
        let others: Vec<_> =
            others.into_iter().chain(readers).chain(sorters).chain(brokers).collect();
        for producer in producers {
            producer.await.unwrap();
        }
        self.faults.end();
        for other in &others {
            other.abort();
        }
        for other in others {
            // Cancelled, unless it found something wrong.
            assert!(other.await.is_err_and(|error| error.is_cancelled()), "a task failed");
        }
        // What is late comes now.
        pass(Duration::from_secs(60)).await;
        self.verify().await;
        self.verify_committed().await;
        let (takeovers, snapshots) = self.owners.counts();
        self.counts.takeovers.fetch_add(takeovers, Ordering::Relaxed);
        self.counts.snapshots.fetch_add(snapshots, Ordering::Relaxed);
    }

    fn producer(&self, id: i64) -> JoinHandle<()> {
        let (writers, acknowledged) = (self.writers.clone(), self.acknowledged.clone());
        let mut random = fastrand::Rng::with_seed(self.seed ^ (id.cast_unsigned() << 32));
        let pause = self.long_pause();
        tokio::spawn(async move {
            let log = log(random.i32(0..LOGS));
            let mut sequence = 0;
            for number in 0..BATCHES {
                let sent = batch(log, id, sequence, random.i32(1..4));
                let base_offset = loop {
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
                        ) => {
                            break *base_offset;
                        }
                        Err(error) if error.is_retriable() => {}
                        other => panic!("{other:?}"),
                    }
                };
                for (offset, value) in (base_offset..).zip(sequence..sequence + sent.offsets_count)
                {
                    let value = format!("{id} {value}");
                    acknowledged.lock().unwrap().insert((log, value), offset);
                }
                sequence += sent.offsets_count;
                pass(Duration::from_millis(random.u64(..2_000))).await;
                if number == BATCHES / 2 {
                    pass(pause).await;
                }
            }
        })
    }

    /// Reads everything again and again.
    fn reader(&self) -> JoinHandle<()> {
        let options =
            ReaderOptions { cache_bytes: 4_000, block_bytes: 256, ..ReaderOptions::default() };
        let reader = Reader::new(self.sequencer.clone(), self.store.clone(), options);
        tokio::spawn(async move {
            let mut seen: BTreeMap<(i32, i64), String> = BTreeMap::new();
            loop {
                for partition in 0..LOGS {
                    let read = read_all(&reader, log(partition)).await;
                    for (offset, value) in read.unwrap_or_default() {
                        let before = seen.insert((partition, offset), value.clone());
                        assert!(before.is_none_or(|before| before == value), "{offset} changed");
                    }
                }
                pass(Duration::from_millis(500)).await;
            }
        })
    }

    /// Sorts some objects at a time; what is damaged or refused is a fault of ours.
    fn sorter(&self) -> JoinHandle<()> {
        let (sequencer, store) = (self.sequencer.clone(), self.store.clone());
        let (mut random, counts) = (fastrand::Rng::with_seed(self.seed + 1), self.counts.clone());
        tokio::spawn(async move {
            loop {
                pass(Duration::from_millis(random.u64(..5_000))).await;
                let options = SortOptions {
                    objects_min: random.usize(1..4),
                    objects_max: random.usize(1..8),
                    object_bytes: 4_000,
                    extent_bytes: 600,
                    timeout: Duration::from_secs(10),
                };
                match sort(&*sequencer, &*store, options).await {
                    Ok(Sorted::Swapped { .. }) => {
                        counts.sorted.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(_) => {}
                    Err(error) => assert!(error.is_retriable(), "{error}"),
                }
            }
        })
    }

    fn collector(&self) -> JoinHandle<()> {
        let (sequencer, store) = (self.sequencer.clone(), self.store.clone());
        tokio::spawn(async move {
            loop {
                // What fails is tried in the next round.
                drop(garbage::collect(&*sequencer, &*store).await);
                drop(garbage::collect_orphans(&*sequencer, &*store, None, Duration::ZERO).await);
                pass(Duration::from_secs(7)).await;
            }
        })
    }

    /// How long each producer is silent once.
    fn long_pause(&self) -> Duration {
        match self.seed.is_multiple_of(4) {
            true => 2 * REMEMBERED,
            false => Duration::ZERO,
        }
    }

    /// The sequencer's own time.
    fn clock(&self) -> JoinHandle<()> {
        let memory = self.memory.clone();
        tokio::spawn(async move {
            loop {
                pass(Duration::from_secs(1)).await;
                memory.pass(Duration::from_secs(1));
            }
        })
    }

    fn expirer(&self) -> JoinHandle<()> {
        let (sequencer, counts) = (self.sequencer.clone(), self.counts.clone());
        tokio::spawn(async move {
            let mut after = None;
            loop {
                // Without an answer it looks at the same ones again.
                if let Ok(expired) = sequencer.expire_producers(after, REMEMBERED, 3).await {
                    after = expired.last;
                    let forgotten = u32::try_from(expired.forgotten).unwrap();
                    counts.forgotten.fetch_add(forgotten, Ordering::Relaxed);
                }
                pass(Duration::from_secs(5)).await;
            }
        })
    }

    async fn verify(&self) {
        let reader =
            Reader::new(self.sequencer.clone(), self.store.clone(), ReaderOptions::default());
        let mut offsets = BTreeMap::new();
        for partition in 0..LOGS {
            let log = log(partition);
            for (i, (offset, value)) in (0..).zip(read_all(&reader, log).await.unwrap()) {
                assert_eq!(offset, i, "offsets have no gap");
                let is_marker = value.starts_with('\0');
                let before = offsets.insert((log, value), offset);
                assert!(is_marker || before.is_none(), "a record is there twice");
            }
        }
        for (record, offset) in &*self.acknowledged.lock().unwrap() {
            assert_eq!(offsets.get(record), Some(offset), "{record:?}");
        }
        garbage::collect(&*self.sequencer, &*self.store).await.unwrap();
        garbage::collect_orphans(&*self.sequencer, &*self.store, None, Duration::ZERO)
            .await
            .unwrap();
        let mut live = Vec::new();
        for partition in 0..LOGS {
            let find = Find { log: log(partition), offset: 0, extents_max: 1_000 };
            let found = self.memory.find(&[find]).await.unwrap().remove(0).unwrap();
            live.extend(found.extents.into_iter().map(|extent| extent.object));
        }
        live.sort();
        live.dedup();
        let kept: Vec<ObjectKey> = self.store.objects.lock().unwrap().keys().copied().collect();
        assert_eq!(kept, live, "the store holds what can be read");
    }
}

async fn read_all(
    reader: &Reader<FaultySequencer, FaultyStore>,
    log: LogId,
) -> Result<Vec<(i64, String)>, Error> {
    let mut all: Vec<(i64, String)> = Vec::new();
    loop {
        let next = all.last().map_or(0, |(offset, _)| offset + 1);
        match reader.read(log, next, 300).await {
            Ok(read) if read.batches.is_empty() => return Ok(all),
            Ok(read) => all.extend(records(&read.batches)),
            Err(error) => {
                assert!(error.is_retriable(), "{error}");
                return Err(error);
            }
        }
    }
}

fn log(partition: i32) -> LogId {
    LogId { topic: Uuid::nil(), partition }
}

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let from = number("MOLDAU_SIMULATION_SEED");
    let count = number("MOLDAU_SIMULATION_COUNT").unwrap_or(if from.is_some() { 1 } else { LIVES });
    let from = from.unwrap_or(0);
    from..from + count
}

const LIVES: u64 = 100;
const LOGS: i32 = 2;
const PRODUCERS: i64 = 4;
const BATCHES: u32 = 8;
/// Longer than any request is late: a writer gives up after 10 s, and what it has asked takes
/// effect in 50 s at the latest.
const REMEMBERED: Duration = Duration::from_secs(100);
