//! Membership of a classic consumer group, with the range assignor and eager rebalances.
//!
//! A member has a connection of its own to the coordinator, so that neither a parked JoinGroup nor
//! a long fetch delays a heartbeat. A rebalance happens inside [`GroupConsumer::next`]: what was
//! returned before counts as processed and is committed, then the member joins again. The group's
//! leader begins one when metadata has partitions that it has not assigned.

mod assignor;
mod offsets;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use moldau_protocol::messages::leave_group_request::MemberIdentity;
use moldau_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use moldau_protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, SyncGroupRequest,
};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::fetcher::{Fetched, Fetcher, FetcherOptions, Reset, Start};
use crate::metadata::Metadata;
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Protocol type of groups whose members consume.
const PROTOCOL_TYPE: &str = "consumer";

/// Name of the assignor that all members must share.
const ASSIGNOR: &str = "range";

/// How much longer than the rebalance timeout a JoinGroup may take, as in Kafka's own consumer.
const JOIN_SLACK: Duration = Duration::from_secs(5);

/// Options of a group member. Names and defaults are Kafka's.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// How long the coordinator waits for a heartbeat (`session.timeout.ms`).
    pub session_timeout: Duration,
    /// How long the coordinator waits for members to join again (`max.poll.interval.ms`).
    pub rebalance_timeout: Duration,
    /// Pause between heartbeats (`heartbeat.interval.ms`).
    pub heartbeat_interval: Duration,
    /// Makes the member static (KIP-345, `group.instance.id`).
    pub instance_id: Option<String>,
    /// How records are fetched; its `reset` also says where a group without offsets begins.
    pub fetcher: FetcherOptions,
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self {
            session_timeout: Duration::from_secs(45),
            rebalance_timeout: Duration::from_mins(5),
            heartbeat_interval: Duration::from_secs(3),
            instance_id: None,
            fetcher: FetcherOptions::default(),
        }
    }
}

/// How far a member is in taking part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It must join, or is at it.
    Joining,
    /// It knows what it is assigned, and does not read all of it yet.
    Assigned,
    Reading,
}

/// Who the coordinator takes us for.
#[derive(Clone, Debug, Default)]
struct Member {
    id: String,
    generation: i32,
}

/// A member of a consumer group that reads what it is assigned.
///
/// Dropping it ends its tasks without leaving: the coordinator notices after the session timeout.
#[derive(Debug)]
pub struct GroupConsumer {
    cluster: Cluster,
    group: Arc<str>,
    topics: Vec<String>,
    options: GroupOptions,
    fetcher: Fetcher,
    connection: Connection,
    member: Member,
    assignment: Vec<TopicPartition>,
    /// Numbers of partitions that it assigned by, if it leads the group.
    led: Option<HashMap<String, usize>>,
    metadata: watch::Receiver<Arc<Metadata>>,
    /// Offsets to be committed: after what was returned and not committed yet.
    uncommitted: HashMap<TopicPartition, i64>,
    heartbeats: JoinHandle<()>,
    /// Told when the member must join again.
    rejoin: Arc<Notify>,
    stage: Stage,
}

impl GroupConsumer {
    /// Joins `group` and begins to read what is assigned of `topics`. Must be called in a tokio
    /// runtime, which then runs its tasks.
    ///
    /// # Errors
    /// A topic does not exist, the group refuses the member, or the cluster does not answer.
    pub async fn join(
        cluster: &Cluster,
        group: &str,
        topics: &[String],
        options: GroupOptions,
    ) -> Result<Self> {
        for topic in topics {
            cluster.topic(topic).await?;
        }
        let mut consumer = Self {
            cluster: cluster.clone(),
            group: group.into(),
            topics: topics.to_vec(),
            fetcher: Fetcher::start(cluster, options.fetcher.clone()),
            connection: cluster.dedicated_coordinator(group).await?,
            options,
            member: Member::default(),
            assignment: Vec::new(),
            led: None,
            metadata: cluster.replacements(),
            uncommitted: HashMap::new(),
            heartbeats: tokio::spawn(std::future::ready(())),
            rejoin: Arc::new(Notify::new()),
            stage: Stage::Joining,
        };
        consumer.rejoin().await?;
        Ok(consumer)
    }

