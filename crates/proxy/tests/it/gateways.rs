//! Gateways by host name, TLS, SASL that the proxy answers, and brokers that come and go.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use moldau_net::sasl::{
    AUTHENTICATION_BYTES_MAX, Mechanism, SaslClient, SaslCredentials, SaslServer,
    SaslServerSettings, SaslStep, ScramCredential, Users,
};
use moldau_net::tls::ServerTls;
use moldau_protocol::ApiKey;
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, HeartbeatRequest, HeartbeatResponse, MetadataRequest,
    MetadataResponse, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};
use moldau_proxy::{
    Direction, Filter, Gateway, Proxy, Sasl, Security, SessionContext, SessionFilter,
    UpstreamSettings, VirtualCluster,
};
use zeroize::Zeroizing;

use crate::tls::{Certificate, TlsClient, server_tls, settings};
use crate::world::{
    Act, Broker, Client, Seen, admin_page, answer, any_ports, await_counter, bootstrap, cluster,
    config, counter, encode, metadata_broker, request_of,
};

/// Answers heartbeats with a number of its own.
fn numbered(number: i32) -> Broker {
    Broker::start(move |seen| {
        let response = HeartbeatResponse { throttle_time_ms: number, ..Default::default() };
        Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
    })
}

/// Tells of one broker with the id 7, which is itself.
fn telling(number: i32) -> Broker {
    Broker::start_with_all(move |address| {
        move |seen: &Seen| match seen.api_key {
            18 => api_versions(seen),
            3 => metadata(seen, vec![(7, address)]),
            _ => {
                let response = HeartbeatResponse { throttle_time_ms: number, ..Default::default() };
                Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
            }
        }
    })
}

fn api_versions(seen: &Seen) -> Act {
    let offers = [(3, 0, 13), (12, 0, 4), (18, 0, 4)];
    let api_keys = offers.map(|(api_key, min_version, max_version)| ApiVersion {
        api_key,
        min_version,
        max_version,
        ..Default::default()
    });
    let response = ApiVersionsResponse { api_keys: api_keys.into(), ..Default::default() };
    Act::Send(answer(ApiKey::ApiVersions, seen.api_version, seen.correlation_id, &response))
}

fn metadata(seen: &Seen, brokers: Vec<(i32, SocketAddr)>) -> Act {
    let brokers = brokers.into_iter().map(|(id, address)| metadata_broker(id, address)).collect();
    let response = MetadataResponse { brokers, ..Default::default() };
    Act::Send(answer(ApiKey::Metadata, seen.api_version, seen.correlation_id, &response))
}

/// A virtual cluster whose hosts are `NAME.example` and `b-ID.NAME.example`.
fn by_host(name: &str, tls: &Arc<ServerTls>, upstream: SocketAddr) -> VirtualCluster {
    let gateway = Gateway::Sni {
        listen: "127.0.0.1:0".parse().unwrap(),
        bootstrap_host: format!("{name}.example"),
        broker_host: format!("b-$(nodeId).{name}.example"),
        advertised_port: None,
    };
    let downstream = Security { tls: Some(Arc::clone(tls)), sasl: Sasl::Passthrough };
    VirtualCluster { downstream, ..cluster(name, gateway, &[upstream]) }
}

fn heartbeat() -> HeartbeatRequest {
    HeartbeatRequest::default()
}

#[test]
fn hosts_of_several_clusters_share_a_listener() {
    let certificate =
        Certificate::of(&["a.example", "b-7.a.example", "b.example", "b-7.b.example"]);
    let tls = Arc::new(server_tls(&certificate, None));
    let (a, b) = (telling(1), telling(2));
    let clusters = vec![by_host("a", &tls, a.address), by_host("b", &tls, b.address)];
    let proxy = Proxy::start(config(clusters)).unwrap();
    let address = bootstrap(&proxy);
    for (name, number) in [("a", 1), ("b", 2)] {
        let connect = |host: &str| TlsClient::connect(address, host, &certificate, None);
        let mut client = connect(&format!("{name}.example"));
        assert_eq!(client.call(4, &heartbeat()).throttle_time_ms, number);
        let told = client.call(9, &MetadataRequest::default()).brokers.remove(0);
        assert_eq!(told.host, format!("b-7.{name}.example"));
        assert_eq!(told.port, i32::from(address.port()));
        assert_eq!(connect(&told.host).call(4, &heartbeat()).throttle_time_ms, number);
    }
}

