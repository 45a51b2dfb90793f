//! A broker as one of a cluster: it follows the log of metadata, and owns it where no other does.
//!
//! All brokers replay the frames of the owner, so that each of them can go on where it ends. The
//! owner is controller and coordinator. Its state is ahead of the log by what it has submitted. If
//! its session ends, it drops that state, and reads the log again.
//!
//! Topics are made known to the sequencer before the frame that creates them is appended, and
//! deleted there after the frame that deletes them. What an owner leaves half done, the next one
//! ends.

mod topics;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    Answer, BrokerRow, Error, Frames, Ownership, Registration, Sequencer, Store, Wakes,
};
use moldau_protocol::Uuid;
use moldau_threads::Supervisor;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::clock::wall_clock_ms;
use crate::config::Config;
use crate::metadata_record::MetadataRecord;
use crate::nodes::{Members, Node};
use crate::shared_logs::SharedLogs;
use crate::state::{Restored, State};
use crate::submissions::{Submissions, frame_of};
use crate::troubles::{Failure, Troubles};

/// How often a broker looks for frames, whether it is told of them or not, and for the owner.
const POLL: Duration = Duration::from_millis(500);

/// The pause after a request without an answer.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// How long the session of a broker of the same id may last that has just ended.
const REGISTERED_WITHIN: Duration = Duration::from_secs(10);

/// Frames between two snapshots: reading them takes about a second.
const SNAPSHOT_FRAMES: usize = 20_000;

/// What is tried, as the log tells it.
const READ: &str = "read the metadata log";
const LOOK: &str = "look for the owner of the metadata log";

/// Bytes of one read of frames.
const READ_BYTES: usize = 4 << 20;

/// What a broker needs of its cluster to follow and to own the log.
pub(crate) struct Member<Q, S> {
    pub(crate) frames: Arc<dyn Frames>,
    pub(crate) sequencer: Arc<Q>,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) logs: Arc<SharedLogs<Q, S>>,
    pub(crate) submissions: Arc<Submissions>,
    pub(crate) state: Arc<State>,
    pub(crate) row: BrokerRow,
    pub(crate) cluster_id: Uuid,
    /// The first frame that was not applied.
    pub(crate) next_sequence: i64,
    pub(crate) snapshots: Snapshots,
    /// Whether other brokers know this one.
    pub(crate) registered: watch::Receiver<bool>,
    pub(crate) troubles: Troubles,
}

/// Snapshots of an owner: they spare the next broker the frames before them.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// Frames since the last one.
    frames: usize,
    /// One that waits for the frames up to its sequence.
    taken: Option<(i64, Bytes)>,
}

/// Why a broker follows no longer.
enum Stop {
    /// What it holds is not what the log says: it must be read again.
    Stale,
    /// A frame that this version does not understand.
    Unreadable(String),
}

impl<Q: Sequencer, S: Store> Member<Q, S> {
    /// Takes part until the returned future is dropped. What cannot be gone on with is told to the
    /// supervisor.
    pub(crate) async fn run(mut self, registration: Registration, supervisor: &Supervisor) {
        let (logs, wakes) = (Arc::clone(&self.logs), Arc::clone(&self.wakes));
        let registered = watch::Sender::new(true);
        self.registered = registered.subscribe();
        let shown = Shown {
            registered,
            frames: Arc::clone(&self.frames),
            wakes: Arc::clone(&self.wakes),
            state: Arc::clone(&self.state),
            row: self.row.clone(),
            troubles: Troubles::default(),
        };
        tokio::select! {
            () = shown.keep(registration) => {}
            () = logs.watch(&wakes) => {}
            cause = self.take_part() => supervisor.fail(cause),
        }
    }

    /// Follows and owns in turn. Returns what keeps it from both.
    async fn take_part(&mut self) -> String {
        self.advance(0);
        loop {
            let stop = match self.follow().await {
                Ok(ownership) => {
                    let stop = self.own(&ownership).await;
                    self.submissions.lose();
                    self.snapshots = Snapshots::default();
                    tracing::info!(epoch = ownership.epoch, "another broker may be the controller");
                    stop
                }
                Err(stop) => stop,
            };
            if let Stop::Unreadable(problem) = stop {
                return format!("the metadata log cannot be read: {problem}");
            }
            if let Err(problem) = self.read_again().await {
                return format!("the metadata log cannot be read: {problem}");
            }
        }
    }

