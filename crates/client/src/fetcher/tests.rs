//! What a fetcher makes of answers, without a connection.

use moldau_protocol::Uuid;
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

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

#[test]
fn paused_and_postponed_partitions_are_not_wanted() {
    let now = std::time::Instant::now();
    let later = now + Duration::from_secs(1);
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Offset(5));
    positions.assign(topic(), 1, Start::Latest);
    positions.follow_metadata(&metadata(1));
    let wanted = positions.wanted(1, now);
    assert_eq!(wanted.len(), 1, "a position that is not known cannot be fetched");
    assert_eq!((wanted[0].position, wanted[0].leader_epoch), (5, 3));
    assert!(positions.wanted(2, now).is_empty());
    positions.set_paused(&TopicPartition::of("t", 0), true);
    assert!(positions.wanted(1, now).is_empty());
    positions.set_paused(&TopicPartition::of("t", 0), false);
    positions.postpone(wanted[0].key, later);
    assert!(positions.wanted(1, now).is_empty());
    assert_eq!(positions.next_due(now), Some(later));
    assert_eq!(positions.wanted(1, later).len(), 1);
}

#[test]
fn answer_to_an_older_position_is_dropped() {
    let now = std::time::Instant::now();
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Offset(5));
    positions.follow_metadata(&metadata(1));
    let old = positions.wanted(1, now).remove(0);
    let answer = Fetched { generation: old.generation, ..fetched(5, Vec::new()) };
    assert!(positions.is_valid(&answer));
    positions.assign(topic(), 0, Start::Offset(100));
    positions.follow_metadata(&metadata(2));
    assert!(!positions.advance(&old, 8));
    assert!(!positions.is_valid(&answer));
    assert_eq!(positions.wanted(1, now)[0].position, 100);
}

#[test]
fn resolved_position_is_fetched_and_reset_asks_again() {
    let now = std::time::Instant::now();
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Earliest);
    positions.follow_metadata(&metadata(1));
    let (key, partition, start) = positions.unknown(now).remove(0);
    assert_eq!((partition, start), (TopicPartition::of("t", 0), Start::Earliest));
    positions.resolve(key, 40);
    let wanted = positions.wanted(1, now).remove(0);
    assert!(positions.advance(&wanted, 50));
    positions.reset(&wanted, Start::Latest);
    assert!(positions.unknown(now).is_empty(), "the position has moved on since");
    let wanted = positions.wanted(1, now).remove(0);
    positions.reset(&wanted, Start::Latest);
    assert_eq!(positions.unknown(now).len(), 1);
}

#[test]
fn partition_that_is_moved_stays_paused_and_drops_what_was_fetched() {
    let now = std::time::Instant::now();
    let name = TopicPartition::of("t", 0);
    let mut positions = Positions::default();
    assert!(!positions.seek(&name, Start::Earliest));
    positions.assign(topic(), 0, Start::Offset(5));
    positions.follow_metadata(&metadata(1));
    let old = positions.wanted(1, now).remove(0);
    positions.set_paused(&name, true);
    assert!(positions.seek(&name, Start::Offset(9)));
    positions.follow_metadata(&metadata(2));
    assert!(positions.wanted(1, now).is_empty() && !positions.advance(&old, 6));
    positions.set_paused(&name, false);
    assert_eq!(positions.wanted(1, now)[0].position, 9);
}

#[test]
fn partition_without_a_record_of_the_time_starts_at_its_end() {
    let now = std::time::Instant::now();
    let mut positions = Positions::default();
    positions.assign(topic(), 0, Start::Timestamp(7));
    positions.follow_metadata(&metadata(1));
    let (key, _, start) = positions.unknown(now).remove(0);
    assert_eq!(start, Start::Timestamp(7));
    positions.start_at_end(key);
    assert_eq!(positions.unknown(now)[0].2, Start::Latest);
}
