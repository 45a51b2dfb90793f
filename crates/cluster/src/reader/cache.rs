//! Ranges of objects in memory. A range is loaded once, however many wait for it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::sequencer::{Answer, ObjectKey};

use super::ReaderMetrics;

#[derive(Debug)]
pub(super) struct Cache {
    bytes_max: usize,
    metrics: Arc<ReaderMetrics>,
    /// Guards the list of ranges; their loads run without it.
    ranges: Mutex<Ranges>,
}

#[derive(Debug, Default)]
struct Ranges {
    /// By object and first byte.
    slots: HashMap<(ObjectKey, u64), Slot>,
    /// Counts requests; a slot notes its last one.
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    cell: Arc<OnceCell<Bytes>>,
    used: u64,
    /// Bytes that are counted for it: 0 until it is loaded.
    bytes: usize,
}

impl Cache {
    pub(super) fn new(bytes_max: usize, metrics: Arc<ReaderMetrics>) -> Self {
        Self { bytes_max, metrics, ranges: Mutex::default() }
    }

    /// The range, loaded if it is not there. A load that fails is tried by the next that waits.
    pub(super) async fn get(
        &self,
        key: ObjectKey,
        start: u64,
        load: impl Future<Output = Answer<Bytes>>,
    ) -> Answer<Bytes> {
        let id = (key, start);
        let cell = self.with(|ranges| ranges.cell(id));
        let mut counter = &self.metrics.hits;
        let load = || {
            counter = &self.metrics.misses;
            load
        };
        let loaded = cell.get_or_try_init(load).await.cloned();
        counter.fetch_add(1, Ordering::Relaxed);
        let held = self.with(|ranges| {
            match &loaded {
                Ok(bytes) => ranges.count(id, bytes.len(), self.bytes_max),
                Err(_) => ranges.drop_empty(id, &cell),
            }
            ranges.bytes
        });
        self.metrics.cached_bytes.store(held, Ordering::Relaxed);
        loaded
    }

    fn with<T>(&self, change: impl FnOnce(&mut Ranges) -> T) -> T {
        change(&mut self.ranges.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ranges {
    fn cell(&mut self, id: (ObjectKey, u64)) -> Arc<OnceCell<Bytes>> {
        self.clock += 1;
        let fresh = || Slot { cell: Arc::default(), used: 0, bytes: 0 };
        let slot = self.slots.entry(id).or_insert_with(fresh);
        slot.used = self.clock;
        slot.cell.clone()
    }

    fn count(&mut self, id: (ObjectKey, u64), bytes: usize, bytes_max: usize) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if slot.bytes == 0 {
            slot.bytes = bytes;
            self.bytes += bytes;
        }
        if self.bytes > bytes_max {
            self.evict(bytes_max / 8 * 7);
        }
    }

    /// Nobody else waits for a slot whose cell has two owners: the list and the caller.
    fn drop_empty(&mut self, id: (ObjectKey, u64), cell: &Arc<OnceCell<Bytes>>) {
        if Arc::strong_count(cell) == 2 && cell.get().is_none() {
            self.slots.remove(&id);
        }
    }

    /// Drops the loaded ranges that were not used for longest.
    fn evict(&mut self, bytes_max: usize) {
        let loaded = self.slots.iter().filter(|(_, slot)| slot.bytes > 0);
        let mut ages: Vec<_> = loaded.map(|(id, slot)| (slot.used, *id)).collect();
        ages.sort_unstable_by_key(|(used, _)| *used);
        for (_, id) in ages {
            if self.bytes <= bytes_max {
                break;
            }
            let gone = self.slots.remove(&id);
            self.bytes -= gone.map_or(0, |slot| slot.bytes);
        }
    }
}
