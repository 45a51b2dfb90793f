//! What a fetcher makes of answers, without a connection.

use moldau_protocol::Uuid;
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

use super::positions::Wanted;
use super::request::whole_batches;
use super::*;
use crate::metadata::{Leader, Metadata, Partition, Topic};
use crate::wire::Address;

fn batch(base_offset: i64, values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions { base_offset, ..Default::default() });
    for value in values {
        builder.append(1, None, Some(value.as_bytes()), []).unwrap();
    }
    builder.finish(Compression::Zstd, &mut Compressor::default()).unwrap().to_vec()
}

fn topic() -> TopicRef {
    TopicRef { name: "t".into(), id: Uuid::from_bytes([1; 16]) }
}

/// Metadata in which broker 1 leads partitions 0 and 1 of topic `t`.
fn metadata(generation: u64) -> Metadata {
    let mut metadata = Metadata { generation, ..Metadata::default() };
    metadata.brokers.insert(1, Address { host: "localhost".to_owned(), port: 9092 });
    let leader = Some(Leader { node: 1, epoch: 3 });
    let partitions = (0..2)
        .map(|index| Partition { index, leader, replicas: vec![1], in_sync: vec![1] })
        .collect();
    let known = Topic { topic: topic(), internal: false, partitions };
    metadata.topics.insert("t".into(), Arc::new(known));
    metadata
}

fn fetched(position: i64, bytes: Vec<u8>) -> Fetched {
    Fetched {
        topic: topic(),
        partition: 0,
        position,
        next_position: 0,
        high_watermark: 0,
        log_start_offset: 0,
        aborted: Aborted::default(),
        bytes: bytes.into(),
        generation: 1,
        room: None,
    }
}

#[test]
fn records_before_the_position_are_left_out() {
    let bytes = [batch(10, &["a", "b", "c"]), batch(13, &["d"])].concat();
    let mut seen = Vec::new();
    fetched(11, bytes)
        .for_each_record(&mut Decompressor::default(), 1000, |record| {
            seen.push((record.offset(), record.value().unwrap().to_vec()));
        })
        .unwrap();
    assert_eq!(seen, [(11, b"b".to_vec()), (12, b"c".to_vec()), (13, b"d".to_vec())]);
}

#[test]
fn damaged_batch_is_an_error() {
    let mut bytes = batch(0, &["a"]);
    *bytes.last_mut().unwrap() ^= 1;
    let damaged =
        fetched(0, bytes).for_each_record(&mut Decompressor::default(), 1000, |_| {}).unwrap_err();
    assert!(matches!(damaged, Error::Records(_)), "{damaged}");
}

#[test]
fn batch_cut_off_by_the_answer_limit_is_left_out() {
    let whole = batch(0, &["a", "b"]);
    let cut = batch(2, &["c", "d"]);
    for length in 0..cut.len() {
        let bytes = Bytes::from([&whole[..], &cut[..length]].concat());
        let (kept, next) = whole_batches(&bytes).unwrap();
        assert_eq!((kept.len(), next), (whole.len(), Some(2)));
    }
    assert_eq!(whole_batches(&Bytes::new()).unwrap(), (Bytes::new(), None));
}

/// Batches before one that cannot be passed over were lost with it.
#[test]
fn batches_before_one_of_unknown_length_are_kept() {
    let whole = batch(0, &["a"]);
    let mut old = batch(1, &["b"]);
    old[16] = 1;
    let both = Bytes::from([&whole[..], &old].concat());
    assert_eq!(whole_batches(&both).unwrap(), (Bytes::from(whole), Some(1)));
    assert!(whole_batches(&Bytes::from(old)).is_err());
}

/// What broker 1 is to fetch from now on.
fn read(positions: &mut Positions) -> Vec<Wanted> {
    positions.changes(1).read
}

#[test]
fn paused_and_postponed_partitions_are_not_wanted() {
    let now = std::time::Instant::now();
    let later = now + Duration::from_secs(1);
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Offset(5));
    positions.assign(topic(), 1, Start::Latest);
    positions.follow_metadata(&metadata(1));
    let wanted = read(&mut positions);
    assert_eq!(wanted.len(), 1, "a position that is not known cannot be fetched");
    assert_eq!((wanted[0].position, wanted[0].leader_epoch), (5, 3));
    assert!(positions.changes(2).read.is_empty());
    assert!(read(&mut positions).is_empty(), "it is told once");
    let key = wanted[0].key;
    positions.set_paused(&TopicPartition::of("t", 0), true);
    assert_eq!(positions.changes(1).leave, [key]);
    positions.set_paused(&TopicPartition::of("t", 0), false);
    assert_eq!(read(&mut positions), wanted);
    positions.postpone(key, later);
    assert_eq!(positions.changes(1).leave, [key]);
    assert_eq!(positions.next_due(), Some(later));
    positions.wake(now);
    assert!(read(&mut positions).is_empty());
    positions.wake(later);
    assert_eq!(read(&mut positions), wanted);
    assert_eq!(positions.next_due(), None);
}

