//! Produce, versions 3-13 (KIP-98 batches, KIP-467 messages, KIP-516 topic ids).
//!
//! Every partition is validated and appended on its own, in the order of the request, before this
//! returns; the answer waits for the flush that covers all of them. As in Kafka, all records are
//! walked, and exactly one batch per partition is allowed. `acks=1` and `acks=all` are the same
//! with one replica, whatever `min.insync.replicas` says: Kafka asks for no more replicas than
//! there are. `acks=0` is answered by nothing, or by a closed connection where Kafka closes it too:
//! after an error.

use std::cell::RefCell;

use moldau_net::Reply;
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::ProduceResponse;
use moldau_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use moldau_protocol::produce::{PartitionRecords, ProduceRequestView, TopicRecords};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{
    AppendRules, Compression, FAULTY_RECORDS_MAX, Invalid, Timestamps, ValidBatch, Validator,
};
use moldau_storage::Lsn;

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Appended, Call, Later, Outcome, answer, once_durable};
use crate::catalog::Topic;
use crate::error::{Refusal, append_refusal, denied, records_refusal};
use crate::partition;
use crate::partition::LEADER_EPOCH;
use crate::topic_config::{TimestampType, TopicConfig};
use crate::topic_names::check_ordinary;

/// From this version on a batch may be compressed by zstd (KIP-110).
const ZSTD_SINCE: i16 = 7;

/// Where the low byte of a batch's attributes stands, and its bit for transactions.
const ATTRIBUTES: usize = 22;
const TRANSACTIONAL: u8 = 0x10;

/// Most bytes that a batch may unpack to: far above what producers put into one, little enough for
/// each network thread to hold at a time, and what the cleaning of a compacted log takes.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// What a batch may unpack to in any case where its topic is not compacted, as a multiple of its
/// size: batches of many MiB that are texts grow by that much.
const EXPANSION_MIN: usize = 4;

thread_local! {
    /// Codec states are large, so a thread makes them once.
    static VALIDATOR: RefCell<Validator> = RefCell::default();
}

/// Why a batch was not appended.
struct Refused {
    refusal: Refusal,
    /// The records at fault, where the batch is refused for some of them (KIP-467).
    records: Vec<BatchIndexAndErrorMessage>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, records: Vec::new() }
    }
}

impl From<Invalid> for Refused {
    fn from(invalid: Invalid) -> Self {
        let named = invalid.records.iter().map(|record| BatchIndexAndErrorMessage {
            batch_index: record.index,
            batch_index_error_message: Some(record.error.to_string()),
            ..BatchIndexAndErrorMessage::default()
        });
        Self { refusal: records_refusal(&invalid.error), records: named.collect() }
    }
}

/// What a produce does to the partitions of its request.
struct Appends {
    response: ProduceResponse,
    /// Position that must be durable before the answer; `None` if nothing was appended.
    last: Option<Lsn>,
    refused: bool,
}

pub(crate) fn serve(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
) -> Reply<Later<moldau_net::Response>> {
    let Ok(request) = ProduceRequestView::parse(body, call.version) else {
        return Reply::Close("malformed request");
    };
    let acks = request.acks();
    let Some(appends) = append_all(call, &request) else {
        return Reply::Close("malformed request");
    };
    let appended = appends.last.map(|lsn| Appended::of(call, lsn));
    if acks == 0 {
        return match appends.refused {
            true => Reply::Close("produce with acks=0 was refused"),
            false => Reply::NoResponse,
        };
    }
    let outcome = match appended {
        None => Outcome::Now(appends.response),
        Some(appended) => once_durable(call, appended.lsn, move |durable| {
            drop(appended);
            match durable {
                true => appends.response,
                false => storage_failed(appends.response),
            }
        }),
    };
    // The records are in the journal by now.
    answer(header, outcome, 0)
}

/// Appends every partition; `None` if the request turns out to be malformed on the way, before
/// anything of it was appended.
fn append_all(call: &Call<'_>, request: &ProduceRequestView<'_>) -> Option<Appends> {
    // The structure is checked to its end first: a request is appended as a whole or refused.
    request.check().ok()?;
    let is_unauthorized = !may_be_transactional(call, request)?;
    let mut last = None;
    let mut refused = false;
    let mut named_left = FAULTY_RECORDS_MAX;
    let mut responses = Vec::new();
    for topic in request.topics() {
        let topic = topic.ok()?;
        let found = match is_unauthorized {
            true => Err(denied(ResourceType::TransactionalId)),
            false => find_topic(call, &topic),
        };
        let mut partition_responses = Vec::new();
        for partition in topic.partitions() {
            let partition = partition.ok()?;
            let outcome = match &found {
                Ok(found) => append(call, request, found, &partition),
                Err(refusal) => Err(refusal.clone().into()),
            };
            refused |= outcome.is_err();
            partition_responses.push(match outcome {
                Ok((response, lsn)) => {
                    last = last.max(Some(lsn));
                    response
                }
                Err(mut refused) => {
                    refused.records.truncate(named_left);
                    named_left -= refused.records.len();
                    refused_partition(partition.index, refused)
                }
            });
        }
        responses.push(TopicProduceResponse {
            name: topic.name.unwrap_or("").to_owned(),
            topic_id: topic.id.unwrap_or(Uuid::ZERO),
            partition_responses,
            ..TopicProduceResponse::default()
        });
    }
    let response = ProduceResponse { responses, ..ProduceResponse::default() };
    Some(Appends { response, last, refused })
}

