//! A member of a consumer group, without what it reads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::group::committer::{Committer, Term};
use crate::group::driver::{self, Command, Ends, Inbox, Machine, Told};
use crate::group::holding::MembershipEvent;
use crate::group::machine::MemberStage;
use crate::group::offsets::CommittedOffset;
use crate::group::options::MembershipOptions;
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Events between the task and its owner. More wait with the task, which drops what a loss makes
/// void.
const EVENTS_MAX: usize = 1;

/// What a member is at a moment.
#[derive(Clone, Debug)]
pub struct MemberState {
    /// How far it is.
    pub stage: MemberStage,
    /// Its id; empty until the coordinator of a classic group has given one.
    pub member_id: String,
    /// Member epoch, or generation in the classic protocol.
    pub epoch: i32,
    /// When the coordinator last accepted something that keeps the member in the group. One that
    /// is older than the session timeout shows a member that is cut off.
    pub last_heartbeat: Option<Instant>,
    /// Time between its heartbeats.
    pub heartbeat_interval: Duration,
    /// Why the coordinator refuses the member for the time being: a right of it was revoked.
    pub refused: Option<Error>,
}

/// Tells what a member is, beside the task that owns the [`Membership`].
#[derive(Clone, Debug)]
pub struct MemberWatch(watch::Receiver<Told>);

impl MemberWatch {
    /// What the member is at the moment; never waits.
    #[must_use]
    pub fn state(&self) -> MemberState {
        let told = self.0.borrow();
        MemberState {
            stage: told.stage,
            member_id: told.id.clone(),
            epoch: told.epoch,
            last_heartbeat: told.last_heartbeat.map(tokio::time::Instant::into_std),
            heartbeat_interval: told.heartbeat_interval,
            refused: told.refused.clone(),
        }
    }
}

/// A member of a consumer group. It knows which partitions it holds, and reads nothing.
///
/// A task sends its heartbeats over a connection of their own, so neither a fetch nor its owner
/// delays them. Offsets go over the connection for coordination that the [`Cluster`] shares.
///
/// Dropping it ends the task without leaving: the coordinator notices after the session timeout.
#[derive(Debug)]
pub struct Membership {
    committer: Committer,
    /// What [`next`](Self::next) has told that it holds.
    held: Arc<BTreeSet<TopicPartition>>,
    /// The number of losses that the last event came after.
    losses: u64,
    commands: Arc<Inbox>,
    events: mpsc::Receiver<(u64, MembershipEvent)>,
    told: watch::Receiver<Told>,
    /// What it holds, for its committers.
    term: watch::Sender<Term>,
    task: JoinHandle<Result<()>>,
}

impl Membership {
    /// Joins `group`. Must be called in a tokio runtime, which then runs its task. Returns when
    /// the coordinator has taken the first request; partitions come from [`next`](Self::next).
    ///
    /// # Errors
    /// [`Error::InvalidPattern`], [`Error::UnknownAssignor`]; [`Error::UnsupportedApi`] from a
    /// broker without the protocol; [`Error::Broker`] with the coordinator's code, such as
    /// `GROUP_MAX_SIZE_REACHED`, `UNRELEASED_INSTANCE_ID`, `INVALID_REGULAR_EXPRESSION`,
    /// `UNSUPPORTED_ASSIGNOR`, `GROUP_AUTHORIZATION_FAILED`; or the cluster does not answer within
    /// the operation timeout.
    pub async fn join(cluster: &Cluster, group: &str, options: MembershipOptions) -> Result<Self> {
        let instance_id = options.instance_id.clone();
        Self::start(cluster, group, instance_id, Machine::new(cluster, group, options)?).await
    }

    /// Joins a share group.
    pub(crate) async fn join_share(
        cluster: &Cluster,
        group: &str,
        options: MembershipOptions,
    ) -> Result<Self> {
        Self::start(cluster, group, None, Machine::share(cluster, group, options)).await
    }

