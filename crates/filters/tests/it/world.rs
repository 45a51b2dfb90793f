//! A scripted cluster of one broker, proxies before it, and clients of plain sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use moldau_protocol::messages::{
    ApiKey, ApiVersionsResponse, MetadataRequest, MetadataResponse, ProduceRequest,
};
use moldau_protocol::{Reader, Request, Response, frame};
use moldau_proxy::{Config, Filter, Gateway, Limits, Proxy, RequestFrame, VirtualCluster};

/// Longer than anything takes, so that a hang fails a test instead of blocking it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A cluster that answers as its script says, and notes what it was asked.
pub(crate) struct Cluster {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<ApiKey>>>,
}

impl Cluster {
    /// The script gives the body of an answer. What the proxy itself asks at its start is answered
    /// with no brokers.
    pub(crate) fn start(script: impl Fn(&RequestFrame) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (script, seen) = (Arc::new(script), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&noted));
                thread::spawn(move || serve(stream.unwrap(), &*script, &seen));
            }
        });
        Self { address, seen }
    }

    /// The APIs of the requests since the last call.
    pub(crate) fn take_seen(&self) -> Vec<ApiKey> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn serve(
    mut stream: TcpStream,
    script: &dyn Fn(&RequestFrame) -> Vec<u8>,
    seen: &Mutex<Vec<ApiKey>>,
) {
    while let Ok(frame) = read_frame(&mut stream) {
        let request = RequestFrame::parse(frame, true).unwrap();
        let (api, version) = (request.api_key(), request.api_version());
        let is_own = request.client_id() == Some("moldau-proxy");
        let of_all = |of: MetadataRequest| of.topics.is_none_or(|topics| topics.is_empty());
        let is_discovery = is_own && api == ApiKey::Metadata && request.decode().is_ok_and(of_all);
        let body = match api {
            ApiKey::ApiVersions if is_own => body(version, &ApiVersionsResponse::default()),
            _ if is_discovery => body(version, &MetadataResponse::default()),
            _ => {
                seen.lock().unwrap().push(api);
                script(&request)
            }
        };
        let is_unanswered = |of: ProduceRequest| of.acks == 0;
        if api == ApiKey::Produce && request.decode().is_ok_and(is_unanswered) {
            continue;
        }
        let mut bytes = BytesMut::from(&[0; 4][..]);
        bytes.extend_from_slice(&request.correlation_id().to_be_bytes());
        if api.response_header_version(version) > 0 {
            bytes.extend_from_slice(&[0]);
        }
        bytes.extend_from_slice(&body);
        let length = i32::try_from(bytes.len() - 4).unwrap();
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// A proxy with a virtual cluster of each name, each with its own filters.
pub(crate) fn proxy(upstream: SocketAddr, clusters: Vec<(&str, Vec<Arc<dyn Filter>>)>) -> Proxy {
    proxy_with(upstream, clusters, &Limits::default())
}

/// The same with other limits.
pub(crate) fn proxy_with(
    upstream: SocketAddr,
    clusters: Vec<(&str, Vec<Arc<dyn Filter>>)>,
    limits: &Limits,
) -> Proxy {
    let bootstrap = "127.0.0.1:0".parse().unwrap();
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    let clusters = clusters.into_iter().map(|(name, filters)| VirtualCluster {
        filters,
        limits: limits.clone(),
        ..VirtualCluster::plain(name, gateway.clone(), vec![upstream.to_string()])
    });
    Proxy::start(Config {
        admin: None,
        memory_bytes: 1 << 30,
        network_threads: 2,
        traces: None,
        drain_timeout: PATIENCE,
        virtual_clusters: clusters.collect(),
    })
    .unwrap()
}

/// The body of an answer.
pub(crate) fn body<R: Response>(version: i16, message: &R) -> Vec<u8> {
    message.to_bytes(version).unwrap().to_vec()
}

/// A client's connection.
pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    /// Connects to the virtual cluster of this index.
    pub(crate) fn connect(proxy: &Proxy, cluster: usize) -> Self {
        let stream = TcpStream::connect(proxy.bootstrap_addresses()[cluster].1).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    pub(crate) fn send<Q: Request>(&mut self, version: i16, request: &Q) {
        let mut bytes = BytesMut::new();
        frame::encode_request(&mut bytes, version, 7, Some("test"), request).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    /// Sends a request and decodes what comes back.
    pub(crate) fn call<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        self.send(version, request);
        self.receive::<Q>(version)
    }

    /// Decodes the next answer, which is to a request of this type.
    pub(crate) fn receive<Q: Request>(&mut self, version: i16) -> Q::Response {
        let answer = read_frame(&mut self.stream).unwrap();
        let (correlation_id, body) = frame::parse_response(&answer[4..], Q::KEY, version).unwrap();
        assert_eq!(correlation_id, 7);
        <Q::Response as moldau_protocol::Message>::decode(&mut Reader::new(body), version).unwrap()
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

/// A frame with its length.
fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = length.to_vec();
    frame.resize(4 + usize::try_from(i32::from_be_bytes(length)).unwrap(), 0);
    stream.read_exact(&mut frame[4..])?;
    Ok(frame)
}
