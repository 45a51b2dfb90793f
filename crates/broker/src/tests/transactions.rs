//! Transactions, from the first request to what consumers see.

use bytes::Bytes;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use moldau_protocol::messages::describe_producers_request::TopicRequest;
use moldau_protocol::messages::fetch_response::PartitionData;
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::offset_fetch_response::OffsetFetchResponsePartitions;
use moldau_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use moldau_protocol::messages::write_txn_markers_request::{
    WritableTxnMarker, WritableTxnMarkerTopic,
};
use moldau_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, ApiVersionsRequest, DeleteRecordsRequest,
    DescribeProducersRequest, DescribeTransactionsRequest, EndTxnRequest, EndTxnResponse,
    FetchRequest, InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest,
    ListTransactionsRequest, OffsetFetchRequest, ProduceRequest, TxnOffsetCommitRequest,
    WriteTxnMarkersRequest, delete_records_request,
};
use moldau_records::{Attributes, BatchOptions, Compression, Producer, iter_batches};
use moldau_storage::Drive;

use super::requests::{
    FETCH_BY_NAME, PRODUCE_BY_NAME, fetch, fetch_topic, list_offsets, only, produce,
};
use super::versions::each;
use super::world::{NOW_MS, World, base_offsets, batch, batch_of, code, unknown_id};
use crate::config::TransactionSettings;

/// Versions of the two protocols.
pub(super) const PRODUCE_V1: i16 = 11;
pub(super) const END_V1: i16 = 4;
pub(super) const END_V2: i16 = 5;
/// The last version of AddPartitionsToTxn for clients.
const ADD_CLIENT: i16 = 3;

/// A transactional producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

pub(super) fn init_request(id: &str) -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: Some(id.to_owned()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..InitProducerIdRequest::default()
    }
}

fn owner(response: &InitProducerIdResponse) -> Owner {
    assert_eq!(code(response.error_code), ErrorCode::None);
    Owner { id: response.producer_id, epoch: response.producer_epoch }
}

fn part(owner: Owner, base_sequence: i32, value: &str) -> Bytes {
    let producer = Some(Producer { id: owner.id, epoch: owner.epoch, base_sequence });
    let attributes = Attributes::default().with_transactional(true);
    let options = BatchOptions { attributes, producer, ..BatchOptions::default() };
    batch_of(options, Compression::None, &[(NOW_MS, value)])
}

impl World {
    pub(super) fn init(&self, id: &str) -> Owner {
        owner(&self.ask(&init_request(id)))
    }

    /// Appends a batch of the transaction `t` to a partition of `orders`.
    pub(super) fn write(&self, version: i16, owner: Owner, index: i32, sequence: i32) -> ErrorCode {
        let records = part(owner, sequence, &format!("{}-{sequence}", owner.epoch));
        let request = ProduceRequest {
            transactional_id: Some("t".to_owned()),
            ..produce("orders", index, records)
        };
        let mut response = self.ask_in(version, &request);
        let partition = response.responses.remove(0).partition_responses.remove(0);
        code(partition.error_code)
    }

