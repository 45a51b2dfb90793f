//! Random lives of the members of a group, from printed seeds.
//!
//! Members fetch, run, fail, postpone and commit records; partitions are revoked, lost and given to
//! others; members crash. Commits fail at times, and work runs on after its partition was lost. At
//! every moment, when a record is handled, every earlier one that it must follow has been handled,
//! and a commit names only records that have been handled. Then everything calms down: all records
//! are handled and committed.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use super::testing::{Fetch, Record};
use super::*;
use crate::ledger::Delivery;

const SCHEDULES: u64 = 200;
const STEPS: usize = 1_500;
/// Ends a simulation that makes no progress.
const CALM_STEPS: usize = 200_000;

#[test]
fn random_lives_handle_every_record_in_order() {
    let mut seen = Seen::default();
    let seeds = tests::seeds(SCHEDULES);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let life = std::panic::catch_unwind(|| Simulation::new(seed).run());
        let Ok(of_seed) = life else { panic!("failed with MOLDAU_SIMULATION_SEED={seed}") };
        seen.add(&of_seed);
    }
    if count < SCHEDULES {
        return;
    }
    // A simulation in which nothing happens would keep every promise.
    assert!(seen.crashes > SCHEDULES && seen.revocations > SCHEDULES, "{seen:?}");
    assert!(seen.postponed > 5 * SCHEDULES && seen.restored > SCHEDULES, "{seen:?}");
    assert!(seen.calm > SCHEDULES / 20, "{seen:?}");
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    crashes: u64,
    revocations: u64,
    postponed: u64,
    /// Commits with metadata that a later owner began with.
    restored: u64,
    /// Lives without crashes or losses.
    calm: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.revocations += other.revocations;
        self.postponed += other.postponed;
        self.restored += other.restored;
        self.calm += other.calm;
    }
}

/// One partition as the cluster has it.
struct Log {
    /// Keys of the records by offset; `None` for an offset without a record.
    records: BTreeMap<i64, Option<u64>>,
    end: i64,
    committed: Option<Commit>,
    handled: BTreeSet<i64>,
    /// Records that were handled twice.
    repeated: usize,
}

struct Owned {
    id: PartitionId,
    is_draining: bool,
}

struct Running {
    log: usize,
    ticket: Ticket,
    slice: Slice<Fetch>,
    /// Whether its handler is in a record, and waits.
    is_waiting: bool,
}

/// A member, its partitions, and what it runs.
struct Member {
    scheduler: Scheduler<Fetch>,
    owned: BTreeMap<usize, Owned>,
    running: Vec<Running>,
}

