//! The load generator: producer threads and a consumer thread, each with its own runtime and
//! connections, in this process; the systems under test are processes of their own.
//!
//! The calling thread does nothing but open and close the window of the processor-time meter, so
//! that no thread does two things at a time that is being measured.

mod clock;
mod consuming;
pub mod niceness;
mod outcome;
mod producing;
mod sharing;
mod skimming;
pub mod slots;
mod threads;
mod topics;

use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use moldau_client::{ClusterOptions, ConnectionOptions, Security};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::ledger::{DeliveryLedger, SentLedger};
use crate::payload::{Account, PayloadWriter};
use crate::run::{Requests, Slot, WorkerRecord};
use crate::security::Credentials;
use crate::shape::Dealer;
use crate::workload::Workload;
pub use clock::{BlockingTimer, RunClock};
use moldau_measure::Error;
use moldau_measure::cpu::{CpuMeter, GENERATOR_ROLE, HostUsage, ProcessUsage};
use moldau_measure::histograms::Latencies;
pub use outcome::{Parts, ShareRecord};
pub use sharing::{Accord, Part, Share, raise};
use sharing::{Acknowledged, Alone, Settled, ends_by_lane};
pub use skimming::{Scan, Scanned, scan};
pub use slots::slot_ms;
use threads::{Threads, cause, join, spawn};

/// How long the threads may take to connect.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two looks at whether a run was given up.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Signals of threads that wait to be heard; each thread sends at most two in its life.
const SIGNALS_MAX: usize = 8;

/// How the partitions of a workload lie in their topic, and what ends a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// They are the first of the topic, and the client ends batches by size and linger.
    #[default]
    Dense,
    /// They are every `stride`-th of the topic, and the generator ends each batch after the same
    /// number of records, so that batches are the same whatever the number of partitions.
    Spread {
        /// Distance from one to the next, at least 1.
        stride: u32,
    },
    /// As dense, but each record goes to the partition after that of the record before, as records
    /// with keys do: batches of many partitions grow side by side and leave in common requests.
    Scattered,
}

impl Layout {
    /// The number in its topic of the workload's partition `lane`.
    pub fn partition(self, lane: u16) -> i32 {
        i32::try_from(u32::from(lane).saturating_mul(self.stride())).unwrap_or(i32::MAX)
    }

    /// The workload's partition that a partition of the topic is; `None` for one of no run.
    pub fn lane(self, partition: i32) -> Option<u16> {
        let partition = u32::try_from(partition).ok()?;
        let lane = partition.is_multiple_of(self.stride()).then(|| partition / self.stride())?;
        u16::try_from(lane).ok()
    }

    fn stride(self) -> u32 {
        match self {
            Self::Dense | Self::Scattered => 1,
            Self::Spread { stride } => stride.max(1),
        }
    }
}

/// One run against one target.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Address that the clients connect to first.
    pub bootstrap: String,
    /// How they connect, and what they should see.
    pub clients: Clients,
    /// An existing topic, or what the names of several begin with, see [`Setup::topics`].
    pub topic: String,
    /// Number of the run, in every record.
    pub run: u32,
    /// Seed of payloads.
    pub seed: u64,
    /// What to offer.
    pub workload: Workload,
    /// Which partitions it goes to.
    pub layout: Layout,
    /// Id of the first producer thread; those of several runs over one topic must not meet.
    pub first_producer: u16,
    /// Processes to measure, by role and process id; the generator adds itself.
    pub processes: Vec<(String, u32)>,
    /// Whether records say what they are and are checked when they come back. Without it they hold
    /// filler alone and are merely counted: what is left is the cost of the ledger.
    pub is_accounted: bool,
}

/// How the clients of a run connect, and what they should see.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// Whether they reach every broker at the first address, see
    /// [`ClusterOptions::bootstrap_only`].
    pub bootstrap_only: bool,
    /// How they secure connections, and who they say they are.
    pub security: Security,
    /// What that is made from, where it can be made again on another machine.
    pub credentials: Option<Credentials>,
    /// How the account in documents reaches the consumer.
    pub account: Account,
    /// Whether threads with intended times wait for a processor as all others do.
    pub waits_in_turn: bool,
}

