//! The threads that read: each has a runtime, a connection and a share of the partitions of its
//! own, checks every record, and reports what it used.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use moldau_client::{
    Cluster, ClusterOptions, ConnectionOptions, Fetcher, FetcherOptions, Start, TopicPartition,
};
use moldau_records::Decompressor;
use tokio::sync::watch;

use crate::experiments::bench::Path;
use crate::threads::Reading;
use moldau_load::generator::{runtime, target};
use moldau_measure::Error;
use moldau_measure::cpu::{CpuMeter, ThreadUsage};

/// How long the threads may take to connect.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long records that must come may stay away.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Largest batch after decompression; those of the backlog are far smaller.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// A topic to read: the offsets after the last of its partitions.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    pub(super) topic: String,
    pub(super) ends: Vec<u64>,
}

/// A partition and the offset after its last record.
type Part = (TopicPartition, u64);

/// What a thread brings home.
struct Read {
    records: u64,
    finished: Instant,
    usage: ThreadUsage,
}

/// Reads topics from start to end. The partitions of all topics, topic after topic, are dealt out
/// to the threads in even stretches, so that a thread that could have whole topics has them. Each
/// record holds its thread for `work`.
///
/// # Errors
/// [`Error::Target`] when a record is missing or out of place, or the system fails.
pub(super) fn read(
    path: &Path,
    topics: &[Backlog],
    threads: u16,
    work: Duration,
) -> Result<Reading, Error> {
    let parts: Vec<Part> = topics.iter().flat_map(parts_of).collect();
    let (start, started) = watch::channel(None);
    thread::scope(|scope| {
        let (ready, readiness) = mpsc::sync_channel(usize::from(threads));
        let mut readers = Vec::new();
        for own in stretches(&parts, threads) {
            let (ready, started) = (ready.clone(), started.clone());
            let run = move || runtime()?.block_on(consume(path, own, work, &ready, started));
            let builder = thread::Builder::new().name(format!("lab-reader-{}", readers.len()));
            readers.push(builder.spawn_scoped(scope, run));
        }
        drop(ready);
        let begun = wait_until_ready(&readiness, readers.len()).and_then(|()| {
            let meter = CpuMeter::start(&path.processes)?;
            let begun = Instant::now();
            start.send_replace(Some(begun));
            Ok((begun, meter))
        });
        // Without a start the threads end by themselves once its sender is gone.
        drop(start);
        let mut reading = Reading { threads, ..Reading::default() };
        let mut last = None;
        for reader in readers {
            let reader = reader.map_err(Error::machine("starting a thread"))?;
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            last = last.max(Some(read.finished));
            reading.records += read.records;
            reading.consumer_cpu_ns += read.usage.cpu_ns;
            reading.voluntary_switches += read.usage.voluntary;
            reading.involuntary_switches += read.usage.involuntary;
            reading.run_queue_wait_ns += read.usage.wait_ns;
        }
        let (begun, meter) = begun?;
        let (processes, host) = meter.stop()?;
        reading.system_cpu_ns = processes.iter().map(|usage| usage.cpu_ns).sum();
        reading.host = host;
        let wall = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(begun));
        reading.wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        Ok(reading)
    })
}

fn parts_of(backlog: &Backlog) -> impl Iterator<Item = Part> {
    let part =
        |(partition, end): (i32, &u64)| (TopicPartition::of(&backlog.topic, partition), *end);
    (0..).zip(&backlog.ends).map(part)
}

/// As many stretches as threads, whose lengths differ by one at most.
fn stretches<T>(all: &[T], threads: u16) -> impl Iterator<Item = &[T]> {
    let threads = usize::from(threads);
    let bound = move |index: usize| index * all.len() / threads;
    (0..threads).map(move |index| all.get(bound(index)..bound(index + 1)).unwrap_or_default())
}

fn wait_until_ready(readiness: &mpsc::Receiver<()>, threads: usize) -> Result<(), Error> {
    let end = Instant::now() + READY_TIMEOUT;
    for _ in 0..threads {
        let left = end.saturating_duration_since(Instant::now());
        let waited = readiness.recv_timeout(left);
        waited.map_err(|_| failed("not every reading thread became ready".into()))?;
    }
    Ok(())
}