    /// Partitions that this member reads.
    #[must_use]
    pub fn assignment(&self) -> &[TopicPartition] {
        &self.assignment
    }

    /// The next batches of any assigned partition. What earlier calls returned counts as
    /// processed. Joins again when the group rebalances. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// A partition cannot be read, the group refuses the member, or the cluster does not answer.
    pub async fn next(&mut self) -> Result<Fetched> {
        loop {
            if self.stage != Stage::Reading {
                if let Err(error) = self.commit().await {
                    // The new owners of the partitions read on from the last commit.
                    tracing::debug!(group = %self.group, %error, "commit before rebalance");
                }
                self.rejoin().await?;
            }
            tokio::select! {
                fetched = self.fetcher.next() => {
                    let fetched = fetched?;
                    self.uncommitted.insert(fetched.topic_partition(), fetched.next_position);
                    return Ok(fetched);
                }
                () = self.rejoin.notified() => self.stage = Stage::Joining,
                () = outgrown(&mut self.metadata, self.led.as_ref()) => {
                    self.stage = Stage::Joining;
                }
            }
        }
    }

    /// Makes the next commit say `next` for a partition, for callers that did not take all of the
    /// records that [`next`](Self::next) gave.
    pub fn consumed_to(&mut self, partition: TopicPartition, next: i64) {
        // One that went to another member is that one's to commit.
        if self.assignment.contains(&partition) {
            self.uncommitted.insert(partition, next);
        }
    }

    /// Commits the offsets after all that [`next`](Self::next) has returned. A coordinator that
    /// restarts, loads the group or has moved is asked again until the operation timeout.
    ///
    /// # Errors
    /// The group has rebalanced without this member ([`Error::is_left_behind`]), or the coordinator
    /// does not answer.
    pub async fn commit(&mut self) -> Result<()> {
        if self.uncommitted.is_empty() {
            return Ok(());
        }
        let mut retry = self.cluster.retry();
        while let Err(error) = self.commit_once().await {
            self.find_coordinator(error, &mut retry).await?;
            self.beat();
        }
        self.uncommitted.clear();
        Ok(())
    }

    async fn commit_once(&self) -> Result<()> {
        let Member { id, generation } = &self.member;
        let instance_id = self.options.instance_id.clone();
        let request =
            offsets::commit_request(&self.group, id, *generation, instance_id, &self.uncommitted);
        let answer = self.connection.send_in(&request, offsets::COMMIT_VERSIONS).await?;
        offsets::check_commit(&self.group, &answer)
    }

    /// Sends heartbeats over the connection that there is, and over no other.
    fn beat(&mut self) {
        self.heartbeats.abort();
        self.heartbeats = tokio::spawn(heartbeat(
            self.connection.clone(),
            self.heartbeat_request(),
            self.options.heartbeat_interval,
            Arc::clone(&self.rejoin),
        ));
    }

    /// Commits, and leaves the group so that others take over at once.
    ///
    /// # Errors
    /// The commit fails, or the coordinator does not answer. The member is gone in any case.
    pub async fn leave(mut self) -> Result<()> {
        self.heartbeats.abort();
        if self.stage != Stage::Reading {
            // A JoinGroup may be parked on the connection, and what follows it waits for the group.
            self.connection = self.cluster.dedicated_coordinator(&self.group).await?;
        }
        let committed = self.commit().await;
        self.heartbeats.abort();
        if self.member.id.is_empty() && self.options.instance_id.is_none() {
            return committed;
        }
        let mut request = LeaveGroupRequest {
            group_id: self.group.to_string(),
            members: vec![MemberIdentity {
                member_id: self.member.id.clone(),
                group_instance_id: self.options.instance_id.clone(),
                ..Default::default()
            }],
            ..Default::default()
        };
        // Several members at once from version 3 on (KIP-345).
        if self.connection.version_of::<LeaveGroupRequest>()? < 3 {
            request.member_id.clone_from(&self.member.id);
            request.members.clear();
        }
        let answer = self.connection.send(&request).await?;
        Error::check(answer.error_code, &format!("leave group {}", self.group), None)?;
        committed
    }

