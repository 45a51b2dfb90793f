//! Sorts objects: many that were written as batches came become one, in which the batches of each
//! log follow one another. The sequencer then has one extent where it had many, and a reader of one
//! log reads few ranges.
//!
//! Any broker may sort at any time. One swap replaces all extents or none, so of two brokers that
//! sort the same objects one has worked in vain; its object is garbage.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::Error;
use crate::object::{self, ObjectBuilder};
use crate::retry::insist;
use crate::sequencer::{Answer, Extent, LogId, Sequencer, Swap};
use crate::store::{Store, upload};

/// What is sorted at a time.
#[derive(Debug, Clone, Copy)]
pub struct SortOptions {
    /// Fewer objects are left alone: the latest ones are read by all that follow their logs, and
    /// those reads share blocks.
    pub objects_min: usize,
    /// Most objects at a time.
    pub objects_max: usize,
    /// Bytes of batches, which are in memory meanwhile: no object is added above it.
    pub object_bytes: usize,
    /// Extents grow up to this many bytes. A reader reads whole extents.
    pub extent_bytes: usize,
    /// For the PUT and for the swap.
    pub timeout: Duration,
}

impl Default for SortOptions {
    fn default() -> Self {
        Self {
            objects_min: 64,
            objects_max: 512,
            object_bytes: 64 << 20,
            extent_bytes: 1 << 20,
            timeout: Duration::from_secs(60),
        }
    }
}

/// What became of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorted {
    /// There was too little to sort.
    Nothing,
    /// Extents were replaced.
    Swapped {
        /// Extents before.
        sources: usize,
        /// Extents after.
        targets: usize,
        /// Objects that were left out, as they do not hold what was written.
        damaged: usize,
    },
    /// Another broker was first, or the extents were trimmed. Nothing was replaced.
    Outrun,
}

/// Sorts the oldest objects that are not sorted. One that is damaged stays as it is.
///
/// # Errors
/// [`Error::Damaged`] if no other is left; retriable ones, after which it is unknown whether the
/// extents were replaced.
pub async fn sort(
    sequencer: &impl Sequencer,
    store: &impl Store,
    options: SortOptions,
) -> Answer<Sorted> {
    let objects_max = i64::try_from(options.objects_max).unwrap_or(i64::MAX);
    let found = sequencer.unsorted(objects_max).await?;
    let sources = choose(found, options);
    if sources.is_empty() {
        return Ok(Sorted::Nothing);
    }
    let Pieces { pieces, damages } = match read(store, &sources).await {
        // Whoever deletes an object has replaced or trimmed its extents.
        Err(Error::ObjectMissing(_)) => return Ok(Sorted::Outrun),
        pieces => pieces?,
    };
    let damaged = damages.len();
    if let (true, Some(damage)) = (pieces.is_empty(), damages.into_iter().next()) {
        return Err(damage);
    }
    let sources: Vec<_> = pieces.iter().map(|(log, extent, _)| (*log, *extent)).collect();
    let (object, targets) = join(pieces, options.extent_bytes);
    let sorted = Sorted::Swapped { sources: sources.len(), targets: targets.len(), damaged };
    let replaced = replace(sequencer, store, (object, sources, targets), options.timeout).await?;
    Ok(if replaced { sorted } else { Sorted::Outrun })
}

/// Extents of logs.
type Extents = Vec<(LogId, Extent)>;

