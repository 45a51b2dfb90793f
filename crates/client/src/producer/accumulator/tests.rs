//! The accumulator step by step: plans are made for chosen times, and answers by hand.

use std::time::Duration;

use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::BatchView;

use super::*;
use crate::metadata::{Leader, Partition, Topic};
use crate::wire::Address;

/// An accumulator with connected broker 1, which leads partitions 0 and 1 of topic `t`.
struct World {
    accumulator: Accumulator,
    metadata: Metadata,
    now: Instant,
    reports: Vec<Report>,
}

const BACKOFF_MAX: Duration = Duration::from_secs(1);

impl World {
    fn new(idempotent: bool, options: ProducerOptions) -> Self {
        let mut accumulator = Accumulator::new(options, ClusterOptions::default());
        if idempotent {
            accumulator.set_producer_id(7, 0);
        }
        accumulator.set_connected(1, true);
        let topic = TopicRef { name: "t".into(), id: Uuid::from_bytes([1; 16]) };
        let mut metadata = Metadata { generation: 1, ..Metadata::default() };
        metadata.brokers.insert(1, Address { host: "localhost".to_owned(), port: 9092 });
        let partition = |index| Partition {
            index,
            leader: Some(Leader { node: 1, epoch: 0 }),
            replicas: vec![1],
            in_sync: vec![1],
        };
        let partitions = vec![partition(0), partition(1)];
        let known = Topic { topic: topic.clone(), internal: false, partitions };
        metadata.topics.insert("t".into(), Arc::new(known));
        assert_eq!(accumulator.partition(&topic, 0), 0);
        assert_eq!(accumulator.partition(&topic, 1), 1);
        Self { accumulator, metadata, now: Instant::now(), reports: Vec::new() }
    }

    /// Options under which each record makes a batch that is sent at once.
    fn single_record_batches() -> ProducerOptions {
        ProducerOptions { linger: Duration::ZERO, batch_bytes: 1, ..ProducerOptions::default() }
    }

    fn append(&mut self, partition: usize, token: u64) -> Result<bool> {
        let value = Some(&b"value"[..]);
        let record = Record { token, timestamp: 1, key: None, value, headers: &[] };
        self.accumulator.append(partition, &record)
    }

    fn plan(&mut self) -> Plan {
        // Batches are opened by the real clock, so the time of a plan must not be before it.
        self.now = self.now.max(Instant::now());
        let mut plan = self.accumulator.plan(self.now, &self.metadata);
        self.reports.append(&mut plan.reports);
        plan
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now.max(Instant::now()) + by;
    }

    fn answer(&mut self, batch: &Outbound, outcome: Result<Appended>) {
        let Outbound { partition, serial, .. } = *batch;
        self.accumulator.returned(partition, serial, outcome, self.now, &mut self.reports);
    }

    fn ok(&mut self, batch: &Outbound) {
        let appended = Appended { base_offset: Some(0), log_append_time_ms: None };
        self.answer(batch, Ok(appended));
    }

    fn refuse(&mut self, batch: &Outbound, code: ErrorCode) {
        self.answer(batch, Err(Error::broker(code, "produce", None)));
    }

    /// Sends one record and has it acknowledged, so that the partition may have several batches
    /// in flight.
    fn establish(&mut self) {
        self.append(0, 1000).unwrap();
        let plan = self.plan();
        self.returned(&plan);
        self.ok(&plan.requests[0].1[0]);
        self.take_tokens();
    }

    fn returned(&mut self, plan: &Plan) {
        for (node, _) in &plan.requests {
            self.accumulator.request_returned(*node);
        }
    }

    fn take_tokens(&mut self) -> Vec<(u64, bool)> {
        let reports = std::mem::take(&mut self.reports);
        let tokens = reports
            .iter()
            .flat_map(|report| report.tokens.iter().map(|token| (*token, report.outcome.is_ok())))
            .collect();
        self.accumulator.recycle(reports);
        tokens
    }
}

fn batches(plan: &Plan) -> Vec<&Outbound> {
    plan.requests.iter().flat_map(|(_, batches)| batches).collect()
}

