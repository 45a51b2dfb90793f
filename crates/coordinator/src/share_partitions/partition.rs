//! One share partition: how far a share group is in a partition, which records it holds in flight,
//! and what became of them.
//!
//! Offsets before the start offset are done with; those from the end offset on were never
//! delivered. The records between are in runs: neighbours of the same state are one entry, so a
//! batch takes one entry until its records differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{Cause, Changes, StoredRun, StoredState};
use super::{AcquireLimits, AcquireMode, Acquired, DeadLetters, DeliverySettings, Fetched};

/// A record is delivered in smaller portions from this many deliveries on, at least, so that one
/// bad record does not archive its neighbours.
const THROTTLED_DELIVERIES_MIN: i16 = 2;

/// The state of one partition for one share group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharePartition {
    start: i64,
    end: i64,
    /// Every offset from `start` to before `end`, by the first offset of the run.
    runs: BTreeMap<i64, Run>,
    /// Nothing was stored since the start offset was chosen.
    is_initial: bool,
    /// No lock ends before this time.
    check_at_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) last: i64,
    pub(super) state: State,
    /// How often the records were delivered.
    pub(super) deliveries: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Acquired(Lock),
    Stored(StoredState),
}

/// Who may acknowledge records, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) member: Arc<str>,
    until_ms: i64,
}

impl Run {
    fn is_like(&self, other: &Self) -> bool {
        self.state == other.state && self.deliveries == other.deliveries
    }

    fn is_available(&self) -> bool {
        self.state == State::Stored(StoredState::Available)
    }

    fn is_done(&self) -> bool {
        use StoredState::{Acknowledged, Archived};
        matches!(self.state, State::Stored(Acknowledged | Archived))
    }

    fn cause(&self) -> Option<Cause> {
        match self.state {
            State::Stored(StoredState::Archiving(cause)) => Some(cause),
            _ => None,
        }
    }
}

impl SharePartition {
    /// A partition whose group begins at an offset.
    pub(super) fn starting_at(start: i64) -> Self {
        Self { start, end: start, runs: BTreeMap::new(), is_initial: true, check_at_ms: None }
    }

    /// The first offset that the group is not done with.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The offset after the last that was ever delivered.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Whether nothing was acknowledged, released or altered yet.
    pub fn is_initial(&self) -> bool {
        self.is_initial
    }

    /// How many records from the start offset on are done with.
    pub fn done(&self) -> i64 {
        let done = self.runs.iter().filter(|(_, run)| run.is_done());
        done.map(|(first, run)| run.last - first + 1).sum()
    }

    /// The offset to read from for the next delivery; `None` while as many records as there may be
    /// are in flight.
    pub fn next_offset(&self, settings: &DeliverySettings) -> Option<i64> {
        let available = self.runs.iter().find(|(_, run)| run.is_available());
        let has_room = self.end - self.start < settings.locks_max;
        available.map(|(first, _)| *first).or(has_room.then_some(self.end))
    }

    /// The first records that wait for their dead-letter record.
    pub fn dead_letters(&self) -> Option<DeadLetters> {
        self.runs.iter().find_map(|(first, run)| {
            let cause = run.cause()?;
            Some(DeadLetters { first: *first, last: run.last, deliveries: run.deliveries, cause })
        })
    }

    /// What it means that records up to this one have their dead-letter record, or get none.
    pub(super) fn buried(&self, letters: &DeadLetters) -> Option<Changes> {
        let runs = self.runs_within(letters.first, letters.last).into_iter();
        let waiting = runs.filter(|(_, run)| run.cause().is_some());
        let runs = waiting.map(|(first, run)| {
            let (last, deliveries) = (run.last, run.deliveries);
            StoredRun { first, last, state: StoredState::Archived, deliveries }
        });
        let runs: Vec<_> = runs.collect();
        (!runs.is_empty()).then_some(Changes { start: self.start, runs })
    }