    pub(super) fn add(&self, owner: Owner, topic: &str, partitions: &[i32]) -> Vec<ErrorCode> {
        let topics = vec![AddPartitionsToTxnTopic {
            name: topic.to_owned(),
            partitions: partitions.to_vec(),
            ..AddPartitionsToTxnTopic::default()
        }];
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: "t".to_owned(),
            v3_and_below_producer_id: owner.id,
            v3_and_below_producer_epoch: owner.epoch,
            v3_and_below_topics: topics,
            ..AddPartitionsToTxnRequest::default()
        };
        let response = self.ask_in(ADD_CLIENT, &request);
        let topics = response.results_by_topic_v3_and_below.into_iter();
        let partitions = topics.flat_map(|topic| topic.results_by_partition);
        partitions.map(|partition| code(partition.partition_error_code)).collect()
    }

    pub(super) fn end(&self, version: i16, owner: Owner, committed: bool) -> EndTxnResponse {
        self.ask_in(version, &end_request(owner, committed))
    }

    pub(super) fn ended(&self, version: i16, owner: Owner, committed: bool) -> Owner {
        let response = self.end(version, owner, committed);
        assert_eq!(code(response.error_code), ErrorCode::None);
        match version {
            END_V2 => Owner { id: response.producer_id, epoch: response.producer_epoch },
            _ => owner,
        }
    }

    /// What a consumer of committed records is sent of a partition of `orders`.
    pub(super) fn committed_from(&self, partition: i32, offset: i64) -> PartitionData {
        let request = FetchRequest {
            isolation_level: 1,
            ..fetch(vec![fetch_topic("orders", &[(partition, offset)])])
        };
        only(&mut self.ask_in(FETCH_BY_NAME, &request))
    }

    /// The same, once there is anything.
    fn next_committed(&self, partition: i32) -> PartitionData {
        only(&mut self.ask_in(FETCH_BY_NAME, &waiting_fetch(partition)))
    }

    pub(super) fn pend(&self, version: i16, owner: Owner, offset: i64) -> ErrorCode {
        let response = self.ask_in(version, &offsets_request(owner, offset));
        code(response.topics[0].partitions[0].error_code)
    }

    pub(super) fn stable_offset(&self, require_stable: bool) -> OffsetFetchResponsePartitions {
        let topic = OffsetFetchRequestTopics {
            name: "orders".to_owned(),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopics::default()
        };
        let group = OffsetFetchRequestGroup {
            group_id: "readers".to_owned(),
            topics: Some(vec![topic]),
            ..OffsetFetchRequestGroup::default()
        };
        let groups = vec![group];
        let request = OffsetFetchRequest { groups, require_stable, ..Default::default() };
        self.ask_in(9, &request).groups.remove(0).topics.remove(0).partitions.remove(0)
    }
}

/// A fetch of committed records of a partition of `orders` that waits for the first.
fn waiting_fetch(partition: i32) -> FetchRequest {
    FetchRequest {
        isolation_level: 1,
        min_bytes: 1,
        max_wait_ms: 60_000,
        ..fetch(vec![fetch_topic("orders", &[(partition, 0)])])
    }
}

pub(super) fn end_request(owner: Owner, committed: bool) -> EndTxnRequest {
    EndTxnRequest {
        transactional_id: "t".to_owned(),
        producer_id: owner.id,
        producer_epoch: owner.epoch,
        committed,
        ..EndTxnRequest::default()
    }
}

fn offsets_request(owner: Owner, offset: i64) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        ..TxnOffsetCommitRequestPartition::default()
    };
    TxnOffsetCommitRequest {
        transactional_id: "t".to_owned(),
        group_id: "readers".to_owned(),
        producer_id: owner.id,
        producer_epoch: owner.epoch,
        generation_id_or_member_epoch: -1,
        topics: vec![TxnOffsetCommitRequestTopic {
            name: "orders".to_owned(),
            partitions: vec![partition],
            ..TxnOffsetCommitRequestTopic::default()
        }],
        ..TxnOffsetCommitRequest::default()
    }
}

