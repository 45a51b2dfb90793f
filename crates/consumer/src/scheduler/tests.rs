//! Lanes, turns and drains, one by one.

use std::num::NonZeroU32;

use super::testing::{Fetch, Record};
use super::*;

const PLAN: Plan = Plan {
    order: Order::Key(NonZeroU32::new(16).expect("not zero")),
    slice_records_max: 10,
    slicing: Slicing::Whole,
    queue_records_max: 100,
    queue_bytes_max: 1 << 20,
    pool: None,
};
const BYTES_MAX: usize = 1 << 30;
const NOW: Duration = Duration::from_secs(1);

fn plan(order: Order) -> Plan {
    Plan { order, ..PLAN }
}

/// Whether the record was taken.
fn deliver(
    scheduler: &mut Scheduler<Fetch>,
    id: PartitionId,
    offset: i64,
    key: Option<u64>,
) -> bool {
    deliver_bytes(scheduler, id, Record { offset, key, bytes: 100 })
}

fn deliver_bytes(scheduler: &mut Scheduler<Fetch>, id: PartitionId, record: Record) -> bool {
    let fetch = Arc::new(Fetch::new(vec![record]));
    scheduler.deliver(id, &fetch, 0) == 1
}

/// One partition whose records have these keys, from offset 0 on.
fn scheduler(order: Order, keys: &[Option<u64>]) -> (Scheduler<Fetch>, PartitionId) {
    let mut scheduler = Scheduler::new(100, BYTES_MAX);
    let id = scheduler.assign(plan(order), Ledger::at(0));
    for (offset, key) in (0..).zip(keys) {
        deliver(&mut scheduler, id, offset, *key);
    }
    (scheduler, id)
}

fn offsets(slice: &Slice<Fetch>) -> Vec<i64> {
    slice.records().map(|(fetch, index)| fetch.offset(index)).collect()
}

fn start_all(scheduler: &mut Scheduler<Fetch>, now: Duration) -> Vec<(Ticket, Slice<Fetch>)> {
    std::iter::from_fn(|| scheduler.next(now)).collect()
}

fn started(scheduler: &mut Scheduler<Fetch>, now: Duration) -> Vec<Vec<i64>> {
    start_all(scheduler, now).iter().map(|(_, slice)| offsets(slice)).collect()
}

fn finish(scheduler: &mut Scheduler<Fetch>, (ticket, slice): &(Ticket, Slice<Fetch>)) {
    slice.set_done(slice.len());
    scheduler.finish(*ticket, Rest::Untried);
}

#[test]
fn a_partition_in_order_runs_one_slice_at_a_time() {
    let (mut scheduler, _) = scheduler(Order::Partition, &[None; 12]);
    let first = scheduler.next(NOW).expect("ready");
    assert_eq!(offsets(&first.1), (0..10).collect::<Vec<_>>());
    assert!(scheduler.next(NOW).is_none());
    finish(&mut scheduler, &first);
    assert_eq!(started(&mut scheduler, NOW), [[10, 11]]);
}

#[test]
fn records_of_a_key_share_a_lane() {
    let keys = [Some(1), Some(2), Some(1), None, None];
    let (mut scheduler, _) = scheduler(PLAN.order, &keys);
    assert_eq!(started(&mut scheduler, NOW), [vec![0, 2], vec![1], vec![3], vec![4]]);
}

#[test]
fn records_without_order_run_beside_each_other() {
    let (mut scheduler, _) = scheduler(Order::None, &[Some(1); 3]);
    assert_eq!(started(&mut scheduler, NOW), [[0], [1], [2]]);
}

#[test]
fn a_postponed_record_blocks_its_lane_alone() {
    let (mut scheduler, id) = scheduler(PLAN.order, &[Some(1), Some(2), Some(1)]);
    let running = start_all(&mut scheduler, NOW);
    let at = NOW + Duration::from_secs(5);
    let postponed = Rest::Postponed { records: 1, at, by: PostponedBy::Failure };
    scheduler.finish(running[0].0, postponed);
    finish(&mut scheduler, &running[1]);
    deliver(&mut scheduler, id, 3, Some(2));
    assert_eq!(started(&mut scheduler, NOW), [[3]]);
    assert_eq!(scheduler.next_due(), Some(at));
    let again = start_all(&mut scheduler, at);
    // The record that failed runs by itself: what it went through is not that of the next one.
    assert_eq!(offsets(&again[0].1), [0]);
    assert_eq!(again[0].1.attempt().failures, 1);
    finish(&mut scheduler, &again[0]);
    assert_eq!(started(&mut scheduler, at), [[2]]);
}

