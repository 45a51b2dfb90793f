//! Sessions with filters, between a scripted client and a scripted broker in memory.

mod memory;
mod reloads;

use std::fmt;
use std::net::IpAddr;
use std::sync::Mutex;

use moldau_net::{FRAME_BYTES_MAX_DEFAULT, Principal};
use moldau_protocol::messages::list_groups_response::ListedGroup;
use moldau_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::{
    ApiKey, HeartbeatRequest, HeartbeatResponse, ListGroupsRequest, ListGroupsResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse,
};
use moldau_protocol::{Message, Reader, Request, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter, DuplexStream, duplex};
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;
use crate::cluster::Cluster;
use crate::config::Limits;
use crate::context::SessionContext;
use crate::filter::{Direction, Filter, FilterFuture, RequestOutcome, SessionFilter};
use crate::frame::{RequestFrame, ResponseFrame};
use crate::unserved::unserved;
use crate::upstream::Upstream;

/// Bytes that a socket takes before its writer has to wait.
const SOCKET_BYTES: usize = 1000;

type OnRequest = dyn Fn(RequestFrame, Upstream) -> FilterFuture<RequestOutcome> + Send + Sync;
type OnResponse = dyn Fn(ResponseFrame) -> FilterFuture<ResponseFrame> + Send + Sync;

/// A filter that does what its closures say.
struct Scripted {
    claims: Vec<(ApiKey, Direction)>,
    /// An API that the filter does not let through.
    forbidden: Option<ApiKey>,
    on_request: Box<OnRequest>,
    on_response: Box<OnResponse>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("claims", &self.claims).finish_non_exhaustive()
    }
}

impl Scripted {
    /// Claims these requests.
    fn requests(
        api: ApiKey,
        on_request: impl Fn(RequestFrame, Upstream) -> FilterFuture<RequestOutcome>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let on_response = |response| -> FilterFuture<_> { Box::pin(async { Ok(response) }) };
        let claims = vec![(api, Direction::Request)];
        let (on_request, on_response) = (Box::new(on_request), Box::new(on_response));
        Self { claims, forbidden: None, on_request, on_response }
    }

    /// Claims the answers as well.
    fn and_responses(
        mut self,
        on_response: impl Fn(ResponseFrame) -> FilterFuture<ResponseFrame> + Send + Sync + 'static,
    ) -> Self {
        let responses = self.claims.iter().map(|(api, _)| (*api, Direction::Response));
        self.claims = responses.chain(self.claims.clone()).collect();
        self.on_response = Box::new(on_response);
        self
    }
}

impl Filter for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        self.claims.contains(&(api, direction))
    }

    fn admits(&self, api: Option<ApiKey>) -> bool {
        self.forbidden.is_none() || api != self.forbidden
    }

    fn session(self: Arc<Self>, _: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(ScriptedSession(self))
    }
}

struct ScriptedSession(Arc<Scripted>);

impl SessionFilter for ScriptedSession {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        (self.0.on_request)(request, upstream)
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        (self.0.on_response)(response)
    }
}

/// A session under test, its client's socket and its broker's.
struct World {
    client: DuplexStream,
    broker: DuplexStream,
    cluster: Arc<Cluster>,
    shutdown: Shutdown,
    session: JoinHandle<Ended>,
}

/// Runs `test` with a session that has these filters.
fn with_filters<F: Future<Output = ()>>(filters: Vec<Scripted>, test: impl FnOnce(World) -> F) {
    let filters = filters.into_iter().map(|filter| Arc::new(filter) as Arc<dyn Filter>);
    let (_threads, cluster) = unserved(filters.collect());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let patience = Duration::from_secs(60);
        timeout(patience, test(World::of(cluster))).await.expect("the test does not hang");
    });
}

fn terms() -> Terms {
    let Limits { frame_bytes_max, idle_timeout, slow_reader_timeout, .. } = Limits::default();
    Terms { renewal: None, frame_bytes_max, idle_timeout, slow_reader_timeout }
}

