//! Compacted topics in a cluster.

use bytes::Bytes;
use moldau_records::{
    BatchBuilder, BatchOptions, Compression, Compressor, Decompressor, iter_batches,
};

use super::clusters::{Cluster, eventually};
use super::world::{NOW_MS, World};
use crate::upkeep::Rounds;

/// Objects of which the sorter takes the oldest.
const OBJECTS: usize = 64;

/// Keys in turn, so each has several records.
const KEYS: usize = 10;

fn record(value: usize) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let (key, value) = ((value % KEYS).to_string(), value.to_string());
    builder.append(NOW_MS, Some(key.as_bytes()), Some(value.as_bytes()), []).unwrap();
    builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap()
}

/// Offsets and values of a partition's records.
fn values(world: &World, offset: i64) -> Vec<(i64, String)> {
    let bytes = world.fetch("table", 0, offset).records.unwrap_or_default();
    let mut values = Vec::new();
    for batch in iter_batches(&bytes) {
        let mut decompressor = Decompressor::default();
        for record in batch.unwrap().records(&mut decompressor, 1 << 20).unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value().unwrap().to_vec()).unwrap();
            values.push((record.offset(), value));
        }
    }
    values
}

#[test]
fn of_each_key_the_last_record_is_left_at_every_broker() {
    let cluster = Cluster::of(2);
    cluster.world(1).create_with("table", 1, &[("cleanup.policy", "compact")]);
    eventually(|| cluster.worlds().all(|it| it.state.catalog.by_name("table").is_some()));
    for value in 0..OBJECTS {
        cluster.world(1 + value % 2).append("table", 0, record(value));
    }
    let mut rounds = Rounds::default();
    cluster.keep_up(&mut rounds, NOW_MS);
    let left: Vec<_> = (OBJECTS - KEYS..OBJECTS)
        .map(|value| (i64::try_from(value).unwrap(), value.to_string()))
        .collect();
    for world in cluster.worlds() {
        assert_eq!(values(world, 0), left);
        assert_eq!(values(world, 20), left, "offsets without records lead to the next ones");
    }
    // What came later is cleaned once it is sorted.
    for value in OBJECTS..OBJECTS + KEYS {
        cluster.world(2).append("table", 0, record(value));
    }
    cluster.keep_up(&mut rounds, NOW_MS);
    let all = left.len() + KEYS;
    assert!(cluster.worlds().all(|world| values(world, 0).len() == all));
}