fn sequences(plan: &Plan) -> Vec<(i16, i32)> {
    batches(plan)
        .iter()
        .map(|batch| {
            let view = BatchView::parse(&batch.bytes).unwrap();
            view.check_crc().unwrap();
            (view.producer_epoch(), view.base_sequence())
        })
        .collect()
}

#[test]
fn batch_is_sent_after_its_linger() {
    let mut world = World::new(false, ProducerOptions::default());
    assert!(world.append(0, 1).unwrap());
    assert!(!world.append(0, 2).unwrap());
    let plan = world.plan();
    assert!(plan.requests.is_empty());
    assert!(plan.wake_at.is_some());
    world.advance(Duration::from_millis(5));
    let plan = world.plan();
    assert_eq!(batches(&plan).len(), 1);
    world.ok(batches(&plan)[0]);
    assert_eq!(world.take_tokens(), [(1, true), (2, true)]);
    assert!(world.accumulator.is_idle());
}

#[test]
fn full_batch_and_flush_do_not_linger() {
    let linger = Duration::from_secs(100);
    let options = ProducerOptions { linger, batch_bytes: 200, ..ProducerOptions::default() };
    let mut world = World::new(false, options);
    for token in 0..20 {
        world.append(0, token).unwrap();
    }
    assert_eq!(batches(&world.plan()).len(), 1);
    world.append(1, 100).unwrap();
    world.accumulator.begin_flush();
    assert_eq!(batches(&world.plan()).iter().filter(|batch| batch.index == 1).count(), 1);
}

#[test]
fn sealed_batch_does_not_linger_and_takes_no_more() {
    let options = ProducerOptions { linger: Duration::from_mins(1), ..ProducerOptions::default() };
    let mut world = World::new(false, options);
    world.append(0, 1).unwrap();
    assert!(world.plan().requests.is_empty());
    world.accumulator.seal(0).unwrap();
    world.append(0, 2).unwrap();
    let plan = world.plan();
    assert_eq!(batches(&plan).len(), 1);
    assert_eq!(world.accumulator.requests_made(), 1);
    world.ok(&plan.requests[0].1[0]);
    assert_eq!(world.take_tokens(), [(1, true)]);
}

#[test]
fn partitions_of_a_broker_share_a_request() {
    let mut world = World::new(true, World::single_record_batches());
    world.append(0, 1).unwrap();
    world.append(1, 2).unwrap();
    let plan = world.plan();
    assert_eq!(plan.requests.len(), 1);
    assert_eq!(plan.requests[0].1.len(), 2);
}

#[test]
fn first_batch_of_a_partition_is_sent_alone() {
    let mut world = World::new(true, World::single_record_batches());
    for token in 0..4 {
        world.append(0, token).unwrap();
    }
    let first = world.plan();
    assert_eq!(sequences(&first), [(0, 0)]);
    assert!(world.plan().requests.is_empty());
    world.returned(&first);
    world.ok(batches(&first)[0]);
    assert_eq!(sequences(&world.plan()), [(0, 1), (0, 2), (0, 3)]);
}

#[test]
fn requests_in_flight_are_bounded() {
    let options = ProducerOptions { in_flight_max: 2, ..World::single_record_batches() };
    let mut world = World::new(true, options);
    world.establish();
    for token in 0..5 {
        world.append(0, token).unwrap();
    }
    let plan = world.plan();
    assert_eq!(plan.requests.len(), 2);
    assert!(world.plan().requests.is_empty());
    world.accumulator.request_returned(1);
    world.ok(batches(&plan)[0]);
    assert_eq!(world.plan().requests.len(), 1);
}

