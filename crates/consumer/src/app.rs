//! The app: which topics are read, as which group, and what handles their records.

mod port;
mod shared;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{
    Cluster, ClusterOptions, FetcherOptions, Isolation, MembershipOptions, ProducerOptions,
    TopicPartition,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::admin::Admin;
use crate::asyncapi::{self, Described};
use crate::background::{Background, Tasks};
use crate::claims::Claims;
use crate::clock::Clock;
use crate::context::{Services, StateType, States};
use crate::handler::{HandlerFn, job};
use crate::member::{self, Group};
use crate::outbox::Outbox;
use crate::periodic::{Periodic, Tick};
use crate::route::AnyRoute;
use crate::routes::{Reads, Routes};
use crate::runtime::{Parts, Share};
use crate::segment::Segment;
use crate::shard::{Access, Shards, until_left};
use crate::source::{Pattern, Source};
use crate::status::{Inquiry, QUESTIONS_MAX, Question, RouteName, Status};
use crate::topics::{TopicDeclaration, Topics};
use crate::transaction::Pending;
use crate::{Error, Result, Workers};

/// Options of an app. The defaults suit most.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// How the cluster is reached: TLS, SASL, timeouts.
    pub cluster: ClusterOptions,
    /// The group's protocol, timeouts and static id. The topics come from the routes.
    pub membership: MembershipOptions,
    /// How records are fetched; its `reset` says where a group without offsets begins.
    pub fetcher: FetcherOptions,
    /// How records are sent that handlers return or layers move to other topics. Its transaction
    /// timeout is that of an exactly-once app; after a crash it may hold up the readers of
    /// committed records for so long, 10 seconds unless set.
    pub producer: ProducerOptions,
    /// Threads that own the partitions, each with its own connections, queues and handlers, so that
    /// nothing is shared while records are handled. With 1, the default, that is the task of
    /// [`App::run`] itself. More are threads of their own, for handlers that need more CPU than one
    /// core has, or that block now and then: they hold up the partitions of their thread alone.
    /// Partitions are spread evenly when they are assigned. All limits of the app are divided by
    /// this number.
    pub shards: usize,
    /// Records or batches that are handled at a time, over all topics; at least one for each shard.
    pub workers: Workers,
    /// Bytes of records that wait for their handler or are handled, over all partitions. Above,
    /// each partition has but an equal share of them. Fetched records that are not queued yet are
    /// bounded apart, by `fetcher.buffer_bytes_max`.
    pub queue_bytes_max: usize,
    /// Time between commits.
    pub commit_interval: Duration,
    /// How long handlers may go on with their current record when a partition is revoked or the
    /// app ends. Then they are cancelled, and the record is handled by the next owner. Must be
    /// shorter than the rebalance timeout of the membership.
    pub drain_timeout: Duration,
    /// The time that retries and delays go by.
    pub clock: Clock,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self {
            cluster: ClusterOptions::default(),
            membership: MembershipOptions::default(),
            fetcher: FetcherOptions::default(),
            producer: ProducerOptions {
                transaction_timeout: TRANSACTION_TIMEOUT_DEFAULT,
                ..ProducerOptions::default()
            },
            shards: 1,
            workers: Workers::Fixed(WORKERS_DEFAULT),
            queue_bytes_max: QUEUE_BYTES_DEFAULT,
            commit_interval: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            clock: Clock::system(),
        }
    }
}

/// A Kafka worker: reads topics as a member of a group and hands each record to the route of its
/// topic.
pub struct App {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) group: Option<String>,
    pub(crate) membership: shared::Membership,
    pub(crate) has_retry_topics: bool,
    pub(crate) transactional_id: Option<String>,
    pub(crate) routes: Routes,
    /// Why it cannot run.
    pub(crate) invalid: Result<()>,
    pub(crate) segment: Option<Segment>,
    states: States,
    /// State that handlers and jobs take.
    needed: Vec<StateType>,
    pub(crate) background: Vec<Background>,
    /// Topics of whose partitions background tasks take care.
    pub(crate) tended: Vec<Arc<str>>,
    declared: BTreeMap<Arc<str>, TopicDeclaration>,
    pub(crate) options: AppOptions,
    pub(crate) workers: watch::Sender<Workers>,
    pub(crate) assignment: watch::Sender<Vec<TopicPartition>>,
    inquiry: Inquiry,
    /// Those that answer questions; none before the app runs.
    shards: watch::Sender<Vec<mpsc::Sender<Question>>>,
    admin: Option<Admin>,
    version: String,
}