    /// Applies frames until this broker owns the log.
    async fn follow(&mut self) -> Result<Ownership, Stop> {
        let submissions = Arc::clone(&self.submissions);
        let mut told = self.wakes.frames();
        let mut asked = submissions.catching_up.asked();
        loop {
            told.borrow_and_update();
            let request = *asked.borrow_and_update();
            match self.apply_some().await? {
                Progress::Applied => continue,
                Progress::AtEnd => submissions.catching_up.reached(request),
                Progress::Away => {
                    sleep(RETRY_PAUSE).await;
                    continue;
                }
            }
            if let Some(ownership) = self.try_to_own().await {
                return Ok(ownership);
            }
            tokio::select! {
                _ = told.changed() => {}
                _ = asked.changed() => {}
                () = sleep(POLL) => {}
            }
        }
    }

    async fn apply_some(&mut self) -> Result<Progress, Stop> {
        let read = match self.frames.read(self.next_sequence, READ_BYTES).await {
            Err(Error::FramesReplaced { .. }) => return Err(Stop::Stale),
            read => self.troubles.note(READ, read),
        };
        let frames = match read {
            Ok(frames) if frames.is_empty() => return Ok(Progress::AtEnd),
            Ok(frames) => frames,
            Err(_) => return Ok(Progress::Away),
        };
        for frame in frames {
            if frame.sequence != self.next_sequence {
                return Err(Stop::Stale);
            }
            self.state.replay_frame(&frame.bytes).map_err(Stop::Unreadable)?;
            self.advance(1);
        }
        Ok(Progress::Applied)
    }

    /// So many more frames are applied.
    fn advance(&mut self, frames: usize) {
        self.next_sequence += i64::try_from(frames).unwrap_or(i64::MAX);
        self.submissions.forwards.applied(self.next_sequence);
    }

    async fn try_to_own(&self) -> Option<Ownership> {
        if !*self.registered.borrow() {
            return None;
        }
        let claimed = async {
            if self.frames.owner().await?.is_some() {
                return Ok(None);
            }
            // The end of a session is not known here at once.
            if !self.frames.brokers().await?.contains(&self.row) {
                return Ok(None);
            }
            let address = format!("{}:{}", self.row.host, self.row.port);
            self.frames.claim(self.row.id, &address).await
        };
        let claimed: Answer<_> = claimed.await;
        self.troubles.note(LOOK, claimed).unwrap_or_default()
    }

    /// Owns the log for as long as the session lasts.
    async fn own(&mut self, ownership: &Ownership) -> Stop {
        let mut registered = self.registered.clone();
        let owned = async {
            while self.next_sequence < ownership.next_sequence {
                if let Progress::Away | Progress::AtEnd = self.apply_some().await? {
                    sleep(RETRY_PAUSE).await;
                }
            }
            self.settle_topics().await;
            self.state.groups.take_over();
            self.submissions.own(ownership.epoch);
            self.state.groups.awake();
            self.state.transactions.awake();
            self.state.shares.awake();
            self.wakes.announce_frames();
            self.wakes.announce_requests();
            let (epoch, sequence) = (ownership.epoch, self.next_sequence);
            tracing::info!(epoch, sequence, "this broker is the controller");
            let submissions = Arc::clone(&self.submissions);
            let mut asked = submissions.catching_up.asked();
            // Some may have asked before.
            asked.mark_changed();
            loop {
                let frames = tokio::select! {
                    frames = submissions.next() => frames,
                    _ = asked.changed() => Vec::new(),
                };
                let request = *asked.borrow_and_update();
                match frames.is_empty() {
                    true => self.confirm(epoch).await?,
                    false => self.append(epoch, frames).await?,
                }
                submissions.catching_up.reached(request);
            }
        };
        let owned: Result<std::convert::Infallible, Stop> = tokio::select! {
            owned = owned => owned,
            () = ownership.lost() => Err(Stop::Stale),
            // Another process may be registered by its id, to which clients would go.
            _ = registered.wait_for(|is_registered| !is_registered) => Err(Stop::Stale),
        };
        match owned {
            Err(stop) => stop,
            Ok(never) => match never {},
        }
    }

