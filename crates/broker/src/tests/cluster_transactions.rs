//! Transactions in a cluster: producers at any broker, one of which coordinates.

use std::sync::atomic::Ordering;
use std::time::Duration;

use moldau_cluster::{
    BatchEntry, Commit, LogId, ObjectKey, Outcome, Part, ProducerBatch, Refusal, Sequencer,
};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_producers_request::TopicRequest;
use moldau_protocol::messages::{
    DescribeProducersRequest, DescribeTransactionsRequest, EndTxnRequest, FindCoordinatorRequest,
    InitProducerIdRequest, ListOffsetsRequest, ListTransactionsRequest,
};
use moldau_storage::block_on;

use super::clusters::{Cluster, eventually};
use super::requests::list_offsets;
use super::transactions::{END_V1, END_V2, Owner, PRODUCE_V1, end_request, init_request};
use super::world::{NOW_MS, World, base_offsets, code, sequenced};
use crate::upkeep::Rounds;

/// The version of Produce that names topics and adds partitions to transactions.
const PRODUCE_V2: i16 = 12;

fn cluster() -> Cluster {
    let cluster = Cluster::of(2);
    cluster.create("orders", 2);
    cluster
}

/// Writes at this broker, once it has heard of the producer.
fn write(world: &World, version: i16, owner: Owner, partition: i32, sequence: i32) {
    eventually(|| match world.write(version, owner, partition, sequence) {
        ErrorCode::NotEnoughReplicas => false,
        code => {
            assert_eq!(code, ErrorCode::None);
            true
        }
    });
}

fn last_stable(world: &World, partition: i32) -> i64 {
    let committed =
        ListOffsetsRequest { isolation_level: 1, ..list_offsets("orders", partition, -1) };
    world.ask(&committed).topics[0].partitions[0].offset
}

#[test]
fn records_that_all_brokers_took_are_committed_or_aborted_together() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let mut owner = first.init("t");
    for (round, commits) in [true, false].into_iter().enumerate() {
        // A record and a marker of each round before.
        let start = 2 * i64::try_from(round).unwrap();
        write(first, PRODUCE_V2, owner, 0, 0);
        write(second, PRODUCE_V2, owner, 1, 0);
        for world in cluster.worlds() {
            for partition in [0, 1] {
                let open = world.committed_from(partition, start);
                assert!(base_offsets(open.records.as_ref()).is_empty());
                assert_eq!((open.last_stable_offset, open.high_watermark), (start, start + 1));
                assert_eq!(last_stable(world, partition), start);
            }
        }
        owner = first.ended(END_V2, owner, commits);
        for world in cluster.worlds() {
            for partition in [0, 1] {
                let ended = world.committed_from(partition, start);
                assert_eq!(base_offsets(ended.records.as_ref()), [start, start + 1]);
                assert_eq!(ended.last_stable_offset, start + 2);
                let aborted = ended.aborted_transactions.unwrap();
                assert_eq!(aborted.is_empty(), commits, "{aborted:?}");
                assert_eq!(last_stable(world, partition), start + 2);
            }
        }
    }
}

#[test]
fn producers_of_the_older_protocol_keep_their_epoch_over_transactions() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let owner = first.init("t");
    assert_eq!(second.add(owner, "orders", &[0]), [ErrorCode::NotCoordinator]);
    for (sequence, start) in [(0, 0), (1, 2)] {
        assert_eq!(first.add(owner, "orders", &[0]), [ErrorCode::None]);
        write(second, PRODUCE_V1, owner, 0, sequence);
        assert_eq!(last_stable(first, 0), start);
        first.ended(END_V1, owner, true);
        assert_eq!(last_stable(second, 0), start + 2);
        assert_eq!(code(first.end(END_V1, owner, true).error_code), ErrorCode::None, "a retry");
    }
}

