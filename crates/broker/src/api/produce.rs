//! Produce, versions 3-13 (KIP-98 batches, KIP-467 messages, KIP-516 topic ids, KIP-890).
//!
//! Every partition is validated and appended on its own, in the order of the request; the answer
//! waits for the flush that covers all of them. As in Kafka, all records are walked, and exactly
//! one batch per partition is allowed. A batch that takes long to check (`appends`) is left to a
//! worker, and what the client sends behind its request waits for that.
//!
//! A batch of a transaction is appended while the transaction is open and has the partition; from
//! version 12 on it adds the partition itself.
//!
//! `acks=1` and `acks=all` are the same with one replica, whatever `min.insync.replicas` says:
//! Kafka asks for no more replicas than there are. What is not durable within the request's timeout
//! gets `REQUEST_TIMED_OUT`, for which producers try again; it may be durable later. `acks=0` is
//! answered by nothing, or by a closed connection where Kafka closes it too: after an error.

mod appends;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_net::{KEPT_REQUEST_BYTES_MAX, MemoryUse, Permit, Reply, Response};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::ProduceResponse;
use moldau_protocol::produce::{ProduceRequestView, TopicRecords};
use moldau_protocol::{ErrorCode, Uuid};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use self::appends::{Appends, Effort, Unplaced, memory_for, place};
use crate::authorizer::{Operation, ResourceType};
use crate::call::{
    Appended, Call, Outcome, Served, answer, durable_within, encode_or_close, patience,
};
use crate::catalog::{Topic, unknown_id, unknown_name};
use crate::error::{Refusal, append_refusal, denied};
use crate::logs::Admission;
use crate::quota_entity::QuotaKey;
use crate::topic_names::check_ordinary;

/// Where the low byte of a batch's attributes stands, and its bit for transactions.
const ATTRIBUTES: usize = 22;
const TRANSACTIONAL: u8 = 0x10;

const REFUSED_WITHOUT_ACKS: &str = "refused a produce request with acks=0";

pub(crate) fn serve(call: &Call<'_>, header: &RequestHeader<'_>, body: &[u8]) -> Served {
    let request = ProduceRequestView::parse(body, call.version).ok();
    // The structure is checked to its end first: a request is appended as a whole or refused.
    let request = request.filter(|request| request.check().is_ok());
    let topics = request.as_ref().and_then(|request| find_topics(call, request));
    let Some((request, topics)) = request.zip(topics) else {
        return Reply::Close("malformed request");
    };
    let mut appends = Appends::new(call, topics);
    let bytes = body.len() as f64;
    let key = QuotaKey::ProducerByteRate;
    call.throttle(call.client.record(key, call.client_id, bytes, call.now_ms));
    if !appends.run(&request, Effort::Little) {
        return hand_over(call, header, body, &request, appends);
    }
    let appended = appends.last.map(|lsn| Appended::of(call, lsn));
    if request.acks() == 0 {
        return match appends.is_refused {
            true => Reply::Close(REFUSED_WITHOUT_ACKS),
            false => Reply::NoResponse,
        };
    }
    let Appends { response, unplaced, .. } = appends;
    let patience = patience(request.timeout_ms());
    let outcome = if !unplaced.is_empty() {
        let admission = call.admission.take();
        Outcome::Later(Box::pin(async move {
            let response = placed_within(patience, unplaced, response).await;
            drop(admission);
            response
        }))
    } else if let Some(appended) = appended {
        let storage = call.state.storage.clone();
        Outcome::Later(Box::pin(async move {
            let durable = durable_within(patience, &storage, appended.lsn).await;
            drop(appended);
            or_refused(durable, response)
        }))
    } else {
        Outcome::Now(response)
    };
    // Whoever holds the records has them by now.
    answer(header, outcome, 0)
}

/// Has a worker append what is left of the request. It goes on where the client leaves.
fn hand_over(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
    request: &ProduceRequestView<'_>,
    appends: Appends,
) -> Served {
    let (acks, patience) = (request.acks(), patience(request.timeout_ms()));
    let body = Bytes::copy_from_slice(body);
    // Nothing that is sent behind it may be appended before it.
    let kept = body.len().max(KEPT_REQUEST_BYTES_MAX);
    let memory = memory_for(body.len()).min(call.state.memory.most(MemoryUse::Work));
    let Ok(memory) = call.memory.acquire(MemoryUse::Work, memory..=memory) else {
        return Reply::Close("there is never memory to check the records");
    };
    let work = Work { appends, body, admission: call.admission.take() };
    let (sender, done) = oneshot::channel();
    let workers = Arc::clone(&call.state.workers);
    Handle::current().spawn(async move {
        let memory = memory.await;
        let Ok(worker) = workers.acquire_owned().await else { return };
        tokio::task::spawn_blocking(move || {
            let done = work.run(&memory);
            drop((memory, worker));
            // The client has gone; the records are appended all the same.
            drop(sender.send(done));
        });
    });
    let storage = call.state.storage.clone();
    let (key, version, correlation) = (header.api_key, header.api_version, header.correlation_id);
    let answer = async move {
        let Ok(Done { response, is_refused, appended, unplaced }) = done.await else {
            return Response::closing("the worker that checked the records failed");
        };
        if acks == 0 {
            return match is_refused {
                true => Response::closing(REFUSED_WITHOUT_ACKS),
                false => Response::none(),
            };
        }
        let response = match appended {
            Some(appended) => {
                or_refused(durable_within(patience, &storage, appended.lsn).await, response)
            }
            None => placed_within(patience, unplaced, response).await,
        };
        encode_or_close(key, version, correlation, &response)
    };
    Reply::Later(Box::pin(answer), kept)
}

