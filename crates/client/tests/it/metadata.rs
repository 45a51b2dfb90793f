//! A cluster's metadata, while several callers ask for it.

use std::net::SocketAddr;

use bytes::BytesMut;
use moldau_client::{Cluster, ClusterOptions};
use moldau_net::{Reply, Response, Service};
use moldau_protocol::frame::{RequestHeader, encode_response};
use moldau_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use moldau_protocol::messages::{MetadataRequest, MetadataResponse};
use moldau_protocol::{ApiKey, Message, Reader};

use crate::fake;

/// Has each topic that it is asked for.
#[derive(Clone)]
struct Broker {
    address: SocketAddr,
}

impl Broker {
    fn metadata(&self, request: MetadataRequest) -> MetadataResponse {
        let (host, port) = (self.address.ip().to_string(), self.address.port().into());
        let partition = MetadataResponsePartition { leader_id: 1, ..Default::default() };
        let topics = request.topics.into_iter().flatten().map(|topic| MetadataResponseTopic {
            name: topic.name,
            partitions: vec![partition.clone()],
            ..Default::default()
        });
        MetadataResponse {
            brokers: vec![MetadataResponseBroker { node_id: 1, host, port, ..Default::default() }],
            topics: topics.collect(),
            ..Default::default()
        }
    }
}

impl Service for Broker {
    type Future = std::future::Ready<Response>;

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let (header, body) = RequestHeader::parse(frame).unwrap();
        let RequestHeader { api_key: key, api_version: version, correlation_id: id, .. } = header;
        let mut out = BytesMut::new();
        if key == ApiKey::ApiVersions {
            let apis = fake::api_versions(&[(ApiKey::ApiVersions, 4), (ApiKey::Metadata, 9)]);
            encode_response(&mut out, key, version, id, &apis).unwrap();
        } else {
            let request = MetadataRequest::decode(&mut Reader::new(body), version).unwrap();
            encode_response(&mut out, key, version, id, &self.metadata(request)).unwrap();
        }
        Reply::Ready(out.freeze().into())
    }
}

/// The answer to the request that was under way does not name them.
#[test]
fn topics_that_are_loaded_during_a_refresh_are_known_afterwards() {
    let (broker, _network) = fake::start(|address| Broker { address }, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = broker.address.to_string();
        let cluster = Cluster::connect(&[address], ClusterOptions::default()).await.unwrap();
        let (refreshed, loaded) =
            tokio::join!(cluster.refresh(), cluster.load_topics(["late", "later"]));
        assert!(refreshed.unwrap().topics.is_empty(), "it was sent before");
        loaded.unwrap();
        assert_eq!(cluster.metadata().topics.len(), 2);
    });
}
