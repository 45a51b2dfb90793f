//! Fetch, versions 4-18 (KIP-74 limits, KIP-227 sessions, KIP-320 epochs, KIP-516 topic ids).
//!
//! The answer holds the stored batches as they are: whole batches, the first of which may begin
//! before the offset asked for and may be larger than every limit. Nothing above the high watermark
//! is served, and to consumers of committed records nothing above the last stable offset: those get
//! the aborted transactions beside the records, and leave them out themselves (KIP-98). A
//! fetch that finds less than `min_bytes` waits: one waiter is registered with every partition,
//! then all are read again whenever one has moved, until `max_wait_ms` is over. Unlike in Kafka, an
//! ACL that changes meanwhile holds for what is read then.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_net::{KEPT_REQUEST_BYTES_MAX, Reply, Response};
use moldau_protocol::fetch::{FetchResponseEncoder, FetchedPartition, FetchedTopic};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::FetchRequest;
use moldau_protocol::messages::fetch_request::FetchTopic;
use moldau_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, PartitionData,
};
use moldau_protocol::{ErrorCode, Message, Reader};
use moldau_storage::{Isolation, Log, PendingRead, Read, ReadOutcome, Waiter};
use tokio::time::{Instant, timeout_at};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Later, NOT_ENCODED, Turns};
use crate::error::read_code;
use crate::fetch_session::{
    FetchPartition, FetchScope, Noteworthy, Session, SessionRequest, Told, TopicRef, lock,
};
use crate::partition::{self, Partition, Watch, isolation_of};
use crate::rights::Rights;
use crate::state::State;

/// From this version on there are sessions.
const SESSIONS_SINCE: i16 = 7;

/// From this version on topics are named by id.
const TOPIC_IDS_SINCE: i16 = 13;

/// Longest wait that a client can ask for, so that a lost one does not hold its place for ever.
const WAIT_MAX: Duration = Duration::from_mins(5);

/// Reads of one fetch that wait for the disk at a time. Each holds at most eight chunks of 1 MiB,
/// so that together they hold no more than the read cache does.
const COLD_READS_MAX: usize = 8;

/// Most bytes in one answer: Kafka's `fetch.max.bytes` of the broker.
const ANSWER_BYTES_MAX: usize = 55 << 20;

