//! The page of a made-up measurement, its answer word for word.

use super::*;
use crate::checks::Verdict;
use crate::result::Experiment;
use crate::sample;
use crate::sizing::sample::record;

fn result() -> RunResult {
    let mut result = sample::result();
    result.experiment = Experiment::Cores;
    result.comparisons = Vec::new();
    result.sizing = Some(record(0.03));
    result
}

#[test]
fn the_answer_reads_as_it_should() {
    let answer = page(&result()).answer;
    assert_eq!(
        answer,
        [
            "100 MB/s of 1.00 KiB records in batches of 16.0 KiB over 10 partitions, read by 3 \
             consumer groups need 2 cores for passthrough, 3 cores for encryption.",
            "Of these, passthrough keeps 0.73 busy, encryption keeps 1.4 busy; plan for 70 % at \
             most. This lies beyond what was measured, in bytes consumed per second by a factor of \
             6.67.",
            "All 9.6 million records were read back.",
        ]
    );
}

#[test]
fn a_sizing_survives_its_document() {
    let result = result();
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert!(back == result);
    assert_eq!(page(&back), page(&result));
    let unknown = result.to_json().unwrap().replacen("\"cpu_ns\"", "\"cpu_nanos\"", 1);
    assert!(RunResult::from_json(&unknown).is_err());
}

#[test]
fn the_page_has_the_prices_every_case_and_the_line_with_headroom() {
    let page = page(&result());
    let titles: Vec<&str> = page.details.iter().map(|detail| detail.title.as_str()).collect();
    for title in
        ["Prices", "Error on held-out cases", "Cases, encryption", "Beyond what was measured"]
    {
        assert!(titles.contains(&title), "{title} in {titles:?}");
    }
    let Plot::Lines { lines, .. } = &page.charts[0].plot else { panic!("{:?}", page.charts[0]) };
    for pair in lines.chunks(2) {
        let [busy, planned] = pair else { panic!("{pair:?}") };
        assert_eq!((busy.style, planned.style), (Style::Curve, Style::Dashed));
        for (busy, planned) in busy.points.iter().zip(&planned.points) {
            assert!(planned.y.value > busy.y.value / UTILISATION_MAX, "{busy:?} {planned:?}");
        }
    }
}

#[test]
fn invalid_figures_are_not_shown() {
    let mut result = result();
    result.verdict = Verdict::Invalid;
    assert!(!page(&result).standing.has_figures());
    assert!(page(&result).answer.iter().all(|sentence| !sentence.contains("cores")));
}

#[test]
fn too_few_cases_give_no_model() {
    let mut result = result();
    let sizing = result.sizing.as_mut().unwrap();
    sizing.observations.retain(|run| run.case == "idle");
    assert_eq!(page(&result).answer[0], NOTHING);
}
