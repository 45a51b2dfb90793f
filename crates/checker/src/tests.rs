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

/// A member to which partition 0 was assigned, and the committed offset that it read.
fn resume(offset: Option<i64>) -> Action {
    Action::Resume { partition: 0, offset }
}

fn commit(offset: i64) -> Action {
    Action::Commit { partition: 0, offset }
}

/// Three records, and a member that has polled and committed two of them.
fn two_of_three_committed() -> Story {
    let sent = Story::default().alone(0, send(10, 0)).alone(0, send(11, 1)).alone(0, send(12, 2));
    let resumed = sent.alone(1, resume(None));
    resumed.alone(1, poll(&[(0, 10), (1, 11)])).alone(1, commit(2))
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
fn a_group_that_goes_on_where_it_was_has_no_anomaly() {
    let story = two_of_three_committed()
        .alone(2, resume(Some(2)))
        .alone(2, poll(&[(2, 12)]))
        .add(2, false, Outcome::Unknown, vec![commit(3)])
        .alone(3, resume(Some(3)))
        .alone(4, resume(Some(3)));
    assert_eq!(story.counts(), []);
    // The last commit may have had no effect, or take effect late.
    let story = two_of_three_committed()
        .alone(2, resume(Some(2)))
        .alone(2, poll(&[(2, 12)]))
        .add(2, false, Outcome::Unknown, vec![commit(3)])
        .alone(3, resume(Some(2)))
        .alone(3, resume(Some(3)));
    assert_eq!(story.counts(), []);
}

#[test]
fn a_record_that_no_member_polled_before_the_committed_offset_is_a_lost_delivery() {
    let sent = || two_of_three_committed().alone(0, send(13, 3));
    let skipped = sent().alone(2, resume(Some(2))).alone(2, poll(&[(3, 13)])).alone(2, commit(4));
    // What a client outside of the group polled was not delivered to the group.
    let skipped = skipped.whole(3, &[(0, 10), (1, 11), (2, 12), (3, 13)]);
    let lost = only(&skipped.report(), Kind::LostDelivery);
    assert_eq!(skipped.counts(), [(Kind::LostDelivery, 1)]);
    assert_eq!((&lost.examples[0].offsets, lost.examples[0].value), (&vec![2, 4], Some(12)));
    assert_eq!(lost.examples[0].operations, [2, 9]);
    // What is not behind a committed offset may still be delivered.
    let open = sent().whole(3, &[(0, 10), (1, 11), (2, 12), (3, 13)]);
    assert_eq!(open.counts(), []);
}

#[test]
fn a_group_polls_no_record_of_an_aborted_transaction_before_its_committed_offset() {
    let story = Story::default()
        .transaction(0, Outcome::Aborted, vec![send(10, 0)])
        .alone(0, send(11, 2))
        .alone(1, resume(None))
        .alone(1, poll(&[(2, 11)]))
        .alone(1, commit(3));
    assert_eq!(story.counts(), []);
}

#[test]
fn an_offset_older_than_the_last_acknowledged_commit_is_a_lost_commit() {
    let committed = || two_of_three_committed().alone(1, poll(&[(2, 12)])).alone(1, commit(3));
    let older = committed().alone(2, resume(Some(2)));
    let lost = only(&older.report(), Kind::LostCommit);
    assert_eq!(older.counts(), [(Kind::LostCommit, 1)]);
    assert_eq!(
        (&lost.examples[0].offsets, &lost.examples[0].operations),
        (&vec![3, 2], &vec![7, 8])
    );
    assert_eq!(committed().alone(2, resume(None)).counts(), [(Kind::LostCommit, 1)]);
    // The member read it while the last commit was under way.
    let mut story = older;
    story.history.operations[7].steps[0].to_us = 1_000;
    assert_eq!(story.counts(), []);
}

#[test]
fn an_offset_that_no_member_committed_is_a_lost_commit() {
    let story = two_of_three_committed().alone(2, resume(Some(1)));
    assert_eq!(story.counts(), [(Kind::LostCommit, 1)]);
    let later = two_of_three_committed().alone(2, resume(Some(3))).add(
        1,
        false,
        Outcome::Unknown,
        vec![commit(3)],
    );
    let kinds: Vec<Kind> = later.report().found().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [Kind::LostDelivery, Kind::LostCommit]);
}

#[test]
fn a_commit_of_a_member_that_lost_the_partition_is_a_non_monotonic_commit() {
    let taken_over = || {
        let story = two_of_three_committed().alone(2, resume(Some(2)));
        story.alone(2, poll(&[(2, 12)])).alone(2, commit(3))
    };
    let back = taken_over().alone(1, commit(2));
    let found = only(&back.report(), Kind::NonmonotonicCommit);
    assert_eq!(back.counts(), [(Kind::NonmonotonicCommit, 1)]);
    assert_eq!(
        (&found.examples[0].offsets, &found.examples[0].operations),
        (&vec![3, 2], &vec![8, 9])
    );
    // The cluster refused it, or the client never learned what became of it.
    for outcome in [Outcome::Aborted, Outcome::Unknown] {
        let story = taken_over().add(1, false, outcome, vec![commit(2)]);
        assert_eq!(story.counts(), [], "{outcome:?}");
    }
}

/// A member to which the partition was assigned again goes on from what it read: if that was too
/// old, the commit before is lost, and it is right to commit less.
#[test]
fn a_commit_after_an_assignment_may_go_back() {
    let story = two_of_three_committed().alone(2, resume(Some(0)));
    let story = story.alone(2, poll(&[(0, 10)])).alone(2, commit(1));
    assert_eq!(story.counts(), [(Kind::LostCommit, 1)]);
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
