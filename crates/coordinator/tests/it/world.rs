//! A coordinator with a clock and short ways to write requests.

use crate::consumer_world::TestTopics;
use bytes::Bytes;
use moldau_coordinator::{
    Config, Effects, GroupRecord, GroupState, Groups, HeartbeatRequest, JoinReply, JoinRequest,
    LeaveReply, LeaveRequest, LeavingMember, OffsetCommitRequest, PartitionCommit, Protocol, Reply,
    SyncReply, SyncRequest, Token, TopicCommit,
};
use moldau_protocol::{ErrorCode, Uuid};

pub(crate) const GROUP: &str = "orders";
pub(crate) const SESSION_MS: i32 = 10_000;
pub(crate) const REBALANCE_MS: i32 = 60_000;

pub(crate) struct World {
    pub(crate) now_ms: i64,
    pub(crate) groups: Groups,
    /// Every record so far.
    pub(crate) records: Vec<GroupRecord>,
    /// Every reply that nobody has looked at yet.
    replies: Vec<(Token, Reply)>,
    last_token: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        Self {
            now_ms: 0,
            groups: Groups::new(config, 7, 0),
            records: Vec::new(),
            replies: Vec::new(),
            last_token: 0,
        }
    }

    pub(crate) fn token(&mut self) -> Token {
        self.last_token += 1;
        Token(self.last_token)
    }

    pub(crate) fn take(&mut self, effects: Effects) {
        self.records.extend(effects.records);
        self.replies.extend(effects.replies);
    }

    /// Lets time pass, acting on every deadline on the way.
    pub(crate) fn pass(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        while self.groups.next_deadline() <= end_ms {
            self.now_ms = self.now_ms.max(self.groups.next_deadline());
            let effects = self.groups.tick(self.now_ms, &TestTopics::default());
            self.take(effects);
        }
        self.now_ms = end_ms;
    }

    /// The reply to a request, if it is there; at most once.
    pub(crate) fn reply(&mut self, token: Token) -> Option<Reply> {
        let at = self.replies.iter().position(|(own, _)| *own == token)?;
        Some(self.replies.remove(at).1)
    }

    pub(crate) fn joined(&mut self, token: Token) -> JoinReply {
        match self.reply(token) {
            Some(Reply::Join(reply)) => reply,
            other => panic!("no join reply but {other:?}"),
        }
    }

    pub(crate) fn synced(&mut self, token: Token) -> SyncReply {
        match self.reply(token) {
            Some(Reply::Sync(reply)) => reply,
            other => panic!("no sync reply but {other:?}"),
        }
    }

    pub(crate) fn join(&mut self, request: JoinRequest) -> Token {
        let token = self.token();
        let effects = self.groups.join(self.now_ms, request, &TestTopics::default(), token);
        self.take(effects);
        token
    }

    pub(crate) fn sync(&mut self, request: &SyncRequest) -> Token {
        let token = self.token();
        let effects = self.groups.sync(self.now_ms, request, &TestTopics::default(), token);
        self.take(effects);
        token
    }

    pub(crate) fn heartbeat(&mut self, id: &str, generation: i32) -> ErrorCode {
        self.heartbeat_as(id, None, generation)
    }

    pub(crate) fn heartbeat_as(
        &mut self,
        id: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> ErrorCode {
        let token = self.token();
        let request = HeartbeatRequest {
            group_id: GROUP.to_owned(),
            generation,
            member_id: id.to_owned(),
            instance_id: instance.map(str::to_owned),
        };
        let effects = self.groups.heartbeat(self.now_ms, &request, token);
        self.take(effects);
        match self.reply(token) {
            Some(Reply::Heartbeat(error)) => error,
            other => panic!("no heartbeat reply but {other:?}"),
        }
    }

    /// `members`: member id and instance id.
    pub(crate) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> LeaveReply {
        let token = self.token();
        let leaving = members.iter().map(|(id, instance)| LeavingMember {
            member_id: (*id).to_owned(),
            instance_id: instance.map(str::to_owned),
        });
        let request = LeaveRequest { group_id: GROUP.to_owned(), members: leaving.collect() };
        let effects = self.groups.leave(self.now_ms, &request, &TestTopics::default(), token);
        self.take(effects);
        match self.reply(token) {
            Some(Reply::Leave(reply)) => reply,
            other => panic!("no leave reply but {other:?}"),
        }
    }

    pub(crate) fn commit(&mut self, request: &OffsetCommitRequest) -> ErrorCode {
        let token = self.token();
        let effects = self.groups.offset_commit(self.now_ms, request, token);
        self.take(effects);
        match self.reply(token) {
            Some(Reply::OffsetCommit(topics)) => topics[0].partitions[0].1,
            other => panic!("no commit reply but {other:?}"),
        }
    }

    pub(crate) fn committed(&self, topic: &str, partition: i32) -> i64 {
        let asked = [(topic.to_owned(), vec![partition])];
        self.groups.offset_fetch(GROUP, Some(&asked))[0].1[0].offset
    }

    pub(crate) fn state(&self) -> Option<GroupState> {
        self.groups.describe(GROUP).map(|group| group.state)
    }

    /// A stable group of dynamic members, the leader first, and its generation.
    pub(crate) fn stable(&mut self, size: usize) -> (Vec<String>, i32) {
        let requests = (0..size).map(|_| join_request("")).collect();
        self.stable_of(requests)
    }

    /// A stable group of the members that these requests make, in the order of the requests
    /// except that the leader comes first.
    pub(crate) fn stable_of(&mut self, requests: Vec<JoinRequest>) -> (Vec<String>, i32) {
        let tokens: Vec<Token> = requests.into_iter().map(|request| self.join(request)).collect();
        // The initial delay, and once more because of those that came after the first.
        self.pass(6_000);
        let replies: Vec<JoinReply> = tokens.into_iter().map(|token| self.joined(token)).collect();
        let generation = replies[0].generation;
        let leader = replies[0].leader.clone();
        let mut ids: Vec<String> = replies.into_iter().map(|reply| reply.member_id).collect();
        ids.sort_by_key(|id| *id != leader);
        self.sync_all(&ids, generation);
        (ids, generation)
    }

    /// All members sync, the leader (first) last.
    pub(crate) fn sync_all(&mut self, ids: &[String], generation: i32) {
        let assignments: Vec<(String, Bytes)> =
            ids.iter().map(|id| (id.clone(), Bytes::from(format!("for {id}")))).collect();
        let mut tokens = Vec::new();
        for id in ids[1..].iter().chain(&ids[..1]) {
            let assignments = if *id == ids[0] { assignments.clone() } else { Vec::new() };
            tokens.push((id, self.sync(&sync_request(id, generation, assignments))));
        }
        for (id, token) in tokens {
            let reply = self.synced(token);
            assert_eq!(reply.error, ErrorCode::None);
            assert_eq!(reply.assignment, Bytes::from(format!("for {id}")));
        }
        assert_eq!(self.state(), Some(GroupState::Stable));
    }
}