/// Under a backlog each request began with the same partitions, and records of those that found no
/// place in it waited until the backlog was gone: at 950 MB/s up to 0.3 s, of 2 ms for the others.
#[test]
fn partitions_that_found_no_place_in_a_request_come_first_in_the_next() {
    let request_bytes_max = 2 * BATCH_HEADER_LEN;
    let single = World::single_record_batches();
    let options = ProducerOptions { in_flight_max: 1, request_bytes_max, ..single };
    let mut world = World::new(false, options);
    for token in 0..8 {
        world.append(token % 2, token as u64).unwrap();
    }
    let mut order = Vec::new();
    while order.len() < 8 {
        let plan = world.plan();
        let [(_, batches)] = plan.requests.as_slice() else { panic!("{:?}", plan.requests) };
        let [batch] = batches.as_slice() else { panic!("{batches:?}") };
        order.push(batch.partition);
        world.returned(&plan);
        world.ok(batch);
    }
    assert_eq!(order, [0, 1, 0, 1, 0, 1, 0, 1]);
    let tokens: Vec<u64> = world.take_tokens().into_iter().map(|(token, _)| token).collect();
    assert_eq!(tokens, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn retries_keep_the_order_and_the_sequence_numbers() {
    let mut world = World::new(true, World::single_record_batches());
    world.establish();
    for token in 0..4 {
        world.append(0, token).unwrap();
    }
    let plan = world.plan();
    world.returned(&plan);
    let sent = batches(&plan);
    assert_eq!(sequences(&plan), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    world.refuse(sent[0], ErrorCode::NotLeaderOrFollower);
    assert!(world.plan().requests.is_empty(), "nothing overtakes while others are in flight");
    for batch in &sent[1..] {
        world.refuse(batch, ErrorCode::OutOfOrderSequenceNumber);
    }
    let waiting = world.plan();
    assert!(waiting.requests.is_empty() && waiting.wake_at.is_some());
    world.advance(BACKOFF_MAX);
    assert_eq!(sequences(&world.plan()), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    assert!(world.take_tokens().is_empty());
}

#[test]
fn batches_behind_a_refused_one_take_its_sequence_numbers() {
    let mut world = World::new(true, World::single_record_batches());
    world.establish();
    for token in 0..3 {
        world.append(0, token).unwrap();
    }
    let plan = world.plan();
    world.returned(&plan);
    let sent = batches(&plan);
    world.refuse(sent[0], ErrorCode::MessageTooLarge);
    world.refuse(sent[1], ErrorCode::OutOfOrderSequenceNumber);
    world.refuse(sent[2], ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(world.take_tokens(), [(0, false)]);
    assert_eq!(sequences(&world.plan()), [(0, 1), (0, 2)]);
}

#[test]
fn duplicate_counts_as_delivered() {
    let mut world = World::new(true, World::single_record_batches());
    world.append(0, 1).unwrap();
    let plan = world.plan();
    world.refuse(batches(&plan)[0], ErrorCode::DuplicateSequenceNumber);
    assert_eq!(world.take_tokens(), [(1, true)]);
}

#[test]
fn lost_sequence_leads_to_a_fresh_epoch_from_zero() {
    let mut world = World::new(true, World::single_record_batches());
    world.establish();
    world.append(0, 1).unwrap();
    world.append(0, 2).unwrap();
    let plan = world.plan();
    world.returned(&plan);
    let sent = batches(&plan);
    world.refuse(sent[0], ErrorCode::OutOfOrderSequenceNumber);
    let waiting = world.plan();
    assert!(waiting.requests.is_empty() && !waiting.needs_producer_id);
    world.refuse(sent[1], ErrorCode::OutOfOrderSequenceNumber);
    assert!(world.plan().needs_producer_id);
    assert!(world.accumulator.set_producer_id(7, 1).is_empty());
    assert_eq!(sequences(&world.plan()), [(1, 0)]);
}

#[test]
fn batch_of_unknown_fate_is_reported_when_its_time_is_up() {
    let options = ProducerOptions {
        delivery_timeout: Duration::from_secs(10),
        ..World::single_record_batches()
    };
    let mut world = World::new(true, options);
    world.establish();
    world.append(0, 1).unwrap();
    let plan = world.plan();
    world.returned(&plan);
    let gone = Error::Disconnected { address: "b".into(), reason: "gone".into() };
    world.answer(batches(&plan)[0], Err(gone));
    world.append(0, 2).unwrap();
    world.advance(Duration::from_secs(9));
    world.accumulator.set_connected(1, false);
    assert!(world.plan().reports.is_empty() && world.take_tokens().is_empty());
    world.advance(Duration::from_secs(2));
    world.plan();
    assert!(world.take_tokens().contains(&(1, false)));
    assert!(world.plan().needs_producer_id, "its sequence number may be taken or not");
}

/// A task that waited for all outcomes waited for ever.
#[test]
fn a_batch_that_never_gets_its_turn_is_given_up_too() {
    let delivery_timeout = Duration::from_secs(10);
    let mut world =
        World::new(false, ProducerOptions { delivery_timeout, ..ProducerOptions::default() });
    world.append(0, 1).unwrap();
    world.metadata.topics.clear();
    world.metadata.generation += 1;
    world.advance(Duration::from_secs(9));
    let plan = world.plan();
    assert!(plan.requests.is_empty() && plan.needs_metadata);
    let left = plan.wake_at.unwrap() - world.now;
    assert!(left <= Duration::from_secs(1), "{left:?}");
    assert_eq!(world.take_tokens(), []);
    world.advance(Duration::from_secs(2));
    world.plan();
    assert_eq!(world.take_tokens(), [(1, false)]);
    assert!(world.accumulator.is_idle());
}

/// The broker had the first one, and took it again under another sequence number.
#[test]
fn a_batch_that_waits_ahead_of_a_refused_one_keeps_its_sequence_number() {
    let mut world = World::new(true, World::single_record_batches());
    world.establish();
    for token in 1..=3 {
        world.append(0, token).unwrap();
    }
    let plan = world.plan();
    assert_eq!(sequences(&plan), [(0, 1), (0, 2), (0, 3)]);
    let [first, second, third] = batches(&plan)[..] else { panic!("{plan:?}") };
    world.returned(&plan);
    let gone = Error::Disconnected { address: "b".into(), reason: "gone".into() };
    world.answer(first, Err(gone));
    world.refuse(second, ErrorCode::InvalidRecord);
    world.refuse(third, ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(world.take_tokens(), [(2, false)]);
    world.advance(BACKOFF_MAX);
    let mut sent = Vec::new();
    for _ in 0..2 {
        let plan = world.plan();
        world.returned(&plan);
        sent.extend(sequences(&plan));
        batches(&plan).into_iter().for_each(|batch| world.ok(batch));
    }
    assert_eq!(sent, [(0, 1), (0, 2)]);
    assert_eq!(world.take_tokens(), [(1, true), (3, true)]);
}

/// What was waited for was less than what is asked for, and the wait over at once.
#[test]
fn room_for_a_record_is_room_that_takes_it() {
    let options =
        ProducerOptions { buffer_bytes_max: 500, batch_bytes: 200, ..ProducerOptions::default() };
    let mut world = World::new(false, options);
    let value = [b'v'; 5];
    let record = Record { token: 0, timestamp: 1, key: None, value: Some(&value), headers: &[] };
    let mut sent = 0;
    while world.accumulator.has_room(Accumulator::takes(&record)) {
        world.append(0, sent).unwrap();
        sent += 1;
    }
    assert!(sent > 0 && matches!(world.append(0, sent), Err(Error::BufferFull)));
    assert!(world.accumulator.has_room(value.len()), "or the test shows nothing");
}

#[test]
fn buffer_limit_refuses_and_frees() {
    let options =
        ProducerOptions { buffer_bytes_max: 500, batch_bytes: 200, ..ProducerOptions::default() };
    let mut world = World::new(false, options);
    let mut sent = 0;
    let refused = loop {
        match world.append(0, sent) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::BufferFull));
    assert!(world.accumulator.buffered_bytes() <= 500);
    while world.accumulator.buffered_bytes() > 0 {
        let plan = world.plan();
        world.returned(&plan);
        for batch in batches(&plan) {
            world.ok(batch);
        }
    }
    world.append(0, 1).unwrap();
}

#[test]
fn record_above_the_request_limit_is_refused() {
    let options = ProducerOptions { request_bytes_max: 1000, ..ProducerOptions::default() };
    let mut world = World::new(false, options);
    let value = [0; 1000];
    let record = Record { token: 0, timestamp: 1, key: None, value: Some(&value), headers: &[] };
    let refused = world.accumulator.append(0, &record).unwrap_err();
    assert!(matches!(refused, Error::RecordTooLarge { .. }));
    assert_eq!(world.accumulator.buffered_bytes(), 0);
}

#[test]
fn unconnected_or_unknown_leader_is_asked_for() {
    let mut world = World::new(false, World::single_record_batches());
    world.accumulator.set_connected(1, false);
    world.append(0, 1).unwrap();
    assert_eq!(world.plan().unconnected, [1]);
    world.metadata.brokers.clear();
    world.metadata.generation += 1;
    assert!(world.plan().needs_metadata);
}

#[test]
fn records_of_a_transactional_producer_need_an_open_transaction() {
    let transactional_id = Some("mine".to_owned());
    let options = ProducerOptions { transactional_id, ..World::single_record_batches() };
    let mut world = World::new(true, options);
    assert!(matches!(world.append(0, 1), Err(Error::NoTransaction)));
    world.accumulator.set_transaction(Transaction::Open);
    world.append(0, 1).unwrap();
    let plan = world.plan();
    let [(_, batches)] = plan.requests.as_slice() else { panic!("{plan:?}") };
    let [batch] = batches.as_slice() else { panic!("{batches:?}") };
    assert!(BatchView::parse(&batch.bytes).unwrap().is_transactional());
    // A batch that is refused leaves nothing to commit.
    let refused = Err(Error::broker(ErrorCode::InvalidTxnState, "produce", None));
    let Outbound { partition, serial, .. } = *batch;
    let (now, reports) = (world.now, &mut world.reports);
    world.accumulator.returned(partition, serial, refused, now, reports);
    assert_eq!(world.accumulator.transaction(), Transaction::Failed);
    assert!(matches!(world.append(0, 2), Err(Error::NoTransaction)));
}

#[test]
fn a_producer_that_was_fenced_does_not_fence_its_successor() {
    let options = ProducerOptions {
        transactional_id: Some("orders".into()),
        ..World::single_record_batches()
    };
    let mut world = World::new(true, options);
    world.accumulator.set_transaction(Transaction::Open);
    world.append(0, 1).unwrap();
    let plan = world.plan();
    world.returned(&plan);
    world.refuse(batches(&plan)[0], ErrorCode::InvalidProducerEpoch);
    assert_eq!(world.take_tokens(), [(1, false)]);
    assert!(!world.plan().needs_producer_id);
    assert_eq!(world.accumulator.transaction(), Transaction::Failed);
}

/// A fresh epoch ends the transaction at the coordinator, so that a commit would have kept the end
/// of it and not its beginning.
#[test]
fn a_transaction_that_lost_a_sequence_number_fails_and_has_its_epoch_renewed_behind_it() {
    let options = ProducerOptions {
        transactional_id: Some("orders".into()),
        ..World::single_record_batches()
    };
    let mut world = World::new(true, options);
    world.accumulator.set_transaction(Transaction::Open);
    world.establish();
    for token in [1, 2, 3] {
        world.append(0, token).unwrap();
    }
    let plan = world.plan();
    assert_eq!(batches(&plan).len(), 3);
    world.append(1, 4).unwrap();
    world.returned(&plan);
    for batch in batches(&plan) {
        world.refuse(batch, ErrorCode::OutOfOrderSequenceNumber);
    }
    assert_eq!(world.accumulator.transaction(), Transaction::Failed);
    let after = world.plan();
    assert!(after.requests.is_empty() && !after.needs_producer_id, "{after:?}");
    let mut tokens = world.take_tokens();
    tokens.sort_unstable();
    assert_eq!(tokens, [1, 2, 3, 4].map(|token| (token, false)));
    assert!(world.accumulator.is_idle() && world.accumulator.is_producer_lost());
    // As the end of the transaction does.
    assert!(world.accumulator.set_producer_id(7, 1).is_empty());
    world.accumulator.set_transaction(Transaction::Open);
    assert!(world.append(0, 5).unwrap(), "append must wake the sending task");
    assert_eq!(sequences(&world.plan()), [(1, 0)]);
}
