//! The lanes and the ledger of one partition.
//!
//! Records of a route by record wait in one lane, in order, while their handler does not wait for
//! anything: `FRONT`. It costs no table of keys, and the ledger has no gaps. Once a record waits,
//! is postponed or fails, the records behind it are spread over the lanes of their order.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::slice::{Part, PostponedBy, Records, Segment, Slice};
use super::{Figures, Order, Plan, Pool, Rest, Slicing};
use crate::ledger::{Commit, Delivery, Ledger};

/// Names a lane of a partition.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct LaneId(u64);

#[derive(Debug)]
enum LaneState<C> {
    /// It may run, and stands in the queue of lanes that may.
    Ready,
    Running {
        slice: Slice<C>,
        /// How many records of the slice the ledger knows to be done.
        settled: usize,
        /// How many of its records belong to the lane; the others were spread.
        records: usize,
    },
    /// Its first record is to be handled later.
    Waiting,
}

#[derive(Debug)]
struct Lane<C> {
    queue: VecDeque<Segment<C>>,
    state: LaneState<C>,
}

/// Whether further records are started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Active,
    /// Records are queued, but none is started.
    Paused,
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
pub(super) struct Partition<C> {
    plan: Plan,
    ledger: Ledger,
    stage: Stage,
    turn: Turn,
    /// Lanes with records that are queued or run.
    lanes: HashMap<LaneId, Lane<C>, RandomState>,
    ready: VecDeque<LaneId>,
    running: usize,
    /// Records that are queued or run, and their bytes.
    records: usize,
    bytes: usize,
    /// Records that were handled.
    handled: u64,
    /// What was last taken to be committed; `None` if it must be taken again.
    committed: Option<Commit>,
    /// Whether it is among the partitions that changed.
    is_changed: bool,
    /// Most records of the next slice.
    slice_records: usize,
    /// Queues of lanes that ended, for reuse.
    spare_queues: Vec<VecDeque<Segment<C>>>,
    /// A slice that ended.
    spare_slice: Option<Slice<C>>,
}

impl<C: Records> Partition<C> {
    pub(super) fn new(plan: Plan, ledger: Ledger) -> Self {
        // An owner that did nothing has nothing to commit.
        let committed = Some(ledger.committable());
        let slice_records = match plan.slicing {
            Slicing::Whole => plan.slice_records_max,
            Slicing::Paced => SLICE_RECORDS_FIRST.min(plan.slice_records_max),
        };
        Self {
            plan,
            ledger,
            stage: Stage::Active,
            turn: Turn::None,
            lanes: HashMap::default(),
            ready: VecDeque::new(),
            running: 0,
            records: 0,
            bytes: 0,
            handled: 0,
            committed,
            is_changed: false,
            slice_records,
            spare_queues: Vec::new(),
            spare_slice: None,
        }
    }

    /// Whether it takes the record at `offset`, and half of its queue is empty.
    pub(super) fn has_ample_room(&self, offset: i64) -> bool {
        self.records <= self.plan.queue_records_max / 2
            && self.bytes <= self.plan.queue_bytes_max / 2
            && self.ledger.has_room(offset)
    }

    /// A slice took this long, without waiting for anything.
    pub(super) fn pace(&mut self, records: usize, took: Duration) {
        if self.plan.slicing == Slicing::Whole {
            return;
        }
        if took > SLICE_TIME_MAX {
            let record = took / u32::try_from(records).unwrap_or(u32::MAX).max(1);
            let fit = SLICE_TIME_MAX.as_nanos() / record.as_nanos().max(1);
            self.slice_records =
                usize::try_from(fit).unwrap_or(usize::MAX).clamp(1, records.max(1));
        } else if took < SLICE_TIME_MAX / 4 && records >= self.slice_records {
            self.slice_records = (self.slice_records * 2).min(self.plan.slice_records_max);
        }
    }

    /// The limit of its route.
    pub(super) fn pool(&self) -> Option<Pool> {
        self.plan.pool
    }

    /// Records that were handled.
    pub(super) fn handled(&self) -> u64 {
        self.handled
    }

