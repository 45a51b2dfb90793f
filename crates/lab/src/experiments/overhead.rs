//! What does the proxy cost? The broker directly against the broker through the proxy.
//!
//! Pairs of runs stand next to each other, the order within a pair alternates (ABBA), and both
//! runs of a pair offer the same bytes at the same intended times. The fixed rate is a part of
//! what the slower path takes at full speed, so that neither path queues by itself.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::Progress;
use super::bench::{Bench, Frame, Path};
use super::fronts::{Front, FrontPlan, RunningFront};
use crate::environment::Environment;
use crate::error::Error;
use crate::payload::Filler;
use crate::result::{Experiment, RunResult};
use crate::schedule::Arrivals;
use crate::systems::{Durability, Process, free_addresses, moldau_broker};
use crate::workload::{Pace, Workload};

const FIXED_RATE: &str = "Fixed rate, produced and consumed at once";
const PRODUCE: &str = "Produce at full speed";
const CONSUME: &str = "Consume at full speed";

/// Name of the baseline arm.
pub const DIRECT: &str = "direct";

/// Name of the arm through the proxy.
pub const PROXY: &str = "passthrough";

/// Share of the slower path's full speed that a calibrated rate is: generator, broker and proxy
/// share the machine, and a path at half its speed already queues now and then.
const RATE_SHARE: f64 = 0.2;

/// A calibrated rate is at most this, in MB/s, which keeps the runs of a pair cheap to audit.
const RATE_MB_MAX: f64 = 20.0;

/// Time between the start of the fronts and the look at what they hold.
const REST: Duration = Duration::from_secs(2);

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `moldau` executable, started as broker and as proxy.
    pub moldau: PathBuf,
    /// Its version, for the report.
    pub version: String,
    /// Where the broker keeps its data and the systems their logs; must exist. The caller
    /// removes it.
    pub work_directory: PathBuf,
    /// Seed of payloads and statistics.
    pub seed: u64,
    /// Whether this is the short form.
    pub quick: bool,
    /// When the broker acknowledges.
    pub durability: Durability,
    /// Records per second of the fixed rate; `None` calibrates.
    pub rate: Option<u64>,
    /// The offered load; pace and windows of the fixed rate are in it.
    pub workload: Workload,
    /// Pairs at the fixed rate.
    pub pairs: u32,
    /// Pairs at full speed.
    pub full_speed_pairs: u32,
    /// Window of a run at full speed.
    pub full_speed_window: Duration,
    /// Stops the broker during one run, to show that the laboratory sees it.
    pub stall: Option<Stall>,
}

/// The broker stands still during the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Time from the making of the run's topic to the stall, which should fall into the window.
    pub after: Duration,
    /// Length of the stall.
    pub length: Duration,
}

impl Plan {
    /// The short form: six pairs of five seconds, in two minutes and a half.
    #[must_use]
    pub fn quick(moldau: PathBuf, version: String, work_directory: PathBuf) -> Self {
        Self {
            moldau,
            version,
            work_directory,
            seed: 1,
            quick: true,
            durability: Durability::Fsync,
            rate: None,
            workload: Workload {
                pace: Pace::Unpaced,
                record_bytes: 1024,
                filler: Filler::Text,
                partitions: 4,
                producers: 1,
                batch_bytes: 16 * 1024,
                linger_us: 1_000,
                consume: true,
                tails: 0,
                warmup_ms: 1_000,
                window_ms: 5_000,
            },
            pairs: 6,
            full_speed_pairs: 3,
            full_speed_window: Duration::from_secs(3),
            stall: None,
        }
    }

    /// The long form: ten pairs of thirty seconds.
    #[must_use]
    pub fn full(moldau: PathBuf, version: String, work_directory: PathBuf) -> Self {
        let quick = Self::quick(moldau, version, work_directory);
        Self {
            quick: false,
            workload: Workload { warmup_ms: 3_000, window_ms: 30_000, ..quick.workload.clone() },
            pairs: 10,
            full_speed_pairs: 6,
            full_speed_window: Duration::from_secs(5),
            ..quick
        }
    }

    fn check(&self) -> Result<(), Error> {
        self.workload.check()?;
        if self.pairs == 0 || self.rate == Some(0) {
            return Err(Error::Plan("at least one pair and one record per second".into()));
        }
        Ok(())
    }

    fn steps(&self) -> u32 {
        let calibration = if self.rate.is_none() { 1 } else { 0 };
        1 + calibration + 2 * (self.pairs + self.full_speed_pairs)
    }

