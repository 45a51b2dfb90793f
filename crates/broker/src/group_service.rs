//! The group coordinator as the handlers use it: the state machine, its place in the journal, the
//! requests that wait in it and the timer that drives it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use moldau_coordinator::{Effects, GroupRecord, Groups, Reply, Token};
use moldau_protocol::ErrorCode;
use moldau_storage::{Lsn, Storage};
use tokio::sync::{Notify, oneshot};

use crate::error::{Refusal, append_refusal};
use crate::fetch_session::lock;
use crate::metadata_record::MetadataRecord;

/// Longest sleep of the timer, so that expired offsets are looked for now and then.
const TIMER_SLEEP_MAX: Duration = Duration::from_secs(60);

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
    /// Position of the last record; a reply is delivered when this is durable.
    written: Option<Lsn>,
}

/// What a parked request is told.
struct Parked {
    reply: Reply,
    after: Option<Lsn>,
}

/// Milliseconds since the epoch that never run backwards while the process lives: sessions must
/// not expire because somebody set the clock.
struct Clock {
    started: Instant,
    started_ms: i64,
}

impl Clock {
    fn now_ms(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.started_ms.saturating_add(elapsed)
    }
}

impl GroupService {
    /// Groups restored by replay, from `now_ms` on.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn start(
        mut groups: Groups,
        storage: &Storage,
        now_ms: i64,
    ) -> Result<Self, Refusal> {
        let effects = groups.recovered(now_ms);
        let mut inner = Inner { groups, parked: HashMap::new(), next_token: 0, written: None };
        inner.settle(storage, effects)?;
        Ok(Self {
            inner: Mutex::new(inner),
            rescheduled: Notify::new(),
            clock: Clock { started: Instant::now(), started_ms: now_ms },
        })
    }

    /// Hands a request to the state machine. The reply comes once it is decided and whatever it
    /// depends on is durable; an error means that the journal failed.
    pub(crate) fn submit(
        &self,
        storage: &Storage,
        request: impl FnOnce(&mut Groups, i64, Token) -> Effects,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ErrorCode>>>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut inner = lock(&self.inner);
            let token = Token(inner.next_token);
            inner.next_token += 1;
            inner.parked.insert(token, sender);
            let effects = request(&mut inner.groups, self.clock.now_ms(), token);
            if inner.settle(storage, effects).is_err() {
                inner.parked.remove(&token);
            }
        }
        self.rescheduled.notify_one();
        let storage = storage.clone();
        Box::pin(async move {
            // A dropped sender means that a record could not be written. This code makes consumers
            // try again; a storage error would make them give up.
            let parked = receiver.await.map_err(|_dropped| ErrorCode::CoordinatorNotAvailable)?;
            if let Some(lsn) = parked.after {
                let durable = storage.wait_durable(lsn).await;
                durable.map_err(|_poisoned| ErrorCode::CoordinatorNotAvailable)?;
            }
            Ok(parked.reply)
        })
    }

    /// Reads the state without changing it.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&Groups) -> T) -> T {
        view(&lock(&self.inner).groups)
    }

    /// Position of the last record that is part of what [`GroupService::view`] shows.
    pub(crate) fn written(&self) -> Option<Lsn> {
        lock(&self.inner).written
    }

    /// Hands over the records that rebuild all groups, which do not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let inner = lock(&self.inner);
        take(inner.groups.snapshot().map(|record| metadata_record(&record)).collect())
    }

    /// Forgets the offsets that groups committed for a deleted topic.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn topic_deleted(
        &self,
        storage: &Storage,
        topic: &str,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut inner = lock(&self.inner);
        let effects = inner.groups.topic_deleted(self.clock.now_ms(), topic);
        inner.settle(storage, effects)?;
        Ok(inner.written)
    }

    /// Lets time pass for the groups, for as long as the returned future is polled.
    pub(crate) async fn run_timer(&self, storage: &Storage) {
        loop {
            let deadline_ms = lock(&self.inner).groups.next_deadline();
            let left_ms = deadline_ms.saturating_sub(self.clock.now_ms());
            let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
            tokio::select! {
                () = tokio::time::sleep(left.min(TIMER_SLEEP_MAX)) => {}
                () = self.rescheduled.notified() => continue,
            }
            let mut inner = lock(&self.inner);
            let effects = inner.groups.tick(self.clock.now_ms());
            if let Err(refusal) = inner.settle(storage, effects) {
                tracing::error!(problem = refusal.message, "group records cannot be written");
            }
        }
    }
}

impl Inner {
    /// Writes the records, then answers. If a record cannot be written, none of the replies is
    /// given: those who wait for one are told of the journal instead.
    fn settle(&mut self, storage: &Storage, effects: Effects) -> Result<(), Refusal> {
        let written = self.write(storage, &effects.records);
        for (token, reply) in effects.replies {
            let sender = self.parked.remove(&token);
            if let (Some(sender), Ok(())) = (sender, &written) {
                // The client of a dropped receiver has gone; its reply has no reader.
                drop(sender.send(Parked { reply, after: self.written }));
            }
        }
        written
    }

    fn write(&mut self, storage: &Storage, records: &[GroupRecord]) -> Result<(), Refusal> {
        for record in records {
            let record = metadata_record(record).encode();
            let appended = storage.append_metadata(&record);
            self.written = Some(appended.map_err(|error| append_refusal(&error))?);
        }
        Ok(())
    }
}

fn metadata_record(record: &GroupRecord) -> MetadataRecord {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    MetadataRecord::Group(bytes)
}
