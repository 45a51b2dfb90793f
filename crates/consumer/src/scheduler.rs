//! The scheduler: which records of which partition run next. It has no threads, sockets or clocks.
//!
//! The records of a partition are queued in lanes. A lane runs one slice of records at a time, in
//! their order; lanes run beside each other. [`Order`] says which records share a lane. Partitions
//! take turns by bytes (deficit round robin), so that a busy one does not displace the others.
//!
//! A record that is to be handled again later keeps its place: its lane waits, all others go on.
//! Records count as done through the ledger of their partition alone.
//!
//! | module | what it holds |
//! |---|---|
//! | `partition` | the lanes and the ledger of one partition |
//! | `pool` | limits of single routes |
//! | `slice` | records that run, and how far they are |

mod partition;
mod pool;
mod slice;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::ledger::{Commit, Ledger};
use partition::{LaneId, Partition};
pub(crate) use pool::Pool;
use pool::Pools;
pub(crate) use slice::{Attempt, PostponedBy, Records, Slice};

/// Which records of a partition are handled in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// All: one after the other.
    Partition,
    /// Those with the same key. Keys are spread over this many lanes; records without a key have
    /// no order.
    Key(NonZeroU32),
    /// None: any record may run beside any other.
    None,
}

impl Order {
    /// [`Order::Key`] with a number of lanes at which keys seldom wait for each other.
    #[must_use]
    pub fn by_key() -> Self {
        Self::Key(LANES_DEFAULT)
    }
}

/// How the records of a partition are scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) order: Order,
    /// Most records of one slice.
    pub(crate) slice_records_max: usize,
    pub(crate) slicing: Slicing,
    /// Records that are queued or run; more wait in the fetcher.
    pub(crate) queue_records_max: usize,
    /// Their bytes.
    pub(crate) queue_bytes_max: usize,
    /// The limit of its route; `None` for that of all.
    pub(crate) pool: Option<Pool>,
}

/// How many records a slice has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Slicing {
    /// As many as there are.
    Whole,
    /// As many as run in a short time: other partitions wait meanwhile.
    Paced,
}

/// Names an assigned partition for as long as it is assigned; never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct PartitionId(u64);

/// A slice that runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ticket {
    pub(crate) partition: PartitionId,
    lane: LaneId,
    pool: Option<Pool>,
}

/// What becomes of the records of a slice that are not done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rest {
    /// They run again as soon as they may: nothing was tried with them.
    Untried,
    /// The first `records` of them are tried again at `at`.
    Postponed { records: usize, at: Duration, by: PostponedBy },
}

/// What a partition has queued and done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Figures {
    /// First offset that is not done.
    pub(crate) done_to: i64,
    /// Offset after the last record that was delivered.
    pub(crate) position: i64,
    /// Records that are queued or run.
    pub(crate) records: usize,
    /// Their bytes.
    pub(crate) bytes: usize,
    /// Slices that run.
    pub(crate) running: usize,
    /// Lanes that wait because their first record failed.
    pub(crate) retrying: usize,
    /// Lanes that wait because a layer lets their first record wait.
    pub(crate) delayed: usize,
    pub(crate) is_paused: bool,
    /// Records that were handled.
    pub(crate) handled: u64,
}

/// The scheduler of all assigned partitions; `C` holds the records of a fetch.
#[derive(Debug)]
pub(crate) struct Scheduler<C> {
    partitions: HashMap<PartitionId, Partition<C>, RandomState>,
    next_id: u64,
    /// Partitions with lanes that may run, in the order of their turns.
    turns: VecDeque<PartitionId>,
    /// Partitions of which more may be committed than was taken.
    changed: Vec<PartitionId>,
    /// When lanes may run again; the number tells apart those of the same time.
    timers: BTreeMap<(Duration, u64), (PartitionId, LaneId)>,
    next_timer: u64,
    pools: Pools,
    /// Records that were handled.
    handled: u64,
    /// Slices that run.
    running: usize,
    /// Most of them.
    workers: usize,
    /// Bytes of records that are queued or run.
    bytes: usize,
    /// From how many on each partition has but an equal share of them.
    bytes_max: usize,
}

