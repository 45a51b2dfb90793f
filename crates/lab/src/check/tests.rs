//! Planted histories: what the record keeps of each kind, and how that is drawn.

use moldau_checker::{Kind, Seen, Step};

use super::*;
use crate::experiments::Conditions;
use crate::experiments::check::{of_history, page};
use crate::page::{self as pages, Extent, Plot, Standing};
use crate::result::{Experiment, RunResult};

fn send(partition: u32, value: u64, offset: i64) -> Action {
    Action::Send { partition, value, offset: Some(offset) }
}

fn poll(partition: u32, records: &[(i64, u64)]) -> Action {
    let records = records.iter().map(|&(offset, value)| Seen { offset, value }).collect();
    Action::Poll { partition, records }
}

fn resume(offset: Option<i64>) -> Action {
    Action::Resume { partition: 0, offset }
}

fn commit(offset: i64) -> Action {
    Action::Commit { partition: 0, offset }
}

/// Operations one after the other; of each its client, outcome, whether it is a transaction, steps.
fn history(operations: &[(u32, Outcome, bool, Vec<Action>)]) -> History {
    let mut now_us = 0;
    let mut made = History::default();
    for (client, outcome, is_transaction, actions) in operations {
        let steps = actions.iter().map(|action| {
            now_us += 2;
            Step { from_us: now_us, to_us: now_us + 1, action: action.clone() }
        });
        let steps = steps.collect();
        now_us += 2;
        let commit_us = is_transaction.then_some(now_us);
        made.operations.push(Operation { client: *client, commit_us, outcome: *outcome, steps });
    }
    made
}

/// Operations with this anomaly of the group.
fn of_group(kind: Kind) -> Vec<(u32, Outcome, bool, Vec<Action>)> {
    let alone = |client, action| (client, Outcome::Committed, false, vec![action]);
    let polled = |offset, value| {
        let member = [resume(None), poll(0, &[(offset, value)])].map(|action| alone(1, action));
        let sent = [send(0, 10, 0), send(0, 11, 1)].map(|action| alone(0, action));
        sent.into_iter().chain(member)
    };
    let all = alone(3, poll(0, &[(0, 10), (1, 11)]));
    match kind {
        Kind::LostDelivery => polled(1, 11).chain([alone(1, commit(2)), all]).collect(),
        Kind::LostCommit => {
            polled(0, 10).chain([alone(1, commit(1)), alone(2, resume(Some(0)))]).collect()
        }
        _ => polled(0, 10).chain([commit(1), commit(0)].map(|it| alone(1, it))).collect(),
    }
}

