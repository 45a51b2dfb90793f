//! Random lives of members of a streams group, from printed seeds.
//!
//! Processes of several members start, stop, crash and come back, some of them with instance ids;
//! requests and answers are lost; members are slow to give up tasks; topics of the user and
//! internal ones come, grow and go; the broker restarts from its records, at times without those of
//! the last step. At every moment a task is active in one member at most, no process has a task in
//! two members, epochs only grow, and what a member runs was given to it. Then everything calms
//! down: every task is active once, has its copies on other processes, and the group is stable.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use moldau_coordinator::{
    GroupState, StreamsHeartbeat, StreamsHeartbeatReply, StreamsMember, StreamsTasks, TaskIds,
    Topics,
};
use moldau_protocol::ErrorCode;

use crate::seeds;
use crate::streams_world::{GROUP, Member, World, rekeying};

const SCHEDULES: u64 = 300;
const STEPS: usize = 250;
/// A session, a rebalance timeout and some rounds.
const CALM_ROUNDS: usize = 30;
const CALM_ROUND_MS: i64 = 5_000;
const SOURCES: [&str; 3] = ["in", "left", "right"];
const INTERNAL: [&str; 3] =
    ["app-rekeyed-repartition", "app-counts-changelog", "app-joined-changelog"];

#[test]
fn random_lives_keep_the_promises_of_streams_groups() {
    let (count, seen) = seeds::run(SCHEDULES, |seed| Simulation::new(seed).run());
    // A simulation in which nothing happens would keep every promise.
    if count >= SCHEDULES {
        let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
        let (moves, restarts, fenced) =
            (sum(|it| it.moves), sum(|it| it.restarts), sum(|it| it.fenced));
        assert!(moves > 10 * count, "{moves} assignments");
        assert!(restarts > count, "{restarts} restarts");
        assert!(fenced > count / 2, "{fenced} members fenced");
        let converted = sum(|it| it.standbys);
        assert!(converted > count, "{converted} standby tasks");
    }
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    moves: u64,
    restarts: u64,
    fenced: u64,
    standbys: u64,
}

