//! A round of one log: what of it is due, and its two passes.

use std::collections::{HashMap, HashSet};

use bytes::{Bytes, BytesMut};
use moldau_records::{
    BatchView, CleanPolicy, Cleaned, Cleaner, KeyMap, Mapped, Marker, iter_batches,
};

use crate::Error;
use crate::object;
use crate::sequencer::{AbortedTransaction, Answer, Extent, Find, LogId, Sequencer};
use crate::store::Store;

use super::chunk::{Chunk, Piece};
use super::{CompactOptions, Compacted, Dirty};

/// What is cleaned of a log.
pub(super) struct Round {
    log: LogId,
    /// The extents from the start of the log to where cleaning must end.
    sources: Vec<Extent>,
    dirty_offset: i64,
    uncleanable_offset: i64,
    aborted: Aborted,
}

/// First and last offsets of aborted transactions, in order, by producer.
#[derive(Default)]
struct Aborted(HashMap<i64, Vec<(i64, i64)>>);

impl Aborted {
    fn of(transactions: &[AbortedTransaction]) -> Self {
        let mut aborted = Self::default();
        for transaction in transactions {
            let range = (transaction.first_offset, transaction.last_offset);
            aborted.0.entry(transaction.producer_id).or_default().push(range);
        }
        aborted
    }

    /// Whether the batch is of a transaction that was aborted.
    fn holds(&self, batch: &BatchView<'_>) -> bool {
        if !batch.is_transactional() || batch.is_control() {
            return false;
        }
        let offset = batch.base_offset();
        self.0.get(&batch.producer_id()).is_some_and(|ranges| {
            let after = ranges.partition_point(|(first, _)| *first <= offset);
            let before = after.checked_sub(1).and_then(|at| ranges.get(at));
            before.is_some_and(|(_, last)| offset < *last)
        })
    }
}

impl Round {
    /// What is to be cleaned, if the log is due.
    pub(super) async fn plan(
        sequencer: &impl Sequencer,
        dirty: Dirty,
        options: &CompactOptions,
        now_ms: i64,
    ) -> Answer<Option<Self>> {
        let log = dirty.log;
        let bounds = find(sequencer, Find { log, offset: 0, extents_max: 0 }).await?;
        let start_offset = bounds.start_offset;
        let stable = bounds.last_stable_offset;
        let youngest = match options.min_lag_ms {
            ..=0 => i64::MAX,
            lag => now_ms.saturating_sub(lag),
        };
        let is_cleanable = |extent: &Extent| {
            extent.sorted && extent.last_offset < stable && extent.max_timestamp <= youngest
        };
        let mut sources: Vec<Extent> = Vec::new();
        let mut offset = start_offset;
        'pages: while offset < stable && sources.len() < SOURCES_MAX {
            let page = find(sequencer, Find { log, offset, extents_max: EXTENTS_PER_LOOK }).await?;
            if page.extents.is_empty() {
                break;
            }
            for extent in page.extents {
                if !is_cleanable(&extent) {
                    break 'pages;
                }
                offset = extent.last_offset + 1;
                sources.push(extent);
            }
        }
        let dirty_offset = dirty.offset.max(start_offset);
        let uncleanable_offset = sources.last().map_or(0, |last| last.last_offset + 1);
        if !is_due(&sources, dirty_offset, options, now_ms) {
            return Ok(None);
        }
        let aborted = match bounds.has_aborted {
            true => sequencer.aborted(log, start_offset, uncleanable_offset).await?,
            false => Vec::new(),
        };
        let aborted = Aborted::of(&aborted);
        Ok(Some(Self { log, sources, dirty_offset, uncleanable_offset, aborted }))
    }

    pub(super) async fn run(
        self,
        sequencer: &impl Sequencer,
        store: &impl Store,
        options: &CompactOptions,
        now_ms: i64,
    ) -> Answer<Compacted> {
        let policy = CleanPolicy {
            now_ms,
            delete_retention_ms: options.delete_retention_ms,
            first_uncleanable_offset: self.uncleanable_offset,
        };
        let mut cleaner = Cleaner::new(UNPACKED_BYTES_MAX, policy);
        let mut map = KeyMap::new(options.map_bytes, options.seed);
        self.map(store, &mut cleaner, &mut map).await?;
        let end = map.end_offset();
        if end <= self.dirty_offset {
            return Ok(Compacted::Nothing);
        }
        let mut pass = Pass { round: &self, map: &map, cleaner, retained: HashSet::new() };
        let mut chunk = Chunk::new(self.log);
        for extent in &self.sources {
            // A chunk needs a batch to swap in.
            if extent.base_offset >= end && !chunk.is_void() {
                break;
            }
            let piece = pass.clean(&read(store, extent).await?);
            chunk.push(*extent, piece);
            if chunk.bytes_read() >= options.object_bytes && !chunk.is_void() {
                let full = std::mem::replace(&mut chunk, Chunk::new(self.log));
                full.swap(sequencer, store, options).await?;
            }
            // Connections of the same thread have their turn.
            tokio::task::yield_now().await;
        }
        chunk.swap(sequencer, store, options).await?;
        let counts = pass.cleaner.counts();
        Ok(Compacted::Cleaned {
            records_read: counts.records_read,
            records_retained: counts.records_retained,
            dirty_offset: end,
        })
    }

    /// Notes the last offsets of the keys of the dirty part.
    async fn map(&self, store: &impl Store, cleaner: &mut Cleaner, map: &mut KeyMap) -> Answer<()> {
        map.start(self.dirty_offset, self.uncleanable_offset);
        let is_dirty = |extent: &&Extent| extent.last_offset >= self.dirty_offset;
        for extent in self.sources.iter().filter(is_dirty) {
            let bytes = read(store, extent).await?;
            for batch in iter_batches(&bytes).flatten() {
                if self.aborted.holds(&batch) {
                    map.advance_to(batch.next_offset());
                    continue;
                }
                // A batch that cannot be unpacked stays, and what it holds of a key with it.
                if matches!(cleaner.map_batch(&batch, map), Ok(Mapped::Full)) {
                    return Ok(());
                }
            }
            tokio::task::yield_now().await;
        }
        map.advance_to(self.uncleanable_offset);
        Ok(())
    }
}