    /// Bytes of records that are queued or run.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Queues records of `chunk` from the one at `from` on, unless they are known to be done, as
    /// many as there is room for up to `bytes_max` bytes in the queue. Returns the place of the
    /// first that is not taken.
    pub(super) fn deliver(&mut self, chunk: &Arc<C>, from: usize, bytes_max: usize) -> usize {
        if self.stage == Stage::Draining {
            return chunk.len();
        }
        let bytes_max = bytes_max.min(self.plan.queue_bytes_max);
        let mut next = from;
        while next < chunk.len()
            && self.records < self.plan.queue_records_max
            && self.bytes < bytes_max
        {
            let run = self.run(chunk, next, bytes_max);
            let offset = chunk.offset(next);
            if self.ledger.deliver_run(&Part::of(&run).offsets()) {
                next = run.range.end;
                self.queue(run);
            } else if self.ledger.has_room(offset) {
                next += 1;
                if self.ledger.deliver(offset) == Delivery::Open {
                    self.queue(Segment::new(chunk, next - 1..next));
                }
            } else {
                break;
            }
        }
        next
    }

    /// The records from `from` on with consecutive offsets that the queue has room for; one at
    /// least.
    fn run(&self, chunk: &Arc<C>, from: usize, bytes_max: usize) -> Segment<C> {
        let records_max = (self.plan.queue_records_max - self.records).min(chunk.len() - from);
        let (offset, bytes) = (chunk.offset(from), chunk.bytes_before(from));
        let bytes_room = bytes_max - self.bytes;
        let belongs = |records: usize| {
            let last = from + records;
            let distance = chunk.offset(last).saturating_sub(offset);
            usize::try_from(distance) == Ok(records)
                && chunk.bytes_before(last) - bytes < bytes_room
        };
        // Each record but the first belongs to the run if all before it do.
        let (mut some, mut too_many) = (1, records_max);
        if records_max > 1 && belongs(records_max - 1) {
            some = records_max;
        }
        while some < too_many {
            let middle = some + (too_many - some) / 2;
            if belongs(middle) {
                some = middle + 1;
            } else {
                too_many = middle;
            }
        }
        Segment::new(chunk, from..from + some)
    }

    /// Puts open records into their lanes.
    fn queue(&mut self, run: Segment<C>) {
        self.records += run.range.len();
        self.bytes += Part::of(&run).bytes();
        if self.plan.order == Order::Partition || self.runs_in_order() {
            return self.queue_in(FRONT, run);
        }
        self.spread(run);
    }

    /// Whether no record has waited for anything yet, of those that are queued or run.
    fn runs_in_order(&self) -> bool {
        let others = self.lanes.len() - usize::from(self.lanes.contains_key(&FRONT));
        self.plan.slicing == Slicing::Paced && others == 0
    }

    /// Puts each record into the lane of its order.
    fn spread(&mut self, mut segment: Segment<C>) {
        while !segment.range.is_empty() {
            let one = segment.take(1);
            let id = self.lane_of(&one.chunk, one.range.start);
            self.queue_in(id, one);
        }
    }

    /// The record that a slice is at waits for something; returns its lane. The others that wait
    /// behind it may run beside it.
    pub(super) fn waits(&mut self, id: LaneId) -> LaneId {
        if id != FRONT || self.plan.order == Order::Partition {
            return id;
        }
        self.settle(id);
        let Some(lane) = self.lanes.get_mut(&id) else { return id };
        let LaneState::Running { slice, settled: at, .. } = &lane.state else { return id };
        let (slice, at) = (slice.clone(), *at);
        let Some(part) = slice.parts(at..at + 1).next() else { return id };
        slice.stop();
        let queue = std::mem::take(&mut lane.queue);
        self.lanes.remove(&id);
        let id = self.lane_of(&part.segment.chunk, part.range.start);
        let state = LaneState::Running { slice: slice.clone(), settled: at, records: at + 1 };
        self.lanes.insert(id, Lane { queue: VecDeque::new(), state });
        for part in slice.parts(at + 1..slice.len()) {
            self.spread(part.into_segment());
        }
        queue.into_iter().for_each(|segment| self.spread(segment));
        id
    }

    /// Spreads what waits behind a record that is tried again later; returns that one's lane.
    fn spread_behind_first(&mut self) -> Option<LaneId> {
        let mut queue = self.lanes.remove(&FRONT)?.queue;
        let first = queue.front_mut()?.take(1);
        let id = self.lane_of(&first.chunk, first.range.start);
        self.lanes.insert(id, Lane { queue: [first].into(), state: LaneState::Waiting });
        queue.into_iter().for_each(|segment| self.spread(segment));
        Some(id)
    }

