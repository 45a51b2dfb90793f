//! The lanes and the ledger of one partition.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::slice::{Attempt, Item, PostponedBy, Slice};
use super::{Arrival, Order, Payload, Plan, Rest};
use crate::ledger::{Commit, Delivery, Ledger};

/// Names a lane of a partition.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct LaneId(u64);

#[derive(Debug)]
enum LaneState<P> {
    /// It may run, and stands in the queue of lanes that may.
    Ready,
    Running {
        slice: Slice<P>,
        /// How many records of the slice the ledger knows to be done.
        settled: usize,
    },
    /// Its first record is to be handled later.
    Waiting,
}

#[derive(Debug)]
struct Lane<P> {
    queue: VecDeque<Item<P>>,
    state: LaneState<P>,
}

/// Whether further records are started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Active,
    Draining,
}

/// Its place in the round robin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    None,
    /// It stands in the queue, and may start slices while the rest of its bytes is positive.
    Queued {
        bytes_left: i64,
    },
}

#[derive(Debug)]
pub(super) struct Partition<P> {
    plan: Plan,
    ledger: Ledger,
    stage: Stage,
    turn: Turn,
    /// Lanes with records that are queued or run.
    lanes: HashMap<LaneId, Lane<P>>,
    ready: VecDeque<LaneId>,
    running: usize,
    /// Records that are queued or run, and their bytes.
    records: usize,
    bytes: usize,
    /// What was last taken to be committed; `None` if it must be taken again.
    committed: Option<Commit>,
    /// Queues of lanes that ended, for reuse.
    spare: Vec<VecDeque<Item<P>>>,
}

impl<P: Payload> Partition<P> {
    pub(super) fn new(plan: Plan, ledger: Ledger) -> Self {
        // An owner that did nothing has nothing to commit.
        let committed = Some(ledger.committable());
        Self {
            plan,
            ledger,
            stage: Stage::Active,
            turn: Turn::None,
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            running: 0,
            records: 0,
            bytes: 0,
            committed,
            spare: Vec::new(),
        }
    }

    pub(super) fn has_room(&self, offset: i64) -> bool {
        self.records < self.plan.queue_records_max
            && self.bytes < self.plan.queue_bytes_max
            && self.ledger.has_room(offset)
    }

    pub(super) fn is_half_empty(&self) -> bool {
        self.records <= self.plan.queue_records_max / 2
            && self.bytes <= self.plan.queue_bytes_max / 2
    }

    /// Bytes of records that are queued or run.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if a lane became ready.
    pub(super) fn deliver(&mut self, arrival: Arrival<P>) -> bool {
        if self.stage == Stage::Draining || self.ledger.deliver(arrival.offset) == Delivery::Known {
            return false;
        }
        self.records += 1;
        self.bytes += arrival.bytes;
        let Arrival { offset, key_hash, bytes, payload } = arrival;
        let id = self.lane_of(offset, key_hash);
        let mut item = Item { offset, bytes, attempt: Attempt::default(), payload };
        if let Some(lane) = self.lanes.get_mut(&id) {
            if matches!(lane.state, LaneState::Waiting) {
                item.payload.detach();
            }
            lane.queue.push_back(item);
            return false;
        }
        let mut queue = self.spare.pop().unwrap_or_default();
        queue.push_back(item);
        self.lanes.insert(id, Lane { queue, state: LaneState::Ready });
        self.ready.push_back(id);
        true
    }

    pub(super) fn pass(&mut self, next: i64) {
        if self.stage == Stage::Active {
            self.ledger.pass(next);
        }
    }

    pub(super) fn may_run(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// True if it must be put into the queue of turns.
    pub(super) fn wants_turn(&mut self) -> bool {
        let is_next = self.turn == Turn::None && self.may_run();
        if is_next {
            self.turn = Turn::Queued { bytes_left: 0 };
        }
        is_next
    }

    /// It was taken out of the queue of turns.
    pub(super) fn end_turn(&mut self) {
        self.turn = Turn::None;
    }

    /// Starts a slice of its next lane; `None` if its bytes of this turn are used up.
    pub(super) fn start(&mut self) -> Option<(LaneId, Slice<P>)> {
        let Turn::Queued { bytes_left } = &mut self.turn else { return None };
        if *bytes_left <= 0 {
            *bytes_left += QUANTUM_BYTES;
            return None;
        }
        let id = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&id).expect("a ready lane has records");
        let mut items = Vec::new();
        let mut cost = 0;
        while let Some(item) = lane.queue.front() {
            let is_like_first = items.first().is_none_or(|first: &Item<P>| {
                first.attempt == item.attempt && cost < QUANTUM_BYTES
            });
            if !is_like_first || items.len() >= self.plan.slice_records_max.max(1) {
                break;
            }
            cost += i64::try_from(item.bytes).unwrap_or(QUANTUM_BYTES) + RECORD_COST_BYTES;
            items.extend(lane.queue.pop_front());
        }
        *bytes_left -= cost;
        let slice = Slice::new(items);
        lane.state = LaneState::Running { slice: slice.clone(), settled: 0 };
        self.running += 1;
        Some((id, slice))
    }

