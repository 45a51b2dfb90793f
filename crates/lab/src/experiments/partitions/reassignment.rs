//! Moving every partition of a topic to the next broker.

use std::time::{Duration, Instant};

use super::operator::{Trouble, nanos};
use super::subject::Subject;
use super::{Plan, ReassignmentPlan, announce, is_final, make_topic, omit};
use crate::experiments::bench::Bench;
use crate::experiments::side_by_side::System;
use crate::partitions::{Part, PartitionsRecord, Reassignment};
use moldau_measure::Error;

/// Pause between two questions how many are left.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn run(
    plan: &Plan,
    moving: ReassignmentPlan,
    bench: &mut Bench<'_>,
    record: &mut PartitionsRecord,
) -> Result<(), Error> {
    for system in &plan.systems {
        let arm = system.name();
        let what = format!("Reassignment: {arm}");
        announce(bench, &what, moving.seconds());
        if matches!(system, System::Moldau { .. }) {
            let reason = "a moldau broker is a cluster of one: there is nowhere to move to";
            omit(record, arm, Part::Reassignment, reason);
            continue;
        }
        let is_kept = |point: &Reassignment| is_final(point.failure.as_ref());
        let point = bench.once_if(&what, is_kept, |_| {
            let mut subject = Subject::start_nodes(system, plan, moving.brokers)?;
            let mut point = Reassignment { arm: arm.to_string(), ..Reassignment::default() };
            if let Err(trouble) = measure(moving, &mut subject, &mut point) {
                let during = if point.partitions == 0 { "creating the topic" } else { "moving" };
                point.failure = Some(subject.failure(during, &trouble));
            }
            subject.remove()?;
            Ok(point)
        })?;
        if point.failure.is_none() && point.brokers < 2 {
            omit(record, arm, Part::Reassignment, "the cluster has one broker");
        } else {
            record.reassignments.push(point);
        }
    }
    Ok(())
}

fn measure(
    moving: ReassignmentPlan,
    subject: &mut Subject,
    point: &mut Reassignment,
) -> Result<(), Trouble> {
    let brokers = registered(moving, subject)?;
    point.brokers = u32::try_from(brokers.len()).unwrap_or(u32::MAX);
    if brokers.len() < 2 {
        return Ok(());
    }
    let topic = &subject.topic("moved");
    make_topic(subject, topic, moving.partitions, true)?;
    point.partitions = moving.partitions;
    let moves = moves(&subject.operator.placement(topic)?, &brokers);
    let begun = Instant::now();
    for request in moves.chunks(usize::try_from(moving.per_request).unwrap_or(usize::MAX)) {
        subject.operator.reassign(topic, request)?;
        point.requests += 1;
    }
    point.answered_ns = Some(nanos(begun.elapsed()));
    loop {
        let left = subject.operator.reassignments_left(topic, moving.partitions)?;
        point.left = u64::try_from(left).unwrap_or(u64::MAX);
        if left == 0 {
            point.moved_ns = Some(nanos(begun.elapsed()));
            return Ok(());
        }
        if begun.elapsed() > moving.limit {
            let last = format!("{left} partitions are still being moved");
            return Err(Trouble::Slow { seconds: moving.limit.as_secs(), last });
        }
        subject.operate(|_, alive| Ok(alive()?))?;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The brokers of the cluster, once those that the laboratory started have joined.
fn registered(moving: ReassignmentPlan, subject: &mut Subject) -> Result<Vec<i32>, Trouble> {
    let begun = Instant::now();
    loop {
        let brokers = subject.operator.brokers()?;
        let is_whole = brokers.len() >= usize::from(moving.brokers) || !subject.is_ours();
        if is_whole || begun.elapsed() > moving.limit {
            return Ok(brokers);
        }
        subject.operate(|_, alive| Ok(alive()?))?;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Each partition with the broker after its own, in a ring.
fn moves(placement: &[i32], brokers: &[i32]) -> Vec<(i32, Vec<i32>)> {
    let next = |node: &i32| {
        let own = brokers.iter().position(|broker| broker == node)?;
        brokers.get((own + 1) % brokers.len()).copied()
    };
    (0..).zip(placement).filter_map(|(index, node)| Some((index, vec![next(node)?]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_moves_to_another_broker() {
        let moves = moves(&[3, 1, 2, 1, -1], &[1, 2, 3]);
        let expected = [(0, vec![1]), (1, vec![2]), (2, vec![3]), (3, vec![2])];
        assert_eq!(moves, expected);
    }
}