#[test]
fn offsets_become_those_of_the_group_with_the_commit_at_the_coordinator_alone() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let found = second.ask(&FindCoordinatorRequest {
        key_type: 1,
        coordinator_keys: vec!["t".to_owned()],
        ..FindCoordinatorRequest::default()
    });
    assert_eq!((found.coordinators[0].error_code, found.coordinators[0].node_id), (0, 1));
    let refused = second.ask(&init_request("t"));
    assert_eq!(code(refused.error_code), ErrorCode::NotCoordinator);
    let owner = first.init("t");
    assert_eq!(second.pend(5, owner, 7), ErrorCode::NotCoordinator);
    assert_eq!(first.pend(5, owner, 7), ErrorCode::None);
    assert_eq!(code(first.stable_offset(true).error_code), ErrorCode::UnstableOffsetCommit);
    let refused = second.end(END_V2, owner, true);
    assert_eq!(code(refused.error_code), ErrorCode::NotCoordinator);
    first.ended(END_V2, owner, true);
    assert_eq!(first.stable_offset(true).committed_offset, 7);
}

#[test]
fn a_producer_that_was_replaced_can_neither_write_nor_commit() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let before = first.init("t");
    write(second, PRODUCE_V2, before, 0, 0);
    let owner = first.init("t");
    assert_eq!(last_stable(second, 0), 2, "its transaction was aborted");
    for partition in [0, 1] {
        let refused = second.write(PRODUCE_V2, before, partition, 1);
        assert_eq!(refused, ErrorCode::InvalidProducerEpoch);
    }
    let refused = first.end(END_V2, before, true);
    assert_eq!(code(refused.error_code), ErrorCode::ProducerFenced);
    write(second, PRODUCE_V2, owner, 1, 0);
    first.ended(END_V2, owner, true);
    assert_eq!(last_stable(first, 1), 2);
}

#[test]
fn a_batch_that_comes_behind_the_end_of_its_transaction_opens_no_other() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let owner = first.init("t");
    write(first, PRODUCE_V2, owner, 0, 0);
    first.ended(END_V2, owner, false);
    eventually(|| match second.write(PRODUCE_V2, owner, 1, 0) {
        ErrorCode::NotEnoughReplicas => false,
        code => {
            assert_eq!(code, ErrorCode::InvalidProducerEpoch);
            true
        }
    });
    assert_eq!(last_stable(second, 1), 0);
    assert_eq!(second.fetch("orders", 1, 0).high_watermark, 0);
}

#[test]
fn the_controller_aborts_what_takes_too_long_though_only_another_broker_took_it() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let init = InitProducerIdRequest { transaction_timeout_ms: 100, ..init_request("t") };
    let given = first.ask(&init);
    let owner = Owner { id: given.producer_id, epoch: given.producer_epoch };
    write(second, PRODUCE_V2, owner, 1, 0);
    eventually(|| last_stable(second, 1) == 2);
    let aborted = second.committed_from(1, 0).aborted_transactions.unwrap();
    assert_eq!(aborted.len(), 1);
    let refused = first.end(END_V2, owner, true);
    assert_eq!(code(refused.error_code), ErrorCode::ProducerFenced);
}

#[test]
fn a_commit_is_finished_by_the_next_controller_where_the_first_one_ends_before_the_markers() {
    let mut cluster = cluster();
    let owner = cluster.world(1).init("t");
    write(cluster.world(1), PRODUCE_V2, owner, 0, 0);
    write(cluster.world(2), PRODUCE_V2, owner, 1, 0);
    cluster.store.is_away.store(true, Ordering::SeqCst);
    let mut ending = cluster.world(1).begin::<EndTxnRequest>(END_V2, &end_request(owner, true));
    eventually(|| {
        assert!(!cluster.world(1).poll(&mut ending), "its markers cannot be written");
        // The frame is durable if the other broker has read it.
        cluster.world(2).state.transactions.view(|known| known.is_unmarked("t"))
    });
    drop(ending);
    drop(cluster.brokers.remove(0));
    cluster.store.is_away.store(false, Ordering::SeqCst);
    let second = cluster.world(1);
    eventually(|| second.state.storage.decides());
    eventually(|| last_stable(second, 0) == 2 && last_stable(second, 1) == 2);
    for partition in [0, 1] {
        let committed = second.committed_from(partition, 0);
        assert_eq!(base_offsets(committed.records.as_ref()), [0, 1]);
        assert!(committed.aborted_transactions.unwrap().is_empty());
    }
    // The producer asks again, and goes on.
    let mut next = None;
    eventually(|| {
        let answer = second.end(END_V2, owner, true);
        next = Some(Owner { id: answer.producer_id, epoch: answer.producer_epoch });
        code(answer.error_code) == ErrorCode::None
    });
    write(second, PRODUCE_V2, next.unwrap(), 0, 0);
    second.ended(END_V2, next.unwrap(), false);
    assert_eq!(last_stable(second, 0), 4);
}