/// Asks every version of the APIs of transactions.
pub(super) fn ask_about_transactions(world: &World) {
    each(world, |version| InitProducerIdRequest {
        producer_id: if version < 3 { -1 } else { 7 },
        producer_epoch: if version < 3 { -1 } else { 0 },
        ..init_request("t")
    });
    let owner = world.init("t");
    let topics = vec![AddPartitionsToTxnTopic {
        name: "orders".to_owned(),
        partitions: vec![0, 9],
        ..AddPartitionsToTxnTopic::default()
    }];
    each(world, |version| match version {
        ..=ADD_CLIENT => AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: "t".to_owned(),
            v3_and_below_producer_id: owner.id,
            v3_and_below_producer_epoch: owner.epoch,
            v3_and_below_topics: topics.clone(),
            ..AddPartitionsToTxnRequest::default()
        },
        _ => AddPartitionsToTxnRequest {
            transactions: vec![AddPartitionsToTxnTransaction {
                transactional_id: "t".to_owned(),
                producer_id: owner.id,
                producer_epoch: owner.epoch,
                verify_only: version == 5,
                topics: topics.clone(),
                ..AddPartitionsToTxnTransaction::default()
            }],
            ..AddPartitionsToTxnRequest::default()
        },
    });
    each(world, |_| AddOffsetsToTxnRequest {
        transactional_id: "t".to_owned(),
        producer_id: owner.id,
        producer_epoch: owner.epoch,
        group_id: "readers".to_owned(),
        ..AddOffsetsToTxnRequest::default()
    });
    let orders = world.state.catalog.by_name("orders").unwrap().id;
    each(world, |version| {
        let mut request = offsets_request(owner, 1);
        if version >= 6 {
            request.topics[0].name.clear();
            request.topics[0].topic_id = orders;
        }
        request
    });
    each(world, |_| DescribeTransactionsRequest {
        transactional_ids: vec!["t".to_owned(), "unknown".to_owned()],
        ..DescribeTransactionsRequest::default()
    });
    each(world, |_| ListTransactionsRequest::default());
    each(world, |_| end_request(owner, true));
    each(world, |_| DescribeProducersRequest {
        topics: vec![TopicRequest {
            name: "orders".to_owned(),
            partition_indexes: vec![0, 2, 9],
            ..TopicRequest::default()
        }],
        ..DescribeProducersRequest::default()
    });
    each(world, |_| markers_request(owner, false));
}

fn markers_request(owner: Owner, transaction_result: bool) -> WriteTxnMarkersRequest {
    let topics = vec![WritableTxnMarkerTopic {
        name: "orders".to_owned(),
        partition_indexes: vec![0],
        ..WritableTxnMarkerTopic::default()
    }];
    let marker = WritableTxnMarker {
        producer_id: owner.id,
        producer_epoch: owner.epoch,
        transaction_result,
        topics,
        ..WritableTxnMarker::default()
    };
    WriteTxnMarkersRequest { markers: vec![marker], ..WriteTxnMarkersRequest::default() }
}

#[test]
fn committed_consumers_get_committed_records_and_the_aborted_list() {
    let world = World::new();
    world.create("orders", 1);
    let first = world.init("t");
    assert_eq!(world.write(PRODUCE_BY_NAME, first, 0, 0), ErrorCode::None);
    world.append("orders", 0, batch(NOW_MS, &["plain"]));
    let open = world.committed_from(0, 0);
    assert_eq!((open.high_watermark, open.last_stable_offset), (2, 0));
    assert_eq!(open.records.as_ref().map_or(0, Bytes::len), 0);
    let latest = |isolation_level| {
        let request = ListOffsetsRequest { isolation_level, ..list_offsets("orders", 0, -1) };
        world.ask(&request).topics[0].partitions[0].offset
    };
    assert_eq!((latest(0), latest(1)), (2, 0));
    let second = world.ended(END_V2, first, false);
    assert_eq!(second, Owner { epoch: first.epoch + 1, ..first });
    assert_eq!(world.write(PRODUCE_BY_NAME, second, 0, 0), ErrorCode::None);
    world.ended(END_V2, second, true);
    let all = world.committed_from(0, 0);
    assert_eq!((all.high_watermark, all.last_stable_offset), (5, 5));
    assert_eq!(base_offsets(all.records.as_ref()), [0, 1, 2, 3, 4]);
    let aborted = all.aborted_transactions.unwrap();
    assert_eq!(aborted.len(), 1);
    assert_eq!((aborted[0].producer_id, aborted[0].first_offset), (first.id, 0));
    let records = all.records.unwrap();
    let controls = iter_batches(&records).map(|batch| batch.unwrap().is_control());
    assert_eq!(controls.collect::<Vec<_>>(), [false, false, true, false, true]);
    assert_eq!(world.committed_from(0, 3).aborted_transactions.unwrap().len(), 0);
    assert_eq!(world.fetch("orders", 0, 0).aborted_transactions, None);
    assert_eq!((latest(0), latest(1)), (5, 5));
}

