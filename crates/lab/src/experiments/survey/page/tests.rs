//! The page of a made-up survey in which one system gains by a codec and the other does not.

use super::*;
use crate::administration::{AdministrationRecord, tests as administration_tests};
use crate::checks::Verdict;
use crate::littles_law::tests as law_tests;
use crate::page::html;
use crate::result::{Arm, Experiment, LatencyRecord};
use crate::sample;
use crate::survey::{Band, LeftOut, Setting, Source, SystemPair};
use crate::totals::PublishedTotal;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning};
use moldau_measure::histograms::Latencies;

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
            published: Some(2.0),
            holds: Band { at_least: Some(1.6), at_most: Some(2.5) },
            measured: contrast("all", "few"),
            isolated: vec![contrast("few, compression snappy", "few")],
            systems: Vec::new(),
            pair: None,
        }],
        pairs: Vec::new(),
        totals: Vec::new(),
        asks: None,
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

fn only(tables: &[Table], title: &str) -> Vec<Vec<String>> {
    let found = tables.iter().find(|table| table.title == title).expect("the table is there");
    found.rows.clone()
}

fn page_of(result: &RunResult) -> Page {
    page(result, result.survey().unwrap())
}

fn ids(page: &Page) -> Vec<&str> {
    page.charts.iter().map(|chart| chart.id.as_str()).collect()
}

