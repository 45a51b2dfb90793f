//! Periodic jobs: functions that are called every so often, for an app or for each partition that
//! it reads, whether records come or not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::TopicPartition;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::background::{Background, Lifecycle, Stage};
use crate::context::{Context, Services};
use crate::failure::Failure;
use crate::handler::{Extract, Job};
use crate::source::Source;

/// One call of a periodic job.
#[derive(Clone, Debug)]
pub struct Tick {
    at: Duration,
    partition: Option<TopicPartition>,
}

impl Tick {
    /// When it was due, since 1970-01-01, by the app's clock.
    #[must_use]
    pub fn at(&self) -> Duration {
        self.at
    }

    /// The partition that it is for; `None` for a job of the app.
    #[must_use]
    pub fn partition(&self) -> Option<&TopicPartition> {
        self.partition.as_ref()
    }
}

impl Extract<Self> for Tick {
    fn extract(tick: &Self, _: Context<'_>) -> Result<Self, Failure> {
        Ok(tick.clone())
    }
}

/// A job and how often it is called.
#[derive(Clone)]
pub(crate) struct Periodic {
    pub(crate) interval: Duration,
    pub(crate) job: Job<Tick>,
}

impl Periodic {
    /// The task that calls it: for each partition of `topics` that is assigned, or, without any,
    /// for the app.
    pub(crate) fn background(self, topics: Option<Source>) -> Background {
        Background::new("periodic job", async move |services, lifecycle| {
            Ticking::new(self, topics, services).run(lifecycle).await;
            Ok(())
        })
    }
}

/// When a target is due.
struct Target {
    due: Duration,
    /// The call that runs; cancelled if the partition is given back.
    running: Option<AbortHandle>,
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

struct Ticking {
    periodic: Periodic,
    topics: Option<Source>,
    services: Arc<Services>,
    targets: BTreeMap<Option<TopicPartition>, Target>,
    calls: JoinSet<()>,
}

impl Ticking {
    fn new(mut periodic: Periodic, topics: Option<Source>, services: Arc<Services>) -> Self {
        periodic.interval = periodic.interval.max(INTERVAL_MIN);
        Self { periodic, topics, services, targets: BTreeMap::new(), calls: JoinSet::new() }
    }

    async fn run(mut self, mut lifecycle: Lifecycle) {
        let mut assignment = self.services.assignment.clone();
        let clock = self.services.clock.clone();
        loop {
            self.set_targets(&assignment.borrow_and_update());
            self.start_due();
            let due = self.next_due();
            tokio::select! {
                () = lifecycle.reached(Stage::Draining) => break,
                changed = assignment.changed() => if changed.is_err() { break },
                Some(ended) = self.calls.join_next_with_id() => self.take_ended(ended),
                () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {}
            }
        }
        // Calls under way may finish.
        while self.calls.join_next().await.is_some() {}
    }

    /// Follows the assignment. A target is first called one interval after it came.
    fn set_targets(&mut self, assignment: &[TopicPartition]) {
        let targets: Vec<_> = match &self.topics {
            None => vec![None],
            Some(topics) => {
                let covered = assignment.iter().filter(|it| topics.cover(&it.topic));
                covered.cloned().map(Some).collect()
            }
        };
        // Both are sorted.
        self.targets.retain(|target, _| targets.binary_search(target).is_ok());
        let due = self.services.clock.now() + self.periodic.interval;
        for target in targets {
            self.targets.entry(target).or_insert(Target { due, running: None });
        }
    }

    fn start_due(&mut self) {
        let now = self.services.clock.now();
        for (partition, target) in &mut self.targets {
            if self.calls.len() >= CALLS_MAX {
                break;
            }
            if target.running.is_none() && target.due <= now {
                let tick = Tick { at: target.due, partition: partition.clone() };
                let call = self.periodic.job.call(tick, Arc::clone(&self.services));
                target.running = Some(self.calls.spawn(async move {
                    if let Err(failure) = call.await {
                        tracing::error!(%failure, "a periodic job failed");
                    }
                }));
                // Calls that were missed are left out.
                target.due = now + self.periodic.interval;
            }
        }
    }

    /// When the next call is to start; `None` while a call that runs must end first.
    fn next_due(&self) -> Option<Duration> {
        if self.calls.len() >= CALLS_MAX {
            return None;
        }
        let waiting = self.targets.values().filter(|target| target.running.is_none());
        waiting.map(|target| target.due).min()
    }

    fn take_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
        let is_ended =
            |target: &&mut Target| target.running.as_ref().is_some_and(|it| it.id() == id);
        if let Some(target) = self.targets.values_mut().find(is_ended) {
            target.running = None;
        }
    }
}

/// Shortest interval; timers are not good for less.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Calls of one job that run at a time, over all partitions; others wait. As many as an app has
/// workers.
const CALLS_MAX: usize = 256;
