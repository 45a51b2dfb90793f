//! The offset ledger of one partition: which records were delivered, which of them are done, and
//! what may be committed.
//!
//! Records may be done in any order. The committed offset is the first offset that is not done,
//! `base`. What is done above it goes into the metadata of the commit, so that the next owner of
//! the partition does not handle it again. Offsets without a record (compaction, aborted
//! transactions, control batches, deleted records) count as done.
//!
//! The metadata of a commit is bounded by [`METADATA_BYTES_MAX`]. [`Ledger::has_room`] says when a
//! further record could make it larger; the owner then delivers no more until others are done.

mod encoding;

use std::collections::BTreeMap;
use std::ops::Range;

pub use encoding::METADATA_BYTES_MAX;
use encoding::{PAYLOAD_BYTES_MAX, RUN_PAIR_BYTES, SPAN_DENSE_MAX};

/// What an offset commit carries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Commit {
    /// First offset that is not done.
    pub offset: i64,
    /// Which offsets above it are done; empty for none.
    pub metadata: String,
}

/// What a delivered record needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// It must be handled, then reported with [`Ledger::done`].
    Open,
    /// It is done, or was delivered before: it must not be handled.
    Known,
}

/// The offset ledger of one partition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ledger {
    /// First offset that is not done.
    base: i64,
    /// Offset after the last delivered one.
    next: i64,
    /// Runs of done offsets above `base`, first offset to the offset after the last. None begins
    /// at `base`, and no two touch.
    done: BTreeMap<i64, i64>,
    /// Number of delivered records that are not done.
    open: usize,
}

impl Ledger {
    /// A ledger whose first record is at `offset` or after it.
    #[must_use]
    pub fn at(offset: i64) -> Self {
        Self { base: offset, next: offset, done: BTreeMap::new(), open: 0 }
    }

    /// The ledger that was committed as `offset` and `metadata`. Metadata of other origin, or of
    /// another offset, is ignored: every record from `offset` on is then delivered again.
    #[must_use]
    pub fn restore(offset: i64, metadata: &str) -> Self {
        let mut ledger = Self::at(offset);
        if let Some(done) = encoding::decode(offset, metadata) {
            ledger.done = done;
        }
        ledger
    }

    /// Records that the partition's record at `offset` was fetched. Offsets between the last
    /// delivered one and `offset` have no record.
    pub fn deliver(&mut self, offset: i64) -> Delivery {
        if offset < self.next {
            return Delivery::Known;
        }
        self.pass(offset);
        if self.is_done(offset) {
            self.next = self.next.max(offset.saturating_add(1));
            return Delivery::Known;
        }
        self.next = offset.saturating_add(1);
        self.open += 1;
        Delivery::Open
    }

    /// Delivers one record at each offset of `offsets`, as [`deliver`](Self::deliver), if all are
    /// open and there is room for all: true then.
    pub(crate) fn deliver_run(&mut self, offsets: &Range<i64>) -> bool {
        if offsets.start < self.next {
            return false;
        }
        self.pass(offsets.start);
        let is_ahead = self.done.last_key_value().is_none_or(|(_, end)| *end <= offsets.start);
        if !is_ahead || offsets.end.saturating_sub(self.base) > SPAN_DENSE_MAX {
            return false;
        }
        self.next = offsets.end;
        self.open += usize::try_from(offsets.end - offsets.start).unwrap_or(0);
        true
    }

    /// Records that no record lies between the last delivered offset and `next`.
    pub fn pass(&mut self, next: i64) {
        if next > self.next {
            let from = self.next;
            self.next = next;
            self.add(from, next);
        }
    }

    /// Records that the delivered record at `offset` is done; false if it was not open.
    pub fn done(&mut self, offset: i64) -> bool {
        if offset >= self.next || self.is_done(offset) {
            return false;
        }
        self.open -= 1;
        self.add(offset, offset + 1);
        true
    }

    /// Records that the delivered records between these offsets, so many, are done. None of them
    /// was.
    pub(crate) fn done_run(&mut self, offsets: Range<i64>, records: usize) {
        self.open -= records;
        self.add(offsets.start, offsets.end);
    }

    /// What may be committed.
    #[must_use]
    pub fn committable(&self) -> Commit {
        Commit { offset: self.base, metadata: encoding::encode(self.base, &self.done) }
    }

    /// Whether the record at `offset` may be delivered: whatever is done in whatever order, the
    /// metadata then stays within its bound.
    #[must_use]
    pub fn has_room(&self, offset: i64) -> bool {
        let end = self.done.last_key_value().map_or(self.next, |(_, end)| self.next.max(*end));
        let span = end.max(offset.saturating_add(1)).saturating_sub(self.base);
        if self.open == 0 || span <= SPAN_DENSE_MAX {
            return true;
        }
        // Each open record ends at most one run, beside those that were restored.
        let restored =
            if end > self.next { encoding::runs_bytes(self.base, &self.done) } else { 0 };
        restored + (self.open + 1) * RUN_PAIR_BYTES <= PAYLOAD_BYTES_MAX
    }

    /// Whether the record at `offset` is done.
    #[must_use]
    pub fn is_done(&self, offset: i64) -> bool {
        offset < self.base
            || self.done.range(..=offset).next_back().is_some_and(|(_, end)| offset < *end)
    }

    /// First offset that is not done.
    #[must_use]
    pub fn base(&self) -> i64 {
        self.base
    }

    /// Offset after the last delivered one.
    #[must_use]
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Number of delivered records that are not done.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Takes `start..end` into the done offsets.
    fn add(&mut self, mut start: i64, mut end: i64) {
        if start <= self.base {
            self.base = self.base.max(end);
            while let Some(run) = self.done.first_entry().filter(|run| *run.key() <= self.base) {
                self.base = self.base.max(run.remove());
            }
            self.next = self.next.max(self.base);
            return;
        }
        if let Some((&before, &its_end)) = self.done.range(..start).next_back()
            && its_end >= start
        {
            (start, end) = (before, end.max(its_end));
        }
        while let Some((&first, &its_end)) = self.done.range(start..=end).next() {
            self.done.remove(&first);
            end = end.max(its_end);
        }
        self.done.insert(start, end);
    }
}

#[cfg(test)]
mod tests;
