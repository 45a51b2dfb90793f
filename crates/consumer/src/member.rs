//! The group member of an app, on a thread of its own: a handler that blocks its thread delays no
//! heartbeat.

use std::collections::HashMap;
use std::thread;

use moldau_client::{
    Cluster, ClusterOptions, CommittedOffset, Membership, MembershipEvent, MembershipOptions,
    TopicPartition,
};
use tokio::sync::mpsc;

use crate::{Error, Result};

/// Offsets to commit.
pub(crate) type Commits = Vec<(TopicPartition, CommittedOffset)>;

/// What the app asks of its member. `losses` is the number of [`Event::Lost`] that it has seen: a
/// member that has told of another one may hold the same partitions again, from what others
/// committed, so it neither commits nor gives up what the app means.
#[derive(Debug)]
pub(crate) enum Command {
    /// Answered by [`Event::Committed`].
    Commit { losses: u64, commits: Commits },
    /// Commits, then gives partitions back to the group.
    GiveUp { losses: u64, commits: Commits, partitions: Vec<TopicPartition> },
    /// Commits, then leaves the group. Answered by [`Event::Ended`].
    Leave { losses: u64, commits: Commits },
}

/// What the member tells its app.
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
    Ended(Result<()>),
}

/// The app's side of its member. Dropping it ends the member without leaving the group.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::Receiver<Event>,
}

/// How to reach the group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) cluster: ClusterOptions,
    pub(crate) name: String,
    pub(crate) options: MembershipOptions,
}

impl Member {
    /// Starts the thread, which joins the group.
    pub(crate) fn start(group: Group) -> Result<Self> {
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let (outbox, events) = mpsc::channel(EVENTS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::Thread)?;
        let run = move || {
            runtime.block_on(async {
                let ended = serve(&group, inbox, &outbox).await;
                // An app that is gone does not ask.
                drop(outbox.send(Event::Ended(ended)).await);
            });
        };
        thread::Builder::new().name(THREAD.to_owned()).spawn(run).map_err(Error::Thread)?;
        Ok(Self { commands, events })
    }
}

async fn serve(
    group: &Group,
    mut commands: mpsc::Receiver<Command>,
    events: &mpsc::Sender<Event>,
) -> Result<()> {
    let cluster = Cluster::connect(&group.bootstrap, group.cluster.clone()).await?;
    let mut membership = Membership::join(&cluster, &group.name, group.options.clone()).await?;
    let mut told_losses = 0;
    loop {
        let event = tokio::select! {
            event = membership.next() => match event? {
                MembershipEvent::Assigned(partitions) => {
                    Event::Assigned(committed(&membership, &partitions).await?)
                }
                MembershipEvent::Revoked(partitions) => Event::Revoked(partitions),
                MembershipEvent::Lost(partitions) => {
                    told_losses += 1;
                    Event::Lost(partitions)
                }
            },
            command = commands.recv() => match command {
                // The app is gone; the group notices after the session timeout.
                None => return Ok(()),
                Some(Command::Commit { losses, commits }) if losses == told_losses => {
                    Event::Committed { failed: commit(&membership, &commits).await }
                }
                Some(Command::Commit { .. }) => Event::Committed { failed: Vec::new() },
                Some(Command::GiveUp { losses, commits, partitions }) => {
                    if losses == told_losses {
                        commit(&membership, &commits).await;
                        membership.revoked(&partitions);
                    }
                    continue;
                }
                Some(Command::Leave { losses, commits }) => {
                    if losses == told_losses {
                        commit(&membership, &commits).await;
                    }
                    return Ok(membership.leave().await?);
                }
            },
        };
        if events.send(event).await.is_err() {
            return Ok(());
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

/// Commands that wait while another one is carried out: one for each that the app sends without
/// an answer, and some for revocations.
const COMMANDS_MAX: usize = 64;

/// Events that wait for the app, which takes them at once.
const EVENTS_MAX: usize = 64;

/// Name of the thread.
const THREAD: &str = "moldau-member";