/// A fetch of committed records that waits comes back with the end of the transaction.
#[test]
fn a_waiting_fetch_of_committed_records_is_woken_by_the_end() {
    let world = World::new();
    world.create("orders", 1);
    let owner = world.init("t");
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 0, 0), ErrorCode::None);
    let mut waiting = world.begin::<FetchRequest>(FETCH_BY_NAME, &waiting_fetch(0));
    assert!(!world.poll(&mut waiting));
    world.ended(END_V2, owner, true);
    let partition = only(&mut world.finish::<FetchRequest>(waiting));
    assert_eq!(base_offsets(partition.records.as_ref()), [0, 1]);
}

#[test]
fn the_first_protocol_adds_partitions_before_it_writes() {
    let world = World::new();
    world.create("orders", 2);
    let owner = world.init("t");
    assert_eq!(world.write(PRODUCE_V1, owner, 0, 0), ErrorCode::TransactionAbortable);
    assert_eq!(world.write(10, owner, 0, 0), ErrorCode::InvalidTxnState);
    let refused = [ErrorCode::OperationNotAttempted, ErrorCode::UnknownTopicOrPartition];
    assert_eq!(world.add(owner, "orders", &[0, 2]), refused);
    assert_eq!(world.add(owner, "none", &[0]), [ErrorCode::UnknownTopicOrPartition]);
    assert_eq!(world.add(owner, "orders", &[0]), [ErrorCode::None]);
    assert_eq!(world.write(PRODUCE_V1, owner, 0, 0), ErrorCode::None);
    assert_eq!(world.write(PRODUCE_V1, owner, 1, 0), ErrorCode::TransactionAbortable);
    world.ended(END_V1, owner, true);
    assert_eq!(world.write(PRODUCE_V1, owner, 0, 1), ErrorCode::TransactionAbortable);
    assert_eq!(world.add(owner, "orders", &[0]), [ErrorCode::None]);
    assert_eq!(world.write(PRODUCE_V1, owner, 0, 1), ErrorCode::None);
    world.ended(END_V1, owner, false);
    assert_eq!(world.committed_from(0, 0).last_stable_offset, 4);
}

#[test]
fn next_producer_fences_the_previous_one() {
    let world = World::new();
    world.create("orders", 1);
    let first = world.init("t");
    assert_eq!(world.write(PRODUCE_BY_NAME, first, 0, 0), ErrorCode::None);
    let second = world.init("t");
    assert_eq!((second.id, second.epoch > first.epoch), (first.id, true));
    let fetched = world.committed_from(0, 0);
    assert_eq!((fetched.last_stable_offset, fetched.high_watermark), (2, 2));
    assert_eq!(fetched.aborted_transactions.unwrap().len(), 1);
    assert_eq!(world.write(PRODUCE_BY_NAME, first, 0, 1), ErrorCode::InvalidProducerEpoch);
    let late = world.end(END_V2, first, true);
    assert_eq!(code(late.error_code), ErrorCode::ProducerFenced);
    let older = world.end(1, first, true);
    assert_eq!(code(older.error_code), ErrorCode::InvalidProducerEpoch);
    assert_eq!(world.write(PRODUCE_BY_NAME, second, 0, 0), ErrorCode::None);
}

