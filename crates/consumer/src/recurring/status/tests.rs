//! The life of a task, without a topic.

use super::*;

const MINUTE: Duration = Duration::from_mins(1);
/// A full hour.
const START: Duration = Duration::from_hours(500_000);

fn task() -> Recurring {
    Recurring::cron("report", "*/5 * * * *", async |_: crate::Run| Ok::<(), String>(()))
        .expect("it is valid")
}

fn step(status: &mut TaskStatus, missed: Missed, now: Duration) -> Next {
    status.step(&task().schedule, missed, now)
}

fn started(next: Next) -> StartedRun {
    match next {
        Next::Start(started) => started,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_runs_at_its_times_one_run_at_a_time() {
    let mut status = TaskStatus::of(&task(), None, START);
    let first = START + 5 * MINUTE;
    assert_eq!(step(&mut status, Missed::RunOnce, START), Next::WaitUntil(first));
    let run = started(step(&mut status, Missed::RunOnce, first));
    assert_eq!((run.due_ms, run.cause), (millis(first), RunCause::Due));
    assert_eq!(step(&mut status, Missed::RunOnce, first + 10 * MINUTE), Next::Wait, "it runs");
    status.finish(Outcome::Succeeded, first + 11 * MINUTE);
    let late = started(step(&mut status, Missed::RunOnce, first + 11 * MINUTE));
    assert_eq!(late.due_ms, millis(first + 10 * MINUTE), "one for both");
    status.finish(Outcome::Succeeded, first + 11 * MINUTE);
    let next = step(&mut status, Missed::RunOnce, first + 11 * MINUTE);
    assert_eq!(next, Next::WaitUntil(first + 15 * MINUTE));
}

#[test]
fn missed_times_are_left_out_if_asked_for() {
    let mut status = TaskStatus::of(&task(), None, START);
    let next = step(&mut status, Missed::Skip, START + 11 * MINUTE);
    assert_eq!(next, Next::WaitUntil(START + 15 * MINUTE));
    let late = START + 15 * MINUTE + LATE_MAX;
    assert_eq!(started(step(&mut status, Missed::Skip, late)).due_ms, millis(START + 15 * MINUTE));
}

#[test]
fn an_interrupted_run_is_repeated_unless_missed_runs_are_left_out() {
    let mut status = TaskStatus::of(&task(), None, START);
    let run = started(step(&mut status, Missed::RunOnce, START + 5 * MINUTE));
    let mut left_out = status.clone();
    let now = START + 6 * MINUTE;
    let again = status.interrupt(Missed::RunOnce, now).expect("it is repeated");
    assert_eq!((again.due_ms, again.cause), (run.due_ms, RunCause::Interrupted));
    assert_eq!(left_out.interrupt(Missed::Skip, now), None);
    for status in [&status, &left_out] {
        assert_eq!(status.runs.back().expect("a run").outcome, Outcome::Interrupted);
    }
    assert_eq!(step(&mut left_out, Missed::Skip, now), Next::WaitUntil(START + 10 * MINUTE));
}

#[test]
fn commands_are_obeyed_once() {
    let mut status = TaskStatus::of(&task(), None, START);
    assert!(status.obey(Command::Disable, 3, START));
    assert_eq!(step(&mut status, Missed::RunOnce, START + 9 * MINUTE), Next::Wait);
    assert!(status.obey(Command::Trigger, 4, START));
    let run = started(step(&mut status, Missed::RunOnce, START + 9 * MINUTE));
    assert_eq!(run.cause, RunCause::Triggered);
    status.finish(Outcome::Failed("no".to_owned()), START + 9 * MINUTE);
    assert!(!status.obey(Command::Trigger, 4, START), "it was obeyed before");
    assert!(status.obey(Command::Enable, 5, START + 9 * MINUTE));
    let next = step(&mut status, Missed::RunOnce, START + 9 * MINUTE);
    assert_eq!(next, Next::WaitUntil(START + 10 * MINUTE), "nothing was missed while disabled");
}

#[test]
fn another_expression_begins_afresh_and_keeps_the_history() {
    let mut status = TaskStatus::of(&task(), None, START);
    started(step(&mut status, Missed::RunOnce, START + 5 * MINUTE));
    status.finish(Outcome::Succeeded, START + 5 * MINUTE);
    status.enabled = false;
    status.cron = "@daily".to_owned();
    let now = START + 60 * MINUTE;
    let mut changed = TaskStatus::of(&task(), Some(status), now);
    assert_eq!((changed.runs.len(), changed.enabled), (1, false));
    changed.enabled = true;
    assert_eq!(step(&mut changed, Missed::RunOnce, now), Next::WaitUntil(now + 5 * MINUTE));
}

#[test]
fn the_history_is_bounded() {
    let mut status = TaskStatus::of(&task(), None, START);
    for round in 1..=30 {
        started(step(&mut status, Missed::RunOnce, START + round * 5 * MINUTE));
        status.finish(Outcome::Succeeded, START + round * 5 * MINUTE);
    }
    assert_eq!(status.runs.len(), RUNS_MAX);
    let newest = status.runs.back().expect("a run");
    assert_eq!(newest.started.due_ms, millis(START + 150 * MINUTE));
}
