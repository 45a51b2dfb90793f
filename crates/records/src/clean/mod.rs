//! Log compaction without the log: which records of a compacted topic stay, and the batches without
//! the others, as Kafka's `Cleaner` and `MemoryRecords.filterTo` leave them (KIP-534 included).
//!
//! A round over one log has two passes, both in offset order:
//! 1. [`Cleaner::map_batch`] notes the last offset of every key of the dirty batches in a
//!    [`KeyMap`], until they end or it is full.
//! 2. [`Cleaner::clean_batch`] filters every batch from the start of the log to the map's end.
//!
//! | record | stays |
//! |---|---|
//! | at or after the map's end | always |
//! | without a key | never |
//! | with a key that the map has at a later offset | never |
//! | with a null value, in a batch whose delete horizon has come | never |
//! | any other | always |
//!
//! A batch keeps its place: base offset, last offset delta, leader epoch, producer id, epoch and
//! sequence, codec, timestamp type and the offsets of the records that stay. The first time that
//! a batch with a tombstone is cleaned, its base timestamp becomes the delete horizon.
//!
//! Records of aborted transactions, and control batches, are for the caller to judge, who knows the
//! transactions: it passes over them, or empties them by [`Cleaner::empty_batch`]. Given to the
//! cleaner, control batches stay.
//!
//! A batch that cannot be read stays too, and may hold an older value of any key. From there on
//! tombstones stay beyond their horizon for the rest of the round: what they deleted would come
//! back without them.

mod key_map;

use key_map::KeyHash;
pub use key_map::{Full, KeyMap};

use crate::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    Error, NO_TIMESTAMP, Producer, RecordView, Records, TimestampType,
};

/// Settings of a round of cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanPolicy {
    /// The time of the round, in ms since 1970.
    pub now_ms: i64,
    /// How long tombstones stay from their first cleaning on: Kafka's `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// Offset at which the cleanable part of the log ends. The batch that ends right before it
    /// stays even without records, so that the log keeps its last offset.
    pub first_uncleanable_offset: i64,
}

/// How far [`Cleaner::map_batch`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapped {
    /// All records of the batch are in the map.
    Whole,
    /// The map is full: its range ends at the record that found no room, maybe inside the batch.
    /// The rest of the log is for another round.
    Full,
}

/// What is left of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaned<'c> {
    /// The batch as it is, every byte of it.
    Unchanged,
    /// These bytes in its place: fewer records, or a delete horizon.
    Rewritten(&'c [u8]),
    /// These bytes in its place: a header without records, for the sake of its sequence number or
    /// its last offset.
    Emptied(&'c [u8]),
    /// Nothing.
    Removed,
}

/// What [`Cleaner::clean_batch`] has seen since the round began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanCounts {
    /// Records in all batches that were read, those of control batches left out.
    pub records_read: u64,
    /// Those of them that stay.
    pub records_retained: u64,
    /// Records without a key, which a compacted topic should not have.
    pub records_without_key: u64,
    /// Batches that unpack to more than the limit, which stay as they are.
    pub batches_too_large: u64,
}

/// Cleans the batches of one log after the other in buffers that it keeps.
///
/// ```
/// use moldau_records::{
///     BatchBuilder, BatchOptions, BatchView, CleanPolicy, Cleaned, Cleaner, Compression,
///     Compressor, KeyMap,
/// };
///
/// let mut builder = BatchBuilder::new(BatchOptions::default());
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"first"), [])?;
/// builder.append(1_700_000_000_001, Some(b"key"), Some(b"last"), [])?;
/// let bytes = builder.finish(Compression::None, &mut Compressor::default())?;
/// let batch = BatchView::parse(bytes)?;
///
/// let mut map = KeyMap::new(1 << 20, 42);
/// map.start(0, 2);
/// let policy = CleanPolicy {
///     now_ms: 1_700_000_000_002,
///     delete_retention_ms: 86_400_000,
///     first_uncleanable_offset: 2,
/// };
/// let mut cleaner = Cleaner::new(1 << 20, policy);
/// cleaner.map_batch(&batch, &mut map)?;
/// let Cleaned::Rewritten(bytes) = cleaner.clean_batch(&batch, &map, false)? else { panic!() };
/// let cleaned = BatchView::parse(bytes)?;
/// assert_eq!((cleaned.records_count(), cleaned.last_offset()), (1, 1));
/// # Ok::<(), moldau_records::Error>(())
/// ```
#[derive(Debug)]
pub struct Cleaner {
    policy: CleanPolicy,
    counts: CleanCounts,
    /// Whether the round met a batch that it could not read.
    keeps_tombstones: bool,
    unpacked_bytes_max: usize,
    decompressor: Decompressor,
    compressor: Compressor,
    builder: BatchBuilder,
    /// Keys that the map is to take, and their offsets.
    keys: Vec<(KeyHash, i64)>,
    /// Records that are yet to be searched for in the map.
    judged: Vec<Judged>,
    /// Of each record of a batch, whether it stays.
    retained: Vec<bool>,
}

