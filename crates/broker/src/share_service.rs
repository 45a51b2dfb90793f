//! Deliveries of share groups as the handlers use them: the state machine, its place in the
//! journal, who waits for records that become available, and the timer that ends locks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_coordinator::ShareSettings;
use moldau_coordinator::share_partitions::{
    Acknowledgement, AcquireLimits, Acquired, DeadLetters, DeliverySettings, Fetched, ShareKey,
    SharePartition, ShareRecord, Shares,
};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_storage::{Lsn, Waiter};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::error::{Refusal, append_refusal};
use crate::fetch_session::lock;
use crate::group_service::GroupService;
use crate::metadata_record::MetadataRecord;
use crate::storage::Storage;
use crate::troubles::Troubles;

/// Longest sleep of the timer while no record is held.
const TIMER_SLEEP_MAX: Duration = Duration::from_secs(60);

/// How long the timer waits before it tries a journal again that takes nothing.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The share partitions of the broker.
pub(crate) struct ShareService {
    /// Guards the state machine, who waits for it, and the order in which its records enter the
    /// journal. Taken behind the lock of groups.
    inner: Mutex<Inner>,
    /// Told when the earliest deadline may have moved.
    rescheduled: Notify,
    /// Told when records may wait for dead-letter records.
    given_up: Notify,
    clock: Clock,
}

struct Inner {
    shares: Shares,
    waiting: HashMap<ShareKey, Vec<Arc<Waiter>>>,
}

/// What deliveries need of a group's settings.
pub(crate) fn delivery_settings(settings: &ShareSettings) -> DeliverySettings {
    DeliverySettings {
        lock_duration_ms: i64::from(settings.record_lock_duration_ms),
        deliveries_max: i16::try_from(settings.delivery_count_limit).unwrap_or(i16::MAX),
        locks_max: i64::from(settings.partition_max_record_locks),
        has_dead_letters: settings.has_dead_letters,
    }
}

impl ShareService {
    /// Share partitions restored by replay, from `now_ms` on.
    pub(crate) fn start(shares: Shares, now_ms: i64) -> Self {
        let inner = Inner { shares, waiting: HashMap::new() };
        Self {
            inner: Mutex::new(inner),
            rescheduled: Notify::new(),
            given_up: Notify::new(),
            clock: Clock::start(now_ms),
        }
    }

    /// Applies a record that the owner of the shared log has written.
    pub(crate) fn replay(&self, record: ShareRecord) {
        lock(&self.inner).shares.apply(record);
    }

    /// Takes other share partitions in place of these, in which no member holds records. Fetches
    /// that wait look again.
    pub(crate) fn replace(&self, shares: Shares) {
        let mut inner = lock(&self.inner);
        inner.shares = shares;
        inner.waiting.values().flatten().for_each(|waiter| waiter.wake());
    }

    /// This broker delivers records from here on.
    pub(crate) fn awake(&self) {
        self.rescheduled.notify_one();
        self.given_up.notify_one();
    }

