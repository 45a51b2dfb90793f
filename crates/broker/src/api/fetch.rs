//! Fetch, versions 4-18 (KIP-74 limits, KIP-227 sessions, KIP-320 epochs, KIP-516 topic ids).
//!
//! The answer holds the stored batches as they are: whole batches, the first of which may begin
//! before the offset asked for and may be larger than every limit. Nothing above the high watermark
//! is served, and to consumers of committed records nothing above the last stable offset: those get
//! the aborted transactions beside the records, and leave them out themselves (KIP-98). A
//! fetch that finds less than `min_bytes` waits: one waiter is registered with every partition,
//! then all are read again whenever one has moved, until `max_wait_ms` is over. Unlike in Kafka, an
//! ACL that changes meanwhile holds for what is read then.
//!
//! `consumer_byte_rate` counts bytes of records. Who exceeds it gets an empty response (KIP-219).

pub(crate) mod gathering;

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_net::{KEPT_REQUEST_BYTES_MAX, MemoryAccount, MemoryUse, Permit, Reply, Response};
use moldau_protocol::fetch::{FetchResponseEncoder, FetchedTopic};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::FetchRequest;
use moldau_protocol::messages::fetch_request::FetchTopic;
use moldau_protocol::{ApiKey, ErrorCode, Message, Reader};
use tokio::time::{Instant, timeout_at};

use self::gathering::{Gathered, Gathering, Served, refused, serve_unwritten};
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Later, NOT_ENCODED, Turns};
use crate::fetch_session::{
    FetchPartition, FetchScope, Session, SessionRequest, Told, TopicRef, lock,
};
use crate::logs::{Isolation, Waiter};
use crate::partition::{self, Partition, Watch, isolation_of};
use crate::quota_entity::QuotaKey;
use crate::quotas::QuotaClient;
use crate::rights::Rights;
use crate::state::State;
use crate::throttle::raise_throttle_time;

/// From this version on there are sessions.
const SESSIONS_SINCE: i16 = 7;

/// From this version on topics are named by id.
const TOPIC_IDS_SINCE: i16 = 13;

/// Longest wait that a client can ask for, so that a lost one does not hold its place for ever.
const WAIT_MAX: Duration = Duration::from_mins(5);

/// Most bytes in one answer: Kafka's `fetch.max.bytes` of the broker.
const ANSWER_BYTES_MAX: usize = 55 << 20;

/// Memory that a fetch waits for at least, before it is known how much its first batch needs.
const MEMORY_LEAST: usize = 64 << 10;

/// What reads from disk take beside their bytes while they are under way: 8 at a time, each with
/// the blocks of 1 MiB in which its first and its last batch lie.
const READ_MEMORY: usize = 16 << 20;

/// Bytes of an answer beside its records from which on they count as well.
const STRUCTURE_BYTES_MAX: usize = 16 << 10;

pub(crate) fn serve(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
) -> Reply<Later<Response>> {
    let Ok(request) = FetchRequest::decode(&mut Reader::new(body), call.version) else {
        return Reply::Close("malformed request");
    };
    let answer = Answer { version: call.version, correlation_id: header.correlation_id };
    let quota = Quota::of(call);
    let mut limits = Limits::of(&request);
    if let Some(quota) = &quota {
        limits.bytes_max = limits.bytes_max.min(quota.bytes_max());
        limits.bytes_min = limits.bytes_min.min(limits.bytes_max);
    }
    let isolation = isolation_of(request.isolation_level);
    let is_replica = request.replica_id >= 0 || request.replica_state.replica_id >= 0;
    match call.state.sessions.resolve(call.now_ms, session_request(call, request)) {
        Ok(scope) => {
            let (state, rights) = (Arc::clone(call.state), call.rights.clone());
            let memory = call.memory.clone();
            let fetch = Fetch {
                state,
                rights,
                quota,
                memory,
                is_replica,
                isolation,
                scope,
                limits,
                answer,
            };
            // One at a time, as in Kafka: what is sent behind it waits unread.
            Reply::Later(Box::pin(fetch.run()), body.len().max(KEPT_REQUEST_BYTES_MAX))
        }
        Err(code) => Reply::Ready(answer.encode(code, 0, Vec::new())),
    }
}

