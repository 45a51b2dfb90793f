//! ShareFetch, versions 1-2 (KIP-932 share groups, KIP-1206 acquire modes, KIP-1222 renewals).
//!
//! The answer holds stored batches as they are, beside the offsets of those records that the member
//! holds from here on. Acknowledgements in the request come first, and the answer waits until they
//! are durable. A request that gets no records waits for some: new ones, and those that others give
//! back.
//!
//! In a cluster the controller has all share partitions. Any other broker answers
//! `NOT_LEADER_OR_FOLLOWER` and names it.
//!
//! Differs from Kafka: a member never gets more records than there may be in flight, so not always
//! a whole batch; markers of transactions are not delivered.

mod batches;
mod delivery;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_coordinator::share_partitions::{Acknowledgement, AcquireMode};
use moldau_net::{KEPT_REQUEST_BYTES_MAX, Reply, Response};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::ShareFetchRequest;
use moldau_protocol::messages::share_fetch_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use moldau_protocol::share_fetch::{
    ShareFetchResponseEncoder, ShareFetchedPartition, ShareFetchedTopic,
};
use moldau_protocol::{ErrorCode, Message, Reader};

use self::delivery::{Delivery, Limits};
use crate::api::share_acknowledge::{Settled, member_of, settle};
use crate::call::{Call, DURABLE_WITHIN, Later, NOT_ENCODED, durable_within};
use crate::share_session::{FINAL_EPOCH, INITIAL_EPOCH, SessionChange, TopicPartition};
use crate::state::State;

/// From this version on a member chooses how records are acquired, and can renew locks.
const MODES_SINCE: i16 = 2;

/// The longest pause before the answer of a broker that knows of no other one that delivers: about
/// a third of the time that it takes to find the next controller.
const LEADER_PAUSE: Duration = Duration::from_millis(500);

pub(crate) fn serve(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
) -> Reply<Later<Response>> {
    let Ok(request) = ShareFetchRequest::decode(&mut Reader::new(body), call.version) else {
        return Reply::Close("malformed request");
    };
    let answer = Answer { version: call.version, correlation_id: header.correlation_id };
    let kept = body.len().max(KEPT_REQUEST_BYTES_MAX);
    match begin(call, request, answer) {
        Ok(fetch) => Reply::Later(Box::pin(fetch.run()), kept),
        Err(Refused { code, message, after }) => {
            let refusal = answer.refuse(code, message);
            match after.is_zero() {
                true => Reply::Ready(refusal),
                false => {
                    let delayed = async move {
                        tokio::time::sleep(after).await;
                        refusal
                    };
                    Reply::Later(Box::pin(delayed), kept)
                }
            }
        }
    }
}

/// Why nothing is fetched, and when the client learns of it.
struct Refused {
    code: ErrorCode,
    message: Option<&'static str>,
    after: Duration,
}

impl Refused {
    fn new(code: ErrorCode, message: Option<&'static str>) -> Self {
        Self { code, message, after: Duration::ZERO }
    }
}

/// Does what a request asks for but fetch records.
fn begin(
    call: &Call<'_>,
    mut request: ShareFetchRequest,
    answer: Answer,
) -> Result<ShareFetch, Refused> {
    let (group_id, member_id) = (request.group_id.take(), request.member_id.take());
    let member = member_of(call, group_id, member_id);
    let member = member.map_err(|(code, message)| Refused::new(code, message))?;
    let limits = limits(call, &request)?;
    let epoch = request.share_session_epoch;
    let (change, said) = contents(request);
    let has_acknowledgements = said.iter().any(|(_, said)| !said.is_empty());
    if epoch == INITIAL_EPOCH && has_acknowledgements {
        let message = "the first request of a session has acknowledgements";
        return Err(Refused::new(ErrorCode::InvalidRequest, Some(message)));
    }
    let fetched = call.state.share_sessions.fetch(&member, change, call.connection);
    let partitions = fetched.map_err(|code| match code {
        // So that the client does not try again at once.
        ErrorCode::ShareSessionLimitReached => {
            Refused { code, message: None, after: limits.fetch.wait }
        }
        code => Refused::new(code, None),
    })?;
    let settings = call.state.groups.view(|groups| groups.share_settings(&member.group_id));
    let mut settled = settle(call, &member, said, limits.renews, &settings);
    if epoch == FINAL_EPOCH {
        settled.end_session(call, &member);
    }
    let delivery = Delivery {
        state: Arc::clone(call.state),
        rights: call.rights.clone(),
        memory: call.memory.clone(),
        member,
        partitions,
        settings,
        limits: limits.fetch,
    };
    Ok(ShareFetch { delivery, settled, answer })
}

struct RequestLimits {
    fetch: Limits,
    renews: bool,
}

fn limits(call: &Call<'_>, request: &ShareFetchRequest) -> Result<RequestLimits, Refused> {
    let has_modes = call.version >= MODES_SINCE;
    let renews = has_modes && request.is_renew_ack;
    let wants = [request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms];
    if renews && wants != [0; 4] {
        let message = "a request that renews locks fetches no records: \
                       its limits of bytes, records and time must be 0";
        return Err(Refused::new(ErrorCode::InvalidRequest, Some(message)));
    }
    let mode = match request.share_acquire_mode {
        1 if has_modes => AcquireMode::RecordLimit,
        0 => AcquireMode::BatchOptimized,
        _ => {
            let message = "unknown acquire mode";
            return Err(Refused::new(ErrorCode::InvalidRequest, Some(message)));
        }
    };
    Ok(RequestLimits { fetch: Limits::new(request, mode), renews })
}

