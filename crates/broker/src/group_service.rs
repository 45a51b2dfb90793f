//! The group coordinator as the handlers use it: the state machine, its place in the journal, the
//! requests that wait in it and the timer that drives it.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use moldau_coordinator::{
    Effects, GroupOverrides, GroupRecord, Groups, Reply, Token, TopicOffsets, Topics,
};
use moldau_protocol::ErrorCode;
use moldau_storage::{AppendError, Lsn};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::clock::Clock;
use crate::config::DURABLE_WITHIN;
use crate::error::{Refusal, append_refusal};
use crate::fetch_session::lock;
use crate::metadata_record::MetadataRecord;
use crate::storage::Storage;
use crate::topic_config::shown;
use crate::troubles::Troubles;

/// Longest sleep of the timer, so that expired offsets are looked for now and then.
const TIMER_SLEEP_MAX: Duration = Duration::from_secs(60);

/// How long the timer waits before it tries a journal again that takes nothing.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Called with each group that was deleted, right behind its record in the journal. It must not
/// call the service.
pub(crate) type OnDeleted = Box<dyn Fn(&str) + Send>;

/// All groups of the broker.
pub(crate) struct GroupService {
    /// Guards the state machine, the requests parked in it, and the order in which its records
    /// enter the journal.
    inner: Mutex<Inner>,
    /// Told when the earliest deadline may have moved.
    rescheduled: Notify,
    clock: Clock,
}

struct Inner {
    groups: Groups,
    parked: HashMap<Token, oneshot::Sender<Parked>>,
    next_token: u64,
    /// Records that the journal refused, for want of space, with those behind them. Until they are
    /// written the state is ahead of the journal: it is neither shown nor changed, so these are the
    /// records of one step at most.
    unwritten: VecDeque<GroupRecord>,
    /// Position of the last record; a reply is delivered when this is durable.
    written: Option<Lsn>,
    on_deleted: OnDeleted,
}

/// The answer to a parked request.
struct Parked {
    reply: Reply,
    after: Option<Lsn>,
}

/// Acts on the deadlines of groups that have come.
pub(crate) type Tick<'a> = &'a dyn Fn(&dyn Topics) -> Ticked;

/// An error means that the records of the groups could not be written.
pub(crate) type Ticked = Result<(), Refusal>;

impl GroupService {
    /// Groups restored by replay, from `now_ms` on. What is kept of a group elsewhere goes with
    /// the record of its deletion, in `on_deleted` and in replay.
    pub(crate) fn start(mut groups: Groups, now_ms: i64, on_deleted: OnDeleted) -> Self {
        let effects = groups.recovered(now_ms);
        let inner = Inner {
            groups,
            parked: HashMap::new(),
            next_token: 0,
            unwritten: effects.records.into(),
            written: None,
            on_deleted,
        };
        Self { inner: Mutex::new(inner), rescheduled: Notify::new(), clock: Clock::start(now_ms) }
    }