/// A history that has this anomaly first of all.
fn with(kind: Kind) -> History {
    use Outcome::{Aborted, Committed};
    let alone = |client, action| (client, Committed, false, vec![action]);
    let whole = |records: &[(i64, u64)]| {
        (9, Committed, false, vec![poll(0, records), Action::End { partition: 0 }])
    };
    let both = |client, actions| (client, Committed, true, actions);
    let mut made = history(&match kind {
        Kind::LostWrite | Kind::Unseen => {
            let polled = if kind == Kind::LostWrite { (1, 11) } else { (0, 10) };
            vec![alone(0, send(0, 10, 0)), alone(0, send(0, 11, 1)), whole(&[polled])]
        }
        Kind::Duplicate => {
            vec![alone(0, send(0, 10, 0)), alone(1, poll(0, &[(0, 10), (1, 10)]))]
        }
        Kind::InconsistentOffset => {
            vec![alone(0, send(0, 10, 0)), alone(0, send(0, 11, 0)), alone(1, poll(0, &[(0, 10)]))]
        }
        Kind::AbortedRead => {
            vec![(0, Aborted, false, vec![send(0, 10, 0)]), alone(1, poll(0, &[(0, 10)]))]
        }
        Kind::PrecommittedRead => {
            vec![both(0, vec![send(0, 10, 0)]), alone(1, poll(0, &[(0, 10)]))]
        }
        Kind::UnwrittenRead => {
            vec![alone(0, send(0, 10, 1)), alone(1, poll(0, &[(0, 9), (1, 10)]))]
        }
        Kind::PollSkip => vec![
            alone(0, send(0, 10, 0)),
            alone(0, send(0, 11, 1)),
            alone(0, send(0, 12, 2)),
            alone(1, poll(0, &[(0, 10), (1, 11), (2, 12)])),
            alone(2, poll(0, &[(0, 10)])),
            alone(2, poll(0, &[(2, 12)])),
        ],
        Kind::NonmonotonicPoll => vec![
            alone(0, send(0, 10, 0)),
            alone(1, poll(0, &[(0, 10)])),
            alone(1, poll(0, &[(0, 10)])),
        ],
        Kind::NonmonotonicSend => vec![
            alone(0, send(0, 10, 1)),
            alone(0, send(0, 11, 0)),
            alone(1, poll(0, &[(0, 11), (1, 10)])),
        ],
        Kind::LostDelivery | Kind::LostCommit | Kind::NonmonotonicCommit => of_group(kind),
        Kind::WriteCycle => vec![
            both(0, vec![send(0, 10, 0), send(1, 11, 1)]),
            both(1, vec![send(0, 20, 1), send(1, 21, 0)]),
            alone(2, poll(0, &[(0, 10), (1, 20)])),
            alone(2, poll(1, &[(0, 21), (1, 11)])),
        ],
        Kind::MixedCycle => vec![
            both(0, vec![send(1, 11, 0), send(0, 10, 1)]),
            both(1, vec![send(0, 20, 0), poll(1, &[(0, 11)])]),
            alone(2, poll(0, &[(0, 20), (1, 10)])),
        ],
        Kind::ReadCycle => vec![
            both(0, vec![send(0, 10, 0), poll(1, &[(0, 20)])]),
            both(1, vec![send(1, 20, 0), poll(0, &[(0, 10)])]),
        ],
    });
    // All asked at the start, but for the one that must ask late.
    let asked_us = if kind == Kind::PrecommittedRead { 100 } else { 0 };
    for operation in &mut made.operations {
        operation.commit_us = operation.commit_us.map(|_| asked_us);
    }
    made
}

fn checked(history: &History) -> RunResult {
    let file = std::path::Path::new("planted.jsonl");
    of_history(history, file, &Conditions::of_tests()).expect("values are unique")
}

fn record(result: &RunResult) -> &CheckRecord {
    let Experiment::Check(record) = &result.experiment else { panic!() };
    record
}

#[test]
fn each_kind_is_drawn_from_the_result_alone() {
    for kind in Kind::ALL {
        let result = checked(&with(kind));
        let result = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        let page = page(&result, record(&result));
        let is_permitted = kind.permitted().is_some();
        assert_eq!(page.standing == Standing::Holds, is_permitted, "{kind:?}");
        assert_eq!(result.verdict.exit_code(), if is_permitted { 0 } else { 2 }, "{kind:?}");
        let id = kind.name().split(" (").next().unwrap().replace(' ', "-");
        let chart = page.charts.iter().find(|chart| chart.id == id);
        let chart = chart.unwrap_or_else(|| panic!("{kind:?}: {:?}", page.charts));
        let Plot::Timeline { spans, arrows } = &chart.plot else { panic!("{kind:?}") };
        let marked = spans.iter().flat_map(|span| &span.notes).filter(|note| note.is_marked);
        assert!(marked.count() > 0, "{kind:?}: {spans:?}");
        let has_arrows = matches!(
            kind,
            Kind::Duplicate
                | Kind::InconsistentOffset
                | Kind::AbortedRead
                | Kind::PrecommittedRead
                | Kind::PollSkip
                | Kind::WriteCycle
                | Kind::MixedCycle
                | Kind::ReadCycle
        );
        assert_eq!(!arrows.is_empty() || kind == Kind::PollSkip, has_arrows, "{kind:?}");
        let svg = pages::picture(chart);
        assert!(svg.contains("<rect class=\"fill t") && !svg.contains("NaN"), "{kind:?}");
        assert!(pages::html(&page).contains(&chart.title), "{kind:?}");
        assert!(pages::markdown(&page).contains(&format!("](charts/{id}.svg)")), "{kind:?}");
        let text = pages::terminal(&page, "r", 100, Extent::Short);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(kind.name()), "{text}");
    }
}

