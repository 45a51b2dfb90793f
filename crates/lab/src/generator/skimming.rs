//! Consumers that read everything and look at batch headers only: offsets follow each other, and
//! all records come. They show what a target serves without the cost of looking into records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use moldau_client::{Cluster, ClusterOptions, Fetched, Fetcher, FetcherOptions, Start};

use super::{GENERATOR_ROLE, Shared, nanos, runtime, target};
use crate::cpu::{CpuMeter, HostUsage, ProcessUsage};
use crate::error::Error;

/// How long to wait for the next bytes before looking whether the run is over.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// How long records that must come may stay away.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Bytes of a partition in one answer, as the checking consumer asks for.
const PARTITION_BYTES_MAX: i32 = 1 << 20;

/// A topic to read from its start.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Address that the client connects to first.
    pub bootstrap: String,
    /// The topic.
    pub topic: String,
    /// Its partitions.
    pub partitions: u16,
    /// Records that it holds.
    pub records: u64,
    /// Processes to measure, by role and process id; the generator adds itself.
    pub processes: Vec<(String, u32)>,
}

/// What a scan gave.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// When the first fetch went out.
    pub start: Instant,
    /// From there to the last record, ns.
    pub elapsed_ns: u64,
    /// Records read; fewer than the topic holds if the scan was stopped.
    pub records: u64,
    /// Use of the processes meanwhile.
    pub processes: Vec<ProcessUsage>,
    /// Use of the machine meanwhile.
    pub host: HostUsage,
}

/// What a further consumer got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skimmed {
    pub(super) records: u64,
    pub(super) batches: u64,
}

/// Reads a topic from its start to its end, or until `stop` is set.
///
/// # Errors
/// [`Error::Target`] when records are missing or the target fails, [`Error::Machine`] when a
/// measured process is gone.
pub fn scan(scan: &Scan, stop: &AtomicBool) -> Result<Scanned, Error> {
    let mut processes = scan.processes.clone();
    processes.push((GENERATOR_ROLE.into(), std::process::id()));
    runtime()?.block_on(async {
        let mut skimmer =
            Skimmer::connect(&scan.bootstrap, ClusterOptions::default(), scan.partitions).await?;
        skimmer.find(&scan.topic).await?;
        let meter = CpuMeter::start(&processes)?;
        let start = Instant::now();
        skimmer.assign(&scan.topic, i32::from).await?;
        while skimmer.records < scan.records && !stop.load(Ordering::Relaxed) {
            skimmer.skim().await?;
        }
        let elapsed_ns = nanos(start.elapsed());
        let (processes, host) = meter.stop()?;
        Ok(Scanned { start, elapsed_ns, records: skimmer.records, processes, host })
    })
}

/// A further consumer of a run; gives what came inside the window.
pub(super) fn run(shared: &Shared<'_>, ready: &mpsc::SyncSender<()>) -> Result<Skimmed, Error> {
    runtime()?.block_on(follow(shared, ready))
}

async fn follow(shared: &Shared<'_>, ready: &mpsc::SyncSender<()>) -> Result<Skimmed, Error> {
    let setup = shared.setup;
    let workload = &setup.workload;
    let options = setup.cluster_options();
    let mut skimmer = Skimmer::connect(&setup.bootstrap, options, workload.partitions).await?;
    skimmer.assign(&setup.topic, |lane| setup.layout.partition(lane)).await?;
    let clock = shared.ready(ready).await?;
    let from_ns = nanos(workload.warmup());
    let window = from_ns..from_ns + nanos(workload.window());
    let mut in_window = Skimmed::default();
    loop {
        match shared.acked_in_all() {
            Some(acked) if skimmer.records >= acked => return Ok(in_window),
            Some(_) => {}
            // Silence counts from the moment that nothing more is produced.
            None => skimmer.heard = Instant::now(),
        }
        let skimmed = skimmer.skim().await?;
        if window.contains(&clock.now_ns()) {
            in_window.records += skimmed.records;
            in_window.batches += skimmed.batches;
        }
    }
}

struct Skimmer {
    fetcher: Fetcher,
    cluster: Cluster,
    /// By partition, in the order of their assignment: number and offset that is next.
    next: Vec<(i32, i64)>,
    partitions: u16,
    records: u64,
    heard: Instant,
}

impl Skimmer {
    async fn connect(
        bootstrap: &str,
        options: ClusterOptions,
        partitions: u16,
    ) -> Result<Self, Error> {
        let connected = Cluster::connect(&[bootstrap], options).await;
        let cluster = connected.map_err(target("connecting a consumer"))?;
        let options = FetcherOptions {
            partition_bytes_max: PARTITION_BYTES_MAX,
            ..FetcherOptions::default()
        };
        let fetcher = Fetcher::start(&cluster, options);
        let heard = Instant::now();
        Ok(Self { fetcher, cluster, next: Vec::new(), partitions, records: 0, heard })
    }

    /// Learns of the topic, so that no later step waits for it.
    async fn find(&self, topic: &str) -> Result<(), Error> {
        self.cluster.topic(topic).await.map(|_| ()).map_err(target("finding the topic"))
    }

    async fn assign(&mut self, topic: &str, number: impl Fn(u16) -> i32) -> Result<(), Error> {
        for lane in 0..self.partitions {
            let partition = number(lane);
            let assigned = self.fetcher.assign(topic, partition, Start::Earliest).await;
            assigned.map_err(target("assigning a partition"))?;
            self.next.push((partition, 0));
        }
        self.heard = Instant::now();
        Ok(())
    }

    /// Takes what comes next, if anything comes soon.
    async fn skim(&mut self) -> Result<Skimmed, Error> {
        match tokio::time::timeout(POLL_TIMEOUT, self.fetcher.next()).await {
            Ok(fetched) => {
                self.heard = Instant::now();
                let skimmed = self.take(&fetched.map_err(target("fetching"))?)?;
                self.records += skimmed.records;
                Ok(skimmed)
            }
            Err(_) if self.heard.elapsed() > SILENCE_MAX => {
                Err(missing(format!("nothing came after {} records", self.records)))
            }
            Err(_) => Ok(Skimmed::default()),
        }
    }

    fn take(&mut self, fetched: &Fetched) -> Result<Skimmed, Error> {
        let found = self.next.iter_mut().find(|(partition, _)| *partition == fetched.partition);
        let Some((partition, next)) = found else { return Ok(Skimmed::default()) };
        let mut skimmed = Skimmed::default();
        for batch in fetched.batches() {
            let batch = batch.map_err(target("reading a fetched batch"))?;
            if batch.base_offset() > *next {
                return Err(missing(format!(
                    "partition {partition}: offset {} follows {next}",
                    batch.base_offset()
                )));
            }
            let fresh = batch.next_offset() - *next;
            skimmed.records += u64::try_from(fresh).unwrap_or(0);
            skimmed.batches += 1;
            *next = batch.next_offset().max(*next);
        }
        Ok(skimmed)
    }
}

fn missing(reason: String) -> Error {
    Error::Target { action: "reading a topic to its end".into(), reason }
}
