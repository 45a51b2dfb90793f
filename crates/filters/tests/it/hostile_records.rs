//! Seeded changes of messages that record encryption reads; what the fuzz target does without end,
//! done for a while. And what such messages allocate.

use allocation_counter::AllocationInfo;
use bytes::Bytes;
use moldau_protocol::ApiKey;
use moldau_proxy::{RequestFrame, ResponseFrame};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

use crate::filter_any::{
    World, fetch_response, produce_request, request_bytes, response_bytes, share_fetch_response,
};

const ROUNDS: usize = 100;

/// Allocations of a produce request for one partition: the futures of the filter, what is known of
/// the topic, and a small frame that is sent on, which grows once or twice.
const ALLOCATIONS_PRODUCE_MAX: u64 = 10;

const ALLOCATIONS_FETCH_MAX: u64 = 8;

/// Answers to share consumers are decoded and encoded.
const ALLOCATIONS_SHARE_FETCH_MAX: u64 = 18;

/// Bytes of them, however large the message is.
const ALLOCATED_BYTES_MAX: u64 = 16 * 1024;

#[test]
fn changed_messages_fail_their_partition_or_their_session_only() {
    let mut random = fastrand::Rng::with_seed(3);
    let world = World::new();
    for selector in 0..=u8::MAX {
        for _ in 0..ROUNDS {
            let mut data: Vec<u8> = vec![selector, random.u8(..)];
            for _ in 0..random.usize(1..4) {
                // Places within the records, mostly, and bytes with few bits.
                data.extend(random.u16(..800).to_le_bytes());
                data.push(random.u8(..) & random.u8(..));
            }
            world.read(&data);
        }
    }
}

fn batch(records: usize) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..records {
        builder.append(0, Some(b"key"), Some(&[7; 100]), []).unwrap();
    }
    builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap()
}

#[test]
fn messages_allocate_no_more_for_ten_thousand_records_than_for_one() {
    let world = World::new();
    let of_messages = |records: usize| {
        let plain = batch(records);
        let sealed = world.seal(&plain);
        let request = request_bytes(9, &produce_request(&[&plain]));
        let fetched = response_bytes(12, &fetch_response(&[&sealed]));
        let shared = response_bytes(1, &share_fetch_response(&[&sealed]));
        let request = || RequestFrame::parse(request.clone(), true).unwrap();
        let response = |bytes: &Vec<u8>, api, version| {
            ResponseFrame::parse(bytes.clone(), api, version).unwrap()
        };
        [
            measure(request, |frame| world.request(frame).is_some()),
            measure(
                || response(&fetched, ApiKey::Fetch, 12),
                |frame| world.response(frame).is_some(),
            ),
            measure(
                || response(&shared, ApiKey::ShareFetch, 1),
                |frame| world.response(frame).is_some(),
            ),
        ]
    };
    for records in [1, 100, 10_000] {
        let [produced, fetched, shared] = of_messages(records);
        assert!(produced.count_total <= ALLOCATIONS_PRODUCE_MAX, "{produced:?} for {records}");
        assert!(fetched.count_total <= ALLOCATIONS_FETCH_MAX, "{fetched:?} for {records}");
        assert!(shared.count_total <= ALLOCATIONS_SHARE_FETCH_MAX, "{shared:?} for {records}");
        // A frame is written into the memory of one before it.
        for message in [produced, fetched] {
            assert!(message.bytes_total <= ALLOCATED_BYTES_MAX, "{message:?} for {records}");
        }
    }
}

/// Allocations of a filter for a message after it has seen a similar one.
fn measure<T>(message: impl Fn() -> T, pass: impl Fn(T) -> bool) -> AllocationInfo {
    // The first finds the buffers of its thread too small.
    assert!(pass(message()));
    let message = message();
    allocation_counter::measure(|| assert!(pass(message)))
}
