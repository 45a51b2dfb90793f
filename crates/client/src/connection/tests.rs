//! A connection to a listener of this process that answers, stays silent or goes away.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use moldau_net::{ConnectionLimits, Metrics, Reply, Response, Service, Shutdown, serve_connection};
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use moldau_protocol::{ErrorCode, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::*;

type Later = Pin<Box<dyn Future<Output = Response>>>;

/// Behaviour of the peer for the n-th request that is not ApiVersions.
#[derive(Clone, Copy)]
enum Behaviour {
    /// Puts n into the answer's throttle time.
    Answer,
    /// Answers another request than the one that was sent.
    AnswerAnother,
    Silence,
    Close,
}

#[derive(Clone)]
struct Peer {
    behaviour: Behaviour,
    /// Highest version of ApiVersions that it knows.
    api_versions_max: i16,
    requests: Rc<Cell<i32>>,
}

impl Service for Peer {
    type Future = Later;

    fn call(&mut self, frame: &[u8]) -> Reply<Later> {
        let field = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
        let (key, version) = (field(0), field(2));
        let id = i32::from_be_bytes(frame[4..8].try_into().unwrap());
        if key == ApiKey::ApiVersions.key() {
            return Reply::Ready(self.api_versions(version, id));
        }
        let n = self.requests.get();
        self.requests.set(n + 1);
        match self.behaviour {
            Behaviour::Answer => Reply::Ready(heartbeat(version, id, n)),
            Behaviour::AnswerAnother => Reply::Ready(heartbeat(version, id + 1, n)),
            Behaviour::Silence => Reply::Later(Box::pin(std::future::pending()), 0),
            Behaviour::Close => Reply::Close("scripted"),
        }
    }
}

impl Peer {
    fn new(behaviour: Behaviour) -> Self {
        Self { behaviour, api_versions_max: 4, requests: Rc::default() }
    }

    fn api_versions(&self, version: i16, id: i32) -> Response {
        self.api_versions_frame(version, id).into()
    }

    fn api_versions_frame(&self, version: i16, id: i32) -> Bytes {
        let known = version <= self.api_versions_max;
        let code = if known { ErrorCode::None } else { ErrorCode::UnsupportedVersion };
        let api = |key: ApiKey, max_version| ApiVersion {
            api_key: key.key(),
            min_version: 0,
            max_version,
            ..Default::default()
        };
        let answer = ApiVersionsResponse {
            error_code: code.code(),
            api_keys: vec![
                api(ApiKey::ApiVersions, self.api_versions_max),
                api(ApiKey::Heartbeat, 3),
            ],
            ..Default::default()
        };
        frame(&answer, if known { version } else { 0 }, id)
    }
}

fn heartbeat(version: i16, id: i32, n: i32) -> Response {
    framed(&HeartbeatResponse { throttle_time_ms: n, ..Default::default() }, version, id)
}

fn framed<M: Message + moldau_protocol::Response>(message: &M, version: i16, id: i32) -> Response {
    frame(message, version, id).into()
}

fn frame<M: Message + moldau_protocol::Response>(message: &M, version: i16, id: i32) -> Bytes {
    let body = message.to_bytes(version).unwrap();
    let flexible = M::KEY.response_header_version(version) >= 1;
    let mut frame = BytesMut::new();
    frame.put_u32(u32::try_from(4 + usize::from(flexible) + body.len()).unwrap());
    frame.put_i32(id);
    if flexible {
        frame.put_u8(0);
    }
    frame.extend_from_slice(&body);
    frame.freeze()
}

/// Runs `test` with the address of a peer.
fn run<F: Future<Output = ()>>(peer: Peer, test: impl FnOnce(Address) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (limits, metrics) = (ConnectionLimits::default(), Arc::new(Metrics::default()));
            serve_connection(stream, peer, limits, &Shutdown::new(), metrics).await
        });
        test(address).await;
    });
}

async fn connect(address: &Address) -> Connection {
    Connection::connect(address, &ConnectionOptions::default()).await.unwrap()
}

#[test]
fn highest_common_version_is_used() {
    let peer = Peer::new(Behaviour::Answer);
    run(peer, |address| async move {
        let connection = connect(&address).await;
        assert_eq!(connection.version_of::<HeartbeatRequest>().unwrap(), 3);
        let unknown = connection.version_of::<moldau_protocol::messages::FetchRequest>();
        assert!(matches!(unknown, Err(Error::UnsupportedApi { .. })));
        let versions = VersionRange::new(4, 9);
        let refused = connection.send_in(&HeartbeatRequest::default(), versions).await;
        assert!(matches!(refused, Err(Error::UnsupportedApi { .. })));
    });
}