    /// Joins until the group is stable, then reads what is assigned. Goes on where it was
    /// cancelled: a leader that joined once more would have all others join as well.
    async fn rejoin(&mut self) -> Result<()> {
        if self.stage == Stage::Joining {
            self.heartbeats.abort();
            // What was said of an earlier generation is no reason to join another time.
            self.rejoin = Arc::new(Notify::new());
            for partition in self.assignment.drain(..) {
                self.fetcher.unassign(&partition);
            }
            self.uncommitted.clear();
            let mut retry = self.cluster.retry();
            self.assignment = loop {
                match self.join_once().await {
                    Ok(assignment) => break assignment,
                    Err(error) => self.recover(error, &mut retry).await?,
                }
            };
            self.stage = Stage::Assigned;
            self.beat();
        }
        self.read_from_committed().await?;
        self.stage = Stage::Reading;
        Ok(())
    }

    /// Readies another attempt to join after `error`, or gives it back if it is final.
    async fn recover(&mut self, error: Error, retry: &mut crate::cluster::Retry) -> Result<()> {
        match error.code() {
            Some(ErrorCode::MemberIdRequired | ErrorCode::RebalanceInProgress) => Ok(()),
            Some(ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration) => {
                self.member = Member::default();
                Ok(())
            }
            _ => self.find_coordinator(error, retry).await,
        }
    }

    /// Asks anew who the coordinator is, after a pause; gives `error` back if it is final.
    async fn find_coordinator(
        &mut self,
        error: Error,
        retry: &mut crate::cluster::Retry,
    ) -> Result<()> {
        retry.pause(error).await?;
        self.connection = self.cluster.dedicated_coordinator(&self.group).await?;
        Ok(())
    }

    /// JoinGroup and SyncGroup.
    async fn join_once(&mut self) -> Result<Vec<TopicPartition>> {
        let joined = self.send_join().await?;
        let what = format!("join group {}", self.group);
        if !joined.member_id.is_empty() {
            self.member.id.clone_from(&joined.member_id);
        }
        Error::check(joined.error_code, &what, None)?;
        self.member.generation = joined.generation_id;
        let assigned = if joined.leader == joined.member_id {
            self.assign(&joined).await?
        } else {
            self.led = None;
            Vec::new()
        };
        let assignments = if joined.skip_assignment { Vec::new() } else { assigned };
        let request = SyncGroupRequest {
            group_id: self.group.to_string(),
            generation_id: joined.generation_id,
            member_id: joined.member_id,
            group_instance_id: self.options.instance_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: joined.protocol_name,
            assignments,
            ..Default::default()
        };
        let timeout = self.options.rebalance_timeout + JOIN_SLACK;
        let synced = self.connection.send_within(&request, timeout).await?;
        Error::check(synced.error_code, &what, None)?;
        assignor::decode_assignment(&synced.assignment, self.connection.address())
    }

    async fn send_join(&self) -> Result<JoinGroupResponse> {
        let millis = |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        let request = JoinGroupRequest {
            group_id: self.group.to_string(),
            session_timeout_ms: millis(self.options.session_timeout),
            rebalance_timeout_ms: millis(self.options.rebalance_timeout),
            member_id: self.member.id.clone(),
            group_instance_id: self.options.instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: vec![JoinGroupRequestProtocol {
                name: ASSIGNOR.to_owned(),
                metadata: assignor::encode_subscription(&self.topics)?,
                ..Default::default()
            }],
            ..Default::default()
        };
        let timeout = self.options.rebalance_timeout + JOIN_SLACK;
        self.connection.send_within(&request, timeout).await
    }

