//! A coordinator with topics, a clock and members of a streams group.

use std::collections::BTreeMap;

use moldau_coordinator::{
    Config, CopartitionGroup, Effects, GroupRecord, Groups, InternalTopic, Reply,
    StreamsGroupDescription, StreamsHeartbeat, StreamsHeartbeatReply, StreamsStatusCode,
    StreamsTasks, StreamsTopology, Subtopology, TaskIds, Token,
};
use moldau_protocol::ErrorCode;

use crate::consumer_world::TestTopics;

pub(crate) const GROUP: &str = "application";
pub(crate) const SESSION_MS: i64 = 45_000;
pub(crate) const DELAY_MS: i64 = 3_000;
pub(crate) const REBALANCE_MS: i32 = 60_000;

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

    /// A group assigns with its first heartbeat, and as often as anything changes.
    pub(crate) fn hasty(standby_replicas: i32) -> Self {
        let mut config = Config::default();
        config.streams.settings.initial_rebalance_delay_ms = 0;
        config.streams.settings.assignment_interval_ms = 0;
        config.streams.settings.standby_replicas = standby_replicas;
        Self::with(config)
    }

    pub(crate) fn with(config: Config) -> Self {
        let groups = Groups::new(config.clone(), 7, 1);
        Self { now_ms: 1, config, groups, topics: TestTopics::default(), records: Vec::new() }
    }

    pub(crate) fn send(&mut self, request: &StreamsHeartbeat) -> StreamsHeartbeatReply {
        let topics = self.topics.clone();
        let effects = self.groups.streams_heartbeat(self.now_ms, request, &topics, Token(1));
        let Effects { replies, records } = effects;
        self.records.extend(records);
        match <[_; 1]>::try_from(replies).expect("one reply") {
            [(_, Reply::StreamsHeartbeat(reply))] => *reply,
            other => panic!("no heartbeat but {other:?}"),
        }
    }

    /// Creates the internal topics that an answer asks for, as the broker does.
    pub(crate) fn create(&mut self, reply: &StreamsHeartbeatReply) {
        for topic in &reply.missing_topics {
            self.topics.put(&topic.name, topic.partitions);
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

    /// The broker starts again from what it wrote, or from a snapshot of it.
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

    pub(crate) fn describe(&self) -> StreamsGroupDescription {
        self.groups.describe_streams(GROUP).expect("the group is there")
    }
}

/// Reads `in`, keeps a state.
pub(crate) fn counting() -> StreamsTopology {
    let part = Subtopology {
        source_topics: vec!["in".to_owned()],
        changelog_topics: vec![internal("app-counts-changelog", 0)],
        ..Subtopology::default()
    };
    StreamsTopology { epoch: 0, subtopologies: [("0".to_owned(), part)].into() }
}

/// Reads `in` and writes it to a repartition topic, from which it counts; joins `left` and `right`.
pub(crate) fn rekeying() -> StreamsTopology {
    let writing = Subtopology {
        source_topics: vec!["in".to_owned()],
        repartition_sinks: vec!["app-rekeyed-repartition".to_owned()],
        ..Subtopology::default()
    };
    let counting = Subtopology {
        repartition_sources: vec![internal("app-rekeyed-repartition", 0)],
        changelog_topics: vec![internal("app-counts-changelog", 0)],
        ..Subtopology::default()
    };
    let joining = Subtopology {
        source_topics: vec!["left".to_owned(), "right".to_owned()],
        changelog_topics: vec![internal("app-joined-changelog", 0)],
        copartition_groups: vec![CopartitionGroup {
            source_topics: vec![0, 1],
            repartition_sources: Vec::new(),
        }],
        ..Subtopology::default()
    };
    let parts = [("0", writing), ("1", counting), ("2", joining)];
    let parts = parts.map(|(id, part)| (id.to_owned(), part));
    StreamsTopology { epoch: 0, subtopologies: parts.into() }
}

pub(crate) fn internal(name: &str, partitions: i32) -> InternalTopic {
    let configs = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    InternalTopic { name: name.to_owned(), partitions, configs, ..InternalTopic::default() }
}

pub(crate) fn tasks(parts: &[(&str, &[i32])]) -> TaskIds {
    let parts = parts.iter();
    parts.map(|(id, partitions)| ((*id).to_owned(), partitions.iter().copied().collect())).collect()
}

pub(crate) fn codes(reply: &StreamsHeartbeatReply) -> Vec<StreamsStatusCode> {
    reply.statuses.iter().map(|status| status.code).collect()
}

/// A member of the streams group as its own process sees it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) process: String,
    pub(crate) instance: Option<String>,
    pub(crate) epoch: i32,
    pub(crate) topology: StreamsTopology,
    /// What it runs.
    pub(crate) tasks: StreamsTasks,
}

impl Member {
    pub(crate) fn new(id: &str, process: &str, topology: StreamsTopology) -> Self {
        Self {
            id: id.to_owned(),
            process: process.to_owned(),
            instance: None,
            epoch: 0,
            topology,
            tasks: StreamsTasks::default(),
        }
    }

    /// A heartbeat that says all that the member has to say in its epoch.
    pub(crate) fn full(&self) -> StreamsHeartbeat {
        let joins = self.epoch == 0;
        StreamsHeartbeat {
            group_id: GROUP.to_owned(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance.clone(),
            rebalance_timeout_ms: if joins { REBALANCE_MS } else { -1 },
            topology: joins.then(|| self.topology.clone()),
            active: Some(self.tasks.active.clone()),
            standby: Some(self.tasks.standby.clone()),
            warmup: Some(TaskIds::new()),
            process_id: joins.then(|| self.process.clone()),
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            ..StreamsHeartbeat::default()
        }
    }

    /// Sends a full heartbeat and takes what comes back.
    pub(crate) fn beat(&mut self, world: &mut World) -> StreamsHeartbeatReply {
        let reply = world.send(&self.full());
        self.take(&reply);
        reply
    }

    pub(crate) fn take(&mut self, reply: &StreamsHeartbeatReply) {
        if reply.error == ErrorCode::None {
            self.epoch = reply.member_epoch;
            if let Some(tasks) = &reply.assignment {
                self.tasks.clone_from(tasks);
            }
        }
    }
}
