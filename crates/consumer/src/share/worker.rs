//! The task of a share app. It owns the member, and all records that are locked for it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use moldau_client::{
    Acknowledgement, Error as ClientError, ShareConsumer, ShareFetched, TopicPartition,
};
use moldau_records::Decompressor;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::answer;
use super::lines::{Held, Lines};
use crate::background::{Lifecycle, Stage};
use crate::chunk::Chunk;
use crate::context::Services;
use crate::figures::RouteFigures;
use crate::message::Message;
use crate::routes::Routes;
use crate::scheduler::Attempt;
use crate::single::{Single, Verdict};
use crate::status::Question;
use crate::{Result, Workers};

/// What a worker is made of.
pub(crate) struct Parts {
    pub(crate) consumer: ShareConsumer,
    pub(crate) routes: Routes,
    pub(crate) services: Arc<Services>,
    pub(crate) workers: watch::Receiver<Workers>,
    pub(crate) questions: mpsc::Receiver<Question>,
    pub(crate) assignment: watch::Sender<Vec<TopicPartition>>,
}

pub(crate) struct Worker {
    parts: Parts,
    lines: Lines,
    running: FuturesUnordered<Job>,
    /// Records that wait, and until when.
    waiting: Vec<(Duration, Held, After)>,
    locks: HashMap<(TopicPartition, i64), Lock>,
    lock_duration: Duration,
    /// When locks are looked at.
    renewal_at: Instant,
    acknowledged: Acknowledged,
    decompressor: Decompressor,
}

struct Lock {
    renewed_at: Instant,
    /// Deliveries before this one.
    failures: u32,
    figures: Arc<RouteFigures>,
}

/// What comes after a wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum After {
    Release,
    Handle,
}

/// Whether something was said of records that may not be sent yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Acknowledged {
    Sent,
    Unsent,
}

struct Job {
    held: Option<Held>,
    running: Single,
}

impl Future for Job {
    type Output = (Option<Held>, Verdict);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let verdict = ready!(self.running.poll_unpin(context));
        Poll::Ready((self.held.take(), verdict))
    }
}

/// What is asked of the member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Want {
    Records,
    Commit,
    /// To hold nothing but what it has returned.
    Rest,
    Nothing,
}

enum Got {
    Records(ShareFetched),
    Committed(Vec<(TopicPartition, ClientError)>),
}