/// The second pass.
struct Pass<'r> {
    round: &'r Round,
    map: &'r KeyMap,
    cleaner: Cleaner,
    /// Producers of whose transaction something stays.
    retained: HashSet<i64>,
}

impl Pass<'_> {
    /// What stays of the batches of an extent.
    fn clean(&mut self, bytes: &Bytes) -> Piece {
        let mut out = BytesMut::with_capacity(bytes.len());
        let mut max_timestamp = NO_TIMESTAMP;
        for batch in iter_batches(bytes).flatten() {
            if let Some(kept) = self.clean_batch(&batch, &mut out) {
                max_timestamp = max_timestamp.max(kept);
            }
        }
        let is_changed = out != *bytes;
        Piece { bytes: out.freeze(), read: bytes.len(), max_timestamp, is_changed }
    }

    /// Appends what stays of a batch, and returns its greatest timestamp.
    fn clean_batch(&mut self, batch: &BatchView<'_>, out: &mut BytesMut) -> Option<i64> {
        let Self { round, map, cleaner, retained } = self;
        let ends_round = batch.next_offset() == round.uncleanable_offset;
        if batch.is_control() {
            let has_records = retained.remove(&batch.producer_id());
            let is_abort = batch.marker() != Some(Marker::Commit);
            let is_beyond = batch.base_offset() >= map.end_offset();
            return (has_records || is_abort || ends_round || is_beyond)
                .then(|| keep(batch.bytes(), batch.max_timestamp(), out));
        }
        let cleaned = match round.aborted.holds(batch) {
            true if ends_round => cleaner.empty_batch(batch).map(Cleaned::Emptied),
            true => Ok(Cleaned::Removed),
            false => cleaner.clean_batch(batch, map, false),
        };
        let holds_records = matches!(cleaned, Ok(Cleaned::Unchanged | Cleaned::Rewritten(_)));
        if batch.is_transactional() && (holds_records || cleaned.is_err()) {
            retained.insert(batch.producer_id());
        }
        match cleaned {
            Ok(Cleaned::Removed) => None,
            // What cannot be read stays as it is.
            Ok(Cleaned::Unchanged) | Err(_) => {
                Some(keep(batch.bytes(), batch.max_timestamp(), out))
            }
            Ok(Cleaned::Rewritten(bytes) | Cleaned::Emptied(bytes)) => {
                let written = BatchView::parse(bytes).expect("written by the cleaner");
                Some(keep(bytes, written.max_timestamp(), out))
            }
        }
    }
}

fn keep(bytes: &[u8], max_timestamp: i64, out: &mut BytesMut) -> i64 {
    out.extend_from_slice(bytes);
    max_timestamp
}

/// Whether enough of the extents is dirty, or old enough.
#[expect(clippy::cast_precision_loss, reason = "a share needs no exact bytes")]
fn is_due(sources: &[Extent], dirty_offset: i64, options: &CompactOptions, now_ms: i64) -> bool {
    let (mut clean, mut dirty, mut oldest) = (0_i64, 0_i64, i64::MAX);
    for extent in sources {
        if extent.last_offset < dirty_offset {
            clean += i64::from(extent.size);
        } else {
            dirty += i64::from(extent.size);
            oldest = oldest.min(extent.max_timestamp);
        }
    }
    if dirty == 0 {
        return false;
    }
    let share = dirty as f64 / (clean + dirty) as f64;
    share >= options.min_dirty_ratio || now_ms.saturating_sub(oldest) > options.max_lag_ms
}

async fn find(sequencer: &impl Sequencer, find: Find) -> Answer<crate::Found> {
    sequencer.find(&[find]).await?.pop().flatten().ok_or(Error::UnknownLog)
}

/// The batches of an extent.
async fn read(store: &impl Store, extent: &Extent) -> Answer<Bytes> {
    let damaged = |reason| Error::Damaged { key: extent.object, reason };
    let at = |position: i64| u64::try_from(position).map_err(|_| damaged("a negative position"));
    let end = extent.position.saturating_add(i64::from(extent.size));
    let bytes = store.get(extent.object, at(extent.position)?..at(end)?).await?;
    if i32::try_from(bytes.len()) != Ok(extent.size) {
        return Err(damaged("shorter than its extents"));
    }
    object::batches(&bytes, extent).map_err(|damage| damaged(damage.0))
}

/// Kafka's number for no timestamp.
const NO_TIMESTAMP: i64 = -1;
/// A batch that unpacks to more than this stays as it is.
const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Extents of one lookup.
const EXTENTS_PER_LOOK: i64 = 1_000;
/// Extents of one round, some ten MiB of memory. What lies behind them stays dirty.
const SOURCES_MAX: usize = 100_000;