    fn queue_in(&mut self, id: LaneId, mut segment: Segment<C>) {
        match self.lanes.entry(id) {
            Entry::Occupied(mut lane) => {
                let lane = lane.get_mut();
                if matches!(lane.state, LaneState::Waiting) {
                    segment.detach();
                }
                let joined = lane.queue.back_mut().is_some_and(|last| last.join(&segment));
                if !joined {
                    lane.queue.push_back(segment);
                }
            }
            Entry::Vacant(place) => {
                let mut queue = self.spare_queues.pop().unwrap_or_default();
                queue.push_back(segment);
                place.insert(Lane { queue, state: LaneState::Ready });
                self.ready.push_back(id);
            }
        }
    }

    pub(super) fn pass(&mut self, next: i64) {
        if self.stage != Stage::Draining {
            self.ledger.pass(next);
        }
    }

    pub(super) fn may_run(&self) -> bool {
        !self.ready.is_empty() && self.stage != Stage::Paused
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
    pub(super) fn start(&mut self) -> Option<(LaneId, Slice<C>)> {
        let Turn::Queued { bytes_left } = &mut self.turn else { return None };
        if *bytes_left <= 0 {
            *bytes_left += QUANTUM_BYTES;
            return None;
        }
        let id = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&id).expect("a ready lane has records");
        let records_max = self.slice_records.max(1);
        let slice = Slice::new(self.spare_slice.take(), |segments| {
            take_alike(&mut lane.queue, records_max, segments);
        });
        let bytes: usize = slice.parts(0..slice.len()).map(|part| part.bytes()).sum();
        let cost = bytes + slice.len() * RECORD_COST_BYTES;
        *bytes_left -= i64::try_from(cost).unwrap_or(i64::MAX);
        let records = slice.len();
        lane.state = LaneState::Running { slice: slice.clone(), settled: 0, records };
        self.running += 1;
        Some((id, slice))
    }

