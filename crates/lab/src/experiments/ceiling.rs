//! The highest rate that each system sustains, by a search.
//!
//! Each system is warmed up, runs once at full speed, and is then tried at the rates of its search.
//! The trials of all searches take turns, so that drift affects all alike. A trial is an ordinary
//! run: it has its own topic, and its records are consumed and audited. Only its generator has no
//! raised priority. Near the ceiling a shared machine has no spare processor, and a generator that
//! goes first would take a varying share from the system. If the generator is late, response times
//! show it, since they count from intended times.

mod page;

use super::bench::{Bench, Case};
use super::rounds::Subject;
use super::running::{Running, absence, arms, split};
use super::{Conditions, Progress};
use crate::ceiling::search::{Bounds, Outcome, Search, TRIALS};
use crate::ceiling::{CeilingRecord, Demand, SearchRecord, Trial, producers_in_words};
use crate::checks::{self, Check, THREAD_SHARE_MAX, Weight};
use crate::result::{Experiment, RunResult};
use crate::systems::{Installations, SystemFile, keep_records};
use moldau_load::payload::Filler;
use moldau_load::run::RunRecord;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::numbers::whole;
use moldau_measure::statistics::float;

pub use page::page;

/// Warm-up and window of a trial, ms, and of the short form.
pub(super) const TRIAL_MS: (u64, u64) = (2_000, 20_000);
pub(super) const QUICK_TRIAL_MS: (u64, u64) = (1_000, 4_000);

/// Warming up of a system, ms, and of the short form: longer than a trial takes. A broker that
/// writes its files anew takes less in fresh ones, and all trials are to find as many used ones as
/// they fill.
const WARMUP_MS: u64 = 40_000;
const QUICK_WARMUP_MS: u64 = 10_000;

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the systems. The first with a result is the baseline of ratios.
    pub names: Vec<String>,
    /// The systems, in this order.
    pub systems: Vec<SystemFile>,
    /// What is there to start them from.
    pub installations: Installations,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// Warming up of each system at full speed, ms.
    pub warmup_ms: u64,
    /// What is offered, at rates that the search names in place of its pace.
    pub workload: Workload,
    /// Numbers of producers, each with a search of its own.
    pub producers: Vec<u16>,
    /// What is demanded of a rate.
    pub demand: Demand,
}

impl Plan {
    /// Records of 1 KB in batches of 128 KB over 10 partitions, produced by two and consumed, with
    /// 99 % answered within 50 ms.
    #[must_use]
    pub fn usual(
        names: Vec<String>,
        systems: Vec<SystemFile>,
        installations: Installations,
        conditions: Conditions,
    ) -> Self {
        let quick = conditions.quick;
        let workload = usual_load(if quick { QUICK_TRIAL_MS } else { TRIAL_MS });
        Self {
            names,
            systems,
            installations,
            conditions,
            warmup_ms: if quick { QUICK_WARMUP_MS } else { WARMUP_MS },
            producers: vec![workload.producers],
            workload,
            demand: Demand { p99_ms: 50.0 },
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.systems.is_empty() || self.producers.is_empty() {
            return Err(Error::Plan("at least one system and one number of producers".into()));
        }
        self.systems.iter().try_for_each(SystemFile::check)?;
        keep_records(&self.names, &self.systems)?;
        if !self.demand.p99_ms.is_finite() || self.demand.p99_ms <= 0.0 {
            return Err(Error::Plan("a response takes more than 0 ms".into()));
        }
        if !self.workload.consume {
            return Err(Error::Plan("what is searched for is produced and consumed".into()));
        }
        self.producers.iter().try_for_each(|count| self.workload_of(*count).check())
    }

    fn workload_of(&self, producers: u16) -> Workload {
        Workload { producers, ..self.workload.clone() }
    }

    fn steps(&self, systems: usize) -> u32 {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        1 + count(systems) * (2 + count(self.producers.len()) * count(TRIALS))
    }
}

/// What is offered unless something else is asked for. By two producers: the five requests that one
/// may have on the way are a limit of its own.
pub(super) fn usual_load((warmup_ms, window_ms): (u64, u64)) -> Workload {
    Workload {
        pace: Pace::Unpaced,
        record_bytes: 1 << 10,
        filler: Filler::Text,
        partitions: 10,
        producers: 2,
        batch_bytes: 128 << 10,
        linger_us: 5_000,
        consume: true,
        tails: 0,
        warmup_ms,
        window_ms,
        tuning: Tuning::default(),
    }
}

/// Runs the experiment.
///
/// # Errors
/// As [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let (there, left_out) = split(&plan.names, &plan.systems, &plan.installations)?;
    let mut bench = Bench::new(&plan.conditions, plan.steps(there.len()), progress);
    bench.wait_in_turn();
    let mut systems = Vec::new();
    for (name, system) in &there {
        bench.step(&format!("Start {name}"));
        systems.push(Running::start(&plan.conditions, &plan.installations, name, system)?);
    }
    for system in &systems {
        let producers = plan.producers.first().copied().unwrap_or(1);
        let warmup = plan.workload_of(producers);
        let warmup = Workload { warmup_ms: 0, window_ms: plan.warmup_ms, ..warmup };
        bench.warm_up(system.path(), &warmup)?;
    }
    let searches = search_all(&mut bench, &mut systems, plan)?;
    systems.into_iter().try_for_each(Running::stop)?;
    for check in left_out.iter().map(absence).chain(judged(&searches)) {
        bench.note(check);
    }
    let mut result = bench.finish(Experiment::Ceiling, arms(&there), checks::of_limits)?;
    // Trials of one number are at different rates, and nothing to compare.
    result.comparisons = Vec::new();
    result.ceiling = Some(CeilingRecord { demand: plan.demand, searches });
    Ok(result)
}

