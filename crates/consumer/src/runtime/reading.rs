//! One assigned partition, and the records on their way into its queue.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use moldau_client::{Fetcher, Start, TopicPartition};

use crate::message::{Message, Read};
use crate::route::Run;
use crate::scheduler::{Arrival, Order, PartitionId, Scheduler};

/// Whether the fetcher reads the partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fetching {
    Active,
    Paused,
    /// The records from this offset on were dropped, to be fetched again.
    GivenBack(i64),
}

/// A partition that is read.
pub(super) struct Reading {
    pub(super) name: TopicPartition,
    pub(super) runner: Arc<dyn Run>,
    order: Order,
    /// Fetches that are not queued in full, and the next record of the first. Fetching pauses while
    /// there are any.
    fetched: VecDeque<Read>,
    next: usize,
    fetching: Fetching,
    /// Where to read on after a failure.
    pub(super) restart_at: Option<Start>,
}

impl Reading {
    pub(super) fn new(name: TopicPartition, order: Order, runner: Arc<dyn Run>) -> Self {
        let (fetched, fetching) = (VecDeque::new(), Fetching::Active);
        Self { name, runner, order, fetched, next: 0, fetching, restart_at: None }
    }

    /// It is about to be read by the fetcher, from anywhere.
    pub(super) fn starts(&mut self) {
        self.fetching = Fetching::Active;
    }

    /// Bytes of fetches that are not queued in full.
    pub(super) fn held_bytes(&self) -> usize {
        self.fetched.iter().map(|read| read.bytes).sum()
    }

    /// Drops what is not queued, so that other partitions can be fetched. It is fetched again when
    /// half of the queue is empty.
    pub(super) fn give_back(&mut self, fetcher: &Fetcher) {
        let next = self.fetched.front().and_then(|read| read.chunk.message(self.next));
        let Some((next, _)) = next else { return };
        self.fetching = Fetching::GivenBack(next.offset());
        fetcher.unassign(&self.name);
        self.fetched.clear();
        self.next = 0;
    }

    /// Takes what was fetched.
    pub(super) fn take(&mut self, read: Read) {
        self.fetched.push_back(read);
    }

    /// Moves records into the queue while it has room, and lets the fetcher pause or go on. Returns
    /// where the fetcher must start again, if it must.
    pub(super) fn fill(
        &mut self,
        id: PartitionId,
        scheduler: &mut Scheduler<Message>,
        fetcher: &Fetcher,
    ) -> Option<Start> {
        if let Fetching::GivenBack(at) = self.fetching {
            return scheduler.has_ample_room(id, at).then_some(Start::Offset(at));
        }
        while let Some(read) = self.fetched.front() {
            while let Some((message, bytes)) = read.chunk.message(self.next) {
                let offset = message.offset();
                if !scheduler.has_room(id, offset) {
                    self.set_fetching(Fetching::Paused, fetcher);
                    return None;
                }
                let key_hash = self.key_hash(&message);
                scheduler.deliver(id, Arrival { offset, key_hash, bytes, payload: message });
                self.next += 1;
            }
            scheduler.pass(id, read.next);
            self.fetched.pop_front();
            self.next = 0;
        }
        self.set_fetching(Fetching::Active, fetcher);
        None
    }

    fn set_fetching(&mut self, fetching: Fetching, fetcher: &Fetcher) {
        if self.fetching != fetching {
            self.fetching = fetching;
            fetcher.set_paused(&self.name, fetching == Fetching::Paused);
        }
    }

    fn key_hash(&self, message: &Message) -> Option<u64> {
        if !matches!(self.order, Order::Key(_)) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(message.key()?);
        Some(hasher.finish())
    }
}
