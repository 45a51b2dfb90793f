//! A store and a sequencer that answer late, lose answers, and take effect long after they were
//! given up. All times are virtual, so a seed gives one order of events.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    AbortedTransaction, Answer, Commit, Error, ExpiredProducers, Extent, Find, Found, LogId,
    LogProducer, Memory, ObjectKey, OpenTransaction, Outcome, ProducerPlace, Retention, Sequencer,
    Store, Swap, Topic,
};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

/// Virtual time passes.
pub(crate) async fn pass(time: Duration) {
    sleep_until(Instant::now() + time).await;
}

/// Decides what happens to each request.
#[derive(Clone)]
pub(crate) struct Faults {
    random: Arc<Mutex<fastrand::Rng>>,
    is_over: Arc<AtomicBool>,
}

enum Fate {
    /// Takes effect, and is answered.
    Answered,
    /// Never takes effect.
    Lost,
    /// Takes effect at once, and its answer is lost.
    Silent,
    /// Is given up, and takes effect later.
    Late(Duration),
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { random: Arc::new(random), is_over: Arc::default() }
    }

    /// No faults from here on.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn with<T>(&self, choose: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        choose(&mut self.random.lock().unwrap())
    }

    fn is_calm(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    async fn fate(&self) -> Fate {
        if self.is_calm() {
            return Fate::Answered;
        }
        let (delay, choice, late) = self.with(|random| {
            // A broker that is paused for a while is a long delay.
            let delay = if random.u32(..40) == 0 { random.u64(..20_000) } else { random.u64(..60) };
            (delay, random.u32(..100), random.u64(..30_000))
        });
        pass(Duration::from_millis(delay)).await;
        match choice {
            0..4 => Fate::Lost,
            4..8 => Fate::Silent,
            8..14 => Fate::Late(Duration::from_millis(late)),
            _ => Fate::Answered,
        }
    }

    /// Runs a request under a fate of its own.
    pub(crate) async fn run<T, F>(&self, request: F, away: fn(String) -> Error) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        match self.fate().await {
            Fate::Answered => request.await,
            Fate::Lost => Err(away("lost".into())),
            Fate::Silent => {
                drop(request.await);
                Err(away("no answer".into()))
            }
            Fate::Late(delay) => {
                tokio::spawn(async move {
                    pass(delay).await;
                    drop(request.await);
                });
                Err(away("given up".into()))
            }
        }
    }
}

/// Objects in memory.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    faults: Faults,
    pub(crate) objects: Arc<Mutex<BTreeMap<ObjectKey, Bytes>>>,
    /// The list of some time ago.
    listed: Arc<Mutex<Vec<ObjectKey>>>,
}

impl FaultyStore {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, objects: Arc::default(), listed: Arc::default() }
    }
}

impl Store for FaultyStore {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Answer<()> {
        let objects = self.objects.clone();
        let put = async move {
            let mut objects = objects.lock().unwrap();
            if objects.contains_key(&key) {
                return Err(Error::ObjectExists(key));
            }
            objects.insert(key, bytes);
            Ok(())
        };
        self.faults.run(put, Error::StoreAway).await
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        let objects = self.objects.clone();
        let get = async move {
            let objects = objects.lock().unwrap();
            let bytes = objects.get(&key).ok_or(Error::ObjectMissing(key))?;
            let at = |offset: u64| usize::try_from(offset).unwrap().min(bytes.len());
            Ok(bytes.slice(at(range.start)..at(range.end)))
        };
        self.faults.run(get, Error::StoreAway).await
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Answer<()> {
        let (objects, keys) = (self.objects.clone(), keys.to_vec());
        let delete = async move {
            objects.lock().unwrap().retain(|key, _| !keys.contains(key));
            Ok(())
        };
        self.faults.run(delete, Error::StoreAway).await
    }

    async fn list(
        &self,
        after: Option<ObjectKey>,
        _age: Duration,
        keys_max: usize,
    ) -> Answer<Vec<ObjectKey>> {
        let current: Vec<ObjectKey> = self.objects.lock().unwrap().keys().copied().collect();
        let stale = std::mem::replace(&mut *self.listed.lock().unwrap(), current.clone());
        let is_stale = !self.faults.is_calm() && self.faults.with(|random| random.bool());
        let listed = if is_stale { stale } else { current };
        let keys = listed.into_iter().filter(move |key| Some(*key) > after).take(keys_max);
        let keys = keys.collect();
        self.faults.run(async move { Ok(keys) }, Error::StoreAway).await
    }
}

/// A serialisable database behind a network that loses answers.
#[derive(Clone)]
pub(crate) struct FaultySequencer {
    faults: Faults,
    pub(crate) memory: Memory,
}

impl FaultySequencer {
    pub(crate) fn new(faults: Faults, memory: Memory) -> Self {
        Self { faults, memory }
    }

    async fn run<T, F>(&self, request: impl FnOnce(Memory) -> F + Send) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        let request = request(self.memory.clone());
        let answer = self.faults.run(request, Error::SequencerAway);
        let late = || Err(Error::SequencerAway("the time is over".into()));
        timeout(Duration::from_secs(5), answer).await.unwrap_or_else(|_| late())
    }
}