#[test]
fn the_next_controller_knows_a_transaction_that_no_frame_tells_of() {
    let mut cluster = cluster();
    let owner = cluster.world(1).init("t");
    write(cluster.world(2), PRODUCE_V2, owner, 1, 0);
    drop(cluster.brokers.remove(0));
    let second = cluster.world(1);
    eventually(|| second.state.storage.decides());
    second.ended(END_V2, owner, true);
    let committed = second.committed_from(1, 0);
    assert_eq!(base_offsets(committed.records.as_ref()), [0, 1]);
    assert!(committed.aborted_transactions.unwrap().is_empty());
}

#[test]
fn tools_see_the_transactions_of_the_cluster() {
    let cluster = cluster();
    let (first, second) = (cluster.world(1), cluster.world(2));
    let owner = first.init("t");
    write(second, PRODUCE_V2, owner, 1, 0);
    let describe = DescribeTransactionsRequest {
        transactional_ids: vec!["t".to_owned()],
        ..DescribeTransactionsRequest::default()
    };
    eventually(|| first.ask(&describe).transaction_states[0].transaction_state == "Ongoing");
    let topics = &first.ask(&describe).transaction_states[0].topics;
    assert_eq!((topics[0].topic.as_str(), topics[0].partitions.as_slice()), ("orders", &[1][..]));
    let elsewhere = second.ask(&describe).transaction_states.remove(0);
    assert_eq!(code(elsewhere.error_code), ErrorCode::NotCoordinator);
    let listed = |world: &World| world.ask(&ListTransactionsRequest::default()).transaction_states;
    assert_eq!((listed(first).len(), listed(second).len()), (1, 0));
    for world in cluster.worlds() {
        let topic = TopicRequest {
            name: "orders".to_owned(),
            partition_indexes: vec![1],
            ..TopicRequest::default()
        };
        let asked =
            DescribeProducersRequest { topics: vec![topic], ..DescribeProducersRequest::default() };
        let known = world.ask(&asked).topics.remove(0).partitions.remove(0).active_producers;
        let start = known[0].current_txn_start_offset;
        assert_eq!((known[0].producer_id, start, known.len()), (owner.id, 0, 1));
    }
}

#[test]
fn producers_that_were_silent_for_a_day_are_forgotten() {
    let cluster = cluster();
    let (log, world) = (log(&cluster, 0), cluster.world(1));
    let id = world.producer_id().producer_id;
    assert_eq!(world.append("orders", 0, sequenced(id, 0, 0, &["a"])), 0);
    // More than are looked at together.
    let others: Vec<_> = (0..1_100).map(|other| entry(log, other, 0, Part::Outside)).collect();
    let commit = Commit { key: ObjectKey::fresh(), batches: others };
    block_on(cluster.memory.commit(&commit)).unwrap();
    let known = || block_on(cluster.memory.producers(log)).unwrap().len();
    let hour = |number: i64| NOW_MS + number * 3_600_000;
    let mut rounds = Rounds::default();
    cluster.memory.pass(Duration::from_hours(23));
    cluster.keep_up(&mut rounds, hour(23));
    assert_eq!(known(), 1_101);
    assert_eq!(world.append("orders", 0, sequenced(id, 0, 1, &["b"])), 1_101);
    cluster.memory.pass(Duration::from_hours(1));
    cluster.keep_up(&mut rounds, hour(24) - 1);
    assert_eq!(known(), 1_101, "it looks once an hour");
    cluster.keep_up(&mut rounds, hour(24));
    assert_eq!(known(), 1, "only the one that wrote since is known");
    cluster.memory.pass(Duration::from_hours(23));
    cluster.keep_up(&mut rounds, hour(47));
    assert_eq!(known(), 0);
    assert_eq!(world.append("orders", 0, sequenced(id, 0, 2, &["c"])), 1_102);
}

