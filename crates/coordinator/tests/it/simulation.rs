//! Random lives of consumers on a simulated network, from printed seeds.
//!
//! Members join, heartbeat, commit, leave, crash and come back; messages are delayed, reordered and
//! lost; the broker restarts from its records. Then everything calms down and the groups have to
//! become stable with exactly the members that live.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use fastrand::Rng;
use moldau_coordinator::{
    Config, Effects, GroupRecord, GroupState, Groups, HeartbeatRequest, JoinReply, JoinRequest,
    LeaveRequest, LeavingMember, OffsetCommitRequest, PartitionCommit, Protocol, Reply, SyncReply,
    SyncRequest, Token, TopicCommit,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::consumer_world::TestTopics;

const SCHEDULES: u64 = 2_000;
const CHAOS_MS: i64 = 60_000;
/// Sessions, join and sync timeouts of members that are gone, one after another, and some rounds.
const CALM_MS: i64 = 150_000;
const REBALANCE_MS: i32 = 15_000;
const HEARTBEAT_MS: i64 = 2_000;

#[test]
fn random_lives_keep_the_promises_of_a_group() {
    let (mut commits, mut assigned, mut restarts) = (0, 0, 0);
    for seed in 0..SCHEDULES {
        let run = std::panic::catch_unwind(|| Simulation::new(seed).run());
        let Ok(seen) = run else {
            panic!("the schedule of seed {seed} broke a promise, see above")
        };
        commits += seen.commits;
        assigned += seen.assigned;
        restarts += seen.restarts;
    }
    // A simulation in which nothing happens would keep every promise.
    assert!(commits > 10 * SCHEDULES, "{commits} commits");
    assert!(assigned > 10 * SCHEDULES, "{assigned} assignments");
    assert!(restarts > SCHEDULES, "{restarts} restarts");
}

#[derive(Clone, Debug)]
enum Request {
    Join(JoinRequest),
    Sync(SyncRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveRequest),
    Commit(OffsetCommitRequest),
}

#[derive(Debug)]
enum Event {
    Arrive {
        client: usize,
        life: u32,
        attempt: u32,
        request: Request,
    },
    Answer {
        client: usize,
        life: u32,
        attempt: u32,
        reply: Reply,
    },
    /// The client sees whether something is overdue.
    Wake {
        client: usize,
        life: u32,
    },
    Chaos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Gone,
    Joining,
    Syncing,
    Member,
}

#[derive(Debug)]
struct Client {
    name: String,
    group_id: String,
    instance_id: Option<String>,
    session_timeout_ms: i32,
    require_known_member_id: bool,
    supports_skipping_assignment: bool,
    status: Status,
    /// Counts the starts; messages of a former life are nobody's.
    life: u32,
    /// Counts joins and syncs; answers to former attempts do not matter.
    attempt: u32,
    member_id: String,
    generation: i32,
    asked_at_ms: i64,
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    commits: u64,
    assigned: u64,
    restarts: u64,
}

struct Simulation {
    seen: Seen,
    rng: Rng,
    now_ms: i64,
    calm: bool,
    config: Config,
    groups: Groups,
    clients: Vec<Client>,
    events: BTreeMap<(i64, u64), Event>,
    sequence: u64,
    waiting: HashMap<Token, (usize, u32, u32)>,
    records: Vec<Vec<u8>>,
    generations: HashMap<String, i32>,
    /// Accepted commits: by group and topic.
    committed: BTreeMap<(String, String), i64>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let config = Config {
            initial_rebalance_delay_ms: if rng.bool() { 0 } else { 3_000 },
            ..Config::default()
        };
        let groups = Groups::new(config.clone(), seed, 0);
        let clients = (0..rng.usize(1..9)).map(|index| Client::new(index, &mut rng)).collect();
        Self {
            seen: Seen::default(),
            rng,
            now_ms: 0,
            calm: false,
            config,
            groups,
            clients,
            events: BTreeMap::new(),
            sequence: 0,
            waiting: HashMap::new(),
            records: Vec::new(),
            generations: HashMap::new(),
            committed: BTreeMap::new(),
        }
    }

    fn run(mut self) -> Seen {
        self.at(0, Event::Chaos);
        self.run_until(CHAOS_MS);
        self.calm = true;
        self.run_until(CHAOS_MS + CALM_MS);
        self.assert_settled();
        self.restart();
        self.seen
    }

    fn at(&mut self, at_ms: i64, event: Event) {
        self.sequence += 1;
        self.events.insert((at_ms, self.sequence), event);
    }

    fn run_until(&mut self, end_ms: i64) {
        loop {
            let event_ms = self.events.first_key_value().map_or(i64::MAX, |((at_ms, _), _)| *at_ms);
            let deadline_ms = self.groups.next_deadline();
            if event_ms.min(deadline_ms) > end_ms {
                break;
            }
            if deadline_ms <= event_ms {
                self.now_ms = self.now_ms.max(deadline_ms);
                let effects = self.groups.tick(self.now_ms, &TestTopics::default());
                self.take(effects);
            } else if let Some(((at_ms, _), event)) = self.events.pop_first() {
                self.now_ms = self.now_ms.max(at_ms);
                self.act(event);
            }
        }
        self.now_ms = end_ms;
    }

    fn act(&mut self, event: Event) {
        match event {
            Event::Chaos => self.chaos(),
            Event::Arrive { client, life, attempt, request } => {
                self.arrive(client, life, attempt, request);
            }
            Event::Answer { client, life, attempt, reply } => {
                if self.clients[client].life == life {
                    self.answered(client, attempt, reply);
                }
            }
            Event::Wake { client, life } => {
                if self.clients[client].life == life {
                    self.wake(client);
                }
            }
        }
    }

    fn chaos(&mut self) {
        if self.calm {
            return;
        }
        let client = self.rng.usize(..self.clients.len());
        let gone = self.clients[client].status == Status::Gone;
        match self.rng.u8(..20) {
            0 => self.restart(),
            1..=4 if !gone => self.crash(client),
            5..=7 if !gone => self.leave(client),
            8 if !gone => self.join(client),
            9 if !gone => {
                self.clients[client].name.push('+');
                self.join(client);
            }
            _ if gone => self.start(client),
            _ => {}
        }
        let next_ms = self.now_ms + self.rng.i64(1..4_000);
        self.at(next_ms, Event::Chaos);
    }

    fn delay(&mut self) -> Option<i64> {
        match self.rng.u8(..20) {
            0 if !self.calm => None,
            1 if !self.calm => Some(self.now_ms + self.rng.i64(0..9_000)),
            _ => Some(self.now_ms + self.rng.i64(0..40)),
        }
    }

    fn send(&mut self, client: usize, request: Request) {
        let (life, attempt) = (self.clients[client].life, self.clients[client].attempt);
        if let Some(at_ms) = self.delay() {
            self.at(at_ms, Event::Arrive { client, life, attempt, request });
        }
    }

    /// A request reaches the coordinator.
    fn arrive(&mut self, client: usize, life: u32, attempt: u32, request: Request) {
        self.sequence += 1;
        let token = Token(self.sequence);
        self.waiting.insert(token, (client, life, attempt));
        let now_ms = self.now_ms;
        let effects = match request {
            Request::Join(join) => self.groups.join(now_ms, join, &TestTopics::default(), token),
            Request::Sync(sync) => self.groups.sync(now_ms, &sync, &TestTopics::default(), token),
            Request::Heartbeat(heartbeat) => self.groups.heartbeat(now_ms, &heartbeat, token),
            Request::Leave(leave) => {
                self.groups.leave(now_ms, &leave, &TestTopics::default(), token)
            }
            Request::Commit(commit) => self.commit_arrives(&commit, token),
        };
        self.take(effects);
    }

    fn commit_arrives(&mut self, commit: &OffsetCommitRequest, token: Token) -> Effects {
        let before = self.groups.describe(&commit.group_id);
        let effects = self.groups.offset_commit(self.now_ms, commit, token);
        let [(_, Reply::OffsetCommit(results))] = effects.replies.as_slice() else {
            panic!("a commit has one answer at once, not {:?}", effects.replies);
        };
        if results[0].partitions[0].1 == ErrorCode::None {
            let group = before.expect("a commit of a member needs its group");
            assert_eq!(group.generation, commit.generation, "an old generation committed");
            let current = group.members.iter().any(|m| m.member_id == commit.member_id);
            assert!(current, "a commit of somebody who is no member");
            self.seen.commits += 1;
            let key = (commit.group_id.clone(), commit.topics[0].topic.clone());
            self.committed.insert(key, commit.topics[0].partitions[0].offset);
        }
        effects
    }

    fn take(&mut self, effects: Effects) {
        for record in effects.records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.records.push(bytes);
        }
        for (token, reply) in effects.replies {
            let waited = self.waiting.remove(&token);
            let (client, life, attempt) = waited.expect("a token comes out once, after it came in");
            self.watch_generation(client, &reply);
            if let Some(at_ms) = self.delay() {
                self.at(at_ms, Event::Answer { client, life, attempt, reply });
            }
        }
    }

    fn watch_generation(&mut self, client: usize, reply: &Reply) {
        if let Reply::Join(JoinReply { error: ErrorCode::None, generation, .. }) = reply {
            let group_id = self.clients[client].group_id.clone();
            let latest = self.generations.entry(group_id).or_insert(0);
            assert!(*generation >= *latest, "generation {generation} after {latest}");
            *latest = *generation;
        }
    }

    /// The broker dies with all its connections and comes back from its records.
    fn restart(&mut self) {
        self.seen.restarts += 1;
        let restored = self.restored(self.records.iter().map(|bytes| decoded(bytes)).collect());
        let compacted = self.restored(self.groups.snapshot().collect());
        for groups in [&restored, &compacted] {
            self.assert_same_offsets(groups);
            for group in self.groups.list().filter(|group| group.state == GroupState::Stable) {
                let id = group.group_id.as_str();
                assert_eq!(groups.describe(id), self.groups.describe(id));
            }
        }
        self.waiting.clear();
        self.generations.clear();
        if self.rng.bool() {
            let snapshot: Vec<GroupRecord> = self.groups.snapshot().collect();
            self.records.clear();
            self.take(Effects { records: snapshot, replies: Vec::new() });
        }
        self.groups = restored;
        let effects = self.groups.recovered(self.now_ms);
        self.take(effects);
    }

    fn restored(&self, records: Vec<GroupRecord>) -> Groups {
        let mut groups = Groups::new(self.config.clone(), self.sequence, self.now_ms);
        records.into_iter().for_each(|record| groups.replay(record));
        groups
    }

    fn assert_same_offsets(&self, groups: &Groups) {
        for ((group_id, topic), offset) in &self.committed {
            let asked = [(topic.clone(), vec![0])];
            let stored = groups.offset_fetch(group_id, Some(&asked));
            assert_eq!(stored[0].1[0].offset, *offset, "offset of {topic} in {group_id}");
        }
    }

    fn assert_settled(&self) {
        assert!(self.waiting.is_empty(), "without an answer: {:?}", self.waiting);
        self.assert_same_offsets(&self.groups);
        for group_id in ["g0", "g1"] {
            let living = self.clients.iter().filter(|c| c.group_id == group_id && c.lives());
            let mut expected: Vec<&str> = living.map(|c| c.member_id.as_str()).collect();
            expected.sort_unstable();
            let group = self.groups.describe(group_id);
            let members = group.as_ref().map(|group| group.members.as_slice()).unwrap_or_default();
            let members: Vec<&str> = members.iter().map(|m| m.member_id.as_str()).collect();
            assert_eq!(members, expected, "members of {group_id} are those who live");
            if let Some(group) = group {
                let calm = if expected.is_empty() { GroupState::Empty } else { GroupState::Stable };
                assert_eq!(group.state, calm, "{group_id} settles");
                for client in self.clients.iter().filter(|c| c.group_id == group_id && c.lives()) {
                    assert_eq!(client.status, Status::Member);
                    assert_eq!(client.generation, group.generation);
                }
            }
        }
    }
}

