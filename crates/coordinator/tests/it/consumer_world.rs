//! A coordinator with topics, a clock and members of the consumer protocol.

use std::collections::{BTreeMap, BTreeSet};

use moldau_coordinator::{
    Config, ConsumerHeartbeat, ConsumerHeartbeatReply, Effects, GroupRecord, GroupState, Groups,
    OffsetCommitRequest, PartitionCommit, Partitions, Reply, Token, TopicCommit, TopicShape,
    Topics,
};
use moldau_protocol::{ErrorCode, Uuid};

pub(crate) const GROUP: &str = "payments";
pub(crate) const REBALANCE_MS: i32 = 60_000;
pub(crate) const SESSION_MS: i64 = 45_000;
pub(crate) const INTERVAL_MS: i64 = 1_000;

/// The topics of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestTopics {
    version: u64,
    topics: BTreeMap<String, TopicShape>,
    hidden: BTreeSet<String>,
}

impl TestTopics {
    pub(crate) fn put(&mut self, name: &str, partitions: i32) -> Uuid {
        self.version += 1;
        let id = Uuid::from_bytes((u128::from(self.version) << 64).to_be_bytes());
        let known = self.topics.get(name).map(|topic| topic.id);
        let id = known.unwrap_or(id);
        self.topics.insert(name.to_owned(), TopicShape { id, partitions });
        id
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.version += 1;
        self.topics.remove(name);
    }

    /// The members may not describe the topic.
    pub(crate) fn hide(&mut self, name: &str) {
        self.hidden.insert(name.to_owned());
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, TopicShape)> {
        self.topics.iter().map(|(name, shape)| (name.as_str(), *shape))
    }
}

impl Topics for TestTopics {
    fn version(&self) -> u64 {
        self.version
    }

    fn by_name(&self, name: &str) -> Option<TopicShape> {
        self.topics.get(name).copied()
    }

    fn matching(&self, accepts: &dyn Fn(&str) -> bool) -> Vec<String> {
        let names = self.topics.keys().filter(|name| !self.hidden.contains(*name));
        names.filter(|name| accepts(name)).cloned().collect()
    }
}

pub(crate) struct World {
    pub(crate) now_ms: i64,
    pub(crate) config: Config,
    pub(crate) groups: Groups,
    pub(crate) topics: TestTopics,
    pub(crate) records: Vec<GroupRecord>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let groups = Groups::new(config.clone(), 7, 1);
        let (topics, records) = (TestTopics::default(), Vec::new());
        Self { now_ms: 1, config, groups, topics, records }
    }

    fn one(&mut self, effects: Effects) -> Reply {
        self.records.extend(effects.records);
        let [(_, reply)] = <[_; 1]>::try_from(effects.replies).expect("one reply");
        reply
    }

    /// A heartbeat of a client that makes its member id itself.
    pub(crate) fn send(&mut self, request: ConsumerHeartbeat) -> ConsumerHeartbeatReply {
        self.send_as(request, true)
    }

    pub(crate) fn send_as(
        &mut self,
        request: ConsumerHeartbeat,
        makes_own_id: bool,
    ) -> ConsumerHeartbeatReply {
        let topics = self.topics.clone();
        let effects =
            self.groups.consumer_heartbeat(self.now_ms, request, makes_own_id, &topics, Token(1));
        match self.one(effects) {
            Reply::ConsumerHeartbeat(reply) => reply,
            other => panic!("no heartbeat but {other:?}"),
        }
    }

    pub(crate) fn pass(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        while self.groups.next_deadline() <= end_ms {
            self.now_ms = self.now_ms.max(self.groups.next_deadline());
            let effects = self.groups.tick(self.now_ms, &self.topics);
            self.records.extend(effects.records);
            assert_eq!(effects.replies, []);
        }
        self.now_ms = end_ms;
    }

    /// The broker starts again from what it wrote, half the time from a snapshot of it.
    pub(crate) fn restart(&mut self, from_snapshot: bool) {
        let replayed = |records: Vec<GroupRecord>| {
            let mut groups = Groups::new(self.config.clone(), 8, self.now_ms);
            for record in records {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                groups.replay(GroupRecord::decode(&bytes).expect("what was written is read"));
            }
            groups
        };
        let mut groups = replayed(self.records.clone());
        if from_snapshot {
            groups = replayed(groups.snapshot().collect());
        }
        let effects = groups.recovered(self.now_ms);
        self.records.extend(effects.records);
        self.groups = groups;
    }

    pub(crate) fn commit(
        &mut self,
        member_id: &str,
        epoch: i32,
        (topic, partition): (&str, i32),
        offset: i64,
    ) -> ErrorCode {
        let topic_id = self.topics.by_name(topic).map_or(Uuid::ZERO, |topic| topic.id);
        let commit =
            PartitionCommit { partition, offset, leader_epoch: -1, metadata: String::new() };
        let request = OffsetCommitRequest {
            group_id: GROUP.to_owned(),
            generation: epoch,
            member_id: member_id.to_owned(),
            instance_id: None,
            retention_ms: None,
            knows_member_epochs: true,
            topics: vec![TopicCommit {
                topic: topic.to_owned(),
                topic_id,
                partitions: vec![commit],
            }],
        };
        let effects = self.groups.offset_commit(self.now_ms, &request, Token(2));
        match self.one(effects) {
            Reply::OffsetCommit(results) => results[0].partitions[0].1,
            other => panic!("no commit but {other:?}"),
        }
    }

    pub(crate) fn committed(&self, topic: &str, partition: i32) -> i64 {
        let asked = [(topic.to_owned(), vec![partition])];
        self.groups.offset_fetch(GROUP, Some(&asked))[0].1[0].offset
    }

    pub(crate) fn state(&self) -> GroupState {
        self.groups.describe_consumer(GROUP).expect("the group is there").state
    }
}