    /// Entries that the records in flight take.
    pub fn entries(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn check_at_ms(&self) -> Option<i64> {
        self.check_at_ms
    }

    /// Gives records of what was read to a member. Records that are not for delivery, and offsets
    /// that the log does not have, are archived.
    pub(super) fn acquire(
        &mut self,
        now_ms: i64,
        member: &Arc<str>,
        fetched: &Fetched<'_>,
        limits: AcquireLimits,
        settings: &DeliverySettings,
    ) -> Vec<Acquired> {
        let mut acquisition = Acquisition {
            lock: Lock {
                member: Arc::clone(member),
                until_ms: now_ms.saturating_add(settings.lock_duration_ms),
            },
            limits,
            settings,
            records: 0,
            acquired: Vec::new(),
        };
        let mut next = fetched.offset.max(self.start);
        // What was read behind a start offset that went back is of no use.
        if next <= self.end {
            for batch in fetched.batches {
                if batch.last < next {
                    continue;
                }
                let first = batch.first.max(next);
                self.archive(next, first - 1);
                if !batch.is_delivered {
                    self.archive(first, batch.last);
                } else if self.acquire_batch(first, batch.last, &mut acquisition) == Progress::Full
                {
                    break;
                }
                next = batch.last.saturating_add(1);
            }
        }
        self.advance_start();
        if !acquisition.acquired.is_empty() && self.check_at_ms.is_none() {
            self.check_at_ms = Some(acquisition.lock.until_ms);
        }
        acquisition.acquired
    }

    fn acquire_batch(
        &mut self,
        first: i64,
        last: i64,
        acquisition: &mut Acquisition<'_>,
    ) -> Progress {
        let known = self.runs_within(first, last.min(self.end - 1));
        for (first, run) in known.into_iter().filter(|(_, run)| run.is_available()) {
            if acquisition.left() == 0 {
                return Progress::Full;
            }
            let portion = acquisition.portion(run.deliveries, run.last - first + 1);
            let wanted = match portion {
                Portion::Spent => {
                    let given_up = State::Stored(acquisition.settings.given_up(Cause::Spent));
                    self.set(first, run.last, |run| run.state = given_up.clone());
                    continue;
                }
                Portion::Later => return Progress::Full,
                Portion::Alone(records) | Portion::Any(records) => records,
            };
            let end = first + wanted;
            self.give(first, end - 1, run.deliveries + 1, acquisition);
            if matches!(portion, Portion::Alone(_)) || end <= run.last {
                return Progress::Full;
            }
        }
        if last < self.end {
            return Progress::Goes;
        }
        let room = acquisition.settings.locks_max - (self.end - self.start);
        let wanted = acquisition.of_batch(last - self.end + 1).min(room);
        if wanted <= 0 {
            return Progress::Full;
        }
        let first = self.end;
        let end = first + wanted;
        self.extend_to(end);
        self.give(first, end - 1, 1, acquisition);
        if end <= last { Progress::Full } else { Progress::Goes }
    }

    fn give(&mut self, first: i64, last: i64, deliveries: i16, acquisition: &mut Acquisition<'_>) {
        let lock = &acquisition.lock;
        self.set(first, last, |run| {
            run.state = State::Acquired(lock.clone());
            run.deliveries = deliveries;
        });
        acquisition.took(first, last, deliveries);
    }

    /// Archives what is available of a range, or was never delivered.
    fn archive(&mut self, first: i64, last: i64) {
        if first > last {
            return;
        }
        self.extend_to(last.saturating_add(1));
        for (first, run) in self.runs_within(first, last) {
            if run.is_available() {
                let archived = State::Stored(StoredState::Archived);
                self.set(first, run.last, |run| run.state = archived.clone());
            }
        }
    }

    /// Makes the locks of these ranges last from now on.
    pub(super) fn renew(
        &mut self,
        now_ms: i64,
        ranges: &[(i64, i64)],
        settings: &DeliverySettings,
    ) {
        let until_ms = now_ms.saturating_add(settings.lock_duration_ms);
        for (first, last) in ranges {
            self.set(*first, *last, |run| {
                if let State::Acquired(lock) = &mut run.state {
                    lock.until_ms = until_ms;
                }
            });
        }
    }

    /// What it means that a member is gone. It may have seen the records that it holds, so their
    /// delivery counts.
    pub(super) fn release(&self, member: &str, settings: &DeliverySettings) -> Option<Changes> {
        self.change(|run| match &run.state {
            State::Acquired(lock) if *lock.member == *member => {
                Some((settings.released(run.deliveries), run.deliveries))
            }
            _ => None,
        })
    }

    /// What it means that locks ended.
    pub(super) fn expire(&self, now_ms: i64, settings: &DeliverySettings) -> Option<Changes> {
        self.change(|run| match &run.state {
            State::Acquired(lock) if lock.until_ms <= now_ms => {
                Some((settings.released(run.deliveries), run.deliveries))
            }
            _ => None,
        })
    }

    /// Looks for locks again when the first of them ends.
    pub(super) fn reschedule(&mut self) {
        let ends = self.runs.values().filter_map(|run| match &run.state {
            State::Acquired(lock) => Some(lock.until_ms),
            State::Stored(_) => None,
        });
        self.check_at_ms = ends.min();
    }

    fn change(&self, of: impl Fn(&Run) -> Option<(StoredState, i16)>) -> Option<Changes> {
        let runs = self.runs.iter().filter_map(|(first, run)| {
            let (state, deliveries) = of(run)?;
            Some(StoredRun { first: *first, last: run.last, state, deliveries })
        });
        let runs: Vec<_> = runs.collect();
        (!runs.is_empty()).then_some(Changes { start: self.start, runs })
    }

    /// What is stored of it. Deliveries under way are not: after a restart they did not happen.
    pub(super) fn stored(&self) -> Changes {
        let runs = self.runs.iter().map(|(first, run)| {
            let (state, deliveries) = match &run.state {
                State::Acquired(_) => (StoredState::Available, run.deliveries - 1),
                State::Stored(state) => (*state, run.deliveries),
            };
            StoredRun { first: *first, last: run.last, state, deliveries }
        });
        Changes { start: self.start, runs: runs.collect() }
    }

    /// Applies what was stored.
    pub(super) fn apply(&mut self, changes: &Changes) {
        self.is_initial = false;
        self.move_start(changes.start);
        let start = self.start;
        for changed in changes.runs.iter().filter(|changed| changed.last >= start) {
            self.extend_to(changed.last.saturating_add(1));
            self.set(changed.first.max(start), changed.last, |run| {
                run.state = State::Stored(changed.state);
                run.deliveries = changed.deliveries;
            });
        }
        self.advance_start();
    }

    /// Forgets what the log does not have any more.
    pub(super) fn move_start(&mut self, log_start: i64) {
        if log_start <= self.start {
            return;
        }
        let waiting = self.runs.iter().find(|(_, run)| run.cause().is_some());
        let held = waiting.map(|(first, _)| *first).filter(|first| *first < log_start);
        let start = held.unwrap_or(log_start).max(self.start);
        self.split_at(start);
        self.runs = self.runs.split_off(&start);
        self.start = start;
        self.end = self.end.max(start);
        // A dead-letter record is due even where the record itself is gone.
        if held.is_some() {
            self.archive(start, log_start - 1);
        }
        self.advance_start();
    }

    fn advance_start(&mut self) {
        while let Some(first) = self.runs.first_entry().filter(|first| first.get().is_done()) {
            self.start = first.remove().last + 1;
        }
        assert!(self.start <= self.end, "records in flight lie before the end offset");
    }

    /// Makes records known up to an end offset, as never delivered.
    fn extend_to(&mut self, end: i64) {
        if end > self.end {
            let state = State::Stored(StoredState::Available);
            self.runs.insert(self.end, Run { last: end - 1, state, deliveries: 0 });
            self.end = end;
        }
    }

    /// The runs of a range, cut to it.
    pub(super) fn runs_within(&self, first: i64, last: i64) -> Vec<(i64, Run)> {
        if first > last {
            return Vec::new();
        }
        let from = self.runs.range(..=first).next_back().map_or(first, |(at, _)| *at);
        let touched = self.runs.range(from..=last).filter(|(_, run)| run.last >= first);
        let cut = touched
            .map(|(at, run)| ((*at).max(first), Run { last: run.last.min(last), ..run.clone() }));
        cut.collect()
    }

    fn set(&mut self, first: i64, last: i64, mut to: impl FnMut(&mut Run)) {
        self.split_at(first);
        self.split_at(last.saturating_add(1));
        self.runs.range_mut(first..=last).for_each(|(_, run)| to(run));
        self.merge(first, last);
    }

    fn split_at(&mut self, offset: i64) {
        let before = self.runs.range_mut(..offset).next_back();
        let Some((_, run)) = before.filter(|(_, run)| run.last >= offset) else { return };
        let behind = run.clone();
        run.last = offset - 1;
        self.runs.insert(offset, behind);
    }

    /// Makes one run of neighbours that are alike, in a range and at its edges.
    fn merge(&mut self, first: i64, last: i64) {
        let before = self.runs.range(..first).next_back().map_or(first, |(at, _)| *at);
        let touched = self.runs.range(before..=last.saturating_add(1));
        let mut merged: Vec<(i64, Run)> = Vec::new();
        let mut gone = Vec::new();
        for (at, run) in touched {
            match merged.last_mut() {
                Some((_, into)) if into.is_like(run) => {
                    into.last = run.last;
                    gone.push(*at);
                }
                _ => merged.push((*at, run.clone())),
            }
        }
        if !gone.is_empty() {
            gone.iter().for_each(|at| drop(self.runs.remove(at)));
            self.runs.extend(merged);
        }
    }
}

/// Whether a member may get more.
#[derive(PartialEq, Eq)]
enum Progress {
    Goes,
    Full,
}

/// How many records of a run a member gets.
#[derive(Clone, Copy)]
enum Portion {
    Any(i64),
    /// So many, and nothing else with them.
    Alone(i64),
    /// None with what the member got already.
    Later,
    /// None ever: they were delivered as often as they may be.
    Spent,
}

/// What a member gets by one request from one partition.
struct Acquisition<'a> {
    lock: Lock,
    limits: AcquireLimits,
    settings: &'a DeliverySettings,
    records: i64,
    acquired: Vec<Acquired>,
}

