//! Learns the brokers of a cluster before any client asks for them.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use moldau_net::FrameBuffer;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::{ApiKey, MetadataRequest, MetadataResponse};
use moldau_protocol::{Message, Reader, frame};
use tokio::io::AsyncWriteExt;

use crate::cluster::{Cluster, Destination};

/// A version that every broker since Kafka 2.1 serves.
const METADATA_VERSION: i16 = 7;

/// The largest answer that is read: brokers only, since no topic is asked for.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// A server that does not answer for this long is left alone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses between attempts grow from the one to the other.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Asks until the brokers are known. A cluster that demands authentication does not tell; its
/// brokers are then learned from the answers to clients.
pub(crate) async fn run(cluster: Arc<Cluster>) {
    let mut pause = PAUSE_MIN;
    loop {
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, ask(&cluster)).await;
        let Some(answer) = asked.ok().flatten() else {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            continue;
        };
        let mut brokers = answer.brokers;
        // Ports are handed out in the order of the ids.
        brokers.sort_by_key(|broker| broker.node_id);
        for broker in &brokers {
            // A broker without a port was logged and counted.
            let _port = cluster.port_of(broker.node_id, &broker.host, broker.port);
        }
        return;
    }
}

async fn ask(cluster: &Cluster) -> Option<MetadataResponse> {
    let mut stream = cluster.connect(Destination::Bootstrap).await?;
    let no_topics: Vec<MetadataRequestTopic> = Vec::new();
    let request = MetadataRequest { topics: Some(no_topics), ..MetadataRequest::default() };
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, METADATA_VERSION, 0, Some("moldau-proxy"), &request).ok()?;
    stream.write_all(&bytes).await.ok()?;
    let mut answer = FrameBuffer::new(ANSWER_BYTES_MAX);
    loop {
        if let Some(frame) = answer.frame().ok()? {
            let parsed = frame::parse_response(frame, ApiKey::Metadata, METADATA_VERSION);
            let (_correlation_id, body) = parsed.ok()?;
            return MetadataResponse::decode(&mut Reader::new(body), METADATA_VERSION).ok();
        }
        if answer.fill(&mut stream).await.ok()? == 0 {
            return None;
        }
    }
}
