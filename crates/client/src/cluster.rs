//! A cluster as its clients see it: metadata kept fresh and a connection per broker.
//!
//! Each broker gets at most two shared connections per [`Cluster`]: one for data, and one for the
//! coordination of groups. Callers open a connection of their own for requests that the broker
//! parks or that take long, since brokers serve a connection one request after the other.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::{FindCoordinatorRequest, MetadataRequest};
use moldau_protocol::{Request, Uuid, VersionRange};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::{Connection, ConnectionOptions};
use crate::metadata::{Leader, Metadata, Topic};
use crate::wire::Address;
use crate::{Error, Result};

/// How long a topic may be unknown before it is said not to exist. A topic that was created a
/// moment ago may not have reached the broker that is asked.
const UNKNOWN_TOPIC_PATIENCE: Duration = Duration::from_secs(2);

/// Versions of Metadata that answer for topic ids.
const TOPIC_ID_VERSIONS: VersionRange = VersionRange::new(12, 13);

/// Options of a cluster client.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Limits and identity of each connection.
    pub connection: ConnectionOptions,
    /// First pause before something that failed is tried again; doubles up to
    /// [`retry_backoff_max`](Self::retry_backoff_max). Kafka's `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// Longest such pause; Kafka's `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// How long an operation is tried again before its error is given to the caller; Kafka's
    /// `default.api.timeout.ms`.
    pub operation_timeout: Duration,
    /// How old metadata may become before it is asked for again, so that partitions that were added
    /// are noticed; at least [`retry_backoff`](Self::retry_backoff). Kafka's `metadata.max.age.ms`.
    pub metadata_max_age: Duration,
    /// Whether asking for a topic may create it; Kafka's `allow.auto.create.topics`.
    pub create_topics: bool,
    /// Whether every broker is reached at the first bootstrap address, whatever address it
    /// advertises. What stands before a cluster of one broker and rewrites nothing needs it: a TCP
    /// relay, a tunnel.
    pub bootstrap_only: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            connection: ConnectionOptions::default(),
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            operation_timeout: Duration::from_secs(60),
            metadata_max_age: Duration::from_mins(5),
            create_topics: false,
            bootstrap_only: false,
        }
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// Produce, administration, metadata.
    Data,
    /// Groups and their offsets.
    Coordination,
}

/// Whose coordinator is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CoordinatorOf<'a> {
    /// That of a consumer group.
    Group(&'a str),
    /// That of a transactional id.
    Transaction(&'a str),
}

impl<'a> CoordinatorOf<'a> {
    /// The key, and Kafka's number of its type.
    fn key(self) -> (&'a str, i8) {
        match self {
            Self::Group(group) => (group, 0),
            Self::Transaction(id) => (id, 1),
        }
    }
}

impl std::fmt::Display for CoordinatorOf<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Group(group) => write!(f, "group {group}"),
            Self::Transaction(id) => write!(f, "transactional id {id}"),
        }
    }
}

/// Metadata and connections of one cluster. Clones share them.
#[derive(Clone, Debug)]
pub struct Cluster {
    inner: Arc<Inner>,
}

type Slot = Arc<tokio::sync::Mutex<Option<Connection>>>;

#[derive(Debug)]
struct Inner {
    bootstrap: Vec<Address>,
    options: ClusterOptions,
    /// The snapshot, replaced as a whole.
    metadata: watch::Sender<Arc<Metadata>>,
    /// Guards the names of topics in use.
    topics: Mutex<BTreeSet<Arc<str>>>,
    /// Guards the list of slots; each slot guards the making of its own connection.
    connections: Mutex<HashMap<(Address, Purpose), Slot>>,
    /// Held while metadata is asked for, so that many askers cause one request.
    refreshing: tokio::sync::Mutex<()>,
}

impl Inner {
    /// Replaces an advertised address by that at which the broker is reached.
    fn reached_at(&self, address: &mut Address) {
        if let Some(first) = self.bootstrap.first().filter(|_| self.options.bootstrap_only) {
            address.clone_from(first);
        }
    }
}

impl Cluster {
    /// Connects to the first of the `bootstrap` addresses (`host:port`, or several separated by
    /// commas) that answers and reads the list of brokers. Must be called in a tokio runtime, which
    /// then runs the connections.
    ///
    /// # Errors
    /// No address is valid, or none answers within the operation timeout.
    pub async fn connect<A: AsRef<str>>(bootstrap: &[A], options: ClusterOptions) -> Result<Self> {
        let addresses = bootstrap.iter().flat_map(|list| list.as_ref().split(','));
        let bootstrap: Vec<Address> =
            addresses.map(|address| address.trim().parse()).collect::<Result<_>>()?;
        if bootstrap.is_empty() {
            return Err(Error::InvalidAddress { address: "".into() });
        }
        let inner = Inner {
            bootstrap,
            options,
            metadata: watch::Sender::default(),
            topics: Mutex::default(),
            connections: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        };
        let cluster = Self { inner: Arc::new(inner) };
        cluster.refresh().await?;
        let replaced = cluster.replacements();
        tokio::spawn(keep_fresh(Arc::downgrade(&cluster.inner), replaced));
        Ok(cluster)
    }

