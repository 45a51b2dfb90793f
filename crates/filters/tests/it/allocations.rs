//! What messages allocate on their way through each filter.

use moldau_records::Compression;

use crate::messages::{FETCH, PRODUCE, Session};

/// Allocations of a message of any filter: its copy, futures, the places of its records, and the
/// frame that is written.
const ALLOCATIONS_MAX: u64 = 16;

fn allocations(filter: &str, records: usize, codec: Compression, work: fn(&Session)) -> u64 {
    let session = Session::new(filter, records, codec);
    // The first finds the buffers of its thread too small.
    work(&session);
    allocation_counter::measure(|| work(&session)).count_total
}

#[test]
fn messages_allocate_no_more_for_a_thousand_records_than_for_one() {
    for codec in [Compression::None, Compression::Lz4] {
        for records in [1, 1000] {
            // A schema is checked against a tree of each value.
            for filter in PRODUCE.iter().filter(|name| !name.contains("schema")) {
                let count = allocations(filter, records, codec, |it| drop(it.produce()));
                assert!(count <= ALLOCATIONS_MAX, "{filter}, {records} records, {codec}: {count}");
            }
            for filter in FETCH.iter().filter(|name| **name != "mask") {
                let count = allocations(filter, records, codec, |it| drop(it.fetch()));
                assert!(count <= ALLOCATIONS_MAX, "{filter}, {records} records, {codec}: {count}");
            }
        }
    }
}
