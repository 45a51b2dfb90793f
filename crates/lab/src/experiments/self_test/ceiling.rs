//! Searches for a ceiling, again and again: on a sink whose rate is known, and on the broker.

use std::num::NonZeroU32;
use std::time::Duration;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::ceiling::search::{Bounds, Found, Outcome, Search, TRIALS};
use crate::ceiling::{Demand, SearchRecord, Trial};
use crate::checks::{Check, Weight};
use crate::error::Error;
use crate::experiments::bench::{Bench, Named};
use crate::experiments::ceiling::{TRIAL_MS, at_rate, produced_per_second};
use crate::ledger::Audit;
use crate::null_sink::Behaviour;
use crate::result::Arm;
use crate::round_trips;
use crate::run::RunRecord;
use crate::self_test::{Cell, Table};
use crate::statistics::{float, median};
use crate::workload::{Tuning, Workload};

/// Records per second of the sink: a fraction of what generator and processors can do, so that
/// nothing but the sink is the limit.
const SINK_RATE: NonZeroU32 = NonZeroU32::new(20_000).expect("it is above 0");

/// How far the furthest repeat may lie from the median of all, and from a rate that is known.
const APART_MAX: f64 = 0.03;

/// Repeats, and of the short form.
const REPEATS: u32 = 10;
const REPEATS_QUICK: u32 = 4;

/// What producers hold back: many requests' worth, and 0.5 s of the sink's rate. At full speed
/// they fill it, and after each such run the target has to work it off.
const BUFFER_BYTES: u32 = 1 << 20;

const DEMAND: Demand = Demand { p99_ms: 50.0 };

/// How long round trips are counted ahead of each search.
const YARDSTICK: Duration = Duration::from_secs(1);

const COLUMNS: [&str; 10] = [
    "target",
    "repeat",
    "records/s",
    "from",
    "to",
    "sustained",
    "missed",
    "disturbed",
    "full speed, records/s",
    "bare round trips/s",
];

const TRIAL_COLUMNS: [&str; 11] = [
    "target",
    "repeat",
    "records/s",
    "% of full speed",
    "outcome",
    "missed by",
    "p99, ms",
    "waits, ms per s",
    "reached, %",
    "taken, %",
    "generator's thread, %",
];

fn repeats(plan: &Plan) -> u32 {
    if plan.conditions.quick { REPEATS_QUICK } else { REPEATS }
}

pub(super) fn steps(plan: &Plan) -> u32 {
    let trials = u32::try_from(TRIALS).unwrap_or(u32::MAX);
    2 * repeats(plan) * trials
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms()
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let behaviour = Behaviour { records_per_second: Some(SINK_RATE), ..Behaviour::default() };
    let targets = [Target::sink_that(plan, behaviour)?, Target::broker(plan)?];
    let mut all: [Vec<Searched>; 2] = Default::default();
    for _ in 0..repeats(plan) {
        // By turns, so that what the machine does meanwhile is nobody's in particular.
        for (target, searches) in targets.iter().zip(&mut all) {
            searches.push(search(target, plan, bench, findings)?);
        }
    }
    let searches = || all.iter().flatten().map(|searched| &searched.search);
    let trials: usize = searches().map(|search| search.trials.len()).sum();
    let disturbed: usize = searches().map(|search| search.count(Outcome::Disturbed)).sum();
    findings.checks.push(Check {
        name: "trials in which others took the machine".into(),
        passed: 3 * disturbed <= trials,
        weight: Weight::Validity,
        found: format!("{disturbed} of {trials}"),
        demanded: "at most a third".into(),
    });
    let found = all.each_ref().map(|of_target| {
        of_target.iter().map(|searched| searched.search.found).collect::<Vec<_>>()
    });
    for (target, found) in targets.iter().zip(&found) {
        judge(target.name(), found, findings);
    }
    let [of_sink, _] = &found;
    judge_known(of_sink, findings);
    let round_trips: Vec<f64> = all.iter().flatten().map(|it| it.round_trips).collect();
    note_steadiness(&round_trips, findings);
    findings.record.tables.extend(tables(&all));
    Ok(())
}

