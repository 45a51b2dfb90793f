//! What a client may take, and where it is said to be.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use moldau_net::proxy_protocol::{self, Mode};
use moldau_protocol::ApiKey;
use moldau_protocol::messages::{HeartbeatRequest, HeartbeatResponse, SaslAuthenticateRequest};
use moldau_proxy::{
    Direction, Filter, Limits, Proxy, SessionContext, SessionFilter, UpstreamSettings,
    VirtualCluster,
};

use crate::world::{
    Act, Broker, Client, answer, any_ports, await_counter, bootstrap, cluster, config, counter,
    encode,
};

const SHORT: Duration = Duration::from_millis(80);
const LONG: Duration = Duration::from_mins(10);

fn heartbeat() -> HeartbeatRequest {
    HeartbeatRequest::default()
}

fn answered(correlation_id: i32) -> Act {
    Act::Send(answer(ApiKey::Heartbeat, 4, correlation_id, &HeartbeatResponse::default()))
}

fn limited(upstream: SocketAddr, limits: Limits) -> Proxy {
    let cluster = cluster("main", any_ports(), &[upstream]);
    Proxy::start(config(vec![VirtualCluster { limits, ..cluster }])).unwrap()
}

#[test]
fn an_idle_client_is_disconnected_and_one_that_waits_is_not() {
    let (release, released) = mpsc::sync_channel::<()>(0);
    let released = Mutex::new(released);
    let broker = Broker::start(move |seen| {
        if seen.correlation_id == 1 {
            released.lock().unwrap().recv().unwrap();
        }
        answered(seen.correlation_id)
    });
    let limits = Limits { idle_timeout: SHORT, slow_reader_timeout: LONG, ..Limits::default() };
    let proxy = limited(broker.address, limits);
    let mut waiting = Client::connect(bootstrap(&proxy));
    waiting.send(&encode(4, 1, &heartbeat()));
    let mut idle = Client::connect(bootstrap(&proxy));
    idle.call(4, &heartbeat());
    assert_eq!(idle.stream.read(&mut [0]).unwrap(), 0);
    // Half of a request is no more than silence.
    let mut halting = Client::connect(bootstrap(&proxy));
    halting.send(&encode(4, 9, &heartbeat())[..10]);
    assert_eq!(halting.stream.read(&mut [0]).unwrap(), 0);
    await_counter(&proxy, "sessions_idle_total", 2);
    release.send(()).unwrap();
    waiting.receive();
}

#[test]
fn a_client_that_takes_no_answers_is_disconnected() {
    // Far more than sockets hold.
    let large = vec![0; 50_000_000];
    let broker = Broker::start(move |seen| {
        let mut frame = u32::try_from(large.len() + 4).unwrap().to_be_bytes().to_vec();
        frame.extend(seen.correlation_id.to_be_bytes());
        frame.extend(&large);
        Act::Send(frame)
    });
    let limits = Limits { idle_timeout: LONG, slow_reader_timeout: SHORT, ..Limits::default() };
    let proxy = limited(broker.address, limits);
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&encode(4, 1, &heartbeat()));
    await_counter(&proxy, "sessions_slow_reader_total", 1);
    assert_eq!(counter(&proxy, "sessions_idle_total"), 0);
}

#[test]
fn a_request_above_the_limit_ends_its_session() {
    let broker = Broker::start(|seen| answered(seen.correlation_id));
    let request = encode(4, 1, &heartbeat());
    let limits = Limits { frame_bytes_max: request.len() - 4, ..Limits::default() };
    let proxy = limited(broker.address, limits);
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(4, &heartbeat());
    let mut larger = request;
    larger[3] += 1;
    client.send(&larger);
    assert!(client.is_closed());
    await_counter(&proxy, "frames_malformed_total{side=\"downstream\"}", 1);
}

#[test]
fn no_more_is_held_of_a_stranger_than_kafka_holds() {
    let broker = Broker::start(|seen| answered(seen.correlation_id));
    let proxy = limited(broker.address, Limits::default());
    let auth_bytes = vec![0; 600 << 10].into();
    let request = SaslAuthenticateRequest { auth_bytes, ..Default::default() };
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&encode(2, 1, &request)[..100]);
    assert!(client.is_closed(), "its length alone tells");
    await_counter(&proxy, "frames_malformed_total{side=\"downstream\"}", 1);
}

#[test]
fn an_address_with_too_many_connections_gets_no_more_until_one_ends() {
    let broker = Broker::start(|seen| answered(seen.correlation_id));
    let mut limits = Limits::default();
    limits.listener.connections_per_address_max = 2;
    let proxy = limited(broker.address, limits);
    let mut clients = [(); 2].map(|()| Client::connect(bootstrap(&proxy)));
    clients.iter_mut().for_each(|client| drop(client.call(4, &heartbeat())));
    assert!(Client::connect(bootstrap(&proxy)).is_closed());
    drop(clients);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while Client::connect(bootstrap(&proxy)).try_call(4, &heartbeat()).is_err() {
        assert!(std::time::Instant::now() < deadline, "the place is not free again");
    }
}

/// Tells where clients come from.
#[derive(Debug)]
struct Locating(Mutex<mpsc::Sender<SocketAddr>>);

impl Filter for Locating {
    fn name(&self) -> &'static str {
        "locating"
    }

    fn claims(&self, _: ApiKey, _: Direction) -> bool {
        false
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        assert_eq!(session.virtual_cluster(), "main");
        self.0.lock().unwrap().send(session.client_address()).unwrap();
        Rc::new(Nothing)
    }
}

struct Nothing;

impl SessionFilter for Nothing {}

#[test]
fn the_address_behind_a_load_balancer_is_known_and_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap();
    let (told, tells) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut header = [0; 28];
            stream.unwrap().read_exact(&mut header).unwrap();
            told.send(proxy_protocol::parse(&header).unwrap().unwrap().source).unwrap();
        }
    });
    let (located, locates) = mpsc::channel();
    let cluster = cluster("main", any_ports(), &[upstream]);
    let proxy = Proxy::start(config(vec![VirtualCluster {
        proxy_protocol: Mode::Required,
        upstream: UpstreamSettings { proxy_protocol: true, ..cluster.upstream.clone() },
        filters: vec![Arc::new(Locating(Mutex::new(located)))],
        ..cluster
    }]))
    .unwrap();
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(b"PROXY TCP4 192.0.2.1 127.0.0.1 50000 9092\r\n");
    client.send(&encode(4, 1, &heartbeat()));
    let source: SocketAddr = "192.0.2.1:50000".parse().unwrap();
    // The proxy's own first look at the cluster speaks for itself.
    assert!(tells.iter().any(|told| told == Some(source)));
    assert_eq!(locates.recv(), Ok(source));
    assert!(Client::connect(bootstrap(&proxy)).is_closed());
}
