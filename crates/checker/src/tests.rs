//! Histories that contain each anomaly, and sound ones that contain none.

mod model;

use crate::{
    Action, Edge, Error, Found, History, Kind, Operation, Outcome, Relation, Report, Seen, Step,
    check,
};

/// A history under construction: each operation takes one µs after the one before.
#[derive(Default)]
struct Story {
    history: History,
    now_us: u64,
}

impl Story {
    /// An operation of a client outside of transactions.
    fn alone(self, client: u32, action: Action) -> Self {
        self.add(client, false, Outcome::Committed, vec![action])
    }

    /// A transaction; a commit is asked for after the last step.
    fn transaction(self, client: u32, outcome: Outcome, actions: Vec<Action>) -> Self {
        self.add(client, true, outcome, actions)
    }

    fn add(mut self, client: u32, commits: bool, outcome: Outcome, actions: Vec<Action>) -> Self {
        let mut steps = Vec::new();
        for action in actions {
            steps.push(Step { from_us: self.now_us, to_us: self.now_us + 1, action });
            self.now_us += 2;
        }
        let commit_us = commits.then_some(self.now_us);
        self.now_us += 1;
        self.history.operations.push(Operation { client, commit_us, outcome, steps });
        self
    }

    /// The last client, which polls all of partition 0.
    fn whole(self, client: u32, records: &[(i64, u64)]) -> Self {
        self.alone(client, poll(records)).alone(client, Action::End { partition: 0 })
    }

    fn report(&self) -> Report {
        check(&self.history).expect("values are unique")
    }

    /// The kinds that are found, each with its number of anomalies.
    fn counts(&self) -> Vec<(Kind, u64)> {
        self.report().found().map(|(kind, found)| (kind, found.count)).collect()
    }
}

/// A send to partition 0.
fn send(value: u64, offset: i64) -> Action {
    send_to(0, value, offset)
}

fn send_to(partition: u32, value: u64, offset: i64) -> Action {
    Action::Send { partition, value, offset: Some(offset) }
}

/// A send to partition 0 whose offset the client did not learn.
fn unplaced(value: u64) -> Action {
    Action::Send { partition: 0, value, offset: None }
}

/// A poll of partition 0: offsets and values.
fn poll(records: &[(i64, u64)]) -> Action {
    poll_of(0, records)
}

fn poll_of(partition: u32, records: &[(i64, u64)]) -> Action {
    let records = records.iter().map(|&(offset, value)| Seen { offset, value }).collect();
    Action::Poll { partition, records }
}

fn only(report: &Report, kind: Kind) -> Found {
    let (_, found) = report.found().find(|(it, _)| *it == kind).expect("it is found");
    found.clone()
}

#[test]
fn a_sound_history_has_no_anomaly() {
    let story = Story::default()
        .alone(0, send(10, 0))
        .transaction(1, Outcome::Aborted, vec![send(11, 1)])
        .transaction(1, Outcome::Committed, vec![send(12, 3), poll(&[(0, 10)])])
        .add(0, false, Outcome::Unknown, vec![unplaced(13)])
        .whole(2, &[(0, 10), (3, 12)]);
    assert_eq!(story.counts(), []);
}

#[test]
fn a_missing_record_before_a_polled_one_is_lost() {
    let story = Story::default()
        .alone(0, send(10, 0))
        .alone(0, send(11, 1))
        .alone(0, send(12, 2))
        .whole(1, &[(2, 12)]);
    let lost = only(&story.report(), Kind::LostWrite);
    assert_eq!(story.counts(), [(Kind::LostWrite, 2)]);
    assert_eq!((&lost.examples[0].offsets, lost.examples[0].value), (&vec![0, 2], Some(10)));
    assert_eq!(lost.examples[0].operations, [0, 3]);
}

/// Another record has taken the offset.
#[test]
fn a_replaced_record_is_lost() {
    let story = Story::default().alone(0, send(10, 0)).alone(0, send(11, 0)).whole(1, &[(0, 11)]);
    assert_eq!(story.counts(), [(Kind::LostWrite, 1), (Kind::InconsistentOffset, 1)]);
}

#[test]
fn a_missing_record_at_the_end_is_unseen() {
    let story = Story::default().alone(0, send(10, 0)).alone(0, send(11, 1)).whole(1, &[(0, 10)]);
    assert_eq!(story.counts(), [(Kind::Unseen, 1)]);
}

#[test]
fn a_missing_record_without_a_known_offset_is_unseen() {
    let story = Story::default()
        .alone(0, unplaced(10))
        .alone(0, unplaced(11))
        .alone(0, send(12, 2))
        .whole(1, &[(0, 10), (2, 12)]);
    let unseen = only(&story.report(), Kind::Unseen);
    assert_eq!(story.counts(), [(Kind::Unseen, 1)]);
    assert_eq!((unseen.examples[0].value, &unseen.examples[0].operations), (Some(11), &vec![1]));
}

