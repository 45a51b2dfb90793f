//! Random lives of members of the consumer protocol, from printed seeds.
//!
//! Members join, subscribe to something else, commit, leave, crash and come back, some of them
//! static; requests and answers are lost; topics come, grow and go; the broker restarts from its
//! records, at times without those of the last step. At every moment no partition may have two
//! members, epochs may only grow, and what was committed must be there. Then everything calms down,
//! and every partition must have a member.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use moldau_coordinator::{ConsumerHeartbeat, ConsumerHeartbeatReply, Partitions, Topics};
use moldau_protocol::{ErrorCode, Uuid};

use crate::consumer_world::{Client, GROUP, World};
use crate::seeds;

const SCHEDULES: u64 = 300;
const STEPS: usize = 250;
/// Session, rebalance timeout and some rounds.
const CALM_ROUNDS: usize = 45;
const CALM_ROUND_MS: i64 = 5_000;

#[test]
fn random_lives_keep_the_promises_of_the_consumer_protocol() {
    let (count, seen) = seeds::run(SCHEDULES, |seed| Simulation::new(seed).run());
    // A simulation in which nothing happens would keep every promise.
    if count >= SCHEDULES {
        let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
        let (commits, refused) = (sum(|it| it.commits), sum(|it| it.refused));
        let (moves, restarts) = (sum(|it| it.moves), sum(|it| it.restarts));
        assert!(commits > 5 * count, "{commits} commits");
        assert!(refused > count, "{refused} commits refused");
        assert!(moves > 10 * count, "{moves} assignments");
        assert!(restarts > count, "{restarts} restarts");
    }
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    commits: u64,
    refused: u64,
    moves: u64,
    restarts: u64,
}

/// A member as its own process sees it.
struct Life {
    client: Client,
    is_alive: bool,
    /// What it was told to hold and does not hold yet.
    told: Option<Partitions>,
    next_offset: i64,
}