/// A client of the consumer protocol: it sends what it holds, takes what it is given, and says
/// when it has given something up.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) epoch: i32,
    pub(crate) topics: Vec<String>,
    pub(crate) regex: Option<String>,
    pub(crate) owned: Partitions,
}

impl Client {
    pub(crate) fn new(id: &str, topics: &[&str]) -> Self {
        Self {
            id: id.to_owned(),
            instance_id: None,
            epoch: 0,
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            regex: None,
            owned: Partitions::new(),
        }
    }

    /// A heartbeat that says everything.
    pub(crate) fn full(&self) -> ConsumerHeartbeat {
        ConsumerHeartbeat {
            group_id: GROUP.to_owned(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance_id.clone(),
            rack_id: None,
            rebalance_timeout_ms: REBALANCE_MS,
            topics: Some(self.topics.clone()),
            regex: self.regex.clone(),
            assignor: None,
            owned: Some(self.owned.clone()),
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
        }
    }

    /// A heartbeat that says nothing new.
    pub(crate) fn brief(&self) -> ConsumerHeartbeat {
        ConsumerHeartbeat {
            rebalance_timeout_ms: -1,
            topics: None,
            regex: None,
            owned: None,
            ..self.full()
        }
    }

    pub(crate) fn leaving(&self, epoch: i32) -> ConsumerHeartbeat {
        ConsumerHeartbeat { member_epoch: epoch, ..self.brief() }
    }

    /// Sends a full heartbeat and takes what comes back.
    pub(crate) fn beat(&mut self, world: &mut World) -> ConsumerHeartbeatReply {
        let reply = world.send(self.full());
        if reply.error == ErrorCode::None {
            self.epoch = reply.member_epoch;
            if let Some(assigned) = &reply.assignment {
                self.owned.clone_from(assigned);
            }
        }
        reply
    }

    pub(crate) fn count(&self) -> usize {
        self.owned.values().map(BTreeSet::len).sum()
    }
}

/// Rounds of heartbeats until nothing changes any more.
pub(crate) fn settle(world: &mut World, clients: &mut [Client]) {
    for _round in 0..8 {
        world.pass(INTERVAL_MS);
        for client in clients.iter_mut() {
            assert_eq!(client.beat(world).error, ErrorCode::None, "{}", client.id);
        }
    }
    assert_eq!(world.state(), GroupState::Stable);
}