/// Whether the client may send what the request holds, in so far as it is part of a transaction;
/// `None` if the request is malformed.
fn may_be_transactional(call: &Call<'_>, request: &ProduceRequestView<'_>) -> Option<bool> {
    if !call.rights.are_restricted() {
        return Some(true);
    }
    let mut is_transactional = false;
    for topic in request.topics() {
        for partition in topic.ok()?.partitions() {
            let attributes = partition.ok()?.records.and_then(|records| records.get(ATTRIBUTES));
            is_transactional |= attributes.is_some_and(|bits| bits & TRANSACTIONAL != 0);
        }
    }
    let may_write =
        |id: &str| call.rights.allow(ResourceType::TransactionalId, Operation::Write, id);
    Some(!is_transactional || request.transactional_id().is_some_and(may_write))
}

fn find_topic(call: &Call<'_>, topic: &TopicRecords<'_>) -> Result<std::sync::Arc<Topic>, Refusal> {
    let catalog = &call.state.catalog;
    let authorize =
        |name: &str| match call.rights.allow(ResourceType::Topic, Operation::Write, name) {
            true => check_ordinary(name),
            false => Err(denied(ResourceType::Topic)),
        };
    match (topic.name, topic.id) {
        (Some(name), _) => {
            authorize(name)?;
            catalog.by_name(name).ok_or_else(|| crate::catalog::unknown_name(name))
        }
        (None, id) => {
            let id = id.unwrap_or(Uuid::ZERO);
            let topic = catalog.by_id(id).ok_or_else(|| crate::catalog::unknown_id(id))?;
            authorize(&topic.name)?;
            Ok(topic)
        }
    }
}

fn append(
    call: &Call<'_>,
    request: &ProduceRequestView<'_>,
    topic: &Topic,
    partition: &PartitionRecords<'_>,
) -> Result<(PartitionProduceResponse, Lsn), Refused> {
    if !matches!(request.acks(), -1..=1) {
        let message = format!("acks is -1, 0 or 1, not {}", request.acks());
        return Err(Refusal::new(ErrorCode::InvalidRequiredAcks, message).into());
    }
    if !topic.has(partition.index) {
        let message = format!("topic {} has no partition {}", topic.name, partition.index);
        return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message).into());
    }
    let records = partition.records.unwrap_or_default();
    if records.is_empty() {
        // Not the code of a damaged batch, which clients would send again.
        return Err(records_refusal(&moldau_records::Error::NotOneBatch).into());
    }
    let appended = VALIDATOR.with_borrow_mut(|validator| {
        let rules = append_rules(&topic.config, call.now_ms, records.len());
        let batch = validator.check(records, &rules)?;
        check(call, &batch)?;
        let log = partition::for_append(call.state, topic, partition.index)?;
        let appended = log.append(&batch, LEADER_EPOCH).map_err(|error| append_refusal(&error))?;
        call.state.counters.produced(records.len(), batch.records_count());
        Ok::<_, Refused>(appended)
    })?;
    let is_stamped = topic.config.timestamp_type == TimestampType::LogAppendTime;
    let response = PartitionProduceResponse {
        index: partition.index,
        base_offset: appended.base_offset,
        log_append_time_ms: if is_stamped { call.now_ms } else { -1 },
        log_start_offset: appended.start_offset,
        ..PartitionProduceResponse::default()
    };
    Ok((response, appended.lsn))
}

/// The rules of a topic for a batch of this size.
fn append_rules(config: &TopicConfig, now_ms: i64, batch_bytes: usize) -> AppendRules {
    let is_compacted = config.compaction.is_some();
    let timestamps = match config.timestamp_type {
        TimestampType::LogAppendTime => Timestamps::Append(now_ms),
        TimestampType::CreateTime => Timestamps::Create {
            earliest: now_ms.saturating_sub(config.timestamp_before_ms_max),
            latest: now_ms.saturating_add(config.timestamp_after_ms_max),
        },
    };
    let by_size = if is_compacted { 0 } else { batch_bytes.saturating_mul(EXPANSION_MIN) };
    AppendRules {
        batch_bytes_max: config.message_bytes_max,
        unpacked_bytes_max: UNPACKED_BYTES_MAX.max(by_size),
        timestamps,
        is_compacted,
    }
}

/// The rules of the request's version.
fn check(call: &Call<'_>, batch: &ValidBatch<'_>) -> Result<(), Refusal> {
    if batch.compression() == Compression::Zstd && call.version < ZSTD_SINCE {
        let message = "zstd needs Produce version 7 or later";
        return Err(Refusal::new(ErrorCode::UnsupportedCompressionType, message));
    }
    if batch.view().is_transactional() {
        let message = "transactions are not supported";
        return Err(Refusal::new(ErrorCode::InvalidTxnState, message));
    }
    Ok(())
}

fn refused_partition(index: i32, refused: Refused) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        error_code: refused.refusal.code.into(),
        base_offset: -1,
        record_errors: refused.records,
        error_message: Some(refused.refusal.message),
        ..PartitionProduceResponse::default()
    }
}

fn storage_failed(mut response: ProduceResponse) -> ProduceResponse {
    for topic in &mut response.responses {
        for partition in &mut topic.partition_responses {
            if partition.error_code == i16::from(ErrorCode::None) {
                partition.error_code = ErrorCode::KafkaStorageError.into();
                partition.base_offset = -1;
            }
        }
    }
    response
}
