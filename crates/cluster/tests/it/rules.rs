//! The rules of a sequencer, one by one, against PostgreSQL and the one in memory.

use std::time::Duration;

use moldau_cluster::{
    BatchEntry, Commit, Error, Find, Found, Frames, LogId, Memory, ObjectKey, Outcome, Part,
    Postgres, ProducerBatch, Refusal, Retention, Sequencer, Swap, Topic,
};
use uuid::Uuid;

use crate::postgres_server;

/// Runs the body against both sequencers.
macro_rules! both {
    ($name:ident, $body:expr) => {
        #[tokio::test]
        async fn $name() {
            $body(Memory::default()).await;
            let server = postgres_server::shared();
            $body(Postgres::connect(&server.database().await).await.unwrap()).await;
        }
    };
}

both!(a_commit_asked_again_gets_the_first_answer, again);
async fn again(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 2).await;
    let commit = object([batch(log, 0, 10), batch(log, 100, 5)]);
    let first = sequencer.commit(&commit).await.unwrap();
    assert_eq!(first, [appended(0), appended(10)]);
    assert_eq!(sequencer.commit(&commit).await.unwrap(), first);
    let found = find(&sequencer, log, 12).await;
    assert_eq!((found.high_watermark, found.extents.len()), (15, 1), "neighbours are one extent");
    assert_eq!((found.extents[0].base_offset, found.extents[0].size), (0, 200));
}

both!(a_condemned_object_cannot_be_committed, condemned);
async fn condemned(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    let (late, early) = (object([batch(log, 0, 1)]), object([batch(log, 0, 1)]));
    sequencer.commit(&early).await.unwrap();
    assert_eq!(sequencer.condemn(&[late.key, early.key]).await.unwrap(), [late.key]);
    assert_eq!(sequencer.commit(&late).await, Err(Error::ObjectDead(late.key)));
    sequencer.forget(&[late.key, early.key]).await.unwrap();
    assert_eq!(sequencer.dead(1).await.unwrap(), []);
    assert_eq!(sequencer.condemn(&[late.key, early.key]).await.unwrap(), [late.key]);
    assert_eq!(sequencer.commit(&late).await, Err(Error::ObjectDead(late.key)));
    assert_eq!(find(&sequencer, log, 0).await.high_watermark, 1);
}

both!(a_key_that_has_expired_is_removed_and_cannot_be_committed, expired);
async fn expired(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    let generation = sequencer.generation().await.unwrap();
    let made =
        || Commit { key: ObjectKey::of_generation(generation), batches: vec![batch(log, 0, 1)] };
    let (committed, condemned, late) = (made(), made(), made());
    let first = sequencer.commit(&committed).await.unwrap();
    sequencer.condemn(&[condemned.key]).await.unwrap();
    sequencer.forget(&[condemned.key]).await.unwrap();
    sequencer.begin_generation(Duration::ZERO).await.unwrap();
    assert!(!sequencer.remove_keys(9).await.unwrap(), "the key has not expired");
    assert_eq!(sequencer.commit(&made()).await.unwrap(), [appended(1)]);
    sequencer.begin_generation(Duration::ZERO).await.unwrap();
    assert!(sequencer.remove_keys(9).await.unwrap());
    assert!(!sequencer.remove_keys(9).await.unwrap());
    for commit in [&condemned, &late] {
        assert_eq!(sequencer.commit(commit).await, Err(Error::KeyExpired(commit.key)));
    }
    let sources = vec![(log, find(&sequencer, log, 0).await.extents[0])];
    let swap = Swap { key: condemned.key, targets: sources.clone(), sources };
    assert_eq!(sequencer.swap(&swap).await, Err(Error::KeyExpired(swap.key)));
    assert_eq!(sequencer.commit(&committed).await.unwrap(), first, "its answer is kept");
    // An object that is back after its deletion can be deleted again.
    assert_eq!(sequencer.condemn(&[condemned.key]).await.unwrap(), [condemned.key]);
}

