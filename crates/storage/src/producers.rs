//! Idempotent producers of one log, as Kafka's `ProducerStateManager` keeps them (KIP-98, KIP-360).
//!
//! A producer's last five batches are remembered: a batch that is sent again returns the offsets it
//! got the first time, a gap in the sequence is refused. A producer that the log does not know may
//! start with any sequence number, since its earlier batches may have been deleted by retention.

use std::collections::HashMap;

use moldau_records::BatchView;

use crate::AppendError;
use crate::format::Fields;
use crate::transactions::Transactions;

/// What is remembered of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BatchMark {
    first_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    last_offset: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    epoch: i16,
    last_timestamp: i64,
    /// Newest last; none of this epoch if a transaction ended with it.
    batches: Vec<BatchMark>,
}

/// A batch that the log holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
}

/// All producers of a log, by producer id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    entries: HashMap<i64, Entry>,
}

impl Producers {
    /// Whether the batch may be appended; `Some` if the log holds it already.
    pub(crate) fn check(&self, batch: &BatchView<'_>) -> Result<Option<Duplicate>, AppendError> {
        let Some(entry) = self.entries.get(&batch.producer_id()) else { return Ok(None) };
        if !batch.has_producer_id() || batch.is_control() {
            return Ok(None);
        }
        let epoch = batch.producer_epoch();
        if epoch < entry.epoch {
            return Err(AppendError::InvalidProducerEpoch { epoch, current: entry.epoch });
        }
        let first_sequence = batch.base_sequence();
        let out_of_order =
            |last_sequence| AppendError::OutOfOrderSequence { last_sequence, first_sequence };
        if epoch > entry.epoch {
            return if first_sequence == 0 { Ok(None) } else { Err(out_of_order(NO_SEQUENCE)) };
        }
        let last_sequence = batch.last_sequence();
        let same = entry.batches.iter().find(|mark| {
            mark.first_sequence == first_sequence && mark.last_sequence == last_sequence
        });
        if let Some(mark) = same {
            let BatchMark { base_offset, last_offset, .. } = *mark;
            return Ok(Some(Duplicate { base_offset, last_offset }));
        }
        let last = entry.batches.last().map_or(NO_SEQUENCE, |mark| mark.last_sequence);
        let follows = match last.checked_add(1) {
            Some(next) => first_sequence == next,
            None => first_sequence == 0,
        };
        if follows { Ok(None) } else { Err(out_of_order(last)) }
    }