    fn full_speed(&self) -> Workload {
        let window_ms = u64::try_from(self.full_speed_window.as_millis()).unwrap_or(u64::MAX);
        let consume = false;
        Workload {
            pace: Pace::Unpaced,
            warmup_ms: 500,
            window_ms,
            consume,
            ..self.workload.clone()
        }
    }
}

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] for an impossible plan; otherwise when a system does not start, ends early or
/// fails. A run whose figures do not hold is a verdict of the result, not an error.
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(plan.seed, plan.steps(), progress);
    bench.step("Start broker and proxy");
    let mut systems = Systems::start(plan)?;
    thread::sleep(REST);
    let arms = systems.fronts.iter().map(RunningFront::arm).collect();
    let environment = Environment::inspect(&plan.version, &plan.work_directory);
    let per_second = match plan.rate {
        Some(rate) => rate,
        None => calibrated_rate(plan, &mut bench, systems.paths())?,
    };
    let pace = Pace::Scheduled { per_second, arrivals: Arrivals::Constant };
    let workload = Workload { pace, consume: true, ..plan.workload.clone() };
    let mut stall = plan.stall;
    for pair in 0..plan.pairs {
        loop {
            let was_stalled = stall.is_some();
            for index in in_order([0, 1], pair) {
                let stalled = stall.take();
                with_stall(&systems.broker, stalled, || {
                    let path = systems.fronts[index].path();
                    bench.produce(path, FIXED_RATE, pair, &workload)
                })?;
                systems.check()?;
            }
            if was_stalled || !bench.must_repeat(FIXED_RATE, pair) {
                break;
            }
        }
    }
    let full_speed = plan.full_speed();
    for pair in 0..plan.full_speed_pairs {
        for index in in_order([0, 1], pair) {
            let path = systems.fronts[index].path();
            bench.produce_then_read(path, [PRODUCE, CONSUME], pair, &full_speed)?;
            systems.check()?;
        }
    }
    systems.stop()?;
    bench.finish(Frame {
        experiment: Experiment::Overhead,
        quick: plan.quick,
        environment,
        arms,
        objectives: Vec::new(),
    })
}

/// The two paths in the order of a pair: AB, BA, AB and so on.
fn in_order(arms: [usize; 2], pair: u32) -> [usize; 2] {
    let [first, second] = arms;
    if pair.is_multiple_of(2) { [first, second] } else { [second, first] }
}

fn calibrated_rate(plan: &Plan, bench: &mut Bench<'_>, paths: [&Path; 2]) -> Result<u64, Error> {
    let workload = Workload { warmup_ms: 500, window_ms: 2_000, ..plan.workload.clone() };
    let [_, proxy] = paths;
    let fastest = bench.calibrate(proxy, &workload)?;
    let allowed = RATE_MB_MAX / workload.megabytes(1);
    let rate = (fastest * RATE_SHARE).min(allowed);
    // Hundreds read well in a report.
    let rounded = (rate / 100.0).floor() * 100.0;
    Ok(whole(rounded.max(rate.min(100.0)).max(1.0)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate of at least 1; the cast saturates"
)]
fn whole(rate: f64) -> u64 {
    rate as u64
}

/// Does `work` while the broker stands still for a moment, if at all.
fn with_stall(
    broker: &Process,
    stall: Option<Stall>,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(Stall { after, length }) = stall else { return work() };
    thread::scope(|scope| {
        let stalling = scope.spawn(move || {
            thread::sleep(after);
            broker.suspend()?;
            thread::sleep(length);
            broker.resume()
        });
        let worked = work();
        let stalled = stalling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and(stalled)
    })
}

/// Broker and proxy, which run through the whole experiment.
struct Systems {
    /// Ended before the broker.
    fronts: [RunningFront; 2],
    broker: Process,
}

impl Systems {
    fn start(plan: &Plan) -> Result<Self, Error> {
        let directory = &plan.work_directory;
        let [listen, admin] = free_addresses()?;
        let data = directory.join("data");
        let spec = moldau_broker(&plan.moldau, &data, listen, admin, plan.durability);
        let broker = Process::start(&spec, directory)?;
        let fronts = FrontPlan {
            moldau: plan.moldau.clone(),
            kroxylicious: None,
            work_directory: directory.clone(),
            upstream: listen,
            node: 0,
            broker: (broker.role().to_string(), broker.pid()),
            seed: plan.seed,
        };
        let fronts = [Front::Direct.start(&fronts)?, Front::Passthrough.start(&fronts)?];
        Ok(Self { fronts, broker })
    }

    fn paths(&self) -> [&Path; 2] {
        self.fronts.each_ref().map(RunningFront::path)
    }

    fn check(&mut self) -> Result<(), Error> {
        self.broker.check_alive()?;
        self.fronts.iter_mut().try_for_each(RunningFront::check)
    }

    fn stop(self) -> Result<(), Error> {
        self.fronts.into_iter().try_for_each(RunningFront::stop)?;
        self.broker.stop()?;
        Ok(())
    }
}
