//! Scripted brokers, a proxy before them, and a client of plain sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use moldau_protocol::messages::metadata_response::MetadataResponseBroker;
use moldau_protocol::messages::{ApiKey, ApiVersionsResponse, MetadataResponse};
use moldau_protocol::{Message, Reader, Request, frame};
use moldau_proxy::{Admin, Config, Filter, Gateway, Proxy, VirtualCluster};

/// Longer than anything takes, so that a hang fails a test instead of blocking it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as a scripted broker sees it.
pub(crate) struct Seen {
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
    pub(crate) correlation_id: i32,
    /// The frame without its length.
    pub(crate) frame: Vec<u8>,
}

/// How a scripted broker handles a request.
pub(crate) enum Act {
    /// Sends these bytes, as they are.
    Send(Vec<u8>),
    /// Sends nothing.
    Silence,
    /// Closes the connection.
    Close,
}

/// A broker that does what its script says, until the process ends.
pub(crate) struct Broker {
    pub(crate) address: SocketAddr,
}

impl Broker {
    /// The proxy's own request at its start is answered with no brokers.
    pub(crate) fn start(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with(|_| move |seen: &Seen| script(seen))
    }

    /// As [`start`](Self::start), for scripts that tell the broker's own address.
    pub(crate) fn start_with<S>(script: impl FnOnce(SocketAddr) -> S) -> Self
    where
        S: Fn(&Seen) -> Act + Send + Sync + 'static,
    {
        Self::start_with_all(|address| {
            let script = script(address);
            move |seen: &Seen| own_request(seen).unwrap_or_else(|| script(seen))
        })
    }

    /// As [`start`](Self::start), for scripts that answer the proxy as well.
    pub(crate) fn start_all(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with_all(|_| script)
    }

    /// As [`start_with`](Self::start_with), for scripts that answer the proxy as well.
    pub(crate) fn start_with_all<S>(script: impl FnOnce(SocketAddr) -> S) -> Self
    where
        S: Fn(&Seen) -> Act + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(script(address));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let script = Arc::clone(&script);
                thread::spawn(move || serve(stream.unwrap(), &*script));
            }
        });
        Self { address }
    }
}

/// The answer to what the proxy asks of its own accord.
fn own_request(seen: &Seen) -> Option<Act> {
    let peek = frame::peek(&seen.frame).unwrap();
    let Seen { api_key, api_version, correlation_id, .. } = *seen;
    match (peek.client_id, api_key, api_version) {
        (Some("moldau-proxy"), 18, 3) => {
            let versions = ApiVersionsResponse::default();
            Some(Act::Send(answer(ApiKey::ApiVersions, 3, correlation_id, &versions)))
        }
        (Some("moldau-proxy"), 3, 7) => {
            let brokers = MetadataResponse::default();
            Some(Act::Send(answer(ApiKey::Metadata, 7, correlation_id, &brokers)))
        }
        _ => None,
    }
}

fn serve(mut stream: TcpStream, script: &dyn Fn(&Seen) -> Act) {
    while let Ok(frame) = read_frame(&mut stream) {
        let peek = frame::peek(&frame).unwrap();
        let (api_key, api_version) = (peek.api_key, peek.api_version);
        let correlation_id = peek.correlation_id;
        let act = script(&Seen { api_key, api_version, correlation_id, frame });
        match act {
            Act::Send(bytes) if stream.write_all(&bytes).is_ok() => {}
            Act::Silence => {}
            Act::Send(_) | Act::Close => return,
        }
    }
}

/// A proxy before `upstream`, on addresses of its own.
pub(crate) fn proxy(upstream: &[SocketAddr]) -> Proxy {
    proxy_at("127.0.0.1:0".parse().unwrap(), 0, upstream)
}

pub(crate) fn proxy_at(bootstrap: SocketAddr, ports: u16, upstream: &[SocketAddr]) -> Proxy {
    start(bootstrap, ports, upstream, Vec::new())
}

/// A proxy with filters before `upstream`, on addresses of its own.
pub(crate) fn proxy_with(upstream: &[SocketAddr], filters: Vec<Arc<dyn Filter>>) -> Proxy {
    start("127.0.0.1:0".parse().unwrap(), 0, upstream, filters)
}