async fn read_frame(socket: &mut DuplexStream) -> Vec<u8> {
    let length = socket.read_u32().await.unwrap();
    let mut frame = vec![0; length as usize];
    socket.read_exact(&mut frame).await.unwrap();
    frame
}

fn encoded<Q: Request>(version: i16, correlation_id: i32, request: &Q) -> Vec<u8> {
    let mut bytes = bytes::BytesMut::new();
    frame::encode_request(&mut bytes, version, correlation_id, Some("test"), request).unwrap();
    bytes.to_vec()
}

impl World {
    /// A session of a cluster. Called on the runtime that serves it.
    fn of(cluster: Arc<Cluster>) -> Self {
        let (client, downstream) = duplex(SOCKET_BYTES);
        let (upstream, broker) = duplex(SOCKET_BYTES);
        // As with TLS, what was written is sent once it is flushed.
        let upstream = BufWriter::new(upstream);
        let rewriter = Rewriter::new(Arc::clone(&cluster), IpAddr::from([127, 0, 0, 1]));
        let shutdown = Shutdown::new();
        let peer = "192.0.2.7:50000".parse().unwrap();
        let (principal, memory) = (Principal::anonymous(), cluster.memory().account());
        let context =
            SessionContext::with_limits("main", peer, principal, FRAME_BYTES_MAX_DEFAULT, memory);
        let session = Session::new(downstream, upstream, rewriter, &context, terms());
        let signal = shutdown.clone();
        let session = spawn_local(async move { session.run(&signal).await });
        Self { client, broker, cluster, shutdown, session }
    }

    async fn send<Q: Request>(&mut self, version: i16, correlation_id: i32, request: &Q) {
        self.client.write_all(&encoded(version, correlation_id, request)).await.unwrap();
    }

    /// What the broker gets next: version, correlation id and request.
    async fn arrives<Q: Request>(&mut self) -> (i16, i32, Q) {
        let frame = read_frame(&mut self.broker).await;
        let (header, body) = frame::RequestHeader::parse(&frame).unwrap();
        assert_eq!(header.api_key, Q::KEY);
        let request = Q::decode(&mut Reader::new(body), header.api_version).unwrap();
        (header.api_version, header.correlation_id, request)
    }

    async fn answer<M: Message>(&mut self, api: ApiKey, version: i16, id: i32, message: &M) {
        let mut bytes = bytes::BytesMut::new();
        frame::encode_response(&mut bytes, api, version, id, message).unwrap();
        self.broker.write_all(&bytes).await.unwrap();
    }

    /// A reload puts this filter in force.
    fn reload(&self, filter: Scripted) {
        let filters: [Arc<dyn Filter>; 1] = [Arc::new(filter)];
        assert!(self.cluster.chains().replace(&filters).is_some());
    }

    /// What the client gets next.
    async fn comes<M: Message>(&mut self, api: ApiKey, version: i16, id: i32) -> M {
        let frame = read_frame(&mut self.client).await;
        let (correlation_id, body) = frame::parse_response(&frame, api, version).unwrap();
        assert_eq!(correlation_id, id);
        M::decode(&mut Reader::new(body), version).unwrap()
    }

    async fn heartbeat_comes(&mut self, id: i32) -> i32 {
        self.comes::<HeartbeatResponse>(ApiKey::Heartbeat, 4, id).await.throttle_time_ms
    }

    async fn answer_heartbeat(&mut self, id: i32, throttle_time_ms: i32) {
        let response = HeartbeatResponse { throttle_time_ms, ..Default::default() };
        self.answer(ApiKey::Heartbeat, 4, id, &response).await;
    }

    async fn closed(mut self) -> Ended {
        let ended = self.session.await.unwrap();
        assert_eq!(self.client.read(&mut [0]).await.unwrap(), 0);
        ended
    }
}

