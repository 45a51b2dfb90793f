//! Compacted topics.

use bytes::Bytes;
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};
use moldau_storage::Drive;

use super::world::{NOW_MS, World, base_offsets};
use crate::compaction;

fn keyed(key: &str, value: &str) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(NOW_MS, Some(key.as_bytes()), Some(value.as_bytes()), []).unwrap();
    let batch = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
    Bytes::copy_from_slice(batch)
}

#[test]
fn a_compacted_topic_keeps_the_newest_record_of_each_key_over_a_restart() {
    let world = World::with(Drive::Threads, |_| {});
    let configs = [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0")];
    world.create_with("table", 1, &configs);
    world.create("events", 1);
    for value in ["1", "2", "3"] {
        world.append("table", 0, keyed("a", value));
        world.append("events", 0, keyed("a", value));
    }
    world.append("table", 0, keyed("b", "1"));
    world.wait(compaction::apply(&world.state, NOW_MS));
    let kept = |world: &World, topic: &str| base_offsets(world.fetch(topic, 0, 0).records.as_ref());
    assert_eq!(kept(&world, "table"), [2, 3]);
    assert_eq!(kept(&world, "events"), [0, 1, 2]);
    let world = world.restarted();
    assert_eq!(kept(&world, "table"), [2, 3]);
    world.append("table", 0, keyed("a", "4"));
    assert_eq!(base_offsets(world.fetch("table", 0, 4).records.as_ref()), [4]);
}