pub(crate) fn serve(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
) -> Reply<Later<Response>> {
    let Ok(request) = FetchRequest::decode(&mut Reader::new(body), call.version) else {
        return Reply::Close("malformed request");
    };
    let answer = Answer { version: call.version, correlation_id: header.correlation_id };
    let limits = Limits::of(&request);
    let isolation = isolation_of(request.isolation_level);
    let is_replica = request.replica_id >= 0 || request.replica_state.replica_id >= 0;
    match call.state.sessions.resolve(call.now_ms, session_request(call, request)) {
        Ok(scope) => {
            let (state, rights) = (Arc::clone(call.state), call.rights.clone());
            let fetch = Fetch { state, rights, is_replica, isolation, scope, limits, answer };
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
    /// Whether the sender calls itself a broker, which needs another right than a consumer.
    is_replica: bool,
    isolation: Isolation,
    scope: FetchScope,
    limits: Limits,
    answer: Answer,
}

/// Topics that the client may not read.
type Denied = HashSet<TopicRef>;

/// What the logs gave.
struct Gathered {
    partitions: Vec<Served>,
    bytes: usize,
    /// Bytes that count towards the least that is waited for.
    available: usize,
    has_error: bool,
}

/// One partition of an answer.
struct Served {
    topic: TopicRef,
    fetched: FetchedPartition,
    noteworthy: Noteworthy,
    /// As many bytes as there are, up to those that the partition is allowed: whole batches may be
    /// less, where one more has no room.
    available: usize,
}

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
        let mut gathered = self.gather(&partitions, &denied).await;
        if !self.is_enough(&gathered) && !partitions.is_empty() {
            gathered = self.wait(&partitions, denied, generation).await;
        }
        self.state.counters.fetched(gathered.bytes);
        self.respond(gathered)
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
    ) -> Gathered {
        let deadline = Instant::now() + self.limits.wait;
        let waiter = Waiter::new();
        let mut watches = self.watch(partitions, &waiter);
        loop {
            let current = self.rights.generation();
            if current != generation {
                generation = current;
                denied = self.denied(partitions).await;
            }
            let gathered = self.gather(partitions, &denied).await;
            if self.is_enough(&gathered) || timeout_at(deadline, waiter.moved()).await.is_err() {
                return gathered;
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

    async fn gather(&self, partitions: &[FetchPartition], denied: &Denied) -> Gathered {
        let mut gathering = Gathering::new(self.limits.bytes_max, self.isolation, partitions.len());
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
        }
        gathering.settle().await;
        gathering.gathered
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

/// Partitions in the order of the request. Reads that wait for the disk are under way together, up
/// to a number; what follows the first of them is settled after it.
struct Gathering<'a> {
    bytes_max: usize,
    isolation: Isolation,
    /// The rest of `bytes_max` was too little for a batch: nothing more is read, since each read
    /// would bring batches from the disk only to find the same.
    is_full: bool,
    /// What is settled.
    gathered: Gathered,
    /// What follows, the first of it being a read that waits for the disk.
    open: Vec<Open<'a>>,
    /// Reads in `open` that wait for the disk.
    cold: usize,
    /// Bytes that `open` comes to at most.
    open_bytes: usize,
}

/// A partition that is not settled.
enum Open<'a> {
    Served(Served),
    Cold {
        asked: &'a FetchPartition,
        log: Arc<Log>,
        read: PendingRead,
        /// It may take less than the partition is allowed.
        is_cut: bool,
    },
}

impl<'a> Gathering<'a> {
    fn new(bytes_max: usize, isolation: Isolation, partitions: usize) -> Self {
        let partitions = Vec::with_capacity(partitions);
        let gathered = Gathered { partitions, bytes: 0, available: 0, has_error: false };
        let open = Vec::new();
        Self { bytes_max, isolation, is_full: false, gathered, open, cold: 0, open_bytes: 0 }
    }

    fn add(&mut self, served: Served) {
        if self.open.is_empty() {
            self.gathered.add(served);
        } else {
            self.open_bytes += served.bytes();
            self.open.push(Open::Served(served));
        }
    }

    async fn read(&mut self, asked: &'a FetchPartition, log: Arc<Log>) {
        if let Some(served) = diverged(asked, &log) {
            return self.add(served);
        }
        let wanted = usize::try_from(asked.bytes_max).unwrap_or(0);
        // Where the reads under way may take what this one is allowed, their true size counts.
        let is_pressed = wanted > self.room() || self.cold >= COLD_READS_MAX;
        if !self.open.is_empty() && is_pressed {
            self.settle().await;
        }
        let bytes_max = wanted.min(self.room());
        // The first batch of the answer is returned whatever its size (KIP-74).
        let min_one = self.gathered.bytes == 0 && self.open.is_empty();
        match log.read_isolated(asked.fetch_offset, bytes_max, min_one, self.isolation) {
            Ok(ReadOutcome::Ready(read)) => self.add(served(asked, read, self.isolation)),
            Ok(ReadOutcome::Pending(read)) => {
                self.cold += 1;
                self.open_bytes += bytes_max;
                let is_cut = bytes_max < wanted && !min_one;
                self.open.push(Open::Cold { asked, log, read, is_cut });
            }
            Err(error) => self.add(failed(asked, &log, &error)),
        }
    }

    fn room(&self) -> usize {
        match self.is_full {
            true => 0,
            false => self.bytes_max.saturating_sub(self.gathered.bytes + self.open_bytes),
        }
    }

    /// Waits for the reads under way.
    async fn settle(&mut self) {
        for open in self.open.drain(..) {
            let mut served = match open {
                Open::Served(served) => served,
                Open::Cold { asked, log, read, is_cut } => match read.await {
                    Ok(read) => {
                        let has_more = read.next_offset < end_of(&read, self.isolation);
                        self.is_full |= is_cut && read.bytes == 0 && has_more;
                        served(asked, read, self.isolation)
                    }
                    Err(error) => failed(asked, &log, &error),
                },
            };
            let room = self.bytes_max.saturating_sub(self.gathered.bytes);
            if self.gathered.bytes > 0 && served.bytes() > room {
                // The first batch was larger than the limit; the next fetch gets what is left out.
                served.leave_out_records();
            }
            self.gathered.add(served);
        }
        self.cold = 0;
        self.open_bytes = 0;
    }
}

impl Gathered {
    fn add(&mut self, served: Served) {
        self.bytes += served.bytes();
        self.available = self.available.saturating_add(served.available);
        self.has_error |= served.noteworthy == Noteworthy::Error;
        self.partitions.push(served);
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

/// KIP-595: a consumer whose last batch is of an epoch that ended earlier here must truncate.
fn diverged(asked: &FetchPartition, log: &Arc<Log>) -> Option<Served> {
    if asked.last_fetched_epoch < 0 {
        return None;
    }
    let end = log.end_of_epoch(asked.last_fetched_epoch);
    let is_known = end.end_offset >= 0;
    if !is_known
        || (end.end_offset >= asked.fetch_offset && end.leader_epoch >= asked.last_fetched_epoch)
    {
        return None;
    }
    let mut served = refused(asked, ErrorCode::None);
    served.fetched.data.diverging_epoch = EpochEndOffset {
        epoch: end.leader_epoch,
        end_offset: end.end_offset,
        ..EpochEndOffset::default()
    };
    served.fetched.data.high_watermark = log.high_watermark();
    served.fetched.data.log_start_offset = log.start_offset();
    Some(served)
}

/// There is nothing but the offset 0, at which the first record will be.
fn serve_unwritten(asked: &FetchPartition, isolation: Isolation) -> Served {
    if asked.fetch_offset == 0 {
        let read = Read {
            batches: Vec::new(),
            bytes: 0,
            next_offset: 0,
            high_watermark: 0,
            start_offset: 0,
            last_stable_offset: 0,
            aborted: Vec::new(),
        };
        return served(asked, read, isolation);
    }
    let mut served = refused(asked, ErrorCode::OffsetOutOfRange);
    served.fetched.data.log_start_offset = 0;
    served
}

/// Offset after the last record that a reader of this isolation may see.
fn end_of(read: &Read, isolation: Isolation) -> i64 {
    match isolation {
        Isolation::ReadUncommitted => read.high_watermark,
        Isolation::ReadCommitted => read.last_stable_offset,
    }
}

fn served(asked: &FetchPartition, read: Read, isolation: Isolation) -> Served {
    let has_records = read.bytes > 0;
    let allowed = usize::try_from(asked.bytes_max).unwrap_or(0);
    let has_more = read.next_offset < end_of(&read, isolation);
    let aborted = read.aborted.iter().map(|aborted| AbortedTransaction {
        producer_id: aborted.producer_id,
        first_offset: aborted.first_offset,
        ..AbortedTransaction::default()
    });
    let available = if has_more { allowed.max(read.bytes) } else { read.bytes };
    let data = PartitionData {
        partition_index: asked.partition,
        high_watermark: read.high_watermark,
        last_stable_offset: read.last_stable_offset,
        aborted_transactions: (isolation == Isolation::ReadCommitted).then(|| aborted.collect()),
        log_start_offset: read.start_offset,
        ..PartitionData::default()
    };
    Served {
        topic: asked.topic.clone(),
        fetched: FetchedPartition { data, records: read.batches },
        noteworthy: if has_records { Noteworthy::Records } else { Noteworthy::Nothing },
        available,
    }
}

fn failed(asked: &FetchPartition, log: &Arc<Log>, error: &moldau_storage::Error) -> Served {
    match error {
        moldau_storage::Error::Corrupt { .. } => {
            let FetchPartition { topic, partition, fetch_offset, .. } = asked;
            tracing::error!(?topic, partition, fetch_offset, %error,
                "records cannot be served; `moldau broker repair` shows what is lost");
        }
        error => tracing::debug!(?asked, %error, "fetch refused"),
    }
    let mut served = refused(asked, read_code(error));
    served.fetched.data.log_start_offset = log.start_offset();
    served
}

fn refused(asked: &FetchPartition, code: ErrorCode) -> Served {
    let data = PartitionData {
        partition_index: asked.partition,
        error_code: code.into(),
        high_watermark: -1,
        ..PartitionData::default()
    };
    Served {
        topic: asked.topic.clone(),
        fetched: FetchedPartition { data, records: Vec::new() },
        noteworthy: Noteworthy::Error,
        available: 0,
    }
}

impl Served {
    fn bytes(&self) -> usize {
        self.fetched.records.iter().map(bytes::Bytes::len).sum()
    }

    fn leave_out_records(&mut self) {
        self.fetched.records.clear();
        if self.noteworthy == Noteworthy::Records {
            self.noteworthy = Noteworthy::Nothing;
        }
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
                tracing::error!(version = self.version, %error, "a fetch cannot be answered");
                Response::closing(NOT_ENCODED)
            }
        }
    }
}
