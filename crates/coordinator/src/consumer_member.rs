//! A member of a group of the consumer protocol. All of it is stored.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::Uuid;

use crate::offered_protocol::Protocol;

/// Partitions by the id of their topic.
pub type Partitions = BTreeMap<Uuid, BTreeSet<i32>>;

/// Partitions by the id of their topic, each with the epoch in which its member got it.
pub type OwnedPartitions = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// What a member has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It has all that the target gives it at present.
    Stable,
    /// It has to give up partitions and to say so.
    UnrevokedPartitions,
    /// Partitions of its target are still held by others.
    UnreleasedPartitions,
}

/// What a member of the classic protocol adds, which takes part by JoinGroup and SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicMember {
    /// In milliseconds.
    pub session_timeout_ms: i32,
    /// What the member offers.
    pub protocols: Vec<Protocol>,
}

/// A member: what it subscribes to, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerMember {
    /// The member's id.
    pub member_id: String,
    /// Set for static members (KIP-345).
    pub instance_id: Option<String>,
    /// Where the client is.
    pub rack_id: Option<String>,
    /// As the client named itself.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// How long the member may take to give up partitions.
    pub rebalance_timeout_ms: i32,
    /// The assignor that the member asks for.
    pub assignor: Option<String>,
    /// Names of topics.
    pub topics: BTreeSet<String>,
    /// A regular expression; its topics add to those by name.
    pub regex: Option<String>,
    /// -2 while a static member is away.
    pub epoch: i32,
    /// The epoch before; its answer may have been lost.
    pub previous_epoch: i32,
    /// What it has to do next.
    pub state: MemberState,
    /// What it may read.
    pub assigned: OwnedPartitions,
    /// What it has to give up, and holds until it says that it did.
    pub revoking: OwnedPartitions,
    /// Set for members of the classic protocol.
    pub classic: Option<ClassicMember>,
}

impl ConsumerMember {
    pub(crate) fn new(member_id: &str) -> Self {
        Self {
            member_id: member_id.to_owned(),
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            client_host: String::new(),
            rebalance_timeout_ms: 0,
            assignor: None,
            topics: BTreeSet::new(),
            regex: None,
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: OwnedPartitions::new(),
            revoking: OwnedPartitions::new(),
            classic: None,
        }
    }

    /// Whether the member has all of the target of this epoch.
    pub(crate) fn is_at(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }

    pub(crate) fn assigned_partitions(&self) -> Partitions {
        let assigned = self.assigned.iter();
        assigned.map(|(topic, partitions)| (*topic, partitions.keys().copied().collect())).collect()
    }

    /// All partitions that nobody else may have yet.
    pub(crate) fn held(&self) -> Vec<(Uuid, i32)> {
        let topics = self.assigned.iter().chain(&self.revoking);
        topics.flat_map(|(topic, held)| held.keys().map(|index| (*topic, *index))).collect()
    }

    pub(crate) fn held_count(&self) -> usize {
        self.assigned.values().chain(self.revoking.values()).map(BTreeMap::len).sum()
    }

    /// The epoch in which the member got a partition that it holds.
    pub(crate) fn epoch_of(&self, topic: Uuid, partition: i32) -> Option<i32> {
        let of = |held: &OwnedPartitions| held.get(&topic)?.get(&partition).copied();
        of(&self.assigned).or_else(|| of(&self.revoking))
    }

    /// Whether all of `owned` is assigned to the member.
    pub(crate) fn has_assigned(&self, owned: &Partitions) -> bool {
        owned.iter().all(|(topic, partitions)| {
            let assigned = self.assigned.get(topic);
            assigned.is_some_and(|held| partitions.iter().all(|index| held.contains_key(index)))
        })
    }
}
