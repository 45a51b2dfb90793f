//! Making partitions: at once in one topic, in increments, and as topics of one partition.

use std::time::Instant;

use super::operator::Trouble;
use super::subject::Subject;
use super::{CreationPlan, OfFailure, Plan, announce, on_a_system};
use crate::experiments::bench::Bench;
use crate::partitions::{Created, Growth, GrowthStep, How, PartitionsRecord};
use moldau_measure::Error;

pub(super) fn run(
    plan: &Plan,
    creation: &CreationPlan,
    bench: &mut Bench<'_>,
    record: &mut PartitionsRecord,
) -> Result<(), Error> {
    let seconds = creation.seconds() / 3;
    for system in &plan.systems {
        let arm = system.name();
        let what = format!("Creation: {arm}, at once");
        announce(bench, &what, seconds);
        let failure: OfFailure<Vec<Created>> = |made| made.last()?.failure.as_ref();
        let measure = |_: &mut Bench<'_>, subject: &mut Subject| Ok(at_once(subject, creation));
        let made = on_a_system(system, plan, bench, record, &what, failure, measure)?;
        record.at_once.extend(made);

        let failure: OfFailure<Growth> = |growth| growth.failure.as_ref();
        let what = format!("Creation: {arm}, in increments");
        announce(bench, &what, seconds);
        let measure = |_: &mut Bench<'_>, subject: &mut Subject| Ok(increments(subject, creation));
        let growth = on_a_system(system, plan, bench, record, &what, failure, measure)?;
        record.grown.push(growth);

        let what = format!("Creation: {arm}, as topics");
        announce(bench, &what, creation.seconds() - 2 * seconds);
        let measure = |_: &mut Bench<'_>, subject: &mut Subject| Ok(topics(subject, creation));
        let growth = on_a_system(system, plan, bench, record, &what, failure, measure)?;
        record.topics.push(growth);
    }
    Ok(())
}

/// A refusal leaves the system as it was, so larger topics are tried too; any other failure ends
/// the attempts.
fn at_once(subject: &mut Subject, plan: &CreationPlan) -> Vec<Created> {
    let mut found = Vec::new();
    for partitions in &plan.at_once {
        let (arm, topic) = (subject.path.arm.clone(), subject.topic("at-once"));
        let mut created = Created { arm, partitions: *partitions, ..Created::default() };
        match subject.operate(|operator, alive| operator.create(&topic, *partitions, alive)) {
            Ok(creation) => {
                created.creation = Some(creation);
                created.after = subject.look();
                if let Err(trouble) = subject.operator.delete(&[topic]) {
                    created.failure = Some(subject.failure("deleting the topic", &trouble));
                }
            }
            Err(trouble) => {
                created.failure = Some(subject.failure("creating the topic", &trouble));
            }
        }
        let how = created.failure.as_ref().map(|failure| failure.how.clone());
        found.push(created);
        if how.is_some_and(|how| !matches!(how, How::Refused { .. })) {
            break;
        }
    }
    found
}

fn increments(subject: &mut Subject, plan: &CreationPlan) -> Growth {
    let topic = &subject.topic("in-increments");
    let growth = growth(subject, plan.increment, plan.grown_to);
    climb(subject, growth, plan, "growing the topic", |subject, total, is_first| {
        let make = subject.operate(|operator, alive| {
            if is_first {
                operator.create(topic, total, alive)
            } else {
                operator.grow(topic, total, alive)
            }
        })?;
        let (answered_ns, usable_ns) = (make.answered_ns, make.usable_ns);
        Ok(GrowthStep { total, answered_ns, usable_ns })
    })
}

fn topics(subject: &mut Subject, plan: &CreationPlan) -> Growth {
    let growth = growth(subject, plan.topics_per_request, plan.topics);
    let mut next = 0;
    climb(subject, growth, plan, "creating topics", |subject, total, _| {
        let names: Vec<String> = (next..total).map(|_| subject.topic("single")).collect();
        next = total;
        let made = subject.operate(|operator, alive| operator.create_many(&names, alive))?;
        let (answered_ns, usable_ns) = (made.answered_ns, made.usable_ns);
        Ok(GrowthStep { total, answered_ns, usable_ns })
    })
}

fn growth(subject: &Subject, step: u32, intended: u32) -> Growth {
    Growth { arm: subject.path.arm.clone(), step, intended, ..Growth::default() }
}

/// Makes step after step until all are made, one fails, or the time is up.
fn climb(
    subject: &mut Subject,
    mut growth: Growth,
    plan: &CreationPlan,
    during: &str,
    mut step: impl FnMut(&mut Subject, u32, bool) -> Result<GrowthStep, Trouble>,
) -> Growth {
    let begun = Instant::now();
    let mut total = 0;
    while total < growth.intended {
        if begun.elapsed() > plan.limit {
            growth.time_was_up = true;
            break;
        }
        total = total.saturating_add(growth.step).min(growth.intended);
        match step(subject, total, growth.steps.is_empty()) {
            Ok(step) => growth.steps.push(step),
            Err(trouble) => {
                growth.failure = Some(subject.failure(format!("{during} to {total}"), &trouble));
                break;
            }
        }
        growth.after = subject.look();
    }
    growth
}
