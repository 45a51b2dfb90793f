//! What the parts of a cluster cost: `cargo run --release -p moldau-cluster --example
//! cluster-costs`. PostgreSQL runs on this machine and flushes every commit; the store is in the
//! memory of this process.
//!
//! | figure | how it is measured |
//! |---|---|
//! | added latency | appends one by one, less the time to collect; beside a bare PUT and commit |
//! | commits | objects of 8 partitions, committed by 16 tasks |
//! | throughput | three writers, each with 8 producers of 1 MiB batches |
//! | GETs | 10 consumers at the end of a log, whose reads share a cache |
//! | partitions | one topic with 1,000,000 of them, then 10,000 that move |

#![expect(clippy::unwrap_used, reason = "what is unexpected ends the program")]

#[path = "../tests/it/batches.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod batches;
#[path = "../tests/it/postgres_server.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod postgres_server;
#[path = "../tests/it/s3_server/mod.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod s3_server;

/// What the S3 server uses to answer late.
mod faults {
    pub(super) async fn pass(time: std::time::Duration) {
        tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moldau_cluster::object::ObjectBuilder;
use moldau_cluster::{
    AppendBatch, BatchEntry, Bucket, Commit, LogId, ObjectKey, Postgres, Reader, ReaderOptions,
    Sequencer, Store, Topic, Wakes, Writer, WriterOptions,
};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};
use uuid::Uuid;

use self::batches::batch;
use self::postgres_server::Server;
use self::s3_server::S3Server;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (database, server) = (Server::start_with("fsync=on"), store());
    let settings = database.database().await;
    let postgres = Arc::new(Postgres::connect(&settings).await.unwrap());
    let bucket = Arc::new(server.bucket());
    for name in ["latency", "commits", "throughput", "reads"] {
        postgres.create_topic(&topic(name, 64)).await.unwrap();
    }
    latency(&postgres, &bucket).await;
    commits(&postgres).await;
    throughput(&settings, &bucket).await;
    reads(&postgres, &bucket, &server).await;
    partitions(&postgres).await;
}

/// An S3 server on a thread of its own.
fn store() -> Arc<S3Server> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            sender.send(Arc::new(S3Server::start().await)).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

fn topic(name: &str, partitions: i32) -> Topic {
    Topic { id: id(name), name: name.into(), partitions }
}

/// An id that the name determines.
fn id(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    Uuid::from_bytes(bytes)
}

fn log(name: &str, partition: i32) -> LogId {
    LogId { topic: id(name), partition }
}

/// A batch of one record, of a producer that is not idempotent.
fn large(log: LogId, bytes: usize) -> AppendBatch {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(1_700_000_000_000, None, Some(&vec![b'x'; bytes]), []).unwrap();
    let bytes = builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap();
    AppendBatch { producer: None, bytes, ..batch(log, 0, 0, 1) }
}

/// The object of a batch, and what commits it.
fn sealed(batches: &[AppendBatch], key: ObjectKey) -> (bytes::Bytes, Commit) {
    let mut builder = ObjectBuilder::default();
    for batch in batches {
        builder.push(batch.log, batch.bytes.clone());
    }
    let (object, positions) = builder.finish();
    let entry = |(batch, position): (&AppendBatch, i64)| BatchEntry {
        log: batch.log,
        leader_epoch: batch.leader_epoch,
        position,
        size: i32::try_from(batch.bytes.len()).unwrap(),
        offsets_count: batch.offsets_count,
        max_timestamp: batch.max_timestamp,
        producer: batch.producer,
        part: batch.part,
    };
    let batches = batches.iter().zip(positions).map(entry).collect();
    (object, Commit { key, batches })
}

async fn latency(postgres: &Arc<Postgres>, bucket: &Arc<Bucket>) {
    let collect = Duration::from_millis(10);
    let options = WriterOptions { collect, ..WriterOptions::default() };
    let writer = Writer::start(postgres.clone(), bucket.clone(), Arc::default(), options).unwrap();
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        let batches = [large(log("latency", 0), 10_000)];
        let began = Instant::now();
        let (object, commit) = sealed(&batches, new_key(postgres).await);
        bucket.put(commit.key, object).await.unwrap();
        postgres.commit(&commit).await.unwrap();
        bare.push(began.elapsed());
        let began = Instant::now();
        writer.append(batches.into()).unwrap().outcomes().await.unwrap();
        whole.push(began.elapsed().saturating_sub(collect));
    }
    writer.stop().await;
    let (bare, whole) = (quantiles(bare), quantiles(whole));
    println!("latency of an append, less 10 ms to collect, beside a bare PUT and commit:");
    for (name, whole, bare) in [("p50", whole[0], bare[0]), ("p99", whole[1], bare[1])] {
        let added = millis(whole) - millis(bare);
        println!(
            "  {name} {:.2} ms, bare {:.2} ms, added {added:.2} ms",
            millis(whole),
            millis(bare)
        );
    }
}

