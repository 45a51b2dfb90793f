//! In which order a survey measures: what the same systems get is a stage, in which no other system
//! runs.

use super::{Load, Plan, asked, window_of};
use crate::administration::AdministrationRecord;
use crate::checks::{Check, Weight};
use crate::experiments::administration::{self, AdministrationFile};
use crate::experiments::bench::Case;
use crate::experiments::bench::{Bench, Path};
use crate::experiments::littles_law::{self, LawFile};
use crate::experiments::rounds::{self, Subject as _, with_more};
use crate::experiments::running::{Named, Running};
use crate::littles_law::LawRecord;
use crate::survey::Cell;
use moldau_measure::Error;

/// What the same systems get, which alone run meanwhile.
pub(super) struct Stage<'a> {
    pub(super) systems: Vec<Named<'a>>,
    pub(super) loads: Vec<&'a Load>,
    law: Option<&'a LawFile>,
    administration: Option<&'a AdministrationFile>,
}

/// What is found beside the runs of loads.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) littles_law: Option<LawRecord>,
    pub(super) administration: Option<AdministrationRecord>,
    /// The loads at rates that follow from what the systems take at full speed.
    pub(super) rated: Vec<Cell>,
    /// That for which there was no time.
    pub(super) left_out: LeftOutRounds,
}

/// Rounds for which there was no time.
#[derive(Clone, Copy, Default)]
pub(super) struct LeftOutRounds {
    /// Of those that were asked for, the most of any stage.
    rounds: u32,
    /// Whether more were wanted for latencies.
    of_latencies: bool,
}

impl LeftOutRounds {
    pub(super) fn plus(self, other: Self) -> Self {
        let of_latencies = self.of_latencies || other.of_latencies;
        Self { rounds: self.rounds.max(other.rounds), of_latencies }
    }

    /// The warning about it, if anything was left out.
    pub(super) fn told(self, asked: u32) -> Option<Check> {
        let Self { rounds, of_latencies } = self;
        (rounds > 0 || of_latencies).then(|| Check {
            name: "rounds that were left out, since they would have ended too late".into(),
            passed: false,
            weight: Weight::Note,
            found: match of_latencies {
                true => format!("{rounds} of {asked}, and those that latencies wanted beyond"),
                false => format!("{rounds} of {asked}"),
            },
            demanded: "none".into(),
        })
    }
}

/// The stages in the order of their first loads. What is for none of the systems that are there is
/// in none.
pub(super) fn stages<'a>(plan: &'a Plan, loads: &'a [Load], there: &[Named<'a>]) -> Vec<Stage<'a>> {
    let mut stages = Vec::new();
    for load in loads {
        if let Some(stage) = stage_of(&mut stages, there, |name| load.is_for(name)) {
            stage.loads.push(load);
        }
    }
    let named = |names: &'a [String]| move |name: &str| names.iter().any(|it| it == name);
    if let Some(law) = &plan.file.littles_law
        && let Some(stage) = stage_of(&mut stages, there, named(&law.systems))
    {
        stage.law = Some(law);
    }
    if let Some(asked) = &plan.file.administration
        && let Some(stage) = stage_of(&mut stages, there, named(&asked.systems))
    {
        stage.administration = Some(asked);
    }
    stages
}

