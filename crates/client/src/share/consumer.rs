//! A member that reads, and says what became of what it read.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use moldau_protocol::{ErrorCode, Uuid};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::request::{self, Answered, Sender};
use super::session::{Acknowledgement, Contents, Place, Session};
use super::{AcknowledgeMode, Acquired, ShareFetched, ShareOptions};
use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::group::{Membership, MembershipEvent, MembershipOptions};
use crate::metadata::{Metadata, TopicRef};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// A member of a share group that reads.
///
/// A task keeps it in the group; fetches and acknowledgements are sent by its methods, one request
/// per broker at a time. Dropping it gives its records back as soon as its connections end.
#[derive(Debug)]
pub struct ShareConsumer {
    cluster: Cluster,
    options: ShareOptions,
    membership: Membership,
    sender: Sender,
    metadata: watch::Receiver<Arc<Metadata>>,
    brokers: BTreeMap<i32, Broker>,
    requests: JoinSet<Done>,
    /// Fetched and not returned: what one answer per broker holds at most.
    ready: VecDeque<ShareFetched>,
    /// The broker of what was returned last of each partition; its records are acknowledged there.
    sources: HashMap<TopicPartition, (i32, Place)>,
    /// Why acknowledgements count for nothing, since the last commit; the last reason of each.
    refused: BTreeMap<TopicPartition, Error>,
    names: HashMap<Uuid, TopicRef>,
    lookup: Lookup,
}

#[derive(Debug, Default)]
struct Broker {
    session: Session,
    connection: Option<Connection>,
    /// Nothing is asked before, after a failure.
    not_before: Option<Instant>,
}

/// Whether topics of the assignment are looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lookup {
    Idle,
    Running,
}

/// A request that has ended.
#[derive(Debug)]
enum Done {
    Asked(i32, Option<Connection>, Result<(Duration, Vec<Answered>)>),
    LookedUp,
}

enum Ask {
    Fetch(Contents),
    Report(Contents),
}

impl ShareConsumer {
    /// Joins a share group. Must be called in a tokio runtime, which then runs its tasks.
    ///
    /// # Errors
    /// [`Error::UnsupportedApi`] from a broker without share groups; [`Error::Broker`] with the
    /// coordinator's code, such as `GROUP_MAX_SIZE_REACHED`, `GROUP_AUTHORIZATION_FAILED`, or
    /// `GROUP_ID_NOT_FOUND` for a group of another type; or the cluster does not answer within the
    /// operation timeout.
    pub async fn join(cluster: &Cluster, group: &str, options: ShareOptions) -> Result<Self> {
        let membership = MembershipOptions {
            topics: options.topics.clone(),
            rack: options.rack.clone(),
            ..MembershipOptions::default()
        };
        let membership = Membership::join_share(cluster, group, membership).await?;
        let member = membership.state().member_id;
        Ok(Self {
            cluster: cluster.clone(),
            options,
            membership,
            sender: Sender { group: group.to_owned(), member },
            metadata: cluster.replacements(),
            brokers: BTreeMap::new(),
            requests: JoinSet::new(),
            ready: VecDeque::new(),
            sources: HashMap::new(),
            refused: BTreeMap::new(),
            names: HashMap::new(),
            lookup: Lookup::Idle,
        })
    }

    /// The membership, for its state and for what it is assigned.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The next records of any partition, locked for this member. Without explicit acknowledgement
    /// what earlier calls returned is accepted. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// The group or a broker refuses the member, a batch is damaged, or the membership is over.
    /// Whatever may pass is tried again without an error here.
    pub async fn next(&mut self) -> Result<ShareFetched> {
        self.accept_returned();
        loop {
            if let Some(fetched) = self.ready.pop_front() {
                self.hand_over(&fetched);
                return Ok(fetched);
            }
            let wake_at = self.ask_all();
            self.wait(wake_at).await?;
        }
    }

    /// Records that were fetched already, as [`next`](Self::next) returns them; `None` if there are
    /// none. Nothing is asked for.
    pub fn try_next(&mut self) -> Option<ShareFetched> {
        let fetched = self.ready.pop_front()?;
        self.hand_over(&fetched);
        Some(fetched)
    }

