//! Pages of made-up results.

use super::page;
use crate::checks::Verdict;
use crate::page::Plot;
use crate::result::{Arm, ConnectionsRecord, Experiment, RunResult};
use crate::sample;

/// The sample with its proxy as the path without a filter, and one that encrypts at one and a half
/// times the CPU time.
fn result() -> RunResult {
    let mut result = sample::result();
    result.experiment = Experiment::Overhead;
    let encrypted = result.runs.iter().filter(|run| run.arm == "proxy").cloned();
    let encrypted: Vec<_> = encrypted
        .map(|mut run| {
            run.arm = "encryption".into();
            for usage in run.processes.iter_mut().filter(|usage| usage.role == "proxy") {
                usage.cpu_ns += usage.cpu_ns / 2;
            }
            run
        })
        .collect();
    for run in result.runs.iter_mut().filter(|run| run.arm == "proxy") {
        run.arm = "passthrough".into();
    }
    result.runs.extend(encrypted);
    let arms = ["direct", "passthrough", "encryption"];
    result.arms = arms.map(|name| Arm::of(name, "")).to_vec();
    result.comparisons =
        crate::metric::compare_all(&result.runs, &result.cases(), &arms, result.seed);
    result
}

fn answer(result: &RunResult) -> String {
    page(result).unwrap().answer.join(" ")
}

#[test]
fn the_answer_has_latency_cores_and_records() {
    // 260 ms over 240,000 records of 1 KB in each run are 1.11 ms per MB in and out.
    assert_eq!(
        page(&result()).unwrap().answer,
        [
            "In front of this broker the proxy adds 0.25 ms to the median publish latency at 19.5 \
             MB/s.",
            "One core carries 450 MB/s through it, 300 MB/s encrypted.",
            "All 9.6 million records were read back.",
        ]
    );
}

#[test]
fn a_difference_that_was_not_found_is_reported_by_its_bound() {
    let mut same = result();
    for run in &mut same.runs {
        run.latency = result()
            .runs
            .iter()
            .find(|of| of.pair == run.pair && of.latency.is_some())
            .and_then(|of| of.latency.clone())
            .filter(|_| run.latency.is_some());
    }
    let arms = ["direct", "passthrough", "encryption"];
    same.comparisons = crate::metric::compare_all(&same.runs, &same.cases(), &arms, 1);
    assert!(answer(&same).contains("adds less than 0.000 ms"), "{}", answer(&same));
}

#[test]
fn another_first_path_is_named_and_nothing_is_compared_with_itself() {
    let mut other = result();
    other.arms[0].name = "relay".into();
    other
        .runs
        .iter_mut()
        .filter(|run| run.arm == "direct")
        .for_each(|run| run.arm = "relay".into());
    assert!(answer(&other).starts_with("Compared with relay the proxy adds "));
    other.arms.truncate(1);
    assert!(answer(&other).starts_with("No path was compared with another at a fixed rate."));
}

#[test]
fn a_path_without_latencies_has_a_reason() {
    let case = sample::FIXED;
    let mut saturated = result();
    let is_it =
        |run: &&mut moldau_load::run::RunRecord| run.arm == "passthrough" && run.case == case;
    saturated.runs.iter_mut().filter(is_it).for_each(|run| run.produced_records = 60_000);
    let mut late = result();
    late.runs.iter_mut().filter(is_it).for_each(|run| sample::make_late(run, 20_000_000, 50));
    for (changed, sentence, word) in [
        (&mut saturated, "the proxy does not keep up with 19.5 MB/s.", "saturated"),
        (&mut late, "is not known: too few runs have latencies.", "late"),
    ] {
        let arms = ["direct", "passthrough", "encryption"];
        changed.comparisons = crate::metric::compare_all(&changed.runs, &changed.cases(), &arms, 1);
        let page = page(changed).unwrap();
        assert!(page.answer[0].ends_with(sentence), "{:?}", page.answer);
        let row = &page.table.unwrap().rows[1];
        assert_eq!(row[..3], ["passthrough", word, word]);
        let table = &page.details[0].tables[0];
        assert!(table.rows[0][2].starts_with(word), "{:?}", table.rows);
    }
}

#[test]
fn the_small_table_has_a_row_for_each_path() {
    let table = page(&result()).unwrap().table.unwrap();
    assert_eq!(table.rows.len(), 3);
    // Memory was not looked at, and has no column.
    assert_eq!((table.columns.len(), table.columns[5].name.as_str()), (6, "full speed"));
    assert_eq!(table.rows[0][3..], ["-", "-", "246"]);
    assert_eq!(table.rows[1][3..], ["1.11", "450", "197"]);
    assert_eq!(table.rows[2][3..], ["1.66", "300", "197"]);
}

#[test]
fn charts_show_cpu_latency_and_throughput() {
    let page = page(&result()).unwrap();
    let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
    assert_eq!(ids, ["cpu", "latency-fixed-rate-produced-and-consumed", "throughput", "cores"]);
    let Plot::Bars { groups, .. } = &page.charts[0].plot else { panic!("CPU time is bars") };
    assert_eq!((groups.len(), groups[0].cells.len()), (2, 2));
    let Plot::Lines { lines, .. } = &page.charts[1].plot else { panic!("latency is lines") };
    assert_eq!(lines.len(), 3);
}

#[test]
fn paths_are_compared_with_the_proxy_without_a_filter() {
    let mut result = result();
    let record = |arm: &str, round, cpu_ns| ConnectionsRecord {
        arm: arm.into(),
        round,
        connections: 100,
        cpu_ns,
    };
    let rounds = (0..3).flat_map(|round| {
        [record("passthrough", round, 20_000_000), record("encryption", round, 25_000_000)]
    });
    result.connections = rounds.collect();
    let details = page(&result).unwrap().details;
    let found = |title: &str| {
        details.iter().find(|detail| detail.title == title).map(|detail| &detail.tables)
    };
    let [fixed] = found("Compared with passthrough").unwrap().as_slice() else { panic!("a case") };
    assert_eq!(fixed.rows[0], ["passthrough", "1.11 [1.11, 1.11]", "-", "-", "-"]);
    let added = "0.000 [0.000, 0.000]";
    assert_eq!(
        fixed.rows[1],
        ["encryption", "1.66 [1.66, 1.66]", "1.50 x [1.50, 1.50]", added, added]
    );
    let connections = &found("A new connection").unwrap()[0];
    assert_eq!(connections.rows[1][1..], ["0.250 [0.250, 0.250]", "+0.050 [+0.050, +0.050]"]);
    let without = RunResult { connections: Vec::new(), ..result };
    let details = page(&without).unwrap().details;
    assert!(details.iter().all(|detail| detail.title != "A new connection"));
}

#[test]
fn figures_that_do_not_hold_are_answered_by_the_reason() {
    let mut lost = result();
    lost.verdict = Verdict::RecordsLost;
    lost.audit.lost = 3;
    let said = answer(&lost);
    assert!(
        said.starts_with("Of 14,391,000 acknowledged") || said.starts_with("Of 9,594,000 ack"),
        "{said}"
    );
    assert!(said.ends_with("not all came back as they were sent: 3 lost."), "{said}");
}