/// Watches and changes an app that runs. Clones are the same.
#[derive(Clone)]
pub struct Control {
    workers: watch::Sender<Workers>,
    assignment: watch::Sender<Vec<TopicPartition>>,
    inquiry: Inquiry,
    routes: Arc<[RouteName]>,
}

impl App {
    /// An app of the cluster with these addresses (`host:port`).
    pub fn new<A: Into<String>>(bootstrap: impl IntoIterator<Item = A>) -> Self {
        let options = AppOptions::default();
        let (shards, asked) = watch::channel(Vec::new());
        Self {
            bootstrap: bootstrap.into_iter().map(Into::into).collect(),
            group: None,
            membership: shared::Membership::default(),
            has_retry_topics: false,
            transactional_id: None,
            routes: Routes::default(),
            invalid: Ok(()),
            segment: None,
            states: States::default(),
            needed: Vec::new(),
            background: Vec::new(),
            tended: Vec::new(),
            declared: BTreeMap::new(),
            workers: watch::Sender::new(options.workers),
            assignment: watch::Sender::default(),
            inquiry: Inquiry { shards: asked, board: Arc::default() },
            shards,
            admin: None,
            version: "0".to_owned(),
            options,
        }
    }

    /// The consumer group (`group.id`).
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Makes what handlers return, dead letters and the offsets of handled records one transaction:
    /// readers of committed records see what came of each record exactly once, whatever crashes.
    /// This app too reads only records of committed transactions. A transaction is made once in
    /// each commit interval, and with 16 MiB of returned records. Background tasks are no part of
    /// it.
    ///
    /// `id` (Kafka's `transactional.id`) names this process among those of the group, and is the
    /// same after a restart. An app that starts with it ends the one that has it.
    #[must_use]
    pub fn exactly_once(mut self, id: impl Into<String>) -> Self {
        self.transactional_id = Some(id.into());
        self
    }

    /// Handles the records of `topic` by `route`, and those of its retry topics.
    #[must_use]
    pub fn topic(mut self, topic: &str, route: impl Into<AnyRoute>) -> Self {
        let (topic, mut route) = (Arc::<str>::from(topic), route.into());
        if let Some(declaration) = route.declaration.take() {
            self.declared.insert(Arc::clone(&topic), declaration);
        }
        self.add(Source::Named(topic), route);
        self
    }

    /// Handles by `route` the records of all topics whose whole name matches the regular expression
    /// `pattern` and that no other route names; of several patterns the first that matches counts.
    /// Topics that are created later are read from then on, those that are deleted no longer. The
    /// syntax is what RE2 and the crate `regex` have in common.
    #[must_use]
    pub fn pattern(mut self, pattern: &str, route: impl Into<AnyRoute>) -> Self {
        match Pattern::new(pattern) {
            Ok(pattern) => self.add(Source::Matching(pattern), route.into()),
            Err(error) => self.invalid = Err(error),
        }
        self
    }

    /// Handles by `route` the records of these partitions, which this app reads whatever others do.
    /// Its group then only keeps the offsets, and must not have members. Without a group nothing is
    /// committed, and each start begins where `fetcher.reset` says.
    #[must_use]
    pub fn partitions(
        mut self,
        topic: &str,
        partitions: impl IntoIterator<Item = i32>,
        route: impl Into<AnyRoute>,
    ) -> Self {
        let partitions = partitions.into_iter().map(|it| TopicPartition::of(topic, it));
        self.add(Source::Partitions(partitions.collect()), route.into());
        self
    }

    /// Reads only the records whose key belongs to segment `index` of `count`, and passes over the
    /// others. One app for each segment thus shares the work of a partition in the order of its
    /// keys. Each segment is a group of its own, whose id is that of the app with `-index` behind
    /// it. A record without a key belongs to the segment of its offset.
    #[must_use]
    pub fn segment(mut self, index: u32, count: u32) -> Self {
        match Segment::new(index, count) {
            Ok(segment) => self.segment = Some(segment),
            Err(error) => self.invalid = Err(error),
        }
        self
    }

