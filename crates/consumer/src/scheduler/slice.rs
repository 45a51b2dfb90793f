//! Records that run, and how far they are.

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

/// A queued record.
#[derive(Clone, Debug)]
pub(crate) struct Item<P> {
    pub(crate) offset: i64,
    pub(crate) bytes: usize,
    pub(crate) attempt: Attempt,
    pub(crate) payload: P,
}

/// Records of one lane that run one after the other, or as a batch. Clones share them.
#[derive(Debug)]
pub(crate) struct Slice<P> {
    shared: Arc<Shared<P>>,
}

#[derive(Debug)]
struct Shared<P> {
    items: Vec<Item<P>>,
    /// How many of them are done; the others follow them.
    done: AtomicUsize,
    /// Whether no further one is to be started.
    stopped: AtomicBool,
}

impl<P> Slice<P> {
    pub(super) fn new(items: Vec<Item<P>>) -> Self {
        let (done, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { shared: Arc::new(Shared { items, done, stopped }) }
    }

    /// The records in order; never empty.
    pub(crate) fn items(&self) -> &[Item<P>] {
        &self.shared.items
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

impl<P> Clone for Slice<P> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}
