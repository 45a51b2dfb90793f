//! The target stops for a second at a known rate, and the response times must be what arithmetic
//! says of such a stop.
//!
//! In the short window the stop takes most of the time, so that even the median has its answer
//! from arithmetic alone; in the long one the median is the target's own.

use std::thread;
use std::time::{Duration, Instant};

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::experiments::bench::Bench;
use crate::result::Arm;
use crate::self_test::{Cell, Curves, Line, Table};
use crate::stall::expected_quantile;
use crate::systems::Process;
use moldau_load::generator::Measured;
use moldau_load::run::Slot;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::statistics::median;

/// Records per second, and the size of each: a second of them is one batch of 480 KB, so that what
/// waited goes out at once when the target goes on, and takes little longer than what others take.
const RATE: u32 = 10_000;
const RECORD_BYTES: usize = 40;
const BATCH_BYTES: usize = 512 * 1024;

const WARMUP_MS: u64 = 1_000;
const STALL: Duration = Duration::from_secs(1);

/// Time from the start of the window to the stop.
const STALL_AFTER: Duration = Duration::from_millis(200);

/// Windows of 1.3 and 10 times the stop.
const WINDOWS_MS: [u64; 2] = [1_300, 10_000];

/// Runs of each target. Each percentile is the median over them, since a resumed process may first
/// wait for a processor.
const REPEATS: u32 = 5;

const QUANTILES: [f64; 5] = [0.5, 0.95, 0.99, 0.999, 1.0];
const QUANTILE_NAMES: [&str; 5] = ["p50", "p95", "p99", "p99.9", "max"];

/// How far a latency may be off.
const TOLERANCE: f64 = 0.02;

/// A percentile whose answer is shorter is not the stop's but the target's own.
const OWN_MAX_MS: f64 = 50.0;

/// Latencies at [`QUANTILES`], ms.
type Latencies = [f64; 5];

pub(super) fn steps(_plan: &Plan) -> u32 {
    4 * REPEATS
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms()
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    for target in [Target::sink(plan)?, Target::broker(plan)?] {
        for window_ms in WINDOWS_MS {
            let window = Duration::from_millis(window_ms);
            let mut runs = Vec::new();
            for _ in 0..REPEATS {
                bench.step(&format!("{}, {:.1} s", target.name(), window.as_secs_f64()));
                runs.push(stalled_run(&target, bench, findings, window_ms)?);
            }
            let found = Found::middle(&target, window, &runs);
            let sources = found.sources();
            found.judge(findings);
            let title = format!("{}, window of {:.1} s", target.name(), window.as_secs_f64());
            findings.record.tables.push(table(&title, &sources));
            findings.record.curves.push(curves(title, window, &sources));
        }
    }
    Ok(())
}

/// One run of ours, with what arithmetic says of it.
struct Stalled {
    expected: Latencies,
    response: Latencies,
    service: Latencies,
}

/// The percentiles found in the runs of a target.
struct Found {
    target: String,
    window: Duration,
    middle: Stalled,
}

fn stalled_run(
    target: &Target,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    window_ms: u64,
) -> Result<Stalled, Error> {
    let workload = Workload {
        pace: Pace::Scheduled { per_second: RATE.into(), arrivals: Arrivals::Constant },
        partitions: 1,
        linger_us: 1_000,
        warmup_ms: WARMUP_MS,
        window_ms,
        ..shape(RECORD_BYTES, BATCH_BYTES)
    };
    let (measured, length) = thread::scope(|scope| {
        let mut stalling = None;
        let mut at_edge = || {
            // The second call is the end of the window, when the stop is over.
            stalling.get_or_insert_with(|| scope.spawn(|| stall(&target.process)));
        };
        let measured = target.run(bench, findings, &workload, &mut at_edge)?;
        let length = match stalling.map(thread::ScopedJoinHandle::join) {
            Some(stalled) => stalled.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
            None => Duration::ZERO,
        };
        Ok::<_, Error>((measured, length))
    })?;
    let window = workload.window();
    let own = own_time(&measured.series);
    let expected = |quantile| expected_quantile(quantile, window, length, own).as_secs_f64() * 1e3;
    Ok(Stalled {
        expected: QUANTILES.map(expected),
        response: latencies(&measured, |latencies| &latencies.response),
        service: latencies(&measured, |latencies| &latencies.service),
    })
}

