//! The reports of a made-up result: what they say, and what they leave out.

use super::*;
use crate::checks::{Check, Verdict, Weight};
use crate::result::{Experiment, Question, RunResult};

/// Set to a path, this is where the page of the sample is written, to be looked at.
const PAGE: &str = "MOLDAU_LAB_SAMPLE_PAGE";

#[test]
fn a_result_survives_its_document() {
    let result = sample::result();
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert!(back == result);
    assert!(html(&back).unwrap() == html(&result).unwrap());
}

#[test]
fn another_version_and_unknown_fields_are_refused() {
    let json = sample::result().to_json().unwrap();
    for broken in [
        json.replacen("\"format_version\":2", "\"format_version\":3", 1),
        json.replacen("\"seed\":42", "\"seed\":42,\"sead\":43", 1),
        "{}".to_string(),
    ] {
        assert!(RunResult::from_json(&broken).is_err());
    }
}

#[test]
fn the_answer_names_the_difference_and_the_records() {
    let text = sentence(&sample::result());
    assert!(text.starts_with("At 19.5 MB/s the proxy adds 0."), "{text}");
    assert!(text.contains("All 9,594,000 acknowledged records were read back."), "{text}");
}

#[test]
fn a_refused_run_says_so_instead_of_a_figure() {
    let mut result = sample::result();
    result.verdict = Verdict::Invalid;
    result.checks.push(Check {
        name: "the schedule is kept".into(),
        passed: false,
        weight: Weight::Validity,
        found: "9 ms".into(),
        demanded: "< 1 ms".into(),
    });
    let text = sentence(&result);
    let said = "The figures do not hold: the schedule is kept: 9 ms (demanded: < 1 ms).";
    assert_eq!(text, said);
}

#[test]
fn lost_records_come_first() {
    let mut result = sample::result();
    result.verdict = Verdict::RecordsLost;
    result.audit.lost = 3;
    assert!(sentence(&result).contains("3 lost"));
}

#[test]
fn the_page_is_small_and_needs_no_network() {
    let page = html(&sample::result()).unwrap();
    if let Some(path) = std::env::var_os(PAGE) {
        std::fs::write(path, &page).unwrap();
    }
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("the direct path, &lt;with&gt; a &quot;description&quot;"));
}

#[test]
fn the_tables_hold_every_case() {
    let result = sample::result();
    for report in [text(&result), markdown(&result)] {
        for part in [sample::FIXED, "Produce at full speed", "publish p99.9", "proxy CPU"] {
            assert!(report.contains(part), "{part} in {report}");
        }
    }
}

#[test]
fn an_objective_is_told_with_what_was_found() {
    let mut result = sample::result();
    result.experiment = Experiment::File(Question {
        question: "Is <it> fast?".into(),
        hypothesis: "It is.".into(),
    });
    result.verdict = Verdict::ObjectiveFailed;
    result.checks.push(Check {
        name: "p50 against the timer".into(),
        passed: false,
        weight: Weight::Objective,
        found: "1.30 x [1.20, 1.40]".into(),
        demanded: "not worse by 5 %".into(),
    });
    let text = sentence(&result);
    assert!(text.starts_with("Expected: It is. Found: p50 against the timer: 1.30 x"), "{text}");
    assert!(text.contains("(missed, not worse by 5 %)"), "{text}");
    let page = html(&result).unwrap();
    assert!(page.contains("Is &lt;it&gt; fast?") && page.contains("objective missed"));
    assert!(page.contains("<div class=\"value bad\">1.30 x [1.20, 1.40]</div>"));
}