#[test]
fn a_busy_partition_does_not_displace_a_quiet_one() {
    let mut scheduler = Scheduler::new(1, BYTES_MAX);
    let busy = scheduler.assign(plan(Order::None), Ledger::at(0));
    let quiet = scheduler.assign(plan(Order::None), Ledger::at(0));
    for offset in 0..100 {
        deliver_bytes(&mut scheduler, busy, Record { offset, key: None, bytes: 40_000 });
    }
    deliver(&mut scheduler, quiet, 0, None);
    let mut before = 0;
    loop {
        let (ticket, slice) = scheduler.next(NOW).expect("ready");
        if ticket.partition == quiet {
            break;
        }
        before += 1;
        finish(&mut scheduler, &(ticket, slice));
    }
    assert!(before <= 2, "{before} large records came first");
}

#[test]
fn workers_bound_what_runs() {
    let (mut scheduler, _) = scheduler(Order::None, &[None; 5]);
    scheduler.set_workers(2);
    let running = start_all(&mut scheduler, NOW);
    assert_eq!(running.len(), 2);
    scheduler.set_workers(3);
    assert_eq!(start_all(&mut scheduler, NOW).len(), 1);
    finish(&mut scheduler, &running[0]);
    assert_eq!(scheduler.running, 2);
}

#[test]
fn the_queue_of_a_partition_is_bounded() {
    let (mut scheduler, id) = scheduler(Order::Partition, &[None; 100]);
    assert!(!deliver(&mut scheduler, id, 100, None));
    let first = scheduler.next(NOW).expect("ready");
    finish(&mut scheduler, &first);
    let large = Record { offset: 100, key: None, bytes: 1 << 20 };
    assert!(deliver_bytes(&mut scheduler, id, large));
    assert!(!deliver(&mut scheduler, id, 101, None));
}

#[test]
fn queues_above_the_limit_of_all_take_equal_shares() {
    let mut scheduler = Scheduler::new(100, 1_000);
    let [first, second] = [(); 2].map(|()| scheduler.assign(plan(Order::Partition), Ledger::at(0)));
    let records = (0..100).map(|offset| Record { offset, key: None, bytes: 100 }).collect();
    let fetch = Arc::new(Fetch::new(records));
    let fill = |scheduler: &mut Scheduler<Fetch>, id| scheduler.deliver(id, &fetch, 0);
    assert_eq!((fill(&mut scheduler, first), fill(&mut scheduler, second)), (10, 6));
    scheduler.drain(first);
    assert_eq!(scheduler.bytes, 600);
    scheduler.remove(second);
    scheduler.remove(first);
    assert_eq!(scheduler.bytes, 0);
}

#[test]
fn records_that_wait_keep_no_memory_of_others_alive() {
    let mut scheduler = Scheduler::new(100, BYTES_MAX);
    let id = scheduler.assign(plan(PLAN.order), Ledger::at(0));
    deliver(&mut scheduler, id, 0, Some(1));
    let (ticket, _) = scheduler.next(NOW).expect("ready");
    deliver(&mut scheduler, id, 1, Some(1));
    let rest = Rest::Postponed { records: 1, at: NOW, by: PostponedBy::Layer(1) };
    scheduler.finish(ticket, rest);
    deliver(&mut scheduler, id, 2, Some(1));
    deliver(&mut scheduler, id, 3, Some(2));
    let records = |slice: &Slice<Fetch>| -> Vec<_> {
        slice.records().map(|(it, index)| (it.offset(index), it.is_detached)).collect()
    };
    let started = start_all(&mut scheduler, NOW);
    let seen: Vec<_> = started.iter().flat_map(|(_, slice)| records(slice)).collect();
    assert_eq!(seen, [(3, false), (0, true)]);
    finish(&mut scheduler, &started[1]);
    assert_eq!(records(&scheduler.next(NOW).expect("ready").1), [(1, true), (2, true)]);
}

#[test]
fn a_drained_partition_commits_what_was_done_and_starts_nothing() {
    let (mut scheduler, id) = scheduler(PLAN.order, &[Some(1), Some(1), Some(2), Some(3)]);
    scheduler.set_workers(2);
    let running = start_all(&mut scheduler, NOW);
    scheduler.drain(id);
    assert!(running.iter().all(|(_, slice)| slice.is_stopped()));
    running[0].1.set_done(1);
    scheduler.finish(running[0].0, Rest::Untried);
    assert!(!scheduler.is_idle(id));
    finish(&mut scheduler, &running[1]);
    assert!(scheduler.is_idle(id));
    assert!(scheduler.next(NOW).is_none());
    let commit = scheduler.remove(id).expect("records were done");
    let mut restored = Ledger::restore(commit.offset, &commit.metadata);
    assert_eq!((0..4).filter(|it| restored.deliver(*it) == crate::Delivery::Open).count(), 2);
}