fn heartbeat(group_id: &str) -> HeartbeatRequest {
    HeartbeatRequest { group_id: group_id.to_owned(), ..Default::default() }
}

fn produce(acks: i16, record_bytes: usize) -> ProduceRequest {
    let data =
        PartitionProduceData { records: Some(vec![7; record_bytes].into()), ..Default::default() };
    let topic = TopicProduceData { partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks, topic_data: vec![topic], ..Default::default() }
}

/// Adds a letter to the group of a heartbeat, and a digit to the throttle time of its answer.
fn marking(letter: &'static str, digit: i32) -> Scripted {
    Scripted::requests(ApiKey::Heartbeat, move |request, _| {
        Box::pin(async move {
            let mut message: HeartbeatRequest = request.decode()?;
            message.group_id.push_str(letter);
            Ok(RequestOutcome::Forward(request.with_message(&message)?))
        })
    })
    .and_responses(move |response| {
        Box::pin(async move {
            let mut message: HeartbeatResponse = response.decode()?;
            message.throttle_time_ms = message.throttle_time_ms * 10 + digit;
            Ok(response.with_message(&message)?)
        })
    })
}

/// Answers heartbeats of the group "refused" itself.
fn refusing() -> Scripted {
    Scripted::requests(ApiKey::Heartbeat, |request, _| {
        Box::pin(async move {
            if !request.decode::<HeartbeatRequest>()?.group_id.starts_with("refused") {
                return Ok(RequestOutcome::Forward(request));
            }
            let response = HeartbeatResponse { throttle_time_ms: 9, ..Default::default() };
            Ok(RequestOutcome::Respond(request.respond(&response)?))
        })
    })
}

#[test]
fn requests_take_the_filters_in_order_and_answers_in_reverse() {
    with_filters(vec![marking("a", 1), marking("b", 2)], async |mut world| {
        world.send(4, 7, &heartbeat("g")).await;
        let (_, id, request) = world.arrives::<HeartbeatRequest>().await;
        assert_eq!((id, &*request.group_id), (7, "gab"));
        world.answer_heartbeat(7, 3).await;
        assert_eq!(world.heartbeat_comes(7).await, 321);
    });
}

#[test]
fn an_answer_of_a_filter_waits_for_those_before_it() {
    with_filters(vec![marking("a", 1), refusing(), marking("b", 2)], async |mut world| {
        for (id, group) in [(1, "x"), (2, "refused"), (3, "y"), (4, "refused")] {
            world.send(4, id, &heartbeat(group)).await;
        }
        assert_eq!(world.arrives::<HeartbeatRequest>().await.2.group_id, "xab");
        assert_eq!(world.arrives::<HeartbeatRequest>().await.2.group_id, "yab");
        world.answer_heartbeat(1, 0).await;
        world.answer_heartbeat(3, 5).await;
        assert_eq!(world.heartbeat_comes(1).await, 21);
        // Only the filter before the one that answered sees the answer.
        assert_eq!(world.heartbeat_comes(2).await, 91);
        assert_eq!(world.heartbeat_comes(3).await, 521);
        assert_eq!(world.heartbeat_comes(4).await, 91);
    });
}

/// Declines the answers to all requests of an API, and fails if it gets one nevertheless.
fn declining(api: ApiKey) -> Scripted {
    Scripted::requests(api, |request, _| {
        Box::pin(async { Ok(RequestOutcome::ForwardOnly(request)) })
    })
    .and_responses(|_| Box::pin(async { Err("this answer was declined".into()) }))
}

#[test]
fn a_declined_answer_goes_through_the_other_filters_alone() {
    let declining = || declining(ApiKey::Heartbeat);
    let filters = vec![marking("a", 1), declining(), refusing(), declining(), marking("b", 2)];
    with_filters(filters, async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.send(4, 2, &heartbeat("refused")).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.2.group_id, "gab");
        world.answer_heartbeat(1, 3).await;
        assert_eq!(world.heartbeat_comes(1).await, 321);
        assert_eq!(world.heartbeat_comes(2).await, 91);
    });
}

