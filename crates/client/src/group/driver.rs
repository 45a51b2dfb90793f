//! The task of a membership: it does what a state machine asks for, on a connection of its own.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moldau_protocol::messages::consumer_group_heartbeat_response::{
    Assignment, TopicPartitions as AssignedTopic,
};
use moldau_protocol::messages::share_group_heartbeat_response::TopicPartitions as ShareTopic;
use moldau_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, LeaveGroupRequest,
    ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::group::classic::ClassicMember;
use crate::group::consumer::ConsumerMember;
use crate::group::holding::MembershipEvent;
use crate::group::machine::{
    Answer, Ask, Effect, Found, Input, Look, Member, MemberStage, Patience,
};
use crate::group::options::{GroupProtocol, MembershipOptions};
use crate::metadata::{Metadata, Topic};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// How much longer than the rebalance timeout a JoinGroup may take, as in Kafka's own consumer.
const JOIN_SLACK: Duration = Duration::from_secs(5);

/// What the owner of a membership asks for.
#[derive(Debug)]
pub(super) enum Command {
    /// These are given up, told after this number of losses.
    GivenUp(u64, Vec<TopicPartition>),
    Leave,
}

/// What the owner asks for, in order. It has no limit of its own: a partition is given up once for
/// each time that it was assigned.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Guards the commands that the task has not taken.
    commands: Mutex<VecDeque<Command>>,
    filled: Notify,
}

impl Inbox {
    pub(super) fn put(&self, command: Command) {
        self.lock().push_back(command);
        self.filled.notify_one();
    }

    async fn take(&self) -> Command {
        loop {
            let first = self.lock().pop_front();
            if let Some(command) = first {
                return command;
            }
            self.filled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Command>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the task tells of its member.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) stage: MemberStage,
    pub(super) id: String,
    pub(super) epoch: i32,
    pub(super) last_heartbeat: Option<Instant>,
    pub(super) heartbeat_interval: Duration,
    pub(super) losses: u64,
    pub(super) refused: Option<Error>,
    /// Why the membership ended, if it failed.
    pub(super) failure: Option<Error>,
}

/// The ends of its channels that the task has.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) commands: Arc<Inbox>,
    /// Events, each with the number of losses up to it.
    pub(super) events: mpsc::Sender<(u64, MembershipEvent)>,
    pub(super) told: watch::Sender<Told>,
    /// Told when the coordinator has answered for the first time.
    pub(super) started: oneshot::Sender<Result<()>>,
}

/// A member in either protocol.
#[derive(Debug)]
pub(super) enum Machine {
    Classic(Box<ClassicMember>),
    Consumer(Box<ConsumerMember>),
    /// A member of a share group (KIP-932): the same, but its heartbeats are other requests.
    Share(Box<ConsumerMember>),
}

type Asked = (Option<Connection>, Result<Answer>);
type Pending<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

/// A membership's task.
struct Driver {
    cluster: Cluster,
    group: Arc<str>,
    join_timeout: Duration,
    machine: Machine,
    connection: Option<Connection>,
    asking: Pending<Asked>,
    looking: Pending<Result<Vec<Found>>>,
    outcome: Option<Result<()>>,
}

impl Machine {
    /// # Errors
    /// The options name what does not exist.
    pub(super) fn new(cluster: &Cluster, group: &str, options: MembershipOptions) -> Result<Self> {
        let protocol = options.protocol;
        let member = Self::member_of(cluster, group, options);
        Ok(match protocol {
            GroupProtocol::Classic => Self::Classic(Box::new(ClassicMember::new(member)?)),
            GroupProtocol::Consumer => Self::Consumer(Box::new(consumer(member))),
        })
    }

    /// A member of a share group.
    pub(super) fn share(cluster: &Cluster, group: &str, options: MembershipOptions) -> Self {
        Self::Share(Box::new(consumer(Self::member_of(cluster, group, options))))
    }

    fn member_of(cluster: &Cluster, group: &str, options: MembershipOptions) -> Member {
        let limits = cluster.options();
        let patience = Patience {
            backoff: limits.retry_backoff,
            backoff_max: limits.retry_backoff_max,
            start: limits.operation_timeout,
            metadata_age_max: limits.metadata_max_age,
        };
        Member::new(group, options, patience, Instant::now(), fastrand::u64(..))
    }

    pub(super) fn step(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        match self {
            Self::Classic(member) => member.step(now, input),
            Self::Consumer(member) | Self::Share(member) => member.step(now, input),
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Classic(member) => member.due(),
            Self::Consumer(member) | Self::Share(member) => member.due(),
        }
    }

