//! Searches for a ceiling, again and again: on a sink whose rate is known, and on the broker.

use std::num::NonZeroU32;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::ceiling::search::{Bounds, Found, Outcome, Search, TRIALS};
use crate::ceiling::{Demand, Trial};
use crate::checks::{Check, Weight};
use crate::error::Error;
use crate::experiments::bench::{Bench, Named};
use crate::experiments::ceiling::{TRIAL_MS, at_rate, produced_per_second};
use crate::ledger::Audit;
use crate::null_sink::Behaviour;
use crate::result::Arm;
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

const COLUMNS: [&str; 9] = [
    "target",
    "repeat",
    "records/s",
    "from",
    "to",
    "sustained",
    "missed",
    "disturbed",
    "full speed, records/s",
];

fn repeats(plan: &Plan) -> u32 {
    if plan.conditions.quick { REPEATS_QUICK } else { REPEATS }
}

/// Rounds, of which each has one trial at a rate of every search.
fn rounds() -> u32 {
    u32::try_from(TRIALS - 1).unwrap_or(u32::MAX)
}

pub(super) fn steps(plan: &Plan) -> u32 {
    // All at full speed, then round by round, each behind one more at full speed.
    2 * (repeats(plan) + rounds() * (1 + repeats(plan)))
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms()
}

/// Searches take turns, trial by trial, as those of several systems do in one experiment: what the
/// machine does meanwhile touches all alike, and what lies between them is the search's own.
pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let behaviour = Behaviour { records_per_second: Some(SINK_RATE), ..Behaviour::default() };
    let targets = [Target::sink_that(plan, behaviour)?, Target::broker(plan)?];
    let mut all = targets.each_ref().map(|target| Searches::of(target, plan));
    for searches in &mut all {
        searches.begin(bench, findings, repeats(plan))?;
    }
    for _ in 0..rounds() {
        for searches in &mut all {
            searches.go_on(bench, findings)?;
        }
    }
    let count = |of: fn(&Searching) -> f64| -> f64 {
        all.iter().flat_map(|searches| &searches.under_way).map(of).sum()
    };
    let disturbed = count(|search| search.count(Outcome::Disturbed));
    let trials = count(|search| float(search.outcomes.len() as u64));
    findings.checks.push(Check {
        name: "trials in which others took the machine".into(),
        passed: 3.0 * disturbed <= trials,
        weight: Weight::Validity,
        found: format!("{disturbed} of {trials}"),
        demanded: "at most a third".into(),
    });
    for searches in &all {
        judge(searches.target.name(), &searches.found(), findings);
        note_drift(searches.target.name(), &searches.full_speeds, findings);
    }
    let [of_sink, _] = &all;
    judge_known(&of_sink.found(), findings);
    findings.record.tables.extend([repeats_table(&all), drift_table(&all)]);
    Ok(())
}

