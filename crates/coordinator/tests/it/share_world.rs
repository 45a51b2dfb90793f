//! A coordinator with topics, a clock and members of a share group.

use moldau_coordinator::{
    Config, Effects, GroupRecord, Groups, Partitions, Reply, ShareGroupDescription, ShareHeartbeat,
    ShareHeartbeatReply, Token,
};
use moldau_protocol::ErrorCode;

use crate::consumer_world::TestTopics;

pub(crate) const GROUP: &str = "workers";

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
        Self { now_ms: 1, config, groups, topics: TestTopics::default(), records: Vec::new() }
    }

    pub(crate) fn send(&mut self, request: &ShareHeartbeat) -> ShareHeartbeatReply {
        let topics = self.topics.clone();
        let effects = self.groups.share_heartbeat(self.now_ms, request, &topics, Token(1));
        let Effects { replies, records } = effects;
        self.records.extend(records);
        match <[_; 1]>::try_from(replies).expect("one reply") {
            [(_, Reply::ShareHeartbeat(reply))] => reply,
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

    pub(crate) fn describe(&self) -> ShareGroupDescription {
        self.groups.describe_share(GROUP).expect("the group is there")
    }
}

/// A member of the share group as its own process sees it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) epoch: i32,
    pub(crate) topics: Vec<String>,
    pub(crate) assigned: Partitions,
}

impl Member {
    pub(crate) fn new(id: &str, topics: &[&str]) -> Self {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        Self { id: id.to_owned(), epoch: 0, topics, assigned: Partitions::new() }
    }

    /// The member as it would be in another epoch.
    pub(crate) fn at(&self, epoch: i32) -> Self {
        Self { epoch, ..self.clone() }
    }

    /// A heartbeat that names the subscription.
    pub(crate) fn full(&self) -> ShareHeartbeat {
        ShareHeartbeat { topics: Some(self.topics.clone()), ..self.brief() }
    }

    /// A heartbeat that names nothing new.
    pub(crate) fn brief(&self) -> ShareHeartbeat {
        ShareHeartbeat {
            group_id: GROUP.to_owned(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rack_id: None,
            topics: None,
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
        }
    }

    /// Sends a full heartbeat and takes what comes back.
    pub(crate) fn beat(&mut self, world: &mut World) -> ShareHeartbeatReply {
        let reply = world.send(&self.full());
        self.take(&reply);
        reply
    }

    pub(crate) fn take(&mut self, reply: &ShareHeartbeatReply) {
        if reply.error == ErrorCode::None {
            self.epoch = reply.member_epoch;
            if let Some(assigned) = &reply.assignment {
                self.assigned.clone_from(assigned);
            }
        }
    }
}