impl Setup {
    fn cluster_options(&self) -> ClusterOptions {
        let Clients { bootstrap_only, security, .. } = self.clients.clone();
        let usual = ConnectionOptions::default();
        // A connection must not hold back what its producer may have on its way.
        let in_flight_max = usual.in_flight_max.max(self.workload.tuning.in_flight_max.into());
        let connection = ConnectionOptions { security, in_flight_max, ..usual };
        ClusterOptions { connection, bootstrap_only, ..ClusterOptions::default() }
    }
}

/// What a run gave.
#[derive(Debug)]
pub struct Measured {
    /// Start of the measured window.
    pub window_start: Instant,
    /// Its length, ns.
    pub window_ns: u64,
    /// Operations of the schedule inside the window.
    pub offered: u64,
    /// Operations never offered.
    pub shed: u64,
    /// Those of the window that were acknowledged in the end.
    pub answered: u64,
    /// Records acknowledged inside the window.
    pub produced_records: u64,
    /// Batches acknowledged inside the window.
    pub produced_batches: u64,
    /// Records acknowledged in the whole run.
    pub acked_records: u64,
    /// Batches acknowledged in the whole run.
    pub acked_batches: u64,
    /// Bytes of the values of records acknowledged in the whole run.
    pub acked_bytes: u64,
    /// Produce requests of the whole run.
    pub requests: u64,
    /// What they did inside the window.
    pub requests_in_window: Requests,
    /// Records delivered inside the window.
    pub consumed_records: u64,
    /// Record batches delivered inside the window.
    pub consumed_batches: u64,
    /// Bytes of the batches that were read, as they are stored.
    pub stored_bytes: u64,
    /// Histograms of the operations of the window.
    pub latencies: Latencies,
    /// The course of the window.
    pub series: Vec<Slot>,
    /// What it is made from.
    slots: Vec<slots::SlotSamples>,
    /// What each producer knows of its records.
    pub sent: Vec<SentLedger>,
    /// What came back; absent where nothing was consumed.
    pub delivered: Option<DeliveryLedger>,
    /// What came of transactions, where producers make such.
    pub transactions: Option<producing::TransactionsOutcome>,
    /// Use of the processes inside the window.
    pub processes: Vec<ProcessUsage>,
    /// Use of the machine inside the window.
    pub host: HostUsage,
    /// Figures of each worker; empty if this process offered the load.
    pub workers: Vec<WorkerRecord>,
}

/// What threads share while a run goes on.
struct Shared<'a> {
    setup: &'a Setup,
    /// Which share of it is offered and read here.
    share: Share,
    /// The clock, once every thread is ready.
    start: watch::Receiver<Option<RunClock>>,
    /// Closed when the run is given up.
    stop: watch::Receiver<()>,
    /// What was acknowledged, once all producers have settled theirs.
    settled: Settled,
    /// When a reader has read everything.
    end: End,
}

/// The condition under which a reader has read everything.
#[derive(Clone, Copy)]
enum End {
    /// All that was acknowledged was passed.
    Acked,
    /// All offsets below the ends of the partitions were passed, which are so many together.
    Offsets(u64),
}

impl Shared<'_> {
    /// The output of a thread's future, or an error if the run is given up or never starts.
    async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let (mut stop, mut start) = (self.stop.clone(), self.start.clone());
        let never_starts = async {
            if start.wait_for(Option::is_some).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            done = work => done,
            () = async { while stop.changed().await.is_ok() {} } => Err(Error::GivenUp),
            () = never_starts => Err(Error::GivenUp),
        }
    }

    /// Signals the coordinator that this thread has finished, and waits until the thread's usage is
    /// measured.
    async fn finished(&self, ready: &mpsc::SyncSender<()>) {
        if ready.send(()).is_ok() {
            self.until_measured().await;
        }
    }

    /// Waits until what the window's processes and threads used has been read. A thread that ended
    /// before would be missing from it.
    async fn until_measured(&self) {
        let mut start = self.start.clone();
        start.mark_unchanged();
        // The clock never changes again; its sender goes once the measuring is done.
        while start.changed().await.is_ok() {}
    }

    /// Signals the coordinator that this thread is ready, and waits for the clock. If another
    /// thread failed, that thread reports the error.
    async fn ready(&self, ready: &mpsc::SyncSender<()>) -> Result<RunClock, Error> {
        if ready.send(()).is_err() {
            tracing::debug!("the coordinator has given up, and the clock will not come");
        }
        let mut start = self.start.clone();
        let clock = start.wait_for(Option::is_some).await.map(|clock| *clock);
        clock.ok().flatten().ok_or(Error::GivenUp)
    }
}

