//! Searches for a ceiling, again and again: on a sink whose rate is known, on a broker that is far
//! away, so that what may be on the way is the limit, on one with small batches, where how fast
//! threads wake one another is, and on one under the load that `lab ceiling` makes unless something
//! else is asked for.
//!
//! What the first two sustain does not hang on how fast the machine is at the moment, so that
//! repeats tell how far the search itself scatters. What the others sustain hangs on processors and
//! disk, and on whether the broker is as fast in one moment as in the next.

use std::num::NonZeroU32;
use std::time::Duration;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::ceiling::machine::Machine;
use crate::ceiling::search::{Bounds, Found, Outcome, TRIALS};
use crate::ceiling::{Demand, SearchRecord, Trial};
use crate::checks::{Check, Weight};
use crate::experiments::bench::{Bench, Named};
use crate::experiments::ceiling::{QUICK_TRIAL_MS, Searching, TRIAL_MS, in_turn, usual_load};
use crate::result::Arm;
use crate::self_test::{Cell, Table};
use moldau_load::ledger::Audit;
use moldau_load::null_sink::Behaviour;
use moldau_load::round_trips;
use moldau_load::workload::{Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::statistics::{float, furthest, median};

/// Records per second of the sink: a fraction of what generator and processors can do, so that
/// nothing but the sink is the limit.
const SINK_RATE: NonZeroU32 = NonZeroU32::new(20_000).expect("it is above 0");

/// What everything takes on the way to the broker that is far away, in each direction: long beside
/// what the broker and a late wakening of the line take.
const DISTANCE: Duration = Duration::from_millis(5);

/// How far the furthest repeat may lie from the median of all, and from a rate that is known.
const APART_MAX: f64 = 0.03;

/// Targets that are searched.
const TARGETS: u32 = 4;

/// Repeats, and of the short form.
const REPEATS: u32 = 10;
const REPEATS_QUICK: u32 = 4;

/// What producers hold back: many requests' worth, and 0.5 s of the sink's rate. At full speed
/// they fill it, and after each such run the target has to work it off.
const BUFFER_BYTES: u32 = 1 << 20;

const DEMAND: Demand = Demand { p99_ms: 50.0 };

/// How long round trips are counted ahead of each turn.
const YARDSTICK: Duration = Duration::from_secs(1);

const COLUMNS: [&str; 10] = [
    "target",
    "repeat",
    "records/s",
    "from",
    "to",
    "sustained",
    "missed",
    "stopped",
    "disturbed",
    "full speed, records/s",
];

const TRIAL_COLUMNS: [&str; 12] = [
    "target",
    "repeat",
    "records/s",
    "% of full speed",
    "outcome",
    "missed by",
    "p99, ms",
    "silent for, ms",
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
    1 + TARGETS * repeats(plan) * trials
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    let away = DISTANCE.as_millis();
    let far = format!("moldau broker without flushes, {away} ms away in each direction");
    let flushing = "moldau broker, acknowledging once the disk has it";
    let others = [Arm::of(target::FAR_BROKER, &far), Arm::of(target::FLUSHING_BROKER, flushing)];
    target::arms().into_iter().chain(others).collect()
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    bench.measure_disk_cost()?;
    bench.wait_in_turn();
    let behaviour = Behaviour { records_per_second: Some(SINK_RATE), ..Behaviour::default() };
    let targets = [
        Target::sink_that(plan, behaviour)?,
        Target::far_broker(plan, DISTANCE)?,
        Target::broker(plan)?,
        Target::flushing_broker(plan)?,
    ];
    let mut all = targets.each_ref().map(|target| {
        let fresh = || Searching::new(target.name(), offered(target.name(), plan.conditions.quick));
        let all: Vec<_> = std::iter::repeat_with(fresh).take(repeats(plan) as usize).collect();
        let machine = Machine::beside(all.len());
        (all, machine)
    });
    let mut round_trips = Vec::new();
    for turn in 0..TRIALS {
        // What the machine can do changes within seconds and over minutes. With all searches at the
        // same trial, and another of them first each time, that is no repeat's in particular.
        round_trips.push(round_trips::per_second(YARDSTICK)?);
        for (target, (repeats, machine)) in targets.iter().zip(&mut all) {
            for searching in in_turn(repeats, turn) {
                go_on((searching, machine), target, bench, findings)?;
            }
        }
    }
    let all = all.map(|(repeats, machine)| {
        repeats.into_iter().map(|searching| searching.finish(&machine)).collect::<Vec<_>>()
    });
    let searches = || all.iter().flatten();
    let trials: usize = searches().map(|search| search.trials.len()).sum();
    let disturbed: usize = searches().map(|search| search.count(Outcome::Disturbed)).sum();
    findings.checks.push(Check {
        name: "trials in which others took the machine".into(),
        passed: 3 * disturbed <= trials,
        weight: Weight::Validity,
        found: format!("{disturbed} of {trials}"),
        demanded: "at most a third".into(),
    });
    let [of_sink, _, _, of_flushing] = &all;
    let full_speeds: Vec<f64> = of_flushing.iter().map(|search| search.full_speed).collect();
    for of_target in &all {
        judge(of_target, findings);
    }
    judge_known(of_sink, findings);
    note_steadiness("the machine's own round trips", &round_trips, findings);
    note_steadiness("the broker's full speeds", &full_speeds, findings);
    findings.record.tables.extend(tables(&all));
    Ok(())
}

fn tables(all: &[Vec<SearchRecord>]) -> [Table; 2] {
    let numbered = || all.iter().flat_map(|of_target| (1_u32..).zip(of_target));
    let repeats = Table {
        title: "Repeats of the same search".into(),
        about: format!(
            "Each with {TRIALS} trials, of which the first is at full speed. The searches take \
             turns, trial by trial, as those of systems do in lab ceiling, so that each meets the \
             same machine. The sink answers {SINK_RATE} records per second of 100 B, and what may \
             be on the way, batches of 16,000 B, limits the broker that is far away. The broker \
             without flushes has records of 100 B in batches of 1,000 B, the one that flushes \
             the load of lab ceiling: 1 KB in batches of 128 KB over 10 partitions, \
             consumed. p99 within {} ms.",
            DEMAND.p99_ms
        ),
        columns: COLUMNS.map(String::from).to_vec(),
        rows: numbered().map(|(repeat, search)| row(search, repeat)).collect(),
    };
    let trials = Table {
        title: "Trials of these searches".into(),
        about: "In their order, behind those at full speed. Waits: by how much a record waited \
                longer from second to second. Taken: share of the machine that other processes \
                and the hypervisor had, beside what its own traffic with its disk costs there."
            .into(),
        columns: TRIAL_COLUMNS.map(String::from).to_vec(),
        rows: numbered().flat_map(|(repeat, search)| trial_rows(search, repeat)).collect(),
    };
    [repeats, trials]
}

/// What is offered in each trial.
fn offered(target: &str, quick: bool) -> Workload {
    if target == target::FLUSHING_BROKER {
        // What it does in the background comes and goes within seconds.
        return usual_load(if quick { QUICK_TRIAL_MS } else { TRIAL_MS });
    }
    // Short trials make short turns, in which the machine is the same for all.
    let (warmup_ms, window_ms) = if quick { (300, 1_200) } else { (500, 3_000) };
    // Large batches, one in each of five requests on the way, cost processors and disk little.
    let usual = if target == target::FAR_BROKER {
        Workload { partitions: 1, ..shape(1_000, 16_000) }
    } else {
        shape(100, 1_000)
    };
    let tuning = Tuning { buffer_bytes: BUFFER_BYTES, ..usual.tuning };
    Workload { warmup_ms, window_ms, linger_us: 1_000, tuning, ..usual }
}

/// The next trial of a search, on the machine that it shares with its repeats.
fn go_on(
    (searching, machine): (&mut Searching, &mut Machine),
    target: &Target,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let Some((workload, rate)) = searching.next(machine) else { return Ok(()) };
    bench.step(&format!("Search on the {}", target.name()));
    let measured = target.run(bench, findings, &workload, &mut || ())?;
    let named = Named { case: "ceiling", path: &target.path, pair: 0 };
    let run = bench.run_record(named, &workload, &measured, Audit::default(), 0)?;
    searching.note(&run, rate, DEMAND, machine);
    Ok(())
}

fn row(search: &SearchRecord, repeat: u32) -> Vec<Cell> {
    let SearchRecord { arm, found, full_speed, .. } = search;
    let count = |outcome| Cell::from(float(search.count(outcome) as u64));
    vec![
        arm.as_str().into(),
        f64::from(repeat).into(),
        found.rate.into(),
        found.interval_95.low.into(),
        found.interval_95.high.into(),
        count(Outcome::Sustained),
        count(Outcome::Missed),
        count(Outcome::Stopped),
        count(Outcome::Disturbed),
        (*full_speed).into(),
    ]
}

fn trial_rows(search: &SearchRecord, repeat: u32) -> Vec<Vec<Cell>> {
    let row = |trial: &Trial| {
        let missed: Vec<&str> = trial.misses.iter().map(|miss| miss.words()).collect();
        vec![
            search.arm.as_str().into(),
            f64::from(repeat).into(),
            trial.rate.into(),
            (100.0 * trial.rate / search.full_speed).into(),
            trial.outcome.word().into(),
            missed.join(", ").into(),
            trial.p99_ms.into(),
            trial.silence_ms.into(),
            trial.growth.map_or("too few slots".into(), |it| it.ms_per_second.into()),
            (100.0 * trial.reached).into(),
            (100.0 * trial.taken).into(),
            (100.0 * trial.generator_thread).into(),
        ]
    };
    search.trials.iter().map(row).collect()
}

/// Repeats agree.
fn judge(searches: &[SearchRecord], findings: &mut Findings) {
    let Some(target) = searches.first().map(|search| &search.arm) else { return };
    let rates: Vec<f64> = searches.iter().map(|search| search.found.rate).collect();
    let middle = median(&rates);
    let apart = furthest(&rates, middle);
    let bounded = searches.iter().filter(|it| it.found.bounds == Bounds::Both).count();
    findings.promise(
        format!("{target}: furthest of {} ceilings from their median", rates.len()),
        apart <= APART_MAX && bounded == rates.len(),
        format!("{:.1} % of {middle:.0} records/s", apart * 100.0),
        &format!("<= {:.0} %", APART_MAX * 100.0),
    );
}

/// A ceiling that is known is found, and lies where the intervals say.
fn judge_known(searches: &[SearchRecord], findings: &mut Findings) {
    let known = f64::from(SINK_RATE.get());
    let found: Vec<Found> = searches.iter().map(|search| search.found).collect();
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

/// Whether the machine itself keeps still, by what it does without any search.
fn note_steadiness(what: &str, per_second: &[f64], findings: &mut Findings) {
    let middle = median(per_second);
    let apart = furthest(per_second, middle);
    findings.checks.push(Check {
        name: format!("{what}, furthest from their median"),
        passed: apart <= APART_MAX,
        weight: Weight::Note,
        found: format!("{:.0} % of {middle:.0} per second", apart * 100.0),
        demanded: format!("<= {:.0} %, as of repeats", APART_MAX * 100.0),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use moldau_measure::statistics::Interval;

    fn search(rate: f64) -> SearchRecord {
        let interval_95 = Interval { low: rate * 0.99, high: rate * 1.01 };
        let found = Found { rate, interval_95, unstable: None, bounds: Bounds::Both };
        SearchRecord { found, ..sample::search("x", 1) }
    }

    fn checks(judge: impl Fn(&mut Findings)) -> Vec<(bool, Weight)> {
        let mut findings = Findings::default();
        judge(&mut findings);
        findings.checks.iter().map(|check| (check.passed, check.weight)).collect()
    }

    #[test]
    fn repeats_that_lie_apart_break_the_promise() {
        let judged = |searches: &[SearchRecord]| checks(|it| judge(searches, it));
        let near = [100.0, 102.0, 98.0].map(search);
        assert_eq!(judged(&near), [(true, Weight::Objective)]);
        let apart = [100.0, 104.0, 98.0].map(search);
        assert_eq!(judged(&apart), [(false, Weight::Objective)]);
        let mut open = search(100.0);
        open.found.bounds = Bounds::Above;
        assert_eq!(judged(&[open]), [(false, Weight::Objective)]);
    }

    #[test]
    fn a_known_rate_is_to_be_found() {
        let passed = |rates: [f64; 2]| {
            let judged = checks(|findings| judge_known(&rates.map(search), findings));
            judged.into_iter().map(|(passed, _)| passed).collect::<Vec<_>>()
        };
        assert_eq!(passed([20_100.0, 19_900.0]), [true, true]);
        assert_eq!(passed([20_100.0, 20_500.0]), [true, false]);
        assert_eq!(passed([20_100.0, 19_000.0]), [false, false]);
    }

    #[test]
    fn a_machine_that_does_not_keep_still_is_noted() {
        let noted = |rates: &[f64]| checks(|it| note_steadiness("x", rates, it));
        assert_eq!(noted(&[100.0, 102.0, 98.0]), [(true, Weight::Note)]);
        assert_eq!(noted(&[100.0, 90.0, 98.0]), [(false, Weight::Note)]);
    }
}
