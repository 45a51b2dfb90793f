//! What a session costs while nothing happens on it, counted by its allocations.

use moldau_net::tls::{
    ClientAuthentication, ClientTls, ClientTlsSettings, CryptoProvider, Identity, PrincipalMapping,
    ServerTls, ServerTlsSettings, TrustAnchors,
};
use moldau_protocol::frame;
use moldau_protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use moldau_protocol::{ApiKey, Message, Reader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::config::{Limits, Security, UpstreamSettings, VirtualCluster};
use crate::unserved::unserved;

const SESSIONS: u64 = 20;

/// TLS for both sides of the proxy, and for its clients.
struct Tls {
    server: Arc<ServerTls>,
    client: Arc<ClientTls>,
}

impl Tls {
    fn new() -> Self {
        let names = vec!["127.0.0.1".to_owned()];
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (cert.pem(), signing_key.serialize_pem());
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let server = ServerTls::new(ServerTlsSettings {
            identities: vec![(None, identity)],
            client_authentication: ClientAuthentication::None,
            client_trust: None,
            provider: CryptoProvider::default(),
            principal_mapping: PrincipalMapping::default(),
        });
        let client = ClientTls::new(ClientTlsSettings {
            trust: TrustAnchors::from_pem(certificate.as_bytes()).unwrap(),
            identity: None,
            provider: CryptoProvider::default(),
            verify_host_name: true,
        });
        Self { server: Arc::new(server.unwrap()), client: Arc::new(client.unwrap()) }
    }
}

/// A cluster whose only server answers heartbeats, with TLS on both sides if there is any.
async fn cluster(tls: Option<&Tls>) -> (moldau_net::NetworkThreads, Arc<Cluster>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap().to_string();
    let broker_tls = tls.map(|tls| Arc::clone(&tls.server));
    spawn_local(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let tls = broker_tls.clone();
            spawn_local(async move {
                let deadline = Instant::now() + std::time::Duration::from_secs(20);
                let mut stream = match tls {
                    Some(tls) => tls.accept(socket, deadline).await.unwrap().stream,
                    None => socket.into(),
                };
                while let Ok(request) = read_frame(&mut stream).await {
                    let id = frame::peek(&request).unwrap().correlation_id;
                    let mut bytes = bytes::BytesMut::new();
                    let response = HeartbeatResponse::default();
                    frame::encode_response(&mut bytes, ApiKey::Heartbeat, 4, id, &response)
                        .unwrap();
                    stream.write_all(&bytes).await.unwrap();
                    stream.flush().await.unwrap();
                }
            });
        }
    });
    let (threads, cluster) = unserved(Vec::new());
    let config = &cluster.settings().config;
    let downstream =
        Security { tls: tls.map(|tls| Arc::clone(&tls.server)), sasl: Sasl::Passthrough };
    let upstream = UpstreamSettings {
        servers: vec![server],
        tls: tls.map(|tls| Arc::clone(&tls.client)),
        ..UpstreamSettings::default()
    };
    let limits = Limits::default();
    let config = VirtualCluster { downstream, upstream, limits, ..config.clone() };
    let bootstrap = SocketAddr::from(([127, 0, 0, 1], 0));
    let entrance = Entrance::new(&config.gateway, bootstrap, config.proxy_protocol, None).unwrap();
    cluster.replace(config, entrance);
    (threads, cluster)
}

async fn read_frame(stream: &mut Stream) -> std::io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

/// A client that has sent a request and got its answer.
async fn client(cluster: &Arc<Cluster>, listener: &TcpListener, tls: Option<&Tls>) -> Stream {
    let address = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let ((socket, peer), client) = (accepted.unwrap(), connected.unwrap());
    let deadline = Instant::now() + std::time::Duration::from_secs(60);
    spawn_local(serve(Arc::clone(cluster), Destination::Bootstrap, socket, peer, deadline));
    let mut stream = match tls {
        Some(tls) => tls.client.connect(client, "127.0.0.1").await.unwrap(),
        None => client.into(),
    };
    let mut bytes = bytes::BytesMut::new();
    frame::encode_request(&mut bytes, 4, 1, None, &HeartbeatRequest::default()).unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.flush().await.unwrap();
    let answer = read_frame(&mut stream).await.unwrap();
    let (_, body) = frame::parse_response(&answer, ApiKey::Heartbeat, 4).unwrap();
    HeartbeatResponse::decode(&mut Reader::new(body), 4).unwrap();
    stream
}

/// Bytes that each of many sessions holds when it is idle, with all that its client and its broker
/// hold, since they run on the same thread.
fn bytes_of_idle_session(tls: Option<&Tls>) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    let (_threads, cluster) = local.block_on(&runtime, cluster(tls));
    let listener = local.block_on(&runtime, TcpListener::bind("127.0.0.1:0")).unwrap();
    // The first one fills what all share.
    let _first = local.block_on(&runtime, client(&cluster, &listener, tls));
    let mut clients = Vec::with_capacity(usize::try_from(SESSIONS).unwrap());
    let allocated = allocation_counter::measure(|| {
        for _ in 0..SESSIONS {
            clients.push(local.block_on(&runtime, client(&cluster, &listener, tls)));
        }
    });
    u64::try_from(allocated.bytes_current).unwrap() / SESSIONS
}

#[test]
fn an_idle_session_takes_less_than_20_kib() {
    let bytes = bytes_of_idle_session(None);
    assert!(bytes < 20 * 1024, "{bytes}");
}

#[test]
fn an_idle_session_with_tls_on_both_sides_takes_less_than_60_kib() {
    let bytes = bytes_of_idle_session(Some(&Tls::new()));
    assert!(bytes < 60 * 1024, "{bytes}");
}
