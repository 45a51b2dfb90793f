//! Random lives of classic members and members of the consumer protocol in one group, from printed
//! seeds. The group changes its protocol both ways, as its policy allows, while they join, read,
//! commit, leave and crash, and the broker restarts. No partition may have two members, in the end
//! each has one, and the committed offsets are those of the last commits that were taken.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use moldau_coordinator::{
    Config, Effects, GroupRecord, Groups, LeaveRequest, LeavingMember, MigrationPolicy,
    OffsetCommitRequest, PartitionCommit, Partitions, Reply, Token, TopicCommit, Topics,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::consumer_world::{Client, GROUP, TestTopics};
use crate::mixed_member::{Classic, Phase, Strategy, TOPIC, partitions};

const SCHEDULES: u64 = 300;
const STEPS: usize = 300;
/// Seconds without troubles at the end: more than any session lasts.
const CALM_ROUNDS: usize = 90;

#[test]
fn groups_change_their_protocol_both_ways_and_every_partition_keeps_one_member() {
    let (count, seen) = crate::seeds::run(SCHEDULES, |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.run();
        (simulation.upgrades, simulation.downgrades, simulation.commits)
    });
    let sum = |of: fn(&(u64, u64, u64)) -> u64| seen.iter().map(of).sum::<u64>();
    let (upgrades, downgrades, commits) = (sum(|it| it.0), sum(|it| it.1), sum(|it| it.2));
    println!("{count} seeds: {upgrades} upgrades, {downgrades} downgrades, {commits} commits");
    if count >= SCHEDULES {
        let is_alive = upgrades > count / 4 && downgrades > count / 10 && commits > count;
        assert!(is_alive, "{upgrades}, {downgrades}, {commits}");
    }
}

#[derive(Clone, Debug)]
enum Member {
    Classic(Classic),
    Consumer(Client),
    Dead,
}