/// Records that are hashed before the first of them is searched for: more than the accesses that
/// a processor has under way, and few enough for its nearest cache.
const SEARCHES_AT_ONCE: usize = 128;

impl Cleaner {
    /// A cleaner that unpacks at most `unpacked_bytes_max` bytes of a batch, at the begin of a
    /// round. Its buffers grow to twice that, where records are of a few bytes to six times.
    #[must_use]
    pub fn new(unpacked_bytes_max: usize, policy: CleanPolicy) -> Self {
        Self {
            policy,
            counts: CleanCounts::default(),
            keeps_tombstones: false,
            unpacked_bytes_max,
            decompressor: Decompressor::default(),
            compressor: Compressor::default(),
            builder: BatchBuilder::new(BatchOptions::default()),
            keys: Vec::new(),
            judged: Vec::new(),
            retained: Vec::new(),
        }
    }

    /// Begins another round, for this or another log, with all counts at 0.
    pub fn start(&mut self, policy: CleanPolicy) {
        self.policy = policy;
        self.counts = CleanCounts::default();
        self.keeps_tombstones = false;
    }

    /// What [`Self::clean_batch`] has seen since the round began.
    #[must_use]
    pub fn counts(&self) -> CleanCounts {
        self.counts
    }

    /// Notes the offsets of the batch's keys and moves the map's end behind the batch, or, where
    /// the map is full, to the record that found no room. Control batches and those before the
    /// map's range are passed over, as are those that unpack to more than the limit.
    ///
    /// # Errors
    /// [`Error::CrcMismatch`], and as [`BatchView::records`]. What the map has taken up of the
    /// batch stays, and is right: going on with the next batch loses no record.
    pub fn map_batch(&mut self, batch: &BatchView<'_>, map: &mut KeyMap) -> Result<Mapped, Error> {
        check(batch)?;
        if !batch.is_control() && batch.last_offset() >= map.from_offset() {
            match batch.records(&mut self.decompressor, self.unpacked_bytes_max) {
                Ok(records) => {
                    if map_records(batch, records, map, &mut self.keys)? == Mapped::Full {
                        return Ok(Mapped::Full);
                    }
                }
                // The second pass counts it.
                Err(Error::PayloadTooLarge { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        map.advance_to(batch.next_offset());
        Ok(Mapped::Whole)
    }

    /// Filters one batch; a round gives all batches in offset order. `is_last_of_producer` says
    /// that the batch holds the last sequence number of a producer that the broker still knows.
    ///
    /// # Errors
    /// [`Error::CrcMismatch`], and as [`BatchView::records`]. A caller that keeps the batch as it
    /// is may go on with the next.
    pub fn clean_batch(
        &mut self,
        batch: &BatchView<'_>,
        map: &KeyMap,
        is_last_of_producer: bool,
    ) -> Result<Cleaned<'_>, Error> {
        let is_last_of_producer = is_last_of_producer && batch.has_producer_id();
        match self.filter(batch, map, is_last_of_producer) {
            Ok(Outcome::Unchanged) => Ok(Cleaned::Unchanged),
            Ok(Outcome::Removed) => Ok(Cleaned::Removed),
            Ok(Outcome::Rewritten) => self
                .builder
                .finish(batch.compression()?, &mut self.compressor)
                .inspect_err(|_| self.keeps_tombstones = true)
                .map(Cleaned::Rewritten),
            Ok(Outcome::Emptied) => {
                let emptied = self.builder.finish(Compression::None, &mut self.compressor)?;
                let is_unchanged = emptied == batch.bytes();
                Ok(if is_unchanged { Cleaned::Unchanged } else { Cleaned::Emptied(emptied) })
            }
            Err(Error::PayloadTooLarge { .. }) => {
                self.counts.batches_too_large += 1;
                self.keeps_tombstones = true;
                Ok(Cleaned::Unchanged)
            }
            Err(error) => {
                self.keeps_tombstones = true;
                Err(error)
            }
        }
    }

    /// The batch without its records, as [`Cleaned::Emptied`] has it.
    ///
    /// # Errors
    /// [`Error::CrcMismatch`], [`Error::InvalidOffsetDelta`].
    pub fn empty_batch(&mut self, batch: &BatchView<'_>) -> Result<&[u8], Error> {
        check(batch)?;
        self.builder.start(options_without_records(batch));
        self.builder.finish(Compression::None, &mut self.compressor)
    }

    /// Decides, and leaves what is to be written in the builder.
    fn filter(
        &mut self,
        batch: &BatchView<'_>,
        map: &KeyMap,
        is_last_of_producer: bool,
    ) -> Result<Outcome, Error> {
        check(batch)?;
        if batch.is_control() {
            return Ok(Outcome::Unchanged);
        }
        let records = batch.records(&mut self.decompressor, self.unpacked_bytes_max)?;
        let rules = Rules {
            map,
            removes_tombstones: !self.keeps_tombstones
                && batch.delete_horizon().is_some_and(|horizon| self.policy.now_ms >= horizon),
        };
        let sift = Sift {
            rules,
            judged: &mut self.judged,
            retained: &mut self.retained,
            counts: Sifted::default(),
        };
        let sifted = sift.all(in_order(batch, records.clone()))?;
        self.counts.records_read += sifted.read;
        self.counts.records_retained += sifted.retained;
        self.counts.records_without_key += sifted.without_key;

        if sifted.retained == 0 {
            let is_last_of_round = batch.next_offset() == self.policy.first_uncleanable_offset;
            if !is_last_of_producer && !is_last_of_round {
                return Ok(Outcome::Removed);
            }
            self.builder.start(options_without_records(batch));
            return Ok(Outcome::Emptied);
        }
        let gets_horizon = sifted.has_tombstone && batch.delete_horizon().is_none();
        if sifted.retained == sifted.read && !gets_horizon {
            return Ok(Outcome::Unchanged);
        }
        let horizon = if gets_horizon {
            Some(self.policy.now_ms.saturating_add(self.policy.delete_retention_ms))
        } else {
            batch.delete_horizon()
        };
        self.builder.start(options_with_records(batch, horizon));
        for (record, _) in records.zip(&self.retained).filter(|(_, retained)| **retained) {
            let record = record?;
            self.builder.append_at(
                record.offset_delta(),
                record.timestamp(),
                record.key(),
                record.value(),
                record.headers()?,
            )?;
        }
        Ok(Outcome::Rewritten)
    }
}

/// [`Cleaned`] before its bytes are complete.
enum Outcome {
    Unchanged,
    Rewritten,
    Emptied,
    Removed,
}

/// A record, judged by all but the later records of its key.
#[derive(Debug)]
struct Judged {
    /// Zeros for no key.
    hash: KeyHash,
    offset: i64,
    is_tombstone: bool,
    may_stay: bool,
}

/// What decides over the records of a batch.
struct Rules<'m> {
    map: &'m KeyMap,
    removes_tombstones: bool,
}

impl Rules<'_> {
    #[inline]
    fn judge(&self, record: &RecordView<'_>) -> Judged {
        let is_tombstone = record.value().is_none();
        let is_expired = is_tombstone && self.removes_tombstones;
        let is_beyond_map = record.offset() >= self.map.end_offset();
        Judged {
            hash: record.key().map_or([0; 2], |key| self.map.hash(key)),
            offset: record.offset(),
            is_tombstone,
            may_stay: is_beyond_map || record.key().is_some() && !is_expired,
        }
    }

    /// A record at or after the map's end stays: all that the search finds lies before it.
    #[inline]
    fn is_superseded(&self, judged: &Judged) -> bool {
        self.map.latest_hash(judged.hash).is_some_and(|latest| judged.offset < latest)
    }
}

#[derive(Default)]
struct Sifted {
    read: u64,
    retained: u64,
    without_key: u64,
    /// Whether a record that stays has a null value.
    has_tombstone: bool,
}

/// Judges each record of a batch before anything is written: a tombstone at the end of it changes
/// the timestamp deltas from its first record on.
struct Sift<'s> {
    rules: Rules<'s>,
    judged: &'s mut Vec<Judged>,
    retained: &'s mut Vec<bool>,
    counts: Sifted,
}