impl<C: Records> Scheduler<C> {
    /// A scheduler without partitions that runs at most `workers` slices at a time. With more than
    /// `bytes_max` bytes in all queues, a partition may queue only an equal share of them.
    pub(crate) fn new(workers: usize, bytes_max: usize) -> Self {
        Self {
            partitions: HashMap::default(),
            next_id: 0,
            turns: VecDeque::new(),
            changed: Vec::new(),
            timers: BTreeMap::new(),
            next_timer: 0,
            pools: Pools::default(),
            handled: 0,
            running: 0,
            workers,
            bytes: 0,
            bytes_max,
        }
    }

    /// Changes how many slices run at a time; those that run are not stopped.
    pub(crate) fn set_workers(&mut self, workers: usize) {
        self.workers = workers;
    }

    /// Slices that run.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// Whether more could run with more workers.
    pub(crate) fn lacks_workers(&self) -> bool {
        self.running >= self.workers && !self.turns.is_empty()
    }

    /// Records that were handled.
    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    /// Takes a partition over.
    pub(crate) fn assign(&mut self, plan: Plan, ledger: Ledger) -> PartitionId {
        let id = PartitionId(self.next_id);
        self.next_id += 1;
        self.partitions.insert(id, Partition::new(plan, ledger));
        id
    }

    /// Queues records of `chunk` from the one at `from` on, unless they are known to be done, as
    /// many as there is room for. Returns the place of the first that is not taken.
    pub(crate) fn deliver(&mut self, id: PartitionId, chunk: &Arc<C>, from: usize) -> usize {
        let share = self.bytes_max / self.partitions.len().max(1);
        let Some(partition) = self.partitions.get_mut(&id) else { return chunk.len() };
        let before = partition.bytes();
        let of_others = self.bytes - before;
        let bytes_max = self.bytes_max.saturating_sub(of_others).max(share.saturating_add(1));
        let next = partition.deliver(chunk, from, bytes_max);
        self.bytes += partition.bytes() - before;
        self.changed.extend(partition.change().then_some(id));
        Self::take_turn(&mut self.turns, id, partition);
        next
    }

    /// Whether the partition takes the record at `offset`, and half of its queue is empty.
    pub(crate) fn has_ample_room(&self, id: PartitionId, offset: i64) -> bool {
        let share = self.bytes_max / self.partitions.len().max(1);
        self.partitions.get(&id).is_some_and(|partition| {
            let has_share = self.bytes < self.bytes_max || partition.bytes() <= share;
            has_share && partition.has_ample_room(offset)
        })
    }

    /// A slice took this long to run, without waiting for anything.
    pub(crate) fn pace(&mut self, ticket: Ticket, records: usize, took: Duration) {
        if let Some(partition) = self.partitions.get_mut(&ticket.partition) {
            partition.pace(records, took);
        }
    }

