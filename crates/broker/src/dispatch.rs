//! The one table of APIs: key, versions served, handler. ApiVersions answers from it, so what is
//! advertised and what is served cannot differ.

use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::BytesMut;
use moldau_net::{Reply, Response};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::ApiVersionsResponse;
use moldau_protocol::{ApiKey, Message, Reader, Request, VersionRange, messages};
use moldau_storage::{Admission, Lsn};

use crate::api;
use crate::state::State;

/// An answer that takes time.
pub(crate) type Later<T> = Pin<Box<dyn Future<Output = T>>>;

/// What a handler makes of a request.
pub(crate) enum Outcome<R> {
    /// The answer is there.
    Now(R),
    /// The answer waits for the disk, for data or for other members of a group.
    Later(Later<R>),
}

/// A request and where it came from.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) version: i16,
    pub(crate) client_id: &'a str,
    /// The client's address.
    pub(crate) peer: SocketAddr,
    /// The address that the client connected to.
    pub(crate) local: SocketAddr,
    /// Milliseconds since the epoch when the request arrived.
    pub(crate) now_ms: i64,
    /// The place of the request's bytes under the limit of unflushed bytes. Who appends them takes
    /// it and keeps it until they are durable.
    pub(crate) admission: Cell<Option<Admission>>,
}

/// Where clients reach the broker.
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: i32,
}

impl Call<'_> {
    /// The advertised address, or else the address over which this client came, since that one
    /// certainly works for it.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match &self.state.config.advertised {
            Some(advertised) => {
                Endpoint { host: advertised.host.clone(), port: i32::from(advertised.port) }
            }
            None => Endpoint {
                host: self.local.ip().to_canonical().to_string(),
                port: i32::from(self.local.port()),
            },
        }
    }
}

/// Answers once the journal is durable up to `lsn`, told whether that came true.
pub(crate) fn once_durable<R: 'static>(
    call: &Call<'_>,
    lsn: Lsn,
    answer: impl FnOnce(bool) -> R + 'static,
) -> Outcome<R> {
    let durable = call.state.storage.wait_durable(lsn);
    Outcome::Later(Box::pin(async move { answer(durable.await.is_ok()) }))
}

/// One row of the table.
struct Api {
    key: ApiKey,
    versions: VersionRange,
    serve: fn(&Call<'_>, &RequestHeader<'_>, &[u8]) -> Served,
}

type Served = Reply<Later<Response>>;

macro_rules! apis {
    ($($key:ident $min:literal ..= $max:literal $serve:expr;)*) => {
        &[$(Api {
            key: ApiKey::$key,
            versions: VersionRange { min: $min, max: $max },
            serve: $serve,
        }),*]
    };
}

macro_rules! typed {
    ($request:ident, $handler:path) => {
        |call, header, body| typed::<messages::$request>(call, header, body, $handler)
    };
}

/// Every API that is served, by key.
static APIS: &[Api] = apis! {
    Produce 3..=13 api::produce::serve;
    Fetch 4..=18 api::fetch::serve;
    ListOffsets 1..=11 typed!(ListOffsetsRequest, api::list_offsets::handle);
    Metadata 0..=13 typed!(MetadataRequest, api::metadata::handle);
    OffsetCommit 2..=10 typed!(OffsetCommitRequest, api::offsets::commit);
    OffsetFetch 1..=10 typed!(OffsetFetchRequest, api::offsets::fetch);
    FindCoordinator 0..=6 typed!(FindCoordinatorRequest, api::find_coordinator::handle);
    JoinGroup 0..=9 typed!(JoinGroupRequest, api::membership::join);
    Heartbeat 0..=4 typed!(HeartbeatRequest, api::membership::heartbeat);
    LeaveGroup 0..=5 typed!(LeaveGroupRequest, api::membership::leave);
    SyncGroup 0..=5 typed!(SyncGroupRequest, api::membership::sync);
    DescribeGroups 0..=6 typed!(DescribeGroupsRequest, api::groups::describe);
    ListGroups 0..=5 typed!(ListGroupsRequest, api::groups::list);
    ApiVersions 0..=4 typed!(ApiVersionsRequest, api::api_versions::handle);
    CreateTopics 2..=7 typed!(CreateTopicsRequest, api::create_topics::handle);
    DeleteTopics 1..=6 typed!(DeleteTopicsRequest, api::delete_topics::handle);
    DeleteRecords 0..=2 typed!(DeleteRecordsRequest, api::delete_records::handle);
    InitProducerId 0..=5 typed!(InitProducerIdRequest, api::init_producer_id::handle);
    OffsetForLeaderEpoch 2..=4
        typed!(OffsetForLeaderEpochRequest, api::offset_for_leader_epoch::handle);
    DescribeConfigs 1..=4 typed!(DescribeConfigsRequest, api::describe_configs::handle);
    CreatePartitions 0..=3 typed!(CreatePartitionsRequest, api::create_partitions::handle);
    DeleteGroups 0..=2 typed!(DeleteGroupsRequest, api::groups::delete);
    IncrementalAlterConfigs 0..=1
        typed!(IncrementalAlterConfigsRequest, api::incremental_alter_configs::handle);
    OffsetDelete 0..=0 typed!(OffsetDeleteRequest, api::offsets::delete);
    DescribeCluster 0..=2 typed!(DescribeClusterRequest, api::describe_cluster::handle);
    DescribeTopicPartitions 0..=0
        typed!(DescribeTopicPartitionsRequest, api::describe_topic_partitions::handle);
};