#[test]
fn partition_that_moves_is_left_by_its_old_leader_and_read_from_the_new_one() {
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Offset(5));
    assert!(positions.lacks_leader());
    assert!(positions.follow_metadata(&metadata(1)) && !positions.lacks_leader());
    let key = read(&mut positions)[0].key;
    let mut moved = metadata(2);
    moved.brokers.insert(2, Address { host: "localhost".to_owned(), port: 9093 });
    let leader = Some(Leader { node: 2, epoch: 4 });
    let partitions = vec![Partition { index: 0, leader, replicas: vec![2], in_sync: vec![2] }];
    let known = Topic { topic: topic(), internal: false, partitions };
    moved.topics.insert("t".into(), Arc::new(known));
    assert!(positions.follow_metadata(&moved));
    assert_eq!(positions.changes(1).leave, [key]);
    assert_eq!(positions.changes(2).read[0].leader_epoch, 4);
    let mut leaders: Vec<i32> = positions.leaders().collect();
    leaders.sort_unstable();
    assert_eq!(leaders, [1, 2]);
    assert!(positions.follow_metadata(&Metadata { generation: 3, ..Metadata::default() }));
    assert!(positions.lacks_leader());
    assert_eq!(positions.changes(2).leave, [key]);
}

/// Its offsets mean nothing any more: records below the position would be passed over.
#[test]
fn topic_created_anew_is_read_from_its_start_by_its_new_id() {
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Offset(5));
    positions.follow_metadata(&metadata(1));
    let old = read(&mut positions).remove(0);
    let mut anew = metadata(2);
    let id = Uuid::from_bytes([2; 16]);
    let known = anew.topics.get_mut("t").map(Arc::make_mut).unwrap();
    known.topic.id = id;
    assert!(positions.follow_metadata(&anew));
    let (key, partition, start) = positions.unknown().remove(0);
    assert_eq!((partition, start), (TopicPartition::of("t", 0), Start::Earliest));
    positions.resolve(key, 0);
    let changes = positions.changes(1);
    assert_eq!((changes.read[0].topic.id, changes.read[0].position), (id, 0));
    assert_eq!(changes.leave, [old.key]);
}

#[test]
fn answer_to_an_older_position_is_dropped() {
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Offset(5));
    positions.follow_metadata(&metadata(1));
    let old = read(&mut positions).remove(0);
    let answer = Fetched { generation: old.generation, ..fetched(5, Vec::new()) };
    assert!(positions.is_valid(&answer));
    positions.assign(topic(), 0, Start::Offset(100));
    positions.follow_metadata(&metadata(1));
    assert!(!positions.advance(&old, 8));
    assert!(!positions.is_valid(&answer));
    let changes = positions.changes(1);
    assert_eq!((changes.read[0].position, changes.leave), (100, vec![old.key]));
}

#[test]
fn resolved_position_is_fetched_and_reset_asks_again() {
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Earliest);
    positions.follow_metadata(&metadata(1));
    let (key, partition, start) = positions.unknown().remove(0);
    assert_eq!((partition, start), (TopicPartition::of("t", 0), Start::Earliest));
    positions.resolve(key, 40);
    assert!(positions.unknown().is_empty());
    let wanted = read(&mut positions).remove(0);
    assert!(positions.advance(&wanted, 50));
    positions.reset(&wanted, Start::Latest);
    assert!(positions.unknown().is_empty(), "the position has moved on since");
    let wanted = read(&mut positions).remove(0);
    positions.reset(&wanted, Start::Latest);
    assert_eq!(positions.unknown().len(), 1);
    assert_eq!(positions.changes(1).leave, [key]);
}

#[test]
fn position_that_is_asked_for_waits_after_a_failure() {
    let now = std::time::Instant::now();
    let later = now + Duration::from_secs(1);
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Earliest);
    positions.follow_metadata(&metadata(1));
    let key = positions.unknown()[0].0;
    positions.postpone(key, later);
    assert!(positions.unknown().is_empty());
    positions.wake(later);
    assert_eq!(positions.unknown().len(), 1);
    positions.postpone(key, later);
    positions.unassign(&TopicPartition::of("t", 0));
    assert_eq!(positions.next_due(), None, "it is not assigned any more");
}

#[test]
fn partition_that_is_moved_stays_paused_and_drops_what_was_fetched() {
    let name = TopicPartition::of("t", 0);
    let mut positions = Positions::default();
    assert!(!positions.seek(&name, Start::Earliest));
    positions.assign(topic(), 0, Start::Offset(5));
    positions.follow_metadata(&metadata(1));
    let old = read(&mut positions).remove(0);
    positions.set_paused(&name, true);
    assert!(positions.seek(&name, Start::Offset(9)));
    positions.follow_metadata(&metadata(1));
    assert!(read(&mut positions).is_empty() && !positions.advance(&old, 6));
    positions.set_paused(&name, false);
    assert_eq!(read(&mut positions)[0].position, 9);
}

#[test]
fn partition_without_a_record_of_the_time_starts_at_its_end() {
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Timestamp(7));
    positions.follow_metadata(&metadata(1));
    let (key, _, start) = positions.unknown().remove(0);
    assert_eq!(start, Start::Timestamp(7));
    positions.start_at_end(key);
    assert_eq!(positions.unknown()[0].2, Start::Latest);
}