impl Acquisition<'_> {
    fn left(&self) -> i64 {
        (self.limits.records_max - self.records).max(0)
    }

    /// The records of a batch that the limit allows: all or none where batches stay whole.
    fn of_batch(&self, records: i64) -> i64 {
        match self.limits.mode {
            AcquireMode::BatchOptimized if self.left() > 0 => records,
            AcquireMode::BatchOptimized => 0,
            AcquireMode::RecordLimit => records.min(self.left()),
        }
    }

    /// Records that failed half of their deliveries come in ever smaller portions, and for the
    /// last time alone.
    fn portion(&self, deliveries: i16, records: i64) -> Portion {
        let most = self.settings.deliveries_max;
        let throttled = (most.saturating_add(1) / 2).max(THROTTLED_DELIVERIES_MIN);
        if deliveries >= most {
            return Portion::Spent;
        }
        let is_last = most > THROTTLED_DELIVERIES_MIN && deliveries == most - 1;
        if deliveries < throttled && !is_last {
            return Portion::Any(self.of_batch(records));
        }
        match self.records {
            0 if is_last => Portion::Alone(1),
            0 => Portion::Alone(self.of_batch((records / 2).max(1))),
            _ => Portion::Later,
        }
    }

    fn took(&mut self, first: i64, last: i64, deliveries: i16) {
        self.records += last - first + 1;
        let size = match self.limits.mode {
            AcquireMode::BatchOptimized => self.limits.batch_size.max(1),
            AcquireMode::RecordLimit => i64::MAX,
        };
        match self.acquired.last_mut() {
            Some(open)
                if open.last + 1 == first
                    && open.deliveries == deliveries
                    && open.last - open.first + 1 < size =>
            {
                open.last = last;
            }
            _ => self.acquired.push(Acquired { first, last, deliveries }),
        }
    }
}
