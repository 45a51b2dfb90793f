//! Groups: a member that holds partitions, and one that also reads them.
//!
//! | module | what it holds |
//! |---|---|
//! | `membership` | [`Membership`]: what its owner calls |
//! | `committer` | [`Committer`]: commits beside the task that owns the membership |
//! | `options` | protocol and options of a member |
//! | `driver` | the task that sends what a state machine asks for |
//! | `classic`, `consumer` | the state machine of each protocol: no I/O |
//! | `machine`, `holding` | what the two share: no I/O |
//! | `assignor` | what the leader of a classic group computes: no I/O |
//! | `offsets` | OffsetCommit and OffsetFetch |

mod assignor;
mod classic;
mod committer;
mod consumer;
mod driver;
mod holding;
mod machine;
mod membership;
mod offsets;
mod options;
#[cfg(test)]
mod simulation;

use std::collections::HashMap;

use moldau_protocol::ErrorCode;

pub use self::committer::Committer;
pub use self::holding::MembershipEvent;
pub use self::machine::MemberStage;
pub use self::membership::{MemberState, MemberWatch, Membership};
pub use self::offsets::{CommittedOffset, GroupMetadata};
pub(crate) use self::options::millis;
pub use self::options::{GroupProtocol, MembershipOptions};
use crate::cluster::Cluster;
use crate::fetcher::{Fetched, Fetcher, FetcherOptions, Reset, Start};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Options of a member that reads.
#[derive(Clone, Debug, Default)]
pub struct GroupOptions {
    /// What it is in the group.
    pub membership: MembershipOptions,
    /// How records are fetched; its `reset` also says where a group without offsets begins.
    pub fetcher: FetcherOptions,
}

/// A member of a consumer group that reads what it holds.
///
/// What [`next`](Self::next) returned counts as processed with the following call: it is committed
/// before a partition goes to another member.
#[derive(Debug)]
pub struct GroupConsumer {
    membership: Membership,
    fetcher: Fetcher,
    reset: Reset,
    /// What the membership told, and is not done yet.
    change: Option<MembershipEvent>,
    /// Offsets to be committed: after what was returned and not committed yet.
    uncommitted: HashMap<TopicPartition, i64>,
}

impl GroupConsumer {
    /// Joins `group`. Must be called in a tokio runtime, which then runs its tasks.
    ///
    /// # Errors
    /// As [`Membership::join`].
    pub async fn join(cluster: &Cluster, group: &str, options: GroupOptions) -> Result<Self> {
        Ok(Self {
            membership: Membership::join(cluster, group, options.membership).await?,
            reset: options.fetcher.reset,
            fetcher: Fetcher::start(cluster, options.fetcher),
            change: None,
            uncommitted: HashMap::new(),
        })
    }

    /// The membership, for its state and for what it holds.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The next batches of any partition that it holds. What earlier calls returned counts as
    /// processed. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// A partition cannot be read, the group refuses the member, or the cluster does not answer.
    pub async fn next(&mut self) -> Result<Fetched> {
        loop {
            self.follow().await?;
            tokio::select! {
                event = self.membership.next() => self.change = Some(event?),
                fetched = self.fetcher.next() => {
                    let fetched = fetched?;
                    self.uncommitted.insert(fetched.topic_partition(), fetched.next_position);
                    return Ok(fetched);
                }
            }
        }
    }

    /// Makes the next commit say `next` for a partition, for callers that did not take all of the
    /// records that [`next`](Self::next) gave.
    pub fn consumed_to(&mut self, partition: TopicPartition, next: i64) {
        // One that went to another member is that one's to commit.
        if self.membership.held().contains(&partition) {
            self.uncommitted.insert(partition, next);
        }
    }

    /// Reads a partition on from `start`. With an offset, that is what the next commit says;
    /// elsewhere it says nothing of the partition before something of it was returned.
    ///
    /// # Errors
    /// [`Error::NotHeld`] for a partition that it does not read.
    pub fn seek(&mut self, partition: &TopicPartition, start: Start) -> Result<()> {
        self.fetcher.seek(partition, start)?;
        match start {
            Start::Offset(next) => drop(self.uncommitted.insert(partition.clone(), next)),
            Start::Earliest | Start::Latest | Start::Timestamp(_) => {
                self.uncommitted.remove(partition);
            }
        }
        Ok(())
    }

    /// Pauses or resumes the reading of a partition; what was fetched still comes.
    pub fn set_paused(&self, partition: &TopicPartition, paused: bool) {
        self.fetcher.set_paused(partition, paused);
    }

    /// Commits the offsets after all that [`next`](Self::next) has returned. A coordinator that
    /// restarts, loads the group or has moved is asked again until the operation timeout.
    ///
    /// # Errors
    /// The group has gone on without this member ([`Error::is_left_behind`]), or the coordinator
    /// refuses or does not answer.
    pub async fn commit(&mut self) -> Result<()> {
        let offsets = self.uncommitted.iter();
        let offsets = offsets.map(|(it, offset)| (it.clone(), CommittedOffset::at(*offset)));
        let mut outcome = Ok(());
        for (partition, answer) in self.membership.commit(&offsets.collect::<Vec<_>>()).await? {
            match answer {
                Ok(()) => drop(self.uncommitted.remove(&partition)),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Commits, and leaves the group so that others take over at once.
    ///
    /// # Errors
    /// The commit fails, or the coordinator does not answer. The member is gone in any case.
    pub async fn leave(mut self) -> Result<()> {
        let committed = self.commit().await;
        self.membership.leave().await?;
        committed
    }

    /// Does what the last change of the membership asks for. One that is cancelled is done again.
    async fn follow(&mut self) -> Result<()> {
        match &self.change {
            None => return Ok(()),
            Some(MembershipEvent::Assigned(partitions)) => {
                for (partition, known) in self.membership.committed(partitions).await? {
                    let start = match (known, self.reset) {
                        (Some(known), _) => Start::Offset(known.offset),
                        (None, Reset::Latest) => Start::Latest,
                        (None, Reset::Earliest) => Start::Earliest,
                        (None, Reset::Fail) => {
                            let what = format!("committed offset of {}", partition.topic);
                            return Err(Error::broker(ErrorCode::OffsetOutOfRange, &what, None));
                        }
                    };
                    self.fetcher.assign(&partition.topic, partition.partition, start).await?;
                }
            }
            Some(MembershipEvent::Revoked(partitions)) => {
                let partitions = partitions.clone();
                self.stop(&partitions);
                if let Err(error) = self.commit().await {
                    // The new owners of the partitions read on from the last commit.
                    tracing::debug!(%error, "commit before rebalance");
                }
                self.membership.revoked(&partitions);
                self.forget(&partitions);
            }
            Some(MembershipEvent::Lost(partitions)) => {
                let partitions = partitions.clone();
                self.stop(&partitions);
                self.forget(&partitions);
            }
        }
        self.change = None;
        Ok(())
    }

    fn stop(&self, partitions: &[TopicPartition]) {
        for partition in partitions {
            self.fetcher.unassign(partition);
        }
    }

    fn forget(&mut self, partitions: &[TopicPartition]) {
        for partition in partitions {
            self.uncommitted.remove(partition);
        }
    }
}