fn session_request(call: &Call<'_>, request: FetchRequest) -> SessionRequest {
    let topic_ref = |name: String, id| match call.version {
        TOPIC_IDS_SINCE.. => TopicRef::Id(id),
        _ => TopicRef::Name(name.into()),
    };
    let mut forgotten = Vec::new();
    for topic in request.forgotten_topics_data {
        let reference = topic_ref(topic.topic, topic.topic_id);
        forgotten.extend(topic.partitions.into_iter().map(|index| (reference.clone(), index)));
    }
    let mut partitions = Vec::new();
    for FetchTopic { topic, topic_id, partitions: asked, .. } in request.topics {
        let reference = topic_ref(topic, topic_id);
        partitions.extend(asked.into_iter().map(|partition| FetchPartition {
            topic: reference.clone(),
            partition: partition.partition,
            current_leader_epoch: partition.current_leader_epoch,
            fetch_offset: partition.fetch_offset,
            last_fetched_epoch: partition.last_fetched_epoch,
            bytes_max: partition.partition_max_bytes,
        }));
    }
    SessionRequest {
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        partitions,
        forgotten,
    }
}

/// How much to return and how long to wait for it.
#[derive(Clone, Copy)]
struct Limits {
    bytes_min: usize,
    bytes_max: usize,
    wait: Duration,
}

impl Limits {
    fn of(request: &FetchRequest) -> Self {
        let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
        let bytes_max = size(request.max_bytes).min(ANSWER_BYTES_MAX);
        Self {
            // A full answer would wait for what it has no room for.
            bytes_min: size(request.min_bytes).min(bytes_max),
            bytes_max,
            wait: wait.min(WAIT_MAX),
        }
    }
}

struct Fetch {
    state: Arc<State>,
    rights: Rights,
    /// `None` where nobody has a quota.
    quota: Option<Quota>,
    memory: MemoryAccount,
    /// Whether the sender calls itself a broker, which needs another right than a consumer.
    is_replica: bool,
    isolation: Isolation,
    scope: FetchScope,
    limits: Limits,
    answer: Answer,
}

/// Topics that the client may not read.
type Denied = HashSet<TopicRef>;

impl Fetch {
    async fn run(self) -> Response {
        let partitions = match &self.scope {
            FetchScope::Sessionless(partitions) => partitions.clone(),
            FetchScope::Full { session, .. } | FetchScope::Incremental { session, .. } => {
                lock(session).partitions()
            }
        };
        let generation = self.rights.generation();
        let denied = self.denied(&partitions).await;
        let (mut gathered, mut permit) = self.gather(&partitions, &denied).await;
        if !self.is_enough(&gathered) && !partitions.is_empty() {
            drop((gathered, permit));
            (gathered, permit) = self.wait(&partitions, denied, generation).await;
        }
        if let Some(throttle_ms) = self.throttle_ms(gathered.bytes) {
            return self.throttled(throttle_ms);
        }
        self.state.counters.fetched(gathered.bytes);
        let (bytes, memory) = (gathered.bytes, gathered.memory);
        let mut response = self.respond(gathered);
        if let Some(permit) = &mut permit {
            permit.shrink_to(memory);
        }
        let structure_bytes = response.len() - bytes;
        let structure = (structure_bytes > STRUCTURE_BYTES_MAX)
            .then(|| self.memory.charge(MemoryUse::Answer, structure_bytes));
        response.holds = Some(Box::new((permit, structure)));
        response
    }

    /// For how long the client is throttled, which then gets nothing, as in Kafka: what it would
    /// have got does not count.
    fn throttle_ms(&self, bytes: usize) -> Option<i32> {
        let quota = self.quota.as_ref().filter(|_| !self.is_replica)?;
        quota.throttle_ms(bytes)
    }

    /// Nothing but the throttle time. A session that would begin does not.
    fn throttled(&self, throttle_ms: i32) -> Response {
        let session_id = match self.scope {
            FetchScope::Sessionless(_) | FetchScope::Full { .. } => 0,
            FetchScope::Incremental { session_id, .. } => session_id,
        };
        let mut response = self.answer.encode(ErrorCode::None, session_id, Vec::new());
        raise_throttle_time(&mut response, ApiKey::Fetch, self.answer.version, throttle_ms);
        response
    }

