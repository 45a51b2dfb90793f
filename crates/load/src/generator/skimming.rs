//! Consumers that read everything and look at batch headers only: offsets follow each other, and
//! all records come. They show what a target serves without the cost of looking into records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use moldau_client::{Fetched, Start};

use super::sharing::{Acknowledged, has_reached};
use super::slots::{SlotSamples, Slots};
use super::topics::{Lanes, Readers};
use super::{Share, Shared, nanos, runtime, target};
use moldau_measure::Error;
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::cpu::{CpuMeter, HostUsage, ProcessUsage};

/// How long to wait for the next bytes before looking whether the run is over.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// How long records that must come may stay away.
const SILENCE_MAX: Duration = Duration::from_secs(15);

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

/// What a further consumer got inside the window.
pub(super) struct Tailed {
    pub(super) records: u64,
    pub(super) batches: u64,
    pub(super) slots: Vec<SlotSamples>,
}

/// What came at once.
#[derive(Clone, Copy, Debug, Default)]
struct Skimmed {
    records: u64,
    batches: u64,
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
        let readers = Readers::of_topic(&scan.bootstrap, &scan.topic).await?;
        let lanes = Lanes::of_topic(&scan.topic, scan.partitions);
        let mut skimmer = Skimmer::new(readers, lanes);
        let meter = CpuMeter::start(&processes)?;
        let start = Instant::now();
        skimmer.readers.assign((0..scan.partitions).map(i32::from)).await?;
        while skimmer.records < scan.records && !stop.load(Ordering::Relaxed) {
            skimmer.skim().await?;
        }
        let elapsed_ns = nanos(start.elapsed());
        let (processes, host) = meter.stop()?;
        Ok(Scanned { start, elapsed_ns, records: skimmer.records, processes, host })
    })
}

/// A further consumer of a run; gives what came inside the window.
pub(super) fn run(shared: &Shared<'_>, ready: &mpsc::SyncSender<()>) -> Result<Tailed, Error> {
    runtime()?.block_on(shared.unless_stopped(follow(shared, ready)))
}

async fn follow(shared: &Shared<'_>, ready: &mpsc::SyncSender<()>) -> Result<Tailed, Error> {
    let setup = shared.setup;
    let workload = &setup.workload;
    let mut skimmer = Skimmer::new(Readers::of(setup).await?, Lanes::of(setup));
    skimmer.readers.assign_share(setup, Share::WHOLE, |_| Start::Earliest).await?;
    let clock = shared.ready(ready).await?;
    let from_ns = nanos(workload.warmup());
    let window = from_ns..from_ns + nanos(workload.window());
    let mut slots = Slots::new(workload, from_ns);
    let mut in_window = Skimmed::default();
    let mut waits = workload.fetches_wait();
    loop {
        match shared.settled.get() {
            Some(Acknowledged { ends, .. }) => {
                let next = skimmer.next();
                if has_reached(next.iter().copied(), ends, Share::WHOLE) {
                    let Skimmed { records, batches } = in_window;
                    return Ok(Tailed { records, batches, slots: slots.take_samples() });
                }
                if std::mem::take(&mut waits) {
                    // What is left would wait for bytes that never come.
                    skimmer.readers = Readers::of_rest(setup, Share::WHOLE, &next).await?;
                }
            }
            // Silence counts from the moment that nothing more is produced.
            None => skimmer.heard = Instant::now(),
        }
        let skimmed = skimmer.skim().await?;
        let now_ns = clock.now_ns();
        if skimmed.records > 0 && window.contains(&now_ns) {
            in_window.records += skimmed.records;
            in_window.batches += skimmed.batches;
            if let Some(slot) = slots.at(now_ns) {
                slot.consumed_records += skimmed.records;
            }
        }
    }
}

struct Skimmer {
    readers: Readers,
    lanes: Lanes,
    /// The offset that is next, by lane.
    next: Vec<i64>,
    records: u64,
    heard: Instant,
}

impl Skimmer {
    fn new(readers: Readers, lanes: Lanes) -> Self {
        let next = vec![0; lanes.count()];
        Self { readers, lanes, next, records: 0, heard: Instant::now() }
    }

    /// Takes what comes next, if anything comes soon.
    async fn skim(&mut self) -> Result<Skimmed, Error> {
        match tokio::time::timeout(POLL_TIMEOUT, self.readers.next()).await {
            Ok(fetched) => {
                self.heard = Instant::now();
                let skimmed = self.take(&fetched?)?;
                self.records += skimmed.records;
                Ok(skimmed)
            }
            Err(_) if self.heard.elapsed() > SILENCE_MAX => {
                Err(missing(format!("nothing came after {} records", self.records)))
            }
            Err(_) => Ok(Skimmed::default()),
        }
    }

    /// The offset that is next, by lane.
    fn next(&self) -> Vec<u64> {
        self.next.iter().map(|next| u64::try_from(*next).unwrap_or(0)).collect()
    }

    fn take(&mut self, fetched: &Fetched) -> Result<Skimmed, Error> {
        let (topic, partition) = (&fetched.topic.name, fetched.partition);
        let lane = self.lanes.lane(topic, partition);
        let found = lane.and_then(|lane| self.next.get_mut(usize::from(lane)));
        let Some(next) = found else { return Ok(Skimmed::default()) };
        let mut skimmed = Skimmed::default();
        for batch in fetched.batches() {
            let batch = batch.map_err(target("reading a fetched batch"))?;
            if batch.base_offset() > *next {
                return Err(missing(format!(
                    "partition {topic}-{partition}: offset {} follows {next}",
                    batch.base_offset()
                )));
            }
            if !batch.is_control() {
                let fresh = batch.next_offset() - *next;
                skimmed.records += u64::try_from(fresh).unwrap_or(0);
                skimmed.batches += 1;
            }
            *next = batch.next_offset().max(*next);
        }
        Ok(skimmed)
    }
}

fn missing(reason: String) -> Error {
    Error::Target { action: "reading a topic to its end".into(), reason }
}
