//! Records that run, and how far they are.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The layer that asked for a record to be handled later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PostponedBy {
    /// The record failed, and is tried again.
    Failure,
    /// The layer with this number let it wait.
    Layer(u32),
}

/// What was tried with a record before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Attempt {
    /// How often it failed.
    pub(crate) failures: u32,
    /// Who let it wait last.
    pub(crate) postponed_by: Option<PostponedBy>,
}

/// The records of a fetch of one partition, in order.
pub(crate) trait Records {
    fn len(&self) -> usize;

    fn offset(&self, index: usize) -> i64;

    /// Bytes of the records before `index`.
    fn bytes_before(&self, index: usize) -> usize;

    /// Hash of the record's key; `None` for a record without a key.
    fn key_hash(&self, index: usize) -> Option<u64>;

    /// A copy of some records, if they keep the memory of others alive.
    fn detached(&self, range: Range<usize>) -> Option<Self>
    where
        Self: Sized;
}

/// Consecutive records of one fetch.
#[derive(Debug)]
pub(crate) struct Segment<C> {
    pub(crate) chunk: Arc<C>,
    pub(crate) range: Range<usize>,
    pub(crate) attempt: Attempt,
}

impl<C: Records> Segment<C> {
    pub(super) fn new(chunk: &Arc<C>, range: Range<usize>) -> Self {
        Self { chunk: Arc::clone(chunk), range, attempt: Attempt::default() }
    }

    /// Splits off the first `count` records.
    pub(super) fn take(&mut self, count: usize) -> Self {
        let end = self.range.end.min(self.range.start + count);
        let first = self.range.start..end;
        self.range.start = end;
        Self { chunk: Arc::clone(&self.chunk), range: first, attempt: self.attempt }
    }

    /// Joins `other` if that follows directly.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let follows = Arc::ptr_eq(&self.chunk, &other.chunk)
            && self.range.end == other.range.start
            && self.attempt == other.attempt;
        if follows {
            self.range.end = other.range.end;
        }
        follows
    }

    /// Copies what it shares with other records, so that it keeps no memory but its own alive. For
    /// records that wait for long.
    pub(super) fn detach(&mut self) {
        if let Some(own) = self.chunk.detached(self.range.clone()) {
            (self.chunk, self.range) = (Arc::new(own), 0..self.range.len());
        }
    }
}

/// Some records of a segment.
#[derive(Debug)]
pub(super) struct Part<'s, C> {
    pub(super) segment: &'s Segment<C>,
    pub(super) range: Range<usize>,
}

impl<'s, C: Records> Part<'s, C> {
    /// All of them.
    pub(super) fn of(segment: &'s Segment<C>) -> Self {
        Self { segment, range: segment.range.clone() }
    }

    pub(super) fn bytes(&self) -> usize {
        let chunk = &self.segment.chunk;
        chunk.bytes_before(self.range.end) - chunk.bytes_before(self.range.start)
    }

    /// From the first record's offset to that after the last record.
    pub(super) fn offsets(&self) -> Range<i64> {
        let chunk = &self.segment.chunk;
        let last = self.range.end.saturating_sub(1);
        chunk.offset(self.range.start)..chunk.offset(last).saturating_add(1)
    }

    pub(super) fn into_segment(self) -> Segment<C> {
        let Segment { chunk, attempt, .. } = self.segment;
        Segment { chunk: Arc::clone(chunk), range: self.range, attempt: *attempt }
    }
}

/// Records of one lane that run one after the other, or as a batch. Clones share them.
#[derive(Debug)]
pub(crate) struct Slice<C> {
    shared: Arc<Shared<C>>,
}

#[derive(Debug)]
pub(super) struct Shared<C> {
    segments: Vec<Segment<C>>,
    records: usize,
    /// How many of them are done; the others follow them.
    done: AtomicUsize,
    /// Whether no further one is to be started.
    stopped: AtomicBool,
}

