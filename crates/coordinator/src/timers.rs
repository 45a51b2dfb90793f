use std::collections::{BTreeMap, BTreeSet};

/// What a deadline of a group is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The end of the join phase, or of the initial rebalance delay of a streams group.
    Join,
    /// Members that did not sync are dropped.
    Sync,
    /// The session of a member, or of one that got its id and did not join yet.
    Member(String),
    /// A member of the consumer protocol has to have given up partitions.
    Revocation(String),
    /// A classic member of a consumer group has to have joined again.
    Rejoin(String),
    /// The same member has to have fetched its assignment.
    FetchAssignment(String),
}

/// Deadlines of one group, at most one for each [`Timer`].
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(i64, Timer)>,
    deadlines: BTreeMap<Timer, i64>,
}

impl Timers {
    /// Sets the deadline of `timer`, replacing the one that it had.
    pub(crate) fn schedule(&mut self, timer: Timer, at_ms: i64) {
        if let Some(before) = self.deadlines.insert(timer.clone(), at_ms) {
            self.by_time.remove(&(before, timer.clone()));
        }
        self.by_time.insert((at_ms, timer));
    }

    pub(crate) fn cancel(&mut self, timer: &Timer) {
        if let Some(at_ms) = self.deadlines.remove(timer) {
            self.by_time.remove(&(at_ms, timer.clone()));
        }
    }

    pub(crate) fn is_scheduled(&self, timer: &Timer) -> bool {
        self.deadlines.contains_key(timer)
    }

    pub(crate) fn earliest(&self) -> Option<i64> {
        self.by_time.first().map(|(at_ms, _)| *at_ms)
    }

    /// Takes out one timer whose deadline has come.
    pub(crate) fn pop_due(&mut self, now_ms: i64) -> Option<Timer> {
        if self.earliest()? > now_ms {
            return None;
        }
        let (_, timer) = self.by_time.pop_first()?;
        self.deadlines.remove(&timer);
        Some(timer)
    }
}
