//! Limits of single routes: so many slices of all partitions of a route run at a time.

use std::collections::{HashMap, VecDeque};

use super::PartitionId;

/// A limit that some partitions have in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pool {
    /// Tells it apart from others.
    pub(crate) id: usize,
    /// Most slices that run at a time.
    pub(crate) workers: usize,
}

/// The pools of all partitions.
#[derive(Debug, Default)]
pub(super) struct Pools {
    by_id: HashMap<usize, State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// Partitions whose turn it was when no more could run.
    blocked: VecDeque<PartitionId>,
}

impl Pools {
    /// False if no more may run: the partition then waits until
    /// [`unblocked`](Self::unblocked) names it.
    pub(super) fn admits(&mut self, pool: Option<Pool>, partition: PartitionId) -> bool {
        let Some(Pool { id, workers }) = pool else { return true };
        let state = self.by_id.entry(id).or_default();
        let has_room = state.running < workers.max(1);
        if !has_room {
            state.blocked.push_back(partition);
        }
        has_room
    }

    /// A slice starts.
    pub(super) fn start(&mut self, pool: Option<Pool>) {
        if let Some(Pool { id, .. }) = pool {
            self.by_id.entry(id).or_default().running += 1;
        }
    }

    /// A slice has ended.
    pub(super) fn finish(&mut self, pool: Option<Pool>) {
        if let Some(state) = pool.and_then(|pool| self.by_id.get_mut(&pool.id)) {
            state.running = state.running.saturating_sub(1);
        }
    }

    /// A partition is gone.
    pub(super) fn remove(&mut self, pool: Option<Pool>, partition: PartitionId) {
        if let Some(state) = pool.and_then(|pool| self.by_id.get_mut(&pool.id)) {
            state.blocked.retain(|blocked| *blocked != partition);
        }
    }

    /// The partition that takes the room of one that has ended, or does not use its turn.
    pub(super) fn unblocked(&mut self, pool: Option<Pool>) -> Option<PartitionId> {
        self.by_id.get_mut(&pool?.id)?.blocked.pop_front()
    }
}
