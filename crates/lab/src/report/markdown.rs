//! The report as a Markdown page.

use super::grid::Grid;
use super::sentence;
use super::table::{Contrast, Row, comparisons, contrasts, offered, runs_counted};
use crate::result::RunResult;
use moldau_measure::numbers::{bytes, thousands};

/// A page with the answer, the tables, the checks, the audit and the environment.
#[must_use]
pub fn markdown(result: &RunResult) -> String {
    let mut lines = vec![format!("# {}", super::html::title(result)), String::new()];
    lines.push(sentence(result));
    lines.extend(super::partitions::markdown(result));
    if let Some(record) = result.survey() {
        lines.extend(super::survey::words(result, record).markdown());
    }
    if let Some(record) = result.threads() {
        lines.extend(super::threads::words(result, record).markdown());
    }
    lines.extend(super::grids(result).iter().flat_map(Grid::markdown));
    lines.extend(super::sizing::markdown(result));
    lines.extend(super::ceiling::grids(result).iter().flat_map(Grid::markdown));
    lines.extend(super::self_test::grids(result).iter().flat_map(Grid::markdown));
    // Tables of one load after the other say the same at greater length.
    let is_told = super::is_told_by_tables(result);
    let cases = if is_told { Vec::new() } else { result.cases() };
    for case in cases {
        for contrast in contrasts(result, case) {
            append_case(&mut lines, result, case, contrast);
        }
    }
    lines.extend(super::shapes::grid(result).iter().flat_map(Grid::markdown));
    lines.extend(super::transactions::grid(result).iter().flat_map(Grid::markdown));
    lines.extend(super::profiles::grids(result).iter().flat_map(Grid::markdown));
    append_checks(&mut lines, result);
    append_environment(&mut lines, result);
    lines.push(String::new());
    lines.join("\n")
}

fn append_case(lines: &mut Vec<String>, result: &RunResult, case: &str, contrast: Contrast<'_>) {
    let Contrast { baseline, arm } = contrast;
    let Some(run) = result.runs_of(case, arm).next() else { return };
    lines.extend([String::new(), format!("## {case}"), String::new(), offered(run)]);
    lines.push(String::new());
    let runs = runs_counted(result, case, contrast);
    lines.push(format!(
        "| median of {runs} | {baseline} | {arm} | difference | 95 % interval | ratio | shows |"
    ));
    lines.push("|---|---:|---:|---:|---:|---:|---|".into());
    for row in comparisons(result, case, arm).map(Row::of) {
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.figure, row.baseline, row.arm, row.difference, row.interval, row.ratio, row.shows
        ));
    }
}

fn append_checks(lines: &mut Vec<String>, result: &RunResult) {
    lines.extend([String::new(), "## Checks".into(), String::new()]);
    lines.push("| check | found | demanded | |".into());
    lines.push("|---|---|---|---|".into());
    for check in &result.checks {
        let outcome = if check.passed { "passed" } else { "**not passed**" };
        lines
            .push(format!("| {} | {} | {} | {outcome} |", check.name, check.found, check.demanded));
    }
    if result.imported().is_some() {
        return;
    }
    let audit = &result.audit;
    lines.push(String::new());
    lines.push(format!(
        "Records: {} sent, {} acknowledged, {} refused, {} without an answer, {} read back; \
         {} lost, {} duplicated, {} out of order, {} damaged, {} misrouted, {} misplaced.",
        thousands(audit.sent),
        thousands(audit.acked),
        thousands(audit.failed),
        thousands(audit.unknown),
        thousands(audit.delivered),
        thousands(audit.lost),
        thousands(audit.duplicated),
        thousands(audit.reordered),
        thousands(audit.damaged),
        thousands(audit.misrouted),
        thousands(audit.misplaced),
    ));
}

/// Where and with what a result was measured.
pub(super) fn environment(result: &RunResult) -> String {
    let environment = &result.environment;
    if result.imported().is_some() {
        return format!(
            "not told by the tools. Imported by binary {}.",
            environment.binary_version
        );
    }
    format!(
        "{} processors ({}), {} of memory, Linux {}, {} on {}; generator and systems {}. \
         Binary {}. Seed {}.",
        environment.processors,
        environment.cpu_model,
        bytes(environment.memory_bytes),
        environment.kernel,
        environment.file_system,
        environment.device,
        environment.co_location(),
        environment.binary_version,
        result.seed,
    )
}

fn append_environment(lines: &mut Vec<String>, result: &RunResult) {
    lines.extend([String::new(), "## Environment".into(), String::new()]);
    lines.push(environment(result));
    for arm in &result.arms {
        lines.push(format!("\n- **{}**: {}", arm.name, arm.description));
    }
}