async fn consume(
    path: &Path,
    parts: &[Part],
    work: Duration,
    ready: &mpsc::SyncSender<()>,
    mut started: watch::Receiver<Option<Instant>>,
) -> Result<Read, Error> {
    let security = path.clients.security.clone();
    let connection = ConnectionOptions { security, ..ConnectionOptions::default() };
    let options = ClusterOptions { connection, ..ClusterOptions::default() };
    let connected = Cluster::connect(&[path.bootstrap.as_str()], options).await;
    let cluster = connected.map_err(target("connecting a consumer"))?;
    let fetcher = Fetcher::start(&cluster, FetcherOptions::default());
    for (part, _) in parts {
        cluster.topic(&part.topic).await.map_err(target("finding a topic"))?;
    }
    // If the receiver is gone, the run was given up and the start never comes.
    ready.send(()).map_err(|_| failed("the reading was given up".into()))?;
    let begun = started.wait_for(Option::is_some).await.map(|begun| *begun).ok().flatten();
    let begun = begun.ok_or_else(|| failed("another thread failed".into()))?;
    let before = ThreadUsage::own()?;
    let mut read = follow(fetcher, parts, work, begun).await?;
    read.usage = ThreadUsage::own()?.since(before);
    Ok(read)
}

/// Reads every part to its end, each offset once and in order.
async fn follow(
    mut fetcher: Fetcher,
    parts: &[Part],
    work: Duration,
    begun: Instant,
) -> Result<Read, Error> {
    let mut positions: HashMap<TopicPartition, Position> = HashMap::with_capacity(parts.len());
    for (part, end) in parts.iter().filter(|(_, end)| *end > 0) {
        let assigned = fetcher.assign(&part.topic, part.partition, Start::Earliest).await;
        assigned.map_err(target("assigning a partition"))?;
        positions.insert(part.clone(), Position { next: 0, end: *end });
    }
    let mut open = positions.len();
    let mut decompressor = Decompressor::default();
    let mut read = Read { records: 0, finished: begun, usage: ThreadUsage::default() };
    while open > 0 {
        let fetched = tokio::time::timeout(SILENCE_MAX, fetcher.next()).await;
        let silent = |_| failed(format!("nothing came after {} records", read.records));
        let fetched = fetched.map_err(silent)?.map_err(target("fetching"))?;
        let Some(position) = positions.get_mut(&fetched.topic_partition()) else { continue };
        let was_open = position.next < position.end;
        let (mut is_in_order, before) = (true, read.records);
        let taken = fetched.for_each_record(&mut decompressor, BATCH_BYTES_MAX, |record| {
            is_in_order &= u64::try_from(record.offset()) == Ok(position.next);
            position.next += 1;
            read.records += 1;
        });
        taken.map_err(target("reading a fetched batch"))?;
        if !is_in_order || position.next > position.end {
            let partition = fetched.partition;
            return Err(failed(format!("partition {partition}: offsets do not follow each other")));
        }
        if !work.is_zero() {
            // At once for all records of the batch: a sleep for each would be longer than asked.
            let records = u32::try_from(read.records - before).unwrap_or(u32::MAX);
            thread::sleep(work.saturating_mul(records));
        }
        open -= usize::from(was_open && position.next == position.end);
    }
    read.finished = Instant::now();
    Ok(read)
}

/// How far a partition has been read.
struct Position {
    next: u64,
    end: u64,
}

fn failed(reason: String) -> Error {
    Error::Target { action: "reading topics to their end".into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_dealt_out_evenly_and_whole_topics_stay_together() {
        let all: Vec<u16> = (0..120).collect();
        for threads in 1..=7 {
            let dealt: Vec<&[u16]> = stretches(&all, threads).collect();
            assert_eq!(dealt.concat(), all);
            let lengths = dealt.iter().map(|stretch| stretch.len());
            let (least, most) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
            assert!(most - least <= 1, "{threads}: {least} to {most}");
        }
        let [first, second] = stretches(&all, 2).collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((first[59], second[0]), (59, 60));
    }
}
