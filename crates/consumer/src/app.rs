//! The app: which topics are read, as which group, and what handles their records.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{Cluster, ClusterOptions, FetcherOptions, MembershipOptions, TopicPartition};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::admin::{Admin, Port, Subject};
use crate::asyncapi::{self, Described};
use crate::background::{Background, Stage, Tasks};
use crate::claims::Claims;
use crate::clock::Clock;
use crate::context::{Services, States};
use crate::handler::{HandlerFn, job};
use crate::member::{self, Group};
use crate::outbox::Outbox;
use crate::periodic::{Periodic, Tick};
use crate::route::AnyRoute;
use crate::runtime::{Parts, Share};
use crate::shard::{Access, Shards};
use crate::status::{Inquiry, QUESTIONS_MAX, Question, RouteName, Status};
use crate::topics::{TopicDeclaration, Topics};
use crate::{Error, Result};

/// Options of an app. The defaults suit most.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// How the cluster is reached: TLS, SASL, timeouts.
    pub cluster: ClusterOptions,
    /// The group's protocol, timeouts and static id. The topics come from the routes.
    pub membership: MembershipOptions,
    /// How records are fetched; its `reset` says where a group without offsets begins.
    pub fetcher: FetcherOptions,
    /// Threads that own the partitions, each with its own connections, queues and handlers, so that
    /// nothing is shared while records are handled. With 1, the default, that is the task of
    /// [`App::run`] itself. More are threads of their own, for handlers that need more CPU than one
    /// core has, or that block now and then: they hold up the partitions of their thread alone.
    /// Partitions are spread evenly when they are assigned. All limits of the app are divided by
    /// this number.
    pub shards: usize,
    /// Records or batches that are handled at a time, over all topics; at least one for each shard.
    pub workers: usize,
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
            shards: 1,
            workers: WORKERS_DEFAULT,
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
    bootstrap: Vec<String>,
    group: Option<String>,
    routes: Vec<(Arc<str>, AnyRoute)>,
    states: States,
    background: Vec<Background>,
    /// Topics of whose partitions background tasks take care.
    tended: Vec<Arc<str>>,
    declared: BTreeMap<Arc<str>, TopicDeclaration>,
    options: AppOptions,
    workers: watch::Sender<usize>,
    assignment: watch::Sender<Vec<TopicPartition>>,
    inquiry: Inquiry,
    /// Those that answer questions; none before the app runs.
    shards: watch::Sender<Vec<mpsc::Sender<Question>>>,
    admin: Option<Admin>,
    version: String,
}

/// Watches and changes an app that runs. Clones are the same.
#[derive(Clone)]
pub struct Control {
    workers: watch::Sender<usize>,
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
            routes: Vec::new(),
            states: States::default(),
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

