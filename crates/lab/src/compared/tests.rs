//! Comparisons of made-up results with themselves and with changed ones.

use super::*;
use crate::experiments::imports;
use crate::imported;
use crate::sample;
use moldau_load::run::RunRecord;

fn compared(second: &RunResult) -> Compared {
    compare(&sample::result(), second, &Choice::default(), 1)
}

fn outcomes(compared: &Compared, of: Outcome) -> Vec<(String, Metric)> {
    let found = compared.contrasts.iter().flat_map(|contrast| {
        contrast.differences.iter().map(move |it| (contrast.second.arm.clone(), it))
    });
    found.filter(|(_, it)| it.outcome == of).map(|(arm, it)| (arm, it.metric)).collect()
}

/// The sample with this share of the proxy's processor time.
fn with_proxy_cpu(share: u64) -> RunResult {
    let mut result = sample::result();
    for (index, run) in (0..).zip(&mut result.runs) {
        for usage in run.processes.iter_mut().filter(|usage| usage.role == "proxy") {
            usage.cpu_ns = usage.cpu_ns / 100 * share + index * 10_000;
        }
    }
    result
}

#[test]
fn a_result_differs_in_nothing_from_itself() {
    let compared = compared(&sample::result());
    assert!(compared.refusals.is_empty() && compared.environments.is_empty());
    assert_eq!(compared.contrasts.len(), 4);
    assert_eq!(outcomes(&compared, Outcome::Worse), []);
    assert_eq!(outcomes(&compared, Outcome::Better), []);
    assert_eq!(compared.verdict(), Verdict::Ok);
    assert!(compared.warnings.iter().any(|warning| warning.contains("same result")));
    // From the intended time, not from sending.
    let metrics: Vec<Metric> =
        compared.contrasts[0].differences.iter().map(|it| it.metric).collect();
    assert!(metrics.contains(&Metric::ResponseP99) && !metrics.contains(&Metric::ServiceP99));
}

#[test]
fn regressions_are_named_and_improvements_are_no_failure() {
    let worse = compared(&with_proxy_cpu(120));
    let of_proxy = ("proxy".to_owned(), Metric::ProxyCpu);
    assert_eq!(outcomes(&worse, Outcome::Worse), [of_proxy.clone(), of_proxy.clone()]);
    assert_eq!(worse.verdict(), Verdict::ObjectiveFailed);
    let better = compared(&with_proxy_cpu(80));
    assert_eq!(outcomes(&better, Outcome::Better), [of_proxy.clone(), of_proxy]);
    assert_eq!(better.verdict(), Verdict::Ok);
    let contrast = better.contrasts.iter().find(|it| it.first.arm == "proxy").unwrap();
    let cpu = contrast.differences.iter().find(|it| it.metric == Metric::ProxyCpu).unwrap();
    let ratio = cpu.log_ratio.unwrap().mean.exp();
    assert!((ratio - 0.8).abs() < 0.01, "{ratio}");
}

#[test]
fn a_negligible_difference_is_none_even_without_any_scatter() {
    // Three runs that agree to the last record, and three more that miss one in a hundred thousand.
    let still = |records: u64| {
        let mut result = sample::result();
        result.runs.iter_mut().for_each(|run| run.produced_records = records);
        result
    };
    let first = still(100_000);
    let told = |records| {
        let compared = compare(&first, &still(records), &Choice::default(), 1);
        !outcomes(&compared, Outcome::Worse).is_empty()
    };
    assert_eq!((told(99_999), told(99_000)), (false, true));
}

#[test]
fn other_machines_cause_a_warning_and_other_loads_a_refusal() {
    let mut second = sample::result();
    second.environment.kernel = "9.9".into();
    second.environment.cpu_model = "another".into();
    for run in second.runs.iter_mut().filter(|run| run.case == sample::FIXED) {
        run.workload.partitions = 8;
        run.workload.window_ms += 1;
    }
    let compared = compared(&second);
    let names: Vec<&str> = compared.environments.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["processors", "kernel"]);
    let refused: Vec<&str> =
        compared.contrasts.iter().filter_map(|it| it.refusal.as_deref()).collect();
    assert_eq!(refused, ["partitions: 4, 8"; 2]);
    assert_eq!(compared.verdict(), Verdict::Ok);
}

#[test]
fn results_that_do_not_hold_are_compared_with_nothing() {
    let mut second = sample::result();
    second.verdict = Verdict::Invalid;
    let compared = compared(&second);
    assert_eq!(compared.refusals, ["the second result (20260131-235959) is not valid"]);
    assert_eq!((compared.contrasts.len(), compared.verdict()), (0, Verdict::Invalid));
}

#[test]
fn a_figure_that_is_gone_is_no_good_news() {
    let mut second = sample::result();
    let of_proxy = second.runs.iter_mut().filter(|run| run.arm == "proxy");
    of_proxy.for_each(|run| run.latency = None);
    let lost = compared(&second);
    let gone = outcomes(&lost, Outcome::Gone);
    assert!(gone.contains(&("proxy".into(), Metric::ResponseP99)), "{gone:?}");
    assert!(gone.iter().all(|(arm, _)| arm == "proxy"), "{gone:?}");
    assert_eq!(lost.verdict(), Verdict::ObjectiveFailed);
    let page = page(&lost);
    assert!(page.answer[0].contains("without a value in "), "{:?}", page.answer);
    let mut rows = page.details.iter().flat_map(|detail| &detail.tables).flat_map(|it| &it.rows);
    assert!(rows.any(|row| row.last().is_some_and(|cell| cell == "GONE")));
    // What is new cannot be worse.
    let gained = compare(&second, &sample::result(), &Choice::default(), 1);
    assert_eq!(outcomes(&gained, Outcome::Gone), []);
    assert_eq!(gained.verdict(), Verdict::Ok);
}