#[test]
fn peer_that_refuses_the_version_of_api_versions_is_asked_in_version_0() {
    let peer = Peer { api_versions_max: 0, ..Peer::new(Behaviour::Answer) };
    run(peer, |address| async move {
        let connection = connect(&address).await;
        assert_eq!(connection.versions_served(ApiKey::Heartbeat), Some((0, 3)));
    });
}

#[test]
fn pipelined_requests_get_their_own_answers() {
    run(Peer::new(Behaviour::Answer), |address| async move {
        let connection = connect(&address).await;
        let request = HeartbeatRequest::default();
        let (a, b, c) = tokio::join!(
            connection.send(&request),
            connection.send(&request),
            connection.send(&request),
        );
        let order = [a, b, c].map(|answer| answer.unwrap().throttle_time_ms);
        assert_eq!(order, [0, 1, 2]);
    });
}

#[test]
fn answer_to_another_request_ends_the_connection() {
    run(Peer::new(Behaviour::AnswerAnother), |address| async move {
        let connection = connect(&address).await;
        let answer = connection.send(&HeartbeatRequest::default()).await;
        assert!(matches!(answer, Err(Error::Malformed { .. })), "{answer:?}");
        assert!(connection.is_closed());
    });
}

#[test]
fn silent_peer_times_out_all_that_wait() {
    run(Peer::new(Behaviour::Silence), |address| async move {
        let connection = connect(&address).await;
        let request = HeartbeatRequest::default();
        let soon = Duration::from_millis(1);
        let (first, second) =
            tokio::join!(connection.send_within(&request, soon), connection.send(&request));
        for answer in [first, second] {
            assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
        }
        assert!(connection.is_closed());
    });
}

/// With acks=0 the broker sends no answer, and a stalled peer held such a request for ever.
#[test]
fn a_request_that_cannot_be_written_times_out_although_it_has_no_answer() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let length = stream.read_u32().await.unwrap();
            let mut asked = vec![0; usize::try_from(length).unwrap()];
            stream.read_exact(&mut asked).await.unwrap();
            let version = i16::from_be_bytes([asked[2], asked[3]]);
            let id = i32::from_be_bytes(asked[4..8].try_into().unwrap());
            let answer = Peer::new(Behaviour::Silence).api_versions_frame(version, id);
            stream.write_all(&answer).await.unwrap();
            // It stays open, and nothing more is read from it.
            std::future::pending::<()>().await;
        });
        let connection = connect(&address).await;
        let (sender, outcome) = oneshot::channel();
        connection.submit(Outgoing {
            api: ApiKey::Produce,
            correlation_id: connection.correlation_id(),
            segments: vec![Bytes::from(vec![0; 64 << 20])],
            answered: false,
            deadline: Instant::now() + Duration::from_millis(50),
            on_reply: Box::new(|reply| assert!(sender.send(reply).is_ok())),
            permit: connection.permit().await.unwrap(),
        });
        let outcome = tokio::time::timeout(Duration::from_secs(20), outcome).await;
        let outcome = outcome.expect("it has an outcome").unwrap();
        assert!(matches!(outcome, Err(Error::TimedOut { .. })), "{outcome:?}");
    });
}

#[test]
fn closed_connection_fails_what_waits_and_what_follows() {
    run(Peer::new(Behaviour::Close), |address| async move {
        let connection = connect(&address).await;
        for _ in 0..2 {
            let answer = connection.send(&HeartbeatRequest::default()).await;
            assert!(matches!(answer, Err(Error::Disconnected { .. })), "{answer:?}");
        }
        assert!(connection.is_closed());
    });
}

#[test]
fn requests_in_flight_are_bounded() {
    let peer = Peer::new(Behaviour::Silence);
    let seen = Rc::clone(&peer.requests);
    run(peer, |address| async move {
        let options = ConnectionOptions { in_flight_max: 2, ..ConnectionOptions::default() };
        let connection = Connection::connect(&address, &options).await.unwrap();
        for _ in 0..5 {
            let connection = connection.clone();
            spawn_local(async move { connection.send(&HeartbeatRequest::default()).await });
        }
        while seen.get() < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(seen.get(), 2);
    });
}

#[test]
fn unreachable_address_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address: Address = free.to_string().parse().unwrap();
    let options = ConnectionOptions::default();
    let refused = runtime.block_on(Connection::connect(&address, &options)).unwrap_err();
    assert!(refused.is_retriable());
    assert!(refused.to_string().contains(&free.to_string()), "{refused}");
}
