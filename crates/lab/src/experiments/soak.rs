//! Does anything grow under a steady load? Leg after leg at one rate, each on a topic of its own,
//! and a look at what the systems hold after each.

mod page;

use std::time::Instant;

use super::bench::Bench;
use super::rounds::Subject as _;
use super::running::{Running, absence, arms, split_own};
use super::{Conditions, Progress};
use crate::checks::{self, Check, Weight};
use crate::result::{Experiment, RunResult};
use crate::soak::{Drift, Figure, Holding, LEG, LEGS_MIN, SoakRecord};
use crate::systems::{Installations, SystemFile, http_get};
use moldau_load::workload::Workload;
use moldau_measure::Error;
use moldau_measure::resources::{Resources, gauge, occupied_bytes};

pub use page::page;

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
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
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
    if !plan.workload.consume || !(LEGS_MIN..=LEGS_MAX).contains(&plan.legs) {
        let range = format!("{LEGS_MIN} to {LEGS_MAX}");
        return Err(Error::Plan(format!("{range} legs, whose records are consumed")));
    }
    let (there, left_out) = split_own(&plan.names, &plan.systems, &plan.installations)?;
    let count = u32::try_from(there.len()).unwrap_or(u32::MAX);
    let mut bench = Bench::new(&plan.conditions, count * (plan.legs + 1), progress);
    let mut systems = Vec::new();
    for (name, system) in &there {
        bench.step(&format!("Start {name}"));
        systems.push(Running::start(&plan.conditions, &plan.installations, name, system)?);
    }
    let mut holdings = Vec::new();
    for leg in 0..plan.legs {
        for running in &mut systems {
            let ran = bench.produce(&running.path, LEG, leg, &plan.workload);
            running.unless_ended(ran)?;
            holdings.push(look(&bench, running, leg));
        }
    }
    for running in systems {
        running.system.stop()?;
    }
    let record = SoakRecord { holdings, left_out };
    let growth = there.iter().flat_map(|(name, _)| growth(&record, &bench, name));
    let growth: Vec<Check> = growth.collect();
    for check in record.left_out.iter().map(absence).chain(growth) {
        bench.note(check);
    }
    bench.finish(Experiment::Soak(record), arms(&there), checks::of_arms)
}

/// What a system holds.
fn look(bench: &Bench<'_>, running: &Running, leg: u32) -> Holding {
    let path = &running.path;
    let each = path.processes.iter().filter_map(|(_, pid)| {
        let mut held = Resources::of(*pid)?;
        let admin = path.admin_ports.iter().find(|(of, _)| of == pid);
        // Without the page what is kept for readers would count as growth: it is asked for twice.
        let page = admin.and_then(|(_, address)| {
            http_get(*address, "/metrics").or_else(|| http_get(*address, "/metrics"))
        });
        held.cache_bytes = page.and_then(|page| gauge(&page, "cache_bytes"));
        Some(held)
    });
    Holding {
        arm: path.arm.clone(),
        leg,
        at_ms: bench.at_ms(Instant::now()),
        held: each.reduce(|sum, next| sum.plus(&next)).unwrap_or_default(),
        disk_bytes: occupied_bytes(&running.directory),
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
            weight: Weight::Note,
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