    /// Hands a request to the state machine. The reply comes once it is decided and whatever it
    /// depends on is durable; an error means that the journal failed.
    pub(crate) fn submit(
        &self,
        storage: &Storage,
        request: impl FnOnce(&mut Groups, i64, Token) -> Effects,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ErrorCode>>>> {
        if let Err(refusal) = storage.coordinate() {
            return Box::pin(std::future::ready(Err(refusal.code)));
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut inner = lock(&self.inner);
            let token = Token(inner.next_token);
            inner.next_token += 1;
            // A sender that is dropped here tells the request that the journal takes nothing.
            if inner.catch_up(storage).is_ok() {
                inner.parked.insert(token, sender);
                let effects = request(&mut inner.groups, self.clock.now_ms(), token);
                if inner.settle(storage, effects).is_err() {
                    inner.parked.remove(&token);
                }
            }
        }
        self.rescheduled.notify_one();
        let storage = storage.clone();
        Box::pin(async move {
            // A dropped sender means that a record could not be written. This code, also for one
            // that takes too long, makes consumers try again; a storage error would make them give
            // up.
            let parked = receiver.await.map_err(|_dropped| ErrorCode::CoordinatorNotAvailable)?;
            if let Some(lsn) = parked.after {
                let durable = timeout(DURABLE_WITHIN, storage.wait_durable(lsn)).await;
                let durable = durable.is_ok_and(|durable| durable.is_ok());
                durable.then_some(()).ok_or(ErrorCode::CoordinatorNotAvailable)?;
            }
            Ok(parked.reply)
        })
    }

    /// Changes what a group overrides of the configuration; it holds once the returned position is
    /// durable.
    ///
    /// # Errors
    /// What `change` says, more groups than there may be, or a journal that takes nothing.
    pub(crate) fn configure(
        &self,
        storage: &Storage,
        group_id: &str,
        change: impl FnOnce(&mut GroupOverrides) -> Result<(), Refusal>,
    ) -> Result<Lsn, Refusal> {
        let mut inner = lock(&self.inner);
        inner.catch_up(storage)?;
        let mut overrides = inner.groups.overrides(group_id);
        change(&mut overrides)?;
        let Some(record) = inner.groups.configure(group_id, overrides) else {
            let message = "as many groups have a configuration as there may be groups";
            return Err(Refusal::new(ErrorCode::PolicyViolation, message));
        };
        inner.unwritten.push_back(record);
        inner.catch_up(storage)?;
        inner.written.ok_or_else(|| Refusal::new(ErrorCode::UnknownServerError, "nothing written"))
    }

    /// Makes an empty share group, unless it exists. `None` if it does; else it holds once the
    /// returned position is durable.
    ///
    /// # Errors
    /// A group of another type, more groups than there may be, or a journal that takes nothing.
    pub(crate) fn create_share(
        &self,
        storage: &Storage,
        group_id: &str,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut inner = lock(&self.inner);
        inner.catch_up(storage)?;
        let created = inner.groups.create_share(group_id);
        let created = created.map_err(|(code, message)| Refusal { code, message })?;
        let Some(record) = created else { return Ok(None) };
        inner.unwritten.push_back(record);
        inner.catch_up(storage)?;
        Ok(inner.written)
    }

    /// Applies a record that the owner of the shared log has written.
    pub(crate) fn replay(&self, record: GroupRecord) {
        lock(&self.inner).groups.replay(record);
    }

    /// Forgets the offsets of a topic that the owner of the shared log has deleted.
    pub(crate) fn replay_deleted(&self, topic: &str) {
        lock(&self.inner).groups.topic_deleted(topic);
    }

    /// Takes other groups in place of these. Requests that wait get no answer from these: clients
    /// look for the coordinator again.
    pub(crate) fn replace(&self, groups: Groups) {
        let mut inner = lock(&self.inner);
        inner.groups = groups;
        inner.parked.clear();
        inner.unwritten.clear();
        inner.written = None;
    }

    /// This broker is about to coordinate the groups: sessions of their members start anew. The
    /// timer is told by [`GroupService::awake`].
    pub(crate) fn take_over(&self) {
        let mut inner = lock(&self.inner);
        let effects = inner.groups.recovered(self.clock.now_ms());
        inner.unwritten.extend(effects.records);
    }

    /// Lets the timer look again.
    pub(crate) fn awake(&self) {
        self.rescheduled.notify_one();
    }

    /// Reads the state without changing it.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&Groups) -> T) -> T {
        view(&lock(&self.inner).groups)
    }

    /// Position of the last record that is part of what [`GroupService::view`] shows.
    ///
    /// # Errors
    /// The state is ahead of a journal that takes nothing, and must not be shown.
    pub(crate) fn written(&self, storage: &Storage) -> Result<Option<Lsn>, Refusal> {
        let mut inner = lock(&self.inner);
        inner.catch_up(storage)?;
        Ok(inner.written)
    }

