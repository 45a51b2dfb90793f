//! The report of outputs of other tools: their figures under the names of this laboratory.

use super::grid::Grid;
use super::table::NONE;
use crate::figures;
use crate::imported::ImportedRecord;
use crate::result::RunResult;
use moldau_measure::numbers::number;
use moldau_measure::statistics::median;

/// What was read, in one sentence.
pub(super) fn sentence(result: &RunResult, record: &ImportedRecord) -> String {
    let mut tools: Vec<&str> = Vec::new();
    for output in &record.outputs {
        if !tools.contains(&output.tool.name()) {
            tools.push(output.tool.name());
        }
    }
    let outputs = match record.outputs.len() {
        1 => "one output".to_string(),
        count => format!("{count} outputs"),
    };
    format!(
        "Imported {outputs} of {}; what they keep from their reader is told in {} notes.",
        tools.join(" and "),
        result.checks.len()
    )
}

/// A table of all figures, cases and arms below one another.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    if result.imported().is_none() {
        return Vec::new();
    }
    let rows = figures::all(result).into_iter().map(|series| {
        let unit = series.metric.unit();
        let [low, high] = [f64::min, f64::max]
            .map(|pick| series.values.iter().copied().reduce(pick).unwrap_or_default());
        let range = match series.values.len() {
            1 => NONE.into(),
            _ => format!("{} to {}", number(low, unit), number(high, unit)),
        };
        vec![
            series.case,
            series.arm,
            series.metric.label().into(),
            number(median(&series.values), unit),
            unit.symbol().into(),
            series.values.len().to_string(),
            range,
        ]
    });
    let about = "Medians over the outputs of the same case and arm, in units of this laboratory. \
                 MB are 2^20 bytes of record values.";
    let columns = ["case", "arm", "figure", "median", "unit", "outputs", "range"];
    vec![Grid::of("What the outputs say", about, &columns, rows)]
}
