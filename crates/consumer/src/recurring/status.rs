//! What is stored of a task, and what follows from it.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use super::{Missed, Recurring};

/// State of a recurring task. Times are in ms since 1970.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskStatus {
    /// Name of the task.
    pub task: String,
    /// Its cron expression.
    pub cron: String,
    /// The zone whose time the expression means.
    pub zone: String,
    /// Whether it runs at the times of its expression. A trigger works all the same.
    pub enabled: bool,
    /// The run under way.
    pub running: Option<StartedRun>,
    /// The last runs that ended, at most 20, the newest at the end.
    pub runs: VecDeque<TaskRun>,
    /// Times up to this one have run, or are left out.
    settled_ms: u64,
    /// A command asks for a run.
    triggered: bool,
    /// Offset after the last command that was obeyed.
    commands_end: i64,
}

/// A run that began.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StartedRun {
    /// When it was due.
    pub due_ms: u64,
    /// When it began.
    pub started_ms: u64,
    /// Why it runs.
    pub cause: RunCause,
}

/// Why a task runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCause {
    /// Its time came, or it makes up for missed times.
    Due,
    /// A command triggered it.
    Triggered,
    /// A crash interrupted an earlier run.
    Interrupted,
}

/// A run that ended.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskRun {
    /// What began.
    pub started: StartedRun,
    /// When it ended, or was found to be interrupted.
    pub ended_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The function returned `Ok`.
    Succeeded,
    /// The function returned this error, or panicked.
    Failed(String),
    /// The member crashed, or lost the partition during the run.
    Interrupted,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(super) enum Command {
    Enable,
    Disable,
    Trigger,
}

/// What a task does next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// Nothing until a command comes or its run ends.
    Wait,
    /// Nothing until this time.
    WaitUntil(Duration),
    /// A run. The state says so already, and must be stored before it begins.
    Start(StartedRun),
}

impl TaskStatus {
    /// The state of a task that has none, or whose definition may differ from `stored`.
    pub(super) fn of(recurring: &Recurring, stored: Option<Self>, now: Duration) -> Self {
        let Recurring { name, schedule, enabled_at_first, .. } = recurring;
        let mut status = stored.unwrap_or_else(|| Self {
            task: name.to_string(),
            cron: String::new(),
            zone: String::new(),
            enabled: *enabled_at_first,
            running: None,
            runs: VecDeque::new(),
            settled_ms: 0,
            triggered: false,
            commands_end: 0,
        });
        if status.cron != schedule.cron() || status.zone != schedule.zone() {
            schedule.cron().clone_into(&mut status.cron);
            schedule.zone().clone_into(&mut status.zone);
            status.settled_ms = millis(now);
        }
        status
    }

    /// Ends a run whose end nobody stored, and repeats it if `missed` says so.
    pub(super) fn interrupt(&mut self, missed: Missed, now: Duration) -> Option<StartedRun> {
        let interrupted = self.running.take()?;
        self.end(interrupted, Outcome::Interrupted, now);
        if missed == Missed::Skip {
            return None;
        }
        let (due_ms, started_ms) = (interrupted.due_ms, millis(now));
        let again = StartedRun { due_ms, started_ms, cause: RunCause::Interrupted };
        self.running = Some(again);
        Some(again)
    }

    /// Obeys the command at `offset`, unless it was obeyed before.
    pub(super) fn obey(&mut self, command: Command, offset: i64, now: Duration) -> bool {
        if offset < self.commands_end {
            return false;
        }
        self.commands_end = offset.saturating_add(1);
        match command {
            // Times that passed while it was disabled are not missed.
            Command::Enable if !self.enabled => {
                self.enabled = true;
                self.settled_ms = self.settled_ms.max(millis(now));
            }
            Command::Enable => {}
            Command::Disable => self.enabled = false,
            Command::Trigger => self.triggered = true,
        }
        true
    }

    /// What follows at this time.
    pub(super) fn step(&mut self, schedule: &Schedule, missed: Missed, now: Duration) -> Next {
        if self.running.is_some() {
            return Next::Wait;
        }
        if self.triggered {
            self.triggered = false;
            return self.start(now, RunCause::Triggered, now);
        }
        if !self.enabled {
            return Next::Wait;
        }
        let settled = Duration::from_millis(self.settled_ms);
        let Some(due) = schedule.next_after(settled) else { return Next::Wait };
        if due > now {
            return Next::WaitUntil(due);
        }
        let latest = schedule.last_until(now).unwrap_or(due).max(due);
        self.settled_ms = millis(latest);
        if missed == Missed::Skip && now.saturating_sub(latest) > LATE_MAX {
            return match schedule.next_after(latest) {
                Some(next) => Next::WaitUntil(next),
                None => Next::Wait,
            };
        }
        self.start(latest, RunCause::Due, now)
    }

    fn start(&mut self, due: Duration, cause: RunCause, now: Duration) -> Next {
        let started = StartedRun { due_ms: millis(due), started_ms: millis(now), cause };
        self.running = Some(started);
        Next::Start(started)
    }

    /// The run under way has ended.
    pub(super) fn finish(&mut self, outcome: Outcome, now: Duration) {
        if let Some(started) = self.running.take() {
            self.end(started, outcome, now);
        }
    }

    fn end(&mut self, started: StartedRun, outcome: Outcome, now: Duration) {
        if self.runs.len() >= RUNS_MAX {
            self.runs.pop_front();
        }
        self.runs.push_back(TaskRun { started, ended_ms: millis(now), outcome });
    }
}

pub(super) fn millis(at: Duration) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// Runs that are remembered: the state stays a small record.
const RUNS_MAX: usize = 20;

/// How late a run may begin where missed times are left out: longer than a rebalance.
const LATE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