    /// Reads the state without changing it.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&Shares) -> T) -> T {
        view(&lock(&self.inner).shares)
    }

    /// The offset of a partition to read for the next delivery, where its log begins at
    /// `log_start`. `Ok(None)` while as many records as there may be are in flight, and an error
    /// where the group has not read the partition yet.
    pub(crate) fn next_offset(
        &self,
        key: &ShareKey,
        log_start: i64,
        settings: &DeliverySettings,
    ) -> Result<Option<i64>, NotPlaced> {
        let mut inner = lock(&self.inner);
        let start = inner.shares.get(key).ok_or(NotPlaced)?.start();
        if start < log_start {
            inner.shares.log_starts_at(key, log_start);
        }
        inner.shares.get(key).map(|partition| partition.next_offset(settings)).ok_or(NotPlaced)
    }

    /// Makes a group begin a partition at an offset, unless it has begun. It holds once the
    /// returned position is durable.
    ///
    /// # Errors
    /// `GROUP_ID_NOT_FOUND`, as many partitions as there may be, or a journal that takes nothing.
    pub(crate) fn begin(
        &self,
        storage: &Storage,
        groups: &GroupService,
        key: &ShareKey,
        start: i64,
    ) -> Result<Option<Lsn>, ErrorCode> {
        groups.view(|groups| {
            let state = groups.share_state(&key.group_id).map_err(|(code, _)| code)?;
            state.ok_or(ErrorCode::GroupIdNotFound)?;
            let mut inner = lock(&self.inner);
            if inner.shares.get(key).is_some() {
                return Ok(None);
            }
            let placed = inner.shares.place(key.clone(), start, true);
            let placed = placed.ok_or(ErrorCode::PolicyViolation)?;
            inner.write(storage, placed).map(Some).map_err(|refusal| refusal.code)
        })
    }

    /// Makes a group that has no members begin a partition at another offset.
    ///
    /// # Errors
    /// As many partitions as there may be, or a journal that takes nothing.
    pub(crate) fn alter(
        &self,
        storage: &Storage,
        key: ShareKey,
        start: i64,
    ) -> Result<Lsn, Refusal> {
        let mut inner = lock(&self.inner);
        let placed = inner.shares.place(key.clone(), start, false).ok_or_else(|| {
            let message = "share groups have as many partitions as they may have";
            Refusal::new(ErrorCode::PolicyViolation, message)
        })?;
        let written = inner.write(storage, placed)?;
        inner.wake(&key);
        Ok(written)
    }

    /// Forgets what a group knows of a topic. `None` where that is nothing.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn remove(
        &self,
        storage: &Storage,
        group_id: &str,
        topic_id: Uuid,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut inner = lock(&self.inner);
        let is_known = inner.shares.of_group(group_id).any(|(key, _)| key.topic_id == topic_id);
        let (group_id, topic_id) = (group_id.into(), Some(topic_id));
        let removed = ShareRecord::Removed { group_id, topic_id };
        is_known.then(|| inner.write(storage, removed)).transpose()
    }

    /// A group is gone, which its own record in the journal says.
    pub(crate) fn group_deleted(&self, group_id: &str) {
        let removed = ShareRecord::Removed { group_id: group_id.into(), topic_id: None };
        lock(&self.inner).shares.apply(removed);
    }

    /// A topic is gone, which its own record in the journal says.
    pub(crate) fn topic_deleted(&self, topic_id: Uuid) {
        lock(&self.inner).shares.retain_topics(|id| id != topic_id);
    }

    /// Gives a member records of what was read of a partition; none if another broker delivers.
    pub(crate) fn acquire(
        &self,
        storage: &Storage,
        key: &ShareKey,
        member: &Arc<str>,
        fetched: &Fetched<'_>,
        limits: AcquireLimits,
        settings: &DeliverySettings,
    ) -> Vec<Acquired> {
        let mut inner = lock(&self.inner);
        if !storage.decides() {
            return Vec::new();
        }
        let now_ms = self.clock.now_ms();
        let before = inner.shares.next_deadline();
        let acquired = inner.shares.acquire(now_ms, key, member, fetched, limits, settings);
        if inner.shares.next_deadline() != before {
            self.rescheduled.notify_one();
        }
        self.tell_given_up(&inner);
        acquired
    }

    /// Takes what a member says of records that it holds. It holds once the returned position is
    /// durable.
    ///
    /// # Errors
    /// Those of [`Shares::acknowledge`], and a journal that takes nothing.
    pub(crate) fn acknowledge(
        &self,
        storage: &Storage,
        key: &ShareKey,
        member: &str,
        acknowledgements: &[Acknowledgement],
        settings: &DeliverySettings,
    ) -> Result<Option<Lsn>, ErrorCode> {
        let mut inner = lock(&self.inner);
        let decided = inner.shares.acknowledge(key, member, acknowledgements, settings)?;
        let changed = decided.record.map(|record| inner.change(storage, key, record, settings));
        let written = changed.transpose().map_err(|refusal| refusal.code)?;
        inner.shares.renew(self.clock.now_ms(), key, &decided.renewed, settings);
        self.tell_given_up(&inner);
        Ok(written)
    }

    /// Records that wait for dead-letter records, of a partition behind this one or the first;
    /// waits until there are some, and until this broker delivers.
    pub(crate) async fn given_up(
        &self,
        storage: &Storage,
        after: Option<&ShareKey>,
    ) -> (ShareKey, DeadLetters) {
        loop {
            if storage.decides()
                && let Some(found) = lock(&self.inner).shares.next_burial(after)
            {
                return found;
            }
            self.given_up.notified().await;
        }
    }

    /// Archives records that have their dead-letter records, or get none. `None` where the group
    /// forgot them meanwhile.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn bury(
        &self,
        storage: &Storage,
        key: &ShareKey,
        letters: &DeadLetters,
        settings: &DeliverySettings,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut inner = lock(&self.inner);
        let buried = inner.shares.buried(key, letters);
        buried.map(|record| inner.change(storage, key, record, settings)).transpose()
    }

    /// Takes back the records of a partition that a member holds.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn release(
        &self,
        storage: &Storage,
        key: &ShareKey,
        member: &str,
        settings: &DeliverySettings,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut inner = lock(&self.inner);
        let released = inner.shares.release(key, member, settings);
        released.map(|record| inner.change(storage, key, record, settings)).transpose()
    }

    /// Wakes the waiter when records of these partitions become available that were delivered, for
    /// as long as the watch lives.
    pub(crate) fn watch(self: &Arc<Self>, keys: Vec<ShareKey>, waiter: &Arc<Waiter>) -> ShareWatch {
        let mut inner = lock(&self.inner);
        for key in &keys {
            inner.waiting.entry(key.clone()).or_default().push(Arc::clone(waiter));
        }
        ShareWatch { service: Arc::clone(self), keys, waiter: Arc::clone(waiter) }
    }

    /// Hands over the records that rebuild all share partitions, which do not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let inner = lock(&self.inner);
        take(inner.shares.snapshot().map(|record| metadata_record(&record)).collect())
    }

    /// Ends locks, for as long as the returned future is polled.
    pub(crate) async fn run_timer(&self, storage: &Storage, groups: &GroupService) {
        let troubles = Troubles::default();
        loop {
            let deadline_ms = match storage.decides() {
                true => self.view(Shares::next_deadline).unwrap_or(i64::MAX),
                false => i64::MAX,
            };
            let left_ms = deadline_ms.saturating_sub(self.clock.now_ms());
            let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
            tokio::select! {
                () = tokio::time::sleep(left.min(TIMER_SLEEP_MAX)) => {}
                () = self.rescheduled.notified() => continue,
            }
            if !storage.decides() {
                continue;
            }
            let ticked = self.tick(storage, groups).await;
            if troubles.note("end locks of share groups", ticked).is_err() {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    fn tell_given_up(&self, inner: &Inner) {
        if inner.shares.has_burials() {
            self.given_up.notify_one();
        }
    }

    /// Ends the locks that are due, one partition after the other.
    async fn tick(&self, storage: &Storage, groups: &GroupService) -> Result<(), Refusal> {
        loop {
            let now_ms = self.clock.now_ms();
            let Some(key) = self.view(|shares| shares.due(now_ms)) else { return Ok(()) };
            let settings = groups.view(|groups| groups.share_settings(&key.group_id));
            let settings = delivery_settings(&settings);
            {
                let mut inner = lock(&self.inner);
                if let Some(record) = inner.shares.expire(now_ms, &key, &settings) {
                    inner.change(storage, &key, record, &settings)?;
                }
                inner.shares.checked(&key);
                self.tell_given_up(&inner);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// The group has not read the partition yet.
#[derive(Debug)]
pub(crate) struct NotPlaced;

impl Inner {
    fn write(&mut self, storage: &Storage, record: ShareRecord) -> Result<Lsn, Refusal> {
        let bytes = metadata_record(&record).encode();
        let written = storage.append_metadata(&bytes).map_err(|error| append_refusal(&error))?;
        self.shares.apply(record);
        Ok(written)
    }

    /// Writes a change, and wakes who waits if there is more to deliver.
    fn change(
        &mut self,
        storage: &Storage,
        key: &ShareKey,
        record: ShareRecord,
        settings: &DeliverySettings,
    ) -> Result<Lsn, Refusal> {
        let next = |shares: &Shares| {
            let next = |partition: &SharePartition| partition.next_offset(settings);
            shares.get(key).and_then(next).unwrap_or(i64::MAX)
        };
        let before = next(&self.shares);
        let written = self.write(storage, record)?;
        if next(&self.shares) < before {
            self.wake(key);
        }
        Ok(written)
    }

    fn wake(&self, key: &ShareKey) {
        self.waiting.get(key).into_iter().flatten().for_each(|waiter| waiter.wake());
    }
}

/// Keeps a waiter registered with share partitions until dropped.
pub(crate) struct ShareWatch {
    service: Arc<ShareService>,
    keys: Vec<ShareKey>,
    waiter: Arc<Waiter>,
}

impl Drop for ShareWatch {
    fn drop(&mut self) {
        let mut inner = lock(&self.service.inner);
        for key in &self.keys {
            let Some(waiting) = inner.waiting.get_mut(key) else { continue };
            waiting.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if waiting.is_empty() {
                inner.waiting.remove(key);
            }
        }
    }
}

fn metadata_record(record: &ShareRecord) -> MetadataRecord {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    MetadataRecord::Share(bytes)
}