/// What a worker is to append.
struct Work {
    appends: Appends,
    body: Bytes,
    admission: Option<Admission>,
}

/// What it has appended.
struct Done {
    response: ProduceResponse,
    is_refused: bool,
    appended: Option<Appended>,
    unplaced: Vec<Unplaced>,
}

impl Work {
    fn run(self, memory: &Permit) -> Done {
        let Self { mut appends, body, admission } = self;
        let effort = Effort::Any { memory: memory.bytes() };
        let request = ProduceRequestView::parse(&body, appends.version);
        appends.run(&request.expect("it was parsed before"), effort);
        let Appends { state, response, is_refused, last, unplaced, .. } = appends;
        let appended = last.map(|lsn| Appended::new(state, admission, lsn));
        Done { response, is_refused, appended, unplaced }
    }
}

/// The topics of the request, as far as they exist and the client may write to them; `None` if the
/// request is malformed.
fn find_topics(
    call: &Call<'_>,
    request: &ProduceRequestView<'_>,
) -> Option<Vec<Result<Arc<Topic>, Refusal>>> {
    let is_unauthorized = !may_be_transactional(call, request)?;
    let topics = request.topics().map(|topic| {
        let topic = topic.ok()?;
        Some(match is_unauthorized {
            true => Err(denied(ResourceType::TransactionalId)),
            false => find_topic(call, &topic),
        })
    });
    topics.collect()
}

/// Whether the client may send what the request holds, in so far as it is part of a transaction:
/// then the request needs a transactional id. `None` if the request is malformed.
fn may_be_transactional(call: &Call<'_>, request: &ProduceRequestView<'_>) -> Option<bool> {
    let mut is_transactional = false;
    for topic in request.topics() {
        for partition in topic.ok()?.partitions() {
            let attributes = partition.ok()?.records.and_then(|records| records.get(ATTRIBUTES));
            is_transactional |= attributes.is_some_and(|bits| bits & TRANSACTIONAL != 0);
        }
    }
    let may_write =
        |id: &str| call.rights.allow(ResourceType::TransactionalId, Operation::Write, id);
    Some(!is_transactional || request.transactional_id().is_some_and(may_write))
}

fn find_topic(call: &Call<'_>, topic: &TopicRecords<'_>) -> Result<Arc<Topic>, Refusal> {
    let catalog = &call.state.catalog;
    let authorize =
        |name: &str| match call.rights.allow(ResourceType::Topic, Operation::Write, name) {
            true => check_ordinary(name),
            false => Err(denied(ResourceType::Topic)),
        };
    match (topic.name, topic.id) {
        (Some(name), _) => {
            authorize(name)?;
            catalog.by_name(name).ok_or_else(|| unknown_name(name))
        }
        (None, id) => {
            let id = id.unwrap_or(Uuid::ZERO);
            let topic = catalog.by_id(id).ok_or_else(|| unknown_id(id))?;
            authorize(&topic.name)?;
            Ok(topic)
        }
    }
}

/// The response, with the offset of each batch that was answered in time, or its error.
async fn placed_within(
    patience: Duration,
    unplaced: Vec<Unplaced>,
    mut response: ProduceResponse,
) -> ProduceResponse {
    let deadline = Instant::now() + patience;
    for Unplaced { topic, partition, ticket } in unplaced {
        let placed = timeout_at(deadline, ticket).await;
        let topic = response.responses.get_mut(topic).expect("it was answered");
        let told = topic.partition_responses.get_mut(partition).expect("it was answered");
        match placed {
            Ok(Ok(appended)) => place(told, &appended),
            Ok(Err(error)) => {
                let refusal = append_refusal(&error);
                told.error_code = refusal.code.into();
                told.error_message = Some(refusal.message);
            }
            Err(_elapsed) => told.error_code = ErrorCode::RequestTimedOut.into(),
        }
    }
    response
}

/// The response, with an error for what was appended but is not durable.
fn or_refused(durable: Result<(), Refusal>, mut response: ProduceResponse) -> ProduceResponse {
    let Err(Refusal { code, .. }) = durable else { return response };
    for topic in &mut response.responses {
        for partition in &mut topic.partition_responses {
            if partition.error_code == i16::from(ErrorCode::None) {
                partition.error_code = code.into();
                partition.base_offset = -1;
            }
        }
    }
    response
}