fn decoded(bytes: &[u8]) -> GroupRecord {
    GroupRecord::decode(bytes).expect("what was encoded can be decoded")
}

/// What clients do, much as the Java consumer does it.
impl Simulation {
    fn start(&mut self, client: usize) {
        let own = &mut self.clients[client];
        own.life += 1;
        own.member_id.clear();
        own.generation = -1;
        let life = own.life;
        self.at(self.now_ms + HEARTBEAT_MS, Event::Wake { client, life });
        self.join(client);
    }

    fn crash(&mut self, client: usize) {
        self.clients[client].status = Status::Gone;
        self.clients[client].life += 1;
    }

    fn leave(&mut self, client: usize) {
        let own = &self.clients[client];
        let request = LeaveRequest {
            group_id: own.group_id.clone(),
            members: vec![LeavingMember {
                member_id: own.member_id.clone(),
                instance_id: own.instance_id.clone(),
            }],
        };
        self.send(client, Request::Leave(request));
        self.crash(client);
    }

    fn join(&mut self, client: usize) {
        let now_ms = self.now_ms;
        let own = &mut self.clients[client];
        own.status = Status::Joining;
        own.attempt += 1;
        own.asked_at_ms = now_ms;
        let request = own.join_request();
        self.send(client, Request::Join(request));
    }