both!(sequences_are_checked_as_in_kafka, sequences);
async fn sequences(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    let sent = |epoch, first, count| BatchEntry {
        producer: Some(ProducerBatch {
            id: 7,
            epoch,
            first_sequence: first,
            last_sequence: first.wrapping_add(count - 1) & i32::MAX,
        }),
        ..batch(log, 0, count)
    };
    let refused = Outcome::Refused;
    let wraps = i32::MAX - 1;
    for (batch, expected) in [
        (sent(1, 5, 1), appended(0)),
        (sent(1, 7, 1), refused(Refusal::OutOfOrderSequenceNumber)),
        (sent(1, 6, 2), appended(1)),
        (sent(1, 6, 2), duplicate(1)),
        (sent(1, 5, 1), duplicate(0)),
        (sent(0, 8, 1), refused(Refusal::InvalidProducerEpoch)),
        (sent(2, 8, 1), refused(Refusal::OutOfOrderSequenceNumber)),
        (sent(2, 0, 1), appended(3)),
        (sent(2, 1, wraps), appended(4)),
        (sent(2, i32::MAX, 2), appended(4 + i64::from(wraps))),
        (sent(2, 1, 1), appended(6 + i64::from(wraps))),
        (sent(2, 2, 1), appended(7 + i64::from(wraps))),
        (sent(2, 3, 1), appended(8 + i64::from(wraps))),
        // The sixth before the next is forgotten, the fifth is not.
        (sent(2, 0, 1), refused(Refusal::OutOfOrderSequenceNumber)),
        (sent(2, 1, wraps), duplicate(4)),
        (sent(2, 3, 1), duplicate(8 + i64::from(wraps))),
    ] {
        assert_eq!(sequencer.commit(&object([batch])).await.unwrap(), [expected], "{batch:?}");
    }
    let twice = object([sent(2, 4, 1), sent(2, 4, 1), sent(2, 6, 1), sent(2, 5, 1)]);
    let next = 9 + i64::from(wraps);
    let expected = [
        appended(next),
        duplicate(next),
        refused(Refusal::OutOfOrderSequenceNumber),
        appended(next + 1),
    ];
    assert_eq!(sequencer.commit(&twice).await.unwrap(), expected);
}

both!(a_moved_log_fences_its_former_leader, moved);
async fn moved(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    assert_eq!(sequencer.move_logs(&[log, LogId { partition: 1, ..log }], 3).await.unwrap(), 1);
    let at = |leader_epoch| object([BatchEntry { leader_epoch, ..batch(log, 0, 1) }]);
    let refused = |refusal| vec![Outcome::Refused(refusal)];
    let outcome = sequencer.commit(&at(0)).await.unwrap();
    assert_eq!(outcome, refused(Refusal::FencedLeaderEpoch));
    let outcome = sequencer.commit(&at(2)).await.unwrap();
    assert_eq!(outcome, refused(Refusal::UnknownLeaderEpoch));
    assert_eq!(sequencer.commit(&at(1)).await.unwrap(), [appended(0)]);
    let found = find(&sequencer, log, 0).await;
    assert_eq!((found.leader, found.leader_epoch), (Some(3), 1));
    assert_eq!(found.extents[0].leader_epoch, 1);
}

both!(trimmed_extents_leave_dead_objects, trimmed);
async fn trimmed(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    let objects = [0, 1, 2].map(|i| object([BatchEntry { max_timestamp: i, ..batch(log, 0, 10) }]));
    for object in &objects {
        sequencer.commit(object).await.unwrap();
    }
    assert_eq!(sequencer.trim(log, 31).await, Err(Error::OffsetOutOfRange(31)));
    assert_eq!(sequencer.trim(log, 15).await.unwrap(), 15);
    assert_eq!(sequencer.trim(log, 3).await.unwrap(), 15);
    assert_eq!(sequencer.trim(LogId { partition: 9, ..log }, 0).await, Err(Error::UnknownLog));
    let found = find(&sequencer, log, 14).await;
    assert_eq!((found.start_offset, found.extents), (15, vec![]));
    assert_eq!(find(&sequencer, log, 15).await.extents[0].base_offset, 10);
    while sequencer.sweep(1).await.unwrap() {}
    assert_eq!(sequencer.dead(10).await.unwrap(), [objects[0].key]);
    let keep = Retention { before_timestamp: Some(2), bytes: None };
    assert_eq!(sequencer.retain(log, keep).await.unwrap(), 20);
    let keep = Retention { before_timestamp: None, bytes: Some(0) };
    assert_eq!(sequencer.retain(log, keep).await.unwrap(), 30);
    while sequencer.sweep(10).await.unwrap() {}
    let mut keys = objects.map(|object| object.key);
    keys.sort();
    assert_eq!(sequencer.dead(10).await.unwrap(), keys);
}

both!(a_time_lookup_finds_the_first_extent_in_order_of_offsets, timed);
async fn timed(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    for max_timestamp in [50, 10, 30, 70, 60] {
        let object = object([BatchEntry { max_timestamp, ..batch(log, 0, 1) }]);
        sequencer.commit(&object).await.unwrap();
    }
    let at = async |timestamp| {
        let found = sequencer.find_time(log, timestamp).await.unwrap();
        found.map(|extent| extent.base_offset)
    };
    assert_eq!((at(20).await, at(55).await, at(71).await), (Some(0), Some(3), None));
    sequencer.trim(log, 1).await.unwrap();
    assert_eq!((at(20).await, at(5).await), (Some(2), Some(1)));
}

