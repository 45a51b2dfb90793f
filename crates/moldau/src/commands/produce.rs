//! `moldau produce`: one record for each line of stdin, put on a partition by its key as Kafka's
//! own producers do, or in turn where there is no key.

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use moldau_client::{
    Cluster, Delivery, Error, PartitionHandle, Producer, ProducerOptions, Record, partition_for_key,
};
use moldau_records::Compression;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::arguments::{Codec, ProduceOptions};
use crate::commands::session::{self, print_json};

pub(crate) fn run(options: &ProduceOptions) -> anyhow::Result<ExitCode> {
    session::run(&options.cluster, true, async |cluster| produce(&cluster, options).await)
}

/// What became of the lines.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    delivered: u64,
    failed: u64,
    first_error: Option<String>,
}

async fn produce(cluster: &Cluster, options: &ProduceOptions) -> anyhow::Result<()> {
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let sink = {
        let outcome = Arc::clone(&outcome);
        move |delivery: &Delivery<'_>| note(&outcome, delivery)
    };
    let settings =
        ProducerOptions { compression: codec(options.compression), ..ProducerOptions::default() };
    let producer = Producer::start(cluster, settings, sink).await?;
    let known = cluster.topic(&options.topic).await?;
    anyhow::ensure!(!known.partitions.is_empty(), "topic {} has no partitions", options.topic);
    // A line that cannot be sent ends it, and takes back none of those before.
    let sent = send_lines(cluster, &producer, options).await;
    producer.close().await;
    let outcome = std::mem::take(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner));
    if options.cluster.json {
        print_json(&outcome)?;
    } else {
        eprintln!("{} records delivered to {}", outcome.delivered, options.topic);
    }
    let Some(problem) = outcome.first_error else { return sent };
    let undelivered = anyhow!("{} records were not delivered: {problem}", outcome.failed);
    Err(match sent {
        Ok(()) => undelivered,
        Err(line) => line.context(undelivered),
    })
}

async fn send_lines(
    cluster: &Cluster,
    producer: &Producer,
    options: &ProduceOptions,
) -> anyhow::Result<()> {
    let mut lines = lines();
    let mut partitions = Vec::new();
    let mut turn = 0_usize;
    let mut number = 0_u64;
    while let Some(line) = lines.recv().await {
        number += 1;
        let line = line.with_context(|| format!("line {number} of stdin"))?;
        let (key, value) = match &options.key_separator {
            Some(separator) => match line.split_once(separator.as_str()) {
                Some((key, value)) => (Some(key), value),
                None => bail!("line {number} has no {separator:?} between key and value: {line:?}"),
            },
            None => (None, line.as_str()),
        };
        extend(&mut partitions, cluster, producer, &options.topic).await?;
        let index = match key {
            Some(key) => usize::try_from(partition_for_key(key.as_bytes(), partitions.len()))?,
            None => turn.checked_rem(partitions.len()).unwrap_or(0),
        };
        turn += 1;
        let partition = *partitions.get(index).context("the topic was deleted")?;
        let sent = send(producer, partition, key, value).await;
        sent.with_context(|| format!("line {number} of stdin"))?;
    }
    Ok(())
}

/// Lines of stdin, read on a thread of their own: while the next is waited for, those before it
/// are sent.
fn lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Adds the partitions of the topic that are not among them: it may get more at any time.
async fn extend(
    partitions: &mut Vec<PartitionHandle>,
    cluster: &Cluster,
    producer: &Producer,
    topic: &str,
) -> anyhow::Result<()> {
    let metadata = cluster.metadata();
    let known = metadata.topics.get(topic).map_or(&[][..], |topic| &topic.partitions);
    for partition in known.iter().skip(partitions.len()) {
        partitions.push(producer.partition(topic, partition.index).await?);
    }
    Ok(())
}

async fn send(
    producer: &Producer,
    partition: PartitionHandle,
    key: Option<&str>,
    value: &str,
) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let record = Record {
        token: 0,
        timestamp: i64::try_from(now)?,
        key: key.map(str::as_bytes),
        value: Some(value.as_bytes()),
        headers: &[],
    };
    loop {
        match producer.send(partition, &record) {
            Err(Error::BufferFull) => producer.room_for(&record).await,
            sent => return Ok(sent?),
        }
    }
}

fn note(outcome: &Mutex<Outcome>, delivery: &Delivery<'_>) {
    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
    let records = delivery.tokens.len() as u64;
    match delivery.error {
        None => outcome.delivered += records,
        Some(error) => {
            outcome.failed += records;
            outcome.first_error.get_or_insert_with(|| error.to_string());
        }
    }
}

fn codec(codec: Codec) -> Compression {
    match codec {
        Codec::None => Compression::None,
        Codec::Gzip => Compression::Gzip,
        Codec::Snappy => Compression::Snappy,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    }
}

/// Lines that were read and are yet to be taken: some, so that the two threads seldom wait for one
/// another.
const LINES_MAX: usize = 1024;
