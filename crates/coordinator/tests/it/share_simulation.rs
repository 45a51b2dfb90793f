//! Random lives of members of a share group, from printed seeds.
//!
//! Members join, subscribe to something else, leave, crash and come back; requests and answers are
//! lost; topics come, grow and go; the broker restarts from its records, at times without those of
//! the last step. At every moment epochs may only grow, and a member may only have partitions of
//! topics that it subscribes to. Then everything calms down: every partition has members, evenly,
//! and every member has partitions.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use moldau_coordinator::{ShareHeartbeat, ShareHeartbeatReply, ShareMember, Topics};
use moldau_protocol::{ErrorCode, Uuid};

use crate::seeds;
use crate::share_world::{GROUP, Member, World};

const SCHEDULES: u64 = 300;
const STEPS: usize = 250;
/// A session and some rounds.
const CALM_ROUNDS: usize = 15;
const CALM_ROUND_MS: i64 = 5_000;

#[test]
fn random_lives_keep_the_promises_of_share_groups() {
    let (count, seen) = seeds::run(SCHEDULES, |seed| Simulation::new(seed).run());
    // A simulation in which nothing happens would keep every promise.
    if count >= SCHEDULES {
        let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
        let (moves, restarts, fenced) =
            (sum(|it| it.moves), sum(|it| it.restarts), sum(|it| it.fenced));
        assert!(moves > 10 * count, "{moves} assignments");
        assert!(restarts > count, "{restarts} restarts");
        assert!(fenced > count / 2, "{fenced} members fenced");
    }
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    moves: u64,
    restarts: u64,
    fenced: u64,
}

struct Life {
    member: Member,
    is_alive: bool,
}