fn start(
    bootstrap: SocketAddr,
    ports: u16,
    upstream: &[SocketAddr],
    filters: Vec<Arc<dyn Filter>>,
) -> Proxy {
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: ports };
    let cluster = cluster("main", gateway, upstream);
    Proxy::start(config(vec![VirtualCluster { filters, ..cluster }])).unwrap()
}

/// A configuration with an admin port and two threads.
pub(crate) fn config(virtual_clusters: Vec<VirtualCluster>) -> Config {
    Config {
        admin: Some(Admin { listen: "127.0.0.1:0".parse().unwrap(), reload_token: None }),
        memory_bytes: 1 << 30,
        network_threads: 2,
        traces: None,
        drain_timeout: PATIENCE,
        virtual_clusters,
    }
}

/// Ports that the system chooses.
pub(crate) fn any_ports() -> Gateway {
    let bootstrap = "127.0.0.1:0".parse().unwrap();
    Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 }
}

pub(crate) fn cluster(name: &str, gateway: Gateway, upstream: &[SocketAddr]) -> VirtualCluster {
    let servers = upstream.iter().map(SocketAddr::to_string).collect();
    VirtualCluster::plain(name, gateway, servers)
}

pub(crate) fn bootstrap(proxy: &Proxy) -> SocketAddr {
    proxy.bootstrap_addresses()[0].1
}

/// The value of a counter on the proxy's metrics page, 0 if it is not there.
pub(crate) fn counter(proxy: &Proxy, name: &str) -> u64 {
    let (_, page) = admin_page(proxy, "/metrics");
    let line = page.lines().find(|line| line.starts_with(&format!("moldau_proxy_{name}")));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Asks for a counter until it has `value`.
pub(crate) fn await_counter(proxy: &Proxy, name: &str, value: u64) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while counter(proxy, name) != value {
        assert!(std::time::Instant::now() < deadline, "{name} stays {}", counter(proxy, name));
        thread::yield_now();
    }
}

/// A client's connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next frame without its length.
    pub(crate) fn receive(&mut self) -> Vec<u8> {
        read_frame(&mut self.stream).unwrap()
    }

    /// Sends a request and decodes the body of what comes back.
    pub(crate) fn call<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        self.send(&encode(version, 7, request));
        decode(Q::KEY, version, 7, &self.receive())
    }

    /// As [`call`](Self::call), for connections that may be closed.
    pub(crate) fn try_call<Q: Request>(
        &mut self,
        version: i16,
        request: &Q,
    ) -> io::Result<Q::Response> {
        self.stream.write_all(&encode(version, 7, request))?;
        Ok(decode(Q::KEY, version, 7, &read_frame(&mut self.stream)?))
    }

    /// Whether the proxy closed the connection without a further byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        let _sent_nothing_more = self.stream.shutdown(Shutdown::Write);
        match self.stream.read(&mut [0; 16]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

pub(crate) fn encode<Q: Request>(version: i16, correlation_id: i32, request: &Q) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, correlation_id, Some("test"), request).unwrap();
    bytes.to_vec()
}

pub(crate) fn answer<M: Message>(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    message: &M,
) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame::encode_response(&mut bytes, api, version, correlation_id, message).unwrap();
    bytes.to_vec()
}

pub(crate) fn decode<M: Message>(api: ApiKey, version: i16, id: i32, frame: &[u8]) -> M {
    let (correlation_id, body) = frame::parse_response(frame, api, version).unwrap();
    assert_eq!(correlation_id, id);
    let mut reader = Reader::new(body);
    let message = M::decode(&mut reader, version).unwrap();
    reader.finish().unwrap();
    message
}

pub(crate) fn read_frame(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

/// The request that a scripted broker sees.
pub(crate) fn request_of<Q: Request>(seen: &Seen) -> Q {
    let (header, body) = frame::RequestHeader::parse(&seen.frame).unwrap();
    Q::decode(&mut Reader::new(body), header.api_version).unwrap()
}

/// The status and the body of an admin page.
pub(crate) fn admin_page(proxy: &Proxy, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(proxy.admin_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// A broker in a Metadata answer.
pub(crate) fn metadata_broker(node_id: i32, address: SocketAddr) -> MetadataResponseBroker {
    MetadataResponseBroker {
        node_id,
        host: address.ip().to_string(),
        port: i32::from(address.port()),
        ..MetadataResponseBroker::default()
    }
}
