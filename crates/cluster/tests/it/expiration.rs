//! Producers that logs forget, against PostgreSQL and the sequencer in memory.

use std::time::Duration;

use moldau_cluster::{
    BatchEntry, Commit, ExpiredProducers, Find, LogId, Marker, Memory, ObjectKey, Outcome, Part,
    Postgres, ProducerBatch, ProducerPlace, Refusal, Sequencer, Topic,
};
use uuid::Uuid;

use crate::postgres_server;

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_log_forgets_a_producer_that_was_silent_for_long() {
    let memory = Memory::default();
    silent(&memory, || memory.pass(2 * HOUR)).await;
    let server = postgres_server::shared();
    let settings = server.database().await;
    let pass = || {
        let earlier = "update moldau.producers set appended_at = appended_at - interval '2 hours'";
        assert!(server.run_statement(&settings, earlier));
    };
    silent(&Postgres::connect(&settings).await.unwrap(), pass).await;
}

/// The timestamps of records are those of 1970, and do not count.
async fn silent(sequencer: &impl Sequencer, two_hours_pass: impl Fn()) {
    let logs = logs(sequencer).await;
    for producer in 1..=3 {
        for log in logs {
            assert_eq!(commit(sequencer, plain(log, producer, 0)).await, appended(producer - 1));
        }
    }
    assert_eq!(expire(sequencer, None, 9).await, looked(Some((logs[1], 3)), 0));
    two_hours_pass();
    assert_eq!(commit(sequencer, plain(logs[0], 2, 1)).await, appended(3));
    assert_eq!(commit(sequencer, plain(logs[0], 3, 0)).await, duplicate(2));
    let mut last = Some((logs[0], 1));
    assert_eq!(expire(sequencer, None, 1).await, looked(last, 1), "as many as it may look at");
    for (wanted, forgotten) in [((logs[0], 3), 1), ((logs[1], 2), 2), ((logs[1], 3), 1)] {
        let after = last.replace(wanted);
        assert_eq!(expire(sequencer, after, 2).await, looked(last, forgotten));
    }
    assert_eq!(expire(sequencer, last, 2).await, looked(None, 0));
    assert_eq!(
        (known(sequencer, logs[0]).await, known(sequencer, logs[1]).await),
        (vec![2], vec![])
    );
    let gap = Outcome::Refused(Refusal::OutOfOrderSequenceNumber);
    assert_eq!(commit(sequencer, plain(logs[0], 2, 7)).await, gap, "it is remembered");
    assert_eq!(commit(sequencer, plain(logs[0], 1, 7)).await, appended(4), "it starts anew");
    assert_eq!(commit(sequencer, plain(logs[0], 1, 7)).await, duplicate(4));
}

#[tokio::test]
async fn a_producer_is_not_forgotten_where_it_has_a_transaction_open() {
    open(&Memory::default()).await;
    let server = postgres_server::shared();
    open(&Postgres::connect(&server.database().await).await.unwrap()).await;
}

async fn open(sequencer: &impl Sequencer) {
    let [log, other] = logs(sequencer).await;
    for log in [log, other] {
        assert_eq!(commit(sequencer, inside(log, 1, 0)).await, appended(0));
    }
    assert_eq!(commit(sequencer, marker(log, 1, 0)).await, appended(1));
    assert_eq!(expire_all(sequencer).await, 1);
    assert_eq!((known(sequencer, log).await, known(sequencer, other).await), (vec![], vec![1]));
    assert_eq!(commit(sequencer, marker(other, 1, 0)).await, appended(1));
    assert_eq!(expire_all(sequencer).await, 1);
}

/// A controller that was paused for longer than producers are remembered may write markers that
/// others have written meanwhile.
#[tokio::test]
async fn a_late_marker_ends_no_transaction_in_a_log_that_forgot_the_producer() {
    late(&Memory::default()).await;
    let server = postgres_server::shared();
    late(&Postgres::connect(&server.database().await).await.unwrap()).await;
}

