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

use moldau_client::{
    Cluster, ClusterOptions, CommittedOffset, Membership, MembershipEvent, MembershipOptions,
    TopicPartition,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::figures::Board;
use crate::{Error, Result};
use shards::Shards;

/// Offsets to commit.
pub(crate) type Commits = Vec<(TopicPartition, CommittedOffset)>;

/// What a shard asks of the member. `losses` is the number of [`Event::Lost`] that it has seen: a
/// member that has told of another one may hold the same partitions again, from what others
/// committed, so it neither commits nor gives up what the shard means.
#[derive(Debug)]
pub(crate) enum Command {
    /// Answered by [`Event::Committed`].
    Commit { losses: u64, commits: Commits },
    /// Commits, then gives partitions back to the group.
    GiveUp { losses: u64, commits: Commits, partitions: Vec<TopicPartition> },
    /// Commits. The member leaves the group when all shards have left. Answered by
    /// [`Event::Ended`].
    Leave { losses: u64, commits: Commits },
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
    pub(crate) name: String,
    pub(crate) options: MembershipOptions,
    /// How long a shard may take to give partitions back. After that, and [`BLOCKED_GRACE`], it is
    /// held to be blocked.
    pub(crate) drain_timeout: Duration,
    pub(crate) board: Arc<Board>,
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
            let mut shards = Shards::new(senders);
            let result = serve(&group, inbox, &mut shards).await;
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
    let membership = Membership::join(&cluster, &group.name, group.options.clone()).await?;
    group.board.set_member(membership.watch());
    let patience = group.drain_timeout.saturating_add(BLOCKED_GRACE);
    let mut serving = Serving {
        membership,
        shards,
        gathered: Gathered::default(),
        waits: Vec::new(),
        leave_by: None,
        patience,
    };
    while !serving.is_to_leave() {
        let due = serving.next_due();
        tokio::select! {
            event = serving.membership.next() => serving.take_event(event?).await?,
            command = commands.recv() => match command {
                // The app is gone; the group notices after the session timeout.
                None => return Ok(()),
                Some((shard, command)) => serving.carry_out(shard, command).await,
            },
            () = tokio::time::sleep_until(due) => serving.take_time().await,
        }
    }
    serving.commit_gathered().await;
    Ok(serving.membership.leave().await?)
}

/// A member that serves its shards.
struct Serving<'a> {
    membership: Membership,
    shards: &'a mut Shards,
    gathered: Gathered,
    /// What shards are asked to give back.
    waits: Vec<Wait>,
    /// When it leaves without shards that do not.
    leave_by: Option<Instant>,
    /// How long shards may take to give partitions back.
    patience: Duration,
}

/// Commits of several shards that go into one request.
#[derive(Default)]
struct Gathered {
    /// Shard, the losses that it has seen, and its offsets.
    commits: Vec<(usize, u64, Commits)>,
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
                let committed = committed(&self.membership, &partitions).await?;
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

    async fn carry_out(&mut self, shard: usize, command: Command) {
        match command {
            Command::Commit { losses, commits } => self.gather(shard, losses, commits).await,
            Command::GiveUp { losses, commits, partitions } => {
                // What it committed before must not follow.
                self.commit_gathered().await;
                if self.shards.is_current(shard, losses) {
                    commit(&self.membership, &commits).await;
                    self.shards.disown(shard, &partitions);
                    self.membership.revoked(&partitions);
                }
                let shards = &self.shards;
                self.waits.retain(|it| it.partitions.iter().any(|one| shards.owns(it.shard, one)));
            }
            Command::Leave { losses, commits } => {
                self.shards.left(shard);
                self.leave_by.get_or_insert_with(|| Instant::now() + self.patience);
                self.gather(shard, losses, commits).await;
            }
        }
    }

    /// Commits offsets together with those that other shards send at the same time.
    async fn gather(&mut self, shard: usize, losses: u64, commits: Commits) {
        self.gathered.commits.push((shard, losses, commits));
        self.gathered.since.get_or_insert_with(Instant::now);
        if self.gathered.commits.len() >= self.shards.running() {
            self.commit_gathered().await;
        }
    }

    async fn commit_gathered(&mut self) {
        let Gathered { commits: gathered, .. } = std::mem::take(&mut self.gathered);
        let (mut all, mut asking, mut failed) = (Commits::new(), Vec::new(), Vec::new());
        for (shard, losses, commits) in gathered {
            asking.push(shard);
            if self.shards.is_current(shard, losses) {
                all.extend(commits);
            } else {
                failed.extend(commits.into_iter().map(|(partition, _)| partition));
            }
        }
        failed.extend(commit(&self.membership, &all).await);
        for shard in asking {
            self.shards.tell(shard, Event::Committed { failed: failed.clone() });
        }
    }

    fn next_due(&self) -> Instant {
        let gathered = self.gathered.since.map(|since| since + GATHER_TIME);
        let due = self.waits.iter().map(|it| it.until).chain(gathered).chain(self.leave_by).min();
        due.unwrap_or_else(|| Instant::now() + IDLE_TIME)
    }

    async fn take_time(&mut self) {
        let now = Instant::now();
        if self.gathered.since.is_some_and(|since| since + GATHER_TIME <= now) {
            self.commit_gathered().await;
        }
        for Wait { shard, partitions, .. } in self.waits.extract_if(.., |it| it.until <= now) {
            tracing::error!(
                shard,
                ?partitions,
                "a handler blocks its thread; given back without it"
            );
            self.shards.lost(partitions.clone());
            self.membership.revoked(&partitions);
        }
    }
}

/// What the group has committed. A coordinator that does not answer is asked for as long as the
/// member holds the partitions.
async fn committed(
    membership: &Membership,
    partitions: &[TopicPartition],
) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>> {
    loop {
        match membership.committed(partitions).await {
            Err(error) if error.is_retriable() => {
                tracing::warn!(%error, "committed offsets cannot be read yet");
            }
            answer => return Ok(answer?),
        }
    }
}

/// Commits; returns the partitions whose commit failed.
async fn commit(membership: &Membership, commits: &Commits) -> Vec<TopicPartition> {
    if commits.is_empty() {
        return Vec::new();
    }
    let answers = match membership.commit(commits).await {
        Ok(answers) => answers,
        Err(error) => {
            tracing::warn!(%error, "offsets could not be committed");
            return commits.iter().map(|(partition, _)| partition.clone()).collect();
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