both!(a_swap_replaces_extents_or_nothing, swapped);
async fn swapped(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    let objects = [0, 1].map(|_| object([batch(log, 0, 10)]));
    for object in &objects {
        sequencer.commit(object).await.unwrap();
    }
    let sources: Vec<_> =
        find(&sequencer, log, 0).await.extents.into_iter().map(|extent| (log, extent)).collect();
    let mut target = sources[1].1;
    (target.base_offset, target.size) = (0, 150);
    let swap = Swap { key: ObjectKey::fresh(), sources, targets: vec![(log, target)] };
    sequencer.swap(&swap).await.unwrap();
    sequencer.swap(&swap).await.unwrap();
    let found = find(&sequencer, log, 5).await;
    assert_eq!(found.extents.len(), 1);
    assert_eq!((found.extents[0].object, found.extents[0].sorted), (swap.key, true));
    let mut keys = objects.map(|object| object.key);
    keys.sort();
    assert_eq!(sequencer.dead(10).await.unwrap(), keys);
    let late = Swap { key: ObjectKey::fresh(), ..swap.clone() };
    assert_eq!(sequencer.swap(&late).await, Err(Error::SourcesChanged));
    assert_eq!(sequencer.condemn(&[late.key]).await.unwrap(), [late.key]);
    assert_eq!(sequencer.swap(&late).await, Err(Error::ObjectDead(late.key)));
}

both!(unsorted_objects_are_found_in_the_order_of_their_commits, unsorted);
async fn unsorted(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 2).await;
    let other = LogId { partition: 1, ..log };
    let gone = create(&sequencer, "gone", 1).await;
    let both = object([batch(log, 0, 10), batch(other, 100, 5)]);
    let objects =
        [both, object([batch(log, 0, 1), batch(gone, 100, 1)]), object([batch(log, 0, 2)])];
    for object in &objects {
        sequencer.commit(object).await.unwrap();
    }
    sequencer.delete_topic(gone.topic).await.unwrap();
    let found = async |most| {
        let found = sequencer.unsorted(most).await.unwrap();
        found.into_iter().map(|(log, extent)| (log, extent.object)).collect::<Vec<_>>()
    };
    let [first, second, third] = objects.map(|object| object.key);
    let all = [(log, first), (other, first), (log, second), (log, third)];
    assert_eq!(found(9).await, all);
    assert_eq!(found(2).await, all[..3]);
    sequencer.trim(log, 11).await.unwrap();
    assert_eq!(found(9).await, [(other, first), (log, third)], "what is trimmed is left out");
    let sources: Vec<_> = sequencer.unsorted(1).await.unwrap();
    let swap = Swap { key: ObjectKey::fresh(), targets: sources.clone(), sources };
    sequencer.swap(&swap).await.unwrap();
    assert_eq!(found(9).await, [(log, third)], "what is sorted is left out");
}

both!(a_deleted_topic_takes_its_objects_along, deleted);
async fn deleted(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 2).await;
    let object = object([batch(log, 0, 1), batch(LogId { partition: 1, ..log }, 100, 1)]);
    sequencer.commit(&object).await.unwrap();
    let again = Topic { id: Uuid::new_v4(), name: "topic".into(), partitions: 1 };
    assert_eq!(sequencer.create_topic(&again).await, Err(Error::TopicExists("topic".into())));
    let same = Topic { id: log.topic, name: "topic".into(), partitions: 2 };
    sequencer.create_topic(&same).await.unwrap();
    sequencer.delete_topic(log.topic).await.unwrap();
    assert_eq!(sequencer.delete_topic(log.topic).await, Err(Error::UnknownLog));
    sequencer.create_topic(&again).await.unwrap();
    assert_eq!(sequencer.topics().await.unwrap(), [again]);
    let find = Find { log, offset: 0, extents_max: 1 };
    assert_eq!(sequencer.find(&[find]).await.unwrap(), [None]);
    while sequencer.sweep(1).await.unwrap() {}
    assert_eq!(sequencer.dead(9).await.unwrap(), [object.key]);
}

both!(a_grown_topic_has_more_logs, grown);
async fn grown(sequencer: impl Sequencer) {
    let log = topic(&sequencer, 1).await;
    let last = LogId { partition: 2, ..log };
    assert_eq!(sequencer.sizes(&[log, last]).await.unwrap(), [Some(0), None]);
    assert_eq!(sequencer.grow_topic(log.topic, 3).await.unwrap(), 3);
    assert_eq!(sequencer.grow_topic(log.topic, 2).await.unwrap(), 3);
    assert_eq!(sequencer.grow_topic(Uuid::new_v4(), 2).await, Err(Error::UnknownLog));
    let outcomes = sequencer.commit(&object([batch(last, 0, 5), batch(last, 200, 5)])).await;
    assert_eq!(outcomes.unwrap(), [appended(0), appended(5)]);
    assert_eq!(sequencer.sizes(&[last, log]).await.unwrap(), [Some(200), Some(0)]);
    sequencer.trim(last, 5).await.unwrap();
    assert_eq!(sequencer.sizes(&[last]).await.unwrap(), [Some(100)]);
}