    fn add(&mut self, source: Source, mut route: AnyRoute) {
        let number = self.routes.count();
        self.has_retry_topics |= !route.retries.is_empty();
        let retries = route.retries.iter_mut().map(|(_, retry)| &mut retry.plan);
        let pools = retries.chain([&mut route.plan]).filter_map(|plan| plan.pool.as_mut());
        pools.for_each(|pool| pool.id = number);
        self.needed.append(&mut route.states);
        for periodic in route.periodic.drain(..) {
            self.needed.extend(periodic.job.states());
            self.background.push(periodic.background(Some(source.clone())));
        }
        for (topic, retry) in route.retries.drain(..) {
            self.routes.add(Source::Named(topic), retry);
        }
        self.routes.add(source, route);
    }

    /// What a topic should be that has no route, such as that of dead letters;
    /// [`topics`](Self::topics) makes it so.
    #[must_use]
    pub fn declare(mut self, topic: &str, declaration: TopicDeclaration) -> Self {
        self.declared.insert(topic.into(), declaration);
        self
    }

    /// The topics that were declared, to compare them with those of the cluster and to create or
    /// change them. [`run`](Self::run) does neither.
    #[must_use]
    pub fn topics(&self) -> Topics {
        Topics {
            bootstrap: self.bootstrap.clone(),
            cluster: self.options.cluster.clone(),
            declared: self.declared.clone(),
        }
    }

    /// Calls `function` every `interval` while the app runs, beside its handlers. It takes a
    /// [`Tick`] and [`State`](crate::State). A call that takes longer than the interval delays the
    /// next one. Failures are logged.
    #[must_use]
    pub fn periodic<F, Args>(mut self, interval: Duration, function: F) -> Self
    where
        F: HandlerFn<Tick, Args>,
        Args: 'static,
    {
        let job = job(function);
        self.needed.extend(job.states());
        self.background.push(Periodic { interval, job }.background(None));
        self
    }

    /// Calls functions at the times of their cron expressions, each once per group. Their state is
    /// in `topic`, which must exist and be compacted. [`topics`](Self::topics) creates it with one
    /// partition unless it is declared; with more, members share the tasks out.
    ///
    /// # Errors
    /// [`Error::Task`]: two tasks have the same name.
    #[cfg(feature = "cron")]
    pub fn recurring(
        mut self,
        topic: &str,
        tasks: impl IntoIterator<Item = crate::Recurring>,
    ) -> Result<Self> {
        let (topic, tasks) = (Arc::<str>::from(topic), Vec::from_iter(tasks));
        let mut names: Vec<_> = tasks.iter().map(crate::Recurring::name).collect();
        names.sort_unstable();
        if let Some([task, _]) = names.array_windows().find(|[one, other]| one == other) {
            let reason = "another task has the same name".to_owned();
            return Err(Error::Task { task: Arc::clone(task), reason });
        }
        self.needed.extend(tasks.iter().flat_map(crate::Recurring::states));
        let task = crate::recurring::background(Arc::clone(&topic), tasks);
        Ok(self.tended(topic, task))
    }

    /// Sends messages that wait in `topic` when they are due: see
    /// [`MessageSchedule`](crate::MessageSchedule). The topic must exist and be compacted.
    /// [`topics`](Self::topics) creates it with one partition unless it is declared; with more,
    /// members share the messages out.
    #[must_use]
    pub fn scheduled_messages(self, topic: &str) -> Self {
        let topic = Arc::<str>::from(topic);
        let task = crate::scheduled::background(Arc::clone(&topic));
        self.tended(topic, task)
    }

    /// A task takes care of the partitions of a compacted topic.
    fn tended(mut self, topic: Arc<str>, task: Background) -> Self {
        let compacted = TopicDeclaration::partitions(1).config("cleanup.policy", "compact");
        self.declared.entry(Arc::clone(&topic)).or_insert(compacted);
        self.background.push(task);
        self.tended.push(topic);
        self
    }

