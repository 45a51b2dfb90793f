//! The group member of an app, on a thread of its own: a handler that blocks its thread delays no
//! heartbeat, and no shard but its own.
//!
//! | module | what it holds |
//! |---|---|
//! | `shards` | which shard owns which partition |

mod shards;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use moldau_client::{
    Cluster, ClusterOptions, CommittedOffset, Error as ClientError, Membership, MembershipEvent,
    MembershipOptions, ProducerOptions, TopicPartition,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::figures::Board;
use crate::holder::Holder;
use crate::outgoing::Outgoing;
use crate::transaction::{Refusal, Transactor};
use crate::{Error, Result};
use shards::Shards;

/// What was handled since the last commit.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    pub(crate) offsets: Vec<(TopicPartition, CommittedOffset)>,
    /// What handlers returned meanwhile; empty unless the app is exactly-once.
    pub(crate) outputs: Vec<Outgoing>,
}

/// How many events a shard has seen that make void what it did before. A member that has told of
/// more neither commits nor gives up what the shard means.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Seen {
    /// [`Event::Lost`]: the member may hold the same partitions again, from what others committed.
    pub(crate) losses: u64,
    /// [`Event::Rewound`]: the partitions are still held.
    pub(crate) rewinds: u64,
}

/// What a shard asks of the member.
#[derive(Debug)]
pub(crate) enum Command {
    /// Answered by [`Event::Committed`] or [`Event::Rewound`].
    Commit { seen: Seen, commits: Commits },
    /// Commits, then gives partitions back to the group.
    GiveUp { seen: Seen, commits: Commits, partitions: Vec<TopicPartition> },
    /// Commits. The member leaves the group when all shards have left. Answered by
    /// [`Event::Ended`].
    Leave { seen: Seen, commits: Commits },
}

/// What the member tells a shard.
#[derive(Debug)]
pub(crate) enum Event {
    /// Partitions to read, from what the group has committed of them.
    Assigned(Vec<(TopicPartition, Option<CommittedOffset>)>),
    /// Partitions that the group wants back.
    Revoked(Vec<TopicPartition>),
    /// Partitions that others may read.
    Lost(Vec<TopicPartition>),
    /// Partitions whose commit failed.
    Committed { failed: Vec<TopicPartition> },
    /// A transaction was aborted: its partitions are to be read again from what the group has
    /// committed of them.
    Rewound(Vec<(TopicPartition, Option<CommittedOffset>)>),
    /// It has left, or cannot be a member any more.
    Ended,
}

/// A shard's side of the member. The member ends, without leaving the group, when all are dropped.
#[derive(Debug)]
pub(crate) struct Link {
    shard: usize,
    commands: mpsc::Sender<(usize, Command)>,
    /// Not bounded: an event answers a command, or tells of a rebalance. A shard whose handler
    /// blocks takes none, which must not hold up the others.
    pub(crate) events: mpsc::Receiver<Event>,
}

impl Link {
    pub(crate) async fn tell(&self, command: Command) {
        // The member says that it has ended before its channel closes.
        drop(self.commands.send((self.shard, command)).await);
    }
}

/// How to reach the group.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) cluster: ClusterOptions,
    /// Its id; `None` if partitions are read without a group.
    pub(crate) name: Option<String>,
    pub(crate) options: MembershipOptions,
    /// Partitions that are read without being a member.
    pub(crate) direct: Option<Vec<TopicPartition>>,
    /// The producer of an exactly-once app.
    pub(crate) transactions: Option<ProducerOptions>,
    /// How long a shard may take to give partitions back. After that, and [`BLOCKED_GRACE`], it is
    /// held to be blocked.
    pub(crate) drain_timeout: Duration,
    pub(crate) board: Arc<Board>,
}

impl Group {
    /// Why the membership is over.
    fn ended(&self, error: ClientError) -> Error {
        match (&self.name, &self.options.instance_id) {
            (Some(group), Some(instance_id)) if error.is_static_id_taken() => {
                let (group, instance_id) = (group.clone(), instance_id.clone());
                Error::StaticMember { group, instance_id, source: error }
            }
            _ => error.into(),
        }
    }
}