impl Worker {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut lines = Lines::default();
        for (topic, route) in parts.routes.named() {
            parts.services.board.bind(topic, &route.figures);
            // From here on the status shows its records.
            route.figures.share();
            lines.add(Arc::clone(topic), route.plan.pool.map_or(usize::MAX, |it| it.workers));
        }
        Self {
            parts,
            lines,
            running: FuturesUnordered::new(),
            waiting: Vec::new(),
            locks: HashMap::new(),
            lock_duration: LOCK_DURATION_DEFAULT,
            renewal_at: Instant::now() + LOCK_DURATION_DEFAULT / 4,
            acknowledged: Acknowledged::Sent,
            decompressor: Decompressor::default(),
        }
    }

    /// Runs until the app drains; then gives back what was not started, lets handlers end, and
    /// leaves the group.
    pub(crate) async fn run(mut self, mut lifecycle: Lifecycle) -> Result<()> {
        let draining = lifecycle.reached(Stage::Draining);
        tokio::pin!(draining);
        loop {
            self.start();
            self.tell_assignment();
            let (want, due, renewal_at) = (self.want(), self.next_due(), self.renewal_at);
            let clock = self.parts.services.clock.clone();
            tokio::select! {
                () = &mut draining => return self.drain().await,
                got = pump(&mut self.parts.consumer, want) => self.take(got?)?,
                Some((held, verdict)) = self.running.next() => {
                    self.finish(held, verdict);
                    while let Some(Some((held, verdict))) = self.running.next().now_or_never() {
                        self.finish(held, verdict);
                    }
                }
                () = until(&clock, due) => self.end_waits(),
                () = sleep_until(renewal_at) => self.renew(),
                Ok(()) = self.parts.workers.changed() => {}
                Some(question) = self.parts.questions.recv() => answer(question),
            }
        }
    }

    async fn drain(mut self) -> Result<()> {
        self.lines.clear();
        self.waiting.clear();
        if !self.running.is_empty() {
            self.finish_running().await?;
        }
        if !self.running.is_empty() {
            tracing::warn!(records = self.running.len(), "handlers are cancelled");
        }
        let cancelled: Vec<_> = self.running.iter().filter_map(Job::key).collect();
        self.running.clear();
        for key in cancelled {
            self.settle(&key, Acknowledgement::Release);
        }
        self.let_go();
        let refused = self.parts.consumer.leave().await?;
        warn_of(&refused);
        Ok(())
    }

    /// Lets handlers end, as far as they do in time. All other records are given back at once.
    async fn finish_running(&mut self) -> Result<()> {
        let clock = self.parts.services.clock.clone();
        let deadline = clock.now().saturating_add(self.parts.services.drain_timeout);
        let running: Vec<_> = self.running.iter().filter_map(Job::key).collect();
        self.release_all(|key| running.contains(key));
        let mut want = Want::Rest;
        while !self.running.is_empty() {
            let renewal_at = self.renewal_at;
            tokio::select! {
                got = pump(&mut self.parts.consumer, want) => {
                    self.take(got?)?;
                    want = Want::Nothing;
                }
                Some((held, verdict)) = self.running.next() => match (held, verdict) {
                    (Some(held), Verdict::Release(_) | Verdict::Wait(..)) => {
                        self.settle(&held.key(), Acknowledgement::Release);
                    }
                    (held, verdict) => self.finish(held, verdict),
                },
                () = clock.sleep_until(deadline) => break,
                () = sleep_until(renewal_at) => self.renew(),
                Some(question) = self.parts.questions.recv() => answer(question),
            }
            if want == Want::Nothing && self.acknowledged == Acknowledged::Unsent {
                want = Want::Commit;
            }
        }
        Ok(())
    }

    /// Starts handlers for what may run.
    fn start(&mut self) {
        let workers = workers(*self.parts.workers.borrow());
        while self.lines.running() < workers {
            let Some(mut held) = self.lines.start() else { return };
            let key = held.key();
            let lock = self.locks.get(&key);
            match lock.filter(|_| self.parts.consumer.holds(&key.0, key.1)) {
                Some(lock) => held.attempt.failures = lock.failures,
                None => {
                    // Others have it by now, or it comes again.
                    self.lines.end(held.line);
                    self.lose(&key);
                    continue;
                }
            }
            let route = self.parts.routes.find(held.message.topic());
            let services = Arc::clone(&self.parts.services);
            let running = route
                .and_then(|it| it.runner.run_one(held.message.clone(), held.attempt, services));
            let running = running.expect("a share app has only routes that take single records");
            self.running.push(Job { held: Some(held), running });
        }
    }

    fn tell_assignment(&self) {
        let mut held: Vec<_> = self.parts.consumer.membership().held().iter().cloned().collect();
        self.parts.assignment.send_if_modified(|told| {
            let is_changed = told.len() != held.len() || held.iter().any(|it| !told.contains(it));
            if is_changed {
                std::mem::swap(told, &mut held);
            }
            is_changed
        });
    }

    /// Records are fetched while a worker's next one is not there, so that those that wait are
    /// left to other members.
    fn want(&self) -> Want {
        let workers = workers(*self.parts.workers.borrow());
        if self.lines.queued() < workers && self.locks.len() < workers.saturating_add(HELD_MAX) {
            return Want::Records;
        }
        match self.acknowledged {
            Acknowledged::Unsent => Want::Commit,
            Acknowledged::Sent => Want::Nothing,
        }
    }

    fn next_due(&self) -> Option<Duration> {
        self.waiting.iter().map(|(at, ..)| *at).min()
    }

    fn take(&mut self, got: Got) -> Result<()> {
        match got {
            Got::Records(fetched) => self.queue(&fetched)?,
            Got::Committed(refused) => {
                self.acknowledged = Acknowledged::Sent;
                warn_of(&refused);
            }
        }
        // What is left with the member would not be renewed.
        while let Some(fetched) = self.parts.consumer.try_next() {
            self.queue(&fetched)?;
        }
        Ok(())
    }

    fn queue(&mut self, fetched: &ShareFetched) -> Result<()> {
        let now = Instant::now();
        self.lock_duration = fetched.lock_duration.max(LOCK_DURATION_MIN);
        self.renewal_at = self.renewal_at.min(now + self.lock_duration / 4);
        let chunk = Chunk::acquired(fetched, &mut self.decompressor)?;
        let partition = fetched.topic_partition();
        let topic = &*fetched.topic.name;
        let line = self.lines.of(topic).zip(self.parts.routes.find(topic));
        // A topic without a route is not subscribed to; its locks end by themselves.
        let Some((line, route)) = line else { return Ok(()) };
        for message in Message::all_of(&chunk) {
            let deliveries = fetched.delivery_count(message.offset()).unwrap_or(1);
            let failures = u32::try_from(deliveries).unwrap_or(1).saturating_sub(1);
            let attempt = Attempt { failures, postponed_by: None };
            let held = Held { line, partition: partition.clone(), message, attempt };
            let key = held.key();
            if let Some(lock) = self.locks.get_mut(&key) {
                // Its lock had ended, and the app has it still: it goes on in this delivery, so
                // that no two handlers have it.
                (lock.renewed_at, lock.failures) = (now, failures);
                continue;
            }
            let lock = Lock { renewed_at: now, failures, figures: Arc::clone(&route.figures) };
            lock.figures.share().held.fetch_add(1, Ordering::Relaxed);
            self.locks.insert(key, lock);
            self.lines.push(held);
        }
        Ok(())
    }

    fn finish(&mut self, held: Option<Held>, verdict: Verdict) {
        let Some(mut held) = held else { return };
        self.lines.end(held.line);
        match verdict {
            Verdict::Accept => self.settle(&held.key(), Acknowledgement::Accept),
            Verdict::Reject => self.settle(&held.key(), Acknowledgement::Reject),
            Verdict::Release(at) => self.wait(at, held, After::Release),
            Verdict::Wait(at, by) => {
                held.attempt.postponed_by = Some(by);
                self.wait(at, held, After::Handle);
            }
        }
    }

    fn wait(&mut self, at: Duration, held: Held, after: After) {
        let message = held.message.detached();
        self.waiting.push((at, Held { message, ..held }, after));
    }

    fn end_waits(&mut self) {
        let now = self.parts.services.clock.now();
        let due: Vec<_> = self.waiting.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, held, after) in due {
            match after {
                After::Release => self.settle(&held.key(), Acknowledgement::Release),
                After::Handle => self.lines.push(held),
            }
        }
    }

    /// Says what became of a record, which is no longer held then.
    fn settle(&mut self, key: &(TopicPartition, i64), said: Acknowledgement) {
        let Some(lock) = self.locks.remove(key) else { return };
        let count = |of: &AtomicU64| of.fetch_add(1, Ordering::Relaxed);
        let figures = lock.figures.share();
        figures.held.fetch_sub(1, Ordering::Relaxed);
        if let Err(error) = self.parts.consumer.acknowledge(&key.0, key.1, said) {
            // Another delivery of the record has the last word.
            tracing::warn!(partition = %key.0.topic, offset = key.1, %error, "its lock has ended");
            count(&figures.lost);
            return;
        }
        self.acknowledged = Acknowledged::Unsent;
        match said {
            Acknowledgement::Accept => {
                lock.figures.retire(1);
                count(&figures.accepted);
            }
            Acknowledgement::Release => drop(count(&figures.released)),
            Acknowledgement::Reject => drop(count(&figures.rejected)),
            Acknowledgement::Renew => {}
        }
    }

    /// Forgets a record whose lock has ended.
    fn lose(&mut self, key: &(TopicPartition, i64)) {
        let Some(lock) = self.locks.remove(key) else { return };
        tracing::debug!(partition = %key.0.topic, offset = key.1, "its lock has ended");
        let figures = lock.figures.share();
        figures.held.fetch_sub(1, Ordering::Relaxed);
        figures.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Leaves all records to the end of the session.
    fn let_go(&mut self) {
        for (_, lock) in self.locks.drain() {
            let figures = lock.figures.share();
            figures.held.fetch_sub(1, Ordering::Relaxed);
            figures.released.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives back all records but those that `keep` names.
    fn release_all(&mut self, keep: impl Fn(&(TopicPartition, i64)) -> bool) {
        let keys: Vec<_> = self.locks.keys().filter(|key| !keep(key)).cloned().collect();
        for key in keys {
            self.settle(&key, Acknowledgement::Release);
        }
    }

    /// Lets the locks begin anew that are a quarter over, so none gets past its half.
    fn renew(&mut self) {
        let now = Instant::now();
        let age = self.lock_duration / 4;
        self.renewal_at = now + age;
        for (key, lock) in &mut self.locks {
            let is_held = self.parts.consumer.holds(&key.0, key.1);
            if !is_held || now.duration_since(lock.renewed_at) < age {
                continue;
            }
            lock.renewed_at = now;
            match self.parts.consumer.acknowledge(&key.0, key.1, Acknowledgement::Renew) {
                Ok(()) => self.acknowledged = Acknowledged::Unsent,
                Err(error) => tracing::debug!(offset = key.1, %error, "its lock has ended"),
            }
        }
    }
}

impl Held {
    fn key(&self) -> (TopicPartition, i64) {
        (self.partition.clone(), self.message.offset())
    }
}

impl Job {
    fn key(&self) -> Option<(TopicPartition, i64)> {
        self.held.as_ref().map(Held::key)
    }
}

/// Records that one fetch asks for.
pub(crate) fn records_max(of: Workers) -> i32 {
    i32::try_from(workers(of)).unwrap_or(i32::MAX).min(FETCH_RECORDS_MAX)
}

fn workers(of: Workers) -> usize {
    match of {
        Workers::Fixed(workers) => workers.max(1),
        Workers::Auto => 1,
    }
}

/// Cancelling it loses nothing.
async fn pump(consumer: &mut ShareConsumer, want: Want) -> std::result::Result<Got, ClientError> {
    match want {
        Want::Records => consumer.next().await.map(Got::Records),
        Want::Commit => consumer.commit().await.map(Got::Committed),
        Want::Rest => consumer.quiesce().await.map(Got::Committed),
        Want::Nothing => std::future::pending().await,
    }
}

async fn until(clock: &crate::Clock, due: Option<Duration>) {
    match due {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn warn_of(refused: &[(TopicPartition, ClientError)]) {
    for (TopicPartition { topic, partition }, error) in refused {
        tracing::warn!(%topic, partition, %error, "records may be delivered again");
    }
}

/// Kafka's `max.poll.records`.
const FETCH_RECORDS_MAX: i32 = 500;

/// Records that wait for their next attempt beside those of the workers; as many as queues of
/// other apps hold.
const HELD_MAX: usize = 10_000;

/// Kafka's `group.share.record.lock.duration.ms`, until a broker has answered.
const LOCK_DURATION_DEFAULT: Duration = Duration::from_secs(30);

/// Renewals are not sent more often than locks of this length need.
const LOCK_DURATION_MIN: Duration = Duration::from_millis(400);
