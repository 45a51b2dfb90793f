//! Compaction: of each key of a log only the last record stays (Kafka's `cleanup.policy=compact`).
//!
//! A round maps the keys of the dirty part of a log to their last offsets, as far as the memory
//! goes, and writes the log anew up to there without what is superseded. Offsets stay what they
//! were. Where the round ends inside a run of a segment the rest of that run is copied, so that one
//! run takes the place of others as a whole. `moldau_records::Cleaner` decides what stays.
//!
//! Nothing is cleaned from the first open transaction on. Batches of aborted transactions go, and
//! supersede nothing; the marker of a commit goes when no record of its transaction is left.
//! Markers of aborts stay: recovery may find an aborted transaction in the journal that was cleaned
//! away here, and a consumer that learns of it waits for its marker.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use moldau_records::{BatchView, CleanPolicy, Cleaned, Cleaner, KeyMap, Mapped, Marker};

use crate::index::Extent;
use crate::journal::Journal;
use crate::log::LogState;
use crate::merge::Blocks;
use crate::segment::{SEGMENT_BYTES_MAX, SegmentWriter};
use crate::sort::Source;
use crate::sorted::Piece;
use crate::transactions::AbortedTransaction;
use crate::{Error, Log};

/// When and how a log is compacted, by Kafka's topic configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// `min.compaction.lag.ms`: younger records stay.
    pub min_lag_ms: i64,
    /// `max.compaction.lag.ms`: a dirty record of this age makes its log due.
    pub max_lag_ms: i64,
    /// `delete.retention.ms`: how long a tombstone stays from its first cleaning on.
    pub delete_retention_ms: i64,
    /// `min.cleanable.dirty.ratio`: share of dirty bytes that makes a log due.
    pub min_dirty_ratio: f64,
}

/// What a call of [`crate::Storage::compact`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Logs that were cleaned.
    pub logs: usize,
    /// Records read and retained.
    pub records_read: u64,
    /// Those of them that stayed.
    pub records_retained: u64,
}

/// A round of one log.
pub(crate) struct Round {
    log: Arc<Log>,
    /// Bytes of the log, and so the most that is written.
    pub(crate) bytes: u64,
    compaction: Compaction,
    /// First offset that the log's runs account for, and that the log has.
    base_offset: i64,
    start_offset: i64,
    /// First offset that was not cleaned before.
    dirty_offset: i64,
    /// Where cleaning must end.
    uncleanable_offset: i64,
    aborted: Aborted,
}

/// First and last offsets of aborted transactions, in order, by producer.
struct Aborted(HashMap<i64, Vec<(i64, i64)>>);

