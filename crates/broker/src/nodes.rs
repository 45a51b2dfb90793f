//! The brokers that clients are told of, and which of them leads a partition.
//!
//! A broker on its journal is alone and leads everything. In a cluster every broker serves every
//! partition; leaders only spread the clients. Each leads as many partitions of a topic as any
//! other, or one more. Rendezvous hashing lets a broker that comes or goes move little but its own
//! share.
//!
//! Share partitions are with the controller alone, so it leads the topics of share groups. Clients
//! take the leader of the greatest epoch, so each controller has two epochs of leaders: one for the
//! leaders of other topics, and the next one for itself. A topic moves to the controller with its
//! first share group; clients that know that stay there until another broker is the controller.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use moldau_cluster::rack;
use moldau_protocol::Uuid;
use moldau_threads::RwLock;

use crate::config::{LEADER_EPOCH, NODE_ID};

/// Kafka's number for no broker.
const NO_NODE: i32 = -1;

/// A broker as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) id: i32,
    pub(crate) host: String,
    pub(crate) port: i32,
    pub(crate) rack: Option<String>,
}

/// The brokers at one moment.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) brokers: Vec<Node>,
    ids: Vec<i32>,
    controller: Option<i32>,
    /// Of the controller, or of the one before if there is none.
    epoch: i64,
    /// Topics of share groups.
    shared: HashSet<Uuid>,
}

/// The brokers as this one knows them.
pub(crate) enum Nodes {
    /// There is no other.
    Alone,
    /// Those of a cluster.
    Shared {
        /// This broker.
        id: i32,
        /// Guards what is known of all.
        members: RwLock<Arc<Members>>,
    },
}

impl Nodes {
    /// A broker of a cluster of which nothing else is known.
    pub(crate) fn shared(id: i32) -> Self {
        Self::Shared { id, members: RwLock::default() }
    }

    /// The id of this broker.
    pub(crate) fn id(&self) -> i32 {
        match self {
            Self::Alone => NODE_ID,
            Self::Shared { id, .. } => *id,
        }
    }

    /// Whether there may be others.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared { .. })
    }

    /// The brokers; `own` is the address of one that is alone.
    pub(crate) fn members(&self, own: impl FnOnce() -> (String, i32)) -> Arc<Members> {
        match self {
            Self::Alone => {
                let (host, port) = own();
                let node = Node { id: NODE_ID, host, port, rack: None };
                Arc::new(Members::new(vec![node], Some((NODE_ID, ALONE_EPOCH))))
            }
            Self::Shared { members, .. } => Arc::clone(&members.read()),
        }
    }

    /// Takes up what the cluster says of its brokers.
    pub(crate) fn update(&self, mut members: Members) {
        if let Self::Shared { members: known, .. } = self {
            let mut known = known.write();
            members.epoch = members.epoch.max(known.epoch);
            *known = Arc::new(members);
        }
    }

    /// The other broker that has the share partitions, and its epoch as their leader.
    pub(crate) fn share_leader(&self) -> Option<(Node, i32)> {
        let Self::Shared { id, members } = self else { return None };
        let members = members.read();
        let controller = members.coordinator().filter(|node| node.id != *id)?;
        Some((controller.clone(), members.share_epoch()))
    }
}

impl Members {
    /// These brokers, of which one may be the controller and coordinator, of this epoch.
    pub(crate) fn new(brokers: Vec<Node>, controller: Option<(i32, i64)>) -> Self {
        let ids = brokers.iter().map(|broker| broker.id).collect();
        let epoch = controller.map_or(ALONE_EPOCH, |(_, epoch)| epoch);
        let controller = controller.map(|(id, _)| id);
        Self { brokers, ids, controller, epoch, shared: HashSet::new() }
    }

    /// The same brokers, where share groups read these topics.
    pub(crate) fn sharing(self, shared: HashSet<Uuid>) -> Self {
        Self { shared, ..self }
    }

    /// The epoch of the leaders of topics without share groups: greater with each controller.
    fn leader_epoch(&self) -> i32 {
        i32::try_from(self.epoch).unwrap_or(i32::MAX).saturating_mul(EPOCHS_PER_CONTROLLER)
    }

    /// The epoch of the controller as a leader.
    fn share_epoch(&self) -> i32 {
        self.leader_epoch().saturating_add(1)
    }

    /// The controller, or Kafka's number for none.
    pub(crate) fn controller_id(&self) -> i32 {
        self.controller.unwrap_or(NO_NODE)
    }

    /// The broker that coordinates groups.
    pub(crate) fn coordinator(&self) -> Option<&Node> {
        let controller = self.controller?;
        self.brokers.iter().find(|broker| broker.id == controller)
    }

    /// The broker that leads all partitions of a topic, if it is one, and its epoch.
    pub(crate) fn only_leader(&self, topic: Uuid) -> Option<(i32, i32)> {
        if self.shared.contains(&topic)
            && let Some(controller) = self.coordinator()
        {
            return Some((controller.id, self.share_epoch()));
        }
        match self.ids.as_slice() {
            [only] => Some((*only, self.epoch_of(topic))),
            _ => None,
        }
    }