/// Produces to a topic, and consumes from it meanwhile if the workload says so.
///
/// # Errors
/// [`Error::Plan`] for an impossible workload, [`Error::Target`] when the target fails in a way
/// that ends the run, [`Error::Machine`] when a measured process is gone.
pub fn produce(setup: &Setup) -> Result<Measured, Error> {
    produce_watched(setup, &mut || {})
}

/// As [`produce`], calling `at_edge` at both ends of the measured window, where its own work is
/// outside of what is measured: for counters of the target.
///
/// # Errors
/// As [`produce`].
pub fn produce_watched(setup: &Setup, at_edge: &mut dyn FnMut()) -> Result<Measured, Error> {
    let (_never, stop) = watch::channel(());
    let part = Part { share: Share::WHOLE, accord: &mut Alone, stop };
    produce_part(setup, part, at_edge)
}

/// As [`produce_watched`], of a share of the load that others offer the rest of.
///
/// # Errors
/// As [`produce`], and when the run is given up.
pub fn produce_part(
    setup: &Setup,
    part: Part<'_>,
    at_edge: &mut dyn FnMut(),
) -> Result<Measured, Error> {
    setup.workload.check()?;
    let workload = &setup.workload;
    let contents = contents(setup)?;
    let (start, started) = watch::channel(None);
    let Part { share, accord, stop } = part;
    let settled = Settled::new();
    let shared = Shared { setup, share, start: started, stop, settled, end: End::Acked };
    thread::scope(|scope| {
        let (ready, readiness) = mpsc::sync_channel(SIGNALS_MAX);
        let threads = Threads::spawn(scope, &shared, &contents, ready)?;
        let clock = wait_until_ready(&readiness, threads.count(), accord).inspect(|clock| {
            start.send_replace(Some(*clock));
        });
        // Without a clock the threads end by themselves once the sender is gone.
        let usage = clock.and_then(|clock| {
            let window_start = clock.instant(nanos(workload.warmup()));
            let processes = measured_processes(setup);
            let window = workload.window();
            measure_window(&processes, window_start..window_start + window, at_edge, &shared.stop)
        });
        drop(start);
        threads.join(&shared, accord, usage)
    })
}

/// What the producers of a run send.
fn contents(setup: &Setup) -> Result<producing::Contents, Error> {
    let Workload { filler, record_bytes, ref tuning, .. } = setup.workload;
    let (account, seed, shape) = (setup.clients.account, setup.seed, &tuning.shape);
    let payloads = PayloadWriter::shaped(filler, account, seed, record_bytes, shape)?;
    let dealer = Dealer::of(shape, record_bytes, filler.record_bytes_min(), seed);
    Ok(producing::Contents { payloads, dealer })
}

/// Reads a topic from its start until every record that `sent` knows as acknowledged is there.
///
/// # Errors
/// As [`produce`].
pub fn read_back(setup: &Setup, sent: &[SentLedger]) -> Result<Measured, Error> {
    let ends = ends_by_lane(setup, sent.iter());
    read(setup, ends, Duration::MAX, End::Acked)
}

/// Reads a topic from its start until all offsets below the ends of its partitions, which are
/// `offsets` together, are passed, or for `limit`: whatever a producer knows of them.
///
/// # Errors
/// As [`produce`].
pub fn read_back_offsets(setup: &Setup, offsets: u64, limit: Duration) -> Result<Measured, Error> {
    read(setup, Vec::new(), limit, End::Offsets(offsets))
}