    /// No record lies between what was delivered and `next`.
    pub(crate) fn pass(&mut self, id: PartitionId, next: i64) {
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.pass(next);
            self.changed.extend(partition.change().then_some(id));
        }
    }

    /// The next slice to run, which the caller must [`finish`](Self::finish); `None` if all
    /// workers are busy or nothing may run at `now`.
    pub(crate) fn next(&mut self, now: Duration) -> Option<(Ticket, Slice<C>)> {
        self.wake(now);
        while self.running < self.workers {
            let id = *self.turns.front()?;
            let Some(partition) = self.partitions.get_mut(&id) else {
                self.turns.pop_front();
                continue;
            };
            let pool = partition.pool();
            if !partition.may_run() {
                partition.end_turn();
                self.turns.pop_front();
                self.unblock(pool);
                continue;
            }
            if !self.pools.admits(pool, id) {
                self.turns.pop_front();
                continue;
            }
            match partition.start() {
                Some((lane, slice)) => {
                    self.running += 1;
                    self.changed.extend(partition.change().then_some(id));
                    self.pools.start(pool);
                    return Some((Ticket { partition: id, lane, pool }, slice));
                }
                None => self.turns.rotate_left(1),
            }
        }
        None
    }

    /// Takes back a slice that ran; its records that are not done are treated as `rest` says.
    pub(crate) fn finish(&mut self, ticket: Ticket, rest: Rest) {
        self.running = self.running.saturating_sub(1);
        let Ticket { partition: id, lane, pool } = ticket;
        self.pools.finish(pool);
        self.unblock(pool);
        let waits_until = self.change(id, |partition| partition.finish(lane, rest));
        if let Some((lane, at)) = waits_until.flatten() {
            self.timers.insert((at, self.next_timer), (id, lane));
            self.next_timer += 1;
        }
    }

    /// The handler of a slice waits for something, so records behind the current one may run beside
    /// it. Returns the ticket to finish the slice with.
    pub(crate) fn waits(&mut self, ticket: Ticket) -> Ticket {
        let Ticket { partition: id, lane, .. } = ticket;
        let lane = self.change(id, |partition| partition.waits(lane)).unwrap_or(lane);
        Ticket { lane, ..ticket }
    }

    /// When a waiting lane may run next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Starts nothing more of a partition, and asks what runs to stop after its current record.
    pub(crate) fn drain(&mut self, id: PartitionId) {
        self.change(id, Partition::drain);
    }

    /// Starts nothing more of a partition until it is resumed; false if it is given back.
    pub(crate) fn set_paused(&mut self, id: PartitionId, paused: bool) -> bool {
        let Some(partition) = self.partitions.get_mut(&id) else { return false };
        let is_active = partition.set_paused(paused);
        Self::take_turn(&mut self.turns, id, partition);
        is_active
    }

    /// What a partition has queued and done.
    pub(crate) fn figures(&mut self, id: PartitionId) -> Option<Figures> {
        self.change(id, Partition::figures)
    }

    /// How many records of a slice that runs are done.
    pub(crate) fn done(&self, ticket: Ticket) -> usize {
        let partition = self.partitions.get(&ticket.partition);
        partition.map_or(0, |partition| partition.done(ticket.lane))
    }

    /// Whether nothing of a partition runs.
    pub(crate) fn is_idle(&self, id: PartitionId) -> bool {
        self.partitions.get(&id).is_none_or(Partition::is_idle)
    }

    /// Gives a partition up, with what may be committed of it if that was not taken yet. Slices
    /// that still run have no effect any more.
    pub(crate) fn remove(&mut self, id: PartitionId) -> Option<Commit> {
        let mut partition = self.partitions.remove(&id)?;
        self.bytes -= partition.bytes();
        self.pools.remove(partition.pool(), id);
        self.unblock(partition.pool());
        partition.take_commit()
    }

    /// Partitions of which more may be committed than was taken. Each is named once, until it
    /// changes again.
    pub(crate) fn take_changed(&mut self) -> Vec<PartitionId> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            if let Some(partition) = self.partitions.get_mut(id) {
                // What runs will have done more.
                self.changed.extend(partition.end_change().then_some(*id));
            }
        }
        changed
    }

    /// What may be committed of a partition, if it has changed since it was last taken.
    pub(crate) fn take_commit(&mut self, id: PartitionId) -> Option<Commit> {
        self.change(id, Partition::take_commit).flatten()
    }

    /// A commit failed: it is taken again.
    pub(crate) fn retake_commit(&mut self, id: PartitionId) {
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.retake_commit();
            self.changed.extend(partition.change().then_some(id));
        }
    }

    /// Lets lanes whose time has come run again.
    fn wake(&mut self, now: Duration) {
        while let Some(timer) = self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            let (id, lane) = timer.remove();
            if let Some(partition) = self.partitions.get_mut(&id) {
                partition.wake(lane);
                Self::take_turn(&mut self.turns, id, partition);
            }
        }
    }

    /// Does something with a partition that may end records of it, or let others run.
    fn change<T>(
        &mut self,
        id: PartitionId,
        change: impl FnOnce(&mut Partition<C>) -> T,
    ) -> Option<T> {
        let partition = self.partitions.get_mut(&id)?;
        let (bytes, handled) = (partition.bytes(), partition.handled());
        let changed = change(partition);
        self.bytes -= bytes - partition.bytes();
        self.handled += partition.handled() - handled;
        Self::take_turn(&mut self.turns, id, partition);
        Some(changed)
    }

    /// Lets a partition have its turn that waits for the limit of its route.
    fn unblock(&mut self, pool: Option<Pool>) {
        self.turns.extend(self.pools.unblocked(pool));
    }

    fn take_turn(turns: &mut VecDeque<PartitionId>, id: PartitionId, partition: &mut Partition<C>) {
        if partition.wants_turn() {
            turns.push_back(id);
        }
    }
}

/// Lanes of a partition by key. With 1,000 keys in flight a key waits for another one in every
/// fifth case; a lane without records takes no memory.
const LANES_DEFAULT: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");

#[cfg(test)]
use slice::testing;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