/// Fetched records without names of topics were held until all of them had come.
#[test]
fn an_answer_that_all_decline_passes_as_it_arrives() {
    with_filters(vec![declining(ApiKey::ListGroups)], async |mut world| {
        world.send(4, 1, &ListGroupsRequest::default()).await;
        world.arrives::<ListGroupsRequest>().await;
        let group = ListedGroup { group_id: "g".repeat(900), ..Default::default() };
        let response = ListGroupsResponse { groups: vec![group], ..Default::default() };
        let mut bytes = bytes::BytesMut::new();
        frame::encode_response(&mut bytes, ApiKey::ListGroups, 4, 1, &response).unwrap();
        let (first, second) = bytes.split_at(500);
        for half in [first, second] {
            world.broker.write_all(half).await.unwrap();
            let mut came = vec![0; half.len()];
            world.client.read_exact(&mut came).await.unwrap();
            assert_eq!(came, half);
        }
    });
}

/// Holds heartbeats until released.
fn waiting(go: &Arc<Notify>) -> Scripted {
    let go = Arc::clone(go);
    Scripted::requests(ApiKey::Heartbeat, move |request, _| {
        let go = Arc::clone(&go);
        Box::pin(async move {
            go.notified().await;
            Ok(RequestOutcome::Forward(request))
        })
    })
}

#[test]
fn while_a_filter_holds_a_request_answers_pass_and_order_is_kept() {
    let go = Arc::new(Notify::new());
    with_filters(vec![waiting(&go)], async |mut world| {
        world.send(4, 1, &ListGroupsRequest::default()).await;
        world.send(4, 2, &heartbeat("g")).await;
        world.send(4, 3, &ListGroupsRequest::default()).await;
        assert_eq!(world.arrives::<ListGroupsRequest>().await.1, 1);
        let response = ListGroupsResponse::default();
        world.answer(ApiKey::ListGroups, 4, 1, &response).await;
        world.comes::<ListGroupsResponse>(ApiKey::ListGroups, 4, 1).await;
        go.notify_one();
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 2);
        assert_eq!(world.arrives::<ListGroupsRequest>().await.1, 3);
    });
}

#[test]
fn while_a_filter_holds_a_request_the_client_has_to_wait() {
    let go = Arc::new(Notify::new());
    with_filters(vec![waiting(&go)], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        // More than the socket and a receive buffer take.
        let more = encoded(4, 2, &heartbeat("h")).repeat(20_000);
        let writes = world.client.write_all(&more);
        let blocked = timeout(Duration::from_millis(50), writes).await;
        assert!(blocked.is_err());
        go.notify_one();
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 1);
    });
}

/// Asks for metadata before each produce request, and names its first topic after the cluster.
fn asking() -> Scripted {
    Scripted::requests(ApiKey::Produce, |request, mut upstream| {
        Box::pin(async move {
            let answer = upstream.send(12, &MetadataRequest::default()).await?;
            let mut message: ProduceRequest = request.decode()?;
            message.topic_data[0].name = answer.cluster_id.unwrap_or_default();
            Ok(RequestOutcome::Forward(request.with_message(&message)?))
        })
    })
}

#[test]
fn a_filter_asks_the_broker_over_the_connection_of_the_session() {
    with_filters(vec![asking()], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.send(12, 2, &produce(-1, 10)).await;
        world.send(4, 3, &heartbeat("g")).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 1);
        let (version, own, _) = world.arrives::<MetadataRequest>().await;
        world.answer_heartbeat(1, 1).await;
        let cluster_id = Some("named".to_owned());
        let metadata = MetadataResponse { cluster_id, ..Default::default() };
        world.answer(ApiKey::Metadata, version, own, &metadata).await;
        let (_, id, request) = world.arrives::<ProduceRequest>().await;
        assert_eq!((id, &*request.topic_data[0].name), (2, "named"));
        world.answer(ApiKey::Produce, 12, 2, &ProduceResponse::default()).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 3);
        world.answer_heartbeat(3, 3).await;
        assert_eq!(world.heartbeat_comes(1).await, 1);
        world.comes::<ProduceResponse>(ApiKey::Produce, 12, 2).await;
        assert_eq!(world.heartbeat_comes(3).await, 3);
    });
}