    /// Makes sure that this broker still owns the log.
    async fn confirm(&self, epoch: i64) -> Result<(), Stop> {
        loop {
            match self.troubles.note(LOOK, self.frames.owner().await) {
                Ok(Some(owner)) if owner.epoch == epoch => return Ok(()),
                Ok(_) => return Err(Stop::Stale),
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        }
    }

    async fn append(&mut self, epoch: i64, frames: Vec<Bytes>) -> Result<(), Stop> {
        let changes = topics::changes(&frames).map_err(Stop::Unreadable)?;
        self.create_and_grow_topics(&changes).await;
        loop {
            let appended = self.frames.append(epoch, self.next_sequence, frames.clone()).await;
            match appended {
                Err(error) if !error.is_retriable() => {
                    tracing::warn!(%error, "this broker no longer owns the metadata log");
                    return Err(Stop::Stale);
                }
                appended => match self.troubles.note("append to the metadata log", appended) {
                    Ok(()) => break,
                    Err(_) => sleep(RETRY_PAUSE).await,
                },
            }
        }
        self.advance(frames.len());
        self.submissions.appended(frames.len());
        self.wakes.announce_frames();
        self.delete_topics(&changes).await;
        self.snapshots.frames += frames.len();
        self.keep_snapshot(epoch).await;
        Ok(())
    }

    /// Takes a snapshot if one is due, and puts it once all that it says is in the log.
    async fn keep_snapshot(&mut self, epoch: i64) {
        if self.snapshots.frames >= SNAPSHOT_FRAMES && self.snapshots.taken.is_none() {
            let (end, bytes) = self.state.snapshot(&self.submissions, self.cluster_id);
            // Each position is a frame.
            let ahead = end.0.saturating_sub(self.submissions.durable().0);
            let sequence = self.next_sequence.saturating_add_unsigned(ahead);
            self.snapshots = Snapshots { frames: 0, taken: Some((sequence, bytes)) };
        }
        let next = self.next_sequence;
        let Some((sequence, bytes)) = self.snapshots.taken.take_if(|(end, _)| *end <= next) else {
            return;
        };
        let put = self.frames.put_snapshot(epoch, sequence, bytes).await;
        if self.troubles.note("put a snapshot of the metadata log", put).is_ok() {
            tracing::info!(sequence, "put a snapshot of the metadata log");
        }
    }

    /// Takes what the log says in place of what this broker knows.
    async fn read_again(&mut self) -> Result<(), String> {
        loop {
            let loaded = load(&*self.frames, &self.state.config).await;
            match self.troubles.note(READ, loaded) {
                Ok((restored, next_sequence)) => {
                    self.state.adopt(restored);
                    self.next_sequence = next_sequence;
                    self.advance(0);
                    return Ok(());
                }
                Err(LoadError::Away(_)) => sleep(RETRY_PAUSE).await,
                Err(LoadError::Unreadable(problem)) => return Err(problem),
            }
        }
    }
}

enum Progress {
    Applied,
    AtEnd,
    Away,
}

/// Why the log was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Away(Error),
    #[error("{0}")]
    Unreadable(String),
}

impl Failure for LoadError {
    fn is_consequence(&self) -> bool {
        match self {
            Self::Away(error) => error.is_consequence(),
            Self::Unreadable(_) => false,
        }
    }
}

impl From<LoadError> for crate::error::Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Away(error) => Self::Cluster(error),
            LoadError::Unreadable(problem) => Self::Metadata(problem),
        }
    }
}

/// All that the log says, and the sequence of its next frame.
///
/// # Errors
/// A log that does not answer, or that another version wrote.
pub(crate) async fn load(
    frames: &dyn Frames,
    config: &Config,
) -> Result<(Restored, i64), LoadError> {
    'from_snapshot: loop {
        let (mut restored, mut next) = (Restored::new(config, wall_clock_ms()), 0);
        if let Some((sequence, bytes)) = frames.snapshot().await.map_err(LoadError::Away)? {
            restored.replay_frame(&bytes).map_err(LoadError::Unreadable)?;
            next = sequence;
        }
        loop {
            let read = match frames.read(next, READ_BYTES).await {
                Err(Error::FramesReplaced { .. }) => continue 'from_snapshot,
                read => read.map_err(LoadError::Away)?,
            };
            if read.is_empty() {
                return Ok((restored, next));
            }
            for frame in read {
                restored.replay_frame(&frame.bytes).map_err(LoadError::Unreadable)?;
                next = frame.sequence.saturating_add(1);
            }
        }
    }
}