type Said = Vec<(TopicPartition, Vec<Acknowledgement>)>;

/// What a request says of its session and of records.
fn contents(request: ShareFetchRequest) -> (SessionChange, Said) {
    let mut change =
        SessionChange { epoch: request.share_session_epoch, ..SessionChange::default() };
    for topic in request.forgotten_topics_data {
        let forgotten = topic.partitions.into_iter().map(|index| (topic.topic_id, index));
        change.forgotten.extend(forgotten);
    }
    let mut said = Said::new();
    for topic in request.topics {
        for partition in topic.partitions {
            let place = (topic.topic_id, partition.partition_index);
            change.added.push(place);
            let of_partition =
                partition.acknowledgement_batches.into_iter().map(|batch| Acknowledgement {
                    first: batch.first_offset,
                    last: batch.last_offset,
                    kinds: batch.acknowledge_types,
                });
            said.push((place, of_partition.collect()));
        }
    }
    (change, said)
}

struct ShareFetch {
    delivery: Delivery,
    settled: Settled,
    answer: Answer,
}

/// Partitions of an answer.
type Partitions = BTreeMap<TopicPartition, ShareFetchedPartition>;

impl ShareFetch {
    async fn run(self) -> Response {
        let Self { delivery, mut settled, answer } = self;
        let delivered = delivery.run().await;
        let state: &State = &delivery.state;
        if let Some(lsn) = settled.written
            && let Err(refusal) = durable_within(DURABLE_WITHIN, &state.storage, lsn).await
        {
            settled.fail(refusal.code_of_shares());
        }
        state.counters.fetched(delivered.bytes());
        let mut partitions = Partitions::new();
        for (place, partition) in delivered.partitions {
            partitions.insert(place, partition);
        }
        for (place, code) in settled.results {
            let partition = partitions.entry(place).or_insert_with(|| empty(place));
            partition.data.acknowledge_error_code = code.into();
        }
        let timeout_ms = delivery.settings.record_lock_duration_ms;
        let mut leader = name_leader(state, &mut partitions);
        if leader.is_none() && partitions.values().any(|it| is_elsewhere(&it.data)) {
            // Clients ask again at once.
            tokio::time::sleep(delivery.limits.wait.min(LEADER_PAUSE)).await;
            leader = name_leader(state, &mut partitions);
        }
        let mut response = answer.encode(ErrorCode::None, None, timeout_ms, (partitions, leader));
        response.holds = Some(Box::new(delivered.permit));
        response
    }
}

/// Says of partitions that this broker does not have which one has them.
fn name_leader(state: &State, partitions: &mut Partitions) -> Option<NodeEndpoint> {
    if !partitions.values().any(|it| is_elsewhere(&it.data)) {
        return None;
    }
    let (node, leader_epoch) = state.nodes.share_leader()?;
    let moved = partitions.values_mut().map(|partition| &mut partition.data);
    for data in moved.filter(|data| is_elsewhere(data)) {
        data.current_leader =
            LeaderIdAndEpoch { leader_id: node.id, leader_epoch, ..LeaderIdAndEpoch::default() };
    }
    Some(NodeEndpoint {
        node_id: node.id,
        host: node.host,
        port: node.port,
        rack: node.rack,
        ..NodeEndpoint::default()
    })
}

fn is_elsewhere(data: &PartitionData) -> bool {
    let moved = i16::from(ErrorCode::NotLeaderOrFollower);
    data.error_code == moved || data.acknowledge_error_code == moved
}

fn empty((_, partition_index): TopicPartition) -> ShareFetchedPartition {
    let data = PartitionData { partition_index, ..PartitionData::default() };
    ShareFetchedPartition { data, records: Vec::new() }
}

/// The request that is answered.
#[derive(Clone, Copy)]
struct Answer {
    version: i16,
    correlation_id: i32,
}

impl Answer {
    fn refuse(self, code: ErrorCode, message: Option<&'static str>) -> Response {
        self.encode(code, message, 0, (Partitions::new(), None))
    }

    fn encode(
        self,
        code: ErrorCode,
        message: Option<&'static str>,
        acquisition_lock_timeout_ms: i32,
        (partitions, leader): (Partitions, Option<NodeEndpoint>),
    ) -> Response {
        let mut topics: Vec<ShareFetchedTopic> = Vec::new();
        for ((topic_id, _), partition) in partitions {
            if topics.last().is_none_or(|topic| topic.topic_id != topic_id) {
                topics.push(ShareFetchedTopic { topic_id, partitions: Vec::new() });
            }
            if let Some(topic) = topics.last_mut() {
                topic.partitions.push(partition);
            }
        }
        let response = ShareFetchResponseEncoder {
            error_code: code.into(),
            error_message: message.map(str::to_owned),
            acquisition_lock_timeout_ms,
            topics,
            node_endpoints: leader.into_iter().collect(),
        };
        match response.encode(self.version, self.correlation_id) {
            Ok(segments) => Response::segments(segments),
            Err(error) => {
                tracing::error!(version = self.version, %error, "failed to answer ShareFetch");
                Response::closing(NOT_ENCODED)
            }
        }
    }
}
