//! The task that connects member, fetcher, scheduler and handlers. It alone owns their state;
//! handlers run on tasks of their own.
//!
//! | module | what it holds |
//! |---|---|
//! | `reading` | one assigned partition, and the records on their way into its queue |
//! | `drain` | partitions that are given back |

mod drain;
mod reading;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{
    Cluster, CommittedOffset, Error as ClientError, Fetched, Fetcher, FetcherOptions, Reset, Start,
    TopicPartition,
};
use moldau_records::Decompressor;
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Interval, MissedTickBehavior};

use crate::context::Services;
use crate::ledger::{Commit, Ledger};
use crate::member::{Command, Commits, Event, Member};
use crate::message::{Chunk, Message};
use crate::route::{AnyRoute, rest_after_panic};
use crate::scheduler::{PartitionId, Rest, Scheduler, Slice, Ticket};
use crate::{Error, Result};
use drain::{Drain, Purpose};
use reading::Reading;

/// What a runtime is made of.
pub(crate) struct Parts {
    pub(crate) cluster: Cluster,
    pub(crate) member: Member,
    pub(crate) fetcher: FetcherOptions,
    pub(crate) routes: HashMap<Arc<str>, AnyRoute>,
    pub(crate) services: Arc<Services>,
    pub(crate) workers: watch::Receiver<usize>,
    pub(crate) assignment: watch::Sender<Vec<TopicPartition>>,
    pub(crate) queue_bytes_max: usize,
    pub(crate) commit_interval: Duration,
    pub(crate) drain_timeout: Duration,
}

/// A slice whose handler runs.
struct Task {
    ticket: Ticket,
    slice: Slice<Message>,
    handle: AbortHandle,
}

/// Whether a commit is under way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Committing {
    No,
    Yes,
}

/// How far the app is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Running,
    /// Its partitions are drained.
    Draining,
    /// The member commits and leaves.
    Leaving,
}

pub(crate) struct Runtime {
    member: Member,
    fetcher: Fetcher,
    reset: Reset,
    /// Bytes of fetches that full queues may hold; the other half of the buffer is for partitions
    /// that go on.
    held_bytes_max: usize,
    routes: HashMap<Arc<str>, AnyRoute>,
    services: Arc<Services>,
    workers: watch::Receiver<usize>,
    assignment: watch::Sender<Vec<TopicPartition>>,
    drain_timeout: Duration,
    scheduler: Scheduler<Message>,
    readings: HashMap<PartitionId, Reading>,
    by_name: HashMap<TopicPartition, PartitionId>,
    drains: Vec<Drain>,
    /// Partitions that the fetcher is to start again, and when.
    restarts: Vec<(Duration, PartitionId)>,
    tasks: JoinSet<Rest>,
    by_task: HashMap<Id, Task>,
    decompressor: Decompressor,
    commits: Interval,
    committing: Committing,
    stage: Stage,
    /// Losses that the member has told of.
    losses: u64,
}