/// The APIs and versions that are served.
pub(crate) fn served_versions() -> impl Iterator<Item = (ApiKey, VersionRange)> {
    APIS.iter().map(|api| (api.key, api.versions))
}

/// Answers one frame.
pub(crate) fn dispatch(site: CallSite<'_>, bytes: &[u8]) -> Served {
    let Ok(peek) = frame::peek(bytes) else {
        return Reply::Close("malformed request header");
    };
    let Some(api) = APIS.iter().find(|api| api.key.key() == peek.api_key) else {
        return Reply::Close("unknown API");
    };
    if !api.versions.contains(peek.api_version) {
        // Any other API of an unknown version cannot be answered: its format is unknown.
        return match api.key {
            ApiKey::ApiVersions => {
                let response = api::api_versions::unsupported();
                encoded::<ApiVersionsResponse>(api.key, 0, peek.correlation_id, &response)
            }
            _ => Reply::Close("unsupported API version"),
        };
    }
    let Ok((header, body)) = RequestHeader::parse(bytes) else {
        return Reply::Close("malformed request header");
    };
    site.state.metrics.request(api.key);
    let call = Call {
        state: site.state,
        version: header.api_version,
        client_id: header.client_id.unwrap_or(""),
        peer: site.peer,
        local: site.local,
        now_ms: site.now_ms,
        admission: Cell::new(site.admission),
    };
    (api.serve)(&call, &header, body)
}

/// What a connection knows about its requests before they are read.
pub(crate) struct CallSite<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) now_ms: i64,
    pub(crate) admission: Option<Admission>,
}

fn typed<Q: Request>(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
    handle: fn(&Call<'_>, Q) -> Outcome<Q::Response>,
) -> Served
where
    Q::Response: 'static,
{
    // Bytes after the last field are ignored, as Kafka does: librdkafka leaves three of them behind
    // a Metadata request for all topics.
    match Q::decode(&mut Reader::new(body), call.version) {
        Ok(request) => answer(header, handle(call, request)),
        Err(_) => Reply::Close("malformed request"),
    }
}

/// Encodes an outcome as the answer to the request of this header.
pub(crate) fn answer<R: Message + 'static>(
    header: &RequestHeader<'_>,
    outcome: Outcome<R>,
) -> Served {
    let (key, version, correlation) = (header.api_key, header.api_version, header.correlation_id);
    match outcome {
        Outcome::Now(response) => encoded(key, version, correlation, &response),
        Outcome::Later(response) => Reply::Later(Box::pin(async move {
            let response = response.await;
            // A connection without this answer would wait for ever; the log line names the defect.
            encode(key, version, correlation, &response).unwrap_or_default()
        })),
    }
}

fn encoded<R: Message>(key: ApiKey, version: i16, correlation_id: i32, response: &R) -> Served {
    match encode(key, version, correlation_id, response) {
        Some(response) => Reply::Ready(response),
        None => Reply::Close("the answer cannot be encoded"),
    }
}

fn encode<R: Message>(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Option<Response> {
    let mut out = BytesMut::new();
    match frame::encode_response(&mut out, key, version, correlation_id, response) {
        Ok(()) => Some(Response::single(out.freeze())),
        Err(error) => {
            tracing::error!(%key, version, %error, "an answer cannot be encoded");
            None
        }
    }
}