impl Aborted {
    fn of(transactions: &[AbortedTransaction]) -> Aborted {
        let mut aborted = Aborted(HashMap::new());
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

/// Result of the cleaning: the logs with their first dirty offsets, and the counts.
pub(crate) struct Written {
    pub(crate) dirty_offsets: Vec<(Arc<Log>, i64)>,
    pub(crate) compacted: Compacted,
}

/// The rounds of those logs that are due, in order of log and as many as are cleaned at once.
pub(crate) fn due(logs: &[(Arc<Log>, Compaction)], now_ms: i64) -> Vec<Round> {
    let mut due: Vec<Round> =
        logs.iter().filter_map(|(log, compaction)| round_of(log, *compaction, now_ms)).collect();
    due.sort_unstable_by_key(|round| round.log.id());
    let mut bytes = 0;
    let fitting = due.iter().take_while(|round| {
        let fits = bytes <= CLEANED_BYTES_MAX;
        bytes += round.bytes;
        fits
    });
    due.truncate(fitting.count());
    due
}

/// Writes what stays of the logs; says nothing of them yet.
pub(crate) fn clean(
    journal: &Journal,
    writer: &mut SegmentWriter<'_>,
    due: Vec<Round>,
    now_ms: i64,
) -> Result<Written, Error> {
    let mut written = Written { dirty_offsets: Vec::new(), compacted: Compacted::default() };
    let mut map = KeyMap::new(journal.options.clean_memory_bytes, fastrand::u64(..));
    for round in due {
        let policy = CleanPolicy {
            now_ms,
            delete_retention_ms: round.compaction.delete_retention_ms,
            first_uncleanable_offset: round.uncleanable_offset,
        };
        let mut cleaner = Cleaner::new(UNPACKED_BYTES_MAX, policy);
        let cleaned = round.map(journal, &mut cleaner, &mut map).and_then(|()| {
            if map.end_offset() <= round.dirty_offset {
                return Ok(());
            }
            round.write(journal, &mut cleaner, &map, writer)
        });
        if let Err(error) = cleaned {
            if error.is_damage() {
                tracing::error!(%error, "a log is not compacted any more");
                round.log.with_state(|state| state.is_damaged = true);
            }
            return Err(error);
        }
        if map.end_offset() > round.dirty_offset {
            let counts = cleaner.counts();
            written.compacted.logs += 1;
            written.compacted.records_read += counts.records_read;
            written.compacted.records_retained += counts.records_retained;
            written.dirty_offsets.push((round.log, map.end_offset()));
        }
    }
    Ok(written)
}

fn round_of(log: &Arc<Log>, compaction: Compaction, now_ms: i64) -> Option<Round> {
    let high_watermark = log.high_watermark();
    log.with_state(|state| {
        if state.is_deleted || state.is_damaged {
            return None;
        }
        let dirty_offset = state.dirty_offset.max(state.start_offset);
        let stable = state.last_stable_offset(high_watermark);
        let due = Due::of(state, dirty_offset, stable, compaction, now_ms);
        let is_due = due.is_due(compaction, now_ms) && state.bytes() < LOG_BYTES_MAX;
        let aborted = |end| state.transactions.aborted_in(state.start_offset, end);
        is_due.then(|| Round {
            aborted: Aborted::of(&aborted(due.uncleanable_offset)),
            log: Arc::clone(log),
            bytes: state.bytes(),
            compaction,
            base_offset: state.base_offset(),
            start_offset: state.start_offset,
            dirty_offset,
            uncleanable_offset: due.uncleanable_offset,
        })
    })
}

/// How dirty a log is.
struct Due {
    clean_bytes: u64,
    dirty_bytes: u64,
    uncleanable_offset: i64,
    /// Smallest of the largest timestamps of the dirty parts.
    dirty_timestamp: i64,
}

impl Due {
    fn of(
        state: &LogState,
        dirty_offset: i64,
        stable: i64,
        compaction: Compaction,
        now_ms: i64,
    ) -> Due {
        let youngest = match compaction.min_lag_ms {
            ..=0 => i64::MAX,
            lag => now_ms.saturating_sub(lag),
        };
        let mut due = Due {
            clean_bytes: 0,
            dirty_bytes: 0,
            uncleanable_offset: state.start_offset,
            dirty_timestamp: i64::MAX,
        };
        for step in state.steps_from(state.start_offset) {
            if step.next_offset <= dirty_offset {
                due.clean_bytes += step.bytes;
            } else if step.next_offset <= stable && step.max_timestamp <= youngest {
                due.dirty_bytes += step.bytes;
                due.dirty_timestamp = due.dirty_timestamp.min(step.max_timestamp);
            } else {
                break;
            }
            due.uncleanable_offset = step.next_offset;
        }
        due
    }

    #[expect(clippy::cast_precision_loss, reason = "a share needs no exact bytes")]
    fn is_due(&self, compaction: Compaction, now_ms: i64) -> bool {
        if self.dirty_bytes == 0 {
            return false;
        }
        let share = self.dirty_bytes as f64 / (self.clean_bytes + self.dirty_bytes) as f64;
        let age = now_ms.saturating_sub(self.dirty_timestamp);
        share >= compaction.min_dirty_ratio || age > compaction.max_lag_ms
    }
}

impl Round {
    fn map(&self, journal: &Journal, cleaner: &mut Cleaner, map: &mut KeyMap) -> Result<(), Error> {
        let (from, to) = (self.dirty_offset, self.uncleanable_offset);
        map.start(from, to);
        let mut is_full = false;
        walk(journal, &self.log, from, to, |batch, _| {
            if self.aborted.holds(batch) {
                map.advance_to(batch.next_offset());
                return Ok(ControlFlow::Continue(()));
            }
            // A batch that cannot be unpacked stays as it is, and what it holds of a key with it.
            is_full = matches!(cleaner.map_batch(batch, map), Ok(Mapped::Full));
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if !is_full {
            map.advance_to(to);
        }
        Ok(())
    }

    fn write(
        &self,
        journal: &Journal,
        cleaner: &mut Cleaner,
        map: &KeyMap,
        writer: &mut SegmentWriter<'_>,
    ) -> Result<(), Error> {
        let end = map.end_offset();
        // What lies behind the end of the round belongs to the same run or batch.
        let run_end = self.log.with_state(|state| state.sorted.end_of_run(end - 1));
        let to = run_end.unwrap_or(end);
        writer.begin_run(self.log.id(), self.base_offset);
        let from = self.start_offset.max(self.base_offset);
        // Producers of whose transaction something stays.
        let mut retained = HashSet::new();
        let next_offset = walk(journal, &self.log, from, to, |batch, state| {
            let kept = |writer: &mut SegmentWriter<'_>, batch: &BatchView<'_>| {
                writer.push(batch.bytes(), batch.base_offset(), batch.max_timestamp())
            };
            if batch.base_offset() >= end {
                kept(writer, batch)?;
                return Ok(ControlFlow::Continue(()));
            }
            let is_last = state.with_state(|state| state.producers.ends_with(batch));
            let ends_round = batch.next_offset() == self.uncleanable_offset;
            if batch.is_control() {
                let has_records = retained.remove(&batch.producer_id());
                let is_abort = batch.marker() != Some(Marker::Commit);
                if has_records || is_abort || ends_round {
                    kept(writer, batch)?;
                }
                return Ok(ControlFlow::Continue(()));
            }
            let cleaned = match self.aborted.holds(batch) {
                true if is_last || ends_round => cleaner.empty_batch(batch).map(Cleaned::Emptied),
                true => Ok(Cleaned::Removed),
                false => cleaner.clean_batch(batch, map, is_last),
            };
            let holds_records = matches!(cleaned, Ok(Cleaned::Unchanged | Cleaned::Rewritten(_)));
            if batch.is_transactional() && (holds_records || cleaned.is_err()) {
                retained.insert(batch.producer_id());
            }
            match cleaned {
                Ok(Cleaned::Removed) => {}
                Ok(Cleaned::Unchanged) | Err(_) => kept(writer, batch)?,
                Ok(Cleaned::Rewritten(bytes) | Cleaned::Emptied(bytes)) => {
                    let batch = BatchView::parse(bytes).expect("written by the cleaner");
                    kept(writer, &batch)?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        writer.end_run(next_offset.max(to));
        Ok(())
    }
}

/// Where the next batches of a walk lie.
enum Next {
    Pieces(Vec<Piece>),
    Extents(Vec<Extent>),
}

/// Gives the batches of a log from the one that holds `from` to the one that holds the offset
/// before `to`, and returns the offset after the last that was walked. What retention deletes in
/// the meantime is left out.
fn walk(
    journal: &Journal,
    log: &Log,
    from: i64,
    to: i64,
    mut visit: impl FnMut(&BatchView<'_>, &Log) -> Result<ControlFlow<()>, Error>,
) -> Result<i64, Error> {
    let (mut blocks, mut source) = (Blocks::new(journal), Source::new(journal));
    let mut at = from;
    while at < to {
        let next = log.with_state(|state| {
            let pieces: Vec<_> = state.sorted.pieces_from(at).take(PIECES_AT_ONCE).collect();
            if pieces.is_empty() {
                let extents = state.index.starting_at(at.max(state.sorted_end()));
                Next::Extents(extents.take(EXTENTS_AT_ONCE).collect())
            } else {
                Next::Pieces(pieces)
            }
        });
        let before = at;
        match next {
            Next::Pieces(pieces) => {
                for piece in pieces.iter().filter(|piece| piece.base_offset < to) {
                    for batch in moldau_records::iter_batches(&blocks.piece(piece)?).flatten() {
                        let is_wanted = batch.next_offset() > from && batch.base_offset() < to;
                        if is_wanted && visit(&batch, log)?.is_break() {
                            return Ok(batch.next_offset());
                        }
                    }
                    at = piece.next_offset;
                }
            }
            Next::Extents(extents) => {
                for extent in extents.iter().take_while(|extent| extent.base_offset < to) {
                    at = extent.next_offset;
                    let Some(batch) = source.batch(log.id(), extent)? else { continue };
                    let batch = BatchView::parse(batch).expect("verified by the source");
                    if visit(&batch, log)?.is_break() {
                        return Ok(at);
                    }
                }
            }
        }
        if at == before {
            break;
        }
    }
    Ok(at)
}

/// A batch that unpacks to more than this stays as it is.
const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Further logs that are due are cleaned by the next call.
const CLEANED_BYTES_MAX: u64 = 4 << 30;
/// A log is written to one segment. A larger one stays as it is.
const LOG_BYTES_MAX: u64 = SEGMENT_BYTES_MAX / 2;
/// Bounds the memory of a walk.
const PIECES_AT_ONCE: usize = 64;
const EXTENTS_AT_ONCE: usize = 1 << 16;