#[test]
fn commit_applies_the_offsets_of_the_group() {
    let world = World::new();
    world.create("orders", 1);
    world.commit("readers", "orders", 0, 3);
    let owner = world.init("t");
    assert_eq!(world.pend(4, owner, 7), ErrorCode::TransactionAbortable);
    assert_eq!(world.pend(3, owner, 7), ErrorCode::InvalidTxnState);
    assert_eq!(world.pend(5, owner, 7), ErrorCode::None);
    assert_eq!(world.stable_offset(false).committed_offset, 3);
    let unstable = world.stable_offset(true);
    assert_eq!(code(unstable.error_code), ErrorCode::UnstableOffsetCommit);
    let world = world.restarted();
    assert_eq!(code(world.stable_offset(true).error_code), ErrorCode::UnstableOffsetCommit);
    let next = world.ended(END_V2, owner, true);
    let stable = world.stable_offset(true);
    assert_eq!((code(stable.error_code), stable.committed_offset), (ErrorCode::None, 7));
    let mut by_id = offsets_request(next, 8);
    by_id.topics[0].name.clear();
    by_id.topics[0].topic_id = unknown_id();
    let refused = world.ask_in(6, &by_id).topics.remove(0);
    assert_eq!(code(refused.partitions[0].error_code), ErrorCode::UnknownTopicId);
    assert_eq!(refused.topic_id, unknown_id());
    by_id.topics[0].topic_id = world.state.catalog.by_name("orders").unwrap().id;
    let pending = world.ask_in(6, &by_id).topics.remove(0);
    assert_eq!(code(pending.partitions[0].error_code), ErrorCode::None);
    assert_eq!(world.pend(5, next, 9), ErrorCode::None);
    world.ended(END_V2, next, false);
    let world = world.restarted();
    assert_eq!(world.stable_offset(true).committed_offset, 7);
}

#[test]
fn only_a_member_of_the_generation_commits_offsets_in_a_transaction() {
    let world = World::new();
    world.create("orders", 1);
    let member = world.lead("readers");
    let owner = world.init("t");
    let commit = |member_id: &str, generation_id_or_member_epoch| {
        let member_id = member_id.to_owned();
        let request = TxnOffsetCommitRequest {
            member_id,
            generation_id_or_member_epoch,
            ..offsets_request(owner, 1)
        };
        code(world.ask_in(5, &request).topics[0].partitions[0].error_code)
    };
    let (id, generation) = (member.member_id.as_str(), member.generation_id);
    assert_eq!(commit("stranger", generation), ErrorCode::UnknownMemberId);
    assert_eq!(commit(id, generation + 1), ErrorCode::IllegalGeneration);
    assert_eq!(commit(id, generation), ErrorCode::None);
    assert_eq!(commit("", -1), ErrorCode::None, "as before KIP-447");
}

#[test]
fn an_open_transaction_goes_on_after_a_restart() {
    let world = World::new();
    world.create("orders", 2);
    let owner = world.init("t");
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 0, 0), ErrorCode::None);
    let world = world.restarted();
    assert_eq!(world.committed_from(0, 0).last_stable_offset, 0);
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 0, 1), ErrorCode::None);
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 1, 0), ErrorCode::None);
    world.state.checkpoint().unwrap();
    let world = world.restarted();
    let next = world.ended(END_V2, owner, true);
    assert_eq!(world.committed_from(0, 0).last_stable_offset, 3);
    assert_eq!(world.committed_from(1, 0).last_stable_offset, 2);
    let world = world.restarted();
    assert_eq!(world.ended(END_V2, owner, true), next, "the answer may have been lost");
    assert_eq!(world.write(PRODUCE_BY_NAME, next, 0, 0), ErrorCode::None);
}

#[test]
fn timer_aborts_expired_transactions() {
    let world = World::new();
    world.create("orders", 1);
    let request = InitProducerIdRequest { transaction_timeout_ms: 1, ..init_request("t") };
    let owner = owner(&world.ask(&request));
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 0, 0), ErrorCode::None);
    let partition = world.next_committed(0);
    assert_eq!(partition.aborted_transactions.unwrap().len(), 1);
    let late = world.end(END_V2, owner, true);
    assert_eq!(code(late.error_code), ErrorCode::ProducerFenced);
}

