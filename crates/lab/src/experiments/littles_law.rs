//! Little's law put to the test: records at a fixed rate, and a consumer that handles one record of
//! each partition at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use moldau_client::{
    Cluster, ClusterOptions, ConnectionOptions, Fetched, Fetcher, FetcherOptions, Start,
};
use moldau_records::Decompressor;
use serde::Deserialize;
use tokio::sync::Notify;

use super::bench::{Bench, Named, Path};
use super::running::Running;
use crate::checks::{Check, Weight};
use crate::littles_law::{LawPoint, LawRecord, TOLERANCE, around};
use moldau_load::generator::{self, Layout, Setup, nanos, runtime, target};
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;

/// How long to wait for the next records before looking whether the run is over.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// Largest batch after decompression; the generator's own are far smaller.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Handlers wait by a timer of whole milliseconds, and a second is no time of a handler.
const WORK_MS_MAX: u64 = 1_000;

/// Most records per second: the handlers of all partitions share one thread.
const RATE_MAX: u64 = 20_000;

/// Time before a window, in times of a handler.
const WARMUP_WORKS: u64 = 25;

/// What of Little's law is put to the test, as the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LawFile {
    /// The survey's systems that it is tested on.
    pub systems: Vec<String>,
    /// Records offered per second.
    pub records_per_second: u64,
    /// How long a handler waits with each record, ms.
    pub work_ms: u64,
}

impl LawFile {
    /// Refuses what cannot be measured.
    pub(super) fn check(&self, systems: &[String]) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Plan(format!("littles_law: {text}")));
        if self.systems.is_empty() {
            return refuse("systems: one at least".into());
        }
        if let Some(unknown) = self.systems.iter().find(|name| !systems.contains(name)) {
            return refuse(format!("{unknown:?} is not one of the systems"));
        }
        if !(1..=WORK_MS_MAX).contains(&self.work_ms) {
            return refuse(format!("work_ms: 1 to {WORK_MS_MAX}"));
        }
        if !(1..=RATE_MAX).contains(&self.records_per_second) {
            return refuse(format!("records_per_second: 1 to {RATE_MAX}"));
        }
        Ok(())
    }

    /// Steps of the test on one system: on one partition, and around the number that follows.
    pub(super) fn steps(rounds: u32) -> u32 {
        4 * rounds
    }

    /// What is offered; every record goes to the partition after that of the one before, so that
    /// all get the same rate.
    fn workload(&self, partitions: u16, window_ms: u64) -> Workload {
        let (per_second, arrivals) = (self.records_per_second, Arrivals::Constant);
        Workload {
            pace: Pace::Scheduled { per_second, arrivals },
            record_bytes: 128,
            filler: Filler::Text,
            partitions,
            producers: 1,
            batch_bytes: 16 * 1024,
            linger_us: 0,
            consume: false,
            tails: 0,
            // By then handlers are at work, and what waited for their start is done.
            warmup_ms: WARMUP_WORKS * self.work_ms,
            window_ms,
            tuning: Tuning::default(),
        }
    }
}

/// Measures how long a record is handled on one partition, and then the rate around the number of
/// partitions that follows from it.
pub(super) fn run<'r>(
    file: &LawFile,
    window_ms: u64,
    rounds: u32,
    bench: &mut Bench<'_>,
    running: impl Iterator<Item = &'r mut Running>,
) -> Result<LawRecord, Error> {
    let (records_per_second, work_ms) = (file.records_per_second, file.work_ms);
    let mut record = LawRecord { records_per_second, work_ms, points: Vec::new() };
    for Running { path, system, .. } in running {
        for round in 0..rounds {
            record.points.push(measure(file, 1, window_ms, round, bench, path)?);
        }
        let handled_none = || Error::Target {
            action: "handling records of one partition".into(),
            reason: "none came in the window".into(),
        };
        let response = record.response(&path.arm).ok_or_else(handled_none)?;
        for round in 0..rounds {
            for partitions in around(records_per_second, response) {
                record.points.push(measure(file, partitions, window_ms, round, bench, path)?);
            }
        }
        system.check_alive()?;
        bench.note(judged(&record, &path.arm, bench.seed()));
    }
    Ok(record)
}

/// Whether every rate is as near to the predicted one as demanded.
fn judged(record: &LawRecord, arm: &str, seed: u64) -> Check {
    let (tested, worst) = (record.tested(arm), record.worst(arm, seed));
    Check {
        name: format!("Little's law predicts the rate on {arm}, worst of {tested:?} partitions"),
        passed: worst.is_some_and(|(_, off)| off <= TOLERANCE),
        weight: Weight::Note,
        found: worst.map_or("nothing".into(), |(partitions, off)| {
            format!("{:.1} % off at {partitions}", off * 100.0)
        }),
        demanded: format!("{:.0} % at most", TOLERANCE * 100.0),
    }
}