    /// The brokers that lead some partitions of a topic with `count`, each with its epoch.
    pub(crate) fn leaders(
        &self,
        topic: Uuid,
        partitions: Range<i32>,
        count: i32,
    ) -> Vec<(i32, i32)> {
        if let Some(only) = self.only_leader(topic) {
            return partitions.map(|_| only).collect();
        }
        let epoch = self.epoch_of(topic);
        if self.ids.is_empty() {
            return partitions.map(|_| (NO_NODE, epoch)).collect();
        }
        let topic = u128::from_be_bytes(topic.into_bytes());
        // The partition goes through the hash as well: its low bits are of one half alone.
        let id = |partition: i32| topic.wrapping_add(u128::from(partition.cast_unsigned()) << 64);
        let mut leaders = Vec::with_capacity(partitions.len());
        let mut first = partitions.start - partitions.start % SPREAD_TOGETHER;
        while first < partitions.end {
            let end = first.saturating_add(SPREAD_TOGETHER).min(count.max(partitions.end));
            let ids: Vec<u128> = (first..end).map(id).collect();
            let owners = (first..end).zip(rack::even_owners(&ids, &self.ids));
            let asked = owners.filter(|(partition, _)| partitions.contains(partition));
            leaders.extend(asked.map(|(_, owner)| (owner, epoch)));
            first = end;
        }
        leaders
    }

    /// An epoch never falls, also while there is no controller.
    fn epoch_of(&self, topic: Uuid) -> i32 {
        match self.shared.contains(&topic) {
            true => self.share_epoch(),
            false => self.leader_epoch(),
        }
    }
}

/// The epoch of a broker that is alone: its logs have no other.
const ALONE_EPOCH: i64 = LEADER_EPOCH as i64;

/// Consecutive partitions of a topic that are spread evenly. More would cost more for each.
const SPREAD_TOGETHER: i32 = 60;

/// Those of the leaders of Metadata and of the leader of share partitions.
const EPOCHS_PER_CONTROLLER: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: i32) -> Node {
        Node { id, host: "localhost".to_owned(), port: 9_092 + id, rack: None }
    }

    #[test]
    fn partitions_are_spread_and_stay_where_they_are() {
        let topic = Uuid::from_bytes([7; 16]);
        let all = Members::new(vec![node(1), node(2), node(3)], Some((2, 1)));
        let fewer = Members::new(vec![node(1), node(3)], None);
        for count in [1, 3, 12, 61, 3_000] {
            let leaders = all.leaders(topic, 0..count, count);
            let after = fewer.leaders(topic, 0..count, count);
            let shares = [1, 2, 3].map(|id| leaders.iter().filter(|it| it.0 == id).count());
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1 + leaders.len() / 60, "{shares:?}");
            assert!(leaders.iter().all(|(_, epoch)| *epoch == 2));
            let moved = leaders.iter().zip(&after).filter(|(it, _)| it.0 != 2);
            let moved = moved.filter(|(before, after)| before.0 != after.0).count();
            assert!(moved * 4 <= leaders.len() + 4, "{moved} of {count}");
            // Each range tells the same.
            for first in 0..count.min(200) {
                let end = count.min(first + 7);
                let place = usize::try_from(first).unwrap();
                let some = all.leaders(topic, first..end, count);
                assert_eq!(some, leaders[place..place + some.len()]);
            }
        }
        assert_eq!(all.coordinator(), Some(&node(2)));
        assert_eq!((fewer.controller_id(), fewer.coordinator()), (-1, None));
    }

    #[test]
    fn each_controller_leads_share_partitions_by_an_epoch_that_no_leader_has() {
        let nodes = Nodes::shared(1);
        let topic = Uuid::from_bytes([7; 16]);
        let known = || nodes.members(|| unreachable!("it is not alone"));
        let epoch = || known().leaders(topic, 0..1, 9)[0].1;
        let mut last = -1;
        for controller in [2, 3, 2] {
            let controller_epoch = Some((controller, i64::from(last) + 1));
            let members = || Members::new(vec![node(1), node(2), node(3)], controller_epoch);
            nodes.update(members());
            let (leader, own) = nodes.share_leader().unwrap();
            assert_eq!(leader.id, controller);
            assert!(last < epoch() && epoch() < own);
            nodes.update(members().sharing([topic].into()));
            assert_eq!(known().leaders(topic, 0..9, 9), [(controller, own); 9]);
            last = own;
            // Without a controller its epoch stays.
            nodes.update(Members::new(vec![node(1), node(3)], None).sharing([topic].into()));
            assert_eq!((nodes.share_leader(), epoch()), (None, own));
            nodes.update(Members::new(vec![node(1)], None));
            assert_eq!((nodes.share_leader(), epoch() + 1), (None, own));
        }
        nodes.update(Members::new(vec![node(1)], Some((1, 99))));
        assert_eq!(nodes.share_leader(), None);
    }
}