/// The last client failed, so others may have passed by what no client polled.
#[test]
fn no_record_is_missing_from_a_partition_that_no_client_polled_as_a_whole() {
    let sent = Story::default()
        .alone(0, send(10, 0))
        .alone(0, send(11, 1))
        .alone(0, unplaced(12))
        .alone(0, send(13, 3));
    let story = sent.alone(1, poll(&[(1, 11)])).alone(1, Action::End { partition: 1 });
    assert_eq!(story.counts(), []);
}

#[test]
fn a_record_with_an_unknown_outcome_may_be_missing() {
    let story = Story::default()
        .transaction(0, Outcome::Unknown, vec![send(10, 0)])
        .alone(0, send(11, 2))
        .whole(1, &[(2, 11)]);
    assert_eq!(story.counts(), []);
}

#[test]
fn a_transaction_with_an_unknown_outcome_is_seen_whole_or_not_at_all() {
    let story = Story::default()
        .transaction(0, Outcome::Unknown, vec![send(10, 0), send(11, 1)])
        .whole(1, &[(1, 11)]);
    assert_eq!(story.counts(), [(Kind::LostWrite, 1)]);
}

#[test]
fn a_value_at_two_offsets_is_a_duplicate() {
    let story = Story::default().alone(0, send(10, 0)).alone(1, poll(&[(0, 10), (1, 10)]));
    let duplicate = only(&story.report(), Kind::Duplicate);
    assert_eq!(story.counts(), [(Kind::Duplicate, 1)]);
    assert_eq!(duplicate.examples[0].offsets, [0, 1]);
}

#[test]
fn an_offset_with_two_values_is_inconsistent() {
    let sent = Story::default().alone(0, send(10, 0)).alone(0, send(11, 1));
    let story = sent.alone(1, poll(&[(0, 10), (1, 11)])).alone(2, poll(&[(0, 11)]));
    assert_eq!(story.counts(), [(Kind::Duplicate, 1), (Kind::InconsistentOffset, 1)]);
}

#[test]
fn a_polled_record_of_an_aborted_transaction_is_an_aborted_read() {
    let story = Story::default()
        .transaction(0, Outcome::Aborted, vec![send(10, 0)])
        .alone(1, poll(&[(0, 10)]));
    let aborted = only(&story.report(), Kind::AbortedRead);
    assert_eq!(story.counts(), [(Kind::AbortedRead, 1)]);
    assert_eq!(aborted.examples[0].operations, [0, 1]);
}

#[test]
fn a_record_polled_before_its_commit_is_a_precommitted_read() {
    let mut story = Story::default()
        .transaction(0, Outcome::Committed, vec![send(10, 0)])
        .alone(1, poll(&[(0, 10)]));
    assert_eq!(story.counts(), []);
    story.history.operations[0].commit_us = Some(100);
    assert_eq!(story.counts(), [(Kind::PrecommittedRead, 1)]);
}

#[test]
fn a_value_from_elsewhere_is_an_unwritten_read() {
    let story = Story::default()
        .alone(0, send_to(1, 10, 0))
        .alone(1, poll_of(1, &[(0, 10)]))
        .alone(2, poll(&[(0, 10)]))
        .alone(2, poll(&[(1, 99)]));
    assert_eq!(story.report().count(Kind::UnwrittenRead), 2);
}

#[test]
fn polls_may_skip_nothing_but_what_is_invisible() {
    let sent = || {
        Story::default()
            .alone(0, send(10, 0))
            .transaction(0, Outcome::Aborted, vec![send(11, 1)])
            .alone(0, send(12, 3))
            .alone(0, send(13, 4))
            .alone(1, poll(&[(0, 10), (3, 12), (4, 13)]))
    };
    assert_eq!(sent().counts(), []);
    let skipped = sent().alone(2, poll(&[(0, 10)])).alone(2, poll(&[(4, 13)]));
    let found = only(&skipped.report(), Kind::PollSkip);
    assert_eq!(skipped.counts(), [(Kind::PollSkip, 1)]);
    assert_eq!(found.examples[0].offsets, [0, 3, 4]);
    let moved = sent()
        .alone(2, poll(&[(0, 10)]))
        .alone(2, Action::Position { partition: 0 })
        .alone(2, poll(&[(4, 13)]));
    assert_eq!(moved.counts(), []);
}

#[test]
fn polls_of_a_client_do_not_go_back() {
    let sent = || Story::default().alone(0, send(10, 0)).alone(0, send(11, 1));
    let back = sent().alone(1, poll(&[(0, 10), (1, 11)])).alone(1, poll(&[(0, 10)]));
    assert_eq!(back.counts(), [(Kind::NonmonotonicPoll, 1)]);
    let other = sent().alone(1, poll(&[(0, 10), (1, 11)])).alone(2, poll(&[(0, 10)]));
    assert_eq!(other.counts(), []);
}