#[test]
fn of_many_cases_without_a_counterpart_a_few_are_named() {
    let mut second = sample::result();
    let run = second.runs[0].clone();
    second.runs.extend((0..5).map(|at| RunRecord { case: format!("case {at}"), ..run.clone() }));
    let warnings = compared(&second).warnings;
    assert!(warnings[0].starts_with("only in the second: case 0, "), "{warnings:?}");
    assert!(warnings[0].ends_with("; and 2 more") && !warnings[0].contains("case 3"));
}

#[test]
fn cases_and_arms_of_other_names_are_compared_where_they_are_named() {
    let mut second = sample::result();
    for run in &mut second.runs {
        run.arm = run.arm.replace("proxy", "gateway");
    }
    let compared = compared(&second);
    let [one, other, ..] = &compared.warnings[..] else { panic!("{:?}", compared.warnings) };
    assert!(one.starts_with("only in the first: ") && one.ends_with(", proxy"), "{one}");
    assert!(other.starts_with("only in the second: ") && other.ends_with(", gateway"), "{other}");
    let arms = Some(["proxy".into(), "gateway".into()]);
    let chosen =
        compare(&sample::result(), &second, &Choice { arms: arms.clone(), cases: None }, 1);
    assert_eq!(chosen.contrasts.len(), 2);
    assert!(chosen.contrasts.iter().all(|it| it.first.case == it.second.case));
    let cases = Some([sample::FIXED.into(), "Produce at full speed".into()]);
    let chosen = compare(&sample::result(), &second, &Choice { arms, cases }, 1);
    assert!(
        chosen.contrasts[0].refusal.as_ref().unwrap().starts_with("consume: ") || {
            chosen.contrasts[0].refusal.as_ref().unwrap().contains("pace: ")
        }
    );
    assert_eq!(chosen.verdict(), Verdict::Invalid);
    let cases = Some(["x".into(), "y".into()]);
    let none = compare(&sample::result(), &second, &Choice { arms: None, cases }, 1);
    assert!(none.refusals[0].contains("--cases"));
}

/// An output of the benchmark with so many records of 1 KB per second, and this median.
fn output(records: f64, p50: f64) -> String {
    format!(
        "{{\"workload\": \"w\", \"driver\": \"d\", \"messageSize\": 1024, \"publishRate\": \
         [{records}], \"consumeRate\": [0], \"aggregatedPublishLatency50pct\": {p50}}}"
    )
}

fn imported(outputs: &[String]) -> RunResult {
    let outputs = outputs.iter().map(|text| imported::read("f", text).unwrap()).collect();
    imports::result(outputs, "1", 0).unwrap()
}

#[test]
fn imported_outputs_are_compared_from_sending_with_their_warnings() {
    let first = imported(&[output(1e3, 2.0), output(1e3, 2.1), output(1e3, 1.9)]);
    let mut second = sample::result();
    second.runs.retain(|run| run.case == sample::FIXED && run.arm == "direct");
    let compared = compare(&first, &second, &Choice::default(), 1);
    let contrast = &compared.contrasts[0];
    assert_eq!((contrast.refusal.as_ref(), contrast.differences[0].runs), (None, [3, 6]));
    let metrics: Vec<Metric> = contrast.differences.iter().map(|it| it.metric).collect();
    assert_eq!(metrics, [Metric::ProduceRecords, Metric::ProduceThroughput, Metric::ServiceP50]);
    assert!(compared.warnings.iter().any(|it| it.contains("coordinated omission")));
    let smaller = imported(&[output(1e3, 2.0).replace("1024", "100")]);
    let refused = compare(&smaller, &second, &Choice::default(), 1);
    assert_eq!(refused.contrasts[0].refusal.as_deref(), Some("record_bytes: 100, 1024"));
}

#[test]
fn single_runs_show_nothing() {
    let one = imported(&[output(1e3, 2.0)]);
    let compared = compare(&one, &imported(&[output(2e3, 1.0)]), &Choice::default(), 1);
    assert_eq!(compared.contrasts[0].differences[0].log_ratio, None);
    assert_eq!(compared.verdict(), Verdict::Invalid);
}

#[test]
fn a_comparison_names_regressions_and_undetectable_differences() {
    let mut second = sample::result();
    for run in second.runs.iter_mut().filter(|run| run.arm == "proxy") {
        run.processes.iter_mut().for_each(|usage| usage.cpu_ns += usage.cpu_ns / 4);
    }
    second.environment.kernel = "9.9".into();
    let found = page(&compared(&second));
    for part in ["worse in 4 (broker CPU of", "conditions: kernel."] {
        assert!(found.answer[0].contains(part), "{part} in {:?}", found.answer);
    }
    let last = found.details.last().unwrap();
    assert_eq!(last.tables[0].rows[0][2], "9.9");
    second.verdict = Verdict::Invalid;
    let refused = page(&compared(&second));
    assert!(!refused.standing.has_figures());
    let start = "Not comparable: the second result (20260131-235959) is not";
    assert!(refused.answer[0].starts_with(start), "{:?}", refused.answer);
}
