//! Runs that the generator limits by construction must be refused, and moderate ones must not.

use std::thread;
use std::time::Duration;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::checks;
use crate::experiments::bench::{Bench, Named};
use crate::experiments::ceiling;
use crate::experiments::hogs::hogs;
use crate::result::Arm;
use crate::self_test::{Cell, Table};
use moldau_load::generator::niceness;
use moldau_load::ledger::Audit;
use moldau_load::payload::Filler;
use moldau_load::workload::{Codec, Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::statistics::float;

/// Runs of either kind.
const RUNS: u32 = 20;

/// Processes that do nothing but take the processor, for each that the machine has.
const HOGS_PER_PROCESSOR: usize = 6;

/// How many times the most that was made is asked for: what is made of a shape varies by a third
/// from run to run.
const BEYOND: std::ops::Range<f64> = 1.5..3.0;

/// From one rate that is tried to the next, and most of them.
const FASTER: f64 = 1.5;
const TRIES: u32 = 14;

/// What is made of a rate that is far beyond, and how many in a row have to be: once behind, the
/// generator makes less than it could, so that one says little.
const FAR_BEYOND: f64 = 0.5;
const FAR_IN_A_ROW: u32 = 3;

/// Share of the most that was made that is asked for while others take the processors.
const WITHIN: std::ops::Range<f64> = 0.05..0.1;

const WARMUP_MS: u64 = 500;
const WINDOW_MS: u64 = 2_000;

/// As in an experiment of three rounds, where so many have to be in time, or so many late before.
const IN_TIME: u32 = 3;
const LATE: u32 = 4;

pub(super) fn steps(_plan: &Plan) -> u32 {
    3 * (1 + TRIES) + 2 * RUNS
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms()
}

/// Why a run is limited by its generator.
#[derive(Clone, Copy)]
enum Limit {
    /// The rate is beyond what a thread can make.
    Rate,
    /// Batches are compressed, at a rate beyond what a thread can compress: next to nothing of it
    /// is the target's work.
    Compression,
    /// Other processes take most of the processors from it.
    Processors,
}

impl Limit {
    const ALL: [Self; 3] = [Self::Rate, Self::Compression, Self::Processors];

    fn words(self) -> &'static str {
        match self {
            Self::Rate => "a rate that no thread can make",
            Self::Compression => "a rate that no thread can compress",
            Self::Processors => "other processes take the processors",
        }
    }

    fn shape(self) -> Workload {
        match self {
            Self::Rate | Self::Processors => shape(100, 128 * 1024),
            Self::Compression => Workload {
                filler: Filler::Text,
                tuning: Tuning { compression: Codec::Gzip, ..Tuning::default() },
                ..shape(1_024, 64 * 1_024)
            },
        }
    }

    /// The shape at a rate by the most that was made of it, records per second.
    fn workload(self, most: f64, random: &mut fastrand::Rng) -> Workload {
        let share = match self {
            Self::Rate | Self::Compression => BEYOND,
            Self::Processors => WITHIN,
        };
        let times = share.start + (share.end - share.start) * random.f64();
        at_rate(most * times, self.shape())
    }
}