    async fn start(
        cluster: &Cluster,
        group: &str,
        instance_id: Option<String>,
        mut machine: Machine,
    ) -> Result<Self> {
        let commands = Arc::new(Inbox::default());
        let (outbox, events) = mpsc::channel(EVENTS_MAX);
        let (teller, told) = watch::channel(machine.tell());
        let (starter, started) = oneshot::channel();
        let ends = Ends {
            commands: Arc::clone(&commands),
            events: outbox,
            told: teller,
            started: starter,
        };
        let (term, followed) = watch::channel(Term::default());
        let membership = Self {
            committer: Committer::new(cluster, group, instance_id, told.clone(), followed),
            held: Arc::default(),
            losses: 0,
            commands,
            events,
            told,
            term,
            task: tokio::spawn(driver::run(cluster.clone(), machine, ends)),
        };
        started.await.map_err(|_| Error::Closed)??;
        Ok(membership)
    }

    /// The next change of what the member holds. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// The membership is over: the errors of [`join`](Self::join), and
    /// [`Error::Broker`] with `FENCED_INSTANCE_ID` if another member joined with the same static
    /// id. A [`MembershipEvent::Lost`] comes before. Whatever may pass is tried again without an
    /// error here.
    pub async fn next(&mut self) -> Result<MembershipEvent> {
        loop {
            let Some((losses, event)) = self.events.recv().await else {
                return Err(self.told.borrow().failure.clone().unwrap_or(Error::Closed));
            };
            self.losses = losses;
            match event {
                MembershipEvent::Assigned(partitions) => {
                    Arc::make_mut(&mut self.held).extend(partitions.iter().cloned());
                    self.publish();
                    return Ok(MembershipEvent::Assigned(partitions));
                }
                MembershipEvent::Revoked(partitions) => {
                    self.publish();
                    return Ok(MembershipEvent::Revoked(partitions));
                }
                MembershipEvent::Lost(mut partitions) => {
                    // It may have given up some of them meanwhile.
                    let held = Arc::make_mut(&mut self.held);
                    partitions.retain(|partition| held.remove(partition));
                    self.publish();
                    if !partitions.is_empty() {
                        return Ok(MembershipEvent::Lost(partitions));
                    }
                }
            }
        }
    }

    /// Partitions that the member holds, as [`next`](Self::next) told; those whose revocation is
    /// not confirmed are among them.
    #[must_use]
    pub fn held(&self) -> &BTreeSet<TopicPartition> {
        &self.held
    }

    /// Gives up partitions that [`MembershipEvent::Revoked`] asked for, once their offsets are
    /// committed. The group gives them to others only then, or after the rebalance timeout, when
    /// all are lost.
    pub fn revoked(&mut self, partitions: &[TopicPartition]) {
        let held = Arc::make_mut(&mut self.held);
        let given_up = partitions.iter().filter(|partition| held.remove(*partition));
        let given_up: Vec<_> = given_up.cloned().collect();
        self.publish();
        if !given_up.is_empty() {
            self.commands.put(Command::GivenUp(self.losses, given_up));
        }
    }

    /// As [`Committer::commit`].
    ///
    /// # Errors
    /// As [`Committer::commit`].
    pub async fn commit(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<Vec<(TopicPartition, Result<()>)>> {
        self.committer.commit(offsets).await
    }

    /// Commits in its stead, as long as it holds the partitions.
    #[must_use]
    pub fn committer(&self) -> Committer {
        self.committer.clone()
    }

    /// As [`Committer::committed`].
    ///
    /// # Errors
    /// As [`Committer::committed`].
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>> {
        self.committer.committed(partitions).await
    }

    /// What the member is at the moment; never waits.
    #[must_use]
    pub fn state(&self) -> MemberState {
        self.watch().state()
    }

    /// Tells what the member is, also after the membership has ended.
    #[must_use]
    pub fn watch(&self) -> MemberWatch {
        MemberWatch(self.told.clone())
    }

    /// Leaves the group, so that others take over at once. Offsets must be committed before. A
    /// static member keeps its partitions for the session timeout, as with Kafka's own consumer.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer, or the membership had failed before. The member
    /// is gone in any case.
    pub async fn leave(mut self) -> Result<()> {
        self.events.close();
        self.commands.put(Command::Leave);
        (&mut self.task).await.unwrap_or(Err(Error::Closed))
    }

    /// Lets the committer know what is held.
    fn publish(&self) {
        self.term.send_replace(Term { held: Arc::clone(&self.held), losses: self.losses });
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.task.abort();
    }
}