impl Sequencer for FaultySequencer {
    async fn commit(&self, commit: &Commit) -> Answer<Vec<Outcome>> {
        let commit = commit.clone();
        self.run(|memory| async move { memory.commit(&commit).await }).await
    }

    async fn find(&self, wanted: &[Find]) -> Answer<Vec<Option<Found>>> {
        let wanted = wanted.to_vec();
        self.run(|memory| async move { memory.find(&wanted).await }).await
    }

    async fn find_time(&self, log: LogId, timestamp: i64) -> Answer<Option<Extent>> {
        self.run(move |memory| async move { memory.find_time(log, timestamp).await }).await
    }

    async fn find_latest(&self, log: LogId) -> Answer<Option<Extent>> {
        self.run(move |memory| async move { memory.find_latest(log).await }).await
    }

    async fn aborted(&self, log: LogId, from: i64, to: i64) -> Answer<Vec<AbortedTransaction>> {
        self.run(move |memory| async move { memory.aborted(log, from, to).await }).await
    }

    async fn producers(&self, log: LogId) -> Answer<Vec<LogProducer>> {
        self.run(move |memory| async move { memory.producers(log).await }).await
    }

    async fn expire_producers(
        &self,
        after: Option<ProducerPlace>,
        age: Duration,
        producers_max: i32,
    ) -> Answer<ExpiredProducers> {
        let request = move |memory: Memory| async move {
            memory.expire_producers(after, age, producers_max).await
        };
        self.run(request).await
    }

    async fn fence(&self, producer_id: i64, epoch: i16) -> Answer<Vec<LogId>> {
        self.run(move |memory| async move { memory.fence(producer_id, epoch).await }).await
    }

    async fn fences(&self, after: Option<i64>, producers_max: i64) -> Answer<Vec<i64>> {
        self.run(move |memory| async move { memory.fences(after, producers_max).await }).await
    }

    async fn remove_fences(&self, producers: &[i64]) -> Answer<()> {
        let producers = producers.to_vec();
        self.run(|memory| async move { memory.remove_fences(&producers).await }).await
    }

    async fn open_transactions(
        &self,
        after: Option<OpenTransaction>,
        transactions_max: i64,
    ) -> Answer<Vec<OpenTransaction>> {
        let request = move |memory: Memory| async move {
            memory.open_transactions(after, transactions_max).await
        };
        self.run(request).await
    }

    async fn sizes(&self, logs: &[LogId]) -> Answer<Vec<Option<i64>>> {
        let logs = logs.to_vec();
        self.run(|memory| async move { memory.sizes(&logs).await }).await
    }

    async fn trim(&self, log: LogId, before: i64) -> Answer<i64> {
        self.run(move |memory| async move { memory.trim(log, before).await }).await
    }

    async fn retain(&self, log: LogId, keep: Retention) -> Answer<i64> {
        self.run(move |memory| async move { memory.retain(log, keep).await }).await
    }

    async fn sweep(&self, extents_max: i32) -> Answer<bool> {
        self.run(move |memory| async move { memory.sweep(extents_max).await }).await
    }

    async fn unsorted(&self, objects_max: i64) -> Answer<Vec<(LogId, Extent)>> {
        self.run(move |memory| async move { memory.unsorted(objects_max).await }).await
    }

    async fn swap(&self, swap: &Swap) -> Answer<()> {
        let swap = swap.clone();
        self.run(|memory| async move { memory.swap(&swap).await }).await
    }

    async fn condemn(&self, keys: &[ObjectKey]) -> Answer<Vec<ObjectKey>> {
        let keys = keys.to_vec();
        self.run(|memory| async move { memory.condemn(&keys).await }).await
    }

    async fn dead(&self, keys_max: i64) -> Answer<Vec<ObjectKey>> {
        self.run(move |memory| async move { memory.dead(keys_max).await }).await
    }

    async fn forget(&self, keys: &[ObjectKey]) -> Answer<()> {
        let keys = keys.to_vec();
        self.run(|memory| async move { memory.forget(&keys).await }).await
    }

    async fn generation(&self) -> Answer<u32> {
        self.run(|memory| async move { memory.generation().await }).await
    }

    async fn begin_generation(&self, age: Duration) -> Answer<()> {
        self.run(move |memory| async move { memory.begin_generation(age).await }).await
    }

    async fn remove_keys(&self, keys_max: i32) -> Answer<bool> {
        self.run(move |memory| async move { memory.remove_keys(keys_max).await }).await
    }

    async fn create_topic(&self, topic: &Topic) -> Answer<()> {
        let topic = topic.clone();
        self.run(|memory| async move { memory.create_topic(&topic).await }).await
    }

    async fn grow_topic(&self, id: Uuid, partitions: i32) -> Answer<i32> {
        self.run(move |memory| async move { memory.grow_topic(id, partitions).await }).await
    }

    async fn delete_topic(&self, id: Uuid) -> Answer<()> {
        self.run(move |memory| async move { memory.delete_topic(id).await }).await
    }

    async fn topics(&self) -> Answer<Vec<Topic>> {
        self.run(|memory| async move { memory.topics().await }).await
    }

    async fn move_logs(&self, logs: &[LogId], leader: i32) -> Answer<i32> {
        let logs = logs.to_vec();
        self.run(move |memory| async move { memory.move_logs(&logs, leader).await }).await
    }
}