struct Life {
    member: Member,
    is_alive: bool,
    /// What it was told to give up and still runs.
    dropping: StreamsTasks,
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
        let mut world = if rng.bool() { World::hasty(rng.i32(0..3)) } else { World::new() };
        if rng.bool() {
            world.config.streams.settings.standby_replicas = rng.i32(0..3);
            world.restart(false);
        }
        for name in SOURCES {
            if rng.u8(..4) > 0 {
                world.topics.put(name, rng.i32(1..5));
            }
        }
        let (lives, seen) = (Vec::new(), Seen::default());
        let mut simulation = Self { rng, world, lives, born: 0, epochs: (0, 0), seen };
        for number in 0..simulation.rng.usize(1..8) {
            let is_static = simulation.rng.u8(..4) == 0;
            let instance = is_static.then(|| format!("instance-{number}"));
            let process = format!("process-{}", number / 2);
            let mut life = simulation.born(process, instance);
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

    fn born(&mut self, process: String, instance: Option<String>) -> Life {
        self.born += 1;
        let mut member = Member::new(&format!("member-{}", self.born), &process, rekeying());
        member.instance = instance;
        Life { member, is_alive: true, dropping: StreamsTasks::default() }
    }

    fn step(&mut self) {
        let index = self.rng.usize(..self.lives.len());
        match self.rng.u8(..100) {
            0..60 => self.beat(index),
            60..70 => {
                let ms = self.rng.i64(1..30_000);
                self.world.pass(ms);
            }
            70..75 => self.lives[index].dropping = StreamsTasks::default(),
            75..80 => self.lives[index].is_alive = false,
            80..86 => self.leave(index),
            86..94 => self.change_topics(),
            _ => self.restart(),
        }
    }

    fn beat(&mut self, index: usize) {
        if !self.lives[index].is_alive {
            let Member { process, instance, .. } = self.lives[index].member.clone();
            self.lives[index] = self.born(process, instance);
        }
        let life = &self.lives[index];
        let request = life.request();
        if let Some(reply) = self.send(&request) {
            let is_slow = self.rng.bool();
            self.lives[index].answered(&reply, &mut self.seen, is_slow);
            if self.rng.u8(..4) > 0 {
                self.world.create(&reply);
            }
        }
    }

    /// `None` where the request or its answer is lost.
    fn send(&mut self, request: &StreamsHeartbeat) -> Option<StreamsHeartbeatReply> {
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
        let returns = self.rng.bool();
        let life = &mut self.lives[index];
        if life.is_alive && life.member.epoch > 0 {
            life.is_alive = false;
            let mut request = life.request();
            let is_static = life.member.instance.is_some();
            request.member_epoch = if is_static && returns { -2 } else { -1 };
            self.send(&request);
        }
    }

    fn change_topics(&mut self) {
        let is_internal = self.rng.u8(..4) == 0;
        let name = self.rng.choice(if is_internal { INTERNAL } else { SOURCES }).expect("some");
        let partitions = self.world.topics.by_name(name).map_or(0, |topic| topic.partitions);
        match self.rng.u8(..4) {
            0 | 1 => self.world.topics.remove(name),
            _ if partitions < 6 => {
                let added = self.rng.i32(1..3);
                self.world.topics.put(name, partitions + added);
            }
            _ => {}
        }
    }

    fn restart(&mut self) {
        let from_snapshot = self.rng.bool();
        self.world.restart(from_snapshot);
        self.seen.restarts += 1;
    }

    fn members(&self) -> BTreeMap<String, StreamsMember> {
        let Ok(group) = self.world.groups.describe_streams(GROUP) else { return BTreeMap::new() };
        let members = group.members.into_iter().map(|it| (it.member.member_id.clone(), it.member));
        members.collect()
    }

    fn check(&mut self) {
        let members = self.members();
        check_holders(members.values());
        for life in self.lives.iter().filter(|life| life.is_alive && life.member.epoch > 0) {
            // One that was put out rejoins with its next heartbeat.
            let Some(member) = members.get(&life.member.id) else { continue };
            assert!(life.member.epoch <= member.epoch, "{} is ahead", life.member.id);
            let (assigned, revoking) = (member.assigned.ids(), member.revoking.ids());
            for (id, partition) in each(&life.running().active) {
                let is_given = has(&assigned.active, id, partition)
                    || has(&revoking.active, id, partition)
                    // What becomes a copy of the state is one as soon as the answer arrives.
                    || has(&assigned.standby, id, partition);
                assert!(is_given, "{} runs {id}_{partition}", life.member.id);
            }
        }
        if let Ok(group) = self.world.groups.describe_streams(GROUP) {
            let epochs = (group.epoch, group.target_epoch);
            assert!(epochs.0 >= self.epochs.0 && epochs.1 >= self.epochs.1, "{epochs:?}");
            assert!(epochs.1 <= epochs.0, "{epochs:?}");
            self.epochs = epochs;
        } else {
            self.epochs = (0, 0);
        }
    }

    /// Nothing is lost any more, topics are as they must be, and all who live send heartbeats.
    fn calm_down(&mut self) {
        INTERNAL.iter().for_each(|name| self.world.topics.remove(name));
        SOURCES.iter().for_each(|name| self.world.topics.remove(name));
        let sizes = [self.rng.i32(1..6), self.rng.i32(1..6)];
        for (name, size) in SOURCES.iter().zip([sizes[0], sizes[1], sizes[1]]) {
            self.world.topics.put(name, size);
        }
        for _round in 0..CALM_ROUNDS {
            self.world.pass(CALM_ROUND_MS);
            for index in 0..self.lives.len() {
                let life = &mut self.lives[index];
                if !life.is_alive {
                    continue;
                }
                life.dropping = StreamsTasks::default();
                let reply = self.world.send(&life.request());
                life.answered(&reply, &mut self.seen, false);
                self.world.create(&reply);
            }
            self.check();
        }
        let lives = std::mem::take(&mut self.lives);
        let alive: Vec<&Life> = lives.iter().filter(|life| life.is_alive).collect();
        let members = self.members();
        assert_eq!(members.len(), alive.len(), "members are those who live");
        if alive.is_empty() {
            return;
        }
        assert_eq!(self.world.describe().state, GroupState::Stable);
        self.check_placed(&alive, sizes);
    }

    /// Every task is active once and has its copies; no member has much more than another.
    fn check_placed(&mut self, alive: &[&Life], [first, second]: [i32; 2]) {
        let counts = [("0", first, false), ("1", first, true), ("2", second, true)];
        let processes: BTreeSet<&str> =
            alive.iter().map(|life| life.member.process.as_str()).collect();
        let replicas = self.world.config.streams.settings.standby_replicas;
        let replicas = usize::try_from(replicas).expect("small").min(processes.len() - 1);
        for (id, count, is_stateful) in counts {
            for partition in 0..count {
                let on = |of: fn(&StreamsTasks) -> &TaskIds| {
                    let has = |life: &&&Life| has(of(&life.member.tasks), id, partition);
                    alive.iter().filter(has).count()
                };
                assert_eq!(on(|tasks| &tasks.active), 1, "{id}_{partition} is active");
                let copies = if is_stateful { replicas } else { 0 };
                assert_eq!(on(|tasks| &tasks.standby), copies, "copies of {id}_{partition}");
            }
        }
        for life in alive {
            self.seen.standbys += each(&life.member.tasks.standby).count() as u64;
        }
    }
}

/// A task is active in one member, and a process has it in one member.
fn check_holders<'a>(members: impl Iterator<Item = &'a StreamsMember>) {
    let mut active: BTreeMap<(String, i32), &str> = BTreeMap::new();
    let mut by_process: BTreeMap<(&str, String, i32), &str> = BTreeMap::new();
    for member in members {
        let id = member.member_id.as_str();
        for tasks in [member.assigned.ids(), member.revoking.ids()] {
            for (part, partition) in each(&tasks.active) {
                let before = active.insert((part.to_owned(), partition), id);
                assert_eq!(before, None, "{part}_{partition} is active in {id} too");
            }
            for (part, partition) in each(&tasks.active).chain(each(&tasks.standby)) {
                let key = (member.process_id.as_str(), part.to_owned(), partition);
                let before = by_process.insert(key, id).unwrap_or(id);
                assert_eq!(before, id, "{} has {part}_{partition} twice", member.process_id);
            }
        }
    }
}