impl Runtime {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut workers = parts.workers;
        let workers_now = *workers.borrow_and_update();
        let mut commits = tokio::time::interval(parts.commit_interval.max(COMMIT_INTERVAL_MIN));
        commits.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            member: parts.member,
            reset: parts.fetcher.reset,
            held_bytes_max: parts.fetcher.buffer_bytes_max / 2,
            fetcher: Fetcher::start(&parts.cluster, parts.fetcher),
            routes: parts.routes,
            services: parts.services,
            assignment: parts.assignment,
            drain_timeout: parts.drain_timeout,
            scheduler: Scheduler::new(workers_now, parts.queue_bytes_max),
            workers,
            readings: HashMap::new(),
            by_name: HashMap::new(),
            drains: Vec::new(),
            restarts: Vec::new(),
            tasks: JoinSet::new(),
            by_task: HashMap::new(),
            decompressor: Decompressor::default(),
            commits,
            committing: Committing::No,
            stage: Stage::Running,
            losses: 0,
        }
    }

    /// Runs until `shutdown` completes and everything is given back, or the member ends.
    pub(crate) async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<()> {
        tokio::pin!(shutdown);
        loop {
            self.start_slices();
            self.end_drains().await?;
            let due = self.next_due();
            let clock = self.services.clock.clone();
            tokio::select! {
                event = self.member.events.recv() => match event {
                    Some(Event::Ended(ended)) => return ended,
                    Some(event) => self.take_event(event).await,
                    None => return Err(Error::MemberGone),
                },
                fetched = self.fetcher.next() => self.take_fetched(fetched),
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.take_ended(ended);
                    while let Some(ended) = self.tasks.try_join_next_with_id() {
                        self.take_ended(ended);
                    }
                }
                () = sleep_until(&clock, due) => self.restart().await,
                _ = self.commits.tick(), if self.committing == Committing::No => {
                    self.commit().await?;
                }
                Ok(()) = self.workers.changed() => {
                    self.scheduler.set_workers(*self.workers.borrow_and_update());
                }
                () = &mut shutdown, if self.stage == Stage::Running => self.shut_down(),
            }
        }
    }

    /// Starts handlers for all that may run.
    fn start_slices(&mut self) {
        let now = self.services.clock.now();
        while let Some((ticket, slice)) = self.scheduler.next(now) {
            let reading = self.readings.get(&ticket.partition);
            let reading = reading.expect("the scheduler knows the partitions that are read");
            let running = reading.runner.run(slice.clone(), Arc::clone(&self.services));
            let handle = self.tasks.spawn(running);
            self.by_task.insert(handle.id(), Task { ticket, slice, handle });
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let restarts = self.restarts.iter().map(|(at, _)| *at);
        let drains = self.drains.iter().map(|drain| drain.deadline);
        restarts.chain(drains).chain(self.scheduler.next_due()).min()
    }

    async fn take_event(&mut self, event: Event) {
        match event {
            Event::Assigned(partitions) => {
                for (partition, committed) in partitions {
                    self.assign(partition, committed).await;
                }
            }
            Event::Revoked(partitions) => self.start_drain(partitions, Purpose::Revocation),
            Event::Lost(partitions) => {
                self.losses += 1;
                self.end_lost_drains(&partitions);
                for partition in partitions {
                    if let Some(id) = self.by_name.get(&partition).copied() {
                        self.forget(id);
                    }
                }
            }
            Event::Committed { failed } => {
                self.committing = Committing::No;
                for id in failed.iter().filter_map(|partition| self.by_name.get(partition)) {
                    self.scheduler.retake_commit(*id);
                }
            }
            Event::Ended(_) => {}
        }
        self.tell_assignment();
    }

    async fn assign(&mut self, partition: TopicPartition, committed: Option<CommittedOffset>) {
        let Some(route) = self.routes.get(&partition.topic) else {
            tracing::warn!(?partition, "assigned without a route");
            return;
        };
        let (ledger, start) = match committed {
            Some(committed) => {
                let ledger = Ledger::restore(committed.offset, &committed.metadata);
                let start = Start::Offset(ledger.base());
                (ledger, start)
            }
            None => (Ledger::at(0), self.first_start()),
        };
        let id = self.scheduler.assign(route.plan, ledger);
        let runner = Arc::clone(&route.runner);
        let reading = Reading::new(partition.clone(), route.plan.order, runner);
        self.readings.insert(id, reading);
        self.by_name.insert(partition, id);
        self.read_from(id, start).await;
        if self.stage != Stage::Running {
            self.scheduler.drain(id);
        }
    }

    /// Where a partition is read that the group has committed nothing of.
    fn first_start(&self) -> Start {
        match self.reset {
            Reset::Latest => Start::Latest,
            Reset::Earliest | Reset::Fail => Start::Earliest,
        }
    }

    async fn read_from(&mut self, id: PartitionId, start: Start) {
        let Some(reading) = self.readings.get_mut(&id) else { return };
        reading.starts();
        let TopicPartition { topic, partition } = &reading.name;
        if let Err(error) = self.fetcher.assign(topic, *partition, start).await {
            tracing::warn!(%topic, partition, %error, "cannot be read; tried again");
            reading.restart_at = Some(start);
            let at = self.services.clock.now() + DAMAGE_PAUSE;
            self.restarts.push((at, id));
        }
    }

    fn take_fetched(&mut self, fetched: moldau_client::Result<Fetched>) {
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => return self.take_fetch_error(&error),
        };
        let Some(id) = self.by_name.get(&fetched.topic_partition()).copied() else { return };
        let Some(reading) = self.readings.get_mut(&id) else { return };
        let read = Chunk::read(fetched, &mut self.decompressor);
        if let Some(error) = &read.damage {
            let TopicPartition { topic, partition } = &reading.name;
            tracing::error!(%topic, partition, offset = read.next, %error, "damaged records");
            // What lies behind it must not be read first: it would be passed over.
            self.fetcher.unassign(&reading.name);
            reading.restart_at = Some(Start::Offset(read.next));
            self.restarts.push((self.services.clock.now() + DAMAGE_PAUSE, id));
        }
        reading.take(read);
        self.fill(id);
        let held: usize = self.readings.values().map(Reading::held_bytes).sum();
        if held > self.held_bytes_max
            && let Some(reading) = self.readings.get_mut(&id)
        {
            reading.give_back(&self.fetcher);
        }
    }

    /// Moves records of a partition into its queue.
    fn fill(&mut self, id: PartitionId) {
        let Some(reading) = self.readings.get_mut(&id) else { return };
        if let Some(start) = reading.fill(id, &mut self.scheduler, &self.fetcher) {
            reading.restart_at = Some(start);
            self.restarts.push((self.services.clock.now(), id));
        }
    }

    /// The fetcher has stopped reading a partition.
    fn take_fetch_error(&mut self, error: &ClientError) {
        tracing::error!(%error, "a partition cannot be fetched");
        let ClientError::UnreadableBatch { topic, partition, offset, .. } = error else { return };
        let name = TopicPartition { topic: topic.clone(), partition: *partition };
        if let Some(id) = self.by_name.get(&name)
            && let Some(reading) = self.readings.get_mut(id)
        {
            reading.restart_at = Some(Start::Offset(*offset));
            self.restarts.push((self.services.clock.now() + DAMAGE_PAUSE, *id));
        }
    }

    /// Starts to fetch partitions again.
    async fn restart(&mut self) {
        let now = self.services.clock.now();
        let due: Vec<_> = self.restarts.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, id) in due {
            let start = self.readings.get_mut(&id).and_then(|reading| reading.restart_at.take());
            if let Some(start) = start {
                self.read_from(id, start).await;
            }
        }
    }

    fn take_ended(&mut self, ended: std::result::Result<(Id, Rest), JoinError>) {
        let (id, rest) = match ended {
            Ok((id, rest)) => (id, Some(rest)),
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(%error, "a layer panicked");
                }
                (error.id(), None)
            }
        };
        let Some(Task { ticket, slice, .. }) = self.by_task.remove(&id) else { return };
        let rest = rest.unwrap_or_else(|| {
            let attempt = slice.items().first().map(|item| item.attempt).unwrap_or_default();
            rest_after_panic(attempt, &self.services)
        });
        self.scheduler.finish(ticket, rest);
        self.fill(ticket.partition);
    }

    /// Sends what has changed since the last commit.
    async fn commit(&mut self) -> Result<()> {
        if self.stage == Stage::Leaving {
            return Ok(());
        }
        let mut commits = Vec::new();
        for (id, reading) in &self.readings {
            if let Some(commit) = self.scheduler.take_commit(*id) {
                commits.push((reading.name.clone(), committed_offset(commit)));
            }
        }
        if commits.is_empty() {
            return Ok(());
        }
        self.committing = Committing::Yes;
        self.tell(Command::Commit { losses: self.losses, commits }).await
    }

    async fn tell(&self, command: Command) -> Result<()> {
        // The member says why it has ended before its channel closes.
        drop(self.member.commands.send(command).await);
        Ok(())
    }

    /// Stops reading a partition; returns its last commit.
    fn forget(&mut self, id: PartitionId) -> Commits {
        let Some(reading) = self.readings.remove(&id) else { return Commits::new() };
        self.fetcher.unassign(&reading.name);
        self.by_name.remove(&reading.name);
        for task in self.by_task.values().filter(|task| task.ticket.partition == id) {
            task.handle.abort();
        }
        let commit = self.scheduler.remove(id).map(committed_offset);
        commit.map(|commit| (reading.name, commit)).into_iter().collect()
    }

    fn tell_assignment(&self) {
        let mut assignment: Vec<_> = self.by_name.keys().cloned().collect();
        assignment.sort_unstable();
        self.assignment.send_if_modified(|told| {
            let is_changed = *told != assignment;
            *told = assignment;
            is_changed
        });
    }
}

fn committed_offset(commit: Commit) -> CommittedOffset {
    CommittedOffset { metadata: commit.metadata, ..CommittedOffset::at(commit.offset) }
}

async fn sleep_until(clock: &crate::Clock, at: Option<Duration>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Shortest time between commits: each is a request.
const COMMIT_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Pause before records that could not be read are read again.
const DAMAGE_PAUSE: Duration = Duration::from_secs(1);