    /// Each producer: id, epoch, last sequence number (-1 for none), timestamp of the last batch.
    pub(crate) fn all(&self) -> impl Iterator<Item = (i64, i16, i32, i64)> + '_ {
        self.entries.iter().map(|(id, entry)| {
            let last = entry.batches.last().map_or(NO_SEQUENCE, |mark| mark.last_sequence);
            (*id, entry.epoch, last, entry.last_timestamp)
        })
    }

    /// The epoch of a producer, if it is known.
    pub(crate) fn epoch_of(&self, id: i64) -> Option<i16> {
        self.entries.get(&id).map(|entry| entry.epoch)
    }

    /// The greatest id, if there is any.
    pub(crate) fn id_max(&self) -> Option<i64> {
        self.entries.keys().copied().max()
    }

    /// Whether the batch is the last of its producer: with it the producer's sequence would go.
    pub(crate) fn ends_with(&self, batch: &BatchView<'_>) -> bool {
        let entry = self.entries.get(&batch.producer_id());
        let last = entry.and_then(|entry| entry.batches.last());
        last.is_some_and(|mark| mark.base_offset == batch.base_offset())
    }

    /// Remembers a batch that was appended with this base offset. Producers with an open
    /// transaction are not forgotten to make room.
    pub(crate) fn record(
        &mut self,
        batch: &BatchView<'_>,
        base_offset: i64,
        transactions: &Transactions,
    ) {
        if !batch.has_producer_id() {
            return;
        }
        let id = batch.producer_id();
        if self.entries.len() >= PRODUCERS_MAX && !self.entries.contains_key(&id) {
            self.drop_oldest(transactions);
        }
        let epoch = batch.producer_epoch();
        let entry = self.entries.entry(id).or_insert_with(|| Entry {
            epoch,
            last_timestamp: batch.max_timestamp(),
            batches: Vec::with_capacity(1),
        });
        entry.last_timestamp = batch.max_timestamp();
        if entry.epoch != epoch {
            entry.epoch = epoch;
            entry.batches.clear();
        }
        // The end of a transaction has no sequence number.
        if batch.is_control() {
            return;
        }
        let mark = BatchMark {
            first_sequence: batch.base_sequence(),
            last_sequence: batch.last_sequence(),
            base_offset,
            last_offset: base_offset + i64::from(batch.last_offset_delta()),
        };
        if entry.batches.len() == BATCHES_REMEMBERED {
            entry.batches.remove(0);
        }
        entry.batches.push(mark);
    }

    /// Forgets the producers whose last batch is at least this old, as `producer.id.expiration.ms`
    /// asks, unless they have an open transaction.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64, transactions: &Transactions) {
        let keeps = |entry: &Entry| now_ms.saturating_sub(entry.last_timestamp) < expiration_ms;
        self.entries.retain(|id, entry| keeps(entry) || transactions.is_open(*id));
        if self.entries.is_empty() {
            self.entries = HashMap::new();
        }
    }

    fn drop_oldest(&mut self, transactions: &Transactions) {
        let mut ages: Vec<i64> = self.entries.values().map(|entry| entry.last_timestamp).collect();
        let (_, limit, _) = ages.select_nth_unstable(PRODUCERS_MAX / 8);
        let limit = *limit;
        let mut excess = PRODUCERS_MAX / 8;
        self.entries.retain(|id, entry| {
            let goes = entry.last_timestamp <= limit && excess > 0 && !transactions.is_open(*id);
            excess -= usize::from(goes);
            !goes
        });
    }

    /// Appends the state to `out`: number of producers, then each with its batches.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.entries.len()).expect("bounded by their memory");
        out.extend_from_slice(&count.to_le_bytes());
        for (id, entry) in &self.entries {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&entry.epoch.to_le_bytes());
            let batches = u8::try_from(entry.batches.len()).expect("at most five");
            out.push(batches);
            out.extend_from_slice(&entry.last_timestamp.to_le_bytes());
            for mark in &entry.batches {
                out.extend_from_slice(&mark.first_sequence.to_le_bytes());
                out.extend_from_slice(&mark.last_sequence.to_le_bytes());
                out.extend_from_slice(&mark.base_offset.to_le_bytes());
                out.extend_from_slice(&mark.last_offset.to_le_bytes());
            }
        }
    }

    /// Reads what [`Producers::encode`] wrote.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Producers> {
        let mut producers = Producers::default();
        for _ in 0..fields.u32()? {
            let id = fields.i64()?;
            let epoch = fields.i16()?;
            let [batches_count] = fields.take()?;
            let last_timestamp = fields.i64()?;
            let mut batches = Vec::new();
            for _ in 0..batches_count {
                batches.push(BatchMark {
                    first_sequence: fields.i32()?,
                    last_sequence: fields.i32()?,
                    base_offset: fields.i64()?,
                    last_offset: fields.i64()?,
                });
            }
            producers.entries.insert(id, Entry { epoch, last_timestamp, batches });
        }
        Some(producers)
    }
}

/// Kafka's `RecordBatch.NO_SEQUENCE`.
const NO_SEQUENCE: i32 = -1;
/// Kafka's `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`: the most that an idempotent producer has in
/// flight.
const BATCHES_REMEMBERED: usize = 5;
/// A producer costs about 200 bytes. Clients that take an id per run must not grow a log without
/// bound; past this the eighth that has been silent for longest is forgotten.
const PRODUCERS_MAX: usize = 1 << 16;
