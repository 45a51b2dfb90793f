//! The broker's process, and the records of a topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use moldau_client::{
    Admin, Cluster, ClusterOptions, Delivery, Producer, ProducerOptions, Record, TopicSpec,
};
use moldau_consumer::testing::TestBroker;

use crate::Error;

/// Runs a broker until the process is killed; prints its address.
pub(crate) fn serve() -> Result<(), Error> {
    let broker = TestBroker::with_memory(BROKER_BYTES);
    println!("{}", broker.address());
    loop {
        std::thread::park();
    }
}

/// Creates a topic of so many records in all, spread evenly, unless it exists.
pub(crate) fn fill(
    bootstrap: &str,
    topic: &str,
    partitions: usize,
    records: usize,
) -> Result<(), Error> {
    fill_topics(bootstrap, &[(topic.to_owned(), records)], partitions)
}

/// As [`fill`], for topics that are either all there or all missing.
pub(crate) fn fill_topics(
    bootstrap: &str,
    topics: &[(String, usize)],
    partitions: usize,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = Cluster::connect(&[bootstrap.to_owned()], ClusterOptions::default()).await?;
        let count = i32::try_from(partitions)?;
        let specs: Vec<_> = topics.iter().map(|(name, _)| TopicSpec::new(name, count)).collect();
        let created = Admin::new(&cluster).create_topics(&specs, false).await?;
        if created.into_iter().any(|it| it.is_err()) {
            // It was filled by an earlier run.
            return Ok(());
        }
        let delivered = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&delivered);
        let sink = move |delivery: &Delivery<'_>| {
            let count = if delivery.error.is_none() { delivery.tokens.len() } else { 0 };
            counted.fetch_add(count, Ordering::Relaxed);
        };
        let producer = Producer::start(&cluster, ProducerOptions::default(), sink).await?;
        let mut total = 0;
        for (topic, records) in topics {
            total += fill_topic(&producer, topic, partitions, records / partitions).await?;
        }
        producer.close().await;
        match delivered.load(Ordering::Relaxed) == total {
            true => Ok(()),
            false => Err("the topic was not filled".into()),
        }
    })
}

/// Sends so many records to each partition; how many these are in all.
async fn fill_topic(
    producer: &Producer,
    topic: &str,
    partitions: usize,
    each: usize,
) -> Result<usize, Error> {
    let mut handles = Vec::new();
    for partition in 0..i32::try_from(partitions)? {
        handles.push(producer.partition(topic, partition).await?);
    }
    let value = [b'x'; VALUE_BYTES];
    // Retention deletes old records.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let timestamp = i64::try_from(since_1970.as_millis())?;
    for number in 0..each {
        for (partition, handle) in handles.iter().enumerate() {
            let key = format!("{:06}", (number * partitions + partition) % KEYS);
            let (key, value) = (Some(key.as_bytes()), Some(value.as_slice()));
            let record = Record { token: 0, timestamp, key, value, headers: &[] };
            producer.room_for(&record).await;
            producer.send(*handle, &record)?;
        }
    }
    Ok(each * partitions)
}

/// With a key of 6 bytes and what a record takes beside them, 100 bytes and some.
const VALUE_BYTES: usize = 94;

const KEYS: usize = 100_000;

/// All records stay in the broker's memory.
const BROKER_BYTES: usize = 3 << 30;