/// All that the log says, which begins with the id of the cluster: the database has drawn it.
///
/// # Errors
/// As [`load`].
pub(crate) async fn load_or_begin(
    frames: &dyn Frames,
    config: &Config,
    row: &BrokerRow,
) -> Result<(Restored, i64, Uuid), LoadError> {
    loop {
        let (restored, next) = load(frames, config).await?;
        if let Some(id) = restored.cluster_id {
            return Ok((restored, next, id));
        }
        let address = format!("{}:{}", row.host, row.port);
        let begun = async {
            let Some(ownership) = frames.claim(row.id, &address).await? else { return Ok(()) };
            if ownership.next_sequence > 0 {
                return Ok(());
            }
            let id = frames.cluster_id().await?.into_bytes();
            let record = MetadataRecord::ClusterBegun { id }.encode();
            let frame = frame_of(std::iter::once(record.as_slice()));
            frames.append(ownership.epoch, 0, vec![frame]).await
        };
        match begun.await {
            // Another broker begins it.
            Ok(()) | Err(Error::Fenced { .. } | Error::OutOfSequence { .. }) => {}
            Err(error) => return Err(LoadError::Away(error)),
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Registers a broker. The session of one that has just ended may last for a moment.
///
/// # Errors
/// A broker of the same id that lives; a database that does not answer.
pub(crate) async fn register(frames: &dyn Frames, row: &BrokerRow) -> Answer<Registration> {
    let deadline = Instant::now() + REGISTERED_WITHIN;
    let mut is_told = false;
    loop {
        match frames.register(row.clone()).await {
            Err(error @ Error::BrokerIdTaken(_)) if Instant::now() < deadline => {
                if !is_told {
                    let (broker, for_s) = (row.id, REGISTERED_WITHIN.as_secs());
                    tracing::warn!(broker, for_s, "waits for the end of another broker: {error}");
                    is_told = true;
                }
                sleep(RETRY_PAUSE).await;
            }
            registered => return registered,
        }
    }
}

/// The brokers as the database shows them.
///
/// # Errors
/// A database that does not answer.
pub(crate) async fn members(frames: &dyn Frames) -> Answer<Members> {
    let rows = frames.brokers().await?;
    let owner = frames.owner().await?;
    let node = |row: BrokerRow| {
        let BrokerRow { id, host, port, rack } = row;
        Node { id, host, port: i32::from(port), rack }
    };
    let owner = owner.map(|owner| (owner.broker, owner.epoch));
    Ok(Members::new(rows.into_iter().map(node).collect(), owner))
}

/// Keeps this broker shown to clients, and what they are told of all brokers.
struct Shown {
    /// Told to the task that may own the log.
    registered: watch::Sender<bool>,
    frames: Arc<dyn Frames>,
    wakes: Arc<Wakes>,
    state: Arc<State>,
    row: BrokerRow,
    troubles: Troubles,
}

impl Shown {
    async fn keep(&self, registration: Registration) {
        let mut told = self.wakes.frames();
        let mut registration = Some(registration);
        loop {
            tokio::select! {
                () = lost(registration.as_ref()) => {
                    tracing::info!("the session of this broker has ended; it begins another");
                    registration = None;
                    self.registered.send_replace(false);
                }
                _ = timeout(POLL, told.changed()) => {}
            }
            if registration.is_none() {
                let registered = self.frames.register(self.row.clone()).await;
                registration = self.troubles.note("register this broker", registered).ok();
                self.registered.send_replace(registration.is_some());
            }
            let members = members(&*self.frames).await;
            match self.troubles.note("look for the brokers of the cluster", members) {
                Ok(members) => {
                    self.state.nodes.update(members.sharing(self.state.shared_topics()));
                }
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        }
    }
}

/// Waits for the end of a registration, if there is one.
async fn lost(registration: Option<&Registration>) {
    match registration {
        Some(registration) => registration.lost().await,
        None => std::future::pending().await,
    }
}