struct Simulation {
    rng: Rng,
    world: World,
    lives: Vec<Life>,
    /// Makes member ids.
    born: usize,
    committed: BTreeMap<(String, i32), i64>,
    /// Epochs of the group and of its target, as they were.
    epochs: (i32, i32),
    seen: Seen,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut world = World::new();
        if rng.bool() {
            world.config.consumer.settings.assignment_interval_ms = 0;
            world.restart(false);
        }
        for topic in 0..rng.usize(1..4) {
            world.topics.put(&format!("topic-{topic}"), rng.i32(1..7));
        }
        let mut simulation = Self {
            rng,
            world,
            lives: Vec::new(),
            born: 0,
            committed: BTreeMap::new(),
            epochs: (0, 0),
            seen: Seen::default(),
        };
        for index in 0..simulation.rng.usize(1..6) {
            let mut life = simulation.born(index);
            life.is_alive = simulation.rng.bool();
            simulation.lives.push(life);
        }
        simulation
    }

    fn run(mut self) -> Seen {
        for _step in 0..STEPS {
            self.step();
            self.check();
        }
        self.calm_down();
        self.seen
    }

    /// A member that starts. Every second one is static.
    fn born(&mut self, index: usize) -> Life {
        self.born += 1;
        let mut client = Client::new(&format!("member-{}", self.born), &[]);
        client.instance_id = (index % 2 == 1).then(|| format!("instance-{index}"));
        self.subscribe(&mut client);
        Life { client, is_alive: true, told: None, next_offset: 1 }
    }

    fn subscribe(&mut self, client: &mut Client) {
        client.regex = match self.rng.u8(..4) {
            0 => Some("topic-.*".to_owned()),
            1 => Some("topic-[02]".to_owned()),
            _ => Some(String::new()),
        };
        client.topics =
            (0..4).filter(|_| self.rng.u8(..3) > 0).map(|index| format!("topic-{index}")).collect();
    }

    fn step(&mut self) {
        let index = self.rng.usize(..self.lives.len());
        match self.rng.u8(..100) {
            0..45 => self.beat(index),
            45..60 => self.apply(index),
            60..75 => self.commit(index),
            75..80 => {
                let ms = self.rng.i64(1..20_000);
                self.world.pass(ms);
            }
            80..84 => {
                let mut client = self.lives[index].client.clone();
                self.subscribe(&mut client);
                self.lives[index].client = client;
            }
            84..87 => self.crash(index),
            87..90 => self.leave(index),
            90..95 => self.change_topics(),
            _ => self.restart(),
        }
    }

    fn beat(&mut self, index: usize) {
        if !self.lives[index].is_alive {
            let mut life = self.born(index);
            life.next_offset = self.lives[index].next_offset;
            self.lives[index] = life;
        }
        let is_full = self.lives[index].client.epoch == 0 || self.rng.bool();
        if is_full {
            // Only what is settled is told: what it was given and does not read yet, and which it
            // does not name, would be taken from it at once.
            self.apply(index);
        }
        let client = &self.lives[index].client;
        let request = if is_full { client.full() } else { client.brief() };
        let Some(reply) = self.send(request) else { return };
        self.lives[index].answered(&reply, &mut self.seen);
    }

    /// `None` where the request or its answer is lost.
    fn send(&mut self, request: ConsumerHeartbeat) -> Option<ConsumerHeartbeatReply> {
        match self.rng.u8(..20) {
            0 => None,
            1 => {
                let _lost = self.world.send(request);
                None
            }
            2 => {
                // The process ends before the record is on disk.
                let written = self.world.records.len();
                let _lost = self.world.send(request);
                self.world.records.truncate(written);
                self.restart();
                None
            }
            _ => Some(self.world.send(request)),
        }
    }

    /// The member stops reading what it has to give up, and starts to read what it was given.
    fn apply(&mut self, index: usize) {
        let life = &mut self.lives[index];
        if let Some(told) = life.told.take() {
            life.client.owned = told;
        }
    }

    fn commit(&mut self, index: usize) {
        let life = &mut self.lives[index];
        let held: Vec<(Uuid, i32)> = life
            .client
            .owned
            .iter()
            .flat_map(|(topic, held)| held.iter().map(|index| (*topic, *index)))
            .collect();
        let Some((topic, partition)) = self.rng.choice(held) else { return };
        let named = self.world.topics.all().find(|(_, shape)| shape.id == topic);
        let Some(topic) = named.map(|(name, _)| name.to_owned()) else { return };
        let (mut id, mut epoch) = (life.client.id.clone(), life.client.epoch);
        match self.rng.u8(..8) {
            // One that was put out long ago, or does not know that its epoch has passed.
            0 => id = format!("member-{}", self.rng.usize(..=self.born)),
            1 => epoch = (epoch - 1).max(0),
            _ => {}
        }
        life.next_offset += 1;
        let offset = life.next_offset;
        let is_member = self.members().contains_key(&id);
        match self.world.commit(&id, epoch, (&topic, partition), offset) {
            ErrorCode::None => {
                assert!(is_member, "{id} was put out and commits");
                self.committed.insert((topic, partition), offset);
                self.seen.commits += 1;
            }
            error => {
                let expected = [
                    ErrorCode::StaleMemberEpoch,
                    ErrorCode::UnknownMemberId,
                    ErrorCode::IllegalGeneration,
                ];
                assert!(expected.contains(&error), "{error:?}");
                self.seen.refused += 1;
            }
        }
    }

    fn crash(&mut self, index: usize) {
        let life = &mut self.lives[index];
        life.is_alive = false;
        life.drop_all();
    }

    fn leave(&mut self, index: usize) {
        let life = &mut self.lives[index];
        if !life.is_alive || life.client.epoch == 0 {
            return;
        }
        // A client stops reading before it says that it leaves.
        life.drop_all();
        life.is_alive = false;
        let comes_back = life.client.instance_id.is_some() && self.rng.bool();
        let request = life.client.leaving(if comes_back { -2 } else { -1 });
        self.send(request);
    }

    fn change_topics(&mut self) {
        let name = format!("topic-{}", self.rng.usize(..4));
        let partitions = self.world.topics.by_name(&name).map_or(0, |topic| topic.partitions);
        match self.rng.u8(..4) {
            0 => self.world.topics.remove(&name),
            _ if partitions < 12 => {
                let added = self.rng.i32(1..4);
                self.world.topics.put(&name, partitions + added);
            }
            _ => {}
        }
    }

    fn restart(&mut self) {
        let from_snapshot = self.rng.bool();
        self.world.restart(from_snapshot);
        self.seen.restarts += 1;
    }

    /// Members by id, with their epoch and what the group says that they may read.
    fn members(&self) -> BTreeMap<String, (i32, Partitions)> {
        let Ok(group) = self.world.groups.describe_consumer(GROUP) else { return BTreeMap::new() };
        let members = group.members.into_iter();
        members.map(|it| (it.member.member_id, (it.member.epoch, it.assigned))).collect()
    }

    fn check(&mut self) {
        let members = self.members();
        let mut given = BTreeSet::new();
        for (id, (_, assigned)) in &members {
            for key in keys(assigned) {
                assert!(given.insert(key), "{id} and another member have {key:?}");
            }
        }
        let mut read: BTreeMap<(Uuid, i32), &str> = BTreeMap::new();
        for life in self.lives.iter().filter(|life| life.is_alive) {
            // One that was put out is stopped by its next request.
            let Some((epoch, _)) = members.get(&life.client.id) else { continue };
            assert!(life.client.epoch <= *epoch || *epoch == -2, "{} is ahead", life.client.id);
            for key in keys(&life.client.owned) {
                let other = read.insert(key, &life.client.id);
                assert_eq!(other, None, "{} reads {key:?} as well", life.client.id);
            }
        }
        if let Ok(group) = self.world.groups.describe_consumer(GROUP) {
            let epochs = (group.epoch, group.target_epoch);
            assert!(epochs.0 >= self.epochs.0 && epochs.1 >= self.epochs.1, "{epochs:?}");
            self.epochs = epochs;
        }
        for ((topic, partition), offset) in &self.committed {
            assert_eq!(self.world.committed(topic, *partition), *offset, "{topic}-{partition}");
        }
    }

    /// Nothing is lost any more, and all who live do what they are told.
    fn calm_down(&mut self) {
        for _round in 0..CALM_ROUNDS {
            self.world.pass(CALM_ROUND_MS);
            for index in 0..self.lives.len() {
                if self.lives[index].is_alive {
                    let request = self.lives[index].client.full();
                    let reply = self.world.send(request);
                    self.lives[index].answered(&reply, &mut self.seen);
                    self.apply(index);
                }
            }
            self.check();
        }
        let alive: Vec<&Life> = self.lives.iter().filter(|life| life.is_alive).collect();
        let members = self.members();
        assert_eq!(members.len(), alive.len(), "members are those who live");
        let mut wanted = BTreeSet::new();
        for (name, shape) in self.world.topics.all() {
            if alive.iter().any(|life| life.subscribes(name)) {
                wanted.extend((0..shape.partitions).map(|index| (shape.id, index)));
            }
        }
        let mut read = BTreeSet::new();
        for life in &alive {
            assert_eq!(life.client.owned, members[&life.client.id].1, "{}", life.client.id);
            read.extend(keys(&life.client.owned));
        }
        assert_eq!(read, wanted, "every partition has its member");
    }
}

