//! The task of a shard, which connects member, fetcher, scheduler and handlers. It alone owns their
//! state, and shares nothing with other shards while records are handled.
//!
//! | module | what it holds |
//! |---|---|
//! | `reading` | one assigned partition, and the records on their way into its queue |
//! | `answer` | figures for those who ask |
//! | `drain` | partitions that are given back |
//! | `fetching` | records that come, and partitions that cannot be read |
//! | `settled` | what is handled and to be committed |
//! | `tuning` | the number of workers, which may follow the load |

mod answer;
mod drain;
mod fetching;
mod reading;
mod settled;
mod tuning;

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use moldau_client::{
    Cluster, CommittedOffset, Fetcher, FetcherOptions, Reset, Start, TopicPartition,
};
use moldau_records::Decompressor;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, coop};
use tokio::time::{Instant as TokioInstant, Interval, MissedTickBehavior};

use crate::background::{Lifecycle, Stage as AppStage};
use crate::chunk::{Chunk, Spare};
use crate::context::Services;
use crate::ledger::Ledger;
use crate::member::{Event, Link, Seen};
use crate::route::Running;
use crate::routes::Routes;
use crate::scheduler::{PartitionId, Rest, Scheduler, Ticket};
use crate::segment::Segment;
use crate::status::Question;
use crate::transaction::Pending;
use crate::{Error, Result, Workers};
use drain::{Drain, Purpose};
use reading::Reading;
use tuning::Tuning;

/// What a runtime is made of, beside its client of the cluster.
pub(crate) struct Parts {
    pub(crate) share: Share,
    pub(crate) member: Link,
    pub(crate) fetcher: FetcherOptions,
    pub(crate) routes: Arc<Routes>,
    /// Topics whose partitions are offered to background tasks.
    pub(crate) tended: Arc<[Arc<str>]>,
    pub(crate) segment: Option<Segment>,
    pub(crate) services: Arc<Services>,
    pub(crate) workers: watch::Receiver<Workers>,
    pub(crate) questions: mpsc::Receiver<Question>,
    pub(crate) assignment: watch::Sender<Vec<TopicPartition>>,
    pub(crate) queue_bytes_max: usize,
    pub(crate) commit_interval: Duration,
    /// When all shards begin to count their commit intervals.
    pub(crate) start: TokioInstant,
    /// Where handlers of an exactly-once app put what they return.
    pub(crate) pending: Option<Pending>,
}

/// The part of an app's limits that a shard may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) index: usize,
    pub(crate) count: usize,
}

impl Share {
    /// Its part of `total`, at least one. The parts of all shards add up to `total`, or to the
    /// number of shards if that is more.
    fn of(self, total: usize) -> usize {
        let rest = total % self.count.max(1);
        (total / self.count.max(1) + usize::from(self.index < rest)).max(1)
    }
}

/// A slice whose handler waits for something.
struct Job {
    ticket: Ticket,
    running: Running,
    /// How much of it was done when it was last looked at, and since when.
    seen_done: usize,
    seen_at: Duration,
}

impl Future for Job {
    type Output = (Ticket, Rest);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let rest = ready!(self.running.poll(context));
        Poll::Ready((self.ticket, rest))
    }
}

/// Whether more could run at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Burst {
    Complete,
    CutOff,
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
    share: Share,
    cluster: Cluster,
    member: Link,
    fetcher: Fetcher,
    reset: Reset,
    /// Bytes of fetches that full queues may hold; the other half of the buffer is for partitions
    /// that go on.
    held_bytes_max: usize,
    /// Bytes that one fetch gives of a partition.
    fetch_bytes_max: usize,
    routes: Arc<Routes>,
    segment: Option<Segment>,
    services: Arc<Services>,
    workers: watch::Receiver<Workers>,
    tuning: Option<Tuning>,
    questions: mpsc::Receiver<Question>,
    assignment: watch::Sender<Vec<TopicPartition>>,
    /// Its own partitions in `assignment`.
    told: Vec<TopicPartition>,
    /// Topics whose partitions are offered to background tasks.
    tended: Arc<[Arc<str>]>,
    /// Partitions that it has offered.
    offered: BTreeSet<TopicPartition>,
    scheduler: Scheduler<Chunk>,
    readings: HashMap<PartitionId, Reading, RandomState>,
    by_name: HashMap<TopicPartition, PartitionId, RandomState>,
    drains: Vec<Drain>,
    /// Partitions that the fetcher is to start again, and when.
    restarts: Vec<(Duration, PartitionId)>,
    /// Asks for metadata of topics that are not known.
    lookup: Option<JoinHandle<()>>,
    jobs: FuturesUnordered<Job>,
    /// Where the handling of the next slice is put.
    spare: Running,
    /// Bytes of fetches that are not queued in full.
    held_bytes: usize,
    decompressor: Decompressor,
    chunks: Spare,
    commits: Interval,
    committing: Committing,
    stage: Stage,
    /// What the member has told of that makes earlier commits void.
    seen: Seen,
    pending: Option<Pending>,
}