    fn wake(&mut self, client: usize) {
        let (now_ms, life) = (self.now_ms, self.clients[client].life);
        let overdue = now_ms - self.clients[client].asked_at_ms > i64::from(REBALANCE_MS) + 5_000;
        match self.clients[client].status {
            Status::Gone => return,
            Status::Joining | Status::Syncing if overdue => self.join(client),
            Status::Joining | Status::Syncing => {}
            Status::Member => {
                let own = &self.clients[client];
                let heartbeat = Request::Heartbeat(own.heartbeat_request());
                let commit = Request::Commit(own.commit_request(now_ms));
                self.send(client, heartbeat);
                if !self.calm && self.rng.bool() {
                    self.send(client, commit);
                }
            }
        }
        self.at(now_ms + HEARTBEAT_MS, Event::Wake { client, life });
    }

    fn answered(&mut self, client: usize, attempt: u32, reply: Reply) {
        let own = &self.clients[client];
        let current = own.attempt == attempt;
        match (own.status, reply) {
            (Status::Joining, Reply::Join(reply)) if current => self.join_answered(client, reply),
            (Status::Syncing, Reply::Sync(reply)) if current => self.sync_answered(client, &reply),
            (Status::Member, Reply::Heartbeat(error)) if current => self.obey(client, error),
            _ => {}
        }
    }

