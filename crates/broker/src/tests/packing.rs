//! Batches for which much is to be done: packed for their topic, or large.

use bytes::Bytes;
use moldau_net::Reply;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::ProduceRequest;
use moldau_records::{BatchOptions, BatchView, Compression, Decompressor, Producer};
use moldau_storage::{Drive, TopicId};

use super::configs::{TOPIC, altering};
use super::requests::{PRODUCE_BY_NAME, fetch, fetch_topic, only, produce};
use super::world::{NOW_MS, World, base_offsets, batch_of, code, request_frame, reseal};
use crate::compaction;
use crate::config::{Config, Unpacking};

/// Records that no codec makes small.
fn noise(bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(3);
    (0..bytes).map(|_| random.alphanumeric()).collect()
}

fn packed(codec: Compression, value: &str) -> Bytes {
    let producer = Some(Producer { id: 5, epoch: 0, base_sequence: 0 });
    let options = BatchOptions { producer, ..BatchOptions::default() };
    batch_of(options, codec, &[(NOW_MS, value), (NOW_MS, "b")])
}

fn stored(world: &World, topic: &str) -> Vec<(Compression, Vec<String>)> {
    let records = world.fetch(topic, 0, 0).records.unwrap();
    let batches = moldau_records::iter_batches(&records).map(|batch| {
        let batch: BatchView<'_> = batch.unwrap();
        batch.check_crc().unwrap();
        let mut decompressor = Decompressor::default();
        let records = batch.records(&mut decompressor, 1 << 20).unwrap().map(Result::unwrap);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let values = records.map(|record| text(record.value().unwrap()));
        (batch.compression().unwrap(), values.collect())
    });
    batches.collect()
}

#[test]
fn batches_are_packed_as_their_topic_says() {
    let world = World::new();
    for (name, to) in [
        ("uncompressed", Compression::None),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ] {
        for from in Compression::ALL {
            let topic = format!("{name}-{from}");
            world.create_with(&topic, 1, &[("compression.type", name)]);
            world.append(&topic, 0, packed(from, "a"));
            // Sent again, it is known by its sequence.
            world.append(&topic, 0, packed(from, "a"));
            let values = ["a", "b"].map(str::to_owned).to_vec();
            assert_eq!(stored(&world, &topic), [(to, values)], "{topic}");
        }
    }
    world.create_with("producer", 1, &[("compression.type", "producer")]);
    world.append("producer", 0, packed(Compression::Snappy, "a"));
    assert_eq!(stored(&world, "producer")[0].0, Compression::Snappy);
}

/// What is believed may be damaged: the rest of the broker lives with it, also where its topic
/// becomes a compacted one.
#[test]
fn a_believed_batch_that_is_damaged_stops_nothing() {
    let believing = |config: &mut Config| config.unpacking = Unpacking::WhereNeeded;
    let batch = |codec, value: &str| batch_of(BatchOptions::default(), codec, &[(NOW_MS, value)]);
    let world = World::with(Drive::Threads, believing);
    world.create("topic", 1);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut damaged = batch(codec, &noise(200_000)).to_vec();
        damaged[61..].fill(0xff);
        reseal(&mut damaged);
        world.append("topic", 0, damaged.into());
    }
    world.append("topic", 0, batch(Compression::None, "sound"));
    let first = |offset| base_offsets(world.fetch("topic", 0, offset).records.as_ref())[0];
    assert_eq!([0, 1, 2, 3, 4].map(first), [0, 1, 2, 3, 4]);
    let changes =
        [(0, "cleanup.policy", Some("compact")), (0, "min.cleanable.dirty.ratio", Some("0"))];
    let altered = world.ask(&altering(TOPIC, "topic", &changes));
    assert_eq!(code(altered.responses[0].error_code), ErrorCode::None);
    world.wait(compaction::apply(&world.state, NOW_MS));
    let world = world.restarted_with(believing);
    assert_eq!(base_offsets(world.fetch("topic", 0, 4).records.as_ref()), [4]);
}

#[test]
fn only_the_sent_codec_needs_a_request_version() {
    let world = World::new();
    world.create_with("packed", 1, &[("compression.type", "zstd")]);
    for (codec, expected) in [
        (Compression::Zstd, ErrorCode::UnsupportedCompressionType),
        (Compression::Gzip, ErrorCode::None),
    ] {
        let records = batch_of(BatchOptions::default(), codec, &[(NOW_MS, "b")]);
        let answer = world.ask_in(6, &produce("packed", 0, records));
        assert_eq!(code(answer.responses[0].partition_responses[0].error_code), expected);
    }
    let old_fetch = fetch(vec![fetch_topic("packed", &[(0, 0)])]);
    let mut answer = world.ask_in(4, &old_fetch);
    assert_eq!(code(only(&mut answer).error_code), ErrorCode::None);
}