    /// Says what became of a record that [`next`](Self::next) returned. It is sent with the next
    /// request to the broker; [`commit`](Self::commit) sends it at once.
    ///
    /// # Errors
    /// [`Error::NotHeld`]: the member does not hold the record, or has said it already.
    /// [`Error::Broker`] with `INVALID_REQUEST` for a renewal without explicit acknowledgement,
    /// where the next call would accept the record.
    pub fn acknowledge(
        &mut self,
        partition: &TopicPartition,
        offset: i64,
        said: Acknowledgement,
    ) -> Result<()> {
        let is_explicit = self.options.acknowledge == AcknowledgeMode::Explicit;
        if said == Acknowledgement::Renew && !is_explicit {
            let message = Some("renewing needs explicit acknowledgement");
            return Err(Error::broker(ErrorCode::InvalidRequest, "renewal", message));
        }
        let source = self.sources.get(partition).copied();
        let broker = source.and_then(|(node, place)| Some((self.brokers.get_mut(&node)?, place)));
        let is_held =
            broker.is_some_and(|(broker, place)| broker.session.acknowledge(place, offset, said));
        if is_held {
            return Ok(());
        }
        let TopicPartition { topic, partition } = partition.clone();
        Err(Error::NotHeld { topic, partition })
    }

    /// Whether the member holds a record that [`next`](Self::next) returned: it has said nothing
    /// final of it, and the session that brought it lasts. A lock that the broker ended by itself
    /// only shows in the answer to an acknowledgement.
    #[must_use]
    pub fn holds(&self, partition: &TopicPartition, offset: i64) -> bool {
        let source = self.sources.get(partition);
        let session = source.and_then(|(node, place)| Some((self.brokers.get(node)?, place)));
        session.is_some_and(|(Broker { session, connection, .. }, place)| {
            // The broker ends the session with its connection. A request in flight has that.
            let is_open = connection.as_ref().is_none_or(|connection| !connection.is_closed());
            is_open && session.holds(*place, offset)
        })
    }