/// Stops the target; how long it stood still.
fn stall(target: &Process) -> Result<Duration, Error> {
    thread::sleep(STALL_AFTER);
    target.suspend()?;
    let stopped = Instant::now();
    thread::sleep(STALL);
    target.resume()?;
    Ok(stopped.elapsed())
}

/// The median of the slots that the stop did not touch.
fn own_time(series: &[Slot]) -> Duration {
    let is_quiet = |slot: &&Slot| 1e3 * seconds(slot.response_max_ns) < OWN_MAX_MS;
    let medians = series.iter().filter(is_quiet).map(|slot| seconds(slot.response_p50_ns));
    Duration::from_secs_f64(median(&medians.collect::<Vec<_>>()))
}

fn latencies(
    measured: &Measured,
    kind: impl Fn(&moldau_measure::histograms::Latencies) -> &moldau_measure::histograms::Durations,
) -> Latencies {
    QUANTILES.map(|quantile| 1e3 * seconds(kind(&measured.latencies).quantile_ns(quantile)))
}

fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

impl Found {
    fn middle(target: &Target, window: Duration, runs: &[Stalled]) -> Self {
        let middle = |kind: fn(&Stalled) -> &Latencies| {
            std::array::from_fn(|at| {
                let of = |run| kind(run).get(at).copied().unwrap_or_default();
                median(&runs.iter().map(of).collect::<Vec<_>>())
            })
        };
        let middle = Stalled {
            expected: middle(|run| &run.expected),
            response: middle(|run| &run.response),
            service: middle(|run| &run.service),
        };
        Self { target: target.name().to_string(), window, middle }
    }

    fn sources(&self) -> Vec<(&'static str, Latencies)> {
        vec![
            ("arithmetic", self.middle.expected),
            ("moldau lab", self.middle.response),
            ("moldau lab, from sending on", self.middle.service),
        ]
    }

    /// Every percentile that the stop decides must be the one of arithmetic.
    fn judge(&self, findings: &mut Findings) {
        let Stalled { expected, response, .. } = self.middle;
        let decided = QUANTILE_NAMES.iter().zip(expected).zip(response);
        let decided = decided.filter(|((_, expected), _)| *expected > OWN_MAX_MS);
        let off = decided.map(|((name, expected), found)| (*name, found / expected - 1.0));
        let off: Vec<(&str, f64)> = off.collect();
        let worst = off.iter().map(|(_, off)| off.abs()).fold(0.0, f64::max);
        let words = off.iter().map(|(name, off)| format!("{name} {:+.2} %", off * 100.0));
        findings.promise(
            format!(
                "{}, window of {:.1} s: response times off arithmetic by",
                self.target,
                self.window.as_secs_f64()
            ),
            worst <= TOLERANCE && !off.is_empty(),
            words.collect::<Vec<_>>().join(", "),
            "<= 2 % each",
        );
    }
}

fn table(title: &str, sources: &[(&'static str, Latencies)]) -> Table {
    let columns = QUANTILE_NAMES.map(|name| format!("{name}, ms"));
    let row = |(name, latencies): &(&'static str, Latencies)| {
        std::iter::once(Cell::from(*name)).chain(latencies.map(Cell::from)).collect()
    };
    Table {
        title: format!("Stopped for 1 s: {title}"),
        about: format!(
            "{RATE} records/s of {RECORD_BYTES} B at fixed intended times, medians of {REPEATS} \
             runs. Arithmetic: an operation that is due in the stop waits until its end, and then \
             takes what others take. From sending on: what a generator tells that counts from \
             the moment when it sent."
        ),
        columns: std::iter::once("source".to_string()).chain(columns).collect(),
        rows: sources.iter().map(row).collect(),
    }
}

fn curves(title: String, window: Duration, sources: &[(&'static str, Latencies)]) -> Curves {
    let line = |(name, latencies): &(&'static str, Latencies)| Line {
        name: (*name).to_string(),
        ms: latencies.to_vec(),
    };
    let records = f64::from(RATE) * window.as_secs_f64();
    // The longest of so many is their last percentile.
    let quantiles = QUANTILES.map(|quantile| f64::min(quantile, 1.0 - 1.0 / records)).to_vec();
    Curves { title, quantiles, lines: sources.iter().map(line).collect() }
}
