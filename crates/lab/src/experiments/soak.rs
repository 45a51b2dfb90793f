//! Does anything grow under a steady load? Leg after leg at one rate, each on a topic of its own,
//! and a look at what the systems hold after each.

use std::path::PathBuf;
use std::time::Instant;

use super::Progress;
use super::bench::{Bench, Frame};
use super::running::{Running, absence, split};
use crate::checks::{self, Check, Weight};
use crate::environment::Environment;
use crate::error::Error;
use crate::resources::{Resources, gauge, occupied_bytes};
use crate::result::{Arm, Experiment, RunResult};
use crate::soak::{Drift, Figure, Holding, LEG, SoakRecord};
use crate::survey::LeftOut;
use crate::systems::{Installations, SystemFile, http_get};
use crate::workload::Workload;

/// Most legs: each has its latencies in the result.
const LEGS_MAX: u32 = 1_000;

/// Everything that a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the systems.
    pub names: Vec<String>,
    /// Their files, in the same order.
    pub systems: Vec<SystemFile>,
    /// What is there to start them from.
    pub installations: Installations,
    /// Version of the binary, for the report.
    pub version: String,
    /// Where the systems keep data and logs; must exist. The caller removes it.
    pub work_directory: PathBuf,
    /// Seed of payloads and statistics.
    pub seed: u64,
    /// Whether it is the short form, for the report.
    pub quick: bool,
    /// What is offered in each leg; it is consumed meanwhile.
    pub workload: Workload,
    /// Legs on each system.
    pub legs: u32,
}

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] where no system can be looked at, otherwise as [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.workload.check()?;
    if !plan.workload.consume || !(1..=LEGS_MAX).contains(&plan.legs) {
        return Err(Error::Plan(format!("1 to {LEGS_MAX} legs, whose records are consumed")));
    }
    let (there, mut left_out) = split(&plan.names, &plan.systems, &plan.installations)?;
    let (there, external): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(_, system)| !system.processes.is_empty());
    left_out.extend(external.into_iter().map(|(name, _)| LeftOut {
        system: name.into(),
        reason: "it has no process that the laboratory started".into(),
    }));
    if there.is_empty() {
        return Err(Error::Plan("no system has a process that could be looked at".into()));
    }
    let count = u32::try_from(there.len()).unwrap_or(u32::MAX);
    let mut bench = Bench::new(plan.seed, count * (plan.legs + 1), progress);
    let mut systems = Vec::new();
    for (name, system) in &there {
        bench.step(&format!("Start {name}"));
        let directory = &plan.work_directory;
        systems.push(Running::start(directory, &plan.installations, name, system)?);
    }
    let environment = Environment::inspect(&plan.version, &plan.work_directory);
    let mut holdings = Vec::new();
    for leg in 0..plan.legs {
        for running in &mut systems {
            bench.produce(&running.path, LEG, leg, &plan.workload)?;
            running.system.check_alive()?;
            holdings.push(look(plan, &bench, running, leg));
        }
    }
    for running in systems {
        running.system.stop()?;
    }
    let record = SoakRecord { holdings, left_out };
    let arms: Vec<Arm> =
        there.iter().map(|(name, it)| Arm::of(name, it.description.trim())).collect();
    let growth = arms.iter().flat_map(|arm| growth(&record, &bench, &arm.name));
    let growth: Vec<Check> = growth.collect();
    for check in record.left_out.iter().map(absence).chain(growth) {
        bench.note(check);
    }
    bench.finish_with(
        Frame {
            experiment: Experiment::Soak(record),
            quick: plan.quick,
            environment,
            arms,
            objectives: Vec::new(),
        },
        checks::of_arms,
    )
}

/// What a system holds.
fn look(plan: &Plan, bench: &Bench<'_>, running: &Running, leg: u32) -> Holding {
    let path = &running.path;
    let each = path.processes.iter().filter_map(|(_, pid)| {
        let mut held = Resources::of(*pid)?;
        let admin = path.admin_ports.iter().find(|(of, _)| of == pid);
        let page = admin.and_then(|(_, address)| http_get(*address, "/metrics"));
        held.cache_bytes = page.and_then(|page| gauge(&page, "cache_bytes"));
        Some(held)
    });
    Holding {
        arm: path.arm.clone(),
        leg,
        at_ms: bench.at_ms(Instant::now()),
        held: each.reduce(|sum, next| sum.plus(&next)).unwrap_or_default(),
        disk_bytes: occupied_bytes(&plan.work_directory.join(path.arm.replace('/', "-"))),
    }
}

/// What must not grow, and does or does not.
fn growth(record: &SoakRecord, bench: &Bench<'_>, arm: &str) -> Vec<Check> {
    let judged = Figure::ALL.into_iter().filter(|figure| figure.must_not_grow());
    let judged = judged.filter_map(|figure| {
        let drift = Drift::of(&figure.course(record, bench.runs(), arm))?;
        let slope = drift.per_hour;
        Some(Check {
            name: format!("{arm}: {} does not grow", figure.label()),
            passed: !drift.grows,
            weight: Weight::Objective,
            found: format!(
                "{:+.2} [{:+.2}, {:+.2}] {}/h",
                slope.rise,
                slope.interval_95.low,
                slope.interval_95.high,
                figure.unit()
            ),
            demanded: "an interval that holds 0, or less than 2 % in the measured time".into(),
        })
    });
    judged.collect()
}