/// A search under way.
pub(super) struct Searching {
    pub(super) record: SearchRecord,
    /// What its trials say; absent ahead of the first, which is at full speed.
    state: Option<Search>,
    workload: Workload,
}

impl Searching {
    /// A search for what an arm sustains of a workload, at rates in place of its pace.
    pub(super) fn new(arm: &str, workload: Workload) -> Self {
        let record = SearchRecord {
            arm: arm.into(),
            producers: workload.producers,
            record_bytes: workload.record_bytes as u64,
            full_speed: 0.0,
            trials: Vec::new(),
            found: Search::new(0.0).found(),
        };
        Self { record, state: None, workload }
    }

    /// What to try next, and the rate if it has one; `None` once the search has ended.
    pub(super) fn next(&self) -> Option<(Workload, Option<f64>)> {
        match &self.state {
            None => Some((self.workload.clone(), None)),
            Some(state) => {
                let rate = state.next_rate()?;
                Some((at_rate(&self.workload, rate), Some(rate)))
            }
        }
    }

    /// Adds what came of it.
    pub(super) fn note(&mut self, run: &RunRecord, rate: Option<f64>, demand: Demand) {
        if let (Some(rate), Some(state)) = (rate, &mut self.state) {
            let trial = Trial::of(run, rate, demand);
            state.note(rate, trial.outcome);
            self.record.trials.push(trial);
        } else {
            self.record.full_speed = produced_per_second(run);
            self.state = Some(Search::new(self.record.full_speed));
        }
    }

    /// What came of it all.
    pub(super) fn finish(self) -> SearchRecord {
        let found = self.state.as_ref().map_or(self.record.found, Search::found);
        SearchRecord { found, ..self.record }
    }
}

/// All of `all`, rotated so that each turn begins with another one.
pub(super) fn in_turn<T>(all: &mut [T], turn: usize) -> impl Iterator<Item = &mut T> {
    let first = turn.checked_rem(all.len()).unwrap_or(0);
    let (later, first) = all.split_at_mut(first);
    first.iter_mut().chain(later)
}

/// Searches the ceilings of all systems and numbers of producers by turns, trial by trial: what the
/// machine can do changes from minute to minute, and ceilings that are compared should share it.
/// Trials of earlier sittings come in the order in which they were made, so that each search goes
/// the way that it went.
fn search_all(
    bench: &mut Bench<'_>,
    systems: &mut [Running],
    plan: &Plan,
) -> Result<Vec<SearchRecord>, Error> {
    let mut all: Vec<(usize, Searching)> = Vec::new();
    for producers in &plan.producers {
        for (at, system) in systems.iter().enumerate() {
            let searching = Searching::new(&system.path().arm, plan.workload_of(*producers));
            all.push((at, searching));
        }
    }
    for turn in 0..TRIALS {
        let number = u32::try_from(turn).unwrap_or(u32::MAX);
        for (at, searching) in in_turn(&mut all, turn) {
            let Some(system) = systems.get_mut(*at) else { continue };
            let Some((workload, rate)) = searching.next() else { continue };
            let what = if rate.is_some() { "trials at a rate" } else { "full speed" };
            let ran = bench.run_case(system.path(), &case(what, &workload), number);
            system.unless_ended(ran)?;
            let Some(run) = bench.runs().last() else { continue };
            searching.note(run, rate, plan.demand);
        }
    }
    Ok(all.into_iter().map(|(_, searching)| searching.finish()).collect())
}