#[test]
fn a_commit_counts_the_records_of_a_slice_that_runs_on() {
    let (mut scheduler, id) = scheduler(Order::Partition, &[None; 10]);
    assert_eq!(scheduler.take_commit(id), None, "nothing was done");
    let (ticket, slice) = scheduler.next(NOW).expect("ready");
    slice.set_done(7);
    assert_eq!(scheduler.take_changed(), [id]);
    assert_eq!(scheduler.take_commit(id).map(|commit| commit.offset), Some(7));
    assert_eq!(scheduler.take_commit(id), None);
    scheduler.retake_commit(id);
    assert_eq!(scheduler.take_changed(), [id]);
    assert_eq!(scheduler.take_commit(id).map(|commit| commit.offset), Some(7));
    slice.set_done(10);
    scheduler.finish(ticket, Rest::Untried);
    assert_eq!(scheduler.take_changed(), [id], "it ran when it was last taken");
    assert_eq!(scheduler.take_commit(id).map(|commit| commit.offset), Some(10));
    assert_eq!(scheduler.take_changed(), [], "nothing runs");
}

#[test]
fn what_runs_on_after_a_partition_is_lost_has_no_effect() {
    let (mut scheduler, id) = scheduler(Order::Partition, &[None; 3]);
    let late = scheduler.next(NOW).expect("ready");
    scheduler.remove(id);
    let again = scheduler.assign(plan(Order::Partition), Ledger::at(0));
    finish(&mut scheduler, &late);
    assert_eq!(scheduler.take_commit(again), None);
    assert_eq!(scheduler.running, 0);
}

#[test]
fn a_route_with_a_limit_leaves_workers_to_others() {
    let mut scheduler = Scheduler::new(4, BYTES_MAX);
    let limited = Plan { pool: Some(Pool { id: 0, workers: 2 }), ..plan(Order::None) };
    let slow = [0, 1].map(|_| scheduler.assign(limited, Ledger::at(0)));
    let other = scheduler.assign(plan(Order::None), Ledger::at(0));
    for id in slow.into_iter().chain([other]) {
        (0..3).for_each(|offset| assert!(deliver(&mut scheduler, id, offset, None)));
    }
    let running = start_all(&mut scheduler, NOW);
    let of_slow: Vec<_> = running.iter().filter(|it| it.0.partition != other).collect();
    assert_eq!((of_slow.len(), running.len()), (2, 4));
    finish(&mut scheduler, of_slow[0]);
    // The other route may have it, or the limited one: both have records.
    let next = scheduler.next(NOW).expect("a worker is free");
    finish(&mut scheduler, &next);
    let rest = running.iter().filter(|it| it.0 != of_slow[0].0);
    rest.for_each(|it| finish(&mut scheduler, it));
    let mut records = 5;
    while let Some(it) = scheduler.next(NOW) {
        records += it.1.len();
        finish(&mut scheduler, &it);
    }
    assert_eq!(records, 9, "none is left behind");
}

#[test]
fn a_partition_given_back_does_not_keep_others_of_its_route_waiting() {
    let mut scheduler = Scheduler::new(4, BYTES_MAX);
    let limited = Plan { pool: Some(Pool { id: 0, workers: 1 }), ..plan(Order::None) };
    let [one, other] = [0, 1].map(|_| scheduler.assign(limited, Ledger::at(0)));
    assert!(deliver(&mut scheduler, one, 0, None) && deliver(&mut scheduler, other, 0, None));
    let (ticket, _) = scheduler.next(NOW).expect("ready");
    assert!(scheduler.next(NOW).is_none());
    scheduler.remove(ticket.partition);
    assert!(scheduler.next(NOW).is_none(), "it runs on");
    scheduler.finish(ticket, Rest::Untried);
    assert!(scheduler.next(NOW).is_some());
}

/// The seeds of a simulation: `schedules` from 0 on, or what the environment says.
pub(super) fn seeds(schedules: u64) -> std::ops::Range<u64> {
    let number = |name| Some(std::env::var(name).ok()?.parse::<u64>().expect("a number"));
    let from = number("MOLDAU_SIMULATION_SEED");
    let count = number("MOLDAU_SIMULATION_COUNT").unwrap_or(from.map_or(schedules, |_| 1));
    let from = from.unwrap_or(0);
    from..from.saturating_add(count)
}