#[test]
fn every_published_result_can_be_told() {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");
    let mut count = 0;
    for entry in std::fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path().join("result.json");
        let json = std::fs::read_to_string(&path).unwrap();
        let result = RunResult::from_json(&json).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert!(html(&result).unwrap().contains("</html>"), "{path:?}");
        for report in [text(&result), markdown(&result)] {
            assert!(report.contains(&sentence(&result)[..40]), "{path:?}: {report}");
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn another_baseline_than_the_direct_way_is_named() {
    let mut result = sample::result();
    result.arms[0].name = "relay".into();
    for name in result.comparisons.iter_mut().map(|comparison| &mut comparison.baseline) {
        *name = "relay".into();
    }
    let text = sentence(&result);
    assert!(text.starts_with("At 19.5 MB/s, against relay, the proxy adds 0."), "{text}");
    result.arms[1].name = "kroxylicious".into();
    for name in result.comparisons.iter_mut().map(|comparison| &mut comparison.arm) {
        *name = "kroxylicious".into();
    }
    let text = sentence(&result);
    assert!(text.starts_with("At 19.5 MB/s, against relay, kroxylicious adds 0."), "{text}");
    result.arms.truncate(1);
    assert!(sentence(&result).starts_with("There is nothing to compare at a fixed rate. All"));
}

#[test]
fn goals_are_counted_and_missed_ones_named() {
    let mut result = sample::result();
    let goal = |name: &str, passed| Check {
        name: name.into(),
        passed,
        weight: Weight::Objective,
        found: "1.60 x".into(),
        demanded: "<= 1.5 x relay".into(),
    };
    result.checks.push(goal("one", true));
    assert!(sentence(&result).contains(" All 1 goals are reached."));
    result.checks.push(goal("other", false));
    result.verdict = Verdict::ObjectiveFailed;
    let text = sentence(&result);
    let expected = " 1 of 2 goals are reached; missed: other: 1.60 x (<= 1.5 x relay).";
    assert!(text.contains(expected), "{text}");
}

/// Three outputs of the benchmark, of which the last is faster.
fn imported_result() -> RunResult {
    let outputs = [900, 1_000, 1_100].map(|rate| {
        let text = format!(
            "{{\"workload\": \"w & v\", \"driver\": \"d\", \"messageSize\": 1024, \"topics\": 10, \
             \"publishRate\": [{rate}], \"consumeRate\": [{rate}], \
             \"aggregatedPublishLatency50pct\": 1.5}}"
        );
        crate::imported::read("omb.json", &text).unwrap()
    });
    crate::experiments::imports::result(outputs.to_vec(), "0.1.0", 0).unwrap()
}

#[test]
fn imported_outputs_are_told_with_what_they_hide() {
    let result = imported_result();
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert!(back == result);
    let page = html(&result).unwrap();
    let told = [text(&result), markdown(&result), page.clone()];
    for report in &told {
        for part in ["coordinated omission", "1,000", "send to acknowledgement p50", "900 to 1,100"]
        {
            assert!(report.contains(part), "{part} in {report}");
        }
    }
    assert!(page.contains("w &amp; v") && !page.contains("Every record of every run"));
    assert!(sentence(&result).starts_with("Imported 3 outputs of OpenMessaging Benchmark"));
}

#[test]
fn a_comparison_tells_what_is_worse_and_what_could_not_be_seen() {
    use crate::compared::{Choice, compare};

    let mut second = sample::result();
    for run in second.runs.iter_mut().filter(|run| run.arm == "proxy") {
        run.processes.iter_mut().for_each(|usage| usage.cpu_ns += usage.cpu_ns / 4);
    }
    second.environment.kernel = "9.9".into();
    let found = compared(&compare(&sample::result(), &second, &Choice::default(), 1));
    for part in ["worse in 4 (broker CPU of", "conditions: kernel.", "WORSE", "9.9"] {
        assert!(found.contains(part), "{part} in {found}");
    }
    second.verdict = Verdict::Invalid;
    let refused = compared(&compare(&sample::result(), &second, &Choice::default(), 1));
    assert!(refused.starts_with("Not comparable: the second result (20260131-235959) is not"));
}

#[test]
fn a_history_draws_every_figure_and_needs_neither_script_nor_network() {
    let results: Vec<RunResult> = (0..3_u64)
        .map(|day| {
            let mut result = sample::result();
            result.id = format!("day-{day}");
            result.started_unix_ms += day * 86_400_000;
            for run in &mut result.runs {
                run.produced_records += day * run.produced_records / 8;
            }
            result
        })
        .collect();
    let found = crate::history::history(&results);
    let told = history(&found);
    for part in ["3 results", "produced records, records/s", "▁▅█"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let page = history_html(&found);
    assert!(page.len() < 1 << 20 && page.contains("<circle"));
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn every_figure_of_a_reference_page_leads_to_its_result() {
    let mut refused = sample::result();
    refused.verdict = Verdict::Invalid;
    let results = [
        ("a/result.json".to_owned(), sample::result()),
        ("b/result.json".to_owned(), imported_result()),
        ("c/result.json".to_owned(), refused),
    ];
    let page = reference_page(&results);
    let figures =
        page.lines().filter(|line| line.starts_with("| direct") || line.starts_with("| d "));
    let mut cells = 0;
    for cell in figures.flat_map(|line| line.split(" | ").skip(1)) {
        assert!(cell.starts_with('-') || cell.contains("](a/") || cell.contains("](b/"), "{cell}");
        cells += 1;
    }
    assert!(cells > 8, "{page}");
    for part in [
        "Conditions: not told by the tools",
        "publish p99, ms",
        "20,000 records/s at fixed intended times",
        "The figures do not hold",
        "([result 20260131-235959](c/result.json))",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("](c/result.json) ("), "no figure of a result that does not hold");
}