#[test]
fn a_host_that_is_unknown_is_refused_by_name() {
    let certificate = Certificate::of(&["a.example", "other.example"]);
    let tls = Arc::new(server_tls(&certificate, None));
    let broker = numbered(1);
    let proxy = Proxy::start(config(vec![by_host("a", &tls, broker.address)])).unwrap();
    let refusal =
        TlsClient::connect(bootstrap(&proxy), "other.example", &certificate, None).refusal();
    assert!(refusal.contains("UnrecognisedName"), "{refusal}");
    await_counter(&proxy, "unknown_hosts_total", 1);
    let mut client = TlsClient::connect(bootstrap(&proxy), "a.example", &certificate, None);
    client.call(4, &heartbeat());
}

/// Remembers the principal of the last heartbeat.
#[derive(Debug, Default)]
struct Asking {
    principal: Mutex<String>,
}

impl Filter for Asking {
    fn name(&self) -> &'static str {
        "asking"
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        (api, direction) == (ApiKey::Heartbeat, Direction::Request)
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(AskingSession { filter: self, context: session.clone() })
    }
}

struct AskingSession {
    filter: Arc<Asking>,
    context: SessionContext,
}

impl SessionFilter for AskingSession {
    fn request(
        self: Rc<Self>,
        request: moldau_proxy::RequestFrame,
        _: moldau_proxy::Upstream,
    ) -> moldau_proxy::FilterFuture<moldau_proxy::RequestOutcome> {
        *self.filter.principal.lock().unwrap() = self.context.principal().to_string();
        Box::pin(std::future::ready(Ok(moldau_proxy::RequestOutcome::Forward(request))))
    }
}

#[test]
fn a_certificate_tells_who_a_client_is_and_is_exchanged_while_it_stays_connected() {
    let (own, clients) = (Certificate::of(&["a.example"]), Certificate::of(&["alice"]));
    let tls = Arc::new(server_tls(&own, Some(&clients)));
    let (broker, asking) = (numbered(1), Arc::new(Asking::default()));
    let downstream = Security { tls: Some(Arc::clone(&tls)), sasl: Sasl::Passthrough };
    let filters: Vec<Arc<dyn Filter>> = vec![Arc::<Asking>::clone(&asking)];
    let cluster = cluster("main", any_ports(), &[broker.address]);
    let proxy =
        Proxy::start(config(vec![VirtualCluster { downstream, filters, ..cluster }])).unwrap();
    let address = bootstrap(&proxy);
    let mut client = TlsClient::connect(address, "a.example", &own, Some(&clients));
    client.call(4, &heartbeat());
    assert_eq!(*asking.principal.lock().unwrap(), "User:CN=alice");
    let renewed = Certificate::of(&["a.example"]);
    tls.replace(settings(&renewed, Some(&clients))).unwrap();
    client.call(4, &heartbeat());
    TlsClient::connect(address, "a.example", &renewed, Some(&clients)).call(4, &heartbeat());
    TlsClient::connect(address, "a.example", &own, Some(&clients)).refusal();
    TlsClient::connect(address, "a.example", &renewed, None).refusal();
    await_counter(&proxy, "handshake_failures_total", 2);
    assert_eq!(counter(&proxy, "refusals_total{cause=\"tls_certificate\"}"), 1);
}

fn sasl_server(password: &str, max_reauthentication: Option<Duration>) -> Arc<SaslServer> {
    let mut users = Users::default();
    users.insert_password("alice", Zeroizing::new(password.to_owned()));
    let scram = Mechanism::ScramSha256;
    let credential = ScramCredential::derive(scram, password, b"some salt", 4096);
    users.insert_scram(scram, "alice", credential);
    let settings = SaslServerSettings {
        mechanisms: vec![Mechanism::Plain, scram],
        credentials: Arc::new(users),
        tokens: None,
        max_reauthentication,
    };
    Arc::new(SaslServer::new(settings).unwrap())
}

fn plain(user: &str, password: &str) -> SaslAuthenticateRequest {
    let auth_bytes = format!("\0{user}\0{password}").into();
    SaslAuthenticateRequest { auth_bytes, ..Default::default() }
}

fn choose() -> SaslHandshakeRequest {
    SaslHandshakeRequest { mechanism: "PLAIN".to_owned() }
}