/// Who named a topic of so many partitions by its id lost each session.
#[test]
fn an_answer_to_a_filter_may_tell_of_a_million_partitions() {
    with_filters(vec![asking()], async |mut world| {
        world.send(12, 2, &produce(-1, 10)).await;
        let (version, own, _) = world.arrives::<MetadataRequest>().await;
        let partition = MetadataResponsePartition { replica_nodes: vec![1], ..Default::default() };
        let partitions = vec![partition; 1_000_000];
        let topic = MetadataResponseTopic { partitions, ..Default::default() };
        let cluster_id = Some("named".to_owned());
        let metadata = MetadataResponse { cluster_id, topics: vec![topic], ..Default::default() };
        world.answer(ApiKey::Metadata, version, own, &metadata).await;
        let (_, _, request) = world.arrives::<ProduceRequest>().await;
        assert_eq!(request.topic_data[0].name, "named");
    });
}

#[test]
fn a_refused_request_that_expects_no_answer_closes_the_session_after_the_others() {
    let refusing = Scripted::requests(ApiKey::Produce, |request, _| {
        Box::pin(async move {
            Ok(RequestOutcome::Respond(request.respond(&ProduceResponse::default())?))
        })
    });
    with_filters(vec![refusing], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.send(12, 2, &produce(0, 10)).await;
        world.send(4, 3, &heartbeat("never sent")).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 1);
        world.answer_heartbeat(1, 5).await;
        assert_eq!(world.heartbeat_comes(1).await, 5);
        assert_eq!(world.broker.read(&mut [0]).await.unwrap(), 0);
        assert!(matches!(world.closed().await, Ended::ByFilter));
    });
}

#[test]
fn a_request_with_which_a_filter_closes_is_sent_first() {
    let closing = Scripted::requests(ApiKey::Produce, |request, _| {
        Box::pin(async move { Ok(RequestOutcome::Close(Some(request))) })
    });
    with_filters(vec![closing], async |mut world| {
        let request = produce(0, 5000);
        world.send(12, 2, &request).await;
        assert_eq!(world.arrives::<ProduceRequest>().await.2, request);
        assert!(matches!(world.closed().await, Ended::ByFilter));
    });
}

#[test]
fn an_error_of_a_filter_ends_the_session_and_is_counted() {
    let failing = Scripted::requests(ApiKey::Heartbeat, |_, _| {
        Box::pin(async { Err("out of order".into()) })
    });
    with_filters(vec![failing], async |mut world| {
        let cluster = Arc::clone(&world.cluster);
        world.send(4, 1, &heartbeat("g")).await;
        assert!(matches!(world.closed().await, Ended::Filter(_)));
        let errors = cluster.chains().current().metrics().remove(0);
        assert_eq!((errors.name, errors.value), ("filter_errors", 1));
    });
}

#[test]
fn an_error_about_an_answer_ends_the_session() {
    let failing = marking("a", 1).and_responses(|_| Box::pin(async { Err("no".into()) }));
    with_filters(vec![failing], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.arrives::<HeartbeatRequest>().await;
        world.answer_heartbeat(1, 5).await;
        assert!(matches!(world.closed().await, Ended::Filter(_)));
    });
}