impl Sift<'_> {
    fn all<'p>(
        mut self,
        records: impl Iterator<Item = Result<RecordView<'p>, Error>>,
    ) -> Result<Sifted, Error> {
        self.judged.clear();
        self.retained.clear();
        for record in records {
            let record = record?;
            self.counts.read += 1;
            self.counts.without_key += u64::from(record.key().is_none());
            self.judged.push(self.rules.judge(&record));
            if self.judged.len() == SEARCHES_AT_ONCE {
                self.search();
            }
        }
        self.search();
        Ok(self.counts)
    }

    fn search(&mut self) {
        for judged in self.judged.drain(..) {
            let is_retained = judged.may_stay && !self.rules.is_superseded(&judged);
            self.retained.push(is_retained);
            self.counts.retained += u64::from(is_retained);
            self.counts.has_tombstone |= is_retained && judged.is_tombstone;
        }
    }
}

/// Puts all keys of the map's range into the map, or those for which it has room.
fn map_records(
    batch: &BatchView<'_>,
    records: Records<'_>,
    map: &mut KeyMap,
    keys: &mut Vec<(KeyHash, i64)>,
) -> Result<Mapped, Error> {
    keys.clear();
    for record in in_order(batch, records) {
        let record = record?;
        if let Some(key) = record.key().filter(|_| record.offset() >= map.from_offset()) {
            keys.push((map.hash(key), record.offset()));
        }
        if keys.len() == SEARCHES_AT_ONCE && insert(keys, map) == Mapped::Full {
            return Ok(Mapped::Full);
        }
    }
    Ok(insert(keys, map))
}