    /// As the group's leader: who reads what.
    async fn assign(
        &mut self,
        joined: &JoinGroupResponse,
    ) -> Result<Vec<SyncGroupRequestAssignment>> {
        let mut members = Vec::with_capacity(joined.members.len());
        for member in &joined.members {
            let topics =
                assignor::decode_subscription(&member.metadata, self.connection.address())?;
            // Static members keep their place in the order across restarts.
            let order = member.group_instance_id.as_ref().unwrap_or(&member.member_id).clone();
            members.push(assignor::Subscriber { order, id: member.member_id.clone(), topics });
        }
        let mut partitions = HashMap::new();
        for topic in members.iter().flat_map(|member| &member.topics) {
            if !partitions.contains_key(topic) {
                let count = self.cluster.topic(topic).await.map(|known| known.partitions.len());
                // A topic that another member asks for and that does not exist has nothing to read.
                partitions.insert(topic.clone(), count.unwrap_or(0));
            }
        }
        let assigned = assignor::range(&mut members, &partitions);
        self.led = Some(partitions);
        // It may have changed since it was asked for these.
        self.metadata.mark_changed();
        assigned
            .into_iter()
            .map(|(member_id, partitions)| {
                let assignment: Bytes = assignor::encode_assignment(&partitions)?;
                Ok(SyncGroupRequestAssignment { member_id, assignment, ..Default::default() })
            })
            .collect()
    }

    async fn read_from_committed(&mut self) -> Result<()> {
        let assignment = Some(self.assignment.as_slice());
        let committed = offsets::committed(&self.cluster, &self.group, assignment).await?;
        for partition in &self.assignment {
            let start = match (committed.get(partition), self.options.fetcher.reset) {
                (Some(offset), _) => Start::Offset(*offset),
                (None, Reset::Latest) => Start::Latest,
                (None, Reset::Earliest) => Start::Earliest,
                (None, Reset::Fail) => {
                    let what = format!("group {} has no offset", self.group);
                    return Err(Error::broker(ErrorCode::OffsetOutOfRange, &what, None));
                }
            };
            self.fetcher.assign(&partition.topic, partition.partition, start).await?;
        }
        Ok(())
    }

    fn heartbeat_request(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            group_id: self.group.to_string(),
            generation_id: self.member.generation,
            member_id: self.member.id.clone(),
            group_instance_id: self.options.instance_id.clone(),
            ..Default::default()
        }
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        self.heartbeats.abort();
    }
}

/// Waits until a topic has another number of partitions than the group's leader assigned by. Other
/// members join again when the leader does.
async fn outgrown(
    metadata: &mut watch::Receiver<Arc<Metadata>>,
    led: Option<&HashMap<String, usize>>,
) {
    while metadata.changed().await.is_ok() {
        let now = metadata.borrow_and_update();
        let differs = |(topic, count): (&String, &usize)| {
            now.partition_count(topic).is_some_and(|now| now != *count)
        };
        if led.into_iter().flatten().any(differs) {
            return;
        }
    }
    // A member has its cluster for as long as it lives.
    std::future::pending().await
}

/// Sends heartbeats until one is refused or fails; the member must then join again.
async fn heartbeat(
    connection: Connection,
    request: HeartbeatRequest,
    interval: Duration,
    rejoin: Arc<Notify>,
) {
    loop {
        tokio::time::sleep(interval).await;
        let outcome = match connection.send(&request).await {
            Ok(answer) => Error::check(answer.error_code, "heartbeat", None),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(group = request.group_id, %error, "must join again");
            rejoin.notify_one();
            return;
        }
    }
}