/// A client that skips ApiVersions must not get a message past a filter by its version.
#[test]
fn a_claimed_request_of_an_unknown_version_never_passes() {
    with_filters(vec![marking("a", 1)], async |mut world| {
        let mut request = encoded(4, 1, &heartbeat("g"));
        request[6..8].copy_from_slice(&99_i16.to_be_bytes());
        world.client.write_all(&request).await.unwrap();
        let mut sent = Vec::new();
        world.broker.read_to_end(&mut sent).await.unwrap();
        assert!(sent.is_empty());
        assert!(matches!(world.closed().await, Ended::Malformed(Side::Downstream, _)));
    });
}

#[test]
fn a_client_that_closed_its_sending_side_gets_the_answer_to_a_held_request() {
    let go = Arc::new(Notify::new());
    with_filters(vec![waiting(&go)], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.client.shutdown().await.unwrap();
        go.notify_one();
        world.arrives::<HeartbeatRequest>().await;
        world.answer_heartbeat(1, 5).await;
        assert_eq!(world.heartbeat_comes(1).await, 5);
        assert!(matches!(world.closed().await, Ended::ByClient));
    });
}

#[test]
fn a_last_request_that_expects_no_answer_is_sent_before_the_session_ends() {
    with_filters(Vec::new(), |mut world| async move {
        world.send(9, 1, &produce(0, 10)).await;
        world.client.shutdown().await.unwrap();
        assert_eq!(world.arrives::<ProduceRequest>().await.1, 1);
        assert!(matches!(world.closed().await, Ended::ByClient));
    });
}

#[test]
fn drain_waits_for_requests_and_answers_that_filters_hold() {
    let (go, held) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (release, released) = oneshot::channel::<()>();
    let released = Mutex::new(Some(released));
    let at_response = Arc::clone(&held);
    let filter = waiting(&go).and_responses(move |response| {
        let released = released.lock().unwrap().take().unwrap();
        at_response.notify_one();
        Box::pin(async move {
            released.await?;
            Ok(response)
        })
    });
    with_filters(vec![filter], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.send(4, 2, &heartbeat("after the drain")).await;
        // The first request was taken when the next byte of the session's turn is at hand.
        while world.cluster.metrics().traffic.read().downstream.received == 0 {
            tokio::task::yield_now().await;
        }
        world.shutdown.advance(Phase::Draining);
        go.notify_one();
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 1);
        world.answer_heartbeat(1, 5).await;
        held.notified().await;
        assert!(!world.session.is_finished());
        release.send(()).unwrap();
        assert_eq!(world.heartbeat_comes(1).await, 5);
        assert!(matches!(world.closed().await, Ended::Drained));
    });
}

const RELAXED: std::sync::atomic::Ordering = std::sync::atomic::Ordering::Relaxed;

#[test]
fn what_no_filter_claims_is_not_held() {
    with_filters(vec![marking("a", 1)], async |mut world| {
        let request = encoded(12, 1, &produce(-1, 100_000));
        // A socket holds far less than the request, and the end of the request never comes.
        let (start, _) = request.split_at(50_000);
        let mut arrived = vec![0; 50_000];
        let reads = world.broker.read_exact(&mut arrived);
        let (sent, read) = tokio::join!(world.client.write_all(start), reads);
        sent.unwrap();
        read.unwrap();
        assert!(arrived == start);
        let metrics = world.cluster.metrics();
        assert_eq!(metrics.record_bytes_touched.load(RELAXED), 0);
    });
}

#[test]
fn a_claimed_request_larger_than_any_buffer_arrives_unchanged() {
    let passing = Scripted::requests(ApiKey::Produce, |request, _| {
        Box::pin(async move { Ok(RequestOutcome::Forward(request)) })
    });
    with_filters(vec![passing], async |mut world| {
        let request = encoded(12, 1, &produce(-1, 3_000_000)).repeat(2);
        let mut arrived = vec![0; request.len()];
        let reads = world.broker.read_exact(&mut arrived);
        let (sent, read) = tokio::join!(world.client.write_all(&request), reads);
        sent.unwrap();
        read.unwrap();
        assert!(arrived == request);
    });
}
