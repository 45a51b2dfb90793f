//! The report of a made-up survey in which one system gains by a codec and the other does not.

use super::*;
use crate::report::{html, markdown, sample, sentence, text};
use crate::result::{Arm, Experiment};
use crate::survey::{Band, LeftOut, Setting, Source};
use crate::workload::Pace;

fn setting(key: &str, value: &str) -> Setting {
    Setting { key: key.into(), value: value.into() }
}

fn cell(name: &str, from: Option<&str>, settings: &[(&str, &str)]) -> Cell {
    let settings = settings.iter().map(|(key, value)| setting(key, value)).collect();
    Cell { name: name.into(), settings, from: from.map(str::to_string) }
}

fn contrast(of: &str, over: &str) -> Contrast {
    Contrast { of: of.into(), over: Some(over.into()) }
}

/// Of two systems, the second gains by the codec alone; the first by all settings at once.
fn survey() -> RunResult {
    let record = SurveyRecord {
        question: "What does <the codec> give?".into(),
        hypothesis: "Nothing alone.".into(),
        source: Some(Source { title: "A page".into(), url: "https://example.org/page".into() }),
        cells: vec![
            cell("few", None, &[("outstanding", "8")]),
            cell("few, compression snappy", Some("few"), &[("compression", "snappy")]),
            cell("few, outstanding 32", Some("few"), &[("outstanding", "32")]),
            cell("all", None, &[("outstanding", "32"), ("compression", "snappy")]),
        ],
        claims: vec![Claim {
            says: "The codec doubles the rate".into(),
            at: "table 2".into(),
            figure: Metric::ProduceRecords,
            published: 2.0,
            holds: Band { at_least: Some(1.6), at_most: Some(2.5) },
            measured: contrast("all", "few"),
            isolated: vec![contrast("few, compression snappy", "few")],
            systems: Vec::new(),
        }],
        remarks: vec!["The clock of the tool stops late.".into()],
        left_out: vec![LeftOut { system: "absent".into(), reason: "not there".into() }],
    };
    let mut result = sample::result();
    let like = result.runs.pop().unwrap();
    result.runs.clear();
    result.comparisons.clear();
    result.arms = ["ours", "theirs"].map(|name| Arm::of(name, "a system")).to_vec();
    let cases = [("few", 100, 100), ("few, compression snappy", 101, 205)];
    let more = [("few, outstanding 32", 190, 200), ("all", 200, 210)];
    for (case, ours, theirs) in cases.into_iter().chain(more) {
        for (arm, thousands) in [("ours", ours), ("theirs", theirs)] {
            for pair in 0..4_u64 {
                let mut run = like.clone();
                (run.case, run.arm) = (case.into(), arm.into());
                run.pair = u32::try_from(pair).unwrap();
                run.workload.pace = Pace::Closed { outstanding: 8 };
                run.produced_records = thousands * (1_000 + pair);
                run.produced_batches = run.produced_records / 4;
                run.window_ns = 1_000_000_000;
                result.runs.push(run);
            }
        }
    }
    result.experiment = Experiment::Survey(record);
    result
}

fn only(grids: &[Grid], title: &str) -> Vec<Vec<String>> {
    let found = grids.iter().find(|grid| grid.title == title).expect("the table is there");
    found.rows.clone()
}

#[test]
fn each_claim_has_a_sentence_with_its_outcome_and_intervals() {
    let result = survey();
    let told = sentence(&result);
    assert!(told.starts_with("Claims: 1 not the same on all systems. 4 loads were"), "{told}");
    let [answer, ours, theirs] = answers(&result, result.survey().unwrap()).try_into().unwrap();
    assert_eq!(
        answer,
        "The codec doubles the rate: corrected on ours, reproduced on theirs (published: 2.00 x). \
         Measured the same way, 2 settings changed at once: ours 2.00 x [2.00, 2.00], theirs \
         2.10 x [2.10, 2.10]. One setting alone, compression snappy from few: ours 1.01 x [1.01, \
         1.01], theirs 2.05 x [2.05, 2.05]. Not tested on absent."
    );
    assert!(ours.starts_with("For throughput on ours: all, 200,300 records/s"), "{ours}");
    assert!(theirs.starts_with("For throughput on theirs: all, 210,315 records/s"), "{theirs}");
}

#[test]
fn tables_show_every_load_one_setting_at_a_time_and_scaling() {
    let result = survey();
    let grids = grids(&result, result.survey().unwrap());
    let alone = only(&grids, "One setting at a time");
    assert_eq!(alone[0][..2], ["few, compression snappy", "1.01 [1.01, 1.01]"]);
    assert_eq!((alone.len(), alone[0][4].as_str()), (2, "2.05 [2.05, 2.05]"));
    let scaling = only(&grids, "Scaling on ours");
    let expected =
        ["few, outstanding 32", "outstanding 32", "190,285", "1.90 [1.90, 1.90]", "48 %"];
    assert_eq!(scaling[1], expected);
    assert_eq!(scaling[0][3..], ["1.00 [1.00, 1.00]", "100 %"]);
    let loads = only(&grids, "Loads on theirs");
    assert_eq!((loads.len(), loads[0][6].as_str()), (4, "4.0"));
}

#[test]
fn figures_of_a_refused_survey_are_in_no_sentence() {
    let mut result = survey();
    result.verdict = Verdict::Invalid;
    assert!(answers(&result, result.survey().unwrap()).is_empty());
    assert!(!html(&result).unwrap().contains("For throughput on"));
    assert!(!markdown(&result).contains("settings changed at once"));
}

#[test]
fn all_reports_hold_the_answers_and_the_page_needs_nothing_else() {
    let result = survey();
    let [page, lines, words] = [html(&result).unwrap(), markdown(&result), text(&result)];
    for report in [&page, &lines] {
        for part in ["corrected on ours", "The clock of the tool stops late.", "result.json"] {
            assert!(report.contains(part), "{part}");
        }
    }
    assert!(words.contains("The codec doubles the rate") && words.contains("Scaling on ours"));
    assert!(page.contains("What does &lt;the codec&gt; give?"));
    // Drawings of ratios and throughput; no run has a latency.
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("src=\"http") && !page.contains("<link"));
    let again = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert_eq!(again, result);
}