#[test]
fn sends_of_a_client_ascend_unless_they_overlap() {
    let mut story = Story::default()
        .alone(0, send(10, 1))
        .alone(0, send(11, 0))
        .alone(1, poll(&[(0, 11), (1, 10)]));
    assert_eq!(story.counts(), [(Kind::NonmonotonicSend, 1)]);
    // The second began before the first had its result.
    story.history.operations[0].steps[0].to_us = 1_000;
    assert_eq!(story.counts(), []);
}

#[test]
fn a_send_follows_all_that_had_ended_not_only_the_one_before() {
    let mut story = Story::default()
        .alone(0, send(10, 5))
        .alone(0, send(11, 6))
        .alone(0, send(12, 4))
        .alone(1, poll(&[(4, 12), (5, 10), (6, 11)]));
    // The second is under way when the third begins, the first is not.
    story.history.operations[1].steps[0].to_us = 1_000;
    assert_eq!(only(&story.report(), Kind::NonmonotonicSend).examples[0].operations, [0, 2]);
}

#[test]
fn transactions_that_precede_each_other_by_writes_are_a_write_cycle() {
    let story = Story::default()
        .transaction(0, Outcome::Committed, vec![send_to(0, 10, 0), send_to(1, 11, 1)])
        .transaction(1, Outcome::Committed, vec![send_to(0, 20, 1), send_to(1, 21, 0)])
        .alone(2, poll_of(0, &[(0, 10), (1, 20)]))
        .alone(2, poll_of(1, &[(0, 21), (1, 11)]));
    let cycle = only(&story.report(), Kind::WriteCycle);
    assert_eq!(story.counts(), [(Kind::WriteCycle, 1)]);
    assert_eq!(story.report().violations(), 0);
    let edge =
        |from, to, partition| Edge { from, to, relation: Relation::Wrote, partition, offset: 1 };
    assert_eq!(cycle.examples[0].edges, [edge(0, 1, 0), edge(1, 0, 1)]);
}

#[test]
fn transactions_that_polled_from_each_other_are_a_read_cycle() {
    let story = Story::default()
        .transaction(0, Outcome::Committed, vec![send_to(0, 10, 0), poll_of(1, &[(0, 20)])])
        .transaction(1, Outcome::Committed, vec![send_to(1, 20, 0), poll_of(0, &[(0, 10)])]);
    let report = story.report();
    assert_eq!(report.count(Kind::ReadCycle), 1);
    assert_eq!(report.count(Kind::MixedCycle), 0);
    assert!(report.violations() > 0);
}

#[test]
fn a_read_and_a_write_make_a_mixed_cycle() {
    // The second precedes the first in partition 0, and polled its record of partition 1.
    let mut story = Story::default()
        .transaction(0, Outcome::Committed, vec![send_to(1, 11, 0), send_to(0, 10, 1)])
        .transaction(1, Outcome::Committed, vec![send_to(0, 20, 0), poll_of(1, &[(0, 11)])])
        .alone(2, poll_of(0, &[(0, 20), (1, 10)]));
    story.history.operations[0].commit_us = Some(0);
    assert_eq!(story.counts(), [(Kind::MixedCycle, 1)]);
}

#[test]
fn a_value_sent_twice_is_refused() {
    let story = Story::default().alone(0, send(10, 0)).alone(0, send(10, 1));
    assert!(matches!(check(&story.history), Err(Error::SentTwice(10))));
}

#[test]
fn a_file_holds_the_whole_history() {
    let history = model::run(7).history;
    let mut file = Vec::new();
    history.write(&mut file).expect("memory takes it");
    assert_eq!(History::read(file.as_slice()).expect("its own"), history);
    file.extend_from_slice(b"{\"client\": 1}\n");
    let line = history.operations.len() + 1;
    let error = History::read(file.as_slice()).expect_err("the last line lacks its steps");
    assert!(matches!(error, Error::Line { line: it, .. } if it == line));
}

#[test]
fn a_model_of_kafka_shows_only_what_kafka_permits() {
    let mut permitted = 0;
    for seed in 0..300 {
        let report = check(&model::run(seed).history).expect("values are unique");
        assert_eq!(report.violations(), 0, "seed {seed}: {report:#?}");
        permitted += report.count(Kind::WriteCycle) + report.count(Kind::MixedCycle);
    }
    assert!(permitted > 0);
}

#[test]
fn a_fault_of_the_model_is_found_in_every_history() {
    for seed in 0..100 {
        let mut run = model::run(seed);
        if run.lose_a_record() {
            let report = check(&run.history).expect("values are unique");
            assert!(report.count(Kind::LostWrite) > 0, "seed {seed}");
        }
        let mut run = model::run(seed);
        if run.show_an_aborted_record() {
            let report = check(&run.history).expect("values are unique");
            assert!(report.count(Kind::AbortedRead) > 0, "seed {seed}");
        }
    }
}