    /// Gives handlers a value, one for each type; they take it as [`State`](crate::State).
    #[must_use]
    pub fn state<S: Send + Sync + 'static>(mut self, state: S) -> Self {
        self.states.insert(state);
        self
    }

    /// Serves metrics, health and a page at an address (`host:port`) while the app runs; see
    /// [`Admin`].
    #[must_use]
    pub fn admin(mut self, admin: impl Into<Admin>) -> Self {
        self.admin = Some(admin.into());
        self
    }

    /// The app's version, which its AsyncAPI document names; "0" unless said otherwise.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// The AsyncAPI 3.0 document of the app: the topics that it reads as which group, and those to
    /// which it sends dead letters. With the feature `schemars`, routes name the types of their
    /// payloads.
    #[must_use]
    pub fn asyncapi(&self) -> serde_json::Value {
        let routes = self.routes.sourced().map(|(source, route)| Described {
            source,
            dead_letter_topics: &route.dead_letter_topics,
            #[cfg(feature = "schemars")]
            payload: route.payload,
        });
        let routes: Vec<_> = routes.collect();
        let is_secured = self.options.cluster.connection.security.tls.is_some();
        let group = self.group.as_deref().unwrap_or_default();
        asyncapi::document(group, &self.version, &self.bootstrap, is_secured, &routes)
    }

    /// Runs a task beside the handlers.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn background(mut self, task: Background) -> Self {
        self.background.push(task);
        self
    }

    /// Replaces all options.
    #[must_use]
    pub fn options(mut self, options: AppOptions) -> Self {
        self.workers.send_replace(options.workers);
        self.options = options;
        self
    }

    /// Threads that own the partitions: [`AppOptions::shards`].
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.options.shards = shards;
        self
    }

    /// How many records or batches are handled at a time, over all topics.
    #[must_use]
    pub fn workers(self, workers: impl Into<Workers>) -> Self {
        self.workers.send_replace(workers.into());
        self
    }

    /// Watches and changes the app while it runs, with the routes that it has by now.
    #[must_use]
    pub fn control(&self) -> Control {
        let routes = self.routes.labelled().map(|(label, route)| route.name(&label));
        Control {
            workers: self.workers.clone(),
            assignment: self.assignment.clone(),
            inquiry: self.inquiry.clone(),
            routes: routes.collect(),
        }
    }

    /// Runs the app until `shutdown` completes. Handlers then finish their current record, offsets
    /// are committed, and the member leaves its group. Must be called in a tokio runtime, which
    /// runs the handlers.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NoRoute`], [`Error::RouteTwice`],
    /// [`Error::AssignedAndSubscribed`], [`Error::NoSegment`], [`Error::NoState`],
    /// [`Error::OwnDeadLetters`]; [`Error::Client`] if a pattern is
    /// none, the cluster cannot be reached, does not authenticate the app, or refuses the member
    /// for good; [`Error::StaticMember`]; [`Error::Admin`];
    /// [`Error::Background`] if a part of the app that runs beside the handlers fails.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        // Callers join and select on this future, which should not be large.
        Box::pin(self.run_to_end(shutdown)).await
    }

    async fn run_to_end(mut self, shutdown: impl Future<Output = ()>) -> Result<()> {
        if self.membership == shared::Membership::Share {
            return shared::run(self, shutdown).await;
        }
        let group = self.consumer_group()?;
        self.start_admin(group.name.as_deref().unwrap_or_default())?;
        let count = self.options.shards.max(1);
        let questions = self.take_questions(count);
        let AppOptions { mut fetcher, drain_timeout, .. } = self.options.clone();
        let is_exactly_once = group.transactions.is_some();
        if is_exactly_once {
            fetcher.isolation = Isolation::ReadCommitted;
        }
        let access =
            Access { bootstrap: self.bootstrap.clone(), options: self.options.cluster.clone() };
        let cluster = Cluster::connect(&access.bootstrap, access.options.clone()).await?;
        self.tell_missing(&cluster).await;
        let services = self.services(&cluster);
        let (left, links) = member::start(group, count)?;
        let (routes, start) = (Arc::new(self.routes), Instant::now());
        let tended = Arc::<[_]>::from(self.tended);
        let parts = links.into_iter().zip(questions).enumerate();
        let parts = parts.map(|(index, (member, questions))| Parts {
            share: Share { index, count },
            member,
            fetcher: fetcher.clone(),
            routes: Arc::clone(&routes),
            tended: Arc::clone(&tended),
            segment: self.segment,
            pending: is_exactly_once.then(Pending::default),
            services: Arc::new(services.clone()),
            workers: self.workers.subscribe(),
            questions,
            assignment: self.assignment.clone(),
            queue_bytes_max: self.options.queue_bytes_max,
            commit_interval: self.options.commit_interval,
            start,
        });
        let parts = parts.collect();
        let services = Arc::new(services);
        let mut background = Tasks::start(self.background, &services);
        let mut shards = Shards::start(&cluster, access, parts, &background.lifecycle())?;
        let ended = until_left(left, &mut shards, &mut background, shutdown).await;
        shards.end().await;
        let deadline = services.clock.now().saturating_add(drain_timeout);
        let background_ended = background.end(&services, deadline).await;
        ended.and(background_ended)
    }

    /// What its handlers and tasks share.
    pub(crate) fn services(&mut self, cluster: &Cluster) -> Services {
        let producer = self.options.producer.clone();
        Services {
            outbox: Arc::new(Outbox::new(cluster.clone(), producer)),
            assignment: self.assignment.subscribe(),
            claims: Claims::default(),
            clock: self.options.clock.clone(),
            cluster: cluster.clone(),
            drain_timeout: self.options.drain_timeout,
            states: std::mem::take(&mut self.states),
            board: Arc::clone(&self.inquiry.board),
        }
    }

    /// # Errors
    /// Why it cannot run.
    pub(crate) fn check(&mut self) -> Result<()> {
        std::mem::replace(&mut self.invalid, Ok(()))?;
        self.states.check(&self.needed)?;
        self.routes.check_dead_letters()
    }

    /// How it gets its partitions.
    fn consumer_group(&mut self) -> Result<Group> {
        self.check()?;
        let mut membership = self.options.membership.clone();
        let direct = match self.routes.reads(&self.tended)? {
            Reads::Subscription { topics, pattern } => {
                (membership.topics, membership.pattern) = (topics, pattern);
                None
            }
            Reads::Partitions(partitions) => Some(partitions),
        };
        if self.group.is_none() && (direct.is_none() || self.transactional_id.is_some()) {
            return Err(Error::NoGroup);
        }
        let (name, segment) = (self.group.as_deref(), self.segment);
        let name = name.map(|it| segment.map_or(it.to_owned(), |segment| segment.group(it)));
        let producer = &self.options.producer;
        let transactions = self.transactional_id.take();
        let transactions = transactions
            .map(|id| ProducerOptions { transactional_id: Some(id), ..producer.clone() });
        Ok(Group {
            bootstrap: self.bootstrap.clone(),
            cluster: self.options.cluster.clone(),
            name,
            options: membership,
            direct,
            transactions,
            drain_timeout: self.options.drain_timeout,
            board: Arc::clone(&self.inquiry.board),
        })
    }

    /// Lets `count` shards take questions.
    pub(crate) fn take_questions(&self, count: usize) -> Vec<mpsc::Receiver<Question>> {
        let (senders, questions): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel(QUESTIONS_MAX)).unzip();
        self.shards.send_replace(senders);
        questions
    }
}