    /// The options given at the start.
    #[must_use]
    pub fn options(&self) -> &ClusterOptions {
        &self.inner.options
    }

    /// The latest snapshot.
    #[must_use]
    pub fn metadata(&self) -> Arc<Metadata> {
        Arc::clone(&self.inner.metadata.borrow())
    }

    /// The latest snapshot, and whenever another replaces it.
    #[must_use]
    pub fn replacements(&self) -> watch::Receiver<Arc<Metadata>> {
        self.inner.metadata.subscribe()
    }

    /// A topic's partitions, asked of the cluster if they are not known, and kept fresh from
    /// then on. Waits for a topic that is being created.
    ///
    /// # Errors
    /// [`Error::UnknownTopicOrPartition`], or the failure that keeps the cluster from answering.
    pub async fn topic(&self, name: &str) -> Result<Arc<Topic>> {
        lock(&self.inner.topics).insert(name.into());
        let mut retry = self.retry();
        let mut unknown_until = self.retry_for(UNKNOWN_TOPIC_PATIENCE);
        let mut metadata = self.refresh_unless_known(name).await?;
        loop {
            if let Some(topic) = metadata.topics.get(name) {
                return Ok(Arc::clone(topic));
            }
            let code = metadata.refused.get(name).copied();
            let code = code.unwrap_or(ErrorCode::UnknownTopicOrPartition);
            let error = Error::broker(code, &format!("topic {name}"), None);
            if code == ErrorCode::UnknownTopicOrPartition {
                if unknown_until.pause(error).await.is_err() {
                    lock(&self.inner.topics).remove(name);
                    return Err(Error::UnknownTopicOrPartition { name: name.into() });
                }
            } else {
                retry.pause(error).await?;
            }
            metadata = self.refresh_from(metadata.generation).await?;
        }
    }

