//! The partitions of a produce, one after the other.
//!
//! The network thread appends them as long as little is to be done for each: what is not compressed
//! is walked, and small payloads are unpacked. Where records are to be packed for their topic, or a
//! payload is large, a worker goes on from there with the rest of the request.

use std::cell::RefCell;
use std::sync::Arc;

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::TransactionVersion;
use moldau_protocol::messages::ProduceResponse;
use moldau_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use moldau_protocol::produce::{PartitionRecords, ProduceRequestView};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{
    AppendRules, Attributes, Compression, Error, FAULTY_RECORDS_MAX, Invalid, Timestamps,
    Unpacking, ValidBatch, Validator,
};

use super::ATTRIBUTES;
use crate::authorizer::ResourceType;
use crate::call::Call;
use crate::catalog::Topic;
use crate::config::LEADER_EPOCH;
use crate::error::{Refusal, append_refusal, denied, records_refusal};
use crate::logs::{Answered, AppendError, Appended, Lsn, Ticket};
use crate::partition;
use crate::state::State;
use crate::topic_config::{TimestampType, TopicConfig};
use crate::transaction_service::TransactionalBatch;

/// From this version on a batch may be compressed by zstd (KIP-110).
const ZSTD_SINCE: i16 = 7;

/// From this version on a produce adds its partitions to the transaction.
const IMPLICIT_ADD_SINCE: i16 = 12;

/// From this version on there is a code that asks for the transaction to be aborted.
const ABORTABLE_SINCE: i16 = 11;

/// Most bytes that a batch may unpack to if there is memory for them: far above what producers put
/// into one, and what the cleaning of a compacted log takes.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// What a batch may unpack to where its topic is not compacted, as a multiple of its size, if that
/// is more: batches of many MiB that are texts grow by that much.
const EXPANSION_MIN: usize = 4;

/// A worker holds the records of a batch as they are unpacked, and as they are packed again.
const COPIES_OF_UNPACKED: usize = 2;

/// Most bytes of a compressed batch, and of what it unpacks to, for which a network thread lets
/// others wait: twice what producers send at once unless told otherwise, and some hundred
/// microseconds.
const LITTLE_BYTES_MAX: usize = 32 << 10;
const LITTLE_UNPACKED_BYTES_MAX: usize = 512 << 10;

thread_local! {
    /// Codec states are large, so a thread makes them once.
    static VALIDATOR: RefCell<Validator> = RefCell::default();
}

/// What a thread does for a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// So little that others can wait for it.
    Little,
    /// Whatever it takes, in so many bytes of memory.
    Any { memory: usize },
}

impl Effort {
    fn is_little(self) -> bool {
        self == Self::Little
    }
}

/// Memory for the batches of a request of so many bytes, one after the other.
pub(super) fn memory_for(request_bytes: usize) -> usize {
    UNPACKED_BYTES_MAX
        .max(request_bytes.saturating_mul(EXPANSION_MIN))
        .saturating_mul(COPIES_OF_UNPACKED)
}

/// What a produce does to the partitions of its request, so far.
pub(super) struct Appends {
    pub(super) state: Arc<State>,
    pub(super) version: i16,
    now_ms: i64,
    /// What was found of each topic of the request.
    topics: Vec<Result<Arc<Topic>, Refusal>>,
    /// Topics of which all partitions are answered.
    topics_done: usize,
    pub(super) response: ProduceResponse,
    /// Position that must be durable before the answer; `None` if the journal took nothing.
    pub(super) last: Option<Lsn>,
    /// Batches whose offsets come later.
    pub(super) unplaced: Vec<Unplaced>,
    pub(super) is_refused: bool,
    /// Records that may still be named as being at fault.
    named_left: usize,
}

/// A batch that was appended, and whose offset comes later.
pub(super) struct Unplaced {
    /// Where its partition stands in the response.
    pub(super) topic: usize,
    pub(super) partition: usize,
    pub(super) ticket: Ticket<Appended, AppendError>,
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

/// What the answer to a batch waits for.
enum Awaited {
    Durable(Lsn),
    Offset(Ticket<Appended, AppendError>),
}

/// Why a batch is not appended now.
enum Stop {
    Refused(Refused),
    /// It takes more effort.
    TooMuch,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.into())
    }
}

impl Appends {
    pub(super) fn new(call: &Call<'_>, topics: Vec<Result<Arc<Topic>, Refusal>>) -> Self {
        Self {
            state: Arc::clone(call.state),
            version: call.version,
            now_ms: call.now_ms,
            topics,
            topics_done: 0,
            response: ProduceResponse::default(),
            last: None,
            unplaced: Vec::new(),
            is_refused: false,
            named_left: FAULTY_RECORDS_MAX,
        }
    }