async fn late(sequencer: &impl Sequencer) {
    let [log, _] = logs(sequencer).await;
    let last_stable = async || {
        let find = Find { log, offset: 0, extents_max: 0 };
        sequencer.find(&[find]).await.unwrap()[0].as_ref().unwrap().last_stable_offset
    };
    for (round, sequence) in (0..3).zip(4..) {
        let start = 2 * i64::from(round);
        assert_eq!(commit(sequencer, inside(log, 1, sequence)).await, appended(start));
        for decision in 0..i64::from(round) {
            assert_eq!(commit(sequencer, marker(log, 1, decision)).await, duplicate(start));
        }
        assert_eq!(last_stable().await, start, "it is open");
        assert_eq!(commit(sequencer, marker(log, 1, round.into())).await, appended(start + 1));
        assert_eq!(last_stable().await, start + 2);
        assert_eq!(expire_all(sequencer).await, 1);
    }
    // A marker that comes where nothing is known of the producer ends nothing, and the log takes
    // no earlier one for the end of what follows.
    assert_eq!(commit(sequencer, marker(log, 1, 0)).await, appended(6));
    assert_eq!(commit(sequencer, inside(log, 1, 0)).await, appended(7));
    assert_eq!(commit(sequencer, marker(log, 1, 2)).await, duplicate(6));
    assert_eq!(last_stable().await, 7);
    assert_eq!(commit(sequencer, marker(log, 1, 3)).await, appended(8));
}

async fn expire(
    sequencer: &impl Sequencer,
    after: Option<(LogId, i64)>,
    producers_max: i32,
) -> ExpiredProducers {
    let after = after.map(|(log, producer_id)| ProducerPlace { log, producer_id });
    sequencer.expire_producers(after, HOUR, producers_max).await.unwrap()
}

/// How many were forgotten, as if all were silent for long.
async fn expire_all(sequencer: &impl Sequencer) -> i64 {
    sequencer.expire_producers(None, Duration::ZERO, 9).await.unwrap().forgotten
}

fn looked(last: Option<(LogId, i64)>, forgotten: i64) -> ExpiredProducers {
    let last = last.map(|(log, producer_id)| ProducerPlace { log, producer_id });
    ExpiredProducers { last, forgotten }
}

async fn known(sequencer: &impl Sequencer, log: LogId) -> Vec<i64> {
    let known = sequencer.producers(log).await.unwrap();
    known.into_iter().map(|producer| producer.id).collect()
}

/// What became of a batch.
async fn commit(sequencer: &impl Sequencer, batch: BatchEntry) -> Outcome {
    let commit = Commit { key: ObjectKey::fresh(), batches: vec![batch] };
    sequencer.commit(&commit).await.unwrap().remove(0)
}

async fn logs(sequencer: &impl Sequencer) -> [LogId; 2] {
    let topic = Topic { id: Uuid::new_v4(), name: "topic".into(), partitions: 2 };
    sequencer.create_topic(&topic).await.unwrap();
    [0, 1].map(|partition| LogId { topic: topic.id, partition })
}

fn plain(log: LogId, id: i64, sequence: i32) -> BatchEntry {
    entry(log, id, sequence, Part::Outside)
}

fn inside(log: LogId, id: i64, sequence: i32) -> BatchEntry {
    entry(log, id, sequence, Part::Inside)
}

fn marker(log: LogId, id: i64, decision: i64) -> BatchEntry {
    entry(log, id, -1, Part::Marker(Marker { commits: true, decision }))
}

fn entry(log: LogId, id: i64, sequence: i32, part: Part) -> BatchEntry {
    BatchEntry {
        log,
        leader_epoch: -1,
        position: 0,
        size: 100,
        offsets_count: 1,
        max_timestamp: 0,
        producer: Some(ProducerBatch {
            id,
            epoch: 0,
            first_sequence: sequence,
            last_sequence: sequence,
        }),
        part,
    }
}

fn appended(base_offset: i64) -> Outcome {
    Outcome::Appended { base_offset, start_offset: 0 }
}

fn duplicate(base_offset: i64) -> Outcome {
    Outcome::Duplicate { base_offset, start_offset: 0 }
}