    /// Takes back a slice; returns when its lane may run again, if it must wait.
    pub(super) fn finish(&mut self, id: LaneId, rest: Rest) -> Option<Duration> {
        self.settle(id);
        let lane = self.lanes.get_mut(&id)?;
        let LaneState::Running { slice, .. } = &lane.state else { return None };
        let slice = slice.clone();
        self.running -= 1;
        let left = slice.items().get(slice.done()..).unwrap_or_default();
        if self.stage == Stage::Draining {
            self.forget(left);
            self.lanes.remove(&id);
            return None;
        }
        for (index, item) in left.iter().enumerate().rev() {
            let mut item = item.clone();
            if let Rest::Postponed { records, by, .. } = rest
                && index < records
            {
                item.attempt.failures += u32::from(by == PostponedBy::Failure);
                item.attempt.postponed_by = Some(by);
            }
            lane.queue.push_front(item);
        }
        if lane.queue.is_empty() {
            let queue = self.lanes.remove(&id)?.queue;
            if self.spare.len() < SPARE_QUEUES_MAX && queue.capacity() <= SPARE_RECORDS_MAX {
                self.spare.push(queue);
            }
            return None;
        }
        match rest {
            Rest::Postponed { at, .. } if !left.is_empty() => {
                lane.state = LaneState::Waiting;
                lane.queue.iter_mut().for_each(|item| item.payload.detach());
                Some(at)
            }
            Rest::Postponed { .. } | Rest::Untried => {
                lane.state = LaneState::Ready;
                self.ready.push_back(id);
                None
            }
        }
    }

    /// The time of a waiting lane has come.
    pub(super) fn wake(&mut self, id: LaneId) {
        if let Some(lane) = self.lanes.get_mut(&id)
            && matches!(lane.state, LaneState::Waiting)
        {
            lane.state = LaneState::Ready;
            self.ready.push_back(id);
        }
    }

    pub(super) fn drain(&mut self) {
        self.stage = Stage::Draining;
        self.ready.clear();
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.retain(|_, lane| {
            self.forget(lane.queue.make_contiguous());
            lane.queue.clear();
            match &lane.state {
                LaneState::Running { slice, .. } => {
                    slice.stop();
                    true
                }
                LaneState::Ready | LaneState::Waiting => false,
            }
        });
        self.lanes = lanes;
    }

    /// Counts records no more that are dropped without being done.
    fn forget(&mut self, items: &[Item<P>]) {
        self.records -= items.len();
        self.bytes -= items.iter().map(|item| item.bytes).sum::<usize>();
    }

    pub(super) fn take_commit(&mut self) -> Option<Commit> {
        for id in self.running_lanes() {
            self.settle(id);
        }
        let commit = self.ledger.committable();
        if self.committed.as_ref() == Some(&commit) {
            return None;
        }
        self.committed = Some(commit.clone());
        Some(commit)
    }

    pub(super) fn retake_commit(&mut self) {
        self.committed = None;
    }

    fn running_lanes(&self) -> Vec<LaneId> {
        let is_running = |lane: &Lane<P>| matches!(lane.state, LaneState::Running { .. });
        self.lanes.iter().filter(|(_, lane)| is_running(lane)).map(|(id, _)| *id).collect()
    }

    /// Tells the ledger which records of a running slice are done.
    fn settle(&mut self, id: LaneId) {
        let lane = self.lanes.get_mut(&id).map(|lane| &mut lane.state);
        let Some(LaneState::Running { slice, settled }) = lane else { return };
        let done = slice.done();
        for item in slice.items().get(*settled..done).unwrap_or_default() {
            self.ledger.done(item.offset);
            self.records -= 1;
            self.bytes -= item.bytes;
        }
        *settled = done;
    }

    fn lane_of(&self, offset: i64, key_hash: Option<u64>) -> LaneId {
        match (self.plan.order, key_hash) {
            (Order::Partition, _) => LaneId(0),
            (Order::Key(lanes), Some(hash)) => LaneId(hash % u64::from(lanes.get())),
            (Order::Key(_) | Order::None, _) => LaneId(OWN_LANE | offset.cast_unsigned()),
        }
    }
}

/// Bytes that a partition may start in one turn: some slices of small records.
const QUANTUM_BYTES: i64 = 64 * 1024;

/// What a record costs beside its bytes, so that small ones are not free.
const RECORD_COST_BYTES: i64 = 64;

/// Lanes of single records; those of keys have smaller numbers.
const OWN_LANE: u64 = 1 << 63;

/// Queues kept for reuse, and the most records that one of them has room for.
const SPARE_QUEUES_MAX: usize = 1024;
const SPARE_RECORDS_MAX: usize = 64;