fn repeats_table(all: &[Searches<'_>]) -> Table {
    Table {
        title: "Repeats of the same search".into(),
        about: format!(
            "Each with {TRIALS} trials, of which the first is at full speed; the repeats take \
             turns, trial by trial. The sink answers {SINK_RATE} records per second, whatever \
             processors do; what the broker sustains is not known, and follows the machine. \
             Records of 100 B in batches of 1,000 B, p99 within {} ms.",
            DEMAND.p99_ms
        ),
        columns: COLUMNS.map(String::from).to_vec(),
        rows: all.iter().flat_map(Searches::rows).collect(),
    }
}

fn drift_table([of_sink, of_broker]: &[Searches<'_>; 2]) -> Table {
    let by_round = of_sink.full_speeds.iter().zip(&of_broker.full_speeds);
    Table {
        title: "Full speed, round by round".into(),
        about: "One run ahead of each round, as fast as it goes, which no search knows of: how \
                the machine went meanwhile."
            .into(),
        columns: ["round", "null sink, records/s", "moldau broker, records/s"]
            .map(String::from)
            .to_vec(),
        rows: (1_u32..)
            .zip(by_round)
            .map(|(round, (sink, broker))| {
                vec![f64::from(round).into(), (*sink).into(), (*broker).into()]
            })
            .collect(),
    }
}

/// Repeats of the same search on one target, and what it took at full speed ahead of each round.
struct Searches<'a> {
    target: &'a Target,
    workload: Workload,
    under_way: Vec<Searching>,
    full_speeds: Vec<f64>,
}

/// One search.
struct Searching {
    search: Search,
    full_speed: f64,
    outcomes: Vec<Outcome>,
}

impl<'a> Searches<'a> {
    fn of(target: &'a Target, plan: &Plan) -> Self {
        // What the sink answers is the same in every moment; what the machine gives the broker is
        // not.
        let (warmup_ms, window_ms) = match (plan.conditions.quick, target.name()) {
            (true, _) => (300, 1_200),
            (false, target::BROKER) => TRIAL_MS,
            (false, _) => (500, 3_000),
        };
        // Small batches keep processors busy and the disk idle, whose writing back comes and goes.
        let usual = shape(100, 1_000);
        let tuning = Tuning { buffer_bytes: BUFFER_BYTES, ..usual.tuning };
        let workload = Workload { warmup_ms, window_ms, linger_us: 1_000, tuning, ..usual };
        Self { target, workload, under_way: Vec::new(), full_speeds: Vec::new() }
    }

    /// The first trial of each search.
    fn begin(
        &mut self,
        bench: &mut Bench<'_>,
        findings: &mut Findings,
        repeats: u32,
    ) -> Result<(), Error> {
        for _ in 0..repeats {
            let full_speed = self.full_speed(bench, findings)?;
            let search = Search::new(full_speed);
            self.under_way.push(Searching { search, full_speed, outcomes: Vec::new() });
        }
        Ok(())
    }

    /// One trial at a rate of each search, behind one run at full speed.
    fn go_on(&mut self, bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
        let full_speed = self.full_speed(bench, findings)?;
        self.full_speeds.push(full_speed);
        for index in 0..self.under_way.len() {
            let Some(rate) = self.under_way[index].search.next_rate() else { continue };
            let run = self.trial(bench, findings, &at_rate(&self.workload, rate))?;
            let outcome = Trial::of(&run, rate, DEMAND).outcome;
            self.under_way[index].search.note(rate, outcome);
            self.under_way[index].outcomes.push(outcome);
        }
        Ok(())
    }

    fn full_speed(&self, bench: &mut Bench<'_>, findings: &mut Findings) -> Result<f64, Error> {
        Ok(produced_per_second(&self.trial(bench, findings, &self.workload)?))
    }

    fn trial(
        &self,
        bench: &mut Bench<'_>,
        findings: &mut Findings,
        workload: &Workload,
    ) -> Result<RunRecord, Error> {
        bench.step(&format!("Searches on the {}", self.target.name()));
        let measured = self.target.run(bench, findings, workload, &mut || ())?;
        let named = Named { case: "ceiling", path: &self.target.path, pair: 0 };
        bench.run_record(named, workload, &measured, Audit::default(), 0)
    }

    fn found(&self) -> Vec<Found> {
        self.under_way.iter().map(|searching| searching.search.found()).collect()
    }

    fn rows(&self) -> Vec<Vec<Cell>> {
        let numbered = (1_u32..).zip(&self.under_way);
        numbered.map(|(repeat, searching)| searching.row(self.target.name(), repeat)).collect()
    }
}

impl Searching {
    fn count(&self, wanted: Outcome) -> f64 {
        float(self.outcomes.iter().filter(|outcome| **outcome == wanted).count() as u64)
    }

    fn row(&self, target: &str, repeat: u32) -> Vec<Cell> {
        let found = self.search.found();
        vec![
            target.into(),
            f64::from(repeat).into(),
            found.rate.into(),
            found.interval_95.low.into(),
            found.interval_95.high.into(),
            self.count(Outcome::Sustained).into(),
            self.count(Outcome::Missed).into(),
            self.count(Outcome::Disturbed).into(),
            self.full_speed.into(),
        ]
    }
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

/// How far the machine went up and down while the searches took turns.
fn note_drift(target: &str, full_speeds: &[f64], findings: &mut Findings) {
    let middle = median(full_speeds);
    let strayed = furthest(full_speeds, middle);
    findings.checks.push(Check {
        name: format!("{target}: full speed over the rounds, furthest from its median"),
        passed: strayed <= APART_MAX,
        weight: Weight::Note,
        found: format!("{:.1} % of {middle:.0} records/s", strayed * 100.0),
        demanded: format!("<= {:.0} %, as repeats do", APART_MAX * 100.0),
    });
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
    fn a_machine_that_goes_up_and_down_is_noted() {
        assert_eq!(passed(|findings| note_drift("x", &[100.0, 102.0, 98.0], findings)), [true]);
        assert_eq!(passed(|findings| note_drift("x", &[100.0, 90.0, 98.0], findings)), [false]);
    }

    #[test]
    fn a_known_rate_is_to_be_found() {
        let near = [20_100.0, 19_900.0, 20_500.0].map(found);
        assert_eq!(passed(|findings| judge_known(&near, findings)), [true, false]);
        let off = [20_100.0, 19_000.0].map(found);
        assert_eq!(passed(|findings| judge_known(&off, findings)), [false, false]);
    }
}
