//! AddPartitionsToTxn 0-5, AddOffsetsToTxn 0-4, EndTxn 0-5 (KIP-98, KIP-360, KIP-890).
//!
//! Version 5 of EndTxn gives the producer another epoch. From version 4 on AddPartitionsToTxn
//! carries several transactions and is for brokers alone, as in Kafka. A transaction ends before
//! the answer, in all partitions at once: unlike in Kafka what follows never finds it half ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{Decision, Outcome as End, TransactionVersion};
use moldau_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use moldau_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use moldau_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, DURABLE_WITHIN, Outcome, once_durable};
use crate::logs::Lsn;
use crate::topic_names::check_ordinary;
use crate::transaction_ends;

/// From this version on AddPartitionsToTxn carries several transactions.
const BATCHED_SINCE: i16 = 4;

/// From this version on EndTxn gives the producer another epoch.
const EPOCH_BUMP_SINCE: i16 = 5;

/// Before this version these APIs have no code for a producer that was fenced.
const PRODUCER_FENCED_SINCE: i16 = 2;

pub(crate) fn add_partitions(
    call: &Call<'_>,
    request: AddPartitionsToTxnRequest,
) -> Outcome<AddPartitionsToTxnResponse> {
    if call.version < BATCHED_SINCE {
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: request.v3_and_below_transactional_id,
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            topics: request.v3_and_below_topics,
            ..AddPartitionsToTxnTransaction::default()
        };
        let (results, lsn) = add(call, &transaction);
        let response = AddPartitionsToTxnResponse {
            results_by_topic_v3_and_below: results,
            ..AddPartitionsToTxnResponse::default()
        };
        return added(call, response, lsn);
    }
    if !call.rights.allow_on_cluster(Operation::ClusterAction) {
        return Outcome::Now(AddPartitionsToTxnResponse {
            error_code: ErrorCode::ClusterAuthorizationFailed.into(),
            ..AddPartitionsToTxnResponse::default()
        });
    }
    let mut last = None;
    let mut results = Vec::with_capacity(request.transactions.len());
    for transaction in request.transactions {
        let (topic_results, lsn) = add(call, &transaction);
        last = last.max(lsn);
        results.push(AddPartitionsToTxnResult {
            transactional_id: transaction.transactional_id,
            topic_results,
            ..AddPartitionsToTxnResult::default()
        });
    }
    let response = AddPartitionsToTxnResponse {
        results_by_transaction: results,
        ..AddPartitionsToTxnResponse::default()
    };
    added(call, response, last)
}

fn added(
    call: &Call<'_>,
    response: AddPartitionsToTxnResponse,
    lsn: Option<Lsn>,
) -> Outcome<AddPartitionsToTxnResponse> {
    let Some(lsn) = lsn else { return Outcome::Now(response) };
    once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
        Ok(()) => response,
        Err(_) => not_durable(response),
    })
}

