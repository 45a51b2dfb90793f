//! Files of a result's directory, and the pages of everything that was published.

use super::*;
use crate::checks::{Check, Verdict, Weight};
use crate::sample;

#[test]
fn a_file_that_cannot_be_written_whole_leaves_what_was_there() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("result.json");
    write_whole(&path, "first").unwrap();
    // Nothing can be written where the unfinished file would be.
    std::fs::create_dir(out.path().join("result.json.unfinished")).unwrap();
    assert!(matches!(write_whole(&path, "second"), Err(Error::Machine { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
}

#[test]
fn a_result_survives_its_document() {
    let result = sample::result();
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert!(back == result);
    assert_eq!(page(&back).unwrap(), page(&result).unwrap());
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
fn a_refused_run_has_a_refusal_instead_of_a_figure() {
    let mut result = sample::result();
    result.verdict = Verdict::Invalid;
    result.checks.push(Check {
        name: "the schedule is kept".into(),
        passed: false,
        weight: Weight::Validity,
        found: "9 ms".into(),
        demanded: "< 1 ms".into(),
    });
    let page = page(&result).unwrap();
    assert!(!page.standing.has_figures());
    assert_eq!(page.answer, ["The schedule is kept: 9 ms (demanded: < 1 ms)."]);
}

#[test]
fn lost_records_come_first() {
    let mut result = sample::result();
    result.verdict = Verdict::RecordsLost;
    result.audit.lost = 3;
    assert!(page(&result).unwrap().answer[0].contains("3 lost"));
}

#[test]
fn the_report_is_small_and_needs_no_network() {
    let report = page::html(&page(&sample::result()).unwrap());
    assert!(report.len() < 1 << 20, "{} bytes", report.len());
    for outside in ["src=", "@import", "url(", "<script"] {
        assert!(!report.contains(outside), "{outside}");
    }
    assert!(report.contains("the direct path, &lt;with&gt; a &quot;description&quot;"));
}

#[test]
fn every_published_result_can_be_rendered() {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");
    let mut count = 0;
    for entry in std::fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path().join("result.json");
        let Ok(json) = std::fs::read_to_string(&path) else { continue };
        let result = RunResult::from_json(&json).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let page = page(&result).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert!(!page.answer.is_empty() && page.answer.len() <= page::ANSWER_SENTENCES_MAX);
        let report = page::html(&page);
        assert!(report.contains("</html>") && report.len() < 2_000_000, "{path:?}");
        let mut ids: Vec<&str> = page.all_charts().map(|chart| chart.id.as_str()).collect();
        let charts = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), charts, "{path:?}: {ids:?}");
        for width in [40, 100, 200] {
            let text = page::terminal(&page, "report.html", width, page::Extent::Short);
            assert!(text.lines().count() <= page::LINES_MAX, "{path:?}: {text}");
        }
        count += 1;
    }
    assert!(count > 0);
}