impl Control {
    /// Changes how many records or batches are handled at a time; those under way are not stopped.
    pub fn set_workers(&self, workers: impl Into<Workers>) {
        self.workers.send_replace(workers.into());
    }

    /// Partitions that the app reads, whenever they change.
    #[must_use]
    pub fn assignment(&self) -> watch::Receiver<Vec<TopicPartition>> {
        self.assignment.subscribe()
    }

    /// The figures of the app; without partitions once it has ended. Waits until it runs.
    pub async fn status(&self) -> Status {
        self.inquiry.status(&self.routes).await
    }

    /// Where the admin port listens; waits until it does. `None` if the app ended before.
    pub async fn admin_address(&self) -> Option<SocketAddr> {
        let mut address = self.inquiry.board.admin.subscribe();
        tokio::select! {
            biased;
            () = self.inquiry.ended() => None,
            listening = address.wait_for(Option::is_some) => listening.ok().and_then(|it| *it),
        }
    }

    /// Starts no further record of a partition until [`resume`](Self::resume), or until the app
    /// gives the partition back. What is handled goes on; records are fetched until the queue is
    /// full. False if the app does not read the partition.
    pub async fn pause(&self, partition: &TopicPartition) -> bool {
        self.set_paused(partition, true).await
    }

    /// Goes on with a paused partition. False if the app does not read it.
    pub async fn resume(&self, partition: &TopicPartition) -> bool {
        self.set_paused(partition, false).await
    }

    async fn set_paused(&self, partition: &TopicPartition, paused: bool) -> bool {
        self.inquiry.set_paused(partition, paused).await
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

/// Handlers that wait for other services most of the time: tasks are small, and a route's order
/// limits them further.
const WORKERS_DEFAULT: usize = 256;

/// As long as Kafka Streams' own.
const TRANSACTION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// As much as the fetcher's buffer by default.
const QUEUE_BYTES_DEFAULT: usize = 64 * 1024 * 1024;