fn insert(keys: &mut Vec<(KeyHash, i64)>, map: &mut KeyMap) -> Mapped {
    for (hash, offset) in keys.drain(..) {
        if map.insert_hash(hash, offset).is_err() {
            map.advance_to(offset);
            return Mapped::Full;
        }
    }
    Mapped::Whole
}

/// Rewriting gives damaged bytes a right CRC, and mapping them removes the records of a wrong key.
/// The offset lies outside of the CRC.
fn check(batch: &BatchView<'_>) -> Result<(), Error> {
    let offset_delta = batch.last_offset_delta();
    if offset_delta < 0 {
        return Err(Error::InvalidOffsetDelta { offset_delta, previous: -1 });
    }
    let end_offset =
        batch.base_offset().checked_add(i64::from(offset_delta)).and_then(|at| at.checked_add(1));
    if batch.base_offset() < 0 || end_offset.is_none() {
        return Err(Error::InvalidRecord { reason: "its offset is beyond those of a log" });
    }
    batch.check_crc()
}

/// The records, with an error where their offsets do not grow or pass that of the batch: no one
/// has looked at them before.
fn in_order<'p>(
    batch: &BatchView<'_>,
    records: Records<'p>,
) -> impl Iterator<Item = Result<RecordView<'p>, Error>> {
    let last_offset_delta = batch.last_offset_delta();
    let mut previous = -1;
    records.map(move |record| {
        let record = record?;
        let offset_delta = record.offset_delta();
        if offset_delta <= previous || offset_delta > last_offset_delta {
            return Err(Error::InvalidOffsetDelta { offset_delta, previous });
        }
        previous = offset_delta;
        Ok(record)
    })
}

/// The header of a batch that keeps records. Without a delete horizon deltas count from the first
/// of them; under LogAppendTime all have the timestamp of the batch.
fn options_with_records(batch: &BatchView<'_>, horizon: Option<i64>) -> BatchOptions {
    let is_log_append_time = batch.timestamp_type() == TimestampType::LogAppendTime;
    BatchOptions {
        attributes: batch.attributes().with_delete_horizon(horizon.is_some()),
        base_timestamp: horizon,
        max_timestamp: is_log_append_time.then(|| batch.max_timestamp()),
        ..place_of(batch)
    }
}

/// The header of a batch that keeps none: neither codec nor horizon.
fn options_without_records(batch: &BatchView<'_>) -> BatchOptions {
    BatchOptions {
        attributes: Attributes::default()
            .with_timestamp_type(batch.timestamp_type())
            .with_transactional(batch.is_transactional()),
        base_timestamp: Some(NO_TIMESTAMP),
        max_timestamp: Some(batch.max_timestamp()),
        ..place_of(batch)
    }
}

/// Offsets, leader epoch and producer. The latter whether or not it has an id, since the header
/// holds an epoch and a sequence either way.
fn place_of(batch: &BatchView<'_>) -> BatchOptions {
    BatchOptions {
        producer: Some(Producer {
            id: batch.producer_id(),
            epoch: batch.producer_epoch(),
            base_sequence: batch.base_sequence(),
        }),
        ..BatchOptions::of(batch)
    }
}