#[tokio::test]
async fn the_status_of_a_cluster_counts_what_is_to_be_removed() {
    let server = postgres_server::shared();
    let sequencer = Postgres::connect(&server.database().await).await.unwrap();
    let log = topic(&sequencer, 1).await;
    sequencer.commit(&object([batch(log, 0, 5)])).await.unwrap();
    sequencer.trim(log, 5).await.unwrap();
    let owned = sequencer.claim(3, "host:1").await.unwrap().unwrap();
    sequencer.append(owned.epoch, 0, vec![vec![1_u8].into()]).await.unwrap();
    let status = sequencer.status().await.unwrap();
    assert_eq!(status.cluster_id, sequencer.cluster_id().await.unwrap());
    assert_eq!((status.frames, status.topics, status.logs_unswept), (1, 1, 1));
    assert_eq!(status.owner.map(|owner| owner.broker), Some(3));
    assert!(status.tables.iter().any(|table| table.name == "batches" && table.bytes > 0));
    while sequencer.sweep(10).await.unwrap() {}
    sequencer.delete_topic(log.topic).await.unwrap();
    let status = sequencer.status().await.unwrap();
    assert_eq!((status.topics, status.topics_deleted), (0, 1));
    assert_eq!((status.logs_unswept, status.objects_dead), (0, 1));
}

#[tokio::test]
async fn a_million_partitions_are_one_row() {
    let server = postgres_server::shared();
    let sequencer = Postgres::connect(&server.database().await).await.unwrap();
    let log = topic(&sequencer, 1_000_000).await;
    let last = LogId { partition: 999_999, ..log };
    assert_eq!(sequencer.commit(&object([batch(last, 0, 1)])).await.unwrap(), [appended(0)]);
    assert_eq!(find(&sequencer, LogId { partition: 5, ..log }, 0).await.high_watermark, 0);
}

#[tokio::test]
async fn a_database_without_the_schema_is_refused() {
    let server = postgres_server::shared();
    let mut settings = server.database().await;
    Postgres::migrate(&settings).await.unwrap();
    settings.connection = settings.connection.replace("dbname=moldau_", "dbname=postgres x=");
    assert!(matches!(Postgres::connect(&settings).await, Err(Error::Settings(_))));
    settings.connection = settings.connection.split(" dbname").next().unwrap().to_owned();
    settings.connection += " dbname=postgres";
    let error = Postgres::connect(&settings).await.err();
    assert_eq!(error, Some(Error::SchemaVersion { found: 0, needed: 9 }));
}

#[tokio::test]
async fn commits_survive_a_crash_of_the_server() {
    let server = postgres_server::Server::start();
    let sequencer = Postgres::connect(&server.database().await).await.unwrap();
    let log = topic(&sequencer, 1).await;
    let commit = object([batch(log, 0, 3)]);
    sequencer.commit(&commit).await.unwrap();
    server.crash();
    // The connections of before are gone.
    let again = loop {
        match sequencer.commit(&commit).await {
            Err(error) if error.is_retriable() => {}
            answer => break answer,
        }
    };
    assert_eq!(again.unwrap(), [appended(0)]);
}

async fn topic(sequencer: &impl Sequencer, partitions: i32) -> LogId {
    create(sequencer, "topic", partitions).await
}

async fn create(sequencer: &impl Sequencer, name: &str, partitions: i32) -> LogId {
    let id = Uuid::new_v4();
    let topic = Topic { id, name: name.into(), partitions };
    sequencer.create_topic(&topic).await.unwrap();
    LogId { topic: id, partition: 0 }
}

async fn find(sequencer: &impl Sequencer, log: LogId, offset: i64) -> Found {
    let find = Find { log, offset, extents_max: 10 };
    sequencer.find(&[find]).await.unwrap().remove(0).unwrap()
}

fn object<const N: usize>(batches: [BatchEntry; N]) -> Commit {
    Commit { key: ObjectKey::fresh(), batches: batches.to_vec() }
}

fn batch(log: LogId, position: i64, offsets_count: i32) -> BatchEntry {
    let (leader_epoch, size, max_timestamp, producer) = (-1, 100, 0, None);
    let part = Part::Outside;
    BatchEntry { log, leader_epoch, position, size, offsets_count, max_timestamp, producer, part }
}

fn appended(base_offset: i64) -> Outcome {
    Outcome::Appended { base_offset, start_offset: 0 }
}

fn duplicate(base_offset: i64) -> Outcome {
    Outcome::Duplicate { base_offset, start_offset: 0 }
}