/// One run: produced at the rate, handled meanwhile, read back afterwards.
fn measure(
    file: &LawFile,
    partitions: u16,
    window_ms: u64,
    round: u32,
    bench: &mut Bench<'_>,
    path: &Path,
) -> Result<LawPoint, Error> {
    let case = format!("Little's law, partitions {partitions}");
    bench.step(&format!("{case}: {}, {}", path.arm, round + 1));
    let workload = file.workload(partitions, window_ms);
    let layout = Layout::Scattered;
    let setup = Setup { layout, ..bench.setup(path, round, &workload) };
    let topic = setup.topic.clone();
    path.control.create_topic(&topic, partitions)?;
    let work = Duration::from_millis(file.work_ms);
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::sync_channel(1);
    let (produced, handled) = thread::scope(|scope| {
        let handling = scope.spawn(|| handle(&setup, work, ready, &stop));
        // Without an answer the handling has failed, and says so in the end.
        let _begun: Result<(), _> = is_ready.recv();
        let produced = generator::produce(&setup);
        stop.store(true, Ordering::SeqCst);
        let handled = handling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (produced, handled)
    });
    let (produced, handled) = (produced?, handled?);
    let (begin, window_ns) = (produced.window_start, produced.window_ns);
    let end = begin + Duration::from_nanos(window_ns);
    let in_window = handled.iter().filter(|(ended, _)| (begin..end).contains(ended));
    let times: Vec<u64> = in_window.map(|(_, took)| nanos(*took)).collect();
    bench.read_back(Named { case: &case, path, pair: round }, setup, produced)?;
    path.control.delete_topic(&topic)?;
    Ok(LawPoint {
        arm: path.arm.clone(),
        round,
        partitions,
        window_ns,
        handled: u64::try_from(times.len()).unwrap_or(u64::MAX),
        handling_ns: times.iter().sum(),
    })
}

/// When the handling of each record ended, and how long it took.
type Handled = Vec<(Instant, Duration)>;

/// Reports that it is ready, then handles records until it is stopped.
fn handle(
    setup: &Setup,
    work: Duration,
    ready: mpsc::SyncSender<()>,
    stop: &AtomicBool,
) -> Result<Handled, Error> {
    runtime()?.block_on(async {
        let connection = ConnectionOptions {
            security: setup.clients.security.clone(),
            ..ConnectionOptions::default()
        };
        let options = ClusterOptions { connection, ..ClusterOptions::default() };
        let connected = Cluster::connect(&[setup.bootstrap.as_str()], options).await;
        let cluster = connected.map_err(target("connecting a handler"))?;
        let mut fetcher = Fetcher::start(&cluster, FetcherOptions::default());
        let handled = Arc::new(Mutex::new(Handled::new()));
        let mut lanes = Vec::new();
        for partition in 0..setup.workload.partitions {
            let assigned = fetcher.assign(&setup.topic, partition.into(), Start::Earliest).await;
            assigned.map_err(target("assigning a partition"))?;
            let lane = Arc::new(Lane::default());
            tokio::spawn(Arc::clone(&lane).work_off(work, Arc::clone(&handled)));
            lanes.push(lane);
        }
        // Sending fails only if the producing thread has panicked.
        let _heard = ready.send(());
        let mut decompressor = Decompressor::default();
        while !stop.load(Ordering::SeqCst) {
            // Nothing in time is no failure: the rate may be low.
            let Ok(fetched) = tokio::time::timeout(POLL_TIMEOUT, fetcher.next()).await else {
                continue;
            };
            let fetched = fetched.map_err(target("fetching"))?;
            let count = records_of(&fetched, &mut decompressor)?;
            let index = usize::try_from(fetched.partition).unwrap_or(usize::MAX);
            if let Some(lane) = lanes.get(index) {
                lane.add(count);
            }
        }
        let mut handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *handled))
    })
}

fn records_of(fetched: &Fetched, decompressor: &mut Decompressor) -> Result<u64, Error> {
    let mut count = 0;
    let taken = fetched.for_each_record(decompressor, BATCH_BYTES_MAX, |_| count += 1);
    taken.map_err(target("reading a fetched batch"))?;
    Ok(count)
}

/// A partition: its records are handled one after the other.
#[derive(Default)]
struct Lane {
    /// Records that wait for their turn.
    waiting: AtomicU64,
    woken: Notify,
}

impl Lane {
    fn add(&self, count: u64) {
        self.waiting.fetch_add(count, Ordering::SeqCst);
        self.woken.notify_one();
    }

    /// Handles what waits, and what comes; ends with its runtime.
    async fn work_off(self: Arc<Self>, work: Duration, handled: Arc<Mutex<Handled>>) {
        loop {
            while self.waiting.load(Ordering::SeqCst) > 0 {
                let begun = Instant::now();
                tokio::time::sleep(work).await;
                let ended = Instant::now();
                let mut handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
                handled.push((ended, ended - begun));
                self.waiting.fetch_sub(1, Ordering::SeqCst);
            }
            self.woken.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::littles_law::tests::record;

    #[test]
    fn what_cannot_be_handled_is_refused() {
        let systems = ["moldau".to_string()];
        let file = |work_ms, records_per_second| LawFile {
            systems: systems.to_vec(),
            records_per_second,
            work_ms,
        };
        file(20, 400).check(&systems).unwrap();
        file(20, 400).workload(8, 1_000).check().unwrap();
        assert!(file(0, 400).check(&systems).is_err());
        assert!(file(20, 1 << 40).check(&systems).is_err());
        let unknown = file(20, 400).check(&["kafka".to_string()]).unwrap_err().to_string();
        assert!(unknown.contains("\"moldau\" is not one of the systems"), "{unknown}");
        let nowhere = LawFile { systems: Vec::new(), ..file(20, 400) };
        let nowhere = nowhere.check(&systems).unwrap_err().to_string();
        assert!(nowhere.ends_with("littles_law: systems: one at least"), "{nowhere}");
    }

    #[test]
    fn the_law_is_judged_by_its_worst_number_of_partitions() {
        let check = judged(&record(), "ours", 1);
        assert!(check.passed && check.found == "5.5 % off at 4", "{check:?}");
        let mut off = record();
        off.points[3].handled = 3_000;
        assert!(!judged(&off, "ours", 1).passed);
        assert!(!judged(&off, "theirs", 1).passed);
    }
}