    /// Waits for the fetches under way, gives back what was fetched and not returned, and commits:
    /// then the member holds only what [`next`](Self::next) returned. The following call of that
    /// fetches again. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn quiesce(&mut self) -> Result<Vec<(TopicPartition, Error)>> {
        let deadline = Instant::now() + self.cluster.options().operation_timeout;
        while !self.is_idle() && Instant::now() < deadline {
            self.wait(Some(deadline)).await?;
        }
        while let Some(fetched) = self.try_next() {
            let partition = fetched.topic_partition();
            for Acquired { first_offset, last_offset, .. } in fetched.acquired {
                for offset in first_offset..=last_offset {
                    self.acknowledge(&partition, offset, Acknowledgement::Release)?;
                }
            }
        }
        self.commit().await
    }

    /// Sends what was said, or without explicit acknowledgement accepts all that was returned, and
    /// waits until it is durable. The answer names the partitions of which something that was said
    /// since the last call counts for nothing: those records may be delivered again.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn commit(&mut self) -> Result<Vec<(TopicPartition, Error)>> {
        self.accept_returned();
        let deadline = Instant::now() + self.cluster.options().operation_timeout;
        while self.brokers.values().any(|it| it.session.is_unanswered()) {
            let nodes: Vec<i32> = self.brokers.keys().copied().collect();
            for node in nodes {
                let session = |it: &mut Broker| it.session.report();
                if let Some(said) = self.brokers.get_mut(&node).and_then(session) {
                    self.ask(node, Ask::Report(said));
                }
            }
            if Instant::now() >= deadline {
                break;
            }
            self.wait(Some(deadline)).await?;
        }
        Ok(std::mem::take(&mut self.refused).into_iter().collect())
    }

    /// Commits, gives back what is held beside that, and leaves the group. What is given back so
    /// counts as delivered.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer. The member is gone in any case, and its records
    /// are given back at the latest when their locks end.
    pub async fn leave(mut self) -> Result<Vec<(TopicPartition, Error)>> {
        let committed = self.commit().await;
        let deadline = Instant::now() + self.cluster.options().operation_timeout;
        // A session with a request in flight cannot be closed.
        while !self.is_idle() && Instant::now() < deadline {
            if self.wait(Some(deadline)).await.is_err() {
                break;
            }
        }
        let nodes: Vec<i32> = self.brokers.keys().copied().collect();
        for node in nodes {
            let session = |it: &mut Broker| it.session.close();
            if let Some(last) = self.brokers.get_mut(&node).and_then(session) {
                self.ask(node, Ask::Report(last));
            }
        }
        while let Some(done) = self.requests.join_next().await {
            if let Ok(done) = done {
                // What an answer says of a session that ends changes nothing.
                drop(self.take(done));
            }
        }
        self.membership.leave().await?;
        committed
    }

    fn is_idle(&self) -> bool {
        self.brokers.values().all(|broker| broker.session.is_idle())
    }

    fn accept_returned(&mut self) {
        if self.options.acknowledge == AcknowledgeMode::Implicit {
            self.brokers.values_mut().for_each(|broker| broker.session.accept_all());
        }
    }

    fn hand_over(&mut self, fetched: &ShareFetched) {
        let place = (fetched.topic.id, fetched.partition);
        self.sources.insert(fetched.topic_partition(), (fetched.node, place));
        if let Some(broker) = self.brokers.get_mut(&fetched.node) {
            for range in &fetched.acquired {
                broker.session.deliver(place, range.first_offset, range.last_offset);
            }
        }
    }

    /// Sends what there is to ask of each broker; when there will be more without an event.
    fn ask_all(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let wanted = self.wanted();
        for node in wanted.keys() {
            self.brokers.entry(*node).or_default();
        }
        self.brokers.retain(|node, broker| {
            wanted.contains_key(node) || broker.session.is_open() || broker.not_before.is_some()
        });
        let mut wake_at: Option<Instant> = None;
        let nothing = BTreeSet::new();
        let nodes: Vec<i32> = self.brokers.keys().copied().collect();
        for node in nodes {
            let Some(broker) = self.brokers.get_mut(&node) else { continue };
            if let Some(at) = broker.not_before.filter(|at| now < *at) {
                wake_at = Some(wake_at.map_or(at, |known| known.min(at)));
                continue;
            }
            broker.not_before = None;
            let wanted = wanted.get(&node).unwrap_or(&nothing);
            let ask = match broker.session.has_renewals() {
                true => broker.session.report().map(Ask::Report),
                false => broker.session.fetch(wanted).map(Ask::Fetch),
            };
            if let Some(ask) = ask {
                self.ask(node, ask);
            }
        }
        wake_at
    }

    /// Assigned partitions by their leaders, as far as they are known.
    fn wanted(&mut self) -> BTreeMap<i32, BTreeSet<Place>> {
        let metadata = self.cluster.metadata();
        let mut wanted: BTreeMap<i32, BTreeSet<Place>> = BTreeMap::new();
        let mut unknown = None;
        for partition in self.membership.held() {
            let topic = metadata.topics.get(&partition.topic);
            let leader = metadata.leader(&partition.topic, partition.partition);
            match topic.zip(leader) {
                Some((topic, leader)) => {
                    let TopicRef { id, .. } = topic.topic;
                    self.names.insert(id, topic.topic.clone());
                    wanted.entry(leader.node).or_default().insert((id, partition.partition));
                }
                None => unknown = Some(partition.clone()),
            }
        }
        if let Some(unknown) = unknown {
            self.look_up(Some(unknown));
        }
        wanted
    }

    /// Asks for metadata, after a pause if it is known and wrong.
    fn look_up(&mut self, unknown: Option<TopicPartition>) {
        if self.lookup == Lookup::Running {
            return;
        }
        self.lookup = Lookup::Running;
        let cluster = self.cluster.clone();
        self.requests.spawn(async move {
            let seen = cluster.metadata().generation;
            if let Some(TopicPartition { topic, .. }) = unknown {
                // What does not exist is no longer assigned soon.
                drop(cluster.topic(&topic).await);
            }
            // Leaders that are being elected do not appear faster by asking faster.
            tokio::time::sleep(cluster.options().retry_backoff).await;
            if let Err(error) = cluster.refresh_from(seen).await {
                tracing::debug!(%error, "metadata could not be refreshed");
            }
            Done::LookedUp
        });
    }

    fn ask(&mut self, node: i32, ask: Ask) {
        let connection = self.brokers.get_mut(&node).and_then(|broker| broker.connection.take());
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        let options = self.options.clone();
        self.requests.spawn(async move {
            let open = connection.filter(|connection| !connection.is_closed());
            let connection = match open {
                Some(open) => Ok(open),
                None => cluster.dedicated_connection(node).await,
            };
            let connection = match connection {
                Ok(connection) => connection,
                Err(error) => return Done::Asked(node, None, Err(error)),
            };
            let answer = send(&connection, &sender, ask, &options).await;
            Done::Asked(node, Some(connection), answer)
        });
    }

    async fn wait(&mut self, wake_at: Option<Instant>) -> Result<()> {
        let alarm = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = self.membership.next() => {
                if let MembershipEvent::Revoked(partitions) = event? {
                    // The records that it holds of them are still its own.
                    self.membership.revoked(&partitions);
                }
                Ok(())
            }
            Some(done) = self.requests.join_next() => match done {
                Ok(done) => self.take(done),
                Err(_) => Err(Error::Closed),
            },
            Ok(()) = self.metadata.changed() => Ok(()),
            () = alarm => Ok(()),
        }
    }

    fn take(&mut self, done: Done) -> Result<()> {
        let (node, connection, answer) = match done {
            Done::LookedUp => {
                self.lookup = Lookup::Idle;
                return Ok(());
            }
            Done::Asked(node, connection, answer) => (node, connection, answer),
        };
        let Some(broker) = self.brokers.get_mut(&node) else { return Ok(()) };
        match answer {
            Ok((lock_duration, partitions)) => {
                broker.connection = connection;
                broker.session.answered();
                self.take_partitions(node, lock_duration, partitions)
            }
            Err(error) => {
                // Without its connection the broker ends the session, if there is one still.
                broker.connection = None;
                let pause = self.cluster.options().retry_backoff;
                broker.not_before = Some(Instant::now() + pause);
                for place in broker.session.lost() {
                    self.refuse(place, &error);
                }
                self.ready.retain(|fetched| fetched.node != node);
                if !error.is_retriable() && !error.is_left_behind() {
                    return Err(error);
                }
                self.look_up(None);
                Ok(())
            }
        }
    }

    fn take_partitions(
        &mut self,
        node: i32,
        lock_duration: Duration,
        partitions: Vec<Answered>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for answered in partitions {
            let place = answered.place;
            if let Some(refusal) = &answered.refusal {
                self.refuse(place, refusal);
            }
            match &answered.error {
                None => {}
                Some(error) if error.is_retriable() => self.postpone(node),
                Some(error) => outcome = Err(error.clone()),
            }
            if answered.acquired.is_empty() {
                continue;
            }
            let bytes_max = self.options.unpacked_bytes_max;
            let sorted = request::with_records(&answered.bytes, &answered.acquired, bytes_max);
            let (acquired, gaps) = match sorted {
                Ok(sorted) => sorted,
                Err(error) => {
                    outcome = Err(error);
                    continue;
                }
            };
            if let Some(broker) = self.brokers.get_mut(&node) {
                broker.session.pass_over(place, gaps);
            }
            let topic = self.names.get(&place.0).filter(|_| !acquired.is_empty()).cloned();
            let Some(topic) = topic else { continue };
            self.ready.push_back(ShareFetched {
                topic,
                partition: place.1,
                acquired,
                lock_duration,
                bytes: answered.bytes,
                node,
                unpacked_bytes_max: bytes_max,
            });
        }
        outcome
    }

    /// A partition of the broker cannot be read for the moment.
    fn postpone(&mut self, node: i32) {
        if let Some(broker) = self.brokers.get_mut(&node) {
            broker.not_before = Some(Instant::now() + self.cluster.options().retry_backoff);
        }
        self.look_up(None);
    }

    fn refuse(&mut self, (id, partition): Place, error: &Error) {
        if let Some(TopicRef { name, .. }) = self.names.get(&id) {
            let key = TopicPartition { topic: name.clone(), partition };
            self.refused.insert(key, error.clone());
        }
    }
}

async fn send(
    connection: &Connection,
    sender: &Sender,
    ask: Ask,
    options: &ShareOptions,
) -> Result<(Duration, Vec<Answered>)> {
    let millis = |ms: i32| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    match ask {
        Ask::Fetch(contents) => {
            let timeout = connection.request_timeout() + options.max_wait;
            let request = sender.fetch(contents, options);
            let answer = connection.send_within(&request, timeout).await?;
            Ok((millis(answer.acquisition_lock_timeout_ms), request::fetched(answer)?))
        }
        Ask::Report(contents) => {
            let answer = connection.send(&sender.report(contents)).await?;
            Ok((millis(answer.acquisition_lock_timeout_ms), request::reported(answer)?))
        }
    }
}