async fn new_key(postgres: &Postgres) -> ObjectKey {
    ObjectKey::of_generation(postgres.generation().await.unwrap())
}

async fn commits(postgres: &Arc<Postgres>) {
    let done = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (postgres, done) = (postgres.clone(), done.clone());
            tokio::spawn(async move {
                while began.elapsed() < Duration::from_secs(10) {
                    let logs = (0..8).map(|index| log("commits", (8 * task + index) % 64));
                    let batches: Vec<_> = logs.map(|log| large(log, 100)).collect();
                    let (_, commit) = sealed(&batches, new_key(&postgres).await);
                    postgres.commit(&commit).await.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let rate = f64::from(u32::try_from(done.load(Ordering::Relaxed)).unwrap())
        / began.elapsed().as_secs_f64();
    println!("commits of 8 partitions: {rate:.0}/s");
}

async fn throughput(settings: &moldau_cluster::Settings, bucket: &Arc<Bucket>) {
    let mib = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for broker in 0..3 {
        let postgres = Arc::new(Postgres::connect(settings).await.unwrap());
        let options = WriterOptions::default();
        let writer = Writer::start(postgres, bucket.clone(), Arc::default(), options).unwrap();
        let writer = Arc::new(writer);
        for producer in 0..8 {
            let (writer, mib) = (writer.clone(), mib.clone());
            tasks.push(tokio::spawn(async move {
                let batch = large(log("throughput", 8 * broker + producer), 1 << 20);
                while began.elapsed() < Duration::from_secs(10) {
                    let pending = (0..4).map(|_| writer.append(vec![batch.clone()]).unwrap());
                    for pending in pending.collect::<Vec<_>>() {
                        pending.outcomes().await.unwrap();
                        mib.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let rate = f64::from(u32::try_from(mib.load(Ordering::Relaxed)).unwrap())
        / began.elapsed().as_secs_f64();
    println!("three writers: {rate:.0} MiB/s");
}

async fn reads(postgres: &Arc<Postgres>, bucket: &Arc<Bucket>, server: &S3Server) {
    const OBJECTS: i64 = 100;
    let wakes = Arc::new(Wakes::default());
    let options = WriterOptions { object_bytes: 1 << 20, ..WriterOptions::default() };
    let writer = Writer::start(postgres.clone(), bucket.clone(), wakes.clone(), options).unwrap();
    let reader = Arc::new(Reader::new(postgres.clone(), bucket.clone(), ReaderOptions::default()));
    let (log, before) = (log("reads", 0), server.requests());
    let consumers: Vec<_> = (0..10)
        .map(|_| {
            let (reader, wakes) = (reader.clone(), wakes.clone());
            tokio::spawn(async move {
                let mut offset = 0;
                while offset < OBJECTS {
                    let deadline = tokio::time::Instant::now() + Duration::from_secs(1);
                    let read = reader.read_next(log, offset, 1 << 20, &wakes, deadline).await;
                    offset += i64::try_from(read.unwrap().batches.len()).unwrap();
                }
            })
        })
        .collect();
    for _ in 0..OBJECTS {
        writer.append(vec![large(log, 1 << 20)]).unwrap().outcomes().await.unwrap();
    }
    for consumer in consumers {
        consumer.await.unwrap();
    }
    writer.stop().await;
    let gets = server.requests() - before - usize::try_from(OBJECTS).unwrap();
    println!("10 consumers at the end of a log: {gets} GETs of {OBJECTS} objects of 1 MiB");
}

async fn partitions(postgres: &Postgres) {
    let began = Instant::now();
    postgres.create_topic(&topic("partitions", 1_000_000)).await.unwrap();
    println!("1,000,000 partitions created: {:.2} s", began.elapsed().as_secs_f64());
    let logs: Vec<_> = (0..10_000).map(|partition| log("partitions", partition)).collect();
    for leader in [1, 2] {
        let began = Instant::now();
        let moved = postgres.move_logs(&logs, leader).await.unwrap();
        println!("{moved} partitions moved: {:.3} s", began.elapsed().as_secs_f64());
    }
    let status = postgres.status().await.unwrap();
    for table in status.tables.iter().filter(|table| table.name == "logs") {
        println!("rows of logs: {}, {} MiB", table.rows, table.bytes >> 20);
    }
}

/// The median, and the time that one in a hundred exceeds.
fn quantiles(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort_unstable();
    [times.len() / 2, times.len() * 99 / 100].map(|at| times[at])
}

fn millis(time: Duration) -> f64 {
    1000.0 * time.as_secs_f64()
}
