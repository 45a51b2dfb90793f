//! What a test does to a group, and what it asks about it.

use std::collections::HashMap;

use moldau_client::{Membership, MembershipEvent, MembershipOptions, TopicPartition};

use super::TestBroker;
use crate::Ledger;

impl TestBroker {
    /// Lets another member join the group, waits until the group has given it a partition of
    /// `topic`, which at least two partitions must have for that, and lets it leave. The app that
    /// had the partition has given it back then, and gets it again.
    ///
    /// # Panics
    /// The group does not take the member.
    pub async fn rebalance(&self, group: &str, topic: &str) {
        let options =
            MembershipOptions { topics: vec![topic.to_owned()], ..self.options().membership };
        let cluster = self.cluster().await;
        let mut member = Membership::join(cluster, group, options).await.expect("it can join");
        loop {
            match member.next().await.expect("it stays a member") {
                MembershipEvent::Assigned(partitions) if !partitions.is_empty() => break,
                MembershipEvent::Revoked(partitions) => member.revoked(&partitions),
                MembershipEvent::Assigned(_) | MembershipEvent::Lost(_) => {}
            }
        }
        member.leave().await.expect("it can leave");
    }

    /// Lets a group without members begin again at `offset` of all partitions of `topic`, so that
    /// the next app gets records again.
    ///
    /// # Panics
    /// The group has members, or the topic does not exist.
    pub async fn rewind(&self, group: &str, topic: &str, offset: i64) {
        let cluster = self.cluster().await;
        let partitions = cluster.topic(topic).await.expect("the topic exists").partitions.len();
        let partitions = (0..).take(partitions).map(|number| TopicPartition::of(topic, number));
        let offsets: HashMap<_, _> = partitions.map(|partition| (partition, offset)).collect();
        let committed = cluster.commit_offsets(group, &offsets).await;
        committed.expect("a group without members takes offsets");
    }

    /// What the group has committed of a partition: which records are done, also those above the
    /// first that is not.
    ///
    /// # Panics
    /// The broker does not answer.
    pub async fn ledger(&self, group: &str, topic: &str, partition: i32) -> Ledger {
        let committed = self.cluster().await.committed(group).await.expect("the broker answers");
        match committed.get(&TopicPartition::of(topic, partition)) {
            Some(committed) => Ledger::restore(committed.offset, &committed.metadata),
            None => Ledger::at(0),
        }
    }
}
