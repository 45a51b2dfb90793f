//! The client without group and framework: each thread has a runtime, a connection and its share of
//! the partitions.

use std::thread;

use moldau_client::{Cluster, ClusterOptions, Fetcher, FetcherOptions, Start, TopicPartition};
use moldau_load::generator::{runtime, target};
use moldau_measure::Error;
use moldau_records::Decompressor;

use super::meter::Meter;
use super::{Reading, handle};
use moldau_lab::reader::Handling;

/// Largest batch after decompression; those of the backlog are far smaller.
const BATCH_BYTES_MAX: usize = 64 << 20;

pub(super) fn read(reading: &Reading, meter: &Meter) -> Result<(), Error> {
    let own = |thread: u16| runtime()?.block_on(read_share(reading, thread, meter));
    thread::scope(|scope| {
        let own = &own;
        let all: Vec<_> =
            (0..reading.threads).map(|thread| scope.spawn(move || own(thread))).collect();
        all.into_iter().try_for_each(|reader| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

async fn read_share(reading: &Reading, thread: u16, meter: &Meter) -> Result<(), Error> {
    let connected = Cluster::connect(&[&reading.bootstrap], ClusterOptions::default()).await;
    let cluster = connected.map_err(target("connecting"))?;
    let mut fetcher = Fetcher::start(&cluster, FetcherOptions::default());
    for part in share(&cluster, reading, thread).await? {
        let assigned = fetcher.assign(&part.topic, part.partition, Start::Earliest).await;
        assigned.map_err(target("assigning a partition"))?;
    }
    tokio::select! {
        followed = follow(&mut fetcher, reading.handling, meter) => followed,
        () = meter.finished() => Ok(()),
    }
}

/// Every so manyth partition of all topics.
async fn share(
    cluster: &Cluster,
    reading: &Reading,
    thread: u16,
) -> Result<Vec<TopicPartition>, Error> {
    let mut all = Vec::new();
    let names: Vec<String> = reading.topic_names().collect();
    let loaded = cluster.load_topics(names.iter().map(String::as_str)).await;
    loaded.map_err(target("asking for topics"))?;
    for name in names {
        let topic = cluster.topic(&name).await.map_err(target("finding a topic"))?;
        let partitions = (0..).take(topic.partitions.len());
        all.extend(partitions.map(|partition| TopicPartition::of(&name, partition)));
    }
    Ok(all.into_iter().skip(thread.into()).step_by(reading.threads.into()).collect())
}

async fn follow(fetcher: &mut Fetcher, handling: Handling, meter: &Meter) -> Result<(), Error> {
    let mut decompressor = Decompressor::default();
    loop {
        let fetched = fetcher.next().await.map_err(target("fetching"))?;
        let mut records = 0;
        let read = fetched.for_each_record(&mut decompressor, BATCH_BYTES_MAX, |record| {
            std::hint::black_box(record.value());
            records += 1;
        });
        read.map_err(target("reading a fetched batch"))?;
        if handling == Handling::Nothing {
            meter.count(records);
            continue;
        }
        for _ in 0..records {
            handle(handling).await;
            meter.count(1);
            tokio::task::coop::consume_budget().await;
        }
    }
}