fn read(setup: &Setup, ends: Vec<u64>, limit: Duration, end: End) -> Result<Measured, Error> {
    setup.workload.check()?;
    let (start, started) = watch::channel(None);
    let (_never, stop) = watch::channel(());
    let settled = Settled::from(Acknowledged { ends, in_window: None });
    let shared = Shared { setup, share: Share::WHOLE, start: started, stop, settled, end };
    thread::scope(|scope| {
        let (ready, readiness) = mpsc::sync_channel(SIGNALS_MAX);
        let shared = &shared;
        let run = move || consuming::run(shared, limit, &ready);
        let consumer = spawn(scope, "lab-consumer".into(), false, run)?;
        let begun = wait_until_ready(&readiness, 1, &mut Alone).and_then(|clock| {
            let meter = CpuMeter::start(&measured_processes(setup))?;
            start.send_replace(Some(clock));
            Ok((clock, meter))
        });
        // The consumer waits with its end until the meter has seen all of its processor time; one
        // that failed has hung up instead, which ends the wait as well.
        // One that was given no clock waits for that, and ends once the sender is gone.
        let finished = begun.is_ok() && readiness.recv().is_ok();
        let usage = begun.and_then(|(clock, meter)| Ok((clock, meter.stop()?)));
        drop(start);
        let consumed = join(consumer);
        tracing::debug!(finished, "read back");
        let (consumed, (clock, (processes, host))) = match (consumed, usage) {
            (Ok(consumed), Ok(usage)) => (consumed, usage),
            (consumed, usage) => {
                return Err(cause([consumed.err(), usage.err()].into_iter().flatten()));
            }
        };
        let mut measured = Measured::empty(clock.instant(0), processes, host);
        measured.window_ns = consumed.finished_ns;
        measured.take_consumed(vec![consumed]);
        Ok(measured)
    })
}

impl Measured {
    fn empty(window_start: Instant, processes: Vec<ProcessUsage>, host: HostUsage) -> Self {
        Self {
            window_start,
            window_ns: 0,
            offered: 0,
            shed: 0,
            answered: 0,
            produced_records: 0,
            produced_batches: 0,
            acked_records: 0,
            acked_batches: 0,
            acked_bytes: 0,
            requests: 0,
            requests_in_window: Requests::default(),
            consumed_records: 0,
            consumed_batches: 0,
            stored_bytes: 0,
            latencies: Latencies::default(),
            series: Vec::new(),
            slots: Vec::new(),
            sent: Vec::new(),
            delivered: None,
            transactions: None,
            processes,
            host,
            workers: Vec::new(),
        }
    }

    /// The course of the window, with its silences where anything was produced.
    pub fn course(&self, workload: &Workload) -> Vec<Slot> {
        let mut course = self.series.clone();
        if self.produced_records > 0 {
            let silences_ns = slots::silences_ns(&self.slots, workload);
            course.resize_with(course.len().max(silences_ns.len()), Slot::default);
            course.iter_mut().zip(silences_ns).for_each(|(slot, ns)| slot.silence_ns = ns);
        }
        course
    }

    fn take_produced(&mut self, produced: Vec<producing::Produced>) {
        for producing::Produced { outcomes, latencies, slots } in produced {
            self.latencies.merge(&latencies);
            slots::merge(&mut self.slots, slots);
            self.take_outcomes(outcomes);
        }
    }

    fn take_outcomes(&mut self, outcomes: Vec<producing::Outcome>) {
        for outcome in outcomes {
            self.offered += outcome.offered;
            self.shed += outcome.shed;
            self.answered += outcome.answered;
            self.produced_records += outcome.produced_records;
            self.produced_batches += outcome.produced_batches;
            self.acked_records += outcome.ledger.acked_count();
            self.acked_batches += outcome.acked_batches;
            self.acked_bytes += outcome.acked_bytes;
            self.requests += outcome.requests;
            self.requests_in_window = self.requests_in_window.plus(outcome.in_window);
            if let Some(made) = outcome.transactions {
                self.transactions.get_or_insert_default().merge(&made);
            }
            self.sent.push(outcome.ledger);
        }
    }

    fn take_tailed(&mut self, tailed: Vec<skimming::Tailed>) {
        for skimming::Tailed { records, batches, slots } in tailed {
            self.consumed_records += records;
            self.consumed_batches += batches;
            slots::merge(&mut self.slots, slots);
        }
    }