/// Starts the thread, which joins the group. Returns how the membership ends, and a link for each
/// of `count` shards.
pub(crate) fn start(
    group: Group,
    count: usize,
) -> Result<(oneshot::Receiver<Result<()>>, Vec<Link>)> {
    let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
    let (told, ended) = oneshot::channel();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..count).map(|_| mpsc::channel(EVENTS_MAX)).unzip();
    let link = |(shard, events)| Link { shard, commands: commands.clone(), events };
    let links = receivers.into_iter().enumerate().map(link).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Thread)?;
    let run = move || {
        runtime.block_on(async {
            let gone = join_all(senders.clone().into_iter().map(async |it| it.closed().await));
            let mut shards = Shards::new(senders);
            let result = tokio::select! {
                result = serve(&group, inbox, &mut shards) => result,
                // A transaction would take as long as the coordinator is not there.
                _ = gone => Ok(()),
            };
            shards.tell_all(|| Event::Ended);
            // An app that is gone does not ask.
            drop(told.send(result));
        });
    };
    thread::Builder::new().name(THREAD.to_owned()).spawn(run).map_err(Error::Thread)?;
    Ok((ended, links))
}

async fn serve(
    group: &Group,
    mut commands: mpsc::Receiver<(usize, Command)>,
    shards: &mut Shards,
) -> Result<()> {
    let cluster = Cluster::connect(&group.bootstrap, group.cluster.clone()).await?;
    // First: what an app of this id left open could hold up the reading of committed offsets.
    let transactor = match &group.transactions {
        Some(options) => Some(Transactor::start(&cluster, options.clone()).await?),
        None => None,
    };
    let holder = match (&group.direct, &group.name) {
        (Some(partitions), name) => {
            let (group, partitions) = (name.clone(), Some(partitions.clone()));
            Holder::Direct { cluster: cluster.clone(), group, partitions }
        }
        (None, Some(name)) => {
            let joined = Membership::join(&cluster, name, group.options.clone()).await;
            let joined = joined.map_err(|error| group.ended(error))?;
            group.board.set_member(joined.watch());
            Holder::Member(joined)
        }
        (None, None) => return Err(Error::NoGroup),
    };
    let patience = group.drain_timeout.saturating_add(BLOCKED_GRACE);
    let mut serving = Serving {
        holder,
        transactor,
        shards,
        gathered: Gathered::default(),
        waits: Vec::new(),
        leave_by: None,
        patience,
        board: &group.board,
    };
    while !serving.is_to_leave() {
        let due = serving.next_due();
        tokio::select! {
            event = serving.holder.next() => {
                let event = event.map_err(|error| group.ended(error))?;
                serving.take_event(event).await?;
            }
            command = commands.recv() => match command {
                // The app is gone; the group notices after the session timeout.
                None => return Ok(()),
                Some((shard, command)) => serving.carry_out(shard, command).await?,
            },
            () = tokio::time::sleep_until(due) => serving.take_time().await?,
        }
    }
    serving.commit_gathered().await?;
    Ok(serving.holder.leave().await?)
}

/// A member that serves its shards.
struct Serving<'a> {
    holder: Holder,
    transactor: Option<Transactor>,
    shards: &'a mut Shards,
    gathered: Gathered,
    /// What shards are asked to give back.
    waits: Vec<Wait>,
    /// When it leaves without shards that do not.
    leave_by: Option<Instant>,
    /// How long shards may take to give partitions back.
    patience: Duration,
    board: &'a Board,
}

/// Commits of several shards that go into one request.
#[derive(Default)]
struct Gathered {
    /// Shard, what it has seen, and what it has handled.
    commits: Vec<(usize, Seen, Commits)>,
    since: Option<Instant>,
}

/// Partitions that a shard is asked for.
struct Wait {
    shard: usize,
    partitions: Vec<TopicPartition>,
    until: Instant,
}