/// A proxy that authenticates clients in front of `upstream`, and who was seen.
fn terminating(upstream: SocketAddr, expires: Option<Duration>) -> (Proxy, Arc<Asking>) {
    let asking = Arc::new(Asking::default());
    let downstream = Security { tls: None, sasl: Sasl::Terminate(sasl_server("secret", expires)) };
    let filters: Vec<Arc<dyn Filter>> = vec![Arc::<Asking>::clone(&asking)];
    let cluster = cluster("main", any_ports(), &[upstream]);
    let proxy = Proxy::start(config(vec![VirtualCluster { downstream, filters, ..cluster }]));
    (proxy.unwrap(), asking)
}

/// From a client that names its software.
fn versions() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "tester".to_owned(),
        client_software_version: "1".to_owned(),
        ..Default::default()
    }
}

#[test]
fn a_client_authenticates_with_the_proxy_before_anything_reaches_the_cluster() {
    let broker = telling(1);
    let (proxy, asking) = terminating(broker.address, None);
    let mut client = Client::connect(bootstrap(&proxy));
    let refused = client.call(3, &ApiVersionsRequest::default());
    assert_eq!((refused.error_code, refused.api_keys), (42, Vec::new()));
    let versions = client.call(3, &versions()).api_keys;
    let versions = versions.iter().map(|api| (api.api_key, api.min_version, api.max_version));
    let offered: Vec<_> = versions.collect();
    assert_eq!(offered, [(3, 0, 13), (12, 0, 4), (18, 0, 4), (17, 0, 1), (36, 0, 2)]);
    assert_eq!(client.call(1, &choose()).error_code, 0);
    assert_eq!(client.call(2, &plain("alice", "secret")).error_code, 0);
    assert_eq!(client.call(4, &heartbeat()).throttle_time_ms, 1);
    assert_eq!(*asking.principal.lock().unwrap(), "User:alice");
    // KIP-368: the same again while the session goes on.
    assert_eq!(client.call(1, &choose()).error_code, 0);
    assert_eq!(client.call(2, &plain("alice", "secret")).error_code, 0);
    assert_eq!(client.call(4, &heartbeat()).throttle_time_ms, 1);
    assert_eq!(counter(&proxy, "authentications_total"), 1);
}

#[test]
fn wrong_credentials_get_an_error_and_end_the_connection() {
    let broker = telling(1);
    let (proxy, _) = terminating(broker.address, None);
    for (user, password) in [("alice", "guess"), ("nobody", "secret")] {
        let mut client = Client::connect(bootstrap(&proxy));
        client.call(1, &choose());
        assert_eq!(client.call(2, &plain(user, password)).error_code, 58);
        assert!(client.is_closed());
    }
    let mut hasty = Client::connect(bootstrap(&proxy));
    hasty.send(&encode(4, 1, &heartbeat()));
    assert!(hasty.is_closed());
    let mut again = Client::connect(bootstrap(&proxy));
    again.call(1, &choose());
    again.call(2, &plain("alice", "secret"));
    again.call(1, &choose());
    assert_eq!(again.call(2, &plain("alice", "guess")).error_code, 58);
    assert!(again.is_closed());
    await_counter(&proxy, "authentication_failures_total", 4);
    assert_eq!(counter(&proxy, "refusals_total{cause=\"authentication\"}"), 3);
    assert_eq!(counter(&proxy, "refusals_total{cause=\"frame_refused\"}"), 1);
}

/// A client's token, as a frame.
fn token_frame(token: &[u8]) -> Vec<u8> {
    let length = u32::try_from(token.len()).unwrap().to_be_bytes();
    [&length[..], token].concat()
}

#[test]
fn bare_tokens_follow_a_handshake_of_version_0() {
    let broker = telling(1);
    let (proxy, asking) = terminating(broker.address, None);
    for mechanism in [Mechanism::Plain, Mechanism::ScramSha256] {
        let (user, password) = ("alice".to_owned(), Zeroizing::new("secret".to_owned()));
        let own = SaslClient::new(match mechanism {
            Mechanism::Plain => SaslCredentials::Plain { user, password },
            _ => SaslCredentials::Scram { mechanism, user, password },
        });
        let own = own.unwrap();
        let Poll::Ready(exchange) = pin!(own.begin()).poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("nothing is waited for");
        };
        let (mut exchange, mut client) = (exchange.unwrap(), Client::connect(bootstrap(&proxy)));
        let mut message = exchange.chosen(&client.call(0, &exchange.handshake())).unwrap();
        loop {
            client.send(&token_frame(&message.auth_bytes));
            let auth_bytes = client.receive().into();
            let answer = SaslAuthenticateResponse { auth_bytes, ..Default::default() };
            match exchange.answered(&answer).unwrap() {
                SaslStep::Send(next) => message = next,
                SaslStep::Done { .. } => break,
            }
        }
        assert_eq!(client.call(4, &heartbeat()).throttle_time_ms, 1);
        assert_eq!(*asking.principal.lock().unwrap(), "User:alice");
    }
    assert_eq!(counter(&proxy, "authentications_total"), 2);
}