    /// Takes back a slice; returns which lane may run again when, if it must wait.
    pub(super) fn finish(&mut self, id: LaneId, rest: Rest) -> Option<(LaneId, Duration)> {
        self.settle(id);
        let lane = self.lanes.get_mut(&id).filter(|lane| lane.is_running())?;
        let LaneState::Running { slice, records, .. } =
            std::mem::replace(&mut lane.state, LaneState::Ready)
        else {
            return None;
        };
        self.running -= 1;
        let done = slice.done().min(records);
        if self.stage == Stage::Draining {
            self.lanes.remove(&id);
            self.forget(slice.parts(done..records));
            return None;
        }
        let due = if done < records { lane.take_back(&slice, done..records, rest) } else { None };
        self.spare_slice = slice.emptied();
        if let Some(at) = due
            && id == FRONT
            && self.plan.order != Order::Partition
        {
            return Some((self.spread_behind_first()?, at));
        }
        if lane.queue.is_empty() {
            let queue = self.lanes.remove(&id)?.queue;
            if self.spare_queues.len() < SPARE_QUEUES_MAX && queue.capacity() <= SPARE_SEGMENTS_MAX
            {
                self.spare_queues.push(queue);
            }
        } else if matches!(lane.state, LaneState::Ready) {
            self.ready.push_back(id);
        }
        Some((id, due?))
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

    /// False if it is drained.
    pub(super) fn set_paused(&mut self, paused: bool) -> bool {
        if self.stage != Stage::Draining {
            self.stage = if paused { Stage::Paused } else { Stage::Active };
        }
        self.stage != Stage::Draining
    }

    /// How many records of the slice that runs in a lane are done.
    pub(super) fn done(&self, id: LaneId) -> usize {
        match self.lanes.get(&id).map(|lane| &lane.state) {
            Some(LaneState::Running { slice, .. }) => slice.done(),
            _ => 0,
        }
    }

    pub(super) fn figures(&mut self) -> Figures {
        for id in self.running_lanes() {
            self.settle(id);
        }
        let (mut retrying, mut delayed) = (0, 0);
        for lane in self.lanes.values().filter(|lane| matches!(lane.state, LaneState::Waiting)) {
            match lane.queue.front().and_then(|first| first.attempt.postponed_by) {
                Some(PostponedBy::Failure) => retrying += 1,
                Some(PostponedBy::Layer(_)) | None => delayed += 1,
            }
        }
        Figures {
            done_to: self.ledger.base(),
            position: self.ledger.next(),
            records: self.records,
            bytes: self.bytes,
            running: self.running,
            retrying,
            delayed,
            is_paused: self.stage == Stage::Paused,
            handled: self.handled,
        }
    }

    pub(super) fn drain(&mut self) {
        self.stage = Stage::Draining;
        self.ready.clear();
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.retain(|_, lane| {
            self.forget(lane.queue.iter().map(Part::of));
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
    fn forget<'s>(&mut self, parts: impl Iterator<Item = Part<'s, C>>)
    where
        C: 's,
    {
        for part in parts {
            self.records -= part.range.len();
            self.bytes -= part.bytes();
        }
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

    /// True if it must be put among the partitions that changed.
    pub(super) fn change(&mut self) -> bool {
        !std::mem::replace(&mut self.is_changed, true)
    }

    /// It was taken out of the partitions that changed; true if it must be put back.
    pub(super) fn end_change(&mut self) -> bool {
        self.is_changed = self.running > 0;
        self.is_changed
    }

    pub(super) fn retake_commit(&mut self) {
        self.committed = None;
    }

    fn running_lanes(&self) -> Vec<LaneId> {
        self.lanes.iter().filter(|(_, lane)| lane.is_running()).map(|(id, _)| *id).collect()
    }

    /// Tells the ledger which records of a running slice are done.
    fn settle(&mut self, id: LaneId) {
        let lane = self.lanes.get_mut(&id).map(|lane| &mut lane.state);
        let Some(LaneState::Running { slice, settled, records }) = lane else { return };
        let done = slice.done().min(*records);
        for part in slice.parts(*settled..done) {
            let records = part.range.len();
            self.ledger.done_run(part.offsets(), records);
            self.records -= records;
            self.bytes -= part.bytes();
        }
        self.handled += u64::try_from(done - *settled).unwrap_or(0);
        *settled = done;
    }

    fn lane_of(&self, chunk: &C, index: usize) -> LaneId {
        let hash = match self.plan.order {
            Order::Key(lanes) => chunk.key_hash(index).map(|hash| hash % u64::from(lanes.get())),
            Order::Partition | Order::None => None,
        };
        LaneId(hash.unwrap_or_else(|| OWN_LANE | chunk.offset(index).cast_unsigned()))
    }
}

impl<C: Records> Lane<C> {
    fn is_running(&self) -> bool {
        matches!(self.state, LaneState::Running { .. })
    }

    /// Puts back these records of a slice; returns when they may run again, if they must wait.
    fn take_back(
        &mut self,
        slice: &Slice<C>,
        Range { start: done, end: records }: Range<usize>,
        rest: Rest,
    ) -> Option<Duration> {
        let tried = match rest {
            Rest::Postponed { records: tried, .. } => (done + tried).min(records),
            Rest::Untried => done,
        };
        let mut left: Vec<Segment<C>> = slice.parts(done..tried).map(Part::into_segment).collect();
        let due = if let Rest::Postponed { at, by, .. } = rest {
            for Segment { attempt, .. } in &mut left {
                attempt.failures += u32::from(by == PostponedBy::Failure);
                attempt.postponed_by = Some(by);
            }
            Some(at)
        } else {
            None
        };
        left.extend(slice.parts(tried..records).map(Part::into_segment));
        for segment in left.into_iter().rev() {
            self.queue.push_front(segment);
        }
        if due.is_some() {
            self.state = LaneState::Waiting;
            self.queue.iter_mut().for_each(Segment::detach);
        }
        due
    }
}

/// Takes up to `records_max` records that were tried alike from the front of a queue.
fn take_alike<C: Records>(
    queue: &mut VecDeque<Segment<C>>,
    records_max: usize,
    segments: &mut Vec<Segment<C>>,
) {
    let mut room = records_max;
    let attempt = queue.front().map(|first| first.attempt);
    while room > 0
        && let Some(first) = queue.front_mut().filter(|it| Some(it.attempt) == attempt)
    {
        let all = first.range.len();
        if all > room {
            segments.push(first.take(room));
            return;
        }
        room -= all;
        segments.extend(queue.pop_front());
    }
}

/// Bytes that a partition may start in one turn: some slices of small records.
const QUANTUM_BYTES: i64 = 64 * 1024;

/// What a record costs beside its bytes, so that small ones are not free.
const RECORD_COST_BYTES: usize = 64;

/// Lanes of single records; those of keys have smaller numbers.
const OWN_LANE: u64 = 1 << 63;

/// The lane of all records that run in order; no key has its number.
const FRONT: LaneId = LaneId(OWN_LANE - 1);

/// Time that a paced slice may take: other partitions and the fetcher wait meanwhile.
const SLICE_TIME_MAX: Duration = Duration::from_micros(500);

/// Records of a partition's first slice, of which nobody knows how long they take.
const SLICE_RECORDS_FIRST: usize = 8;

/// Queues kept for reuse, and the most segments that one of them has room for.
const SPARE_QUEUES_MAX: usize = 1024;
const SPARE_SEGMENTS_MAX: usize = 64;