/// The workload with so many records per second at equal distances.
pub(super) fn at_rate(workload: &Workload, rate: f64) -> Workload {
    let per_second = whole(rate).max(1);
    let pace = Pace::Scheduled { per_second, arrivals: Arrivals::Constant };
    Workload { pace, ..workload.clone() }
}

/// Records per second that were acknowledged in the window.
fn produced_per_second(run: &RunRecord) -> f64 {
    float(run.produced_records) / (float(run.window_ns.max(1)) / 1e9)
}

fn case(what: &str, workload: &Workload) -> Case {
    let name = case_name(what, workload.producers);
    Case { name, workload: workload.clone(), reading: None }
}

fn case_name(what: &str, producers: u16) -> String {
    format!("{}, {what}", producers_in_words(producers))
}

/// What the experiment demands of its searches.
fn judged(searches: &[SearchRecord]) -> Vec<Check> {
    let name = |search: &SearchRecord, what: &str| {
        format!("{}: {what}", case_name(&search.arm, search.producers))
    };
    let mut checks = Vec::new();
    for search in searches {
        let disturbed = search.count(Outcome::Disturbed);
        let all = search.trials.len();
        checks.push(Check {
            name: name(search, "trials that say nothing"),
            passed: search.is_telling(),
            weight: Weight::Validity,
            found: format!("{disturbed} of {all}, disturbed by others"),
            demanded: "at most a third".into(),
        });
        checks.push(Check {
            name: name(search, "some rate is sustained"),
            passed: matches!(search.found.bounds, Bounds::Both | Bounds::Above),
            weight: Weight::Note,
            found: format!("{} of {all} trials", search.count(Outcome::Sustained)),
            demanded: "at least one".into(),
        });
        let missed = search.trials.iter().filter(|trial| trial.outcome == Outcome::Missed);
        let busiest = missed.map(|trial| trial.generator_thread).fold(0.0, f64::max);
        checks.push(Check {
            name: name(
                search,
                "busiest generator thread where a rate was missed (above it, the \
                                ceiling may be the generator's)",
            ),
            passed: busiest < THREAD_SHARE_MAX,
            weight: Weight::Note,
            found: format!("{:.0} % of a processor", busiest * 100.0),
            demanded: format!("< {:.0} %", THREAD_SHARE_MAX * 100.0),
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceiling::search::Found;
    use crate::sample;

    #[test]
    fn impossible_plans_are_refused() {
        let text = serde_json::json!({ "description": "", "bootstrap": "y:1" });
        let system: SystemFile = serde_json::from_value(text).unwrap();
        let plan = || {
            let (systems, there) = (vec![system.clone()], Installations::default());
            Plan::usual(vec!["x".into()], systems, there, Conditions::of_tests())
        };
        assert!(plan().check().is_ok());
        let sink = SystemFile { keeps_records: false, ..system.clone() };
        let silent = Workload { consume: false, ..plan().workload };
        for broken in [
            Plan { systems: Vec::new(), ..plan() },
            Plan { systems: vec![sink], ..plan() },
            Plan { producers: Vec::new(), ..plan() },
            Plan { producers: vec![0], ..plan() },
            Plan { demand: Demand { p99_ms: 0.0 }, ..plan() },
            Plan { demand: Demand { p99_ms: f64::NAN }, ..plan() },
            Plan { workload: silent, ..plan() },
        ] {
            assert!(matches!(broken.check(), Err(Error::Plan(_))), "{broken:?}");
        }
    }

    #[test]
    fn searches_that_say_nothing_are_refused() {
        let mut search = sample::search("moldau", 1);
        let failed = |search: &SearchRecord| -> Vec<Weight> {
            let checks = judged(std::slice::from_ref(search));
            checks.into_iter().filter(|check| !check.passed).map(|check| check.weight).collect()
        };
        assert_eq!(failed(&search), []);
        search.trials.iter_mut().for_each(|trial| trial.generator_thread = 0.9);
        assert_eq!(failed(&search), [Weight::Note]);
        search.trials.iter_mut().for_each(|trial| trial.outcome = Outcome::Missed);
        search.found = Found { bounds: Bounds::Below, ..search.found };
        search.trials.iter_mut().for_each(|trial| trial.outcome = Outcome::Disturbed);
        assert_eq!(failed(&search), [Weight::Validity, Weight::Note]);
    }
}