/// A network thread would let all its connections wait.
#[test]
fn workers_handle_large_and_recompressed_batches() {
    let world = World::new();
    world.create("kept", 1);
    world.create_with("packed", 1, &[("compression.type", "zstd")]);
    let large = noise(100_000);
    let small_bomb = "v".repeat(2 << 20);
    for (topic, codec, value, is_left) in [
        ("kept", Compression::Lz4, "small", false),
        ("kept", Compression::None, &large, false),
        ("kept", Compression::Lz4, &large, true),
        ("kept", Compression::Zstd, &small_bomb, true),
        ("packed", Compression::Zstd, "small", false),
        ("packed", Compression::None, "small", true),
    ] {
        let records = batch_of(BatchOptions::default(), codec, &[(NOW_MS, value)]);
        let frame = request_frame(PRODUCE_BY_NAME, &produce(topic, 0, records));
        let Reply::Later(answer, kept) = world.send(&frame) else { panic!("{topic} {codec}") };
        assert_eq!(kept >= moldau_net::KEPT_REQUEST_BYTES_MAX, is_left, "{topic} {codec}");
        assert!(!world.wait(answer).is_empty());
    }
    let offsets = |topic| base_offsets(world.fetch(topic, 0, 0).records.as_ref());
    assert_eq!((offsets("kept"), offsets("packed")), (vec![0, 1, 2, 3], vec![0, 1]));
}

#[test]
fn worker_continues_the_work_of_the_network_thread() {
    let world = World::new();
    world.create_with("packed", 2, &[("compression.type", "lz4")]);
    world.create("plain", 2);
    let records = packed(Compression::None, "a");
    let mut request = produce("plain", 0, records.clone());
    for (topic, partition) in [("packed", 0), ("packed", 7), ("packed", 1), ("plain", 1)] {
        let more = produce(topic, partition, records.clone()).topic_data.remove(0);
        match request.topic_data.last_mut() {
            Some(last) if last.name == topic => last.partition_data.extend(more.partition_data),
            _ => request.topic_data.push(more),
        }
    }
    let response = world.ask_in(PRODUCE_BY_NAME, &request);
    let told: Vec<Vec<_>> = response
        .responses
        .iter()
        .map(|topic| topic.partition_responses.iter().map(|it| (it.index, code(it.error_code))))
        .map(Iterator::collect)
        .collect();
    let (none, unknown) = (ErrorCode::None, ErrorCode::UnknownTopicOrPartition);
    assert_eq!(told, [vec![(0, none)], vec![(0, none), (7, unknown), (1, none)], vec![(1, none)]]);
    for topic in ["plain", "packed"] {
        assert_eq!(base_offsets(world.fetch(topic, 1, 0).records.as_ref()), [0]);
    }
}

#[test]
fn worker_refusals_equal_network_thread_refusals() {
    let world = World::new();
    world.create_with("packed", 1, &[("compression.type", "gzip")]);
    let mut damaged = packed(Compression::None, "a").to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let damaged = Bytes::from(damaged);
    let refused = world.produce("packed", 0, damaged.clone());
    assert_eq!(code(refused.error_code), ErrorCode::CorruptMessage);
    let without_acks = |records| {
        let request = ProduceRequest { acks: 0, ..produce("packed", 0, records) };
        match world.send(&request_frame(PRODUCE_BY_NAME, &request)) {
            Reply::Later(answer, _) => world.wait(answer),
            _ => panic!("a worker answers later"),
        }
    };
    assert!(without_acks(damaged).closes.is_some());
    let silent = without_acks(packed(Compression::None, "a"));
    assert!(silent.is_empty() && silent.closes.is_none());
    assert_eq!(world.append("packed", 0, packed(Compression::None, "a")), 0);
}

/// The bytes wait in memory for the worker and for the disk.
#[test]
fn worker_append_is_admitted_until_durable() {
    let world = World::stepped();
    let id = world.create_with("packed", 1, &[("compression.type", "gzip")]);
    let storage = &world.state.storage;
    let log = storage.log(TopicId(id.into_bytes()), 0);
    let holds_nothing = || storage.admit(usize::MAX).is_some();
    let request = produce("packed", 0, packed(Compression::None, "a"));
    assert!(holds_nothing());
    let pending = world.begin(PRODUCE_BY_NAME, &request);
    assert!(!holds_nothing(), "before the worker");
    world.wait(async {
        drop(pending);
        while log.end_offset() == 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(!holds_nothing(), "the client has gone");
    drop(world.wait(storage.admit_wait(usize::MAX)));
    assert_eq!(base_offsets(world.fetch("packed", 0, 0).records.as_ref()), [0]);
}