    /// Asks for several topics at once, so that [`topic`](Self::topic) then knows those that exist.
    /// Asking for them one after the other asks for all earlier ones again each time.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub async fn load_topics<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let known = self.metadata();
        let unknown = names.into_iter().filter(|name| !known.topics.contains_key(*name));
        let unknown: Vec<Arc<str>> = unknown.map(Into::into).collect();
        lock(&self.inner.topics).extend(unknown.iter().cloned());
        let mut seen = known.generation;
        // The first answer may be to a request that was under way before, without these names.
        for _ in 0..2 {
            let known = self.metadata();
            if unknown.iter().all(|name| known.topics.contains_key(name)) {
                break;
            }
            seen = self.refresh_from(seen).await?.generation;
        }
        Ok(())
    }

    async fn refresh_unless_known(&self, name: &str) -> Result<Arc<Metadata>> {
        let metadata = self.metadata();
        if metadata.topics.contains_key(name) {
            return Ok(metadata);
        }
        self.refresh_from(metadata.generation).await
    }

    /// The leader of a partition, asked of the cluster if there is none at the moment.
    ///
    /// # Errors
    /// [`Error::NoLeader`] after the operation timeout, and those of [`topic`](Self::topic).
    pub async fn leader(&self, topic: &str, partition: i32) -> Result<Leader> {
        let mut retry = self.retry();
        loop {
            let generation = self.metadata().generation;
            match self.known_leader(topic, partition).await {
                Err(error @ Error::NoLeader { .. }) => retry.pause(error).await?,
                found => return found,
            }
            self.refresh_from(generation).await?;
        }
    }

    /// The leader as far as metadata tells it, without waiting for an election: one partition
    /// without a leader does not hold up the others.
    ///
    /// # Errors
    /// [`Error::NoLeader`], and those of [`topic`](Self::topic).
    pub(crate) async fn known_leader(&self, topic: &str, partition: i32) -> Result<Leader> {
        if let Some(leader) = self.metadata().leader(topic, partition) {
            return Ok(leader);
        }
        if !self.topic(topic).await?.has_partition(partition) {
            let name = format!("{topic}-{partition}").into();
            return Err(Error::UnknownTopicOrPartition { name });
        }
        let leader = self.metadata().leader(topic, partition);
        leader.ok_or_else(|| Error::NoLeader { topic: topic.into(), partition })
    }

    /// Asks for fresh metadata of all topics in use.
    ///
    /// # Errors
    /// No broker answers within the operation timeout.
    pub async fn refresh(&self) -> Result<Arc<Metadata>> {
        let seen = self.metadata().generation;
        self.refresh_from(seen).await
    }

    /// As [`refresh`](Self::refresh), unless generation `seen` is already replaced.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub async fn refresh_from(&self, seen: u64) -> Result<Arc<Metadata>> {
        let _asking = self.inner.refreshing.lock().await;
        let known = self.metadata();
        if known.generation > seen {
            return Ok(known);
        }
        let names = lock(&self.inner.topics).iter().cloned().collect::<Vec<_>>();
        let mut request = MetadataRequest {
            allow_auto_topic_creation: self.inner.options.create_topics,
            ..Default::default()
        };
        request.topics = Some(names.iter().map(|name| named_topic(name)).collect());
        let answer = self.send_any(&request).await?;
        let mut next = known.updated(answer);
        for address in next.brokers.values_mut() {
            self.inner.reached_at(address);
        }
        let next = Arc::new(next);
        self.inner.metadata.send_replace(Arc::clone(&next));
        Ok(next)
    }

    /// Metadata of every topic of the cluster, beside the snapshot.
    ///
    /// # Errors
    /// No broker answers within the operation timeout.
    pub async fn all_topics(&self) -> Result<Metadata> {
        let request = MetadataRequest { topics: None, ..Default::default() };
        Ok(Metadata::default().updated(self.send_any(&request).await?))
    }

    /// Metadata of the topics with these ids, beside the snapshot; those that do not exist are left
    /// out. Brokers of KIP-848 find topics by id.
    pub(crate) async fn topics_of_ids(&self, ids: &[Uuid]) -> Result<Metadata> {
        let topic = |id: &Uuid| MetadataRequestTopic { topic_id: *id, ..Default::default() };
        let topics = Some(ids.iter().map(topic).collect());
        let request = MetadataRequest { topics, ..Default::default() };
        let answer = self.any_connection().await?.send_in(&request, TOPIC_ID_VERSIONS).await?;
        Ok(Metadata::default().updated(answer))
    }

    /// A connection to the broker `node`.
    ///
    /// # Errors
    /// The broker is unknown or does not answer.
    pub async fn connection(&self, node: i32, purpose: Purpose) -> Result<Connection> {
        self.connection_to(&self.address_of(node)?, purpose).await
    }

    /// An exclusive connection to the broker `node`.
    ///
    /// # Errors
    /// The broker is unknown or does not answer.
    pub async fn dedicated_connection(&self, node: i32) -> Result<Connection> {
        Connection::connect(&self.address_of(node)?, &self.inner.options.connection).await
    }

    fn address_of(&self, node: i32) -> Result<Address> {
        let address = self.metadata().brokers.get(&node).cloned();
        address.ok_or_else(|| {
            Error::broker(ErrorCode::BrokerNotAvailable, &format!("broker {node}"), None)
        })
    }

    /// The coordinator of a consumer group, found anew each time.
    ///
    /// # Errors
    /// No broker names one within the operation timeout.
    pub async fn group_coordinator(&self, group: &str) -> Result<Connection> {
        self.coordinator(CoordinatorOf::Group(group)).await
    }

    async fn coordinator(&self, of: CoordinatorOf<'_>) -> Result<Connection> {
        let mut retry = self.retry();
        loop {
            let found = match self.find_coordinator(of).await {
                Ok(address) => self.connection_to(&address, Purpose::Coordination).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(connection) => return Ok(connection),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    /// An exclusive connection to the coordinator of a group, asked for once.
    pub(crate) async fn dedicated_coordinator(&self, group: &str) -> Result<Connection> {
        let address = self.find_coordinator(CoordinatorOf::Group(group)).await?;
        Connection::connect(&address, &self.inner.options.connection).await
    }

    async fn find_coordinator(&self, of: CoordinatorOf<'_>) -> Result<Address> {
        let (key, key_type) = of.key();
        let request = FindCoordinatorRequest {
            key: key.to_owned(),
            key_type,
            coordinator_keys: vec![key.to_owned()],
            ..Default::default()
        };
        let connection = self.any_connection().await?;
        let version = connection.version_of::<FindCoordinatorRequest>()?;
        // From version 4 on several keys are asked for at once (KIP-699).
        let batched = version >= 4;
        let request = if batched {
            FindCoordinatorRequest { key: String::new(), ..request }
        } else {
            FindCoordinatorRequest { coordinator_keys: Vec::new(), ..request }
        };
        let answer = connection.send(&request).await?;
        let what = format!("coordinator of {of}");
        let (code, message, host, port) = match answer.coordinators.into_iter().next() {
            Some(c) => (c.error_code, c.error_message, c.host, c.port),
            None => (answer.error_code, answer.error_message, answer.host, answer.port),
        };
        Error::check(code, &what, message.as_deref())?;
        let port = u16::try_from(port)
            .map_err(|_| Error::broker(ErrorCode::CoordinatorNotAvailable, &what, None))?;
        let mut address = Address { host, port };
        self.inner.reached_at(&mut address);
        Ok(address)
    }

    /// Sends `request` to the coordinator `of` something, again while it moves or loads. `code_of`
    /// finds the error code of an answer.
    pub(crate) async fn ask_coordinator<R: Request>(
        &self,
        of: CoordinatorOf<'_>,
        request: &R,
        versions: VersionRange,
        code_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response> {
        let mut retry = self.retry();
        loop {
            let asked = async {
                let connection = self.coordinator(of).await?;
                connection.send_in(request, versions).await
            };
            let error = match asked.await {
                Ok(answer) => match ErrorCode::try_from(code_of(&answer)) {
                    Ok(
                        code @ (ErrorCode::CoordinatorLoadInProgress
                        | ErrorCode::CoordinatorNotAvailable
                        | ErrorCode::NotCoordinator),
                    ) => Error::broker(code, &of.to_string(), None),
                    _ => return Ok(answer),
                },
                Err(error) => error,
            };
            retry.pause(error).await?;
        }
    }

    /// Sends `request` to any broker, trying others and again until the operation timeout.
    ///
    /// # Errors
    /// The last reason why no broker answered.
    pub async fn send_any<R: Request>(&self, request: &R) -> Result<R::Response> {
        let mut retry = self.retry();
        loop {
            let answer = match self.any_connection().await {
                Ok(connection) => connection.send(request).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    /// A connection to any broker: a known one, or one of the bootstrap addresses when none of
    /// those can be reached (KIP-899).
    ///
    /// # Errors
    /// The last reason why none could be reached.
    pub async fn any_connection(&self) -> Result<Connection> {
        let mut addresses: Vec<Address> = self.metadata().brokers.values().cloned().collect();
        fastrand::shuffle(&mut addresses);
        addresses.extend(self.inner.bootstrap.iter().cloned());
        let mut last = Error::Closed;
        for address in addresses {
            match self.connection_to(&address, Purpose::Data).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A connection to the controller as far as it is known, otherwise to any broker.
    pub(crate) async fn controller_connection(&self) -> Result<Connection> {
        match self.metadata().controller {
            Some(node) => self.connection(node, Purpose::Data).await,
            None => self.any_connection().await,
        }
    }

    async fn connection_to(&self, address: &Address, purpose: Purpose) -> Result<Connection> {
        let slot = {
            let mut slots = lock(&self.inner.connections);
            Arc::clone(slots.entry((address.clone(), purpose)).or_default())
        };
        let mut slot = slot.lock().await;
        if let Some(open) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(open.clone());
        }
        let connection = Connection::connect(address, &self.inner.options.connection).await?;
        *slot = Some(connection.clone());
        Ok(connection)
    }

    pub(crate) fn retry(&self) -> Retry {
        self.retry_for(self.inner.options.operation_timeout)
    }

    fn retry_for(&self, patience: Duration) -> Retry {
        let options = &self.inner.options;
        let deadline = Instant::now() + patience.min(options.operation_timeout);
        Retry { pause: options.retry_backoff, pause_max: options.retry_backoff_max, deadline }
    }
}

/// Replaces metadata once it is as old as it may be, until the last clone of
/// the cluster is gone.
async fn keep_fresh(inner: Weak<Inner>, mut replaced: watch::Receiver<Arc<Metadata>>) {
    let age = |inner: &Inner| inner.options.metadata_max_age.max(inner.options.retry_backoff);
    let Some(age) = inner.upgrade().map(|inner| age(&inner)) else { return };
    loop {
        match tokio::time::timeout(age, replaced.changed()).await {
            Ok(Ok(())) => continue,
            Ok(Err(_)) => return,
            Err(_) => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = (Cluster { inner }).refresh().await {
            tracing::warn!(%error, "metadata could not be refreshed");
        }
    }
}

fn named_topic(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(name.to_owned()), ..Default::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Growing pauses with jitter until a deadline.
#[derive(Debug)]
pub(crate) struct Retry {
    pause: Duration,
    pause_max: Duration,
    deadline: Instant,
}

impl Retry {
    /// Waits before the next attempt; gives `error` back if it is final or time is up.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        if error.is_retriable() { self.wait(error).await } else { Err(error) }
    }

    /// As [`pause`](Self::pause), for an error that the caller knows to pass.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        let jittered = self.pause.mul_f64(0.8 + 0.4 * fastrand::f64());
        if Instant::now() + jittered > self.deadline {
            return Err(error);
        }
        tokio::time::sleep(jittered).await;
        self.pause = (self.pause * 2).min(self.pause_max);
        Ok(())
    }
}
