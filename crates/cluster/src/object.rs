//! The format of an object: batches of several logs, those of a log together.
//!
//! Numbers are big-endian.
//!
//! | at | bytes | content |
//! |---|---|---|
//! | 0 | 4 | magic `MDOB` |
//! | 4 | 4 | format version, 1 |
//! | 8 | 4 | CRC32C of the bytes from 12 to the first batch |
//! | 12 | 4 | number of runs *n* |
//! | 16 | 32 *n* | runs: topic id (16), partition (4), first byte (8), bytes (4) |
//! | 16 + 32 *n* | | batches, as their producers sent them |
//!
//! The batches have checksums of their own. Their offsets and leader epochs, which those do not
//! cover, are in the sequencer's extents, or in the batches of a sorted object.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use moldau_records::{BatchView, iter_batches, patch_base_offset, patch_partition_leader_epoch};
use uuid::Uuid;

use crate::sequencer::{Extent, LogId};

/// The batches of one log in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The log.
    pub log: LogId,
    /// First byte.
    pub position: i64,
    /// Bytes.
    pub size: i32,
}

/// Why bytes are not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub &'static str);

/// Collects batches.
#[derive(Debug, Default)]
pub struct ObjectBuilder {
    /// Per log, its batches with their places among all that were pushed.
    logs: BTreeMap<LogId, Vec<(usize, Bytes)>>,
    batches_count: usize,
    batches_bytes: usize,
}

impl ObjectBuilder {
    /// Adds a batch of the log.
    pub fn push(&mut self, log: LogId, batch: Bytes) {
        self.batches_bytes += batch.len();
        self.logs.entry(log).or_default().push((self.batches_count, batch));
        self.batches_count += 1;
    }

    /// Whether nothing was pushed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batches_count == 0
    }

    /// Bytes of all batches.
    #[must_use]
    pub fn batches_bytes(&self) -> usize {
        self.batches_bytes
    }

    /// The object, and the first byte of each batch in the order in which they were pushed.
    ///
    /// # Panics
    /// If the batches have 2 GiB or more: the owner seals long before.
    #[must_use]
    pub fn finish(self) -> (Bytes, Vec<i64>) {
        let header_len = HEADER_LEN + RUN_LEN * self.logs.len();
        let mut bytes = BytesMut::with_capacity(header_len + self.batches_bytes);
        bytes.put_slice(MAGIC);
        bytes.put_u32(VERSION);
        bytes.put_u32(0);
        bytes.put_u32(u32::try_from(self.logs.len()).expect("below the bytes of the batches"));
        let signed = |size: usize| i32::try_from(size).expect("an object has less than 2 GiB");
        let mut position = header_len;
        for (log, batches) in &self.logs {
            let size = batches.iter().map(|(_, batch)| batch.len()).sum();
            bytes.put_slice(log.topic.as_bytes());
            bytes.put_i32(log.partition);
            bytes.put_i64(i64::from(signed(position)));
            bytes.put_i32(signed(size));
            position += size;
        }
        let crc = moldau_records::crc32c(&bytes[CRC_END..]);
        bytes[CRC_START..CRC_END].copy_from_slice(&crc.to_be_bytes());
        let mut positions = vec![0; self.batches_count];
        for (i, batch) in self.logs.into_values().flatten() {
            positions[i] = i64::from(signed(bytes.len()));
            bytes.put_slice(&batch);
        }
        (bytes.freeze(), positions)
    }
}