impl Life {
    fn answered(&mut self, reply: &ConsumerHeartbeatReply, seen: &mut Seen) {
        match reply.error {
            ErrorCode::None => {
                assert_eq!(reply.member_id, self.client.id);
                assert!(reply.member_epoch >= self.client.epoch, "the epoch went back");
                self.client.epoch = reply.member_epoch;
                if let Some(assigned) = &reply.assignment {
                    self.told = Some(assigned.clone());
                    seen.moves += 1;
                }
            }
            ErrorCode::UnreleasedInstanceId => {}
            ErrorCode::FencedMemberEpoch
            | ErrorCode::UnknownMemberId
            | ErrorCode::FencedInstanceId
            | ErrorCode::GroupIdNotFound => {
                self.drop_all();
                self.client.epoch = 0;
            }
            other => panic!("{other:?} {:?}", reply.message),
        }
    }

    fn drop_all(&mut self) {
        self.client.owned.clear();
        self.told = None;
    }

    fn subscribes(&self, topic: &str) -> bool {
        let by_regex = match self.client.regex.as_deref() {
            Some("topic-.*") => topic.starts_with("topic-"),
            Some("topic-[02]") => topic == "topic-0" || topic == "topic-2",
            _ => false,
        };
        by_regex || self.client.topics.iter().any(|it| it == topic)
    }
}

fn keys(partitions: &Partitions) -> Vec<(Uuid, i32)> {
    let topics = partitions.iter();
    topics.flat_map(|(topic, held)| held.iter().map(|index| (*topic, *index))).collect()
}