/// Puts an object and swaps its extents in. Whether the sources were still there.
///
/// # Errors
/// Retriable ones, after which it is unknown whether the extents were replaced.
pub(crate) async fn replace(
    sequencer: &impl Sequencer,
    store: &impl Store,
    (object, sources, targets): (Bytes, Extents, Extents),
    timeout: Duration,
) -> Answer<bool> {
    let deadline = Instant::now() + timeout;
    let key = upload(sequencer, store, object, deadline).await?;
    let swap = Swap { key, sources, targets };
    let deadline = deadline.max(Instant::now() + timeout / 4);
    match insist(deadline, || sequencer.swap(&swap)).await {
        Ok(()) => Ok(true),
        Err(Error::SourcesChanged | Error::ObjectDead(_) | Error::KeyExpired(_)) => {
            // Garbage at once, without a list of the store. Sources never come back, so a swap that
            // is still under way cannot succeed either.
            sequencer.condemn(&[key]).await?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The extents of the first objects that fit, or none if that is too little.
fn choose(mut found: Vec<(LogId, Extent)>, options: SortOptions) -> Vec<(LogId, Extent)> {
    let (mut objects, mut bytes, mut end) = (0, 0, 0);
    let mut is_full = false;
    for of_object in found.chunk_by(|a, b| a.1.object == b.1.object) {
        let size: usize = of_object.iter().map(|(_, extent)| size(extent)).sum();
        is_full = objects > 0 && bytes + size > options.object_bytes;
        if is_full {
            break;
        }
        (objects, bytes, end) = (objects + 1, bytes + size, end + of_object.len());
    }
    let is_enough = is_full || objects >= options.objects_min.max(1);
    found.truncate(if is_enough { end } else { 0 });
    found
}

/// Batches of extents, with their offsets, in order of logs and offsets.
#[derive(Default)]
struct Pieces {
    pieces: Vec<(LogId, Extent, Bytes)>,
    /// One error for each object that is left out.
    damages: Vec<Error>,
}

async fn read(store: &impl Store, sources: &[(LogId, Extent)]) -> Answer<Pieces> {
    let mut read = Pieces::default();
    for of_object in sources.chunk_by(|a, b| a.1.object == b.1.object) {
        match read_object(store, of_object).await {
            Ok(pieces) => read.pieces.extend(pieces),
            Err(damage @ Error::Damaged { .. }) => read.damages.push(damage),
            Err(error) => return Err(error),
        }
    }
    read.pieces.sort_by_key(|(log, extent, _)| (*log, extent.base_offset));
    Ok(read)
}

/// The extents of one object, with one request.
async fn read_object(
    store: &impl Store,
    extents: &[(LogId, Extent)],
) -> Answer<Vec<(LogId, Extent, Bytes)>> {
    let Some(key) = extents.first().map(|(_, extent)| extent.object) else { return Ok(vec![]) };
    let damaged = |reason| Error::Damaged { key, reason };
    let start = extents.iter().map(|(_, extent)| extent.position).min().unwrap_or(0);
    let end = extents.iter().map(|(_, extent)| end(extent)).max().unwrap_or(0);
    let at = |position: i64| u64::try_from(position).map_err(|_| damaged("a negative position"));
    let bytes = store.get(key, at(start)?..at(end)?).await?;
    let piece = |(log, extent): &(LogId, Extent)| {
        let from = usize::try_from(extent.position - start).unwrap_or(usize::MAX);
        let until = from.saturating_add(size(extent));
        let piece = bytes.get(from..until).ok_or(damaged("shorter than its extents"))?;
        let batches = object::batches(piece, extent).map_err(|damage| damaged(damage.0))?;
        Ok((*log, *extent, batches))
    };
    extents.iter().map(piece).collect()
}

/// The sorted object and its extents. Those that follow one another in offsets become one.
fn join(pieces: Vec<(LogId, Extent, Bytes)>, extent_bytes: usize) -> (Bytes, Vec<(LogId, Extent)>) {
    let mut builder = ObjectBuilder::default();
    let mut targets: Vec<(LogId, Extent)> = Vec::new();
    // The first piece of each target.
    let mut firsts = Vec::new();
    for (i, (log, extent, batches)) in pieces.into_iter().enumerate() {
        builder.push(log, batches);
        match targets.last_mut() {
            Some((last_log, last))
                if *last_log == log
                    && last.last_offset + 1 == extent.base_offset
                    && last.leader_epoch == extent.leader_epoch
                    && size(last).saturating_add(size(&extent)) <= extent_bytes.min(SIZE_MAX) =>
            {
                last.last_offset = extent.last_offset;
                last.size += extent.size;
                last.max_timestamp = last.max_timestamp.max(extent.max_timestamp);
            }
            _ => {
                targets.push((log, extent));
                firsts.push(i);
            }
        }
    }
    let (object, positions) = builder.finish();
    for ((_, target), first) in targets.iter_mut().zip(firsts) {
        target.position = positions[first];
    }
    (object, targets)
}

fn size(extent: &Extent) -> usize {
    usize::try_from(extent.size).unwrap_or(0)
}

fn end(extent: &Extent) -> i64 {
    extent.position.saturating_add(i64::from(extent.size))
}

/// Sizes of extents are 32 bits with a sign.
const SIZE_MAX: usize = 1 << 30;
