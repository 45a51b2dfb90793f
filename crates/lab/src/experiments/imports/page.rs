//! Outputs of other tools, their figures under the names of this laboratory, as a page.

use crate::figures;
use crate::imported::ImportedRecord;
use crate::page::{Page, Table};
use crate::result::RunResult;
use crate::result_page;
use crate::run_figures::NONE;
use moldau_measure::numbers::number;
use moldau_measure::statistics::median;

/// The page of an import.
pub fn page(result: &RunResult, record: &ImportedRecord) -> Page {
    const TITLE: &str = "What do the outputs of other tools say?";
    let mut page = result_page::answered(result, TITLE, vec![sentence(result, record)]);
    page.table = Some(table(result));
    page
}

/// What was read, in one sentence.
fn sentence(result: &RunResult, record: &ImportedRecord) -> String {
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
        "Imported {outputs} of {}; {} notes list what they leave out.",
        tools.join(" and "),
        result.checks.len()
    )
}

/// All figures, cases and arms below one another.
fn table(result: &RunResult) -> Table {
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
    Table::of("", about, &columns, rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three outputs of the benchmark. The last is faster.
    pub(crate) fn sample() -> RunResult {
        let outputs = [900, 1_000, 1_100].map(|rate| {
            let text = format!(
                "{{\"workload\": \"w & v\", \"driver\": \"d\", \"messageSize\": 1024, \
                 \"topics\": 10, \"publishRate\": [{rate}], \"consumeRate\": [{rate}], \
                 \"aggregatedPublishLatency50pct\": 1.5}}"
            );
            crate::imported::read("omb.json", &text).unwrap()
        });
        crate::experiments::imports::result(outputs.to_vec(), "0.1.0", 0).unwrap()
    }

    #[test]
    fn imported_outputs_are_shown_with_their_warnings() {
        let result = sample();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result);
        let page = page(&result, result.imported().unwrap());
        assert!(page.answer[0].starts_with("Imported 3 outputs of OpenMessaging Benchmark"));
        assert!(page.warnings.iter().any(|it| it.contains("oordinated omission")));
        let rows = &page.table.as_ref().unwrap().rows;
        let rate = rows.iter().find(|row| row[6] == "900 to 1,100").unwrap();
        assert_eq!((&*rate[0], &*rate[3], &*rate[5]), ("w & v", "1,000", "3"));
        assert!(rows.iter().any(|row| row[2] == "send to acknowledgement p50"));
        // The processors of this machine are not those of the tools.
        let facts: Vec<&str> = page.facts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(facts[0], "version");
    }
}