    fn is_enough(&self, gathered: &Gathered) -> bool {
        let Gathered { bytes, available, has_error, .. } = *gathered;
        let bytes_min = self.limits.bytes_min;
        // An answer without records would help no client.
        let is_full = bytes > 0 && available >= bytes_min;
        has_error || is_full || bytes_min == 0 || self.limits.wait.is_zero()
    }

    /// Reads again and again until there is enough or the time is over. Rights that are taken
    /// meanwhile, after this generation of ACLs, are gone at the next read.
    async fn wait(
        &self,
        partitions: &[FetchPartition],
        mut denied: Denied,
        mut generation: u64,
    ) -> (Gathered, Option<Permit>) {
        let deadline = Instant::now() + self.limits.wait;
        let waiter = Waiter::new();
        let mut watches = self.watch(partitions, &waiter);
        loop {
            let current = self.rights.generation();
            if current != generation {
                generation = current;
                denied = self.denied(partitions).await;
            }
            let (gathered, permit) = self.gather(partitions, &denied).await;
            if self.is_enough(&gathered) || Instant::now() >= deadline {
                return (gathered, permit);
            }
            // Records that are too few are read again: memory is not held for who waits for more.
            drop(permit);
            let nothing = Some(gathered).filter(|gathered| gathered.bytes == 0);
            let is_over = timeout_at(deadline, waiter.moved()).await.is_err();
            if let Some(nothing) = nothing.filter(|_| is_over) {
                return (nothing, None);
            }
            watches.iter_mut().for_each(|watch| watch.follow(&waiter));
        }
    }

    fn watch(&self, partitions: &[FetchPartition], waiter: &Arc<Waiter>) -> Vec<Watch> {
        let found = partitions.iter().filter_map(|asked| {
            // A partition that does not exist is an error, which does not wait.
            self.find(asked).ok()
        });
        found.map(|partition| partition.watch(waiter)).collect()
    }

    fn find(&self, asked: &FetchPartition) -> Result<Partition, ErrorCode> {
        let epoch = asked.current_leader_epoch;
        partition::by_ref(&self.state, &asked.topic, asked.partition, epoch)
    }

    /// The topics of the partitions that the client may not read.
    async fn denied(&self, partitions: &[FetchPartition]) -> Denied {
        let mut denied = Denied::new();
        if !self.rights.are_restricted() {
            return denied;
        }
        let mut turns = Turns::default();
        let mut last = None;
        for FetchPartition { topic, .. } in partitions {
            turns.step(1).await;
            if last != Some(topic) && !self.may_read(topic) {
                denied.insert(topic.clone());
            }
            last = Some(topic);
        }
        denied
    }

    /// An id without a topic is an error of its own.
    fn may_read(&self, topic: &TopicRef) -> bool {
        if self.is_replica {
            return self.rights.allow_on_cluster(Operation::ClusterAction);
        }
        let read = |name: &str| self.rights.allow(ResourceType::Topic, Operation::Read, name);
        match topic {
            TopicRef::Name(name) => read(name),
            TopicRef::Id(id) => self.state.catalog.by_id(*id).is_none_or(|topic| read(&topic.name)),
        }
    }

    /// Reads all partitions as far as there is room, with memory for at least the first batch.
    async fn gather(
        &self,
        partitions: &[FetchPartition],
        denied: &Denied,
    ) -> (Gathered, Option<Permit>) {
        let most = self.state.memory.most(MemoryUse::Answer);
        let wanted = self.limits.bytes_max.saturating_add(READ_MEMORY);
        let mut least = MEMORY_LEAST.min(most);
        loop {
            let acquire = self.memory.acquire(MemoryUse::Answer, least..=wanted);
            let permit = acquire.expect("no more than the most").await;
            // What needs more than is ever given was stored while there was more.
            let memory_max = if permit.bytes() < most { permit.bytes() } else { usize::MAX };
            match self.gather_within(memory_max, partitions, denied).await {
                Ok(gathered) => return (gathered, Some(permit)),
                Err(needed) => least = needed.min(most),
            }
        }
    }

