//! Equal systems must differ as rarely as the level of the test says, and a planted difference
//! must be found: the estimator of every experiment, on hundreds of short pairs of real runs.

use std::time::Duration;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::experiments::bench::Bench;
use crate::result::Arm;
use crate::self_test::Table;
use moldau_load::generator::Measured;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::statistics::{float, log_ratios, median, paired_effect};

/// Pairs of one comparison of equals, and of one with a planted difference.
const PAIRS: usize = 6;
const PLANTED_PAIRS: usize = 12;

/// The difference that is planted, as a share of the target's processor time.
const PLANTED: f64 = 0.05;

/// Comparisons of equals on each target, and comparisons with a planted difference.
const COMPARISONS: usize = 100;
const COMPARISONS_QUICK: usize = 20;
const PLANTED_COMPARISONS: usize = 40;
const PLANTED_COMPARISONS_QUICK: usize = 8;

/// Bounds of the share of equals that differ, at the 5 % level.
const FALSE_SHARE: std::ops::RangeInclusive<f64> = 0.03..=0.07;

/// Least share of planted differences that are found.
const POWER_MIN: f64 = 0.8;

const RATE: u64 = 20_000;
const WARMUP_MS: u64 = 50;
const WINDOW_MS: u64 = 150;

/// Processor time that a sink works for each request where one is compared with another that works
/// more. Without work of its own a process is charged for waking and for moving bytes alone, and
/// that differs by a sixth from one short run to the next on a shared machine: nobody finds a
/// twentieth there in a dozen pairs, as the rows of the equal ones show.
const WORK: Duration = Duration::from_micros(200);

/// Runs that tell how much processor time a request costs the sink.
const CALIBRATION_RUNS: usize = 20;

/// The figures that are compared.
const FIGURES: [&str; 3] = ["processor time of the target", "response p50", "response p99"];

/// One pair of runs: the figures of both.
type Pair = [(f64, f64); 3];

pub(super) fn steps(plan: &Plan) -> u32 {
    let pairs = 2 * comparisons(plan) * PAIRS + planted(plan) * PLANTED_PAIRS;
    u32::try_from(pairs).unwrap_or(u32::MAX)
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms()
}

fn comparisons(plan: &Plan) -> usize {
    if plan.conditions.quick { COMPARISONS_QUICK } else { COMPARISONS }
}

fn planted(plan: &Plan) -> usize {
    if plan.conditions.quick { PLANTED_COMPARISONS_QUICK } else { PLANTED_COMPARISONS }
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let sink = Target::sink(plan, Duration::ZERO)?;
    let broker = Target::broker(plan)?;
    let mut rows = Vec::new();
    let mut all = Tally::default();
    for target in [&sink, &broker] {
        let pairs = pairs(bench, findings, [target, target], comparisons(plan) * PAIRS)?;
        for (figure, name) in FIGURES.into_iter().enumerate() {
            let tally = Tally::of(&pairs, PAIRS, figure, 1.0, plan.conditions.seed);
            all = all.plus(tally);
            rows.push(vec![
                name.into(),
                target.name().into(),
                "none".into(),
                PAIRS_WORDS.into(),
                tally.words().into(),
                tally.detectable.into(),
            ]);
        }
        let tally = Tally::of(&pairs, PLANTED_PAIRS, 0, 1.0 + PLANTED, plan.conditions.seed);
        rows.push(vec![
            FIGURES[0].into(),
            target.name().into(),
            "5 %, by arithmetic".into(),
            PLANTED_WORDS.into(),
            tally.words().into(),
            tally.detectable.into(),
        ]);
    }
    findings.promise(
        "equal systems that are told apart at the 5 % level".into(),
        FALSE_SHARE.contains(&all.share()),
        all.words(),
        "3 to 7 %",
    );
    let tally = burdened(plan, bench, findings)?;
    findings.promise(
        "sinks that work 5 % more and are told apart".into(),
        tally.share() >= POWER_MIN,
        tally.words(),
        ">= 80 %",
    );
    rows.push(vec![
        FIGURES[0].into(),
        "null sink that works".into(),
        "5 %, worked".into(),
        PLANTED_WORDS.into(),
        tally.words().into(),
        tally.detectable.into(),
    ]);
    findings.record.tables.push(Table {
        title: "Comparisons of neighbouring runs".into(),
        about: format!(
            "{RATE} records/s of 100 B for {WINDOW_MS} ms a run. A comparison tells its two sides \
             apart where the 95 % interval of the ratio leaves out 1. Detectable: what comparisons \
             of this spread find four times in five, the median of them. A sink that works takes \
             {} us of processor time for each request on top.",
            WORK.as_micros()
        ),
        columns: ["figure", "target", "planted", "pairs", "told apart", "detectable, %"]
            .map(String::from)
            .to_vec(),
        rows,
    });
    Ok(())
}

