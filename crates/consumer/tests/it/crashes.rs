//! A worker process that is killed again and again (`kill -9`), in both modes of delivery.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::process::{Child, Command, Stdio};

use moldau_client::{Cluster, FetcherOptions, Isolation, OffsetSpec, TopicPartition};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Ledger, Position, Reader};

use crate::world::{DEADLINE, Seen};

const PARTITIONS: i32 = 3;

/// One worker with its broker.
struct World {
    broker: TestBroker,
    mode: &'static str,
    order: &'static str,
    written: usize,
}

impl World {
    async fn start(mode: &'static str, order: &'static str, kills: usize) -> Self {
        let broker = TestBroker::start();
        broker.create_topic("in", PARTITIONS).await;
        broker.create_topic("out", PARTITIONS).await;
        let written = kills * RECORDS_PER_KILL;
        let values: Vec<String> = (0..written).map(|number| number.to_string()).collect();
        let keys: Vec<String> = (0..written).map(|number| (number % 50).to_string()).collect();
        let records: Vec<_> =
            keys.iter().zip(&values).map(|(key, it)| (Some(key.as_str()), it.as_str())).collect();
        broker.produce_all("in", &records).await;
        Self { broker, mode, order, written }
    }

    fn worker(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crash-worker"));
        let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut worker = started.expect("the worker starts");
        let input = worker.stdin.as_mut().expect("it is a pipe");
        let (address, mode, order) = (self.broker.address(), self.mode, self.order);
        writeln!(input, "{address} copiers {mode} {order}").expect("the worker reads");
        worker
    }

    /// Sum of the ends of the partitions of `out`.
    async fn appended(&self, cluster: &Cluster) -> i64 {
        let partition = |partition| (TopicPartition::of("out", partition), OffsetSpec::Latest);
        let wanted: Vec<_> = (0..PARTITIONS).map(partition).collect();
        let ends = cluster.list_offsets(&wanted).await;
        ends.into_values().map(|end| end.expect("the broker answers").offset).sum()
    }

    /// Kills a worker once it has written some more, at any moment of what follows.
    async fn kill_one(&self, cluster: &Cluster) {
        let until = self.appended(cluster).await + fastrand::i64(1..=RECORDS_UNTIL_KILL_MAX);
        let mut worker = self.worker();
        let write = async {
            while self.appended(cluster).await < until {
                let exited = worker.try_wait().expect("it is a child");
                assert!(exited.is_none(), "{}: the worker ended: {exited:?}", self.mode);
            }
        };
        tokio::time::timeout(DEADLINE, write).await.expect("the worker goes on after a crash");
        worker.kill().expect("it runs");
        worker.wait().expect("it is a child");
    }

    /// The ledgers as they are committed.
    async fn ledgers(&self, cluster: &Cluster) -> Vec<Ledger> {
        let partitions: Vec<_> = (0..PARTITIONS).map(|it| TopicPartition::of("in", it)).collect();
        let committed = cluster.committed_of("copiers", &partitions).await.expect("it answers");
        let ledger = |partition: &TopicPartition| match committed.get(partition) {
            Some(known) => Ledger::restore(known.offset, &known.metadata),
            None => Ledger::at(0),
        };
        partitions.iter().map(ledger).collect()
    }