struct Simulation {
    rng: Rng,
    now_ms: i64,
    config: Config,
    strategy: Strategy,
    groups: Groups,
    topics: TestTopics,
    records: Vec<GroupRecord>,
    replies: BTreeMap<Token, Reply>,
    tokens: u64,
    born: usize,
    members: Vec<Member>,
    /// Offsets of the last commits that were taken.
    committed: BTreeMap<i32, i64>,
    was_consumer: bool,
    upgrades: u64,
    downgrades: u64,
    commits: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut config = Config::default();
        if rng.bool() {
            config.consumer.settings.assignment_interval_ms = 0;
        }
        if rng.bool() {
            config.consumer.migration = MigrationPolicy::ALL[rng.usize(..4)];
        }
        let mut topics = TestTopics::default();
        topics.put(TOPIC, rng.i32(1..9));
        let members = vec![Member::Dead; rng.usize(1..6)];
        let strategy = if rng.bool() { Strategy::Eager } else { Strategy::Cooperative };
        Self {
            rng,
            now_ms: 1,
            groups: Groups::new(config.clone(), seed, 1),
            config,
            strategy,
            topics,
            records: Vec::new(),
            replies: BTreeMap::new(),
            tokens: 0,
            born: 0,
            members,
            committed: BTreeMap::new(),
            was_consumer: false,
            upgrades: 0,
            downgrades: 0,
            commits: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            let index = self.rng.usize(..self.members.len());
            match self.rng.u8(..100) {
                0..64 => self.turn(index),
                64..70 => self.commit(index),
                70..80 => {
                    let ms = self.rng.i64(1..6_000);
                    self.pass(ms);
                }
                80..84 => self.members[index] = Member::Dead,
                84..88 => self.leave(index),
                88..94 => self.bear(index),
                94..97 => self.restart(),
                _ => self.grow_topic(),
            }
            self.check();
        }
        self.calm_down();
    }

    /// Only while the broker assigns: the leader of a classic group would have to notice. As in
    /// Kafka, nobody notices in a group of the consumer protocol that has classic members only,
    /// which stays one under the policy `upgrade`.
    fn grow_topic(&mut self) {
        let partitions = self.topics.by_name(TOPIC).map_or(1, |it| it.partitions);
        let is_noticed =
            self.was_consumer && self.config.consumer.migration != MigrationPolicy::Upgrade;
        if partitions < 9 && is_noticed && self.rng.u8(..10) == 0 {
            self.topics.put(TOPIC, partitions + 1);
        }
    }

    fn bear(&mut self, index: usize) {
        if !matches!(self.members[index], Member::Dead) {
            return;
        }
        self.born += 1;
        // Whoever lives in the place next takes over its instance.
        let instance_id = (index == 0).then(|| format!("instance-{index}"));
        self.members[index] = if self.rng.bool() {
            let client = Client::new(&format!("member-{}", self.born), &[TOPIC]);
            Member::Consumer(Client { instance_id, ..client })
        } else {
            Member::Classic(Classic::new(instance_id, self.strategy))
        };
    }

    fn take(&mut self, effects: Effects) {
        self.records.extend(effects.records);
        for (token, reply) in effects.replies {
            assert!(self.replies.insert(token, reply).is_none(), "one reply");
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn pass(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        while self.groups.next_deadline() <= end_ms {
            self.now_ms = self.now_ms.max(self.groups.next_deadline());
            let effects = self.groups.tick(self.now_ms, &self.topics);
            self.take(effects);
            self.check();
        }
        self.now_ms = end_ms;
    }

    fn restart(&mut self) {
        let replayed = |records: Vec<GroupRecord>| {
            let mut groups = Groups::new(self.config.clone(), self.tokens, self.now_ms);
            for record in records {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                groups.replay(GroupRecord::decode(&bytes).expect("what was written is read"));
            }
            groups
        };
        let mut groups = replayed(self.records.clone());
        if self.rng.bool() {
            groups = replayed(groups.snapshot().collect());
        }
        self.groups = groups;
        let effects = self.groups.recovered(self.now_ms);
        self.take(effects);
        for member in &mut self.members {
            let Member::Classic(classic) = member else { continue };
            match classic.phase {
                Phase::Syncing(token)
                    if let Some(Reply::Sync(reply)) = self.replies.get(&token) =>
                {
                    classic.synced(reply);
                }
                Phase::Stable => {}
                // What they waited for is lost with the connection.
                _ => classic.phase = Phase::Out,
            }
        }
        self.was_consumer = self.groups.describe_consumer(GROUP).is_ok();
    }

    fn leave(&mut self, index: usize) {
        let token = self.token();
        let effects = match std::mem::replace(&mut self.members[index], Member::Dead) {
            Member::Consumer(client) if client.epoch > 0 => {
                let epoch = if client.instance_id.is_some() { -2 } else { -1 };
                let (topics, request) = (self.topics.clone(), client.leaving(epoch));
                self.groups.consumer_heartbeat(self.now_ms, request, true, &topics, token)
            }
            // A static one only goes.
            Member::Classic(classic) if !classic.id.is_empty() && classic.instance_id.is_none() => {
                let member = LeavingMember { member_id: classic.id, instance_id: None };
                let request = LeaveRequest { group_id: GROUP.to_owned(), members: vec![member] };
                self.groups.leave(self.now_ms, &request, &self.topics, token)
            }
            _ => return,
        };
        self.take(effects);
    }

    /// A member commits how far it read one of its partitions.
    fn commit(&mut self, index: usize) {
        let member = self.members[index].clone();
        let (member_id, held) = self.owned(&member);
        let (generation, instance_id, knows_member_epochs) = match member {
            Member::Classic(it) => (it.generation, it.instance_id, self.rng.bool()),
            Member::Consumer(it) => (it.epoch, it.instance_id, true),
            Member::Dead => return,
        };
        if held.is_empty() {
            return;
        }
        let (topic_id, partition) = held[self.rng.usize(..held.len())];
        let offset = self.committed.get(&partition).copied().unwrap_or(0) + 1;
        let commit =
            PartitionCommit { partition, offset, leader_epoch: -1, metadata: String::new() };
        let topics = TopicCommit { topic: TOPIC.to_owned(), topic_id, partitions: vec![commit] };
        let request = OffsetCommitRequest {
            group_id: GROUP.to_owned(),
            generation,
            member_id: member_id.clone(),
            instance_id,
            retention_ms: None,
            knows_member_epochs,
            topics: vec![topics],
        };
        let is_listed = self.listed().contains(&member_id);
        let token = self.token();
        let effects = self.groups.offset_commit(self.now_ms, &request, token);
        self.take(effects);
        let Some(Reply::OffsetCommit(results)) = self.replies.remove(&token) else {
            panic!("a commit is answered at once");
        };
        match results[0].partitions[0].1 {
            ErrorCode::None => {
                assert!(is_listed, "{member_id} is no member");
                self.committed.insert(partition, offset);
                self.commits += 1;
            }
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId if !is_listed => {}
            ErrorCode::IllegalGeneration
            | ErrorCode::StaleMemberEpoch
            | ErrorCode::RebalanceInProgress
                if is_listed => {}
            other => panic!("{other:?}, listed: {is_listed}"),
        }
    }

    /// One member does what comes next.
    fn turn(&mut self, index: usize) {
        self.members[index] = match self.members[index].clone() {
            Member::Dead => Member::Dead,
            Member::Consumer(mut client) => match self.beat(&mut client) {
                ErrorCode::FencedInstanceId => Member::Dead,
                _ => Member::Consumer(client),
            },
            Member::Classic(mut classic) => {
                self.classic_turn(&mut classic);
                Member::Classic(classic)
            }
        };
    }

    fn beat(&mut self, client: &mut Client) -> ErrorCode {
        let (token, topics) = (self.token(), self.topics.clone());
        let request = client.full();
        let effects = self.groups.consumer_heartbeat(self.now_ms, request, true, &topics, token);
        self.take(effects);
        let Some(Reply::ConsumerHeartbeat(reply)) = self.replies.remove(&token) else {
            panic!("a heartbeat is answered at once");
        };
        match reply.error {
            ErrorCode::None => {
                client.epoch = reply.member_epoch;
                if let Some(assigned) = reply.assignment {
                    client.owned = assigned;
                }
            }
            ErrorCode::GroupIdNotFound if client.epoch == 0 => {
                assert!(!may_upgrade(&self.config), "{:?}", reply.message);
            }
            ErrorCode::UnreleasedInstanceId if client.epoch == 0 => {}
            ErrorCode::FencedMemberEpoch
            | ErrorCode::UnknownMemberId
            | ErrorCode::GroupIdNotFound => {
                client.owned.clear();
                client.epoch = 0;
            }
            ErrorCode::FencedInstanceId => {}
            other => panic!("{other:?} {:?}", reply.message),
        }
        reply.error
    }

    fn classic_turn(&mut self, classic: &mut Classic) {
        match classic.phase {
            Phase::Out => {
                let (token, topics) = (self.token(), self.topics.clone());
                let request = classic.join();
                // One that was put out reads on until it hears of it, and others read as well.
                if !self.listed().contains(&classic.id) {
                    classic.owned.clear();
                }
                let effects = self.groups.join(self.now_ms, request, &topics, token);
                classic.phase = Phase::Joining(token);
                self.take(effects);
            }
            Phase::Joining(token) => match self.replies.remove(&token) {
                None => {}
                Some(Reply::Join(reply)) => {
                    if reply.error == ErrorCode::InconsistentGroupProtocol {
                        let policy = self.config.consumer.migration;
                        assert_eq!(policy, MigrationPolicy::Disabled);
                    }
                    let count = self.topics.by_name(TOPIC).map_or(0, |topic| topic.partitions);
                    if let Some(request) = classic.joined(reply, count) {
                        let (token, topics) = (self.token(), self.topics.clone());
                        let effects = self.groups.sync(self.now_ms, &request, &topics, token);
                        classic.phase = Phase::Syncing(token);
                        self.take(effects);
                    }
                }
                Some(other) => panic!("no join but {other:?}"),
            },
            Phase::Syncing(token) => match self.replies.remove(&token) {
                None => {}
                Some(Reply::Sync(reply)) => classic.synced(&reply),
                Some(other) => panic!("no sync but {other:?}"),
            },
            Phase::Stable => {
                let token = self.token();
                let effects = self.groups.heartbeat(self.now_ms, &classic.heartbeat(), token);
                self.take(effects);
                match self.replies.remove(&token) {
                    Some(Reply::Heartbeat(ErrorCode::None)) => {}
                    Some(Reply::Heartbeat(error)) => classic.restart(error),
                    other => panic!("no heartbeat but {other:?}"),
                }
            }
        }
    }

    /// Ids of the members that the group has.
    fn listed(&self) -> BTreeSet<String> {
        if let Ok(group) = self.groups.describe_consumer(GROUP) {
            return group.members.into_iter().map(|it| it.member.member_id).collect();
        }
        let group = self.groups.describe(GROUP);
        group.into_iter().flat_map(|it| it.members).map(|it| it.member_id).collect()
    }

    fn owned(&self, member: &Member) -> (String, Vec<(Uuid, i32)>) {
        let topic = self.topics.by_name(TOPIC).expect("it exists").id;
        match member {
            Member::Dead => (String::new(), Vec::new()),
            Member::Consumer(client) => (client.id.clone(), keys(&client.owned)),
            Member::Classic(classic) => {
                let mut owned = classic.owned.clone();
                // What a cooperative member has to give up is free once the classic group has
                // answered, and the consumer protocol gives it to others at once; as in Kafka.
                if let Phase::Syncing(token) = classic.phase
                    && let Some(Reply::Sync(reply)) = self.replies.get(&token)
                    && reply.error == ErrorCode::None
                {
                    owned = &owned & &partitions(&reply.assignment);
                }
                (classic.id.clone(), owned.into_iter().map(|index| (topic, index)).collect())
            }
        }
    }

    fn check(&mut self) {
        let listed = self.listed();
        let mut read = BTreeMap::new();
        for (id, owned) in self.members.iter().map(|member| self.owned(member)) {
            for key in owned.into_iter().filter(|_| listed.contains(&id)) {
                let other = read.insert(key, id.clone());
                assert_eq!(other, None, "{id} reads {key:?} as well");
            }
        }
        let is_consumer = self.groups.describe_consumer(GROUP).is_ok();
        if is_consumer != self.was_consumer && listed.len() > 1 {
            let count = if is_consumer { &mut self.upgrades } else { &mut self.downgrades };
            *count += 1;
        }
        self.was_consumer = is_consumer;
        let fetched = self.groups.offset_fetch(GROUP, None);
        let offsets = fetched.iter().flat_map(|(_, them)| them);
        let offsets: BTreeMap<i32, i64> = offsets.map(|it| (it.partition, it.offset)).collect();
        assert_eq!(offsets, self.committed, "offsets stay as they were committed");
    }

    fn calm_down(&mut self) {
        for _ in 0..CALM_ROUNDS {
            self.pass(1_000);
            for _ in 0..3 {
                (0..self.members.len()).for_each(|index| self.turn(index));
                self.check();
            }
        }
        let alive = self.members.iter().filter(|member| !matches!(member, Member::Dead));
        if alive.count() == 0 {
            return;
        }
        let count = self.topics.by_name(TOPIC).map_or(0, |topic| topic.partitions);
        let read: usize = self.members.iter().map(|member| self.owned(member).1.len()).sum();
        assert_eq!(i32::try_from(read), Ok(count), "every partition has its member");
        let is_consumer = self.groups.describe_consumer(GROUP).is_ok();
        let joined = |it: &Member| matches!(it, Member::Consumer(client) if client.epoch > 0);
        let has_consumer = self.members.iter().any(joined);
        assert!(is_consumer || !has_consumer, "{:?}", self.config.consumer.migration);
        let policy = self.config.consumer.migration;
        if matches!(policy, MigrationPolicy::Downgrade | MigrationPolicy::Bidirectional) {
            assert_eq!(is_consumer, has_consumer, "{policy:?}");
        }
    }
}

fn may_upgrade(config: &Config) -> bool {
    let policy = config.consumer.migration;
    matches!(policy, MigrationPolicy::Upgrade | MigrationPolicy::Bidirectional)
}

fn keys(partitions: &Partitions) -> Vec<(Uuid, i32)> {
    let topics = partitions.iter();
    topics.flat_map(|(topic, held)| held.iter().map(|index| (*topic, *index))).collect()
}