impl Runtime {
    pub(crate) fn new(cluster: Cluster, parts: Parts) -> Self {
        let share = parts.share;
        let mut workers = parts.workers;
        let workers_now = *workers.borrow_and_update();
        let buffer_bytes_max = share.of(parts.fetcher.buffer_bytes_max);
        let fetcher = FetcherOptions { buffer_bytes_max, ..parts.fetcher };
        let interval = parts.commit_interval.max(COMMIT_INTERVAL_MIN);
        let mut commits = tokio::time::interval_at(parts.start, interval);
        commits.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            member: parts.member,
            share,
            reset: fetcher.reset,
            held_bytes_max: buffer_bytes_max / 2,
            fetch_bytes_max: usize::try_from(fetcher.partition_bytes_max).unwrap_or(1),
            fetcher: Fetcher::start(&cluster, fetcher),
            cluster,
            routes: parts.routes,
            questions: parts.questions,
            segment: parts.segment,
            assignment: parts.assignment,
            told: Vec::new(),
            tended: parts.tended,
            offered: BTreeSet::new(),
            scheduler: Scheduler::new(workers_now.first(share), share.of(parts.queue_bytes_max)),
            tuning: Tuning::of(workers_now, share, parts.services.clock.now()),
            services: parts.services,
            workers,
            readings: HashMap::default(),
            by_name: HashMap::default(),
            drains: Vec::new(),
            restarts: Vec::new(),
            lookup: None,
            jobs: FuturesUnordered::new(),
            spare: Running::new(std::future::ready(Rest::Untried)),
            held_bytes: 0,
            decompressor: Decompressor::default(),
            chunks: Spare::default(),
            commits,
            committing: Committing::No,
            stage: Stage::Running,
            seen: Seen::default(),
            pending: parts.pending,
        }
    }

    /// Runs until the member ends. When the app drains, everything is given back first.
    pub(crate) async fn run(mut self, mut lifecycle: Lifecycle) -> Result<()> {
        let shutdown = lifecycle.reached(AppStage::Draining);
        tokio::pin!(shutdown);
        let mut claims = self.services.claims.subscribe();
        loop {
            let burst = self.start_slices();
            self.tune();
            self.end_drains().await;
            if self.is_full() && self.committing == Committing::No {
                self.commit().await;
            }
            let due = self.next_due();
            let clock = self.services.clock.clone();
            tokio::select! {
                event = self.member.events.recv() => match event {
                    Some(Event::Ended) => return Ok(()),
                    Some(event) => self.take_event(event).await,
                    None => return Err(Error::MemberGone),
                },
                fetched = self.fetcher.next() => self.take_fetched(fetched).await?,
                Some((ticket, rest)) = self.jobs.next() => {
                    self.finish(ticket, rest);
                    while let Some(Some((ticket, rest))) = self.jobs.next().now_or_never() {
                        self.finish(ticket, rest);
                    }
                }
                () = tokio::task::yield_now(), if burst == Burst::CutOff => {}
                () = sleep_until(&clock, due) => self.restart().await,
                _ = self.commits.tick(), if self.committing == Committing::No => {
                    self.commit().await;
                }
                Ok(()) = self.workers.changed() => self.take_workers(),
                Some(question) = self.questions.recv() => self.answer(question),
                Ok(()) = claims.changed() => {}
                () = &mut shutdown, if self.stage == Stage::Running => self.shut_down(),
            }
        }
    }

    /// Starts handlers for what may run, for a short time. A handler that does not wait is done at
    /// once.
    fn start_slices(&mut self) -> Burst {
        let start = Instant::now();
        let mut before = start;
        while before - start < BURST_TIME_MAX {
            if self.is_full() {
                return Burst::Complete;
            }
            let Some((ticket, slice)) = self.scheduler.next(self.services.clock.now()) else {
                return Burst::Complete;
            };
            let reading = self.readings.get(&ticket.partition);
            let reading = reading.expect("the scheduler knows the partitions that are read");
            let records = slice.len();
            let (services, lane) = (Arc::clone(&self.services), reading.lane.clone());
            reading.runner.run(slice, services, lane, &mut self.spare);
            // It ends within a short time by itself; other tasks have their turn then.
            let ended = coop::unconstrained(self.spare.get_pin()).now_or_never();
            let now = Instant::now();
            if let Some(rest) = ended {
                self.scheduler.pace(ticket, records, now - before);
                self.finish(ticket, rest);
            } else {
                let idle = Running::new(std::future::ready(Rest::Untried));
                let running = std::mem::replace(&mut self.spare, idle);
                let ticket = self.scheduler.waits(ticket);
                let seen_at = self.services.clock.now();
                self.jobs.push(Job { ticket, running, seen_done: 0, seen_at });
            }
            before = now;
        }
        Burst::CutOff
    }

    fn finish(&mut self, ticket: Ticket, rest: Rest) {
        self.scheduler.finish(ticket, rest);
        self.fill(ticket.partition);
    }

    fn next_due(&self) -> Option<Duration> {
        let restarts = self.restarts.iter().map(|(at, _)| *at);
        let drains = self.drains.iter().map(|drain| drain.deadline);
        restarts.chain(drains).chain(self.scheduler.next_due()).min()
    }

    async fn take_event(&mut self, event: Event) {
        match event {
            Event::Assigned(partitions) => {
                let topics = partitions.iter().map(|(partition, _)| &*partition.topic);
                if let Err(error) = self.cluster.load_topics(topics).await {
                    tracing::warn!(%error, "topics are asked for again one by one");
                }
                for (partition, committed) in partitions {
                    self.assign(partition, committed).await;
                }
            }
            Event::Revoked(partitions) => self.start_drain(partitions, Purpose::Revocation),
            Event::Lost(partitions) => {
                self.seen.losses += 1;
                self.end_lost_drains(&partitions);
                self.recall(&partitions);
                for partition in partitions {
                    if let Some(id) = self.by_name.get(&partition).copied() {
                        drop(self.forget(id));
                    }
                }
            }
            Event::Committed { failed } => {
                self.committing = Committing::No;
                for id in failed.iter().filter_map(|partition| self.by_name.get(partition)) {
                    self.scheduler.retake_commit(*id);
                }
            }
            Event::Rewound(partitions) => self.rewind(partitions).await,
            Event::Ended => {}
        }
        self.tell_assignment();
    }

    async fn assign(&mut self, partition: TopicPartition, committed: Option<CommittedOffset>) {
        if self.tended.contains(&partition.topic) {
            if self.stage == Stage::Running {
                self.offered.insert(partition.clone());
                self.services.claims.offer(partition);
            }
            return;
        }
        let Some(route) = self.routes.find(&partition.topic) else {
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
        let mut plan = route.plan;
        if let Some(pool) = &mut plan.pool {
            pool.workers = self.share.of(pool.workers);
        }
        let id = self.scheduler.assign(plan, ledger);
        let lane = self.pending.as_ref().map(|pending| pending.open(id));
        let runner = Arc::clone(&route.runner);
        let figures = Arc::clone(&route.figures);
        self.services.board.bind(&partition.topic, &figures);
        let reading = Reading::new(partition.clone(), self.fetch_bytes_max, runner, figures, lane);
        self.readings.insert(id, reading);
        self.by_name.insert(partition, id);
        self.read_from(id, start).await;
        if self.stage != Stage::Running {
            self.scheduler.drain(id);
        }
    }

    /// Drops the handlers of a partition.
    fn cancel(&mut self, id: PartitionId) {
        for job in std::mem::take(&mut self.jobs) {
            if job.ticket.partition == id {
                self.scheduler.finish(job.ticket, Rest::Untried);
            } else {
                self.jobs.push(job);
            }
        }
    }

    /// Puts its partitions in the place of those that it told of before.
    fn tell_assignment(&mut self) {
        let mut assigned: Vec<_> = self.by_name.keys().chain(&self.offered).cloned().collect();
        assigned.sort_unstable();
        if assigned == self.told {
            return;
        }
        self.assignment.send_modify(|all| {
            all.retain(|partition| self.told.binary_search(partition).is_err());
            all.extend_from_slice(&assigned);
            all.sort_unstable();
        });
        self.told = assigned;
    }
}

async fn sleep_until(clock: &crate::Clock, at: Option<Duration>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Time for which slices are run before fetches, commits and timers have their turn.
const BURST_TIME_MAX: Duration = Duration::from_millis(1);

/// Shortest time between commits: each is a request.
const COMMIT_INTERVAL_MIN: Duration = Duration::from_millis(1);