fn tables(all: &[Vec<Searched>; 2]) -> [Table; 2] {
    let numbered = || all.iter().flat_map(|of_target| (1_u32..).zip(of_target));
    let repeats = Table {
        title: "Repeats of the same search".into(),
        about: format!(
            "Each with {TRIALS} trials, of which the first is at full speed. The sink answers \
             {SINK_RATE} records per second, whatever processors do; what the broker sustains is \
             not known, and follows the machine. Records of 100 B in batches of 1,000 B, p99 \
             within {} ms. Bare round trips, over loopback with nothing under test in them, tell \
             ahead of each search how the machine went.",
            DEMAND.p99_ms
        ),
        columns: COLUMNS.map(String::from).to_vec(),
        rows: numbered().map(|(repeat, searched)| searched.row(repeat)).collect(),
    };
    let trials = Table {
        title: "Trials of these searches".into(),
        about: "In their order, behind those at full speed. Waits: by how much a record waited \
                longer from second to second. Taken: share of the machine that the hypervisor and \
                other processes had."
            .into(),
        columns: TRIAL_COLUMNS.map(String::from).to_vec(),
        rows: numbered().flat_map(|(repeat, searched)| searched.trial_rows(repeat)).collect(),
    };
    [repeats, trials]
}

/// One search.
struct Searched {
    /// The machine's own round trips over loopback ahead of it, per second.
    round_trips: f64,
    search: SearchRecord,
}

impl Searched {
    fn row(&self, repeat: u32) -> Vec<Cell> {
        let SearchRecord { arm, found, full_speed, .. } = &self.search;
        let count = |outcome| Cell::from(float(self.search.count(outcome) as u64));
        vec![
            arm.as_str().into(),
            f64::from(repeat).into(),
            found.rate.into(),
            found.interval_95.low.into(),
            found.interval_95.high.into(),
            count(Outcome::Sustained),
            count(Outcome::Missed),
            count(Outcome::Disturbed),
            (*full_speed).into(),
            self.round_trips.into(),
        ]
    }

    fn trial_rows(&self, repeat: u32) -> Vec<Vec<Cell>> {
        let row = |trial: &Trial| {
            let missed: Vec<&str> = trial.misses.iter().map(|miss| miss.words()).collect();
            vec![
                self.search.arm.as_str().into(),
                f64::from(repeat).into(),
                trial.rate.into(),
                (100.0 * trial.rate / self.search.full_speed).into(),
                trial.outcome.word().into(),
                missed.join(", ").into(),
                trial.p99_ms.into(),
                trial.growth.map_or("too few slots".into(), |it| it.ms_per_second.into()),
                (100.0 * trial.reached).into(),
                (100.0 * trial.taken).into(),
                (100.0 * trial.generator_thread).into(),
            ]
        };
        self.search.trials.iter().map(row).collect()
    }
}

