//! A member of the group: it polls the partitions that it holds, and commits how far it is.

use std::collections::BTreeMap;
use std::time::Duration;

use moldau_client::{
    Cluster, CommittedOffset, Membership, MembershipEvent, MembershipOptions, Start, TopicPartition,
};
use moldau_records::Decompressor;
use tokio::time::sleep;

use super::recorder::{Open, Replies};
use super::world::{POLL_WAIT, Polling, World};

/// After how long a member that is gone loses its partitions: the least that Kafka allows.
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// How long the group waits for a member to give up partitions.
const REBALANCE_TIMEOUT: Duration = Duration::from_secs(10);

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A member, with what it has polled.
pub(super) struct Member<'a> {
    world: &'a World,
    number: u32,
    replies: Replies,
    membership: Membership,
    polling: Polling,
    /// The offset of the next record in each partition of which something is not committed.
    uncommitted: BTreeMap<i32, i64>,
    /// The committed offset of each partition that it holds.
    committed: BTreeMap<i32, i64>,
}

impl<'a> Member<'a> {
    pub(super) async fn join(
        world: &'a World,
        cluster: &Cluster,
        number: u32,
    ) -> moldau_client::Result<Self> {
        let options = MembershipOptions {
            topics: vec![world.topic.clone()],
            session_timeout: SESSION_TIMEOUT,
            rebalance_timeout: REBALANCE_TIMEOUT,
            heartbeat_interval: HEARTBEAT_INTERVAL,
            ..MembershipOptions::default()
        };
        let fetcher = World::fetcher(cluster);
        Ok(Self {
            world,
            number,
            replies: Replies::new(&world.recorder),
            membership: Membership::join(cluster, &world.topic, options).await?,
            polling: Polling { fetcher, decompressor: Decompressor::default() },
            uncommitted: BTreeMap::new(),
            committed: BTreeMap::new(),
        })
    }

    /// Follows the group, or polls once, and may commit.
    pub(super) async fn turn(&mut self, commits: bool) -> moldau_client::Result<()> {
        let from_us = self.world.recorder.now_us();
        tokio::select! {
            event = self.membership.next() => return self.follow(event?).await,
            fetched = self.polling.fetcher.next() => {
                let fetched = fetched?;
                let (partition, records) = self.polling.records(&fetched)?;
                if !records.is_empty() {
                    Open::alone(&self.replies, self.number).poll(from_us, partition, records);
                }
                self.uncommitted.insert(fetched.partition, fetched.next_position);
            }
            () = sleep(POLL_WAIT) => {}
        }
        if commits { self.commit().await } else { Ok(()) }
    }

    /// Reads the committed offsets of all that it holds once more.
    pub(super) async fn read_back(&mut self) -> moldau_client::Result<()> {
        let held: Vec<TopicPartition> = self.membership.held().iter().cloned().collect();
        self.resume(&held).await
    }

    /// Whether it has committed everything before these ends of partitions.
    pub(super) fn has_committed(&self, (partition, end): (i32, i64)) -> bool {
        self.committed.get(&partition).is_some_and(|committed| *committed >= end)
    }

    /// Commits, and leaves the group so that others take over at once.
    pub(super) async fn leave(mut self) -> moldau_client::Result<()> {
        self.commit().await?;
        self.membership.leave().await
    }

    async fn follow(&mut self, event: MembershipEvent) -> moldau_client::Result<()> {
        match event {
            MembershipEvent::Assigned(partitions) => self.resume(&partitions).await,
            MembershipEvent::Revoked(partitions) => {
                self.stop(&partitions);
                self.commit().await?;
                self.forget(&partitions);
                self.membership.revoked(&partitions);
                Ok(())
            }
            MembershipEvent::Lost(partitions) => {
                self.stop(&partitions);
                self.forget(&partitions);
                Ok(())
            }
        }
    }

    /// Goes on from the committed offsets.
    async fn resume(&mut self, partitions: &[TopicPartition]) -> moldau_client::Result<()> {
        let from_us = self.world.recorder.now_us();
        for (partition, known) in self.membership.committed(partitions).await? {
            let offset = known.map(|known| known.offset);
            let start = offset.map_or(Start::Earliest, Start::Offset);
            let number = partition.partition;
            self.polling.fetcher.assign(&partition.topic, number, start).await?;
            let index = u32::try_from(number).unwrap_or(u32::MAX);
            Open::alone(&self.replies, self.number).resume(from_us, index, offset);
            self.committed.insert(number, offset.unwrap_or(0));
        }
        Ok(())
    }

    /// Commits, unless the group has gone on without this member.
    async fn commit(&mut self) -> moldau_client::Result<()> {
        let uncommitted = self.uncommitted.clone();
        if uncommitted.is_empty() {
            return Ok(());
        }
        let index = |number: &i32| u32::try_from(*number).unwrap_or(u32::MAX);
        let recorded: Vec<(u32, i64)> =
            uncommitted.iter().map(|(number, offset)| (index(number), *offset)).collect();
        let offset = |(number, offset): (&i32, &i64)| {
            (TopicPartition::of(&self.world.topic, *number), CommittedOffset::at(*offset))
        };
        let offsets: Vec<_> = uncommitted.iter().map(offset).collect();
        let mut open = Open::commit(&self.replies, self.number, &recorded);
        let answers = self.membership.commit(&offsets).await?;
        match answers.into_iter().find_map(|(_, answer)| answer.err()) {
            // The next owners poll the same records again.
            Some(error) if error.is_left_behind() => Ok(()),
            Some(error) => Err(error),
            None => {
                open.committed();
                self.committed.extend(uncommitted);
                self.uncommitted.clear();
                Ok(())
            }
        }
    }

    fn stop(&self, partitions: &[TopicPartition]) {
        for partition in partitions {
            self.polling.fetcher.unassign(partition);
        }
    }

    fn forget(&mut self, partitions: &[TopicPartition]) {
        for TopicPartition { partition, .. } in partitions {
            self.uncommitted.remove(partition);
            self.committed.remove(partition);
        }
    }
}
