//! Planted bottlenecks, each of which must be found, named, and confirmed by the change that it
//! names.

use super::{Findings, Plan};
use crate::experiments::bench::Bench;
use crate::experiments::explain::{Extent, Investigation, Planted, Subject};
use crate::explain::{Explanation, Outcome, Trial};
use crate::result::Arm;
use crate::self_test::{Cell, Table};
use moldau_load::ledger::Audit;
use moldau_measure::Error;

const FULL: Extent = Extent { warmup_ms: 500, window_ms: 1_500, pairs: 3 };
const QUICK: Extent = Extent { warmup_ms: 300, window_ms: 800, pairs: 2 };

/// Share of the plants that must be found: eighteen of twenty.
const RIGHT_PERCENT_MIN: usize = 90;

pub(super) fn steps(plan: &Plan) -> u32 {
    let plants = u32::try_from(plan.bottlenecks.plants.len()).unwrap_or(0);
    plants * (2 + 2 * extent(plan).pairs)
}

pub(super) fn arms(plan: &Plan) -> Vec<Arm> {
    let systems = &plan.bottlenecks.systems;
    systems.iter().map(|(name, file)| Arm::of(name, file.description.trim())).collect()
}

fn extent(plan: &Plan) -> Extent {
    if plan.conditions.quick { QUICK } else { FULL }
}

/// What came of a plant.
enum Found {
    Explained(Explanation),
    /// It needs what is not there.
    NotRun(String),
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let (mut rows, mut others) = (Vec::new(), Vec::new());
    let (mut right, mut tried) = (0, 0);
    let directory = plan.conditions.work_directory.join("plant");
    for planted in &plan.bottlenecks.plants {
        // What cannot be run is no success, and keeps no other plant from being tried.
        let found = find(plan, planted, bench, findings)
            .unwrap_or_else(|error| Found::NotRun(error.brief()));
        if directory.exists() {
            // The next plant finds no data of this one.
            std::fs::remove_dir_all(&directory)
                .map_err(Error::machine(format!("removing {}", directory.display())))?;
        }
        tried += usize::from(matches!(found, Found::Explained(_)));
        right += usize::from(is_right(planted, &found));
        rows.push(row(planted, &found));
        others.extend(not_confirmed(planted, &found));
    }
    let all = plan.bottlenecks.plants.len();
    let demanded = (all * RIGHT_PERCENT_MIN).div_ceil(100);
    findings.promise(
        "planted bottlenecks that are named and confirmed".into(),
        right >= demanded,
        match all - tried {
            0 => format!("{right} of {all}"),
            not_run => format!("{right} of {all}, {not_run} of which were not run"),
        },
        &format!(">= {demanded}"),
    );
    findings.record.tables.push(Table {
        title: "What was planted and what was said".into(),
        about:
            "Right is what names the planted cause and was confirmed by its change, which moved \
                the figure at least half of the way to what was expected, as a logarithm, and \
             beyond what runs differ by themselves."
                .into(),
        columns: columns(&["plant", "cause", "said"], &["right"]),
        rows,
    });
    if !others.is_empty() {
        findings.record.tables.push(Table {
            title: "What else was tried".into(),
            about: "Findings that came before what was said, or instead of it, in their order."
                .into(),
            columns: columns(&["plant", "finding", "outcome"], &[]),
            rows: others,
        });
    }
    Ok(())
}

fn find(
    plan: &Plan,
    planted: &Planted,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<Found, Error> {
    let file = plan.bottlenecks.system(planted)?;
    if let Some(reason) = file.missing(&plan.installations) {
        return Ok(Found::NotRun(reason.into()));
    }
    let extent = extent(plan);
    planted.load.check()?;
    let subject = Subject {
        name: planted.name.clone(),
        file,
        installations: plan.installations.clone(),
        directory: plan.conditions.work_directory.join("plant"),
        workload: planted.load.workload(extent.warmup_ms, extent.window_ms),
        about: Some(planted.about),
        pairs: extent.pairs,
        interference: planted.interference,
    };
    subject.workload.check()?;
    let mut investigation = Investigation::begin(bench, &subject)?;
    let explanation = investigation.explain()?;
    let (runs, _) = investigation.end()?;
    let audits = runs.iter().map(|run| run.audit);
    findings.audit = audits.fold(findings.audit, Audit::plus);
    Ok(Found::Explained(explanation))
}

fn is_right(planted: &Planted, found: &Found) -> bool {
    let Found::Explained(explanation) = found else { return false };
    explanation.confirmed().is_some_and(|trial| trial.finding.cause == planted.cause)
}

/// What a table tells of a trial.
const OF_TRIAL: [&str; 5] = ["evidence", "change", "expected, x", "found, x", "of the way, %"];

fn columns(first: &[&str], last: &[&str]) -> Vec<String> {
    [first, &OF_TRIAL, last].concat().into_iter().map(String::from).collect()
}

fn row(planted: &Planted, found: &Found) -> Vec<Cell> {
    let (said, trial) = match found {
        Found::NotRun(reason) => (format!("not run: {reason}"), None),
        Found::Explained(explanation) => match explanation.confirmed() {
            Some(trial) => (trial.finding.cause.words().into(), Some(trial)),
            None => ("nothing was confirmed".into(), None),
        },
    };
    let mut cells = vec![planted.name.as_str().into(), planted.cause.words().into(), said.into()];
    cells.extend(of_trial(trial));
    cells.push(if is_right(planted, found) { "yes" } else { "no" }.into());
    cells
}

/// Rows of the findings that were not confirmed.
fn not_confirmed(planted: &Planted, found: &Found) -> Vec<Vec<Cell>> {
    let Found::Explained(explanation) = found else { return Vec::new() };
    let row = |trial: &Trial| {
        if matches!(trial.outcome, Outcome::Confirmed(_)) {
            return None;
        }
        let cause = trial.finding.cause.words();
        let mut cells =
            vec![planted.name.as_str().into(), cause.into(), trial.outcome.words().into()];
        cells.extend(of_trial(Some(trial)));
        Some(cells)
    };
    explanation.trials.iter().filter_map(row).collect()
}

fn of_trial(trial: Option<&Trial>) -> [Cell; OF_TRIAL.len()] {
    let Some(Trial { finding, outcome, .. }) = trial else { return OF_TRIAL.map(|_| "".into()) };
    let (found, way) = match outcome.factor() {
        Some(by) => (by.into(), (100.0 * finding.way(by)).into()),
        None => ("".into(), "".into()),
    };
    let change = finding.change.words().into();
    [finding.says.clone().into(), change, finding.expected.into(), found, way]
}