    async fn gather_within(
        &self,
        memory_max: usize,
        partitions: &[FetchPartition],
        denied: &Denied,
    ) -> Result<Gathered, usize> {
        let limits = (self.limits.bytes_max, memory_max);
        let mut gathering = Gathering::new(limits, self.isolation, partitions.len());
        let mut turns = Turns::default();
        for asked in partitions {
            turns.step(1).await;
            if !denied.is_empty() && denied.contains(&asked.topic) {
                gathering.add(refused(asked, ErrorCode::TopicAuthorizationFailed));
                continue;
            }
            match self.find(asked) {
                Ok(Partition::Written(log)) => gathering.read(asked, log).await,
                Ok(Partition::Unwritten { .. }) => {
                    gathering.add(serve_unwritten(asked, self.isolation))
                }
                Err(code) => gathering.add(refused(asked, code)),
            }
            if gathering.is_stuck() {
                break;
            }
        }
        gathering.finish().await
    }

    fn respond(&self, gathered: Gathered) -> Response {
        let (session_id, told) = match &self.scope {
            FetchScope::Sessionless(_) => (0, gathered.partitions),
            FetchScope::Full { session_id, session } => {
                let mut session = lock(session);
                for served in &gathered.partitions {
                    tell(&mut session, served);
                }
                (*session_id, gathered.partitions)
            }
            FetchScope::Incremental { session_id, session } => {
                (*session_id, changed(session, gathered.partitions))
            }
        };
        self.answer.encode(ErrorCode::None, session_id, told)
    }
}

fn changed(session: &Mutex<Session>, partitions: Vec<Served>) -> Vec<Served> {
    let mut session = lock(session);
    partitions.into_iter().filter(|served| tell(&mut session, served)).collect()
}

fn tell(session: &mut Session, served: &Served) -> bool {
    let told = Told {
        high_watermark: served.fetched.data.high_watermark,
        log_start_offset: served.fetched.data.log_start_offset,
    };
    session.tell(&served.topic, served.fetched.data.partition_index, told, served.noteworthy)
}

/// The quota of the client that fetches.
struct Quota {
    client: Rc<QuotaClient>,
    client_id: Box<str>,
    now_ms: i64,
    began: Instant,
}

impl Quota {
    fn of(call: &Call<'_>) -> Option<Self> {
        call.client.may_be_limited().then(|| Self {
            client: Rc::clone(call.client),
            client_id: call.client_id.into(),
            now_ms: call.now_ms,
            began: Instant::now(),
        })
    }

    /// Most bytes of one response. A batch has room whatever the quota says.
    fn bytes_max(&self) -> usize {
        let max = self.client.fetch_bytes_max(&self.client_id, self.now_ms);
        max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX).max(1)
    }

    fn throttle_ms(&self, bytes: usize) -> Option<i32> {
        let waited_ms = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now_ms = self.now_ms.saturating_add(waited_ms);
        let (key, bytes) = (QuotaKey::ConsumerByteRate, bytes as f64);
        let throttle_ms = self.client.record(key, &self.client_id, bytes, now_ms);
        if throttle_ms == 0 {
            return None;
        }
        self.client.unrecord(key, &self.client_id, bytes, now_ms);
        self.client.mute(throttle_ms);
        Some(throttle_ms)
    }
}

/// The request that is answered.
#[derive(Clone, Copy)]
struct Answer {
    version: i16,
    correlation_id: i32,
}

impl Answer {
    fn encode(self, code: ErrorCode, session_id: i32, partitions: Vec<Served>) -> Response {
        let mut topics: Vec<FetchedTopic> = Vec::new();
        let mut last = None;
        for Served { topic, fetched, .. } in partitions {
            if last.as_ref() != Some(&topic) {
                topics.push(FetchedTopic::default());
                last = Some(topic.clone());
            }
            if let Some(open) = topics.last_mut() {
                match topic {
                    TopicRef::Name(name) if open.name.is_empty() => open.name = name.to_string(),
                    TopicRef::Name(_) => {}
                    TopicRef::Id(id) => open.topic_id = id,
                }
                open.partitions.push(fetched);
            }
        }
        let response = FetchResponseEncoder {
            error_code: code.into(),
            session_id: if self.version >= SESSIONS_SINCE { session_id } else { 0 },
            topics,
            ..FetchResponseEncoder::default()
        };
        match response.encode(self.version, self.correlation_id) {
            Ok(segments) => Response::segments(segments),
            Err(error) => {
                tracing::error!(version = self.version, %error, "failed to answer Fetch");
                Response::closing(NOT_ENCODED)
            }
        }
    }
}