    /// Appends the partitions of the request, whose structure was checked, from where it stopped;
    /// `false` where the next one takes more effort.
    pub(super) fn run(&mut self, request: &ProduceRequestView<'_>, effort: Effort) -> bool {
        let topics = request.topics().flatten().enumerate();
        for (at, topic) in topics.skip(self.topics_done) {
            let found = self.topics.get(at).cloned().expect("each topic was looked for");
            if self.response.responses.len() == at {
                self.response.responses.push(TopicProduceResponse {
                    name: topic.name.unwrap_or("").to_owned(),
                    topic_id: topic.id.unwrap_or(Uuid::ZERO),
                    ..TopicProduceResponse::default()
                });
            }
            let done = self.partitions().len();
            for partition in topic.partitions().flatten().skip(done) {
                let outcome = match &found {
                    Ok(found) => self.append(request, found, &partition, effort),
                    Err(refusal) => Err(refusal.clone().into()),
                };
                let response = match outcome {
                    Ok((response, Awaited::Durable(lsn))) => {
                        self.last = self.last.max(Some(lsn));
                        response
                    }
                    Ok((response, Awaited::Offset(ticket))) => {
                        let partition = self.partitions().len();
                        self.unplaced.push(Unplaced { topic: at, partition, ticket });
                        response
                    }
                    Err(Stop::Refused(refused)) => self.refused(partition.index, refused),
                    Err(Stop::TooMuch) => return false,
                };
                self.partitions().push(response);
            }
            self.topics_done = at + 1;
        }
        true
    }

    /// The partitions of the topic at hand that are answered.
    fn partitions(&mut self) -> &mut Vec<PartitionProduceResponse> {
        let topic = self.response.responses.last_mut().expect("a topic is at hand");
        &mut topic.partition_responses
    }

    fn append(
        &self,
        request: &ProduceRequestView<'_>,
        topic: &Topic,
        partition: &PartitionRecords<'_>,
        effort: Effort,
    ) -> Result<(PartitionProduceResponse, Awaited), Stop> {
        let acks = request.acks();
        if !matches!(acks, -1..=1) {
            let message = format!("acks must be -1, 0 or 1, not {}", acks);
            return Err(Refusal::new(ErrorCode::InvalidRequiredAcks, message).into());
        }
        if !topic.has(partition.index) {
            let message = format!("topic {} has no partition {}", topic.name, partition.index);
            return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message).into());
        }
        let records = partition.records.unwrap_or_default();
        if records.is_empty() {
            // Not the code of a damaged batch, which clients would send again.
            return Err(records_refusal(&Error::NotOneBatch).into());
        }
        let codec = claimed_codec(records);
        if codec == Ok(Compression::Zstd) && self.version < ZSTD_SINCE {
            let message = "zstd needs Produce version 7 or later";
            return Err(Refusal::new(ErrorCode::UnsupportedCompressionType, message).into());
        }
        let unpacking = self.state.config.unpacking;
        if effort.is_little() && is_heavy(codec, records.len(), &topic.config, unpacking) {
            return Err(Stop::TooMuch);
        }
        let appended = VALIDATOR.with_borrow_mut(|validator| {
            let rules = AppendRules {
                unpacking,
                ..append_rules(&topic.config, self.now_ms, records.len(), effort)
            };
            let batch = match validator.check(records, &rules) {
                Err(invalid) if effort.is_little() && needs_worker(&invalid.error) => {
                    return Err(Stop::TooMuch);
                }
                checked => checked.map_err(Refused::from).map_err(Stop::Refused)?,
            };
            let appended =
                self.append_batch(topic, partition.index, request.transactional_id(), &batch)?;
            self.state.counters.produced(records.len(), batch.records_count());
            Ok::<_, Stop>(appended)
        })?;
        let is_stamped = topic.config.timestamp_type == TimestampType::LogAppendTime;
        let mut response = PartitionProduceResponse {
            index: partition.index,
            base_offset: -1,
            log_append_time_ms: if is_stamped { self.now_ms } else { -1 },
            ..PartitionProduceResponse::default()
        };
        Ok(match appended {
            Answered::Now(appended) => {
                place(&mut response, &appended);
                (response, Awaited::Durable(appended.lsn))
            }
            Answered::Later(ticket) => (response, Awaited::Offset(ticket)),
        })
    }

    /// Appends a batch to its log; one of a transaction while that is open and has the partition.
    fn append_batch(
        &self,
        topic: &Topic,
        partition: i32,
        transactional_id: Option<&str>,
        batch: &ValidBatch<'_>,
    ) -> Result<Answered<Appended, AppendError>, Refusal> {
        let log = partition::for_append(&self.state, topic, partition)?;
        let append = || log.append(batch, LEADER_EPOCH).map_err(|error| append_refusal(&error));
        if !batch.view().is_transactional() {
            return append();
        }
        let id = transactional_id.ok_or_else(|| denied(ResourceType::TransactionalId))?;
        let producer = ProducerIdentity {
            id: batch.view().producer_id(),
            epoch: batch.view().producer_epoch(),
        };
        let transactions = &self.state.transactions;
        if log.of_journal().is_none() {
            // The log opens the transaction, or refuses a producer that is held off.
            transactions.admit(&self.state.storage, id, producer)?;
            return append();
        }
        let of_transaction = TransactionalBatch {
            transactional_id: id,
            producer,
            partition: (topic.id, partition),
            version: transaction_version(self.version),
        };
        let appended = transactions.append(&self.state.stores(), &of_transaction, append);
        appended.map_err(|refusal| older_refusal(self.version, refusal))
    }

    fn refused(&mut self, index: i32, mut refused: Refused) -> PartitionProduceResponse {
        self.is_refused = true;
        refused.records.truncate(self.named_left);
        self.named_left -= refused.records.len();
        PartitionProduceResponse {
            index,
            error_code: refused.refusal.code.into(),
            base_offset: -1,
            record_errors: refused.records,
            error_message: Some(refused.refusal.message),
            ..PartitionProduceResponse::default()
        }
    }
}

