//! The logs of one topic: only partitions that were written have one.
//!
//! [`Logs`] makes a log for whoever asks for it. Here it is asked by the first append, so that
//! reading, looking up offsets and waiting leave a partition as it was: without any state.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::logs::{Log, Logs, TopicId, Waiter};

/// The logs of one topic, and who waits for the first append to a partition without one.
#[derive(Debug, Default)]
pub(crate) struct TopicLogs {
    /// Guards all of it; storage's own locks are taken under it, never the other way round.
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    written: HashMap<i32, Log>,
    awaiting: HashMap<i32, Vec<Arc<Waiter>>>,
    is_deleted: bool,
}

impl TopicLogs {
    /// The log of a partition, if it has one.
    pub(crate) fn find(&self, partition: i32) -> Option<Log> {
        self.read().written.get(&partition).cloned()
    }

    /// Takes up a log that storage restored.
    pub(crate) fn restore(&self, log: Arc<moldau_storage::Log>) {
        self.write().written.insert(log.id().partition, Log::Journal(log));
    }

    /// The log of a partition that is about to be written; none if the topic was deleted.
    pub(crate) fn for_append(
        &self,
        logs: &Logs,
        (topic, name): (TopicId, &Arc<str>),
        partition: i32,
    ) -> Option<Log> {
        if let Some(log) = self.find(partition) {
            return Some(log);
        }
        let mut inner = self.write();
        if inner.is_deleted {
            return None;
        }
        let log = logs.log(topic, name, partition);
        inner.written.insert(partition, log.clone());
        for waiter in inner.awaiting.remove(&partition).unwrap_or_default() {
            waiter.wake();
        }
        Some(log)
    }

    /// Forgets all logs, makes no other and wakes all who wait for one. What storage holds of the
    /// topic is the caller's.
    pub(crate) fn delete(&self) {
        let mut inner = self.write();
        inner.is_deleted = true;
        inner.written = HashMap::new();
        for waiter in std::mem::take(&mut inner.awaiting).into_values().flatten() {
            waiter.wake();
        }
    }

    /// Registers a waiter that is woken by the first append to a partition, until the
    /// registration is dropped; or returns the log, if there is one.
    pub(crate) fn await_first_append(
        self: &Arc<Self>,
        partition: i32,
        waiter: &Arc<Waiter>,
    ) -> Result<FirstAppend, Log> {
        let mut inner = self.write();
        if let Some(log) = inner.written.get(&partition) {
            return Err(log.clone());
        }
        inner.awaiting.entry(partition).or_default().push(Arc::clone(waiter));
        Ok(FirstAppend { logs: Arc::clone(self), partition, waiter: Arc::clone(waiter) })
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a waiter registered for the first append to a partition until dropped.
#[derive(Debug)]
pub(crate) struct FirstAppend {
    logs: Arc<TopicLogs>,
    partition: i32,
    waiter: Arc<Waiter>,
}

impl FirstAppend {
    /// The log, if the partition has one by now.
    pub(crate) fn log(&self) -> Option<Log> {
        self.logs.find(self.partition)
    }
}

impl Drop for FirstAppend {
    fn drop(&mut self) {
        let mut inner = self.logs.write();
        let Some(waiters) = inner.awaiting.get_mut(&self.partition) else { return };
        if let Some(at) = waiters.iter().position(|known| Arc::ptr_eq(known, &self.waiter)) {
            waiters.swap_remove(at);
        }
        if waiters.is_empty() {
            inner.awaiting.remove(&self.partition);
        }
        if inner.awaiting.is_empty() {
            inner.awaiting = HashMap::new();
        }
    }
}