fn search(
    target: &Target,
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<Searched, Error> {
    // What the sink answers is the same in every moment; what the machine gives the broker is not.
    let (warmup_ms, window_ms) = match (plan.conditions.quick, target.name()) {
        (true, _) => (300, 1_200),
        (false, target::BROKER) => TRIAL_MS,
        (false, _) => (500, 3_000),
    };
    // Small batches, which cost processors more than they cost a disk.
    let usual = shape(100, 1_000);
    let tuning = Tuning { buffer_bytes: BUFFER_BYTES, ..usual.tuning };
    let shape = Workload { warmup_ms, window_ms, linger_us: 1_000, tuning, ..usual };
    let mut trial = |workload: &Workload| -> Result<RunRecord, Error> {
        bench.step(&format!("Search on the {}", target.name()));
        let measured = target.run(bench, findings, workload, &mut || ())?;
        let named = Named { case: "ceiling", path: &target.path, pair: 0 };
        bench.run_record(named, workload, &measured, Audit::default(), 0)
    };
    let round_trips = round_trips::per_second(YARDSTICK)?;
    let full_speed = produced_per_second(&trial(&shape)?);
    let mut search = Search::new(full_speed);
    let mut trials = Vec::new();
    while let Some(rate) = search.next_rate() {
        let trial = Trial::of(&trial(&at_rate(&shape, rate))?, rate, DEMAND);
        search.note(rate, trial.outcome);
        trials.push(trial);
    }
    let search = SearchRecord {
        arm: target.name().into(),
        producers: shape.producers,
        record_bytes: shape.record_bytes as u64,
        full_speed,
        found: search.found(),
        trials,
    };
    Ok(Searched { round_trips, search })
}

/// Repeats agree.
fn judge(target: &str, found: &[Found], findings: &mut Findings) {
    let rates: Vec<f64> = found.iter().map(|found| found.rate).collect();
    let middle = median(&rates);
    let apart = furthest(&rates, middle);
    let bounded = found.iter().filter(|found| found.bounds == Bounds::Both).count();
    findings.promise(
        format!("{target}: furthest of {} ceilings from their median", found.len()),
        apart <= APART_MAX && bounded == found.len(),
        format!("{:.1} % of {middle:.0} records/s", apart * 100.0),
        &format!("<= {:.0} %", APART_MAX * 100.0),
    );
}

/// A ceiling that is known is found, and lies where the intervals say.
fn judge_known(found: &[Found], findings: &mut Findings) {
    let known = f64::from(SINK_RATE.get());
    let rates: Vec<f64> = found.iter().map(|found| found.rate).collect();
    let off = furthest(&rates, known);
    findings.promise(
        format!("furthest ceiling of the sink from its {SINK_RATE} records/s"),
        off <= APART_MAX,
        format!("{:.1} %", off * 100.0),
        &format!("<= {:.0} %", APART_MAX * 100.0),
    );
    let held = found.iter().filter(|found| !found.interval_95.excludes(known)).count();
    findings.checks.push(Check {
        name: "intervals that hold the sink's rate".into(),
        passed: 4 * held >= 3 * found.len(),
        weight: Weight::Note,
        found: format!("{held} of {}", found.len()),
        demanded: "three quarters".into(),
    });
}

/// Whether the machine itself keeps still: no system does better that wakes another for each
/// request.
fn note_steadiness(round_trips: &[f64], findings: &mut Findings) {
    let middle = median(round_trips);
    let apart = furthest(round_trips, middle);
    findings.checks.push(Check {
        name: "the machine's own round trips, furthest from their median".into(),
        passed: apart <= APART_MAX,
        weight: Weight::Note,
        found: format!("{:.0} % of {middle:.0} per second", apart * 100.0),
        demanded: format!("<= {:.0} %, as of repeats", APART_MAX * 100.0),
    });
}

fn furthest(rates: &[f64], from: f64) -> f64 {
    rates.iter().map(|rate| (rate / from - 1.0).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Interval;

    fn found(rate: f64) -> Found {
        let interval_95 = Interval { low: rate * 0.99, high: rate * 1.01 };
        Found { rate, interval_95, unstable: None, bounds: Bounds::Both }
    }

    fn passed(judge: impl Fn(&mut Findings)) -> Vec<bool> {
        let mut findings = Findings::default();
        judge(&mut findings);
        findings.checks.iter().map(|check| check.passed).collect()
    }

    #[test]
    fn repeats_that_lie_apart_break_the_promise() {
        let near = [100.0, 102.0, 98.0].map(found);
        assert_eq!(passed(|findings| judge("x", &near, findings)), [true]);
        let apart = [100.0, 104.0, 98.0].map(found);
        assert_eq!(passed(|findings| judge("x", &apart, findings)), [false]);
        let open = Found { bounds: Bounds::Above, ..found(100.0) };
        assert_eq!(passed(|findings| judge("x", &[open], findings)), [false]);
    }

    #[test]
    fn a_known_rate_is_to_be_found() {
        let near = [20_100.0, 19_900.0, 20_500.0].map(found);
        assert_eq!(passed(|findings| judge_known(&near, findings)), [true, false]);
        let off = [20_100.0, 19_000.0].map(found);
        assert_eq!(passed(|findings| judge_known(&off, findings)), [false, false]);
    }

    #[test]
    fn a_machine_that_does_not_keep_still_is_noted() {
        assert_eq!(passed(|findings| note_steadiness(&[100.0, 102.0, 98.0], findings)), [true]);
        assert_eq!(passed(|findings| note_steadiness(&[100.0, 90.0, 98.0], findings)), [false]);
    }
}