#[test]
fn bare_tokens_that_are_wrong_close_the_connection_without_an_answer() {
    let broker = telling(1);
    let (proxy, _) = terminating(broker.address, None);
    for sent in [
        token_frame(b"\0alice\0guess"),
        token_frame(b""),
        token_frame(&[0xff; 100]),
        u32::try_from(AUTHENTICATION_BYTES_MAX + 1).unwrap().to_be_bytes().to_vec(),
        encode(2, 1, &plain("alice", "secret")),
        encode(1, 1, &choose()),
    ] {
        let mut client = Client::connect(bootstrap(&proxy));
        assert_eq!(client.call(0, &choose()).error_code, 0);
        client.send(&sent);
        assert!(client.is_closed(), "{} bytes", sent.len());
    }
    await_counter(&proxy, "authentication_failures_total", 6);
    // The other way round, and in the middle of a session, where no token is awaited.
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(1, &choose());
    client.send(&token_frame(b"\0alice\0secret"));
    assert!(client.is_closed());
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(1, &choose());
    assert_eq!(client.call(2, &plain("alice", "secret")).error_code, 0);
    assert_eq!(client.call(0, &choose()).error_code, 35);
    assert!(client.is_closed());
}

#[test]
fn a_session_whose_authentication_ran_out_takes_no_more_requests() {
    let broker = telling(1);
    let lifetime = Duration::from_millis(1);
    let (proxy, _) = terminating(broker.address, Some(lifetime));
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(1, &choose());
    client.call(2, &plain("alice", "secret"));
    // The lifetime began before its answer came.
    let answered = Instant::now();
    while answered.elapsed() <= lifetime {
        std::thread::yield_now();
    }
    client.send(&encode(4, 1, &heartbeat()));
    assert!(client.is_closed());
    await_counter(&proxy, "sasl_sessions_expired_total", 1);
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(1, &choose());
    client.call(2, &plain("alice", "secret"));
    // It may be believed for a moment yet, but not hold its connection in this way.
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.try_call(3, &versions()).is_ok() {
        assert!(Instant::now() < deadline, "it is still served");
    }
    await_counter(&proxy, "sasl_sessions_expired_total", 2);
}

#[test]
fn user_reload_keeps_clients_connected() {
    let broker = telling(1);
    let with = |password: &str| {
        let server = sasl_server(password, None);
        let downstream = Security { tls: None, sasl: Sasl::Terminate(server) };
        config(vec![VirtualCluster {
            downstream,
            ..cluster("main", any_ports(), &[broker.address])
        }])
    };
    let proxy = Proxy::start(with("secret")).unwrap();
    let log_in = |client: &mut Client, password: &str| {
        assert_eq!(client.call(1, &choose()).error_code, 0);
        client.call(2, &plain("alice", password)).error_code
    };
    let [mut first, mut second] = [0; 2].map(|_| Client::connect(bootstrap(&proxy)));
    assert_eq!((log_in(&mut first, "secret"), log_in(&mut second, "secret")), (0, 0));
    proxy.reload(with("other")).unwrap();
    for (password, code) in [("secret", 58), ("other", 0)] {
        assert_eq!(log_in(&mut Client::connect(bootstrap(&proxy)), password), code);
    }
    // Those that stand go on, and repeat with what counts by now.
    assert_eq!(first.call(4, &heartbeat()).throttle_time_ms, 1);
    assert_eq!((log_in(&mut first, "other"), log_in(&mut second, "secret")), (0, 58));
    assert_eq!(first.call(4, &heartbeat()).throttle_time_ms, 1);
    assert!(second.is_closed());
}