/// The stage of the systems that are wanted and there, added if it is none of `stages` yet; `None`
/// where there are no such systems.
fn stage_of<'s, 'a>(
    stages: &'s mut Vec<Stage<'a>>,
    there: &[Named<'a>],
    is_wanted: impl Fn(&str) -> bool,
) -> Option<&'s mut Stage<'a>> {
    let wanted = there.iter().filter(|(name, _)| is_wanted(name));
    let systems: Vec<Named<'a>> = wanted.copied().collect();
    if systems.is_empty() {
        return None;
    }
    let names = |systems: &[Named<'a>]| systems.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let known = stages.iter().position(|stage| names(&stage.systems) == names(&systems));
    let at = known.unwrap_or(stages.len());
    if known.is_none() {
        stages.push(Stage { systems, loads: Vec::new(), law: None, administration: None });
    }
    stages.get_mut(at)
}

impl Stage<'_> {
    fn scenarios(&self) -> impl Iterator<Item = &Load> {
        self.loads.iter().copied().filter(|load| load.cell.from.is_none())
    }

    /// How many systems the test of Little's law takes: the short form has the first alone.
    fn systems_of_law(&self, quick: bool) -> usize {
        if quick { 1 } else { self.systems.len() }
    }

    /// Steps of it.
    pub(super) fn steps(&self, plan: &Plan) -> u32 {
        let (rounds, quick) = (plan.rounds(), plan.conditions.quick);
        let of_each = 1 + count(self.scenarios().count()) + rounds * count(self.loads.len());
        let law = self.law.map_or(0, |_| LawFile::steps(rounds));
        let administration = self.administration.map_or(0, |it| it.steps(rounds, quick));
        count(self.systems.len()) * (of_each + administration)
            + count(self.systems_of_law(quick)) * law
    }

    /// Every round of its loads, profiles of them, and what else its systems are asked.
    pub(super) fn run(&self, plan: &Plan, bench: &mut Bench<'_>) -> Result<Beside, Error> {
        let mut running = Vec::new();
        for (name, system) in &self.systems {
            bench.step(&format!("Start {name}"));
            let started = Running::start(&plan.conditions, &plan.installations, name, system)?;
            running.push(started);
        }
        let (rated, left_out) = self.run_loads(plan, bench, &mut running)?;
        let (rounds, quick) = (plan.rounds(), plan.conditions.quick);
        let mut beside = Beside { rated, left_out, ..Beside::default() };
        if let Some(law) = self.law {
            let window_ms = window_of(plan.file.window_ms, quick);
            let systems = running.iter_mut().take(self.systems_of_law(quick));
            beside.littles_law = Some(littles_law::run(law, window_ms, rounds, bench, systems)?);
        }
        if let Some(asked) = self.administration {
            let limit = plan.limit();
            let (record, left_out) =
                administration::run(asked, quick, rounds, limit, bench, &mut running)?;
            beside.administration = Some(record);
            let left_out = LeftOutRounds { rounds: left_out, of_latencies: false };
            beside.left_out = beside.left_out.plus(left_out);
        }
        running.into_iter().try_for_each(Running::stop)?;
        Ok(beside)
    }

    fn run_loads(
        &self,
        plan: &Plan,
        bench: &mut Bench<'_>,
        running: &mut [Running],
    ) -> Result<(Vec<Cell>, LeftOutRounds), Error> {
        let file = &plan.file;
        // A JVM compiles what it runs often, and the first round should not pay for that. Its
        // latencies do not matter, and no fetch has to wait.
        for scenario in self.scenarios() {
            let mut workload = file.workload(&scenario.settings, plan.conditions.quick);
            workload.tuning.fetch_min_bytes = 1;
            let paths: Vec<&Path> = running.iter().map(|system| &system.path).collect();
            bench.warm_up_abreast(&paths, &workload)?;
        }
        let case = |load: &Load| Case {
            name: load.cell.name.clone(),
            workload: file.workload(&load.settings, plan.conditions.quick),
            reading: None,
        };
        // Rates that follow from full speed are those of the first scenario, on its systems.
        let first = file.scenarios.first().map(|scenario| &scenario.name);
        let has_first = self.scenarios().any(|load| Some(&load.cell.name) == first);
        let rated = if has_first { asked::rates(plan, bench, running)? } else { Vec::new() };
        let loads: Vec<&Load> = self.loads.iter().copied().chain(&rated).collect();
        let cases: Vec<Case> = loads.iter().copied().map(case).collect();
        let left_out = run_rounds(plan, bench, running, &cases)?;
        let is_profiled = |load: &Load| plan.profiles_all || load.profile && !plan.conditions.quick;
        for (case, load) in cases.iter().zip(&loads) {
            let profiler = plan.profiler.as_ref().filter(|_| is_profiled(load));
            let paths = running.iter().map(|system| &system.path);
            bench.profile(profiler, paths, case)?;
        }
        Ok((rated.into_iter().map(|load| load.cell).collect(), left_out))
    }
}

/// The rounds of all loads, and of those in which a system has no latencies in some rounds, since
/// the generator was late, up to half as many again, as experiment files have them. Gives what was
/// left out for want of time.
fn run_rounds(
    plan: &Plan,
    bench: &mut Bench<'_>,
    running: &mut [Running],
    cases: &[Case],
) -> Result<LeftOutRounds, Error> {
    let (limit, asked, steps) = (plan.limit(), plan.rounds(), cases.len() * running.len());
    let left_out = rounds::in_time(bench, limit, asked, steps, |bench, round| {
        run_round(bench, running, cases, round)
    })?;
    let rounds = asked - left_out;
    let mut of_latencies = false;
    for round in rounds..with_more(rounds) {
        let lacks = |case: &&Case| bench.lacks_latencies(&case.name, rounds);
        let lacking: Vec<&Case> = cases.iter().filter(lacks).collect();
        if lacking.is_empty() {
            break;
        }
        let more = lacking.len() * running.len();
        if !bench.ends_within(limit, more) {
            of_latencies = true;
            break;
        }
        bench.expect_steps(more);
        run_round(bench, running, lacking, round)?;
    }
    Ok(LeftOutRounds { rounds: left_out, of_latencies })
}

/// Every load on every system, forwards in even rounds and backwards in odd ones.
fn run_round<'a>(
    bench: &mut Bench<'_>,
    running: &mut [Running],
    cases: impl IntoIterator<Item = &'a Case>,
    round: u32,
) -> Result<(), Error> {
    let places = cases.into_iter().flat_map(|case| (0..running.len()).map(move |at| (case, at)));
    let mut order: Vec<(&Case, usize)> = places.collect();
    if !round.is_multiple_of(2) {
        order.reverse();
    }
    for (case, at) in order {
        let Some(system) = running.get_mut(at) else { continue };
        let ran = bench.run_case(&system.path, case, round);
        system.unless_ended(ran)?;
    }
    Ok(())
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
