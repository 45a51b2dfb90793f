//! TxnOffsetCommit 0-6 (KIP-98, KIP-447 members and generations, KIP-890, KIP-1319 topic ids).
//!
//! The offsets wait in the transaction and become those of the group with its commit. Version 5
//! adds the group to the transaction; before that AddOffsetsToTxn must have.

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{Decision, TransactionVersion};
use moldau_coordinator::{CommittedOffset, TopicOffsets};
use moldau_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use moldau_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use moldau_protocol::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};
use moldau_protocol::{ErrorCode, Uuid};

use crate::api::transactions::once_written;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};

/// From this version on the group need not have been added before.
const IMPLICIT_SINCE: i16 = 5;

/// From this version on topics are named by id, and the epoch of a member may be stale.
const TOPIC_IDS_SINCE: i16 = 6;

/// From this version on there is a code that asks for the transaction to be aborted.
const ABORTABLE_SINCE: i16 = 4;

pub(crate) fn handle(
    call: &Call<'_>,
    request: TxnOffsetCommitRequest,
) -> Outcome<TxnOffsetCommitResponse> {
    let rights = &call.rights;
    let id = &request.transactional_id;
    if !rights.allow(ResourceType::TransactionalId, Operation::Write, id) {
        return refused(&request, ErrorCode::TransactionalIdAuthorizationFailed);
    }
    if !rights.allow(ResourceType::Group, Operation::Read, &request.group_id) {
        return refused(&request, ErrorCode::GroupAuthorizationFailed);
    }
    if request.group_id.is_empty() {
        return refused(&request, ErrorCode::InvalidGroupId);
    }
    // Each partition with its error, in the order of the request.
    let mut answers = Vec::with_capacity(request.topics.len());
    let mut accepted = Vec::new();
    let mut named = Vec::new();
    for topic in &request.topics {
        let name = topic_name(call, topic);
        let errors = check_topic(call, topic, &name);
        let partitions = topic.partitions.iter().zip(&errors);
        let partitions = partitions.filter(|(_, code)| **code == ErrorCode::None);
        let partitions: Vec<_> = partitions.map(|(it, _)| pending(call, it)).collect();
        if let Ok(name) = name
            && !partitions.is_empty()
        {
            let id = id_of(call, &name);
            named.extend(partitions.iter().map(|(index, _)| (id, *index)));
            accepted.push(TopicOffsets { topic: name, partitions });
        }
        answers.push(answer_of(topic, errors));
    }
    if accepted.is_empty() {
        return Outcome::Now(response(answers));
    }
    let producer = ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch };
    let version = match call.version {
        IMPLICIT_SINCE.. => TransactionVersion::V2,
        _ => TransactionVersion::V1,
    };
    let state = call.state;
    let (reply, lsn) = state.transactions.decide(&state.stores(), |transactions, now_ms| {
        let member = (request.member_id.as_str(), request.group_instance_id.as_deref());
        let checked = state.groups.view(|groups| {
            let generation = request.generation_id_or_member_epoch;
            groups.check_transactional_commit(&request.group_id, generation, member, &named)
        });
        match checked {
            Err(code) => Decision { reply: Err(code), changes: Vec::new() },
            Ok(()) => {
                let offsets = (request.group_id.as_str(), accepted);
                transactions.commit_offsets(now_ms, id, producer, version, offsets)
            }
        }
    });
    let code = reply.map_or_else(|code| code_of(call.version, code), |()| ErrorCode::None);
    once_written(call, lsn, move |durable| {
        let code = durable.map_or_else(|lost| lost, |()| code);
        let partitions = answers.iter_mut().flat_map(|topic| &mut topic.partitions);
        for partition in partitions.filter(|partition| partition.error_code == 0) {
            partition.error_code = code.into();
        }
        response(answers)
    })
}

fn code_of(version: i16, code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        // Clients of older versions know generations only.
        ErrorCode::StaleMemberEpoch if version < TOPIC_IDS_SINCE => ErrorCode::IllegalGeneration,
        ErrorCode::TransactionAbortable if version < ABORTABLE_SINCE => ErrorCode::InvalidTxnState,
        // Clients of older versions try again with this one.
        ErrorCode::ConcurrentTransactions if version < IMPLICIT_SINCE => {
            ErrorCode::CoordinatorLoadInProgress
        }
        code => code,
    }
}

fn topic_name(call: &Call<'_>, topic: &TxnOffsetCommitRequestTopic) -> Result<String, ErrorCode> {
    if call.version < TOPIC_IDS_SINCE {
        return Ok(topic.name.clone());
    }
    let found = call.state.catalog.by_id(topic.topic_id).ok_or(ErrorCode::UnknownTopicId)?;
    Ok(found.name.to_string())
}

/// The id by which members of the consumer protocol hold the topic.
fn id_of(call: &Call<'_>, name: &str) -> Uuid {
    call.state.catalog.by_name(name).map_or(Uuid::ZERO, |topic| topic.id)
}

fn check_topic(
    call: &Call<'_>,
    topic: &TxnOffsetCommitRequestTopic,
    name: &Result<String, ErrorCode>,
) -> Vec<ErrorCode> {
    let name = match name {
        Ok(name) => name,
        Err(code) => return vec![*code; topic.partitions.len()],
    };
    let is_allowed = call.rights.allow(ResourceType::Topic, Operation::Read, name);
    let found = call.state.catalog.by_name(name);
    let text_max = call.state.config.groups.offset_metadata_bytes_max;
    let errors = topic.partitions.iter().map(|partition| {
        let text = partition.committed_metadata.as_deref().unwrap_or_default();
        let exists = found.as_ref().is_some_and(|topic| topic.has(partition.partition_index));
        if !is_allowed {
            ErrorCode::TopicAuthorizationFailed
        } else if !exists {
            ErrorCode::UnknownTopicOrPartition
        } else if text.len() > text_max && text.encode_utf16().count() > text_max {
            ErrorCode::OffsetMetadataTooLarge
        } else {
            ErrorCode::None
        }
    });
    errors.collect()
}

fn pending(call: &Call<'_>, partition: &TxnOffsetCommitRequestPartition) -> (i32, CommittedOffset) {
    let committed = CommittedOffset {
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.clone().unwrap_or_default(),
        commit_timestamp_ms: call.now_ms,
        expire_timestamp_ms: None,
    };
    (partition.partition_index, committed)
}

fn answer_of(
    topic: &TxnOffsetCommitRequestTopic,
    errors: Vec<ErrorCode>,
) -> TxnOffsetCommitResponseTopic {
    let partitions = topic.partitions.iter().zip(errors);
    let partitions = partitions.map(|(partition, code)| TxnOffsetCommitResponsePartition {
        partition_index: partition.partition_index,
        error_code: code.into(),
        ..TxnOffsetCommitResponsePartition::default()
    });
    TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
        ..TxnOffsetCommitResponseTopic::default()
    }
}

fn refused(request: &TxnOffsetCommitRequest, code: ErrorCode) -> Outcome<TxnOffsetCommitResponse> {
    let topics = request.topics.iter();
    let topics = topics.map(|topic| answer_of(topic, vec![code; topic.partitions.len()]));
    Outcome::Now(response(topics.collect()))
}

fn response(topics: Vec<TxnOffsetCommitResponseTopic>) -> TxnOffsetCommitResponse {
    TxnOffsetCommitResponse { topics, ..TxnOffsetCommitResponse::default() }
}
