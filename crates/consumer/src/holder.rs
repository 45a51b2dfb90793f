//! Who holds the partitions of an app: a member of a group, or the app itself.

use std::collections::HashMap;
use std::future::pending;

use moldau_client::{
    Cluster, CommittedOffset, Error, GroupMetadata, Membership, MembershipEvent, Result,
    TopicPartition,
};

type Offset = (TopicPartition, CommittedOffset);

/// Holds partitions, and commits offsets of them.
pub(crate) enum Holder {
    Member(Membership),
    /// Partitions that nobody assigns. Offsets are committed for a group without members, or not
    /// at all.
    Direct {
        cluster: Cluster,
        group: Option<String>,
        /// Not told yet.
        partitions: Option<Vec<TopicPartition>>,
    },
}

impl Holder {
    /// The next change of what is held.
    pub(crate) async fn next(&mut self) -> Result<MembershipEvent> {
        match self {
            Self::Member(membership) => membership.next().await,
            Self::Direct { partitions, .. } => match partitions.take() {
                Some(partitions) => Ok(MembershipEvent::Assigned(partitions)),
                None => pending().await,
            },
        }
    }

    /// What the group has committed of `partitions`.
    pub(crate) async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>> {
        let (cluster, group) = match self {
            Self::Member(membership) => return membership.committed(partitions).await,
            Self::Direct { cluster, group, .. } => (cluster, group),
        };
        let mut known = match group {
            Some(group) => cluster.committed_of(group, partitions).await?,
            None => HashMap::new(),
        };
        let of = |partition: &TopicPartition| (partition.clone(), known.remove(partition));
        Ok(partitions.iter().map(of).collect())
    }

    /// Commits; the answers are in the order of `offsets`.
    pub(crate) async fn commit(
        &self,
        offsets: &[Offset],
    ) -> Result<Vec<(TopicPartition, Result<()>)>> {
        match self {
            Self::Member(membership) => membership.commit(offsets).await,
            Self::Direct { cluster, group, .. } => {
                if let Some(group) = group {
                    cluster.commit(group, offsets).await?;
                }
                Ok(offsets.iter().map(|(partition, _)| (partition.clone(), Ok(()))).collect())
            }
        }
    }

    /// Who commits offsets of `partitions` in a transaction.
    pub(crate) fn group_metadata(&self, partitions: &[TopicPartition]) -> Result<GroupMetadata> {
        match self {
            Self::Member(membership) => membership.committer().group_metadata(partitions),
            Self::Direct { group, .. } => {
                group.as_deref().map(GroupMetadata::outside).ok_or(Error::NoTransaction)
            }
        }
    }

    /// Gives up partitions.
    pub(crate) fn revoked(&mut self, partitions: &[TopicPartition]) {
        if let Self::Member(membership) = self {
            membership.revoked(partitions);
        }
    }

    /// Gives up all.
    pub(crate) async fn leave(self) -> Result<()> {
        match self {
            Self::Member(membership) => membership.leave().await,
            Self::Direct { .. } => Ok(()),
        }
    }
}