    pub(super) fn member(&mut self) -> &mut Member {
        match self {
            Self::Classic(member) => &mut member.member,
            Self::Consumer(member) | Self::Share(member) => &mut member.member,
        }
    }

    /// What there is to tell, without a failure.
    pub(super) fn tell(&mut self) -> Told {
        let stage = match self {
            Self::Classic(member) => member.stage(),
            Self::Consumer(member) | Self::Share(member) => member.stage(),
        };
        let heartbeat_interval = match self {
            Self::Classic(member) => member.heartbeat_interval(),
            Self::Consumer(member) | Self::Share(member) => member.heartbeat_interval(),
        };
        let member = self.member();
        Told {
            stage,
            id: member.id.clone(),
            epoch: member.epoch,
            last_heartbeat: member.last_heartbeat,
            heartbeat_interval,
            losses: member.holding.losses(),
            refused: member.refused.clone(),
            failure: None,
        }
    }
}

/// Runs a member until it leaves or fails.
pub(super) async fn run(cluster: Cluster, machine: Machine, ends: Ends) -> Result<()> {
    let Ends { commands, events, told, started } = ends;
    let mut started = Some(started);
    let mut metadata = cluster.replacements();
    let mut driver = Driver::new(cluster, machine);
    driver.step(Input::Due);
    while driver.outcome.is_none() {
        told.send_replace(driver.machine.tell());
        let due = driver.machine.due();
        let has_events = driver.machine.member().holding.has_events() && !events.is_closed();
        let input = tokio::select! {
            (connection, answer) = pending(&mut driver.asking) => {
                driver.asking = None;
                driver.connection = connection;
                answer.map_or_else(Input::Failed, Input::Answered)
            }
            found = pending(&mut driver.looking) => {
                driver.looking = None;
                Input::Looked(found)
            }
            command = commands.take() => match command {
                Command::GivenUp(losses, partitions) => Input::GivenUp(losses, partitions),
                Command::Leave => Input::Leave,
            },
            Ok(()) = metadata.changed() => {
                Input::Metadata(Arc::clone(&metadata.borrow_and_update()))
            }
            Ok(permit) = events.reserve(), if has_events => {
                let holding = &mut driver.machine.member().holding;
                if let Some(event) = holding.next_event() {
                    permit.send((holding.losses(), event));
                }
                continue;
            }
            () = until(due) => Input::Due,
        };
        let is_answer = matches!(input, Input::Answered(_));
        driver.step(input);
        if is_answer
            && driver.outcome.is_none()
            && let Some(started) = started.take()
        {
            // Who waited for it may be gone.
            drop(started.send(Ok(())));
        }
    }
    driver.finish(&events, &told, started).await
}

impl Driver {
    fn new(cluster: Cluster, mut machine: Machine) -> Self {
        let member = machine.member();
        Self {
            cluster,
            group: member.group.clone(),
            join_timeout: member.options.rebalance_timeout + JOIN_SLACK,
            machine,
            connection: None,
            asking: None,
            looking: None,
            outcome: None,
        }
    }

    fn step(&mut self, input: Input) {
        for effect in self.machine.step(Instant::now(), input) {
            match effect {
                Effect::Ask(ask) => {
                    let ask = match (ask, &self.machine) {
                        (Ask::Beat(beat), Machine::Share(_)) => Ask::ShareBeat(share_beat(beat)),
                        (ask, _) => ask,
                    };
                    // What follows a parked JoinGroup on its connection waits for the group.
                    let open = self.connection.take().filter(|_| self.asking.is_none());
                    self.asking = Some(Box::pin(send(
                        self.cluster.clone(),
                        self.group.clone(),
                        open,
                        ask,
                        self.join_timeout,
                    )));
                }
                Effect::Look(look) => {
                    self.looking = Some(Box::pin(look_up(self.cluster.clone(), look)));
                }
                Effect::ForgetCoordinator => self.connection = None,
                Effect::End(outcome) => self.outcome = Some(outcome),
            }
        }
    }

    /// Tells what the owner does not know yet, and how it ended.
    async fn finish(
        mut self,
        events: &mpsc::Sender<(u64, MembershipEvent)>,
        told: &watch::Sender<Told>,
        started: Option<oneshot::Sender<Result<()>>>,
    ) -> Result<()> {
        let outcome = self.outcome.take().unwrap_or(Ok(()));
        let failure = outcome.as_ref().err().cloned();
        told.send_replace(Told { failure, ..self.machine.tell() });
        if let Some(started) = started {
            // Who waited for it may be gone.
            drop(started.send(outcome.clone()));
        }
        let holding = &mut self.machine.member().holding;
        while let Some(event) = holding.next_event() {
            if events.send((holding.losses(), event)).await.is_err() {
                break;
            }
        }
        outcome
    }
}