#[test]
fn each_claim_has_a_sentence_with_its_outcome_and_intervals() {
    let result = survey();
    let told = page_of(&result).answer;
    assert_eq!(told[0], "Of 1 claims: 1 not the same on all systems.");
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
fn tables_show_every_load_one_setting_at_a_time() {
    let result = survey();
    let tables = tables(&result, result.survey().unwrap());
    let alone = only(&tables, "One setting at a time");
    let row = ["few, compression snappy", "ours", "1.01 [1.01, 1.01], equal within 5 %"];
    assert_eq!(alone[0][..3], row);
    assert_eq!(alone[1][1..3], ["theirs", "2.05 [2.05, 2.05], differs"]);
    assert_eq!((alone.len(), alone[0].len()), (4, 6));
    let loads = only(&tables, "Loads on theirs");
    assert_eq!((loads.len(), loads[0][6].as_str()), (4, "4.0"));
}

/// The survey with what may be asked beside its loads.
fn with_all_parts() -> RunResult {
    let mut result = survey();
    let pair = administration_tests::pair();
    let of_systems =
        SystemPair { name: "theirs by ours".into(), of: "theirs".into(), over: "ours".into() };
    let Experiment::Survey(record) = &mut result.experiment else { unreachable!("a survey") };
    record.pairs = vec![pair, of_systems];
    record.claims.push(Claim {
        says: "Theirs is as fast".into(),
        published: None,
        holds: Band { at_least: Some(0.9), at_most: Some(1.1) },
        measured: Contrast { of: "few".into(), over: None },
        isolated: Vec::new(),
        pair: Some("theirs by ours".into()),
        ..record.claims[0].clone()
    });
    result.littles_law = Some(law_tests::record());
    result.administration = Some(AdministrationRecord {
        claims: vec![administration_tests::claim()],
        ..administration_tests::record()
    });
    result
}

#[test]
fn questions_beside_the_loads_are_answered_first() {
    let result = with_all_parts();
    let record = result.survey().unwrap();
    let told = answers(&result, record);
    assert!(told[0].starts_with("Little's law holds on ours"), "{}", told[0]);
    let of_systems = "theirs by ours, theirs against ours: few, records/s x 1.00 [1.00, 1.00], p";
    assert!(told[1].starts_with(of_systems), "{}", told[1]);
    assert!(told[2].starts_with("Making 100 partitions: kraft"), "{}", told[2]);
    let of_pair = told.iter().find(|it| it.starts_with("Theirs is as fast")).unwrap();
    assert!(
        of_pair
            .contains("reproduced (published without a figure). Measured: theirs by ours 1.00 x"),
        "{of_pair}"
    );
    let rows = only(&tables(&result, record), "Pairs of systems");
    assert_eq!((rows.len(), rows[0][6].as_str()), (4, NONE));
    let page = page_of(&result);
    assert_eq!(page.answer[0], "Of 3 claims: 2 reproduced, 1 not the same on all systems.");
    let claims = &page.table.as_ref().unwrap().rows;
    let outcomes: Vec<&str> = claims.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(outcomes, ["differs between systems", "reproduced", "reproduced"]);
    // No run has a latency.
    assert_eq!(ids(&page), ["claims", "littles-law", "administration", "throughput"]);
    let again = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert_eq!(again, result);
    let mut refused = result;
    refused.verdict = Verdict::Invalid;
    assert!(!html(&page_of(&refused)).contains("Little's law holds"));
}

#[test]
fn a_system_that_does_not_get_a_load_has_no_row_for_it() {
    let mut result = survey();
    result.runs.retain(|run| run.case != "all" || run.arm == "ours");
    let tables = tables(&result, result.survey().unwrap());
    assert_eq!(only(&tables, "Loads on ours").len(), 4);
    assert_eq!(only(&tables, "Loads on theirs").len(), 3);
}

#[test]
fn figures_of_a_refused_survey_are_in_no_sentence() {
    let mut result = survey();
    result.verdict = Verdict::Invalid;
    let html = html(&page_of(&result));
    assert!(!html.contains("For throughput on") && !html.contains("settings changed at once"));
}

#[test]
fn the_page_has_the_answers_and_what_was_expected() {
    let result = survey();
    let page = page_of(&result);
    assert_eq!(ids(&page), ["claims", "throughput"]);
    assert!(page.details[0].text.iter().any(|it| it.contains("corrected on ours")));
    assert!(page.details[1].text.contains(&"The clock of the tool stops late.".to_owned()));
    assert!(html(&page).contains("What does &lt;the codec&gt; give?"));
    let again = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert_eq!(again, result);
}

/// A run over so many topics at 10,000 records/s in all, whose records take so long from end to
/// end; behind the proxy a MB costs more over more topics.
fn over_topics(case: &str, arm: &str, pair: u32, topics: u16, end_to_end_ms: u64) -> RunRecord {
    let runs = sample::result().runs;
    let mut run = runs.into_iter().find(|run| run.arm == arm && run.pair == pair).unwrap();
    let mut latencies = Latencies::default();
    latencies.lag.record(0, 50_000, 1_000);
    latencies.response.record(0, 2_000_000 + 1_000 * u64::from(pair), 1_000);
    latencies.end_to_end.record(0, end_to_end_ms * 1_000_000, 1_000);
    run.latency = LatencyRecord::of(&latencies).ok();
    run.case = case.into();
    run.workload.tuning = Tuning { topics, fetch_min_bytes: 100_000, ..run.workload.tuning };
    run.workload.pace = Pace::Scheduled { per_second: 10_000, arrivals: Arrivals::Constant };
    (run.offered, run.produced_records, run.consumed_records) = (60_000, 60_000, 60_000);
    // A second of warm-up, six of the window, half a one after it; a record takes 1,100 bytes.
    (run.held_records, run.audit.delivered) = (75_000, 75_000);
    run.stored_bytes = 75_000 * 1_100;
    for usage in run.processes.iter_mut().filter(|usage| usage.role == "proxy") {
        usage.cpu_ns = 1_000_000_000 * u64::from(topics);
    }
    run
}

/// Two loads that are the same, one over ten topics, and a sweep of producers.
fn totals_survey() -> RunResult {
    let mut result = sample::result();
    let cells = vec![
        cell("one", None, &[("topics", "1"), ("producers", "1")]),
        cell("one, producers 2", Some("one"), &[("producers", "2")]),
        cell("one, producers 4", Some("one"), &[("producers", "4")]),
        cell("ten", None, &[("topics", "10")]),
        cell("one again", None, &[("topics", "1")]),
    ];
    let published = PublishedTotal {
        load: "ten".into(),
        at: "a table".into(),
        records_per_second: 100_000.0,
        end_to_end_mean_ms: 46.0,
        end_to_end_p99_ms: 91.0,
        proxy_cpu: Some(5.0),
    };
    result.runs = Vec::new();
    for pair in 0..4 {
        for arm in ["direct", "proxy"] {
            result.runs.push(over_topics("one", arm, pair, 1, 6));
            for (case, producers) in [("one, producers 2", 2), ("one, producers 4", 4)] {
                let mut run = over_topics(case, arm, pair, 1, 6);
                run.workload.producers = producers;
                run.produced_records *= u64::from(producers);
                result.runs.push(run);
            }
            result.runs.push(over_topics("ten", arm, pair, 10, 48));
            result.runs.push(over_topics("one again", arm, pair, 1, 6));
        }
    }
    result.comparisons.clear();
    result.experiment = Experiment::Survey(SurveyRecord {
        question: "Do totals hold?".into(),
        hypothesis: "No.".into(),
        source: None,
        cells,
        pairs: Vec::new(),
        claims: Vec::new(),
        totals: vec![published],
        asks: None,
        remarks: Vec::new(),
        left_out: Vec::new(),
    });
    result
}

#[test]
fn totals_are_given_as_multiplied_and_as_held_and_the_wait_decides() {
    let result = totals_survey();
    let tables = tables(&result, result.survey().unwrap());
    let totals = only(&tables, "Totals as the harness computes them, and audited");
    assert_eq!(totals.len(), 2);
    let counted = ["ten", "proxy", "10,000", "100,000", "10,000", "10.0", "8.53", "85.3", "5.00"];
    assert_eq!((&totals[1][..9], totals[1][9].as_str()), (&counted.map(String::from)[..], "50.0"));
    let waits = only(&tables, "What the wait of fetches says of the totals");
    // 91 records of 1,100 bytes: 9 ms at 10,000 a second, 91 ms at 1,000.
    let whose: Vec<[&str; 2]> = waits.iter().map(|row| [&*row[1], &*row[7]]).collect();
    assert_eq!(whose, [["published", "of all"], ["direct", "of all"], ["proxy", "of all"]]);
    assert_eq!(waits[0][3..5], ["4.55 / 9.09", "45.5 / 90.9"]);
    let page = page_of(&result);
    assert_eq!(
        page.answer[0],
        "By the wait of their own fetches the published totals are too high by 10.0 x (ten)."
    );
    let told = page.details[0].text.join(" ");
    for part in ["the total was 10.0 times too high", "8.53 to 8.53 CPU-ms/MB out of 85.3"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn proxies_stand_beside_their_broker_and_one_coefficient_beside_what_loads_take() {
    let result = totals_survey();
    let tables = tables(&result, result.survey().unwrap());
    let added = only(&tables, "What the proxies add");
    assert_eq!(added[0][..4], ["one", "proxy", "direct", "10,000 -> 10,000 (0 [0, 0])"]);
    let costs = only(&tables, "One coefficient for all loads");
    let shares: Vec<&str> = costs.iter().map(|row| &*row[6]).collect();
    // Ten topics take ten times the processor time of one at the same bytes.
    assert_eq!((shares[0], shares[3]), ("1.00", "0.10"));
}

#[test]
fn a_sweep_has_charts() {
    let result = totals_survey();
    let record = result.survey().unwrap();
    let charts = sweeps::charts(&result, record);
    assert_eq!(charts[0].title, "one: produced records over producers");
    assert_eq!(charts.len(), 4);
    let lines = charts.iter().map(|chart| match &chart.plot {
        crate::page::Plot::Lines { lines, x, .. } => (lines.len(), x.name.as_str()),
        crate::page::Plot::Bars { .. } | crate::page::Plot::Timeline { .. } => (0, ""),
    });
    let lines: Vec<(usize, &str)> = lines.collect();
    assert_eq!(lines[0], (2, "producers of each topic"));
    // One of the two has no proxy.
    assert_eq!(lines.iter().map(|(count, _)| count).sum::<usize>(), 7);
}
