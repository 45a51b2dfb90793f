//! A whole cluster: brokers with PostgreSQL and a store that loses requests and answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_cluster::sorter::{SortOptions, Sorted, sort};
use moldau_cluster::{
    Bucket, Extent, Find, LogId, ObjectKey, Outcome, Postgres, Reader, ReaderOptions, Sequencer,
    Topic, Writer, WriterOptions, garbage,
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::batches::{batch, records};
use crate::postgres_server;
use crate::s3_server::S3Server;

#[tokio::test]
async fn a_cluster_on_postgresql_and_s3_loses_no_acknowledged_record() {
    for seed in 0..STORMS {
        let life = timeout(Duration::from_secs(120), live(seed)).await;
        assert!(life.is_ok(), "seed {seed} does not end");
    }
}

struct Cluster {
    postgres: Arc<Postgres>,
    bucket: Arc<Bucket>,
    writers: [Writer; 2],
}

async fn live(seed: u64) {
    let (database, server) = (postgres_server::shared(), S3Server::start().await);
    let postgres = Arc::new(Postgres::connect(&database.database().await).await.unwrap());
    let bucket = Arc::new(server.bucket());
    let topic = Topic { id: Uuid::nil(), name: "topic".into(), partitions: LOGS };
    postgres.create_topic(&topic).await.unwrap();
    let options = WriterOptions {
        collect: Duration::from_millis(10),
        object_bytes: 600,
        ..WriterOptions::default()
    };
    let writer =
        || Writer::start(postgres.clone(), bucket.clone(), Arc::default(), options).unwrap();
    let writers = [writer(), writer()];
    let cluster = Arc::new(Cluster { postgres, bucket, writers });
    server.storm(seed);
    let producers: Vec<_> =
        (0..PRODUCERS).map(|id| tokio::spawn(produce(cluster.clone(), seed, id))).collect();
    let collector = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            loop {
                collect(&cluster).await;
            }
        }
    });
    let sorters = [0, 1].map(|_| tokio::spawn(sort_forever(cluster.clone())));
    let mut acknowledged = BTreeMap::new();
    for producer in producers {
        acknowledged.extend(producer.await.unwrap());
    }
    for task in sorters.into_iter().chain([collector]) {
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()), "a task failed");
    }
    server.calm();
    // What is left, so that all records come from sorted objects.
    while sort(&*cluster.postgres, &*cluster.bucket, SORT).await.unwrap() != Sorted::Nothing {}
    let reader =
        Reader::new(cluster.postgres.clone(), cluster.bucket.clone(), ReaderOptions::default());
    let mut read = BTreeMap::new();
    for partition in 0..LOGS {
        let log = log(partition);
        for (offset, value) in read_all(&reader, log).await {
            assert_eq!(read.insert((log, value), offset), None, "seed {seed}: a record twice");
        }
    }
    assert_eq!(read, acknowledged, "seed {seed}");
    assert!(extents(&cluster).await.iter().all(|extent| extent.sorted), "seed {seed}");
    // What is late comes while garbage is collected.
    let live = live_objects(&cluster).await;
    while server.keys() != live {
        collect(&cluster).await;
    }
}

/// Sends batches until each is acknowledged. Returns the offset of each record.
async fn produce(cluster: Arc<Cluster>, seed: u64, id: i64) -> Vec<((LogId, String), i64)> {
    let mut random = fastrand::Rng::with_seed(seed ^ (id.cast_unsigned() << 32));
    let log = log(random.i32(0..LOGS));
    let (mut sequence, mut acknowledged) = (0, Vec::new());
    for _ in 0..BATCHES {
        let sent = batch(log, id, sequence, random.i32(1..4));
        let base_offset = loop {
            let pending = cluster.writers[random.usize(..2)].append(vec![sent.clone()]).unwrap();
            match pending.outcomes().await.as_deref() {
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
        let next = sequence + sent.offsets_count;
        let sequences = (base_offset..).zip(sequence..next);
        acknowledged
            .extend(sequences.map(|(offset, value)| ((log, format!("{id} {value}")), offset)));
        sequence = next;
    }
    acknowledged
}

async fn collect(cluster: &Cluster) {
    let Cluster { postgres, bucket, .. } = cluster;
    for error in [
        garbage::collect(&**postgres, &**bucket).await.err(),
        garbage::collect_orphans(&**postgres, &**bucket, None, Duration::ZERO).await.err(),
    ] {
        assert!(error.is_none_or(|error| error.is_retriable()));
    }
}

async fn sort_forever(cluster: Arc<Cluster>) {
    loop {
        match sort(&*cluster.postgres, &*cluster.bucket, SORT).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => assert!(error.is_retriable(), "{error}"),
        }
    }
}

async fn live_objects(cluster: &Cluster) -> Vec<ObjectKey> {
    let mut live: Vec<_> = extents(cluster).await.iter().map(|extent| extent.object).collect();
    live.sort();
    live.dedup();
    live
}

async fn extents(cluster: &Cluster) -> Vec<Extent> {
    let find = |partition| Find { log: log(partition), offset: 0, extents_max: 1_000 };
    let wanted: Vec<_> = (0..LOGS).map(find).collect();
    let found = cluster.postgres.find(&wanted).await.unwrap();
    found.into_iter().flatten().flat_map(|found| found.extents).collect()
}

async fn read_all(reader: &Reader<Postgres, Bucket>, log: LogId) -> Vec<(i64, String)> {
    let mut all: Vec<(i64, String)> = Vec::new();
    loop {
        let next = all.last().map_or(0, |(offset, _)| offset + 1);
        let read = reader.read(log, next, 300).await.unwrap();
        if read.batches.is_empty() {
            return all;
        }
        all.extend(records(&read.batches));
    }
}

fn log(partition: i32) -> LogId {
    LogId { topic: Uuid::nil(), partition }
}

const SORT: SortOptions = SortOptions {
    objects_min: 1,
    objects_max: 8,
    object_bytes: 4_000,
    extent_bytes: 1_000,
    timeout: Duration::from_secs(20),
};
const STORMS: u64 = 3;
const LOGS: i32 = 2;
const PRODUCERS: i64 = 4;
const BATCHES: u32 = 6;
