//! The log of frames in memory.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use uuid::Uuid;

use crate::frames::{Asked, BrokerRow, Frame, Frames, Owner, Ownership, Registration, Session};
use crate::{Answer, Error};

use super::Memory;
use super::frame_state::FrameState;
use super::requests::Row;

/// The frames, their owner, and the brokers.
#[derive(Debug, Default)]
pub(super) struct FrameLog {
    /// Drawn when it is asked for.
    cluster_id: Option<Uuid>,
    /// The last owner.
    owner: Option<Owner>,
    pub(super) state: FrameState,
    /// In the order of their arrival.
    pub(super) requests: Vec<Row>,
    /// Counts sessions.
    sessions: u64,
    /// Session of the owner.
    owning: Option<Held>,
    /// Sessions of owners before, which they still take for theirs.
    paused: Vec<Held>,
    registered: BTreeMap<i32, (BrokerRow, Held)>,
}

#[derive(Debug)]
struct Held {
    session: u64,
    broker: i32,
    ending: watch::Sender<bool>,
}

/// Ends a session when dropped.
struct Holder {
    log: Arc<Mutex<FrameLog>>,
    session: u64,
}

impl Drop for Holder {
    fn drop(&mut self) {
        lock(&self.log).end(|held| held.session == self.session);
    }
}

impl Memory {
    /// Ends the sessions of a broker, as a network that is cut does.
    pub fn end_sessions(&self, broker: i32) {
        lock(&self.frames).end(|held| held.broker == broker);
    }

    /// Another owner takes over from one that is paused, and so does not learn of it.
    pub fn take_over(&self, broker: i32, address: &str) -> Ownership {
        let mut log = lock(&self.frames);
        let before = log.owning.take();
        log.paused.extend(before);
        let (epoch, next_sequence) = log.state.begin_epoch();
        log.owner = Some(Owner { broker, epoch, address: address.to_owned() });
        let (held, session) = log.hold(broker, &self.frames);
        log.owning = Some(held);
        Ownership::of(epoch, next_sequence, session)
    }

    /// Another process is registered by the id of a broker whose session ends.
    pub fn take_id(&self, broker: BrokerRow) -> Registration {
        let mut log = lock(&self.frames);
        if let Some((_, held)) = log.registered.remove(&broker.id) {
            held.ending.send_replace(true);
        }
        let (held, session) = log.hold(broker.id, &self.frames);
        log.registered.insert(broker.id, (broker, held));
        Registration::of(session)
    }

    pub(super) fn with_log<'a, T: Send + 'a>(
        &self,
        ask: impl FnOnce(&mut FrameLog) -> Answer<T>,
    ) -> Asked<'a, T> {
        let answer = ask(&mut lock(&self.frames));
        Box::pin(ready(answer))
    }
}

impl Frames for Memory {
    fn claim<'a>(&'a self, broker: i32, address: &'a str) -> Asked<'a, Option<Ownership>> {
        self.with_log(|log| {
            if log.owning.is_some() {
                return Ok(None);
            }
            let (epoch, next_sequence) = log.state.begin_epoch();
            log.owner = Some(Owner { broker, epoch, address: address.to_owned() });
            let (held, session) = log.hold(broker, &self.frames);
            log.owning = Some(held);
            Ok(Some(Ownership::of(epoch, next_sequence, session)))
        })
    }

    fn append(&self, epoch: i64, first_sequence: i64, frames: Vec<Bytes>) -> Asked<'_, ()> {
        self.with_log(|log| log.state.append(epoch, first_sequence, frames))
    }

    fn read(&self, from: i64, bytes_max: usize) -> Asked<'_, Vec<Frame>> {
        self.with_log(|log| log.state.read(from, bytes_max))
    }

    fn owner(&self) -> Asked<'_, Option<Owner>> {
        self.with_log(|log| Ok(log.owner.clone().filter(|_| log.owning.is_some())))
    }

    fn put_snapshot(&self, epoch: i64, sequence: i64, bytes: Bytes) -> Asked<'_, ()> {
        self.with_log(|log| log.state.put_snapshot(epoch, sequence, bytes))
    }

    fn snapshot(&self) -> Asked<'_, Option<(i64, Bytes)>> {
        self.with_log(|log| Ok(log.state.snapshot()))
    }

    fn cluster_id(&self) -> Asked<'_, Uuid> {
        self.with_log(|log| Ok(*log.cluster_id.get_or_insert_with(Uuid::new_v4)))
    }

    fn register(&self, broker: BrokerRow) -> Asked<'_, Registration> {
        self.with_log(|log| {
            if log.registered.contains_key(&broker.id) {
                return Err(Error::BrokerIdTaken(broker.id));
            }
            let (held, session) = log.hold(broker.id, &self.frames);
            log.registered.insert(broker.id, (broker, held));
            Ok(Registration::of(session))
        })
    }

    fn brokers(&self) -> Asked<'_, Vec<BrokerRow>> {
        self.with_log(|log| Ok(log.registered.values().map(|(broker, _)| broker.clone()).collect()))
    }
}

impl FrameLog {
    fn hold(&mut self, broker: i32, log: &Arc<Mutex<Self>>) -> (Held, Session) {
        self.sessions += 1;
        let session = self.sessions;
        let (ending, ended) = watch::channel(false);
        let holder = Holder { log: Arc::clone(log), session };
        (Held { session, broker, ending }, Session::of(ended, Box::new(holder)))
    }

    fn end(&mut self, is_over: impl Fn(&Held) -> bool) {
        if let Some(held) = self.owning.take_if(|held| is_over(held)) {
            held.ending.send_replace(true);
        }
        self.registered.retain(|_, (_, held)| {
            let is_over = is_over(held);
            if is_over {
                held.ending.send_replace(true);
            }
            !is_over
        });
    }
}

fn lock(log: &Mutex<FrameLog>) -> MutexGuard<'_, FrameLog> {
    // A request that panicked is a failed test.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