/// The most that the generator makes of a shape where only the sink could keep it from more,
/// records per second. Full speed alone does not tell it, at which the client sends in another
/// rhythm, nor does a rate far beyond, at which it makes less: so rates are tried until of several
/// in a row not half is made.
fn most(
    limit: Limit,
    sink: &Target,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<f64, Error> {
    let mut made = |workload: &Workload, how: &str| -> Result<f64, Error> {
        bench.step(&format!("{how}: {}", limit.words()));
        let measured = sink.run(bench, findings, workload, &mut || ())?;
        Ok(float(measured.produced_records) * 1e3 / float(WINDOW_MS))
    };
    let full = made(&timed(limit.shape()), "Full speed")?;
    if full == 0.0 {
        return Err(Error::Plan("the generator made nothing at full speed".into()));
    }
    let (mut most, mut rate, mut far) = (full, full, 0);
    for _ in 0..TRIES {
        let found = made(&at_rate(rate, limit.shape()), "Looking for a limit")?;
        most = most.max(found);
        far = if found < FAR_BEYOND * rate { far + 1 } else { 0 };
        if far == FAR_IN_A_ROW {
            return Ok(most);
        }
        rate *= FASTER;
    }
    Err(Error::Plan(format!("the generator made {most:.0} records per second")))
}

fn timed(workload: Workload) -> Workload {
    Workload { warmup_ms: WARMUP_MS, window_ms: WINDOW_MS, ..workload }
}

fn at_rate(per_second: f64, shape: Workload) -> Workload {
    ceiling::at_rate(&Workload { linger_us: 1_000, ..timed(shape) }, per_second)
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let sink = Target::sink(plan, Duration::ZERO)?;
    let broker = Target::broker(plan)?;
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut random = fastrand::Rng::with_seed(plan.conditions.seed);
    let mut limits = Vec::new();
    for limit in Limit::ALL {
        limits.push((limit, most(limit, &sink, bench, findings)?));
    }
    let mut rows = Vec::new();
    let mut refused = [0, 0];
    for (number, (limit, most)) in (0..RUNS).zip(limits.into_iter().cycle()) {
        let target = if number.is_multiple_of(2) { &sink } else { &broker };
        bench.step(&format!("Limited run {}: {}", number + 1, limit.words()));
        let workload = limit.workload(most, &mut random);
        let hogs = match limit {
            Limit::Processors => {
                let count = processors * HOGS_PER_PROCESSOR;
                let hogs = hogs(count, &plan.conditions.work_directory)?;
                // They take the processors from the generator only if they are scheduled as it is.
                hogs.iter().for_each(|hog| niceness::ask_for(hog.pid()));
                hogs
            }
            Limit::Rate | Limit::Compression => Vec::new(),
        };
        let reasons = reasons(target, bench, findings, &workload)?;
        drop(hogs);
        refused[0] += u32::from(!reasons.is_empty());
        rows.push(row(limit.words(), target, &workload, &reasons));
    }
    for number in 0..RUNS {
        let target = if number.is_multiple_of(2) { &sink } else { &broker };
        bench.step(&format!("Good run {}", number + 1));
        let shape = shape(random.usize(100..4_096), 16 * 1024);
        let workload = at_rate(1_000.0 + 19_000.0 * random.f64(), shape);
        let reasons = reasons(target, bench, findings, &workload)?;
        refused[1] += u32::from(!reasons.is_empty());
        rows.push(row("none: a moderate rate", target, &workload, &reasons));
    }
    let [limited, good] = refused;
    let found = |count: u32| format!("{count} of {RUNS}");
    findings.promise(
        "runs refused that the generator limited".into(),
        limited == RUNS,
        found(limited),
        "all",
    );
    findings.promise("good runs refused".into(), good == 0, found(good), "none");
    findings.record.tables.push(Table {
        title: "Runs and what the checks made of them".into(),
        about: "The same checks that every experiment makes of its runs at a fixed rate. A run \
                counts as refused that they refuse four times before three are in time. Rates \
                that no thread makes are 1.5 to 3 times the most that was made against the sink \
                at rising rates, up to three in a row of which not half was."
            .into(),
        columns: ["limit", "target", "records/s", "record, B", "refused because of"]
            .map(String::from)
            .to_vec(),
        rows,
    });
    Ok(())
}

/// The checks that refuse a run; none if it is good. As an experiment does, it goes on where its
/// generator was late.
fn reasons(
    target: &Target,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    workload: &Workload,
) -> Result<Vec<String>, Error> {
    let (mut in_time, mut late) = (0, 0);
    loop {
        let reasons = reasons_of_one(target, bench, findings, workload)?;
        if reasons.is_empty() {
            in_time += 1;
        } else {
            late += 1;
        }
        if late == LATE || in_time == IN_TIME {
            return Ok(if late == LATE { reasons } else { Vec::new() });
        }
    }
}

fn reasons_of_one(
    target: &Target,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    workload: &Workload,
) -> Result<Vec<String>, Error> {
    let measured = target.run(bench, findings, workload, &mut || ())?;
    let named = Named { case: "limits", path: &target.path, pair: 0 };
    let run = bench.run_record(named, workload, &measured, Audit::default(), 0)?;
    let failed = checks::of_generator(&run).into_iter().filter(|check| !check.passed);
    Ok(failed.map(|check| format!("{}: {}", check.name, check.found)).collect())
}

fn row(limit: &str, target: &Target, workload: &Workload, reasons: &[String]) -> Vec<Cell> {
    let Pace::Scheduled { per_second, .. } = workload.pace else { return Vec::new() };
    vec![
        limit.into(),
        target.name().into(),
        float(per_second).into(),
        float(workload.record_bytes as u64).into(),
        if reasons.is_empty() { "not refused".into() } else { reasons.join("; ").into() },
    ]
}
