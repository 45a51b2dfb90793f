//! Recurring tasks: functions that a group calls at the times of a cron expression.
//!
//! | module | what it holds |
//! |---|---|
//! | `schedule` | the times of a cron expression in a time zone |
//! | `status` | [`TaskStatus`]: what is stored of a task, and what follows from it: no I/O |
//! | `owner` | the member that has a partition calls the tasks of that partition |
//! | `control` | [`RecurringTasks`]: enables, disables, triggers and lists tasks |
//!
//! The state of a task is a record in a compacted topic, in the partition of its name; commands are
//! records beside it. The member with the partition is the only one that calls the task:
//!
//! | key | value |
//! |---|---|
//! | `task:NAME` | JSON of [`TaskStatus`] |
//! | `command:NAME:enabled` | `{"command":"enable"}` or `{"command":"disable"}` |
//! | `command:NAME:trigger` | `{"command":"trigger"}` |

mod control;
mod owner;
mod schedule;
mod status;

use std::sync::Arc;
use std::time::Duration;

use crate::context::{Context, StateType};
use crate::failure::Failure;
use crate::handler::{Extract, HandlerFn, Job, job};
use crate::{Error, Result};
use schedule::Schedule;

pub use control::RecurringTasks;
pub(crate) use owner::background;
pub use status::{Outcome, RunCause, StartedRun, TaskRun, TaskStatus};

/// What becomes of times that passed while no member could call the task: the group was down, an
/// earlier run took too long, or the member with the task crashed during it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Missed {
    /// One run makes up for all of them. A run that a crash interrupted is repeated.
    #[default]
    RunOnce,
    /// They are left out. A time counts as missed 30 seconds after it.
    Skip,
}

/// One call of a recurring task.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    task: Arc<str>,
    started: StartedRun,
}

impl Run {
    /// Name of the task.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// When it was due, since 1970-01-01.
    #[must_use]
    pub fn due(&self) -> Duration {
        Duration::from_millis(self.started.due_ms)
    }

    /// Why it runs.
    #[must_use]
    pub fn cause(&self) -> RunCause {
        self.started.cause
    }
}

impl Extract<Self> for Run {
    fn extract(run: &Self, _: Context<'_>) -> std::result::Result<Self, Failure> {
        Ok(run.clone())
    }
}

/// A function that is called at the times of a cron expression, once per group.
#[derive(Clone)]
pub struct Recurring {
    name: Arc<str>,
    schedule: Schedule,
    missed: Missed,
    enabled_at_first: bool,
    job: Job<Run>,
}

impl Recurring {
    /// Calls `function` at the times of `cron`, in UTC: five fields (minute, hour, day of the
    /// month, month, day of the week), or six with seconds before them. The function takes a
    /// [`Run`] and [`State`](crate::State). The name identifies the task in the group's topic.
    ///
    /// # Errors
    /// [`Error::Task`]: the name is empty or has a colon, or the expression is not valid.
    pub fn cron<F, Args>(name: &str, cron: &str, function: F) -> Result<Self>
    where
        F: HandlerFn<Run, Args>,
        Args: 'static,
    {
        let refused = |reason| Error::Task { task: name.into(), reason };
        if name.is_empty() || name.contains(':') {
            return Err(refused("a name has at least one character and no colon".to_owned()));
        }
        Ok(Self {
            name: name.into(),
            schedule: Schedule::parse(cron).map_err(refused)?,
            missed: Missed::default(),
            enabled_at_first: true,
            job: job(function),
        })
    }

    /// State that the function takes.
    pub(crate) fn states(&self) -> &[StateType] {
        self.job.states()
    }

    /// The zone whose time the expression means, as `Europe/Berlin`. A time that the change to
    /// summer time leaves out is moved behind the gap; a fixed time that occurs twice is used once.
    ///
    /// # Errors
    /// [`Error::Task`]: the zone is not known.
    pub fn zone(mut self, zone: &str) -> Result<Self> {
        let refused = |reason| Error::Task { task: Arc::clone(&self.name), reason };
        self.schedule = self.schedule.in_zone(zone).map_err(refused)?;
        Ok(self)
    }

    /// What becomes of missed times.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// The task waits to be enabled by a command.
    #[must_use]
    pub fn disabled(mut self) -> Self {
        self.enabled_at_first = false;
        self
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }
}
