//! The question and findings of an experiment file, as a page.

use crate::checks::Weight;
use crate::metric::Metric;
use crate::page::{Detail, Page};
use crate::punctuality::is_scheduled;
use crate::result::{Question, RunResult};
use crate::result_page;
use crate::run_charts::{self, percentiles, usual_course};
use crate::run_tables;
use moldau_measure::Error;

/// Latency charts that stand beside the answer.
const CURVES_SHOWN_MAX: usize = 2;

/// The process whose CPU time is reported.
const BROKER: (Metric, &str) = (Metric::BrokerCpu, "the broker");

/// The page of a result.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub fn page(result: &RunResult, question: &Question) -> Result<Page, Error> {
    let mut page = result_page::blank(result, &question.question);
    if page.standing.has_figures() {
        page.answer =
            [result_page::goals(result)].into_iter().chain(result_page::records(result)).collect();
    }
    page.table = Some(result_page::judged_table(result, Weight::Objective, "goal"));
    let tone = |arm: &str| run_charts::tone(result, arm);
    let is_fixed =
        |case: &&str| result.runs.iter().any(|run| run.case == *case && is_scheduled(run));
    let (fixed, unpaced): (Vec<&str>, Vec<&str>) = result.cases().into_iter().partition(is_fixed);
    page.charts.extend(run_charts::throughput(result, "throughput", &unpaced, tone));
    let mut folded = Vec::new();
    for (at, case) in fixed.iter().enumerate() {
        let found = percentiles(result, case, tone, |latency| &latency.response)?;
        if at < CURVES_SHOWN_MAX { &mut page.charts } else { &mut folded }.extend(found);
    }
    let all = result.cases();
    page.charts.extend(run_charts::cpu(result, "cpu", &all, BROKER, tone));
    let courses = all.iter().filter_map(|case| usual_course(result, case, tone)).collect();
    page.details = vec![
        Detail::words("What was expected", vec![question.hypothesis.trim().to_owned()]),
        Detail::of("Latency by load", folded, vec![run_tables::latency(result, &fixed)]),
        Detail::of(
            "Throughput at full speed",
            Vec::new(),
            vec![run_tables::throughputs(result, &unpaced)],
        ),
        Detail::of(
            "CPU time by load",
            Vec::new(),
            vec![run_tables::cpu(result, &all, BROKER.0, BROKER.1)],
        ),
        result_page::comparisons(result),
        Detail::of("Course of the experiment", courses, Vec::new()),
        result_page::audit(result),
    ];
    page.details.retain(|detail| !detail.is_empty());
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Check, Verdict};
    use crate::page::{html, markdown};
    use crate::result::Experiment;
    use crate::sample;

    fn question() -> Question {
        Question { question: "Is <it> fast?".into(), hypothesis: "It is.".into() }
    }

    fn with_goals(passed: &[bool]) -> RunResult {
        let mut result = sample::result();
        result.experiment = Experiment::File(question());
        let goals = passed.iter().map(|passed| Check {
            name: "p50 against the timer".into(),
            passed: *passed,
            weight: Weight::Objective,
            found: "1.30 x [1.20, 1.40]".into(),
            demanded: "not worse by 5 %".into(),
        });
        result.checks.extend(goals);
        result.verdict = Verdict::of(&result.checks);
        result
    }

    #[test]
    fn the_answer_counts_the_goals_and_names_one_that_is_missed() {
        let answer = |passed: &[bool]| page(&with_goals(passed), &question()).unwrap().answer;
        assert_eq!(answer(&[true])[0], "The goal is reached.");
        assert_eq!(answer(&[true, true])[0], "All 2 goals are reached.");
        let missed =
            "1 of 2 goals are reached; missed: p50 against the timer, 1.30 x [1.20, 1.40].";
        assert_eq!(answer(&[true, false])[0], missed);
    }

    #[test]
    fn the_page_has_the_question_the_goals_and_charts_of_every_load() {
        let page = page(&with_goals(&[true, false]), &question()).unwrap();
        let rows = &page.table.as_ref().unwrap().rows;
        assert_eq!((rows.len(), rows[1][3].as_str()), (2, "missed"));
        let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids, ["throughput", "latency-fixed-rate-produced-and-consumed", "cpu"]);
        assert!(html(&page).contains("Is &lt;it&gt; fast?") && html(&page).contains("goal missed"));
        assert!(markdown(&page).contains("## What was expected\n\nIt is.\n"));
    }
}