impl Life {
    fn running(&self) -> StreamsTasks {
        let mut running = self.member.tasks.clone();
        for (own, dropping) in [
            (&mut running.active, &self.dropping.active),
            (&mut running.standby, &self.dropping.standby),
        ] {
            for (id, partitions) in dropping {
                own.entry(id.clone()).or_default().extend(partitions);
            }
        }
        running
    }

    fn request(&self) -> StreamsHeartbeat {
        let mut request = self.member.full();
        if self.member.epoch > 0 {
            let running = self.running();
            (request.active, request.standby) = (Some(running.active), Some(running.standby));
        }
        request
    }

    fn answered(&mut self, reply: &StreamsHeartbeatReply, seen: &mut Seen, is_slow: bool) {
        match reply.error {
            ErrorCode::None => {
                assert_eq!(reply.member_id, self.member.id);
                assert!(reply.member_epoch >= self.member.epoch, "the epoch went back");
                seen.moves += u64::from(reply.assignment.is_some());
                let before = self.running();
                self.member.take(reply);
                let (now, mut dropping) = (&self.member.tasks, StreamsTasks::default());
                if is_slow {
                    for (id, partition) in each(&before.active) {
                        // A task that turns into a copy of its state does so at once.
                        if !has(&now.active, id, partition) && !has(&now.standby, id, partition) {
                            dropping.active.entry(id.to_owned()).or_default().insert(partition);
                        }
                    }
                }
                self.dropping = dropping;
            }
            // Topics are other than the member knows; it drops its tasks and comes again.
            ErrorCode::FencedMemberEpoch
            | ErrorCode::UnknownMemberId
            | ErrorCode::InvalidRequest
            | ErrorCode::GroupIdNotFound => {
                seen.fenced += 1;
                self.member.tasks = StreamsTasks::default();
                self.dropping = StreamsTasks::default();
                self.member.epoch = 0;
            }
            // Another life of the instance has not ended yet.
            ErrorCode::UnreleasedInstanceId | ErrorCode::FencedInstanceId => {
                self.member.tasks = StreamsTasks::default();
                self.dropping = StreamsTasks::default();
                self.member.epoch = 0;
            }
            other => panic!("{other:?} {:?}", reply.message),
        }
    }
}

fn each(tasks: &TaskIds) -> impl Iterator<Item = (&str, i32)> {
    let tasks = tasks.iter();
    tasks.flat_map(|(id, partitions)| partitions.iter().map(|it| (id.as_str(), *it)))
}

fn has(tasks: &TaskIds, id: &str, partition: i32) -> bool {
    tasks.get(id).is_some_and(|partitions| partitions.contains(&partition))
}
