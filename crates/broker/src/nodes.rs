//! The brokers that clients are told of, and which of them leads a partition.
//!
//! A broker on its journal is alone and leads everything. In a cluster every broker serves every
//! partition; leaders only spread the clients. Rendezvous hashing lets a broker that comes or goes
//! move only its own share.

use std::sync::Arc;

use moldau_cluster::rack;
use moldau_protocol::Uuid;
use moldau_threads::RwLock;

use crate::config::NODE_ID;

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
                Arc::new(Members::new(vec![node], Some(NODE_ID)))
            }
            Self::Shared { members, .. } => Arc::clone(&members.read()),
        }
    }

    /// Takes up what the cluster says of its brokers.
    pub(crate) fn update(&self, members: Members) {
        if let Self::Shared { members: known, .. } = self {
            *known.write() = Arc::new(members);
        }
    }
}

impl Members {
    /// These brokers, of which one may be the controller and coordinator.
    pub(crate) fn new(brokers: Vec<Node>, controller: Option<i32>) -> Self {
        let ids = brokers.iter().map(|broker| broker.id).collect();
        Self { brokers, ids, controller }
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

    /// The one that leads everything, where there is one broker.
    pub(crate) fn only(&self) -> Option<i32> {
        match self.ids.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The broker that leads a partition.
    pub(crate) fn leader(&self, topic: Uuid, partition: i32) -> i32 {
        let id = u128::from_be_bytes(topic.into_bytes());
        // The partition goes through the hash as well: its low bits are of one half alone.
        let id = id.wrapping_add(u128::from(partition.cast_unsigned()) << 64);
        rack::owner(id, &self.ids).unwrap_or(NO_NODE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: i32) -> Node {
        Node { id, host: "localhost".to_owned(), port: 9_092 + id, rack: None }
    }

    #[test]
    fn partitions_are_spread_and_stay_where_they_are() {
        let topic = Uuid::from_bytes([7; 16]);
        let all = Members::new(vec![node(1), node(2), node(3)], Some(2));
        let fewer = Members::new(vec![node(1), node(3)], None);
        let mut shares = [0; 4];
        for partition in 0..3_000 {
            let leader = all.leader(topic, partition);
            shares[usize::try_from(leader).unwrap()] += 1;
            assert!(leader == 2 || fewer.leader(topic, partition) == leader);
        }
        assert!(shares[1..].iter().all(|share| (850..1_150).contains(share)), "{shares:?}");
        assert_eq!(all.coordinator(), Some(&node(2)));
        assert_eq!((fewer.controller_id(), fewer.coordinator()), (-1, None));
    }
}
