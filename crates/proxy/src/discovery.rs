//! Learns the brokers of a cluster before any client asks for them, and follows them while clients
//! cannot reach them.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use moldau_net::{FrameBuffer, Phase, Stream};
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::metadata_response::MetadataResponseBroker;
use moldau_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, MetadataRequest};
use moldau_protocol::{ErrorCode, Message, Reader, Request, frame};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use crate::cluster::Cluster;
use crate::dial;
use crate::gateway::Destination;
use crate::upstream::CLIENT_ID;

/// A version that every broker since Kafka 2.1 serves.
const METADATA_VERSION: i16 = 7;

/// The first version that tells finalized features (KIP-584), on which clients depend.
const API_VERSIONS_VERSION: i16 = 3;

/// The largest answer that is read: brokers only, since no topic is asked for.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// A server that does not answer for this long is left alone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses between attempts grow from the one to the other.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Brokers are asked for anew after this time even if no client was refused; Kafka's
/// `metadata.max.age.ms`.
const REFRESH: Duration = Duration::from_mins(5);

/// Asks until the brokers are known, then again whenever a client was refused, until the virtual
/// cluster ends. If the cluster demands authentication and the proxy has no credentials, the
/// brokers are learned from the answers to clients.
pub(crate) async fn run(cluster: Arc<Cluster>) {
    let shutdown = cluster.shutdown().clone();
    tokio::select! {
        () = follow(&cluster) => {}
        () = shutdown.reached(Phase::Draining) => {}
    }
}

async fn follow(cluster: &Arc<Cluster>) {
    let mut pause = PAUSE_MIN;
    loop {
        if timeout(ANSWER_TIMEOUT, ask(cluster)).await.ok().flatten().is_some() {
            pause = PAUSE_MIN;
            drop(timeout(REFRESH, cluster.discovery_wanted()).await);
        } else {
            pause = (pause * 2).min(PAUSE_MAX);
        }
        sleep(pause).await;
    }
}

async fn ask(cluster: &Arc<Cluster>) -> Option<()> {
    let mut stream = dial::connect(cluster, Destination::Bootstrap, None).await?.stream;
    let api_versions = ask_api_versions(&mut stream).await?;
    cluster.reached(api_versions);
    let no_topics: Vec<MetadataRequestTopic> = Vec::new();
    let request = MetadataRequest { topics: Some(no_topics), ..MetadataRequest::default() };
    let mut brokers = call(&mut stream, METADATA_VERSION, &request).await?.brokers;
    // Ports are handed out in the order of the ids.
    brokers.sort_by_key(|broker| broker.node_id);
    for MetadataResponseBroker { node_id, host, port, .. } in &brokers {
        // A broker without a place was logged and counted. The address that clients use does not
        // matter, since none is advertised here.
        let _place = cluster.advertise(*node_id, host, *port, [0, 0, 0, 0].into());
    }
    Some(())
}

/// Asks which versions the cluster serves.
async fn ask_api_versions(stream: &mut Stream) -> Option<ApiVersionsResponse> {
    let request = ApiVersionsRequest {
        client_software_name: CLIENT_ID.to_owned(),
        client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    };
    send(stream, API_VERSIONS_VERSION, &request).await?;
    let unsupported = i16::from(ErrorCode::UnsupportedVersion).to_be_bytes();
    let frame = receive(stream).await?;
    // A broker that does not serve the version answers in version 0, regardless of the requested
    // one (KIP-511).
    if frame.get(4..6)? == unsupported {
        return call(stream, 0, &ApiVersionsRequest::default()).await;
    }
    decode::<ApiVersionsRequest>(&frame, API_VERSIONS_VERSION)
}

async fn call<Q: Request>(stream: &mut Stream, version: i16, request: &Q) -> Option<Q::Response> {
    send(stream, version, request).await?;
    decode::<Q>(&receive(stream).await?, version)
}

async fn send<Q: Request>(stream: &mut Stream, version: i16, request: &Q) -> Option<()> {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 0, Some(CLIENT_ID), request).ok()?;
    stream.write_all(&bytes).await.ok()?;
    stream.flush().await.ok()
}

async fn receive(stream: &mut Stream) -> Option<Vec<u8>> {
    let mut answer = FrameBuffer::new(ANSWER_BYTES_MAX);
    loop {
        if let Some(frame) = answer.frame().ok()? {
            return Some(frame.to_vec());
        }
        if answer.fill(stream).await.ok()? == 0 {
            return None;
        }
    }
}

fn decode<Q: Request>(frame: &[u8], version: i16) -> Option<Q::Response> {
    let (_correlation_id, body) = frame::parse_response(frame, Q::KEY, version).ok()?;
    Q::Response::decode(&mut Reader::new(body), version).ok()
}
