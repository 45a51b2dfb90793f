//! DeleteRecords, versions 0-2 (KIP-107): raises the log start offset.
//!
//! As in Kafka not of a topic that is compacted and nothing else: its newest records would go.

use std::sync::Arc;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::delete_records_request::DeleteRecordsPartition;
use moldau_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use moldau_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use moldau_storage::Lsn;

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, once_durable, patience};
use crate::error::{Refusal, read_code};
use crate::partition::{self, Partition};

pub(crate) fn handle(
    call: &Call<'_>,
    request: DeleteRecordsRequest,
) -> Outcome<DeleteRecordsResponse> {
    let (mut last, timeout_ms) = (None, request.timeout_ms);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            partitions.push(match delete(call, &topic.name, asked) {
                Ok((low_watermark, lsn)) => {
                    last = last.max(Some(lsn));
                    answer(asked.partition_index, low_watermark, ErrorCode::None)
                }
                Err(code) => answer(asked.partition_index, -1, code),
            });
        }
        topics.push(DeleteRecordsTopicResult {
            name: topic.name,
            partitions,
            ..DeleteRecordsTopicResult::default()
        });
    }
    let response = DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    let state = Arc::clone(call.state);
    once_durable(call, lsn, patience(timeout_ms), move |durable| match durable {
        Ok(()) => {
            state.deleted.notify_one();
            response
        }
        Err(refusal) => not_durable(response, &refusal),
    })
}

fn delete(
    call: &Call<'_>,
    topic: &str,
    asked: &DeleteRecordsPartition,
) -> Result<(i64, Lsn), ErrorCode> {
    if !call.rights.allow(ResourceType::Topic, Operation::Delete, topic) {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    let found = partition::by_name(call.state, topic, asked.partition_index, -1)?;
    let config = call.state.catalog.by_name(topic).map(|topic| topic.config.clone());
    if config.is_some_and(|config| config.compaction.is_some() && !config.deletes) {
        return Err(ErrorCode::PolicyViolation);
    }
    match found {
        Partition::Written(log) => {
            let trimmed = log.delete_records(asked.offset).map_err(|error| read_code(&error))?;
            Ok((trimmed.start_offset, trimmed.lsn))
        }
        // The first offset and the high watermark are 0.
        Partition::Unwritten { .. } if matches!(asked.offset, -1 | 0) => Ok((0, Lsn::default())),
        Partition::Unwritten { .. } => Err(ErrorCode::OffsetOutOfRange),
    }
}

fn answer(
    partition_index: i32,
    low_watermark: i64,
    code: ErrorCode,
) -> DeleteRecordsPartitionResult {
    DeleteRecordsPartitionResult {
        partition_index,
        low_watermark,
        error_code: code.into(),
        ..DeleteRecordsPartitionResult::default()
    }
}

fn not_durable(mut response: DeleteRecordsResponse, refusal: &Refusal) -> DeleteRecordsResponse {
    for topic in &mut response.topics {
        for partition in &mut topic.partitions {
            partition.error_code = refusal.code.into();
        }
    }
    response
}