impl<C> Slice<C> {
    /// A slice of records that were tried alike. `spare` is one that nobody else has.
    pub(super) fn new(spare: Option<Self>, segments: impl FnOnce(&mut Vec<Segment<C>>)) -> Self {
        let mut shared = spare.map_or_else(Arc::default, |spare| spare.shared);
        match Arc::get_mut(&mut shared) {
            Some(own) => own.fill(segments),
            None => {
                shared = Arc::new({
                    let mut own = Shared::default();
                    own.fill(segments);
                    own
                })
            }
        }
        Self { shared }
    }

    /// It, without records, if nobody else has it.
    pub(super) fn emptied(mut self) -> Option<Self> {
        Arc::get_mut(&mut self.shared)?.segments.clear();
        Some(self)
    }

    /// Its records in order: the fetch that they belong to, and their place in it.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&Arc<C>, usize)> {
        let segments = self.shared.segments.iter();
        segments.flat_map(|segment| segment.range.clone().map(|index| (&segment.chunk, index)))
    }

    /// The records at these positions of the slice.
    pub(super) fn parts(&self, positions: Range<usize>) -> impl Iterator<Item = Part<'_, C>> {
        let mut before = 0;
        self.shared.segments.iter().filter_map(move |segment| {
            let first = before;
            before += segment.range.len();
            let start = positions.start.max(first) - first;
            let end = positions.end.min(before).saturating_sub(first);
            let range = segment.range.start + start..segment.range.start + end;
            (start < end).then_some(Part { segment, range })
        })
    }

    /// Number of records; never zero.
    pub(crate) fn len(&self) -> usize {
        self.shared.records
    }

    /// What was tried with each of its records.
    pub(crate) fn attempt(&self) -> Attempt {
        self.shared.segments.first().map(|segment| segment.attempt).unwrap_or_default()
    }

    /// Records that the first `count` records are done.
    pub(crate) fn set_done(&self, count: usize) {
        self.shared.done.store(count, Ordering::Release);
    }

    /// How many records are done.
    pub(crate) fn done(&self) -> usize {
        self.shared.done.load(Ordering::Acquire)
    }

    /// Asks whoever runs it to start no further record.
    pub(super) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether no further record is to be started.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Relaxed)
    }
}

impl<C> Shared<C> {
    fn fill(&mut self, segments: impl FnOnce(&mut Vec<Segment<C>>)) {
        segments(&mut self.segments);
        self.records = self.segments.iter().map(|segment| segment.range.len()).sum();
        *self.done.get_mut() = 0;
        *self.stopped.get_mut() = false;
    }
}

impl<C> Default for Shared<C> {
    fn default() -> Self {
        let (done, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { segments: Vec::new(), records: 0, done, stopped }
    }
}

impl<C> Clone for Slice<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// Records of tests.
#[cfg(test)]
pub(super) mod testing {
    use super::{Range, Records};

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Record {
        pub(crate) offset: i64,
        pub(crate) key: Option<u64>,
        pub(crate) bytes: usize,
    }

    #[derive(Clone, Debug)]
    pub(crate) struct Fetch {
        pub(crate) records: Vec<Record>,
        bytes_before: Vec<usize>,
        pub(crate) is_detached: bool,
    }

    impl Fetch {
        pub(crate) fn new(records: Vec<Record>) -> Self {
            let mut bytes_before = vec![0];
            bytes_before.extend(records.iter().scan(0, |bytes, record| {
                *bytes += record.bytes;
                Some(*bytes)
            }));
            Self { records, bytes_before, is_detached: false }
        }
    }

    impl Records for Fetch {
        fn len(&self) -> usize {
            self.records.len()
        }

        fn offset(&self, index: usize) -> i64 {
            self.records[index].offset
        }

        fn bytes_before(&self, index: usize) -> usize {
            self.bytes_before[index]
        }

        fn key_hash(&self, index: usize) -> Option<u64> {
            self.records[index].key
        }

        fn detached(&self, range: Range<usize>) -> Option<Self> {
            Some(Self { is_detached: true, ..Self::new(self.records[range].to_vec()) })
        }
    }
}