#[test]
fn timeouts_are_limited_as_configured() {
    let world = World::with(Drive::Threads, |config| {
        config.transactions = TransactionSettings { timeout_ms_max: 1_000, ..Default::default() };
    });
    let init = |transaction_timeout_ms| {
        let request = InitProducerIdRequest { transaction_timeout_ms, ..init_request("t") };
        code(world.ask(&request).error_code)
    };
    assert_eq!(init(1_001), ErrorCode::InvalidTransactionTimeout);
    assert_eq!(init(1_000), ErrorCode::None);
}

#[test]
fn transactions_and_producers_are_shown() {
    let world = World::new();
    world.create("orders", 2);
    let owner = world.init("t");
    world.init("other");
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 1, 0), ErrorCode::None);
    let ids = ["t", "other", "unknown"].map(str::to_owned).to_vec();
    let request = DescribeTransactionsRequest { transactional_ids: ids, ..Default::default() };
    let described = world.ask(&request).transaction_states;
    let states: Vec<_> = described.iter().map(|it| it.transaction_state.as_str()).collect();
    assert_eq!(states, ["Ongoing", "Empty", ""]);
    assert_eq!(code(described[2].error_code), ErrorCode::TransactionalIdNotFound);
    let topics = &described[0].topics;
    assert_eq!((topics[0].topic.as_str(), topics[0].partitions.as_slice()), ("orders", &[1][..]));
    assert_eq!((described[0].producer_id, described[0].transaction_timeout_ms), (owner.id, 60_000));
    let list = |change: &dyn Fn(&mut ListTransactionsRequest)| {
        let mut request = ListTransactionsRequest { duration_filter: -1, ..Default::default() };
        change(&mut request);
        let response = world.ask(&request);
        let states = response.transaction_states.into_iter();
        let mut ids: Vec<_> = states.map(|state| state.transactional_id).collect();
        ids.sort_unstable();
        (code(response.error_code), ids, response.unknown_state_filters)
    };
    let found = |ids: &[&str]| (ErrorCode::None, ids.iter().map(|it| (*it).to_owned()).collect());
    let with = |found: (ErrorCode, Vec<String>)| (found.0, found.1, Vec::<String>::new());
    assert_eq!(list(&|_| {}), with(found(&["other", "t"])));
    assert_eq!(list(&|it| it.state_filters = vec!["Ongoing".to_owned()]), with(found(&["t"])));
    assert_eq!(list(&|it| it.producer_id_filters = vec![owner.id]), with(found(&["t"])));
    assert_eq!(list(&|it| it.duration_filter = 1 << 40), with(found(&[])));
    let pattern =
        |pattern: &str| list(&|it| it.transactional_id_pattern = Some(pattern.to_owned()));
    assert_eq!(pattern("o.*"), with(found(&["other"])));
    assert_eq!(pattern("o"), with(found(&[])));
    assert_eq!(pattern("(").0, ErrorCode::InvalidRegularExpression);
    let unknown = list(&|it| it.state_filters = vec!["Odd".to_owned()]);
    assert_eq!(unknown, (ErrorCode::None, vec![], vec!["Odd".to_owned()]));
    let topics = vec![TopicRequest {
        name: "orders".to_owned(),
        partition_indexes: vec![0, 1, 2],
        ..TopicRequest::default()
    }];
    let producers = world.ask(&DescribeProducersRequest { topics, ..Default::default() });
    let partitions = &producers.topics[0].partitions;
    assert_eq!(partitions[0].active_producers, []);
    assert_eq!(partitions[1].active_producers[0].current_txn_start_offset, 0);
    assert_eq!(code(partitions[2].error_code), ErrorCode::UnknownTopicOrPartition);
    // The coordinator ends what it knows; another must not.
    let own = world.ask(&WriteTxnMarkersRequest {
        markers: vec![WritableTxnMarker {
            topics: vec![WritableTxnMarkerTopic {
                name: "orders".to_owned(),
                partition_indexes: vec![1],
                ..WritableTxnMarkerTopic::default()
            }],
            ..markers_request(owner, false).markers.remove(0)
        }],
        ..WriteTxnMarkersRequest::default()
    });
    let refused = own.markers[0].topics[0].partitions[0].error_code;
    assert_eq!(code(refused), ErrorCode::InvalidTxnState);
}

