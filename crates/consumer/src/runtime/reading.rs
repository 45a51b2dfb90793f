//! One assigned partition, and the records on their way into its queue.

use std::collections::VecDeque;
use std::sync::Arc;

use moldau_client::{Fetcher, Start, TopicPartition, TopicRef};

use crate::chunk::{Chunk, Read};
use crate::figures::RouteFigures;
use crate::route::Run;
use crate::scheduler::{PartitionId, Records, Scheduler};
use crate::status::Pause;
use crate::transaction::Lane;

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
    /// Where its handlers put what they return, in an exactly-once app.
    pub(super) lane: Option<Lane>,
    /// The first offset that was fetched.
    pub(super) begun_at: Option<i64>,
    /// Fetches that are not queued in full, and the next record of the first.
    fetched: VecDeque<Read>,
    next: usize,
    /// Their bytes, and from how many on fetching pauses: the next answer comes while they are
    /// handled.
    held_bytes: usize,
    held_bytes_max: usize,
    fetching: Fetching,
    /// Where to read on after a failure.
    pub(super) restart_at: Option<Start>,
    /// Why it cannot be read.
    pub(super) unreadable: Option<String>,
    /// What the log says of it.
    pub(super) logged: Option<String>,
    /// Where the fetcher reads on.
    pub(super) read_on: Start,
    /// The topic that is read, with its id.
    pub(super) topic: Option<TopicRef>,
    pub(super) figures: Arc<RouteFigures>,
    /// Offset after the last record of the partition, as the last fetch said.
    pub(super) end: Option<i64>,
    /// Whether its ledger begins where it is read from.
    is_placed: bool,
}

impl Reading {
    pub(super) fn new(
        name: TopicPartition,
        held_bytes_max: usize,
        runner: Arc<dyn Run>,
        figures: Arc<RouteFigures>,
        lane: Option<Lane>,
    ) -> Self {
        Self {
            name,
            runner,
            lane,
            begun_at: None,
            fetched: VecDeque::new(),
            next: 0,
            held_bytes: 0,
            held_bytes_max,
            fetching: Fetching::Active,
            restart_at: None,
            unreadable: None,
            logged: None,
            read_on: Start::Earliest,
            topic: None,
            figures,
            end: None,
            is_placed: false,
        }
    }

    /// It is about to be read by the fetcher, from anywhere.
    pub(super) fn starts(&mut self, at: Start) {
        self.is_placed |= matches!(at, Start::Offset(_));
        self.read_on = at;
        self.fetching = Fetching::Active;
    }

    /// Whether it is known which record is the first that is not done.
    pub(super) fn is_placed(&self) -> bool {
        self.is_placed || self.end.is_some()
    }

    /// Why it is not read on.
    pub(super) fn paused(&self) -> Option<Pause> {
        match self.fetching {
            _ if self.restart_at.is_some() => Some(Pause::Unreadable),
            Fetching::Active if self.fetched.is_empty() => None,
            Fetching::Active | Fetching::Paused => Some(Pause::QueueFull),
            Fetching::GivenBack(_) => Some(Pause::Memory),
        }
    }

    /// Whether the fetcher is to have it.
    pub(super) fn is_to_be_fetched(&self) -> bool {
        self.restart_at.is_none() && !matches!(self.fetching, Fetching::GivenBack(_))
    }

    /// Bytes of fetches that are not queued in full.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Drops what is not queued, so that other partitions can be fetched. It is fetched again when
    /// half of the queue is empty.
    pub(super) fn give_back(&mut self, fetcher: &Fetcher) {
        let Some(read) = self.fetched.front() else { return };
        self.fetching = Fetching::GivenBack(read.chunk.offset(self.next));
        fetcher.unassign(&self.name);
        self.fetched.clear();
        self.held_bytes = 0;
        self.next = 0;
    }

    /// Takes what was fetched.
    pub(super) fn take(&mut self, read: Read) {
        self.held_bytes += read.bytes;
        self.fetched.push_back(read);
    }

    /// Moves records into the queue while it has room, and lets the fetcher pause or go on. Returns
    /// where the fetcher must start again, if it must.
    pub(super) fn fill(
        &mut self,
        id: PartitionId,
        scheduler: &mut Scheduler<Chunk>,
        fetcher: &Fetcher,
    ) -> Option<Start> {
        if let Fetching::GivenBack(at) = self.fetching {
            return scheduler.has_ample_room(id, at).then_some(Start::Offset(at));
        }
        while let Some(read) = self.fetched.front() {
            self.next = scheduler.deliver(id, &read.chunk, self.next);
            if self.next < read.chunk.len() {
                break;
            }
            scheduler.pass(id, read.next);
            self.held_bytes -= read.bytes;
            self.fetched.pop_front();
            self.next = 0;
        }
        let is_full = self.held_bytes >= self.held_bytes_max;
        self.set_fetching(if is_full { Fetching::Paused } else { Fetching::Active }, fetcher);
        None
    }

    fn set_fetching(&mut self, fetching: Fetching, fetcher: &Fetcher) {
        if self.fetching != fetching {
            self.fetching = fetching;
            fetcher.set_paused(&self.name, fetching == Fetching::Paused);
        }
    }
}