/// A broker that demands the password first, and accepts it for a lifetime. Counts how often it got
/// the password.
fn demanding(lifetime_ms: i64, told: &Arc<AtomicUsize>) -> Broker {
    let told = Arc::clone(told);
    Broker::start_all(move |seen| match seen.api_key {
        17 => {
            let mechanisms = vec!["PLAIN".to_owned()];
            let response = SaslHandshakeResponse { error_code: 0, mechanisms };
            Act::Send(answer(ApiKey::SaslHandshake, 1, seen.correlation_id, &response))
        }
        36 => {
            let request: SaslAuthenticateRequest = request_of(seen);
            assert_eq!(request.auth_bytes, &b"\0proxy\0upstream"[..]);
            told.fetch_add(1, Ordering::SeqCst);
            let session_lifetime_ms = lifetime_ms;
            let response = SaslAuthenticateResponse { session_lifetime_ms, ..Default::default() };
            Act::Send(answer(ApiKey::SaslAuthenticate, 2, seen.correlation_id, &response))
        }
        _ if told.load(Ordering::SeqCst) == 0 => Act::Close,
        18 => api_versions(seen),
        3 => metadata(seen, Vec::new()),
        _ => {
            let response = HeartbeatResponse::default();
            Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
        }
    })
}

fn initiating(upstream: SocketAddr) -> Proxy {
    let (user, password) = ("proxy".to_owned(), Zeroizing::new("upstream".to_owned()));
    let client = SaslClient::new(SaslCredentials::Plain { user, password }).unwrap();
    let cluster = cluster("main", any_ports(), &[upstream]);
    let upstream = UpstreamSettings { sasl: Some(Arc::new(client)), ..cluster.upstream.clone() };
    Proxy::start(config(vec![VirtualCluster { upstream, ..cluster }])).unwrap()
}

#[test]
fn the_proxy_authenticates_with_its_own_credentials() {
    let told = Arc::default();
    let broker = demanding(0, &told);
    let proxy = initiating(broker.address);
    Client::connect(bootstrap(&proxy)).call(4, &heartbeat());
    await_counter(&proxy, "cluster_reached{virtual_cluster=\"main\"}", 1);
    assert_eq!(counter(&proxy, "upstream_renewals_total"), 0);
}

#[test]
fn the_proxy_authenticates_anew_while_a_client_goes_on() {
    let told = Arc::default();
    let broker = demanding(50, &told);
    let proxy = initiating(broker.address);
    let mut client = Client::connect(bootstrap(&proxy));
    while counter(&proxy, "upstream_renewals_total") < 3 {
        for id in 0..20 {
            client.send(&encode(4, id, &heartbeat()));
        }
        for id in 0..20_i32 {
            assert_eq!(client.receive()[..4], id.to_be_bytes());
        }
    }
    assert!(told.load(Ordering::SeqCst) >= 4);
}

#[test]
fn the_proxy_is_ready_once_its_clusters_have_answered() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let broker = Broker::start_all(move |seen| match seen.api_key {
        _ if !is_up.load(Ordering::SeqCst) => Act::Close,
        18 => api_versions(seen),
        _ => metadata(seen, Vec::new()),
    });
    let proxy =
        Proxy::start(config(vec![cluster("late", any_ports(), &[broker.address])])).unwrap();
    assert_eq!(admin_page(&proxy, "/readyz"), (503, "not reached: late\n".to_owned()));
    up.store(true, Ordering::SeqCst);
    await_counter(&proxy, "cluster_reached{virtual_cluster=\"late\"}", 1);
    assert_eq!(admin_page(&proxy, "/readyz"), (200, "ready\n".to_owned()));
}

#[test]
fn a_broker_that_moved_is_found_since_clients_were_refused() {
    let moved = Arc::new(AtomicBool::new(false));
    let is_moved = Arc::clone(&moved);
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broker = Broker::start_with_all(move |address| {
        move |seen: &Seen| match seen.api_key {
            18 => api_versions(seen),
            3 if is_moved.load(Ordering::SeqCst) => metadata(seen, vec![(7, address)]),
            3 => metadata(seen, vec![(7, nowhere)]),
            _ => {
                let response = HeartbeatResponse::default();
                Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
            }
        }
    });
    let proxy =
        Proxy::start(config(vec![cluster("main", any_ports(), &[broker.address])])).unwrap();
    let mut client = Client::connect(bootstrap(&proxy));
    let told = client.call(9, &MetadataRequest::default()).brokers.remove(0);
    let port = SocketAddr::new([127, 0, 0, 1].into(), u16::try_from(told.port).unwrap());
    assert!(Client::connect(port).is_closed());
    moved.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        assert!(Instant::now() < deadline, "the broker is not found");
        let mut client = Client::connect(port);
        if client.try_call(4, &heartbeat()).is_ok() {
            break;
        }
    }
}