impl Serving<'_> {
    fn is_to_leave(&self) -> bool {
        self.shards.running() == 0 || self.leave_by.is_some_and(|by| by <= Instant::now())
    }

    async fn take_event(&mut self, event: MembershipEvent) -> Result<()> {
        match event {
            MembershipEvent::Assigned(partitions) => {
                let committed = committed(&self.holder, &partitions).await?;
                self.shards.assigned(committed);
            }
            MembershipEvent::Revoked(partitions) => {
                let until = Instant::now() + self.patience;
                let asked = self.shards.revoked(partitions).into_iter();
                self.waits.extend(asked.map(|(shard, partitions)| Wait {
                    shard,
                    partitions,
                    until,
                }));
            }
            MembershipEvent::Lost(partitions) => self.shards.lost(partitions),
        }
        Ok(())
    }

    async fn carry_out(&mut self, shard: usize, command: Command) -> Result<()> {
        match command {
            Command::Commit { seen, commits } => self.gather(shard, seen, commits).await?,
            Command::GiveUp { seen, commits, partitions } => {
                // What it committed before must not follow.
                self.commit_gathered().await?;
                if self.shards.is_current(shard, seen) {
                    // If that fails, the next owner handles it again.
                    match self.transactor {
                        Some(_) => drop(self.transact(&commits).await?),
                        None => drop(commit(&self.holder, &commits.offsets).await),
                    }
                }
                if self.shards.has_seen_losses(shard, seen) {
                    self.shards.disown(shard, &partitions);
                    self.holder.revoked(&partitions);
                }
                let shards = &self.shards;
                self.waits.retain(|it| it.partitions.iter().any(|one| shards.owns(it.shard, one)));
            }
            Command::Leave { seen, commits } => {
                self.shards.left(shard);
                self.leave_by.get_or_insert_with(|| Instant::now() + self.patience);
                self.gather(shard, seen, commits).await?;
            }
        }
        Ok(())
    }

    /// Commits what a shard has handled together with what others send at the same time.
    async fn gather(&mut self, shard: usize, seen: Seen, commits: Commits) -> Result<()> {
        self.gathered.commits.push((shard, seen, commits));
        self.gathered.since.get_or_insert_with(Instant::now);
        if self.gathered.commits.len() >= self.shards.running() {
            self.commit_gathered().await?;
        }
        Ok(())
    }

    async fn commit_gathered(&mut self) -> Result<()> {
        let Gathered { commits: gathered, .. } = std::mem::take(&mut self.gathered);
        let (mut all, mut asking) = (Commits::default(), Vec::new());
        for (shard, seen, Commits { offsets, outputs }) in gathered {
            let partitions: Vec<_> = offsets.iter().map(|(it, _)| it.clone()).collect();
            let is_current = self.shards.is_current(shard, seen);
            if is_current {
                all.offsets.extend(offsets);
                all.outputs.extend(outputs);
            }
            asking.push((shard, is_current, partitions));
        }
        if self.transactor.is_some() {
            return self.transact_gathered(&all, asking).await;
        }
        let mut failed = commit(&self.holder, &all.offsets).await;
        let stale = asking.iter().filter(|(_, is_current, _)| !is_current);
        failed.extend(stale.flat_map(|(_, _, partitions)| partitions.iter().cloned()));
        for (shard, ..) in asking {
            self.shards.tell(shard, Event::Committed { failed: failed.clone() });
        }
        Ok(())
    }

    /// Commits in one transaction what shards have handled. If it is aborted, they handle it again.
    async fn transact_gathered(
        &mut self,
        all: &Commits,
        asking: Vec<(usize, bool, Vec<TopicPartition>)>,
    ) -> Result<()> {
        let is_committed = self.transact(all).await?;
        if !is_committed && let Some(transactor) = &mut self.transactor {
            // What the cluster refuses may be refused again.
            tokio::time::sleep(REWIND_PAUSE).await;
            transactor.recover().await?;
        }
        for (shard, is_current, partitions) in asking {
            if is_committed || !is_current {
                self.shards.tell(shard, Event::Committed { failed: Vec::new() });
            } else {
                let committed = committed(&self.holder, &partitions).await?;
                self.shards.rewound(shard, committed);
            }
        }
        Ok(())
    }

    /// Commits in a transaction; whether it has an effect.
    async fn transact(&mut self, commits: &Commits) -> Result<bool> {
        let Some(transactor) = &mut self.transactor else { return Ok(false) };
        let Commits { offsets, outputs } = commits;
        if offsets.is_empty() {
            return Ok(true);
        }
        let partitions: Vec<_> = offsets.iter().map(|(partition, _)| partition.clone()).collect();
        let refusal = match self.holder.group_metadata(&partitions) {
            Ok(member) => match transactor.commit(&member, offsets, outputs).await {
                Ok(()) => return Ok(true),
                Err(refusal) => refusal,
            },
            Err(error) => Refusal::Aborted(error),
        };
        match refusal {
            Refusal::Aborted(error) => {
                tracing::warn!(%error, records = outputs.len(), "a transaction was aborted");
                Ok(false)
            }
            Refusal::Refused(error, output) => {
                tracing::warn!(%error, records = outputs.len(), "a transaction was aborted");
                if let Some(output) = outputs.get(output)
                    && let Some(source) = output.source()
                {
                    self.board.refusals.note(source, output.topic(), error);
                }
                Ok(false)
            }
            Refusal::Final(error) => Err(error.into()),
        }
    }

    fn next_due(&self) -> Instant {
        let gathered = self.gathered.since.map(|since| since + GATHER_TIME);
        let due = self.waits.iter().map(|it| it.until).chain(gathered).chain(self.leave_by).min();
        due.unwrap_or_else(|| Instant::now() + IDLE_TIME)
    }

    async fn take_time(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.gathered.since.is_some_and(|since| since + GATHER_TIME <= now) {
            self.commit_gathered().await?;
        }
        for Wait { shard, partitions, .. } in self.waits.extract_if(.., |it| it.until <= now) {
            tracing::error!(
                shard,
                ?partitions,
                "a handler blocks its thread; given back without it"
            );
            self.shards.lost(partitions.clone());
            self.holder.revoked(&partitions);
        }
        Ok(())
    }
}

