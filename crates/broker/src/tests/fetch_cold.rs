//! Fetches of records that are no longer in memory.

use moldau_protocol::messages::{FetchRequest, FetchResponse};
use moldau_storage::Drive;

use super::requests::{FETCH_BY_NAME, fetch, fetch_topic};
use super::world::{NOW_MS, World, base_offsets, batch};

/// Each fills a journal file of 1 MiB, and a reading looks four of them ahead.
const FILLER_BATCHES: usize = 7;

/// A broker that keeps nothing in memory and reads only when told. Each partition of the topic has
/// two batches of two records, further from those of the next than a reading looks ahead.
fn cold(partitions: i32) -> (World, usize) {
    let world = World::with(Drive::Stepped, |config| config.tail_cache_bytes = Some(0));
    world.create("orders", partitions);
    world.create("filler", 1);
    let records = batch(NOW_MS, &["0123456789", "0123456789"]);
    let filler = batch(NOW_MS, &[&"x".repeat(900_000)]);
    for partition in 0..partitions {
        for _ in 0..2 {
            world.append("orders", partition, records.clone());
        }
        for _ in 0..FILLER_BATCHES {
            world.append("filler", 0, filler.clone());
        }
    }
    (world, records.len())
}

fn ask_all(partitions: i32) -> FetchRequest {
    let asked: Vec<(i32, i64)> = (0..partitions).map(|partition| (partition, 0)).collect();
    fetch(vec![fetch_topic("orders", &asked)])
}

fn returned(response: &FetchResponse) -> Vec<Vec<i64>> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| base_offsets(partition.records.as_ref())).collect()
}

fn finish(world: &World, request: &FetchRequest) -> Vec<Vec<i64>> {
    let mut pending = world.begin::<FetchRequest>(FETCH_BY_NAME, request);
    for _ in 0..100 {
        if let Some(response) = world.poll_decoded::<FetchRequest>(&mut pending) {
            return returned(&response);
        }
        world.flush();
    }
    panic!("the fetch does not end");
}

/// A consumer of many partitions waited for one read of the disk after the other.
#[test]
fn one_disk_turn_serves_all_partitions_of_a_fetch() {
    let (world, _) = cold(3);
    let mut pending = world.begin::<FetchRequest>(FETCH_BY_NAME, &ask_all(3));
    assert!(!world.poll(&mut pending), "nothing is in memory");
    world.flush();
    let response = world.poll_decoded::<FetchRequest>(&mut pending).expect("all is loaded");
    assert_eq!(returned(&response), [[0, 2], [0, 2], [0, 2]]);
}

#[test]
fn limits_apply_to_disk_reads() {
    let (world, bytes) = cold(3);
    let within = |bytes: usize| i32::try_from(bytes).unwrap();
    let mut request = FetchRequest { max_bytes: 1, ..ask_all(3) };
    assert_eq!(finish(&world, &request), [vec![0], vec![], vec![]]);
    let (world, _) = cold(3);
    request.max_bytes = within(3 * bytes);
    assert_eq!(finish(&world, &request), [vec![0, 2], vec![0], vec![]]);
    let (world, _) = cold(3);
    request.max_bytes = within(100 * bytes);
    request.topics[0].partitions[0].partition_max_bytes = 1;
    request.topics[0].partitions[2].partition_max_bytes = within(bytes);
    assert_eq!(finish(&world, &request), [vec![0], vec![0, 2], vec![0]]);
}

#[test]
fn a_first_batch_above_the_limit_leaves_no_room_for_others() {
    let (world, bytes) = cold(2);
    let mut request = ask_all(2);
    // Both are begun within the limit, but the first is larger than it asked for.
    request.max_bytes = i32::try_from(bytes + bytes / 2).unwrap();
    request.topics[0].partitions[0].partition_max_bytes = i32::try_from(bytes / 2).unwrap();
    request.topics[0].partitions[1].partition_max_bytes = i32::try_from(bytes).unwrap();
    assert_eq!(finish(&world, &request), [vec![0], vec![]]);
}

#[test]
fn more_partitions_than_may_read_at_once_are_all_served_in_order() {
    let (world, _) = cold(10);
    assert_eq!(finish(&world, &ask_all(10)), vec![vec![0, 2]; 10]);
}

/// Each partition behind the one that filled the answer once had blocks read for nothing.
#[test]
fn full_response_stops_disk_reads() {
    let world = World::with(Drive::Stepped, |config| config.tail_cache_bytes = Some(0));
    let partitions = 16;
    world.create("orders", partitions);
    world.create("filler", 1);
    let records = batch(NOW_MS, &[&"x".repeat(200_000)]);
    for partition in 0..partitions {
        world.append("orders", partition, records.clone());
    }
    for _ in 0..FILLER_BATCHES {
        world.append("filler", 0, batch(NOW_MS, &[&"x".repeat(900_000)]));
    }
    while world.state.storage.step_upkeep().unwrap() {}
    let mut request = ask_all(partitions);
    request.max_bytes = i32::try_from(records.len() + 1).unwrap();
    let before = world.state.storage.metrics().chunk_read_bytes;
    let mut expected = vec![vec![]; 16];
    expected[0] = vec![0];
    assert_eq!(finish(&world, &request), expected);
    let read = world.state.storage.metrics().chunk_read_bytes - before;
    assert!(read < 5 * records.len() as u64, "{read} bytes for a batch of {}", records.len());
}