struct Simulation {
    rng: Rng,
    world: World,
    lives: Vec<Life>,
    /// Makes member ids.
    born: usize,
    /// Epochs of the group and of its target, as they were.
    epochs: (i32, i32),
    seen: Seen,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut world = World::new();
        if rng.bool() {
            world.config.share.settings.assignment_interval_ms = 0;
            world.restart(false);
        }
        for topic in 0..rng.usize(1..4) {
            world.topics.put(&format!("topic-{topic}"), rng.i32(1..7));
        }
        let (lives, seen) = (Vec::new(), Seen::default());
        let mut simulation = Self { rng, world, lives, born: 0, epochs: (0, 0), seen };
        for _member in 0..simulation.rng.usize(1..9) {
            let mut life = simulation.born();
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

    fn born(&mut self) -> Life {
        self.born += 1;
        let mut member = Member::new(&format!("member-{}", self.born), &[]);
        self.subscribe(&mut member);
        Life { member, is_alive: true }
    }

    /// Half of the members subscribe to the same topics.
    fn subscribe(&mut self, member: &mut Member) {
        let is_common = self.rng.bool();
        let wanted = (0..4).filter(|_| is_common || self.rng.bool());
        member.topics = wanted.map(|index| format!("topic-{index}")).collect();
        if member.topics.is_empty() {
            member.topics.push("topic-0".to_owned());
        }
    }

    fn step(&mut self) {
        let index = self.rng.usize(..self.lives.len());
        match self.rng.u8(..100) {
            0..60 => self.beat(index),
            60..70 => {
                let ms = self.rng.i64(1..40_000);
                self.world.pass(ms);
            }
            70..76 => {
                let mut member = self.lives[index].member.clone();
                self.subscribe(&mut member);
                self.lives[index].member = member;
            }
            76..81 => self.lives[index].is_alive = false,
            81..86 => self.leave(index),
            86..94 => self.change_topics(),
            _ => self.restart(),
        }
    }

    fn beat(&mut self, index: usize) {
        if !self.lives[index].is_alive {
            self.lives[index] = self.born();
        }
        let member = &self.lives[index].member;
        let is_full = member.epoch == 0 || self.rng.bool();
        let request = if is_full { member.full() } else { member.brief() };
        if let Some(reply) = self.send(&request) {
            self.lives[index].answered(&reply, &mut self.seen);
        }
    }

    /// `None` where the request or its answer is lost.
    fn send(&mut self, request: &ShareHeartbeat) -> Option<ShareHeartbeatReply> {
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

    fn leave(&mut self, index: usize) {
        let life = &mut self.lives[index];
        if life.is_alive && life.member.epoch > 0 {
            life.is_alive = false;
            let request = life.member.at(-1).brief();
            self.send(&request);
        }
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

    fn members(&self) -> BTreeMap<String, ShareMember> {
        let Ok(group) = self.world.groups.describe_share(GROUP) else { return BTreeMap::new() };
        group.members.into_iter().map(|member| (member.member_id.clone(), member)).collect()
    }

    fn check(&mut self) {
        let members = self.members();
        for life in self.lives.iter().filter(|life| life.is_alive) {
            // One that was put out rejoins with its next heartbeat.
            let Some(member) = members.get(&life.member.id) else { continue };
            assert!(life.member.epoch <= member.epoch, "{} is ahead", life.member.id);
        }
        if let Ok(group) = self.world.groups.describe_share(GROUP) {
            let epochs = (group.epoch, group.target_epoch);
            assert!(epochs.0 >= self.epochs.0 && epochs.1 >= self.epochs.1, "{epochs:?}");
            assert!(epochs.1 <= epochs.0, "{epochs:?}");
            self.epochs = epochs;
        }
    }

    /// Nothing is lost any more, and all who live send their heartbeats.
    fn calm_down(&mut self) {
        for _round in 0..CALM_ROUNDS {
            self.world.pass(CALM_ROUND_MS);
            for life in self.lives.iter_mut().filter(|life| life.is_alive) {
                let reply = self.world.send(&life.member.full());
                life.answered(&reply, &mut self.seen);
            }
            self.check();
        }
        let alive: Vec<&Life> = self.lives.iter().filter(|life| life.is_alive).collect();
        let members = self.members();
        assert_eq!(members.len(), alive.len(), "members are those who live");
        let mut sharers: BTreeMap<(Uuid, i32), usize> = BTreeMap::new();
        for life in &alive {
            assert_eq!(life.member.assigned, members[&life.member.id].assigned);
            for (topic, held) in &life.member.assigned {
                held.iter().for_each(|index| *sharers.entry((*topic, *index)).or_default() += 1);
            }
        }
        let mut wanted = BTreeSet::new();
        for (name, shape) in self.world.topics.all() {
            let subscribers = alive.iter().filter(|life| life.subscribes(name)).count();
            if subscribers > 0 {
                wanted.extend((0..shape.partitions).map(|index| (shape.id, index)));
            }
            for index in 0..shape.partitions {
                let members = sharers.get(&(shape.id, index)).copied().unwrap_or(0);
                assert!(members <= subscribers, "{name}-{index}");
            }
        }
        assert!(sharers.keys().eq(&wanted), "every partition has members");
        let topics: BTreeMap<&str, Uuid> =
            self.world.topics.all().map(|(name, shape)| (name, shape.id)).collect();
        for life in &alive {
            let own: BTreeSet<Uuid> = life
                .member
                .topics
                .iter()
                .filter_map(|it| topics.get(it.as_str()))
                .copied()
                .collect();
            let assigned: BTreeSet<Uuid> = life.member.assigned.keys().copied().collect();
            assert!(assigned.is_subset(&own), "{} has foreign topics", life.member.id);
            assert_eq!(own.is_empty(), assigned.is_empty(), "{} is idle", life.member.id);
        }
    }
}

impl Life {
    fn answered(&mut self, reply: &ShareHeartbeatReply, seen: &mut Seen) {
        match reply.error {
            ErrorCode::None => {
                assert_eq!(reply.member_id, self.member.id);
                assert!(reply.member_epoch >= self.member.epoch, "the epoch went back");
                seen.moves += u64::from(reply.assignment.is_some());
                self.member.take(reply);
            }
            ErrorCode::FencedMemberEpoch
            | ErrorCode::UnknownMemberId
            | ErrorCode::GroupIdNotFound => {
                seen.fenced += 1;
                self.member.assigned.clear();
                self.member.epoch = 0;
            }
            other => panic!("{other:?} {:?}", reply.message),
        }
    }

    fn subscribes(&self, topic: &str) -> bool {
        self.member.topics.iter().any(|it| it == topic)
    }
}