/// What the group has committed. A coordinator that does not answer is asked for as long as the
/// member holds the partitions.
async fn committed(
    holder: &Holder,
    partitions: &[TopicPartition],
) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>> {
    loop {
        match holder.committed(partitions).await {
            Err(error) if error.is_retriable() => {
                tracing::warn!(%error, "committed offsets cannot be read yet");
            }
            // A right that was revoked while the app ran may be granted again.
            Err(error) if error.is_unauthorized() => {
                tracing::warn!(%error, "committed offsets cannot be read");
                tokio::time::sleep(RIGHTS_PAUSE).await;
            }
            answer => return Ok(answer?),
        }
    }
}

/// Commits; returns the partitions whose commit failed.
async fn commit(
    holder: &Holder,
    offsets: &[(TopicPartition, CommittedOffset)],
) -> Vec<TopicPartition> {
    if offsets.is_empty() {
        return Vec::new();
    }
    let answers = match holder.commit(offsets).await {
        Ok(answers) => answers,
        Err(error) => {
            tracing::warn!(%error, "offsets could not be committed");
            return offsets.iter().map(|(partition, _)| partition.clone()).collect();
        }
    };
    let failed: HashMap<_, _> =
        answers.into_iter().filter_map(|(it, answer)| Some((it, answer.err()?))).collect();
    for (partition, error) in &failed {
        let TopicPartition { topic, partition } = partition;
        tracing::warn!(%topic, partition, %error, "an offset could not be committed");
    }
    failed.into_keys().collect()
}

/// Commands that wait while another one is carried out: those that shards send without an answer.
const COMMANDS_MAX: usize = 64;

/// Pause before the records of an aborted transaction are handled again.
const REWIND_PAUSE: Duration = Duration::from_millis(100);

/// Pause before committed offsets are asked for again that the app may not read.
const RIGHTS_PAUSE: Duration = Duration::from_secs(1);

/// How long commits wait for those of other shards, which send them at the same times.
const GATHER_TIME: Duration = Duration::from_millis(20);

/// Added to the drain timeout: a busy machine may be late.
pub(crate) const BLOCKED_GRACE: Duration = Duration::from_secs(1);

/// Until when nothing is due.
const IDLE_TIME: Duration = Duration::from_hours(1);

/// Name of the thread.
const THREAD: &str = "moldau-member";

/// Events that a shard has yet to take. Few are under way at a time: a shard that takes none is
/// stuck in a handler for many sessions.
const EVENTS_MAX: usize = 1024;
