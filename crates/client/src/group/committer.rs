//! Offsets of a member: committed while its owner waits for the next change of what it holds.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_protocol::ErrorCode;
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::group::driver::Told;
use crate::group::machine::MemberStage;
use crate::group::offsets::{self, CommittedOffset, GroupMetadata};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Commits offsets of what a [`Membership`](crate::Membership) holds, as that member. Clones share
/// a connection; each may be used on any task, also while the membership waits for a change.
#[derive(Clone, Debug)]
pub struct Committer {
    shared: Arc<Shared>,
}

/// What a membership's owner was told that it holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Term {
    pub(super) held: Arc<BTreeSet<TopicPartition>>,
    /// The number of losses before.
    pub(super) losses: u64,
}

#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    group: Arc<str>,
    instance_id: Option<String>,
    told: watch::Receiver<Told>,
    term: watch::Receiver<Term>,
    /// Guards the connection that offsets go over; it is not held while one is made.
    coordinator: Mutex<Option<Connection>>,
}

/// The answers so far, by partition.
type Answers<'o> = HashMap<&'o TopicPartition, Result<()>>;
type Offset = (TopicPartition, CommittedOffset);

impl Committer {
    pub(super) fn new(
        cluster: &Cluster,
        group: &str,
        instance_id: Option<String>,
        told: watch::Receiver<Told>,
        term: watch::Receiver<Term>,
    ) -> Self {
        let shared = Shared {
            cluster: cluster.clone(),
            group: group.into(),
            instance_id,
            told,
            term,
            coordinator: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Commits offsets as the member; the answers are in the order of `offsets`. A coordinator
    /// that moves, restarts or rebalances the group is asked again until the operation timeout.
    ///
    /// # Errors
    /// The coordinator does not answer or refuses the request. For a partition:
    /// [`Error::NotHeld`], or the coordinator's code; [`Error::is_left_behind`] tells that others
    /// may read it.
    pub async fn commit(&self, offsets: &[Offset]) -> Result<Vec<(TopicPartition, Result<()>)>> {
        let losses = self.shared.term.borrow().losses;
        let mut answers = Answers::new();
        let mut open: Vec<&Offset> = offsets.iter().collect();
        let mut retry = self.shared.cluster.retry();
        loop {
            let member = self.shared.member(losses, &mut open, &mut answers);
            let Some(member) = member.filter(|_| !open.is_empty()) else { break };
            let last = match self.shared.commit_once(&member, &open).await {
                Ok(codes) => take_codes(&member, codes, &mut open, &mut answers),
                Err(error) if error.is_retriable() => Some(error),
                Err(error) => return Err(error),
            };
            let Some(last) = last else { break };
            if last.is_retriable() {
                *self.shared.lock_coordinator() = None;
            }
            if let Err(error) = retry.wait(last).await {
                if open.iter().any(|(partition, _)| !answers.contains_key(partition)) {
                    return Err(error);
                }
                break;
            }
        }
        let answer = |(partition, _): &Offset| {
            let answer = answers.get(partition).cloned().unwrap_or(Ok(()));
            (partition.clone(), answer)
        };
        Ok(offsets.iter().map(answer).collect())
    }

    /// Who the member is at the moment, for offsets of `partitions` in a
    /// [transaction](crate::Producer::send_offsets_to_transaction).
    ///
    /// # Errors
    /// [`Error::NotHeld`]: others may read one of them.
    pub fn group_metadata(&self, partitions: &[TopicPartition]) -> Result<GroupMetadata> {
        let Shared { told, term, .. } = &*self.shared;
        let (told, term) = (told.borrow().clone(), term.borrow().clone());
        let is_member = told.losses == term.losses && told.stage != MemberStage::Ended;
        let is_missing = |it: &&TopicPartition| !is_member || !term.held.contains(*it);
        match partitions.iter().find(is_missing) {
            Some(missing) => Err(not_held(missing)),
            None => Ok(self.shared.metadata(told)),
        }
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
        let Shared { cluster, group, .. } = &*self.shared;
        let mut known = offsets::committed(cluster, group, Some(partitions)).await?;
        let of = |partition: &TopicPartition| (partition.clone(), known.remove(partition));
        Ok(partitions.iter().map(of).collect())
    }
}

impl Shared {
    /// Who commits at the moment. What the member does not hold leaves `open`; `None` if it holds
    /// nothing of the time before this number of losses was exceeded.
    fn member<'o>(
        &self,
        losses: u64,
        open: &mut Vec<&'o Offset>,
        answers: &mut Answers<'o>,
    ) -> Option<GroupMetadata> {
        let term = self.term.borrow().clone();
        let told = self.told.borrow().clone();
        let is_over = told.stage == MemberStage::Ended;
        let is_member = term.losses == losses && told.losses == losses && !is_over;
        open.retain(|(partition, _)| {
            let is_held = is_member && term.held.contains(partition);
            if !is_held {
                answers.insert(partition, Err(not_held(partition)));
            }
            is_held
        });
        is_member.then(|| self.metadata(told))
    }

    fn metadata(&self, told: Told) -> GroupMetadata {
        GroupMetadata {
            group: self.group.clone(),
            member_id: told.id,
            epoch: told.epoch,
            instance_id: self.instance_id.clone(),
        }
    }

    async fn commit_once(
        &self,
        member: &GroupMetadata,
        offsets: &[&Offset],
    ) -> Result<HashMap<TopicPartition, i16>> {
        let offsets = offsets.iter().map(|(partition, offset)| (partition, offset));
        let (request, versions) = member.request(offsets);
        let connection = self.coordinator().await?;
        let answer = connection.send_in(&request, versions).await?;
        Ok(offsets::commit_codes(&request, answer))
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

    fn lock_coordinator(&self) -> MutexGuard<'_, Option<Connection>> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps in `open` what is to be tried again; an error of those, if there is one.
fn take_codes<'o>(
    member: &GroupMetadata,
    mut codes: HashMap<TopicPartition, i16>,
    open: &mut Vec<&'o Offset>,
    answers: &mut Answers<'o>,
) -> Option<Error> {
    let mut last = None;
    open.retain(|(partition, _)| {
        let code = codes.remove(partition);
        let code = code.unwrap_or(ErrorCode::UnknownServerError.code());
        let TopicPartition { topic, partition: number } = partition;
        let what = format!("commit of {topic}-{number} by group {}", member.group);
        let answer = Error::check(code, &what, None);
        let again = answer.as_ref().err().filter(|error| may_pass(error)).cloned();
        let is_open = again.is_some();
        last = again.or(last.take());
        answers.insert(partition, answer);
        is_open
    });
    last
}

fn not_held(partition: &TopicPartition) -> Error {
    Error::NotHeld { topic: partition.topic.clone(), partition: partition.partition }
}

/// Whether the coordinator may take the offset of a partition a moment later: the member's epoch
/// is about to change, or the coordinator moves.
fn may_pass(error: &Error) -> bool {
    match error.code() {
        // The topic was deleted. The group takes its partitions away, for which it waits for us.
        Some(ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId) => false,
        Some(
            ErrorCode::RebalanceInProgress
            | ErrorCode::IllegalGeneration
            | ErrorCode::StaleMemberEpoch,
        ) => true,
        _ => error.is_retriable(),
    }
}
