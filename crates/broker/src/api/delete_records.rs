//! DeleteRecords, versions 0-2 (KIP-107): raises the log start offset.
//!
//! As in Kafka not of a topic that is compacted and nothing else: its newest records would go.

use std::sync::Arc;
use std::time::Duration;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::delete_records_request::DeleteRecordsPartition;
use moldau_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use moldau_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use tokio::time::{Instant, timeout_at};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, once_durable, patience};
use crate::error::{Refusal, read_code};
use crate::logs::{Answered, Error, Lsn, Ticket, Trimmed};
use crate::partition::{self, Partition};

pub(crate) fn handle(
    call: &Call<'_>,
    request: DeleteRecordsRequest,
) -> Outcome<DeleteRecordsResponse> {
    let (mut last, mut unsettled) = (None, Vec::new());
    let patience = patience(request.timeout_ms);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            partitions.push(match delete(call, &topic.name, asked) {
                Ok(Answered::Now(trimmed)) => {
                    last = last.max(Some(trimmed.lsn));
                    answer(asked.partition_index, trimmed.start_offset, ErrorCode::None)
                }
                Ok(Answered::Later(ticket)) => {
                    unsettled.push((topics.len(), partitions.len(), ticket));
                    answer(asked.partition_index, -1, ErrorCode::None)
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
    if !unsettled.is_empty() {
        return Outcome::Later(Box::pin(settled_within(patience, unsettled, response)));
    }
    let Some(lsn) = last else { return Outcome::Now(response) };
    let state = Arc::clone(call.state);
    once_durable(call, lsn, patience, move |durable| match durable {
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
) -> Result<Answered<Trimmed, Error>, ErrorCode> {
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
            log.delete_records(asked.offset).map_err(|error| read_code(&error))
        }
        // The first offset and the high watermark are 0.
        Partition::Unwritten { .. } if matches!(asked.offset, -1 | 0) => {
            Ok(Answered::Now(Trimmed { start_offset: 0, lsn: Lsn::default() }))
        }
        Partition::Unwritten { .. } => Err(ErrorCode::OffsetOutOfRange),
    }
}

/// The places of partitions in a response, and what their deletions will say.
type Unsettled = Vec<(usize, usize, Ticket<Trimmed, Error>)>;

/// The response, with what each deletion said in time.
async fn settled_within(
    patience: Duration,
    unsettled: Unsettled,
    mut response: DeleteRecordsResponse,
) -> DeleteRecordsResponse {
    let deadline = Instant::now() + patience;
    for (topic, partition, ticket) in unsettled {
        let settled = timeout_at(deadline, ticket).await;
        let topic = response.topics.get_mut(topic).expect("it was answered");
        let told = topic.partitions.get_mut(partition).expect("it was answered");
        match settled {
            Ok(Ok(trimmed)) => told.low_watermark = trimmed.start_offset,
            Ok(Err(error)) => told.error_code = read_code(&error).into(),
            Err(_elapsed) => told.error_code = ErrorCode::RequestTimedOut.into(),
        }
    }
    response
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