/// Where a batch went, as the client is told.
pub(super) fn place(response: &mut PartitionProduceResponse, appended: &Appended) {
    response.base_offset = appended.base_offset;
    response.log_start_offset = appended.start_offset;
}

/// The transaction protocol of a producer. The version of its requests determines it (KIP-890).
fn transaction_version(version: i16) -> TransactionVersion {
    match version {
        IMPLICIT_ADD_SINCE.. => TransactionVersion::V2,
        _ => TransactionVersion::V1,
    }
}

/// The refusal of a batch that is not part of its transaction, in codes that the producer knows.
fn older_refusal(version: i16, refusal: Refusal) -> Refusal {
    let code = match refusal.code {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        ErrorCode::TransactionAbortable if version < ABORTABLE_SINCE => ErrorCode::InvalidTxnState,
        // A code with which older producers send again.
        ErrorCode::ConcurrentTransactions if version < IMPLICIT_ADD_SINCE => {
            ErrorCode::NotEnoughReplicas
        }
        code => code,
    };
    Refusal { code, ..refusal }
}

/// The codec that the header of a batch claims.
fn claimed_codec(records: &[u8]) -> Result<Compression, Error> {
    let bits = records.get(ATTRIBUTES).copied().unwrap_or_default();
    Attributes::from_bits(u16::from(bits)).compression()
}

/// Whether a batch of this codec and size takes more than little effort.
fn is_heavy(
    codec: Result<Compression, Error>,
    bytes: usize,
    config: &TopicConfig,
    unpacking: Unpacking,
) -> bool {
    let is_unpacked = codec != Ok(Compression::None) && unpacking == Unpacking::Always;
    let is_to_be_packed = config
        .packing
        .is_some_and(|packing| packing.codec != Compression::None && codec != Ok(packing.codec));
    is_to_be_packed || is_unpacked && bytes > LITTLE_BYTES_MAX
}

/// Whether a batch that could not be checked with little effort can be with more.
fn needs_worker(error: &Error) -> bool {
    matches!(error, Error::PayloadTooLarge { .. } | Error::PackingNeeded)
}

/// The rules of a topic for a batch of this size.
fn append_rules(
    config: &TopicConfig,
    now_ms: i64,
    batch_bytes: usize,
    effort: Effort,
) -> AppendRules {
    let needs_keys = config.compaction.is_some();
    let timestamps = match config.timestamp_type {
        TimestampType::LogAppendTime => Timestamps::Append(now_ms),
        TimestampType::CreateTime => Timestamps::Create {
            earliest: now_ms.saturating_sub(config.timestamp_before_ms_max),
            latest: now_ms.saturating_add(config.timestamp_after_ms_max),
        },
    };
    let by_size = if needs_keys { 0 } else { batch_bytes.saturating_mul(EXPANSION_MIN) };
    AppendRules {
        batch_bytes_max: config.message_bytes_max,
        unpacked_bytes_max: match effort {
            Effort::Little => LITTLE_UNPACKED_BYTES_MAX,
            Effort::Any { memory } => {
                UNPACKED_BYTES_MAX.max(by_size).min(memory / COPIES_OF_UNPACKED)
            }
        },
        timestamps,
        needs_keys,
        packing: config.packing,
        may_pack: !effort.is_little(),
        unpacking: Unpacking::Always,
    }
}