#[test]
fn a_sound_history_has_the_answer_that_there_is_no_anomaly() {
    let sound = history(&[
        (0, Outcome::Committed, false, vec![send(0, 10, 0)]),
        (1, Outcome::Committed, true, vec![send(0, 11, 1)]),
        (1, Outcome::Aborted, false, vec![send(0, 12, 3)]),
        (2, Outcome::Committed, false, vec![poll(0, &[(0, 10)])]),
        (2, Outcome::Committed, false, vec![poll(0, &[(1, 11)])]),
    ]);
    let mut result = checked(&sound);
    let page_of_file = page(&result, record(&result));
    assert_eq!(page_of_file.answer, ["2 records, 2 transactions of 3 clients: no anomaly."]);
    assert!(page_of_file.table.is_none() && page_of_file.charts.is_empty());
    let Experiment::Check(record) = &mut result.experiment else { panic!() };
    record.source = Source::System("moldau".into());
    record.struck = vec![Struck { fault: Fault::Kill, from_us: 0, to_us: 1 }; 2];
    let record = record.clone();
    let page = page(&result, &record);
    let expected = "2 records, 2 transactions of 3 clients under 2 faults: no anomaly.";
    assert_eq!(page.answer, [expected]);
    assert!(page.links.iter().any(|link| link.path == "history.jsonl"));
    assert!(page.charts.is_empty());
}

#[test]
fn a_fault_that_began_while_another_one_lasted_is_drawn_below_it() {
    let mut result = checked(&with(Kind::NonmonotonicPoll));
    let Experiment::Check(record) = &mut result.experiment else { panic!() };
    let struck = |fault, from_us, to_us| Struck { fault, from_us, to_us };
    record.struck = vec![
        struck(Fault::Store, 5, 11),
        struck(Fault::Kill, 7, 9),
        struck(Fault::Client, 10, 10),
        struck(Fault::Stop, 11, 17),
    ];
    let record = record.clone();
    let page = page(&result, &record);
    let faults = |id: &str, row: &str| -> Vec<String> {
        let chart = page.charts.iter().find(|chart| chart.id == id).unwrap();
        let Plot::Timeline { spans, .. } = &chart.plot else { panic!() };
        let of_row = spans.iter().filter(|span| span.row.starts_with(row));
        of_row.map(|span| span.name.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(faults("overlaps", "overlap"), ["store failed", "broker killed"]);
    let all = ["store failed", "broker killed", "client ended", "broker stopped"];
    assert_eq!(faults("non-monotonic-poll", "faults"), all);
}

#[test]
fn only_what_does_not_undo_a_fault_may_begin_during_it() {
    let may_begin = |inner: Fault, outer| inner.may_begin_during(outer);
    assert!(may_begin(Fault::Kill, Fault::Store) && may_begin(Fault::Failover, Fault::Stop));
    assert!(!may_begin(Fault::Store, Fault::StoreCut) && !may_begin(Fault::Stop, Fault::Kill));
    assert!(!Fault::ALL.iter().any(|fault| may_begin(*fault, *fault)));
}

#[test]
fn an_empty_history_proves_nothing() {
    let result = checked(&History::default());
    assert_eq!(result.verdict.exit_code(), 3);
    assert_eq!(page(&result, record(&result)).standing, Standing::Invalid);
}

#[test]
fn an_example_keeps_what_shows_the_anomaly_of_a_large_poll() {
    let polled: Vec<(i64, u64)> =
        (0..5_000_i64).map(|offset| (offset, 10_000 + offset.cast_unsigned())).collect();
    let mut operations: Vec<_> = polled
        .iter()
        .filter(|(offset, _)| *offset != 3_000)
        .map(|&(offset, value)| (0, Outcome::Committed, false, vec![send(0, value, offset)]))
        .collect();
    operations.push((0, Outcome::Aborted, false, vec![send(0, 13_000, 3_000)]));
    operations.push((1, Outcome::Committed, false, vec![poll(0, &polled)]));
    let result = checked(&history(&operations));
    let example = &record(&result).examples[0];
    assert_eq!(example.anomaly.kind, Kind::AbortedRead);
    let reader = example.operations.last().unwrap();
    assert_eq!(reader.left_out, 4_996);
    let Action::Poll { records, .. } = &reader.operation.steps[0].action else { panic!() };
    assert!(records.contains(&Seen { offset: 3_000, value: 13_000 }) && records.len() == 4);
}