struct Simulation {
    rng: Rng,
    now: Duration,
    plan: Plan,
    logs: Vec<Log>,
    members: Vec<Member>,
    /// Whether members crash and lose partitions in this life.
    is_rough: bool,
    seen: Seen,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let lanes = NonZeroU32::new(rng.u32(1..8)).expect("not zero");
        let orders = [Order::Partition, Order::Key(lanes), Order::by_key(), Order::None];
        let plan = Plan {
            order: orders[rng.usize(..orders.len())],
            slice_records_max: rng.usize(1..6),
            slicing: if rng.bool() { Slicing::Whole } else { Slicing::Paced },
            queue_records_max: rng.usize(1..30),
            queue_bytes_max: rng.usize(1..5_000),
            pool: rng.bool().then(|| Pool { id: 0, workers: rng.usize(1..4) }),
        };
        let logs = (0..rng.usize(1..4)).map(|_| Self::log(&mut rng)).collect();
        let (workers, bytes_max) = (rng.usize(1..10), rng.usize(1..8_000));
        let members = (0..rng.usize(1..4)).map(|_| Self::member(workers, bytes_max)).collect();
        let (now, is_rough) = (Duration::from_secs(1_000), rng.u8(..4) > 0);
        Self { rng, now, plan, logs, members, is_rough, seen: Seen::default() }
    }

    fn log(rng: &mut Rng) -> Log {
        let end = rng.i64(0..150);
        let offsets: Vec<i64> = (0..end).filter(|_| rng.u8(..5) > 0).collect();
        let keys = rng.u64(1..12);
        let records =
            offsets.into_iter().map(|it| (it, rng.bool().then(|| rng.u64(..keys)))).collect();
        Log { records, end, committed: None, handled: BTreeSet::new(), repeated: 0 }
    }

    fn member(workers: usize, bytes_max: usize) -> Member {
        Member {
            scheduler: Scheduler::new(workers, bytes_max),
            owned: BTreeMap::new(),
            running: Vec::new(),
        }
    }

    fn run(mut self) -> Seen {
        for _step in 0..STEPS {
            let (member, log) = self.any();
            match self.rng.u8(..100) {
                0..10 => self.assign(member, log),
                10..30 => self.fetch(member, log),
                30..45 => self.start(member),
                45..75 => self.work(member, true),
                75..80 => self.now += Duration::from_millis(self.rng.u64(..400)),
                80..90 => self.commit(member, true),
                90..93 => self.revoke(member, log),
                93..97 => self.confirm(member, log),
                97 if self.is_rough => self.lose(member, log),
                98 if self.is_rough => self.crash(member),
                _ => {}
            }
        }
        self.calm_down();
        self.seen
    }

    fn any(&mut self) -> (usize, usize) {
        (self.rng.usize(..self.members.len()), self.rng.usize(..self.logs.len()))
    }

    fn assign(&mut self, member: usize, log: usize) {
        if self.members.iter().any(|member| member.owned.contains_key(&log)) {
            return;
        }
        let ledger = match &self.logs[log].committed {
            Some(commit) => Ledger::restore(commit.offset, &commit.metadata),
            None => Ledger::at(0),
        };
        self.seen.restored += u64::from(!ledger.committable().metadata.is_empty());
        let id = self.members[member].scheduler.assign(self.plan, ledger);
        self.members[member].owned.insert(log, Owned { id, is_draining: false });
    }

    fn fetch(&mut self, member: usize, log: usize) {
        let Member { scheduler, owned, .. } = &mut self.members[member];
        let Some(Owned { id, .. }) = owned.get(&log) else { return };
        let Log { records, end, .. } = &self.logs[log];
        // Fetches may give again what was delivered.
        let bytes = self.rng.usize(..300);
        let record = |(&offset, &key): (&i64, &Option<u64>)| Record { offset, key, bytes };
        let fetch = Fetch::new(records.iter().map(record).collect());
        if scheduler.deliver(*id, &Arc::new(fetch), 0) == records.len() {
            scheduler.pass(*id, *end);
        }
    }

    fn start(&mut self, member: usize) {
        let Member { scheduler, owned, running } = &mut self.members[member];
        let Some((ticket, slice)) = scheduler.next(self.now) else { return };
        let found = owned.iter().find(|(_, owned)| owned.id == ticket.partition);
        let (&log, owned) = found.expect("a lost partition starts nothing");
        assert!(!owned.is_draining, "a draining partition starts nothing");
        running.push(Running { log, ticket, slice, is_waiting: false });
        let pool_max = self.plan.pool.map_or(usize::MAX, |pool| pool.workers);
        assert!(running.len() <= pool_max, "more run than the route may");
    }

    /// A slice that runs does something.
    fn work(&mut self, member: usize, may_fail: bool) {
        let running = self.members[member].running.len();
        if running == 0 {
            return;
        }
        let at = self.rng.usize(..running);
        let Running { log, ticket, slice, is_waiting } = &mut self.members[member].running[at];
        let (log, ticket, was_waiting) = (*log, *ticket, std::mem::take(is_waiting));
        let done = slice.done();
        let is_in_record = done < slice.len() && !slice.is_stopped();
        if is_in_record && !was_waiting && self.rng.u8(..4) == 0 {
            // Its handler waits for something.
            let ticket = self.members[member].scheduler.waits(ticket);
            self.members[member].running[at].ticket = ticket;
            self.members[member].running[at].is_waiting = true;
            return;
        }
        let is_to_stop = slice.is_stopped() && !was_waiting;
        let rest = if is_to_stop || done == slice.len() {
            Some(Rest::Untried)
        } else if may_fail && self.rng.u8(..6) == 0 {
            self.seen.postponed += 1;
            let by = if self.rng.bool() { PostponedBy::Failure } else { PostponedBy::Layer(0) };
            let at = self.now + Duration::from_millis(self.rng.u64(..300));
            let records = self.rng.usize(1..4);
            Some(Rest::Postponed { records, at, by })
        } else {
            let (fetch, index) = slice.records().nth(done).expect("one is left");
            Self::handle(&mut self.logs[log], self.plan.order, fetch.records[index]);
            slice.set_done(done + 1);
            let took = Duration::from_micros(self.rng.u64(..3_000));
            self.members[member].scheduler.pace(ticket, 1, took);
            None
        };
        if let Some(rest) = rest {
            self.members[member].scheduler.finish(ticket, rest);
            self.members[member].running.swap_remove(at);
        }
    }

    fn handle(log: &mut Log, order: Order, item: Record) {
        let mut earlier = log.records.range(..item.offset);
        let must_follow = |key: Option<u64>| match order {
            Order::Partition => true,
            Order::Key(_) => key.is_some() && key == item.key,
            Order::None => false,
        };
        let is_in_order =
            earlier.all(|(offset, key)| !must_follow(*key) || log.handled.contains(offset));
        assert!(is_in_order, "record {} came before an earlier one", item.offset);
        log.repeated += usize::from(!log.handled.insert(item.offset));
    }

    fn commit(&mut self, member: usize, may_fail: bool) {
        for id in self.members[member].scheduler.take_changed() {
            let Member { scheduler, owned, .. } = &mut self.members[member];
            let mut owned = owned.iter();
            let Some((&log, _)) = owned.find(|(_, owned)| owned.id == id) else { continue };
            let Some(commit) = scheduler.take_commit(id) else { continue };
            if may_fail && self.rng.u8(..4) == 0 {
                scheduler.retake_commit(id);
            } else {
                self.store(log, commit);
            }
        }
    }

    fn store(&mut self, log: usize, commit: Commit) {
        let log = &mut self.logs[log];
        let mut ledger = Ledger::restore(commit.offset, &commit.metadata);
        for offset in log.records.keys() {
            let is_done = ledger.deliver(*offset) == Delivery::Known;
            assert!(!is_done || log.handled.contains(offset), "{offset} was not handled");
        }
        log.committed = Some(commit);
    }

    fn revoke(&mut self, member: usize, log: usize) {
        let Member { scheduler, owned, .. } = &mut self.members[member];
        let Some(owned) = owned.get_mut(&log) else { return };
        owned.is_draining = true;
        scheduler.drain(owned.id);
    }

    /// Commits and gives back a partition that was revoked, at times before it is idle.
    fn confirm(&mut self, member: usize, log: usize) {
        let Member { scheduler, owned, running } = &mut self.members[member];
        let Some(Owned { id, is_draining: true }) = owned.get(&log) else { return };
        let is_idle = scheduler.is_idle(*id);
        assert_eq!(is_idle, running.iter().all(|it| it.ticket.partition != *id));
        if !is_idle && !self.is_rough {
            return;
        }
        self.seen.revocations += 1;
        let id = *id;
        let commit = scheduler.remove(id);
        // What does not end in time is aborted.
        for at in (0..running.len()).rev().filter(|at| running[*at].ticket.partition == id) {
            scheduler.finish(running[at].ticket, Rest::Untried);
        }
        running.retain(|it| it.ticket.partition != id);
        owned.remove(&log);
        if let Some(commit) = commit {
            self.store(log, commit);
        }
    }

    /// Its work runs on for a while.
    fn lose(&mut self, member: usize, log: usize) {
        let Member { scheduler, owned, .. } = &mut self.members[member];
        if let Some(Owned { id, .. }) = owned.remove(&log) {
            scheduler.remove(id);
        }
    }

    fn crash(&mut self, member: usize) {
        self.seen.crashes += 1;
        let (workers, bytes_max) = (self.rng.usize(1..10), self.rng.usize(1..8_000));
        self.members[member] = Self::member(workers, bytes_max);
    }

    fn calm_down(&mut self) {
        for _step in 0..CALM_STEPS {
            if self.is_complete() {
                if !self.is_rough {
                    self.seen.calm += 1;
                    let repeated: usize = self.logs.iter().map(|log| log.repeated).sum();
                    assert_eq!(repeated, 0, "handled again without a crash or a loss");
                }
                return;
            }
            let (member, log) = self.any();
            match self.rng.u8(..9) {
                0 => self.assign(member, log),
                1 => self.confirm(member, log),
                2 => self.fetch(member, log),
                3 => self.start(member),
                4 => self.commit(member, false),
                5 => self.now += Duration::from_secs(1),
                _ => self.work(member, false),
            }
        }
        panic!("it does not come to rest");
    }

    fn is_complete(&self) -> bool {
        self.logs.iter().all(|log| {
            let end = Commit { offset: log.end, metadata: String::new() };
            let is_committed = log.committed.as_ref().is_none_or(|commit| *commit == end);
            let is_all = log.handled.len() == log.records.len();
            is_all && is_committed && (log.committed.is_some() || log.end == 0)
        })
    }
}