/// The runs of an object.
///
/// # Errors
/// If the bytes are not an object, or not all of it.
pub fn runs(bytes: &[u8]) -> Result<Vec<Run>, Damage> {
    let (header, rest) =
        bytes.split_at_checked(HEADER_LEN).ok_or(Damage("shorter than a header"))?;
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?))
    };
    if !header.starts_with(MAGIC) {
        return Err(Damage("no object of Moldau"));
    }
    if word(4) != Some(VERSION) {
        return Err(Damage("unknown format version"));
    }
    let count = word(12).and_then(|count| usize::try_from(count).ok());
    let index_len = count.and_then(|count| count.checked_mul(RUN_LEN));
    let index =
        index_len.and_then(|len| rest.get(..len)).ok_or(Damage("shorter than its index"))?;
    let covered = bytes.get(CRC_END..HEADER_LEN + index.len()).unwrap_or_default();
    if word(CRC_START) != Some(moldau_records::crc32c(covered)) {
        return Err(Damage("wrong checksum of the index"));
    }
    let mut end = HEADER_LEN + index.len();
    let mut runs = Vec::with_capacity(index.len() / RUN_LEN);
    for bytes in index.chunks_exact(RUN_LEN) {
        let run = run(bytes).ok_or(Damage("a run that cannot be"))?;
        let size = usize::try_from(run.size).map_err(|_| Damage("a run of negative size"))?;
        if i64::try_from(end) != Ok(run.position) {
            return Err(Damage("runs that do not follow one another"));
        }
        end = end.checked_add(size).ok_or(Damage("runs that are too large"))?;
        runs.push(run);
    }
    if end != bytes.len() {
        return Err(Damage("another size than its runs"));
    }
    Ok(runs)
}

/// The batches of an extent with their offsets and leader epoch, each checked. `bytes` are those of
/// the extent alone.
///
/// # Errors
/// If the bytes are not the batches that were committed.
pub fn batches(bytes: &[u8], extent: &Extent) -> Result<Bytes, Damage> {
    let mut out = BytesMut::from(bytes);
    let mut next = extent.base_offset;
    let mut at = 0;
    let mut batches = iter_batches(bytes);
    for batch in batches.by_ref() {
        let batch = batch.map_err(|_| Damage("bytes that are no batch"))?;
        batch.check_crc().map_err(|_| Damage("a batch with a wrong checksum"))?;
        // The last offset wraps around in a batch that cannot be.
        if batch.last_offset() < batch.base_offset() {
            return Err(Damage("a batch that ends before it begins"));
        }
        let len = batch.bytes().len();
        if extent.sorted {
            check_sorted(&batch, next, extent)?;
            next = batch.next_offset();
        } else {
            let place = out.get_mut(at..at + len).ok_or(Damage("bytes that are no batch"))?;
            patch_base_offset(place, next).map_err(|_| Damage("bytes that are no batch"))?;
            patch_partition_leader_epoch(place, extent.leader_epoch)
                .map_err(|_| Damage("bytes that are no batch"))?;
            let count = i64::from(batch.last_offset_delta()) + 1;
            next = next.checked_add(count).ok_or(Damage("offsets that are too large"))?;
        }
        at += len;
    }
    let is_whole = batches.remainder().is_empty();
    let ends =
        if extent.sorted { next <= extent.last_offset + 1 } else { next == extent.last_offset + 1 };
    if !is_whole || !ends {
        return Err(Damage("other batches than those of the extent"));
    }
    Ok(out.freeze())
}

fn check_sorted(batch: &BatchView<'_>, next: i64, extent: &Extent) -> Result<(), Damage> {
    if batch.base_offset() < next || batch.last_offset() > extent.last_offset {
        return Err(Damage("a batch out of order"));
    }
    Ok(())
}

fn run(bytes: &[u8]) -> Option<Run> {
    let (topic, rest) = bytes.split_at_checked(16)?;
    let (partition, rest) = rest.split_at_checked(4)?;
    let (position, size) = rest.split_at_checked(8)?;
    Some(Run {
        log: LogId {
            topic: Uuid::from_slice(topic).ok()?,
            partition: i32::from_be_bytes(partition.try_into().ok()?),
        },
        position: i64::from_be_bytes(position.try_into().ok()?),
        size: i32::from_be_bytes(size.try_into().ok()?),
    })
}

const MAGIC: &[u8; 4] = b"MDOB";
const VERSION: u32 = 1;
const CRC_START: usize = 8;
const CRC_END: usize = 12;
const HEADER_LEN: usize = 16;
const RUN_LEN: usize = 32;