fn consumer(member: Member) -> ConsumerMember {
    ConsumerMember::new(member, format!("{:032x}", fastrand::u128(..)))
}

/// The heartbeat as members of share groups send it. They give up what they are told to without a
/// confirmation.
fn share_beat(beat: ConsumerGroupHeartbeatRequest) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: beat.group_id,
        member_id: beat.member_id,
        member_epoch: beat.member_epoch,
        rack_id: beat.rack_id,
        subscribed_topic_names: beat.subscribed_topic_names,
        ..Default::default()
    }
}

fn beat(answer: ShareGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse {
    let topic = |topic: ShareTopic| AssignedTopic {
        topic_id: topic.topic_id,
        partitions: topic.partitions,
        ..Default::default()
    };
    let assignment = answer.assignment.map(|assignment| Assignment {
        topic_partitions: assignment.topic_partitions.into_iter().map(topic).collect(),
        ..Default::default()
    });
    ConsumerGroupHeartbeatResponse {
        throttle_time_ms: answer.throttle_time_ms,
        error_code: answer.error_code,
        error_message: answer.error_message,
        member_id: answer.member_id,
        member_epoch: answer.member_epoch,
        heartbeat_interval_ms: answer.heartbeat_interval_ms,
        assignment,
        ..Default::default()
    }
}

async fn pending<T>(future: &mut Pending<T>) -> T {
    match future {
        Some(future) => future.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Sends a request over `open`, or over a connection to the coordinator that it finds.
async fn send(
    cluster: Cluster,
    group: Arc<str>,
    open: Option<Connection>,
    ask: Ask,
    join_timeout: Duration,
) -> Asked {
    let connection = match open.filter(|connection| !connection.is_closed()) {
        Some(connection) => connection,
        None => match cluster.dedicated_coordinator(&group).await {
            Ok(connection) => connection,
            Err(error) => return (None, Err(error)),
        },
    };
    let answer = match ask {
        Ask::Beat(request) => connection.send(&request).await.map(Answer::Beat),
        Ask::ShareBeat(request) => {
            connection.send(&request).await.map(|answer| Answer::Beat(beat(answer)))
        }
        Ask::Heartbeat(request) => connection.send(&request).await.map(Answer::Heartbeat),
        Ask::Join(request) => {
            connection.send_within(&request, join_timeout).await.map(Answer::Join)
        }
        Ask::Sync(request) => {
            connection.send_within(&request, join_timeout).await.map(Answer::Sync)
        }
        Ask::Leave(request) => leave(&connection, request).await.map(Answer::Leave),
    };
    (Some(connection), answer)
}

async fn leave(
    connection: &Connection,
    mut request: LeaveGroupRequest,
) -> Result<moldau_protocol::messages::LeaveGroupResponse> {
    // Several members at once from version 3 on (KIP-345).
    if connection.version_of::<LeaveGroupRequest>()? < 3 {
        let member = request.members.pop();
        request.member_id = member.map(|member| member.member_id).unwrap_or_default();
    }
    connection.send(&request).await
}

async fn look_up(cluster: Cluster, look: Look) -> Result<Vec<Found>> {
    let names = match look {
        Look::Every => return Ok(all(&cluster.all_topics().await?)),
        Look::Ids(ids) => return Ok(all(&cluster.topics_of_ids(&ids).await?)),
        Look::Named(names) => names,
    };
    let mut topics = Vec::with_capacity(names.len());
    let known = cluster.metadata();
    let mut unknown = JoinSet::new();
    for name in names {
        if let Some(topic) = known.topics.get(name.as_str()) {
            topics.push(found(topic));
            continue;
        }
        let cluster = cluster.clone();
        unknown.spawn(async move { cluster.topic(&name).await });
    }
    while let Some(topic) = unknown.join_next().await {
        match topic {
            Ok(Ok(topic)) => topics.push(found(&topic)),
            // What does not exist, or may not be seen, has nothing to read.
            Ok(Err(Error::UnknownTopicOrPartition { .. } | Error::Broker { .. })) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(Error::Closed),
        }
    }
    Ok(topics)
}

fn all(metadata: &Metadata) -> Vec<Found> {
    metadata.topics.values().map(found).collect()
}

fn found(topic: &Arc<Topic>) -> Found {
    Found { topic: topic.topic.clone(), partitions: topic.partitions.len() }
}