    fn take_consumed(&mut self, consumed: Vec<consuming::Outcome>) {
        for outcome in consumed {
            self.consumed_records += outcome.consumed_records;
            self.consumed_batches += outcome.consumed_batches;
            self.stored_bytes += outcome.stored_bytes;
            self.latencies.end_to_end.merge(&outcome.end_to_end);
            slots::merge(&mut self.slots, outcome.slots);
            self.delivered = Some(outcome.ledger);
        }
        self.series = self.slots.iter().map(slots::SlotSamples::summary).collect();
    }
}

fn wait_until_ready(
    readiness: &mpsc::Receiver<()>,
    threads: usize,
    accord: &mut dyn Accord,
) -> Result<RunClock, Error> {
    let end = Instant::now() + READY_TIMEOUT;
    for _ in 0..threads {
        let left = end.saturating_duration_since(Instant::now());
        readiness.recv_timeout(left).map_err(|_| Error::Target {
            action: "connecting the generator".into(),
            reason: "not every thread became ready".into(),
        })?;
    }
    accord.start().map(RunClock::starting_at)
}

/// Measures processes inside a window, unless the run is given up before its end.
pub fn measure_window(
    processes: &[(String, u32)],
    window: Range<Instant>,
    at_edge: &mut dyn FnMut(),
    stop: &watch::Receiver<()>,
) -> Result<(Instant, Vec<ProcessUsage>, HostUsage), Error> {
    sleep_until(window.start, stop)?;
    at_edge();
    let meter = CpuMeter::start(processes)?;
    sleep_until(window.end, stop)?;
    let (processes, host) = meter.stop()?;
    at_edge();
    Ok((window.start, processes, host))
}

fn measured_processes(setup: &Setup) -> Vec<(String, u32)> {
    let mut processes = setup.processes.clone();
    processes.push((GENERATOR_ROLE.into(), std::process::id()));
    processes
}

fn sleep_until(instant: Instant, stop: &watch::Receiver<()>) -> Result<(), Error> {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if stop.has_changed().is_err() {
            return Err(Error::GivenUp);
        }
        thread::sleep(left.min(STOP_INTERVAL));
    }
}

/// Whole nanoseconds of a duration, at most `u64::MAX`.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A runtime of the calling thread alone.
pub fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::machine("starting a runtime"))
}

/// What the client reports, as an error of the target.
pub fn target(action: &str) -> impl Fn(moldau_client::Error) -> Error {
    let action = action.to_string();
    move |error| Error::Target { action: action.clone(), reason: error.to_string() }
}

#[cfg(test)]
impl Setup {
    /// A run of its own on the topic `lab-7`.
    pub fn of_tests(bootstrap: String, workload: Workload) -> Self {
        Self {
            bootstrap,
            clients: Clients::default(),
            topic: "lab-7".into(),
            run: 7,
            seed: 1,
            workload,
            layout: Layout::Dense,
            first_producer: 0,
            processes: Vec::new(),
            is_accounted: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_by_tails_are_in_the_series_of_a_run() {
        let mut measured = Measured::empty(Instant::now(), Vec::new(), HostUsage::default());
        let slot = || slots::SlotSamples { consumed_records: 5, ..Default::default() };
        let tail = || skimming::Tailed { records: 5, batches: 1, slots: vec![slot()] };
        measured.take_tailed(vec![tail(), tail()]);
        measured.take_consumed(Vec::new());
        assert_eq!((measured.consumed_records, measured.consumed_batches), (10, 2));
        assert_eq!(measured.series[0].consumed_records, 10);
    }

    #[test]
    fn lanes_of_a_spread_are_every_stride_th_partition() {
        let spread = Layout::Spread { stride: 100 };
        assert_eq!([0, 1, 9_999].map(|lane| spread.partition(lane)), [0, 100, 999_900]);
        assert_eq!([0, 100, 150, -100].map(|p| spread.lane(p)), [Some(0), Some(1), None, None]);
        assert_eq!((Layout::Dense.partition(7), Layout::Dense.lane(7)), (7, Some(7)));
        assert_eq!(Layout::Dense.lane(70_000), None);
    }
}
