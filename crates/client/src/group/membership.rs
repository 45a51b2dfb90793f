//! A member of a consumer group, without what it reads.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use moldau_protocol::ErrorCode;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::group::driver::{self, Command, Ends, Inbox, Machine, Told};
use crate::group::holding::MembershipEvent;
use crate::group::machine::MemberStage;
use crate::group::offsets::{self, CommittedOffset, Committer};
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
}

/// A member of a consumer group. It knows which partitions it holds, and reads nothing.
///
/// A task sends its heartbeats over a connection of their own, so neither a fetch nor its owner
/// delays them. Offsets go over the connection for coordination that the [`Cluster`] shares.
///
/// Dropping it ends the task without leaving: the coordinator notices after the session timeout.
#[derive(Debug)]
pub struct Membership {
    cluster: Cluster,
    group: Arc<str>,
    instance_id: Option<String>,
    /// What [`next`](Self::next) has told that it holds.
    held: BTreeSet<TopicPartition>,
    /// The number of losses that the last event came after.
    losses: u64,
    commands: Arc<Inbox>,
    events: mpsc::Receiver<(u64, MembershipEvent)>,
    told: watch::Receiver<Told>,
    /// Guards the connection that offsets go over; it is not held while one is made.
    coordinator: Mutex<Option<Connection>>,
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
        let mut machine = Machine::new(cluster, group, options)?;
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
        let membership = Self {
            cluster: cluster.clone(),
            group: group.into(),
            instance_id,
            held: BTreeSet::new(),
            losses: 0,
            commands,
            events,
            told,
            coordinator: Mutex::default(),
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
                    self.held.extend(partitions.iter().cloned());
                    return Ok(MembershipEvent::Assigned(partitions));
                }
                MembershipEvent::Revoked(partitions) => {
                    return Ok(MembershipEvent::Revoked(partitions));
                }
                MembershipEvent::Lost(mut partitions) => {
                    // It may have given up some of them meanwhile.
                    partitions.retain(|partition| self.held.remove(partition));
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
        let given_up = partitions.iter().filter(|partition| self.held.remove(*partition));
        let given_up: Vec<_> = given_up.cloned().collect();
        if !given_up.is_empty() {
            self.commands.put(Command::GivenUp(self.losses, given_up));
        }
    }

    /// Commits offsets as this member; the answers are in the order of `offsets`. A coordinator
    /// that moves, restarts or rebalances the group is asked again until the operation timeout.
    ///
    /// # Errors
    /// The coordinator does not answer or refuses the request. For a partition:
    /// [`Error::NotHeld`], or the coordinator's code; [`Error::is_left_behind`] tells that others
    /// may read it.
    pub async fn commit(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<Vec<(TopicPartition, Result<()>)>> {
        let mut answers: HashMap<&TopicPartition, Result<()>> = HashMap::new();
        let mut open: Vec<&(TopicPartition, CommittedOffset)> = Vec::new();
        for offset in offsets {
            match self.held.contains(&offset.0) {
                true => open.push(offset),
                false => drop(answers.insert(&offset.0, Err(not_held(&offset.0)))),
            }
        }
        let mut retry = self.cluster.retry();
        while !open.is_empty() {
            let told = self.told.borrow().clone();
            if told.losses != self.losses || told.stage == MemberStage::Ended {
                answers.extend(open.iter().map(|(it, _)| (it, Err(not_held(it)))));
                break;
            }
            let last = match self.commit_once(&told, &open).await {
                Ok(mut codes) => {
                    let mut last = None;
                    open.retain(|(partition, _)| {
                        let code = codes.remove(partition);
                        let code = code.unwrap_or(ErrorCode::UnknownServerError.code());
                        let what = format!(
                            "commit of {}-{} by group {}",
                            partition.topic, partition.partition, self.group
                        );
                        let answer = Error::check(code, &what, None);
                        let again = answer.as_ref().err().filter(|error| may_pass(error)).cloned();
                        let is_open = again.is_some();
                        last = again.or(last.take());
                        answers.insert(partition, answer);
                        is_open
                    });
                    last
                }
                Err(error) if error.is_retriable() => Some(error),
                Err(error) => return Err(error),
            };
            let Some(last) = last else { break };
            if last.is_retriable() {
                self.forget_coordinator();
            }
            if let Err(error) = retry.wait(last).await {
                let late = |(partition, _): &&(TopicPartition, _)| !answers.contains_key(partition);
                if open.iter().any(late) {
                    return Err(error);
                }
                break;
            }
        }
        let answer = |(partition, _): &(TopicPartition, CommittedOffset)| {
            let answer = answers.get(partition).cloned().unwrap_or(Ok(()));
            (partition.clone(), answer)
        };
        Ok(offsets.iter().map(answer).collect())
    }

    async fn commit_once(
        &self,
        told: &Told,
        offsets: &[&(TopicPartition, CommittedOffset)],
    ) -> Result<HashMap<TopicPartition, i16>> {
        let committer = Committer {
            group: &self.group,
            member_id: &told.id,
            epoch: told.epoch,
            instance_id: self.instance_id.as_deref(),
        };
        let offsets = offsets.iter().map(|(partition, offset)| (partition, offset));
        let request = committer.request(offsets);
        let connection = self.coordinator().await?;
        let answer = connection.send_in(&request, offsets::COMMIT_VERSIONS).await?;
        Ok(offsets::commit_codes(answer))
    }

    /// The committed offsets of `partitions`, in their order; `None` where the group has none.
    /// Waits for transactions that commit offsets of them.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>> {
        let mut known = offsets::committed(&self.cluster, &self.group, Some(partitions)).await?;
        let of = |partition: &TopicPartition| (partition.clone(), known.remove(partition));
        Ok(partitions.iter().map(of).collect())
    }

    /// What the member is at the moment; never waits.
    #[must_use]
    pub fn state(&self) -> MemberState {
        let told = self.told.borrow();
        MemberState {
            stage: told.stage,
            member_id: told.id.clone(),
            epoch: told.epoch,
            last_heartbeat: told.last_heartbeat.map(tokio::time::Instant::into_std),
        }
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

    async fn coordinator(&self) -> Result<Connection> {
        let known = self.lock_coordinator().clone();
        if let Some(open) = known.filter(|connection| !connection.is_closed()) {
            return Ok(open);
        }
        let found = self.cluster.group_coordinator(&self.group).await?;
        *self.lock_coordinator() = Some(found.clone());
        Ok(found)
    }

    fn forget_coordinator(&self) {
        *self.lock_coordinator() = None;
    }

    fn lock_coordinator(&self) -> std::sync::MutexGuard<'_, Option<Connection>> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn not_held(partition: &TopicPartition) -> Error {
    Error::NotHeld { topic: partition.topic.clone(), partition: partition.partition }
}

/// Whether the coordinator may take the offset of a partition a moment later: the member's epoch
/// is about to change, or the coordinator moves.
fn may_pass(error: &Error) -> bool {
    error.is_retriable()
        || matches!(
            error.code(),
            Some(
                ErrorCode::RebalanceInProgress
                    | ErrorCode::IllegalGeneration
                    | ErrorCode::StaleMemberEpoch
            )
        )
}