#[test]
fn what_an_expired_transactional_id_leaves_is_removed_and_its_late_transaction_aborted() {
    let cluster = Cluster::with(2, |config| config.transactions.id_expiration_ms = 1);
    cluster.create("orders", 2);
    let first = cluster.world(1);
    let owner = first.init("t");
    eventually(|| first.state.transactions.view(|known| known.describe("t").is_none()));
    block_on(cluster.memory.fence(owner.id, owner.epoch)).unwrap();
    // A broker that was paused does not know that yet.
    let late = || entry(log(&cluster, 1), owner.id, owner.epoch, Part::Inside);
    let commit = || Commit { key: ObjectKey::fresh(), batches: vec![late()] };
    block_on(cluster.memory.commit(&commit())).unwrap();
    assert_eq!(last_stable(first, 1), 0);
    cluster.keep_up(&mut Rounds::default(), NOW_MS);
    assert_eq!(last_stable(first, 1), 2);
    assert_eq!(block_on(cluster.memory.fences(None, 9)).unwrap(), [0; 0]);
    let refused = block_on(cluster.memory.commit(&commit())).unwrap();
    assert_eq!(refused, [Outcome::Refused(Refusal::InvalidProducerEpoch)]);
}

#[test]
fn what_belongs_to_a_transactional_id_stays() {
    let cluster = cluster();
    let first = cluster.world(1);
    let owner = first.init("t");
    write(first, PRODUCE_V2, owner, 0, 0);
    let owner = first.ended(END_V2, owner, true);
    write(first, PRODUCE_V2, owner, 1, 0);
    cluster.keep_up(&mut Rounds::default(), NOW_MS);
    assert_eq!(block_on(cluster.memory.fences(None, 9)).unwrap(), [owner.id]);
    assert_eq!(last_stable(first, 1), 0, "its transaction is open");
    first.ended(END_V2, owner, true);
    assert_eq!(last_stable(first, 1), 2);
}

/// It does not know the transactional ids of the next controller.
#[test]
fn a_controller_that_was_paused_removes_nothing_of_producers() {
    let cluster = cluster();
    let first = cluster.world(1);
    block_on(cluster.memory.fence(7, 1)).unwrap();
    let open = entry(log(&cluster, 1), 7, 1, Part::Inside);
    let commit = Commit { key: ObjectKey::fresh(), batches: vec![open] };
    block_on(cluster.memory.commit(&commit)).unwrap();
    let owned = cluster.memory.take_over(9, "test:1");
    assert!(first.state.storage.decides(), "it does not know it yet");
    cluster.keep_up(&mut Rounds::default(), NOW_MS);
    assert_eq!(block_on(cluster.memory.fences(None, 9)).unwrap(), [7]);
    assert_eq!(last_stable(cluster.world(2), 1), 0);
    drop(owned);
    eventually(|| cluster.worlds().any(|world| world.state.storage.decides()));
    cluster.keep_up(&mut Rounds::default(), NOW_MS);
    assert_eq!(block_on(cluster.memory.fences(None, 9)).unwrap(), [0; 0]);
    assert_eq!(last_stable(cluster.world(2), 1), 2);
}

fn log(cluster: &Cluster, partition: i32) -> LogId {
    let topic = cluster.world(1).state.catalog.by_name("orders").unwrap().id;
    LogId { topic: uuid::Uuid::from_bytes(topic.into_bytes()), partition }
}

/// A batch that a broker committed.
fn entry(log: LogId, id: i64, epoch: i16, part: Part) -> BatchEntry {
    let producer = ProducerBatch { id, epoch, first_sequence: 0, last_sequence: 0 };
    BatchEntry {
        log,
        leader_epoch: -1,
        position: 0,
        size: 100,
        offsets_count: 1,
        max_timestamp: NOW_MS,
        producer: Some(producer),
        part,
    }
}