/// A log may hold a transaction that the coordinator does not know, after a repair.
#[test]
fn hanging_transaction_is_aborted_by_the_tool_or_the_next_start() {
    let world = World::new();
    world.create("orders", 2);
    let topic = world.state.catalog.by_name("orders").unwrap();
    let lost = Owner { id: 99, epoch: 4 };
    for partition in [0, 1] {
        let log = crate::partition::for_append(&world.state, &topic, partition).unwrap();
        let records = part(lost, 0, "lost");
        let mut validator = moldau_records::Validator::default();
        let rules = &moldau_records::AppendRules::LENIENT;
        log.append(&validator.check(&records, rules).unwrap(), 0).unwrap();
    }
    let stale = Owner { epoch: 3, ..lost };
    let write = |owner| {
        let response = world.ask(&markers_request(owner, false));
        code(response.markers[0].topics[0].partitions[0].error_code)
    };
    assert_eq!(write(stale), ErrorCode::InvalidProducerEpoch);
    assert_eq!(write(lost), ErrorCode::None);
    assert_eq!(world.committed_from(0, 0).last_stable_offset, 2);
    assert_eq!(world.committed_from(1, 0).last_stable_offset, 0);
    let world = world.restarted();
    let fetched = world.next_committed(1);
    assert_eq!(fetched.aborted_transactions.unwrap().len(), 1);
}

#[test]
fn records_of_an_open_transaction_may_be_deleted() {
    let world = World::new();
    world.create("orders", 1);
    let owner = world.init("t");
    assert_eq!(world.write(PRODUCE_BY_NAME, owner, 0, 0), ErrorCode::None);
    world.append("orders", 0, batch(NOW_MS, &["plain"]));
    let topics = vec![delete_records_request::DeleteRecordsTopic {
        name: "orders".to_owned(),
        partitions: vec![delete_records_request::DeleteRecordsPartition {
            partition_index: 0,
            offset: 1,
            ..Default::default()
        }],
        ..Default::default()
    }];
    let request = DeleteRecordsRequest { topics, ..DeleteRecordsRequest::default() };
    assert_eq!(world.ask(&request).topics[0].partitions[0].low_watermark, 1);
    assert_eq!(world.committed_from(0, 1).last_stable_offset, 1);
    world.ended(END_V2, owner, true);
    assert_eq!(world.committed_from(0, 1).last_stable_offset, 3);
}

#[test]
fn the_levels_of_groups_and_transactions_are_finalized_features() {
    let world = World::new();
    let request = ApiVersionsRequest {
        client_software_name: "tester".to_owned(),
        client_software_version: "1".to_owned(),
        ..ApiVersionsRequest::default()
    };
    for version in [3, 4, 5] {
        let told = world.ask_in(version, &request);
        let levels = told.finalized_features.iter();
        let levels = levels.map(|it| (it.name.trim_end_matches(".version"), it.max_version_level));
        let expected = [("group", 1), ("share", 2), ("streams", 1), ("transaction", 2)];
        assert_eq!(levels.collect::<Vec<_>>(), expected);
        assert!(told.finalized_features_epoch >= 0, "clients pass over what has no epoch");
        assert_eq!(told.supported_features.len(), if version >= 4 { 4 } else { 0 });
    }
}