    /// Handles the records of `topic` by `route`, and those of its retry topics.
    #[must_use]
    pub fn topic(mut self, topic: &str, route: impl Into<AnyRoute>) -> Self {
        let (topic, mut route) = (Arc::<str>::from(topic), route.into());
        for periodic in route.periodic.drain(..) {
            self.background.push(periodic.background(Some(Arc::clone(&topic))));
        }
        self.routes.append(&mut route.retries);
        if let Some(declaration) = route.declaration.take() {
            self.declared.insert(Arc::clone(&topic), declaration);
        }
        self.routes.push((topic, route));
        self
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
        self.background.push(Periodic { interval, job: job(function) }.background(None));
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
        self,
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
        let routes = self.routes.iter().map(|(topic, route)| Described {
            topic,
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
    pub fn workers(self, workers: usize) -> Self {
        self.workers.send_replace(workers);
        self
    }

    /// Watches and changes the app while it runs, with the routes that it has by now.
    #[must_use]
    pub fn control(&self) -> Control {
        let routes = self.routes.iter().map(|(topic, route)| route.name(topic));
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
    /// [`Error::NoGroup`], [`Error::NoRoute`], [`Error::RouteTwice`], [`Error::Admin`];
    /// [`Error::Client`] if the cluster cannot be reached, or refuses the member for good;
    /// [`Error::Background`] if a part of the app that runs beside the handlers fails.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        // Callers join and select on this future, which should not be large.
        Box::pin(self.run_to_end(shutdown)).await
    }

    async fn run_to_end(mut self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let name = self.group.clone().ok_or(Error::NoGroup)?;
        let topics = self.topic_names()?;
        self.start_admin(&name)?;
        let count = self.options.shards.max(1);
        let questions = self.take_questions(count);
        let AppOptions { cluster: options, mut membership, fetcher, .. } = self.options;
        let cluster = Cluster::connect(&self.bootstrap, options.clone()).await?;
        membership.topics = topics;
        let drain_timeout = self.options.drain_timeout;
        let access = Access { bootstrap: self.bootstrap.clone(), options: options.clone() };
        let group = Group {
            bootstrap: self.bootstrap,
            cluster: options,
            name,
            options: membership,
            drain_timeout,
            board: Arc::clone(&self.inquiry.board),
        };
        let services = Services {
            outbox: Arc::new(Outbox::new(cluster.clone())),
            assignment: self.assignment.subscribe(),
            claims: Claims::default(),
            clock: self.options.clock,
            cluster: cluster.clone(),
            drain_timeout,
            states: self.states,
            board: Arc::clone(&self.inquiry.board),
        };
        let (left, links) = member::start(group, count)?;
        let (routes, start) = (Arc::new(self.routes.into_iter().collect()), Instant::now());
        let tended = Arc::<[_]>::from(self.tended);
        let parts = links.into_iter().zip(questions).enumerate();
        let parts = parts.map(|(index, (member, questions))| Parts {
            share: Share { index, count },
            member,
            fetcher: fetcher.clone(),
            routes: Arc::clone(&routes),
            tended: Arc::clone(&tended),
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

    /// The topics that it reads.
    fn topic_names(&self) -> Result<Vec<String>> {
        let routed = self.routes.iter().map(|(topic, _)| topic);
        let mut sorted: Vec<&Arc<str>> = routed.chain(&self.tended).collect();
        let topics: Vec<String> = sorted.iter().map(ToString::to_string).collect();
        sorted.sort_unstable();
        if let Some([topic, _]) = sorted.array_windows().find(|[one, other]| one == other) {
            return Err(Error::RouteTwice { topic: Arc::clone(topic) });
        }
        if topics.is_empty() {
            return Err(Error::NoRoute);
        }
        Ok(topics)
    }

    /// Lets `count` shards take questions.
    fn take_questions(&self, count: usize) -> Vec<mpsc::Receiver<Question>> {
        let (senders, questions): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel(QUESTIONS_MAX)).unzip();
        self.shards.send_replace(senders);
        questions
    }

    /// Listens at the admin port.
    fn start_admin(&mut self, group: &str) -> Result<()> {
        let Some(admin) = self.admin.take() else { return Ok(()) };
        let port = Port::bind(admin)?;
        let address = port.address;
        tracing::info!(%address, "admin port");
        let subject = Subject {
            group: group.to_owned(),
            bootstrap: self.bootstrap.clone(),
            cluster: self.options.cluster.clone(),
            rebalance_timeout: self.options.membership.rebalance_timeout,
            routes: self.control().routes,
            inquiry: self.inquiry.clone(),
            asyncapi: self.asyncapi(),
        };
        self.background.push(port.background(subject));
        self.inquiry.board.admin.send_replace(Some(address));
        Ok(())
    }
}

/// Lets the shards run until the member has left its group, or one of them fails. Both drain once
/// `shutdown` completes or a background task fails.
async fn until_left(
    left: oneshot::Receiver<Result<()>>,
    shards: &mut Shards,
    background: &mut Tasks,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let shutdown = async {
        tokio::select! {
            () = shutdown => {}
            () = background.failed() => {}
        }
        background.reach(Stage::Draining);
        std::future::pending().await
    };
    tokio::select! {
        left = left => left.unwrap_or(Err(Error::MemberGone)),
        error = shards.failed() => Err(error),
        never = shutdown => never,
    }
}

impl Control {
    /// Changes how many records or batches are handled at a time; those under way are not stopped.
    pub fn set_workers(&self, workers: usize) {
        self.workers.send_replace(workers);
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

/// As much as the fetcher's buffer by default.
const QUEUE_BYTES_DEFAULT: usize = 64 * 1024 * 1024;
