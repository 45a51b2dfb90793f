//! A sequencer in memory with the rules of the one in PostgreSQL, for simulation and models.
//!
//! [`State`] and [`FrameState`] are plain data: they can be copied, compared and hashed. [`Memory`]
//! shares one of each between tasks.

mod append;
mod frame_state;
mod frames;
mod keys;
mod requests;
mod state;
mod transactions;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::sequencer::{
    AbortedTransaction, Answer, Commit, ExpiredProducers, Extent, Find, Found, LogId, LogProducer,
    ObjectKey, OpenTransaction, Outcome, ProducerPlace, Retention, Sequencer, Swap, Topic,
};

use self::frames::FrameLog;

pub use self::frame_state::FrameState;
pub use self::state::State;

/// A sequencer in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Guards all of the state; held for one request.
    state: Arc<Mutex<State>>,
    /// Guards the frames and the brokers; held for one request.
    frames: Arc<Mutex<FrameLog>>,
}

impl Memory {
    /// Moves the clock, which stands still otherwise.
    pub fn pass(&self, time: Duration) {
        self.with(|state| state.pass(time));
    }

    fn with<T>(&self, request: impl FnOnce(&mut State) -> T) -> T {
        // A request that panicked is a failed test.
        request(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sequencer for Memory {
    async fn commit(&self, commit: &Commit) -> Answer<Vec<Outcome>> {
        self.with(|state| state.commit(commit))
    }

    async fn find(&self, wanted: &[Find]) -> Answer<Vec<Option<Found>>> {
        Ok(self.with(|state| wanted.iter().map(|find| state.find(find)).collect()))
    }

    async fn find_time(&self, log: LogId, timestamp: i64) -> Answer<Option<Extent>> {
        Ok(self.with(|state| state.find_time(log, timestamp)))
    }

    async fn find_latest(&self, log: LogId) -> Answer<Option<Extent>> {
        Ok(self.with(|state| state.find_latest(log)))
    }

    async fn aborted(&self, log: LogId, from: i64, to: i64) -> Answer<Vec<AbortedTransaction>> {
        self.with(|state| state.aborted(log, from, to))
    }

    async fn producers(&self, log: LogId) -> Answer<Vec<LogProducer>> {
        self.with(|state| state.producers(log))
    }

    async fn expire_producers(
        &self,
        after: Option<ProducerPlace>,
        age: Duration,
        producers_max: i32,
    ) -> Answer<ExpiredProducers> {
        let most = usize::try_from(producers_max).unwrap_or_default();
        Ok(self.with(|state| state.expire_producers(after, age, most)))
    }

    async fn fence(&self, producer_id: i64, epoch: i16) -> Answer<Vec<LogId>> {
        Ok(self.with(|state| state.fence(producer_id, epoch)))
    }

    async fn fences(&self, after: Option<i64>, producers_max: i64) -> Answer<Vec<i64>> {
        let most = usize::try_from(producers_max).unwrap_or_default();
        Ok(self.with(|state| state.fences(after, most)))
    }

    async fn remove_fences(&self, producers: &[i64]) -> Answer<()> {
        self.with(|state| state.remove_fences(producers));
        Ok(())
    }

    async fn open_transactions(
        &self,
        after: Option<OpenTransaction>,
        transactions_max: i64,
    ) -> Answer<Vec<OpenTransaction>> {
        let most = usize::try_from(transactions_max).unwrap_or_default();
        Ok(self.with(|state| state.open_transactions(after, most)))
    }

    async fn sizes(&self, logs: &[LogId]) -> Answer<Vec<Option<i64>>> {
        Ok(self.with(|state| logs.iter().map(|log| state.size(*log)).collect()))
    }

    async fn trim(&self, log: LogId, before: i64) -> Answer<i64> {
        self.with(|state| state.trim(log, before))
    }

    async fn retain(&self, log: LogId, keep: Retention) -> Answer<i64> {
        self.with(|state| state.retain(log, keep))
    }

    async fn sweep(&self, extents_max: i32) -> Answer<bool> {
        Ok(self.with(|state| state.sweep(usize::try_from(extents_max).unwrap_or_default())))
    }

    async fn unsorted(&self, objects_max: i64) -> Answer<Vec<(LogId, Extent)>> {
        Ok(self.with(|state| state.unsorted(usize::try_from(objects_max).unwrap_or_default())))
    }

    async fn swap(&self, swap: &Swap) -> Answer<()> {
        self.with(|state| state.swap(swap))
    }

    async fn condemn(&self, keys: &[ObjectKey]) -> Answer<Vec<ObjectKey>> {
        Ok(self.with(|state| state.condemn(keys)))
    }

    async fn dead(&self, keys_max: i64) -> Answer<Vec<ObjectKey>> {
        Ok(self.with(|state| state.dead(usize::try_from(keys_max).unwrap_or_default())))
    }

    async fn forget(&self, keys: &[ObjectKey]) -> Answer<()> {
        self.with(|state| state.forget(keys));
        Ok(())
    }

    async fn generation(&self) -> Answer<u32> {
        Ok(self.with(|state| state.generation()))
    }

    /// The clock does not count here, so a generation is never older than 0.
    async fn begin_generation(&self, age: Duration) -> Answer<()> {
        if age.is_zero() {
            self.with(State::begin_generation);
        }
        Ok(())
    }

    async fn remove_keys(&self, keys_max: i32) -> Answer<bool> {
        Ok(self.with(|state| state.remove_keys(usize::try_from(keys_max).unwrap_or_default())))
    }

    async fn create_topic(&self, topic: &Topic) -> Answer<()> {
        self.with(|state| state.create_topic(topic))
    }

    async fn grow_topic(&self, id: Uuid, partitions: i32) -> Answer<i32> {
        self.with(|state| state.grow_topic(id, partitions))
    }

    async fn delete_topic(&self, id: Uuid) -> Answer<()> {
        self.with(|state| state.delete_topic(id))
    }

    async fn topics(&self) -> Answer<Vec<Topic>> {
        Ok(self.with(|state| state.topics()))
    }

    async fn move_logs(&self, logs: &[LogId], leader: i32) -> Answer<i32> {
        Ok(self.with(|state| state.move_logs(logs, leader)))
    }
}
