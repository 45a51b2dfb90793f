//! What answers and workers take of the memory.

use moldau_net::{MemoryUse, Response};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{FetchRequest, FetchResponse, ProduceRequest};
use moldau_records::{BatchOptions, Compression};
use moldau_storage::Drive;

use super::requests::{FETCH_BY_NAME, PRODUCE_BY_NAME, fetch, fetch_topic, produce};
use super::world::{NOW_MS, Pending, World, base_offsets, batch, batch_of, code, decoded};
use crate::MEMORY_BYTES_MIN;
use crate::call::Later;

const MIB: usize = 1 << 20;

/// A broker with little memory and more records than that, on disk or in the tail cache.
fn world(tail_cache_bytes: usize) -> World {
    let world = World::with(Drive::Stepped, |config| {
        config.memory_bytes = MEMORY_BYTES_MIN;
        config.tail_cache_bytes = Some(tail_cache_bytes);
        config.journal_file_bytes = 4 << 20;
    });
    world.create("big", 1);
    let records = batch(NOW_MS, &[&"x".repeat(100_000)]);
    for _ in 0..400 {
        world.append("big", 0, records.clone());
    }
    world
}

/// Fetches whose answers nobody takes, each by a connection of its own.
struct Flood {
    waiting: Vec<Later<Response>>,
    answers: Vec<Response>,
}

impl Flood {
    fn begin(world: &World, fetches: i64) -> Self {
        let waiting = (0..fetches).map(|at| ask(world, at * 400 / fetches).answer).collect();
        Self { waiting, answers: Vec::new() }
    }

    /// Polls all that wait, and lets the disk work.
    fn turn(&mut self, world: &World) {
        for mut answer in std::mem::take(&mut self.waiting) {
            match world.poll_answer(&mut answer) {
                Some(response) => self.answers.push(response),
                None => self.waiting.push(answer),
            }
            let (_, memory) = world.state.storage.memory_bytes();
            let reading = world.state.memory.read(MemoryUse::Answer);
            assert!(reading.used <= reading.limit, "{reading:?}");
            let cached = world.state.storage.cached_bytes().1;
            assert!(memory <= cached + reading.used, "{memory}: {cached} and {}", reading.used);
        }
        world.flush();
    }
}

fn ask(world: &World, offset: i64) -> Pending {
    let mut request = fetch(vec![fetch_topic("big", &[(0, offset)])]);
    request.max_bytes = 55 << 20;
    request.topics[0].partitions[0].partition_max_bytes = 55 << 20;
    world.begin::<FetchRequest>(FETCH_BY_NAME, &request)
}

fn first_offset(response: &Response) -> i64 {
    let key = moldau_protocol::ApiKey::Fetch;
    let answer: FetchResponse = decoded(key, FETCH_BY_NAME, response);
    base_offsets(answer.responses[0].partitions[0].records.as_ref())[0]
}

/// 64 fetches that one connection sent ahead took 0.9 GB, and those of ten took 6 GB.
#[test]
fn unread_fetch_responses_stay_within_the_budget() {
    for tail_cache_bytes in [0, 16 * MIB] {
        let world = world(tail_cache_bytes);
        let mut flood = Flood::begin(&world, 200);
        (0..100).for_each(|_| flood.turn(&world));
        let (given, waiting) = (flood.answers.len(), flood.waiting.len());
        assert!(given >= 5 && waiting >= 100, "{given} were answered, {waiting} wait");
        let journal = world.state.storage.memory_bytes().0;
        assert!(journal <= tail_cache_bytes + 16 * MIB, "{journal} bytes of the journal");
        // Each that is taken makes room for the next.
        let mut first_offsets = Vec::new();
        for _ in 0..1000 {
            first_offsets.extend(flood.answers.drain(..).map(|answer| first_offset(&answer)));
            if flood.waiting.is_empty() {
                break;
            }
            flood.turn(&world);
        }
        first_offsets.sort_unstable();
        assert_eq!(first_offsets, (0..200).map(|at| at * 2).collect::<Vec<_>>());
        let used = MemoryUse::ALL.map(|of| world.state.memory.read(of).used);
        assert_eq!(used, [0; 3]);
    }
}

#[test]
fn a_batch_that_outgrew_the_memory_is_still_served() {
    let world = World::with(Drive::Threads, |config| {
        config.journal_file_bytes = 16 << 20;
        let defaults = config.topic_defaults.clone();
        config.topic_defaults = defaults.with("message.max.bytes", "20000000").unwrap();
    });
    world.create("big", 1);
    let records = batch(NOW_MS, &[&"x".repeat(8_000_000)]);
    world.append("big", 0, records.clone());
    let world = world.restarted_with(|config| config.memory_bytes = MEMORY_BYTES_MIN);
    assert!(world.state.memory.most(MemoryUse::Answer) < records.len());
    let answer = world.finish::<FetchRequest>(ask(&world, 0));
    let served = answer.responses[0].partitions[0].records.as_ref().map(bytes::Bytes::len);
    assert_eq!(served, Some(records.len()));
}

#[test]
fn a_batch_is_unpacked_once_there_is_memory_for_it() {
    let world = World::new();
    world.create_with("packed", 1, &[("compression.type", "gzip")]);
    let (memory, others) = (&world.state.memory, world.state.memory.account());
    let most = memory.most(MemoryUse::Work);
    let held: Vec<_> =
        std::iter::from_fn(|| others.try_acquire(MemoryUse::Work, most / 2)).collect();
    assert!(!held.is_empty());
    let request = produce("packed", 0, batch(NOW_MS, &["a"]));
    let pending = world.begin(PRODUCE_BY_NAME, &request);
    world.wait(async {
        while memory.read(MemoryUse::Work).waiting == 0 {
            tokio::task::yield_now().await;
        }
    });
    drop(held);
    let answer = world.finish::<ProduceRequest>(pending);
    assert_eq!(code(answer.responses[0].partition_responses[0].error_code), ErrorCode::None);
    assert_eq!(memory.read(MemoryUse::Work).used, 0);
}

#[test]
fn a_batch_that_unpacks_to_more_than_the_memory_is_too_large() {
    let text = "x".repeat(20 << 20);
    let records = batch_of(BatchOptions::default(), Compression::Gzip, &[(NOW_MS, &text)]);
    for (memory_bytes, expected) in
        [(1 << 30, ErrorCode::None), (MEMORY_BYTES_MIN, ErrorCode::MessageTooLarge)]
    {
        let world = World::with(Drive::Threads, |config| config.memory_bytes = memory_bytes);
        world.create("packed", 1);
        let answer = world.produce("packed", 0, records.clone());
        assert_eq!(code(answer.error_code), expected, "{memory_bytes}");
    }
}