fn not_durable(mut response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse {
    let batched = response.results_by_transaction.iter_mut().flat_map(|it| &mut it.topic_results);
    let topics = response.results_by_topic_v3_and_below.iter_mut().chain(batched);
    for partition in topics.flat_map(|topic| &mut topic.results_by_partition) {
        partition.partition_error_code = ErrorCode::CoordinatorNotAvailable.into();
    }
    response
}

/// Adds the partitions of one transaction, all of them or none.
fn add(
    call: &Call<'_>,
    asked: &AddPartitionsToTxnTransaction,
) -> (Vec<AddPartitionsToTxnTopicResult>, Option<Lsn>) {
    let id = &asked.transactional_id;
    if !may_write(call, id) {
        let denied = ErrorCode::TransactionalIdAuthorizationFailed;
        return (results(&asked.topics, |_, _| denied), None);
    }
    let producer = ProducerIdentity { id: asked.producer_id, epoch: asked.producer_epoch };
    let found: Vec<_> = asked.topics.iter().map(|topic| find_topic(call, topic)).collect();
    let mut partitions = BTreeSet::new();
    let mut are_all_found = true;
    for (topic, found) in asked.topics.iter().zip(&found) {
        for index in &topic.partitions {
            match found {
                Ok(found) if found.has(*index) => _ = partitions.insert((found.id, *index)),
                _ => are_all_found = false,
            }
        }
    }
    if !are_all_found {
        let error_of = |at: usize, index: i32| match found.get(at) {
            Some(Ok(topic)) if topic.has(index) => ErrorCode::OperationNotAttempted,
            Some(Err(code)) => *code,
            _ => ErrorCode::UnknownTopicOrPartition,
        };
        return (results(&asked.topics, error_of), None);
    }
    let partitions: Vec<(Uuid, i32)> = partitions.into_iter().collect();
    let (reply, lsn) =
        call.state.transactions.decide(&call.state.stores(), |transactions, now_ms| {
            if !asked.verify_only {
                return transactions.add_partitions(now_ms, id, producer, &partitions);
            }
            let mut checks = partitions.iter();
            let reply = checks.try_for_each(|at| transactions.verify_partition(id, producer, *at));
            Decision { reply, changes: Vec::new() }
        });
    let code = code_of(call, reply);
    (results(&asked.topics, |_, _| code), lsn)
}

fn find_topic(
    call: &Call<'_>,
    topic: &AddPartitionsToTxnTopic,
) -> Result<Arc<crate::catalog::Topic>, ErrorCode> {
    // Brokers ask on behalf of clients whose rights they have checked.
    let is_allowed = call.version >= BATCHED_SINCE
        || call.rights.allow(ResourceType::Topic, Operation::Write, &topic.name);
    if !is_allowed {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    check_ordinary(&topic.name).map_err(|refusal| refusal.code)?;
    call.state.catalog.by_name(&topic.name).ok_or(ErrorCode::UnknownTopicOrPartition)
}

fn results(
    topics: &[AddPartitionsToTxnTopic],
    code: impl Fn(usize, i32) -> ErrorCode,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let results = topics.iter().enumerate().map(|(at, topic)| {
        let partitions = topic.partitions.iter().map(|index| AddPartitionsToTxnPartitionResult {
            partition_index: *index,
            partition_error_code: code(at, *index).into(),
            ..AddPartitionsToTxnPartitionResult::default()
        });
        AddPartitionsToTxnTopicResult {
            name: topic.name.clone(),
            results_by_partition: partitions.collect(),
            ..AddPartitionsToTxnTopicResult::default()
        }
    });
    results.collect()
}

pub(crate) fn add_offsets(
    call: &Call<'_>,
    request: AddOffsetsToTxnRequest,
) -> Outcome<AddOffsetsToTxnResponse> {
    let answer = |code: ErrorCode| AddOffsetsToTxnResponse {
        error_code: code.into(),
        ..AddOffsetsToTxnResponse::default()
    };
    let id = request.transactional_id;
    if !may_write(call, &id) {
        return Outcome::Now(answer(ErrorCode::TransactionalIdAuthorizationFailed));
    }
    if !call.rights.allow(ResourceType::Group, Operation::Read, &request.group_id) {
        return Outcome::Now(answer(ErrorCode::GroupAuthorizationFailed));
    }
    let producer = ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch };
    let (reply, lsn) =
        call.state.transactions.decide(&call.state.stores(), |transactions, now_ms| {
            transactions.add_group(now_ms, &id, producer, &request.group_id)
        });
    let code = code_of(call, reply);
    once_written(call, lsn, move |durable| answer(durable.map_or_else(|lost| lost, |()| code)))
}

pub(crate) fn end(call: &Call<'_>, request: EndTxnRequest) -> Outcome<EndTxnResponse> {
    let refused = |code: ErrorCode| EndTxnResponse {
        error_code: code.into(),
        producer_id: -1,
        producer_epoch: -1,
        ..EndTxnResponse::default()
    };
    let id = request.transactional_id;
    if !may_write(call, &id) {
        return Outcome::Now(refused(ErrorCode::TransactionalIdAuthorizationFailed));
    }
    let producer = ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch };
    let version = match call.version {
        EPOCH_BUMP_SINCE.. => TransactionVersion::V2,
        _ => TransactionVersion::V1,
    };
    let outcome = if request.committed { End::Commit } else { End::Abort };
    let api_version = call.version;
    let answer = move |reply: Result<ProducerIdentity, ErrorCode>| match reply {
        Ok(next) => EndTxnResponse {
            producer_id: next.id,
            producer_epoch: next.epoch,
            ..EndTxnResponse::default()
        },
        Err(code) => refused(older_code(api_version, code)),
    };
    let state = Arc::clone(call.state);
    if state.nodes.is_shared() {
        return Outcome::Later(Box::pin(async move {
            answer(transaction_ends::end(&state, &id, producer, (version, outcome)).await)
        }));
    }
    let (reply, lsn) = state.transactions.decide(&state.stores(), |transactions, now_ms| {
        let fresh_id = || state.fresh_producer_id();
        transactions.end(now_ms, &id, producer, (version, outcome), fresh_id)
    });
    once_written(call, lsn, move |durable| answer(durable.and(reply)))
}

fn may_write(call: &Call<'_>, id: &str) -> bool {
    call.rights.allow(ResourceType::TransactionalId, Operation::Write, id)
}

fn code_of(call: &Call<'_>, reply: Result<(), ErrorCode>) -> ErrorCode {
    reply.map_or_else(|code| older_code(call.version, code), |()| ErrorCode::None)
}

fn older_code(version: i16, code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::ProducerFenced if version < PRODUCER_FENCED_SINCE => {
            ErrorCode::InvalidProducerEpoch
        }
        code => code,
    }
}

/// Answers once the position is durable, if there is one to wait for.
pub(crate) fn once_written<R: 'static>(
    call: &Call<'_>,
    lsn: Option<Lsn>,
    answer: impl FnOnce(Result<(), ErrorCode>) -> R + 'static,
) -> Outcome<R> {
    match lsn {
        None => Outcome::Now(answer(Ok(()))),
        Some(lsn) => once_durable(call, lsn, DURABLE_WITHIN, move |durable| {
            answer(durable.map_err(|_| ErrorCode::CoordinatorNotAvailable))
        }),
    }
}