    async fn finish(&self) {
        let mut worker = self.worker();
        let total = i64::try_from(self.written).expect("some records");
        let mut committed = 0;
        while committed < total {
            let progress = async {
                loop {
                    let now = self.broker.committed("copiers", "in").await;
                    if now > committed {
                        break now;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let progress = tokio::time::timeout(DEADLINE, progress).await;
            committed = progress.expect("the last worker goes on");
        }
        drop(worker.stdin.take());
        assert!(worker.wait().expect("it is a child").success());
    }

    /// Records of a topic, as readers of committed records see them.
    async fn read(&self, topic: &str) -> Vec<Seen> {
        let isolation = Isolation::ReadCommitted;
        let fetcher = FetcherOptions { isolation, ..FetcherOptions::default() };
        let reader = Reader::new([self.broker.address()]).topic(topic, Position::Earliest);
        let mut records = reader.fetcher(fetcher).until_end().open().await.expect("it opens");
        let mut all = Vec::new();
        while let Some(message) = records.next().await {
            all.push(Seen::of(&message.expect("it can be read")));
        }
        all
    }
}

/// Kills workers; returns how often each record may be written, and how often it is.
async fn crash(mode: &'static str, order: &'static str) -> BTreeMap<String, (usize, usize)> {
    let kills = kills();
    let world = World::start(mode, order, kills).await;
    let cluster = world.broker.cluster().await.clone();
    let mut may_be: HashMap<(i32, i64), usize> = HashMap::new();
    let sources = world.read("in").await;
    for _kill in 0..kills {
        world.kill_one(&cluster).await;
        if mode == "exactly-once" {
            // Its offsets cannot be read before the next worker ends its transaction.
            continue;
        }
        let ledgers = world.ledgers(&cluster).await;
        for Seen { partition, offset, .. } in &sources {
            let ledger = &ledgers[usize::try_from(*partition).unwrap()];
            if !ledger.is_done(*offset) {
                *may_be.entry((*partition, *offset)).or_default() += 1;
            }
        }
    }
    world.finish().await;
    let mut counts = BTreeMap::new();
    for Seen { partition, offset, value, .. } in sources {
        let repeats = may_be.get(&(partition, offset)).copied().unwrap_or_default();
        counts.insert(value, (1 + repeats, 0));
    }
    for written in world.read("out").await {
        counts.get_mut(&written.value).expect("a record that was read").1 += 1;
    }
    counts
}

pub(crate) fn kills() -> usize {
    std::env::var("MOLDAU_CRASH_KILLS").map_or(KILLS, |kills| kills.parse().unwrap())
}

async fn exactly_once(order: &'static str) {
    let counts = crash("exactly-once", order).await;
    let wrong: Vec<_> = counts.iter().filter(|(_, (_, written))| *written != 1).collect();
    assert!(wrong.is_empty(), "of {}: {wrong:?}", counts.len());
}

async fn at_least_once(order: &'static str) {
    let counts = crash("at-least-once", order).await;
    let is_wrong = |(may_be, written): (usize, usize)| written == 0 || written > may_be;
    let wrong: Vec<_> = counts.iter().filter(|(_, counts)| is_wrong(**counts)).collect();
    assert!(wrong.is_empty(), "of {}: {wrong:?}", counts.len());
    let repeats: usize = counts.values().map(|(_, written)| written - 1).sum();
    let in_flight_max = kills() * usize::try_from(PARTITIONS).unwrap() * QUEUE_RECORDS;
    assert!(repeats <= in_flight_max, "{repeats}");
    println!("{order}: {} kills, {repeats} of {} repeated", kills(), counts.len());
}

#[tokio::test]
async fn exactly_once_survives_kills_in_order_of_partitions() {
    exactly_once("partition").await;
}

#[tokio::test]
async fn exactly_once_survives_kills_in_order_of_keys() {
    exactly_once("key").await;
}

#[tokio::test]
async fn at_least_once_survives_kills_in_order_of_partitions() {
    at_least_once("partition").await;
}

#[tokio::test]
async fn at_least_once_survives_kills_in_order_of_keys() {
    at_least_once("key").await;
}

/// Kills of each test, unless `MOLDAU_CRASH_KILLS` says otherwise.
const KILLS: usize = 12;

/// More than a worker may handle before it is killed, so that work is left for the next one.
pub(crate) const RECORDS_PER_KILL: usize = 100;
pub(crate) const RECORDS_UNTIL_KILL_MAX: i64 = 60;

/// What the worker queues of a partition.
const QUEUE_RECORDS: usize = 200;