const PAIRS_WORDS: &str = "6";
const PLANTED_WORDS: &str = "12";

/// Comparisons of two sinks that work for each request, of which one works more, by a twentieth of
/// all that a request costs.
fn burdened(plan: &Plan, bench: &mut Bench<'_>, findings: &mut Findings) -> Result<Tally, Error> {
    let sink = Target::sink(plan, WORK)?;
    let mut costs = Vec::new();
    for _ in 0..CALIBRATION_RUNS {
        let measured = sink.run(bench, findings, &workload(), &mut || ())?;
        let returned = measured.requests_in_window.returned;
        costs.push(target_cpu(&measured) / float(returned.max(1)));
    }
    let burden = Duration::from_nanos(1).mul_f64(PLANTED * median(&costs));
    let burdened = Target::sink(plan, WORK + burden)?;
    let pairs = pairs(bench, findings, [&sink, &burdened], planted(plan) * PLANTED_PAIRS)?;
    Ok(Tally::of(&pairs, PLANTED_PAIRS, 0, 1.0, plan.conditions.seed))
}

fn workload() -> Workload {
    Workload {
        pace: Pace::Scheduled { per_second: RATE, arrivals: Arrivals::Constant },
        linger_us: 1_000,
        warmup_ms: WARMUP_MS,
        window_ms: WINDOW_MS,
        ..shape(100, 16 * 1024)
    }
}

/// Pairs of neighbouring runs, forwards and backwards in turn.
fn pairs(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    sides: [&Target; 2],
    count: usize,
) -> Result<Vec<Pair>, Error> {
    let mut pairs = Vec::with_capacity(count);
    for number in 0..count {
        bench.step(&format!("Pair {} of {count}, {}", number + 1, sides[0].name()));
        let mut run = |target: &Target| {
            let measured = target.run(bench, findings, &workload(), &mut || ())?;
            Ok::<_, Error>(figures(&measured))
        };
        let [first, second] = sides;
        let (a, b) = if number.is_multiple_of(2) {
            let a = run(first)?;
            (a, run(second)?)
        } else {
            let b = run(second)?;
            (run(first)?, b)
        };
        pairs.push([(a[0], b[0]), (a[1], b[1]), (a[2], b[2])]);
    }
    Ok(pairs)
}

fn figures(measured: &Measured) -> [f64; 3] {
    let records = float(measured.produced_records.max(1));
    let response = |quantile| float(measured.latencies.response.quantile_ns(quantile).max(1));
    [target_cpu(measured).max(1.0) / records, response(0.5), response(0.99)]
}

/// Processor time of the target in the window, ns.
fn target_cpu(measured: &Measured) -> f64 {
    let target =
        measured.processes.iter().find(|usage| usage.role != moldau_measure::cpu::GENERATOR_ROLE);
    float(target.map_or(0, |usage| usage.cpu_ns))
}

/// How many comparisons told their sides apart.
#[derive(Clone, Copy, Default)]
struct Tally {
    different: u32,
    comparisons: u32,
    /// The median of the detectable effects, percent.
    detectable: f64,
}

impl Tally {
    /// Comparisons of so many neighbouring pairs each, the second side's figure times `factor`.
    fn of(pairs: &[Pair], length: usize, figure: usize, factor: f64, seed: u64) -> Self {
        let of_pair = |pair: &Pair| pair.get(figure).map(|(a, b)| (*a, b * factor));
        let mut tally = Self::default();
        let mut detectable = Vec::new();
        for (comparison, pairs) in (0..).zip(pairs.chunks_exact(length)) {
            let values: Vec<(f64, f64)> = pairs.iter().filter_map(of_pair).collect();
            let Some(effect) = paired_effect(&log_ratios(&values), seed + comparison) else {
                continue;
            };
            tally.comparisons += 1;
            tally.different += u32::from(effect.is_different());
            detectable.push(effect.detectable.exp_m1() * 100.0);
        }
        Self { detectable: median(&detectable), ..tally }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            different: self.different + other.different,
            comparisons: self.comparisons + other.comparisons,
            detectable: 0.0,
        }
    }

    fn share(self) -> f64 {
        f64::from(self.different) / f64::from(self.comparisons.max(1))
    }

    fn words(self) -> String {
        let Self { different, comparisons, .. } = self;
        format!("{different} of {comparisons}, {:.1} %", 100.0 * self.share())
    }
}
