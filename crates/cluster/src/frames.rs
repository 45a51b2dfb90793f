//! One ordered log of the cluster's own state: topics, groups, offsets, transactions and the like.
//!
//! One broker at a time owns the log and appends to it; the others follow it, so each of them can
//! go on where the owner ends. Ownership is a session of the database and an epoch. The session
//! says when somebody else may try: it ends with the process, with the connection, or once the
//! owner is silent. Only the epoch decides what is appended, so an owner that was paused, or that
//! does not know of its successor, appends nothing more.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::watch;
use uuid::Uuid;

use crate::sequencer::Answer;

/// A frame of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its place; frames are dense from 0.
    pub sequence: i64,
    /// What the owner wrote.
    pub bytes: Bytes,
}

/// Who owns the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its broker id.
    pub broker: i32,
    /// Greater than that of each owner before.
    pub epoch: i64,
    /// Where other brokers reach it.
    pub address: String,
}

/// A broker as clients are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRow {
    /// Broker id.
    pub id: i32,
    /// Host name or address for clients.
    pub host: String,
    /// Port for clients.
    pub port: u16,
    /// Rack or availability zone.
    pub rack: Option<String>,
}

/// The log belongs to this broker, until the session ends or this is dropped.
#[derive(Debug)]
pub struct Ownership {
    /// Epoch of the appends.
    pub epoch: i64,
    /// Sequence of the first append.
    pub next_sequence: i64,
    session: Session,
}

/// Clients are told of this broker, until the session ends or this is dropped.
#[derive(Debug)]
pub struct Registration {
    session: Session,
}

/// What a session holds is free again once it ends.
pub(crate) struct Session {
    /// True once it has ended; its sender is dropped with what watches over it.
    ended: watch::Receiver<bool>,
    /// Ends the session when dropped.
    _held: Box<dyn Any + Send + Sync>,
}

/// What a request to [`Frames`] gives.
pub type Asked<'a, T> = Pin<Box<dyn Future<Output = Answer<T>> + Send + 'a>>;

/// The log of frames, and the brokers that are alive. Every request is atomic, and durable once
/// answered. Any of them fails with [`Error::SequencerAway`](crate::Error::SequencerAway) if there
/// is no answer; it may have taken effect then.
///
/// Nobody hears of an append by itself: who appended or claimed calls
/// [`Wakes::announce_frames`](crate::Wakes::announce_frames), who follows waits for
/// [`Wakes::frames`](crate::Wakes::frames) or a poll interval.
pub trait Frames: Send + Sync + 'static {
    /// Tries to become the owner. `None` while the session of another owner lasts, also if that is
    /// an ownership of the same broker.
    fn claim<'a>(&'a self, broker: i32, address: &'a str) -> Asked<'a, Option<Ownership>>;

    /// Appends frames from exactly `first_sequence` on. Frames of this epoch that are in the log
    /// already are left as they are, so an append without an answer is asked again. No frames
    /// append nothing, and show whether the epoch is the newest.
    ///
    /// # Errors
    /// [`Error::Fenced`](crate::Error::Fenced): another epoch began; what was asked before may be
    /// in the log. [`Error::OutOfSequence`](crate::Error::OutOfSequence): frames between are
    /// missing, or the log has others in this place.
    fn append(&self, epoch: i64, first_sequence: i64, frames: Vec<Bytes>) -> Asked<'_, ()>;

    /// Frames from a sequence on: as many as `bytes_max` allows, but at least one if there is one.
    ///
    /// # Errors
    /// [`Error::FramesReplaced`](crate::Error::FramesReplaced): a snapshot took their place.
    fn read(&self, from: i64, bytes_max: usize) -> Asked<'_, Vec<Frame>>;

    /// The owner, while its session lasts. A successor that has not begun its epoch yet is shown as
    /// the owner before.
    fn owner(&self) -> Asked<'_, Option<Owner>>;

    /// Replaces the frames below `sequence` by a snapshot of what they lead to. Does nothing if
    /// there is a later snapshot.
    ///
    /// # Errors
    /// [`Error::Fenced`](crate::Error::Fenced);
    /// [`Error::OutOfSequence`](crate::Error::OutOfSequence) beyond the end of the log.
    fn put_snapshot(&self, epoch: i64, sequence: i64, bytes: Bytes) -> Asked<'_, ()>;

    /// The newest snapshot, and the sequence of the first frame behind it.
    fn snapshot(&self) -> Asked<'_, Option<(i64, Bytes)>>;

    /// Id of the cluster, which is that of its database.
    fn cluster_id(&self) -> Asked<'_, Uuid>;

    /// Shows a broker to the others and to clients.
    ///
    /// # Errors
    /// [`Error::BrokerIdTaken`](crate::Error::BrokerIdTaken) while a session of this id lasts,
    /// which may be one that the same broker lost.
    fn register(&self, broker: BrokerRow) -> Asked<'_, Registration>;

    /// The brokers whose sessions last, in order of their ids.
    fn brokers(&self) -> Asked<'_, Vec<BrokerRow>>;
}

impl Ownership {
    pub(crate) fn of(epoch: i64, next_sequence: i64, session: Session) -> Self {
        Self { epoch, next_sequence, session }
    }

    /// Waits until the session has ended: then another broker may own the log.
    pub async fn lost(&self) {
        self.session.ended().await;
    }
}

impl Registration {
    pub(crate) fn of(session: Session) -> Self {
        Self { session }
    }

    /// Waits until the session has ended: then clients are not told of the broker.
    pub async fn lost(&self) {
        self.session.ended().await;
    }
}

impl Session {
    pub(crate) fn of(ended: watch::Receiver<bool>, held: Box<dyn Any + Send + Sync>) -> Self {
        Self { ended, _held: held }
    }

    async fn ended(&self) {
        // A dropped sender says the same.
        drop(self.ended.clone().wait_for(|ended| *ended).await);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("ended", &*self.ended.borrow()).finish()
    }
}