    fn join_answered(&mut self, client: usize, reply: JoinReply) {
        match reply.error {
            ErrorCode::None => {}
            ErrorCode::MemberIdRequired => {
                self.clients[client].member_id = reply.member_id;
                return self.join(client);
            }
            error => return self.obey(client, error),
        }
        let now_ms = self.now_ms;
        let own = &mut self.clients[client];
        own.member_id = reply.member_id;
        own.generation = reply.generation;
        own.status = Status::Syncing;
        own.attempt += 1;
        own.asked_at_ms = now_ms;
        let leads = reply.leader == own.member_id;
        assert_eq!(leads, !reply.members.is_empty(), "only a leader sees the members");
        let assignments = reply.members.iter().map(|member| {
            let text = String::from_utf8_lossy(&member.metadata);
            let plan = format!("{} in {}", text.trim_end_matches('+'), reply.generation);
            (member.member_id.clone(), Bytes::from(plan))
        });
        let assignments = if reply.skip_assignment { Vec::new() } else { assignments.collect() };
        let request = SyncRequest {
            group_id: own.group_id.clone(),
            generation: own.generation,
            member_id: own.member_id.clone(),
            instance_id: own.instance_id.clone(),
            protocol_type: reply.protocol_type,
            protocol_name: reply.protocol_name,
            assignments,
        };
        self.send(client, Request::Sync(request));
    }

    fn sync_answered(&mut self, client: usize, reply: &SyncReply) {
        if reply.error != ErrorCode::None {
            return self.obey(client, reply.error);
        }
        let own = &mut self.clients[client];
        let expected = format!("{} in {}", own.name.trim_end_matches('+'), own.generation);
        assert_eq!(reply.assignment, expected, "the assignment is that of the generation");
        own.status = Status::Member;
        self.seen.assigned += 1;
    }

    fn obey(&mut self, client: usize, error: ErrorCode) {
        match error {
            ErrorCode::None => {}
            ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration => self.join(client),
            ErrorCode::UnknownMemberId => {
                self.clients[client].member_id.clear();
                self.join(client);
            }
            ErrorCode::FencedInstanceId => self.crash(client),
            other => panic!("an error that no client expects here: {other:?}"),
        }
    }
}

impl Client {
    fn new(index: usize, rng: &mut Rng) -> Self {
        Self {
            name: format!("c{index}"),
            group_id: format!("g{}", index % 2),
            instance_id: rng.bool().then(|| format!("i{index}")),
            session_timeout_ms: rng.i32(6_000..20_000),
            require_known_member_id: rng.bool(),
            supports_skipping_assignment: rng.bool(),
            status: Status::Gone,
            life: 0,
            attempt: 0,
            member_id: String::new(),
            generation: -1,
            asked_at_ms: 0,
        }
    }

    fn lives(&self) -> bool {
        self.status != Status::Gone
    }

    fn join_request(&self) -> JoinRequest {
        let metadata = Bytes::from(self.name.clone());
        JoinRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: self.name.clone(),
            client_host: "/127.0.0.1".to_owned(),
            session_timeout_ms: self.session_timeout_ms,
            rebalance_timeout_ms: REBALANCE_MS,
            protocol_type: "simulated".to_owned(),
            protocols: vec![Protocol { name: "plan".to_owned(), metadata }],
            require_known_member_id: self.require_known_member_id,
            supports_skipping_assignment: self.supports_skipping_assignment,
        }
    }

    fn heartbeat_request(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            group_id: self.group_id.clone(),
            generation: self.generation,
            member_id: self.member_id.clone(),
            instance_id: self.instance_id.clone(),
        }
    }

    fn commit_request(&self, offset: i64) -> OffsetCommitRequest {
        let commit =
            PartitionCommit { partition: 0, offset, leader_epoch: -1, metadata: String::new() };
        OffsetCommitRequest {
            group_id: self.group_id.clone(),
            generation: self.generation,
            member_id: self.member_id.clone(),
            instance_id: self.instance_id.clone(),
            retention_ms: None,
            knows_member_epochs: true,
            topics: vec![TopicCommit {
                topic: self.name.clone(),
                topic_id: Uuid::ZERO,
                partitions: vec![commit],
            }],
        }
    }
}