    /// Hands over the records that rebuild all groups, which do not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let inner = lock(&self.inner);
        take(inner.groups.snapshot().map(|record| metadata_record(&record)).collect())
    }

    /// Commits the offsets of a transaction: `append` writes the records beside others, all of them
    /// or none.
    ///
    /// # Errors
    /// Those of `append`, and a journal that takes nothing.
    pub(crate) fn commit_transaction(
        &self,
        storage: &Storage,
        offsets: Vec<(String, TopicOffsets)>,
        append: impl FnOnce(Vec<MetadataRecord>) -> Result<Lsn, Refusal>,
    ) -> Result<Lsn, Refusal> {
        let mut inner = lock(&self.inner);
        inner.catch_up(storage)?;
        let records = Groups::transactional_records(offsets);
        let lsn = append(records.iter().map(metadata_record).collect())?;
        let now_ms = self.clock.now_ms();
        for record in records {
            inner.groups.transaction_committed(now_ms, record);
        }
        inner.written = Some(lsn);
        Ok(lsn)
    }

    /// Forgets the offsets that groups committed for a topic, if `append` appends the record of its
    /// deletion. Replay forgets them at that record, so no commit enters the journal in between.
    ///
    /// # Errors
    /// A journal that takes nothing; nothing is forgotten then.
    pub(crate) fn topic_deleted(
        &self,
        storage: &Storage,
        topic: &str,
        append: impl FnOnce() -> Result<Lsn, Refusal>,
    ) -> Result<Lsn, Refusal> {
        let mut inner = lock(&self.inner);
        inner.catch_up(storage)?;
        let lsn = append()?;
        inner.groups.topic_deleted(topic);
        inner.written = Some(lsn);
        Ok(lsn)
    }

    /// Lets time pass for the groups, for as long as the returned future is polled. `with_topics`
    /// calls what it gets with the topics as they are then.
    pub(crate) async fn run_timer(
        &self,
        storage: &Storage,
        with_topics: impl Fn(Tick<'_>) -> Ticked,
    ) {
        let troubles = Troubles::default();
        loop {
            let deadline_ms = match storage.decides() {
                true => lock(&self.inner).groups.next_deadline(),
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
            let ticked = with_topics(&|topics| self.tick(storage, topics));
            if troubles.note("write group records", ticked).is_err() {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    fn tick(&self, storage: &Storage, topics: &dyn Topics) -> Ticked {
        let mut inner = lock(&self.inner);
        inner.catch_up(storage)?;
        let effects = inner.groups.tick(self.clock.now_ms(), topics);
        inner.settle(storage, effects)
    }
}

impl Inner {
    /// Writes the records, then answers. If a record cannot be written, none of the replies is
    /// given: waiting requests get the error of the journal instead.
    fn settle(&mut self, storage: &Storage, effects: Effects) -> Result<(), Refusal> {
        self.unwritten.extend(effects.records);
        let written = self.catch_up(storage);
        for (token, reply) in effects.replies {
            let sender = self.parked.remove(&token);
            if let (Some(sender), Ok(())) = (sender, &written) {
                // The client of a dropped receiver has gone; its reply has no reader.
                drop(sender.send(Parked { reply, after: self.written }));
            }
        }
        written
    }

    /// Writes what is not written yet. A record that the journal can never take is left out: all
    /// groups would wait for it for ever.
    fn catch_up(&mut self, storage: &Storage) -> Result<(), Refusal> {
        storage.coordinate()?;
        let mut caught_up = Ok(());
        while let Some(record) = self.unwritten.front() {
            match storage.append_metadata(&metadata_record(record).encode()) {
                Ok(lsn) => {
                    self.written = Some(lsn);
                    if let GroupRecord::GroupDeleted { group_id } = record {
                        (self.on_deleted)(group_id);
                    }
                }
                Err(error @ AppendError::TooLarge { .. }) => {
                    let group = shown(record.group_id());
                    tracing::error!(group, %error, "dropped a record of a group");
                    caught_up = Err(append_refusal(&error));
                }
                Err(error) => return Err(append_refusal(&error)),
            }
            self.unwritten.pop_front();
        }
        caught_up
    }
}

fn metadata_record(record: &GroupRecord) -> MetadataRecord {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    MetadataRecord::Group(bytes)
}
