//! The batch of dead-letter records: headers that say where a record was and why it was given up,
//! and key and value of the record where they are copied. Its own headers are not.

use std::sync::Arc;

use bytes::Bytes;
use moldau_coordinator::share_partitions::{Cause, DeadLetters};
use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    HeaderView, RecordView, Timestamps, Unpacking, iter_batches,
};

use crate::topic_config::{TimestampType, TopicConfig};

/// Bytes of a batch, but for one record of its own: what checks and appends without a long stay.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Most bytes that a batch of records to be copied may unpack to. Records of one that unpacks to
/// more get headers alone.
const UNPACKED_BYTES_MAX: usize = 16 << 20;

/// What the dead-letter records of a share partition have in common.
pub(super) struct Envelope {
    pub(super) group: Arc<str>,
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
    pub(super) letters: DeadLetters,
}

/// A batch of dead-letter records.
pub(super) struct Letter {
    pub(super) bytes: Bytes,
    /// The offset of the last record that has one in it.
    pub(super) last: i64,
}

/// The rules of a topic for a batch of the broker's own.
pub(super) fn rules(config: &TopicConfig, now_ms: i64) -> AppendRules {
    AppendRules {
        batch_bytes_max: config.message_bytes_max,
        unpacked_bytes_max: UNPACKED_BYTES_MAX,
        timestamps: match config.timestamp_type {
            TimestampType::LogAppendTime => Timestamps::Append(now_ms),
            TimestampType::CreateTime => Timestamps::Create { earliest: now_ms, latest: now_ms },
        },
        needs_keys: config.compaction.is_some(),
        packing: config.packing,
        may_pack: true,
        unpacking: Unpacking::Always,
    }
}

impl Envelope {
    /// One batch of as many dead-letter records as fit, and at least one.
    pub(super) fn pack(&self, copied: &[Bytes], config: &TopicConfig, now_ms: i64) -> Letter {
        let bytes_max = config.message_bytes_max.min(BATCH_BYTES_MAX);
        let mut packing = Packing {
            envelope: self,
            builder: BatchBuilder::new(BatchOptions::default()),
            bytes_max,
            now_ms,
            next: self.letters.first,
            is_full: false,
        };
        let joined = copied.concat();
        for batch in iter_batches(&joined).map_while(Result::ok) {
            if packing.is_over() {
                break;
            }
            packing.take(&batch);
        }
        packing.fill(self.letters.last);
        packing.finish()
    }
}

struct Packing<'a> {
    envelope: &'a Envelope,
    builder: BatchBuilder,
    bytes_max: usize,
    now_ms: i64,
    /// The offset of the next record.
    next: i64,
    is_full: bool,
}

impl Packing<'_> {
    fn is_over(&self) -> bool {
        self.is_full || self.next > self.envelope.letters.last
    }

    /// Adds the records of a batch, and headers alone for offsets before it that the log lacks.
    fn take(&mut self, batch: &BatchView<'_>) {
        let last = self.envelope.letters.last;
        if batch.is_control() || batch.last_offset() < self.next {
            return;
        }
        let mut decompressor = Decompressor::default();
        let Ok(records) = batch.records(&mut decompressor, UNPACKED_BYTES_MAX) else {
            tracing::warn!(topic = &*self.envelope.topic, offset = self.next, "no data to copy");
            return;
        };
        for record in records.map_while(Result::ok) {
            let offset = record.offset();
            if offset > last || self.is_full {
                return;
            }
            if offset >= self.next {
                self.fill(offset - 1);
                self.add(Some(&record));
            }
        }
    }

    /// Adds headers alone up to this offset.
    fn fill(&mut self, last: i64) {
        while !self.is_full && self.next <= last {
            self.add(None);
        }
    }

    fn add(&mut self, record: Option<&RecordView<'_>>) {
        if self.is_full {
            return;
        }
        let Envelope { group, topic, partition, letters } = self.envelope;
        let (partition, offset) = (partition.to_string(), self.next.to_string());
        let deliveries = letters.deliveries.to_string();
        let headers = [
            ("__dlq.errors.topic", &**topic),
            ("__dlq.errors.partition", &partition),
            ("__dlq.errors.offset", &offset),
            ("__dlq.errors.group", &**group),
            ("__dlq.errors.delivery.count", &deliveries),
            ("__dlq.errors.message", message(letters.cause)),
        ];
        let headers = headers
            .map(|(key, value)| HeaderView { key: key.as_bytes(), value: Some(value.as_bytes()) });
        let (key, value) = record.map_or((None, None), |it| (it.key(), it.value()));
        let size = BatchBuilder::record_size_max(key, value, headers);
        let is_first = self.builder.is_empty();
        let fits = self.builder.estimated_size().saturating_add(size) <= self.bytes_max;
        if !fits && !is_first {
            self.is_full = true;
            return;
        }
        // A record that no batch can hold was in one; with these headers it may not be.
        let added = self.builder.append(self.now_ms, key, value, headers);
        let added =
            added.or_else(|_too_long| self.builder.append(self.now_ms, None, None, headers));
        added.expect("headers of some hundred bytes fit");
        self.next += 1;
        self.is_full = !fits;
    }

    fn finish(mut self) -> Letter {
        let bytes = self.builder.finish_bytes(Compression::None, &mut Compressor::default());
        let bytes = bytes.expect("it has a record, and is not compressed");
        Letter { bytes, last: self.next - 1 }
    }
}

/// Kafka's words.
fn message(cause: Cause) -> &'static str {
    match cause {
        Cause::Rejected => "Offset rejected by client.",
        Cause::Spent => "Offset delivery count exceeded the threshold.",
    }
}
