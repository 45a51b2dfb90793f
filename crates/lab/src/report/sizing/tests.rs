//! The report of a made-up measurement, word for word and in its parts.

use super::*;
use crate::checks::Verdict;
use crate::report::{html, markdown, sample, sentence, text};
use crate::result::Experiment;
use crate::sizing::sample::{load, record};

/// Set to a path, this is where the page of the sample is written, to be looked at.
const PAGE: &str = "MOLDAU_LAB_SIZING_PAGE";

/// Set to a path, this is where the answer to the sample is written, to become the golden one.
const GOLDEN: &str = "MOLDAU_LAB_SIZING_GOLDEN";

fn result() -> RunResult {
    let mut result = sample::result();
    result.experiment = Experiment::Cores;
    result.comparisons = Vec::new();
    result.sizing = Some(record(0.03));
    result
}

#[test]
fn the_answer_reads_as_it_should() {
    let told = sizing(&result());
    if let Some(path) = std::env::var_os(GOLDEN) {
        std::fs::write(path, &told).unwrap();
    }
    assert_eq!(told, include_str!("golden.txt"), "{told}");
}

#[test]
fn a_sizing_survives_its_document() {
    let result = result();
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert!(back == result);
    assert_eq!(text(&back), text(&result));
    let unknown = result.to_json().unwrap().replacen("\"cpu_ns\"", "\"cpu_nanos\"", 1);
    assert!(RunResult::from_json(&unknown).is_err());
}

#[test]
fn all_forms_hold_the_answer_the_prices_and_every_case() {
    let result = result();
    let page = html(&result).unwrap();
    if let Some(path) = std::env::var_os(PAGE) {
        std::fs::write(path, &page).unwrap();
    }
    let first = "100 MB/s of 1.00 KiB records in batches of 16.0 KiB over 10 partitions, read by 3 \
                 consumer groups need ";
    for report in [text(&result).replace('\n', " "), markdown(&result), page] {
        for part in [
            first,
            "Prices",
            "Error on held-out cases",
            "best CPU-ms/MB of all other cases",
            "Cases, encryption",
            "10240 B x 12, 1 in 1, 10 partitions, 1 groups",
            "This lies beyond what was measured",
        ] {
            assert!(report.contains(part), "{part} in {report}");
        }
    }
}

#[test]
fn a_price_that_cannot_be_told_is_no_number() {
    let mut result = result();
    let sizing = result.sizing.as_mut().unwrap();
    for run in &mut sizing.observations {
        run.produce_requests = run.produced_batches;
    }
    let report = markdown(&result);
    let row = report.lines().find(|line| line.starts_with("| passthrough | produce requests |"));
    assert!(row.is_some_and(|row| row.contains("| with batches produced | - |")), "{row:?}");
    assert!(report.contains("cannot be told from one another"), "{report}");
    assert!(report.contains("| passthrough | produce requests + batches produced |"), "{report}");
}

#[test]
fn figures_that_do_not_hold_are_not_told() {
    let mut result = result();
    result.verdict = Verdict::Invalid;
    assert!(sentence(&result).starts_with("The figures do not hold"));
    let page = html(&result).unwrap();
    assert!(page.contains("not valid"));
}

#[test]
fn too_few_cases_give_no_model() {
    let mut result = result();
    let sizing = result.sizing.as_mut().unwrap();
    sizing.observations.retain(|run| run.case == "idle");
    assert_eq!(super::sentence(&result), NOTHING);
    assert!(html(&result).is_ok());
    let record = result.sizing.as_ref().unwrap();
    assert_eq!(record.load, load());
}