/// A dynamic consumer that needs no second round to learn its id.
pub(crate) fn join_request(id: &str) -> JoinRequest {
    JoinRequest {
        group_id: GROUP.to_owned(),
        member_id: id.to_owned(),
        instance_id: None,
        client_id: "app".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol("range")],
        require_known_member_id: false,
        supports_skipping_assignment: false,
    }
}

pub(crate) fn static_request(instance: &str) -> JoinRequest {
    JoinRequest { instance_id: Some(instance.to_owned()), ..join_request("") }
}

/// A protocol whose metadata subscribes the topic `sales`.
pub(crate) fn protocol(name: &str) -> Protocol {
    Protocol { name: name.to_owned(), metadata: subscription("sales") }
}

pub(crate) fn subscription(topic: &str) -> Bytes {
    let length = i16::try_from(topic.len()).expect("a short name");
    let parts: [&[u8]; 5] =
        [&[0, 0, 0, 0, 0, 1], &length.to_be_bytes(), topic.as_bytes(), &[255; 4], &[]];
    Bytes::from(parts.concat())
}

pub(crate) fn sync_request(
    id: &str,
    generation: i32,
    assignments: Vec<(String, Bytes)>,
) -> SyncRequest {
    SyncRequest {
        group_id: GROUP.to_owned(),
        generation,
        member_id: id.to_owned(),
        instance_id: None,
        protocol_type: Some("consumer".to_owned()),
        protocol_name: None,
        assignments,
    }
}

pub(crate) fn commit_request(
    id: &str,
    generation: i32,
    topic: &str,
    offset: i64,
) -> OffsetCommitRequest {
    let commit =
        PartitionCommit { partition: 0, offset, leader_epoch: 4, metadata: "note".to_owned() };
    OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation,
        member_id: id.to_owned(),
        instance_id: None,
        retention_ms: None,
        knows_member_epochs: true,
        topics: vec![TopicCommit {
            topic: topic.to_owned(),
            topic_id: Uuid::ZERO,
            partitions: vec![commit],
        }],
    }
}
