//! Answers with addresses lead back to the proxy, and are otherwise as they came.

use std::net::SocketAddr;

use bytes::Bytes;
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use moldau_protocol::messages::fetch_response::{self, FetchableTopicResponse};
use moldau_protocol::messages::find_coordinator_response::Coordinator;
use moldau_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use moldau_protocol::messages::produce_response::{
    self, PartitionProduceResponse, TopicProduceResponse,
};
use moldau_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest,
    DescribeClusterResponse, FetchRequest, FetchResponse, FindCoordinatorRequest,
    FindCoordinatorResponse, MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse,
    ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse,
    share_acknowledge_response, share_fetch_response,
};
use moldau_protocol::{ErrorCode, Message, Request};

use crate::world::{
    Act, Broker, Client, answer, bootstrap, counter, encode, metadata_broker, proxy, proxy_at,
};

const HOST: &str = "broker.example";
const NODE: i32 = 3;
const PORT: i32 = 9092;

/// Serves `response` to every version of its request and returns what clients got.
fn through_proxy<Q>(
    versions: std::ops::RangeInclusive<i16>,
    request: &Q,
    response: Q::Response,
) -> Vec<Q::Response>
where
    Q: Request + Clone,
    Q::Response: Message + Clone + Send + Sync + 'static,
{
    let served = response.clone();
    let broker = Broker::start(move |seen| {
        Act::Send(answer(Q::KEY, seen.api_version, seen.correlation_id, &served))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    let got = versions.map(|version| client.call(version, request)).collect();
    assert_eq!(counter(&proxy, "record_bytes_touched"), 0);
    assert_eq!(counter(&proxy, "hints_neutralised"), 0);
    got
}

/// Checks an address that a client got, and that something listens there.
fn assert_leads_to_proxy(host: &str, port: i32) {
    assert_eq!(host, "127.0.0.1");
    assert_ne!(port, PORT);
    // The proxy has stopped meanwhile, but the port was one of its own.
    assert!(u16::try_from(port).unwrap() > 0);
}

#[test]
fn metadata_leads_back_in_every_version() {
    let partition = MetadataResponsePartition { leader_id: NODE, ..Default::default() };
    let topic = MetadataResponseTopic {
        name: Some("orders".to_owned()),
        partitions: vec![partition; 3],
        ..Default::default()
    };
    let mut broker = metadata_broker(NODE, "127.0.0.1:1".parse().unwrap());
    (broker.host, broker.port) = (HOST.to_owned(), PORT);
    let response =
        MetadataResponse { brokers: vec![broker], topics: vec![topic], ..Default::default() };
    for got in through_proxy(0..=13, &MetadataRequest::default(), response) {
        assert_leads_to_proxy(&got.brokers[0].host, got.brokers[0].port);
        assert_eq!((got.brokers.len(), got.brokers[0].node_id), (1, NODE));
        assert_eq!(got.topics[0].partitions.len(), 3);
    }
}

#[test]
fn metadata_of_many_topics_streams_behind_its_brokers() {
    let topic = MetadataResponseTopic { name: Some("t".repeat(200)), ..Default::default() };
    let mut broker = metadata_broker(NODE, "127.0.0.1:1".parse().unwrap());
    (broker.host, broker.port) = (HOST.to_owned(), PORT);
    let topics = vec![topic; 20_000];
    let response = MetadataResponse { brokers: vec![broker], topics, ..Default::default() };
    let request = MetadataRequest::default();
    for mut got in through_proxy(12..=13, &request, response.clone()) {
        assert_leads_to_proxy(&got.brokers[0].host, got.brokers[0].port);
        (got.brokers[0].host, got.brokers[0].port) = (HOST.to_owned(), PORT);
        assert!(got == response);
    }
}

#[test]
fn coordinators_lead_back_in_every_version() {
    let response = FindCoordinatorResponse {
        node_id: NODE,
        host: HOST.to_owned(),
        port: PORT,
        ..Default::default()
    };
    for got in through_proxy(0..=3, &FindCoordinatorRequest::default(), response) {
        assert_leads_to_proxy(&got.host, got.port);
        assert_eq!((got.node_id, got.error_code), (NODE, 0));
    }
    let found =
        Coordinator { node_id: NODE, host: HOST.to_owned(), port: PORT, ..Default::default() };
    let missing = Coordinator { node_id: -1, port: -1, error_code: 15, ..Default::default() };
    let response = FindCoordinatorResponse {
        coordinators: vec![found, missing.clone()],
        ..Default::default()
    };
    for got in through_proxy(4..=6, &FindCoordinatorRequest::default(), response) {
        assert_leads_to_proxy(&got.coordinators[0].host, got.coordinators[0].port);
        assert_eq!(got.coordinators[1], missing);
    }
}

#[test]
fn described_clusters_lead_back_in_every_version() {
    let broker = DescribeClusterBroker {
        broker_id: NODE,
        host: HOST.to_owned(),
        port: PORT,
        ..Default::default()
    };
    let response = DescribeClusterResponse {
        cluster_id: "id".to_owned(),
        brokers: vec![broker],
        ..Default::default()
    };
    for mut got in through_proxy(0..=2, &DescribeClusterRequest::default(), response.clone()) {
        assert_leads_to_proxy(&got.brokers[0].host, got.brokers[0].port);
        (got.brokers[0].host, got.brokers[0].port) = (HOST.to_owned(), PORT);
        assert_eq!(got, response);
    }
}

fn produce_answer() -> ProduceResponse {
    let node = produce_response::NodeEndpoint {
        node_id: NODE,
        host: HOST.to_owned(),
        port: PORT,
        ..Default::default()
    };
    let partition = PartitionProduceResponse {
        error_code: ErrorCode::NotLeaderOrFollower.into(),
        error_message: Some("elsewhere".to_owned()),
        ..Default::default()
    };
    let topic =
        TopicProduceResponse { partition_responses: vec![partition; 4], ..Default::default() };
    ProduceResponse { responses: vec![topic], node_endpoints: vec![node], ..Default::default() }
}

#[test]
fn leader_hints_of_produce_lead_back_in_every_version() {
    let response = produce_answer();
    let request = ProduceRequest { acks: 1, ..Default::default() };
    for mut got in through_proxy(10..=13, &request, response.clone()) {
        assert_leads_to_proxy(&got.node_endpoints[0].host, got.node_endpoints[0].port);
        (got.node_endpoints[0].host, got.node_endpoints[0].port) = (HOST.to_owned(), PORT);
        assert_eq!(got, response);
    }
}

fn fetch_answer(record_bytes: usize) -> FetchResponse {
    let node = fetch_response::NodeEndpoint {
        node_id: NODE,
        host: HOST.to_owned(),
        port: PORT,
        ..Default::default()
    };
    let partition = fetch_response::PartitionData {
        records: Some(Bytes::from(vec![0xab; record_bytes])),
        ..Default::default()
    };
    let topic = FetchableTopicResponse { partitions: vec![partition; 2], ..Default::default() };
    FetchResponse { responses: vec![topic], node_endpoints: vec![node], ..Default::default() }
}

#[test]
fn leader_hints_of_small_fetches_lead_back_in_every_version() {
    let response = fetch_answer(1000);
    for mut got in through_proxy(16..=18, &FetchRequest::default(), response.clone()) {
        assert_leads_to_proxy(&got.node_endpoints[0].host, got.node_endpoints[0].port);
        (got.node_endpoints[0].host, got.node_endpoints[0].port) = (HOST.to_owned(), PORT);
        assert_eq!(got, response);
    }
}

#[test]
fn leader_hints_of_streamed_fetches_are_hidden_and_records_untouched() {
    let served = fetch_answer(1_000_000);
    let expected = served.clone();
    let broker = Broker::start(move |seen| {
        Act::Send(answer(ApiKey::Fetch, seen.api_version, seen.correlation_id, &served))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    for version in 16..=18 {
        let got = client.call(version, &FetchRequest::default());
        assert_eq!(got.responses, expected.responses);
        assert_eq!(got.node_endpoints, []);
        assert_eq!(got.unknown_tagged_fields[0].tag, 0x7f);
    }
    assert_eq!(counter(&proxy, "hints_neutralised"), 3);
    assert_eq!(counter(&proxy, "record_bytes_passed"), 3 * 2 * 1_000_000);
    assert_eq!(counter(&proxy, "record_bytes_touched"), 0);
}

#[test]
fn leader_hints_of_share_groups_lead_back_in_every_version() {
    let node = share_fetch_response::NodeEndpoint {
        node_id: NODE,
        host: HOST.to_owned(),
        port: PORT,
        ..Default::default()
    };
    let partition = share_fetch_response::PartitionData {
        records: Bytes::from_static(b"records"),
        acquired_records: vec![Default::default(); 2],
        ..Default::default()
    };
    let topic = share_fetch_response::ShareFetchableTopicResponse {
        partitions: vec![partition],
        ..Default::default()
    };
    let response = ShareFetchResponse {
        responses: vec![topic],
        node_endpoints: vec![node],
        ..Default::default()
    };
    for mut got in through_proxy(1..=2, &ShareFetchRequest::default(), response.clone()) {
        assert_leads_to_proxy(&got.node_endpoints[0].host, got.node_endpoints[0].port);
        (got.node_endpoints[0].host, got.node_endpoints[0].port) = (HOST.to_owned(), PORT);
        assert_eq!(got, response);
    }
    let node = share_acknowledge_response::NodeEndpoint {
        node_id: NODE,
        host: HOST.to_owned(),
        port: PORT,
        ..Default::default()
    };
    let response = ShareAcknowledgeResponse { node_endpoints: vec![node], ..Default::default() };
    for got in through_proxy(1..=2, &ShareAcknowledgeRequest::default(), response) {
        assert_leads_to_proxy(&got.node_endpoints[0].host, got.node_endpoints[0].port);
    }
}

#[test]
fn the_advertised_address_leads_to_the_broker_of_that_id() {
    let second = Broker::start_with(|own| {
        move |seen: &_| Act::Send(metadata_of(seen, &[(2, own)], "second"))
    });
    let second_address = second.address;
    let first = Broker::start_with(|own| {
        move |seen: &_| Act::Send(metadata_of(seen, &[(2, second_address), (1, own)], "first"))
    });
    let proxy = proxy(&[first.address]);
    let told = Client::connect(bootstrap(&proxy)).call(8, &MetadataRequest::default());
    assert_eq!(told.cluster_id.as_deref(), Some("first"));
    assert_eq!(told.brokers.iter().map(|broker| broker.node_id).collect::<Vec<_>>(), [1, 2]);
    for (broker, name) in told.brokers.iter().zip(["first", "second"]) {
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(broker.port).unwrap()));
        let mut client = Client::connect(address);
        let got = client.call(8, &MetadataRequest::default());
        assert_eq!(got.cluster_id.as_deref(), Some(name));
    }
    let again = Client::connect(bootstrap(&proxy)).call(8, &MetadataRequest::default());
    assert_eq!(again.brokers, told.brokers);
}

fn metadata_of(seen: &crate::world::Seen, brokers: &[(i32, SocketAddr)], name: &str) -> Vec<u8> {
    let brokers = brokers.iter().map(|(id, address)| metadata_broker(*id, *address)).collect();
    let cluster_id = Some(name.to_owned());
    let response = MetadataResponse { brokers, cluster_id, ..Default::default() };
    answer(ApiKey::Metadata, seen.api_version, seen.correlation_id, &response)
}

/// Loopback has many addresses; one of its own keeps these ports clear of other tests.
const QUIET: [u8; 4] = [127, 0, 57, 1];

#[test]
fn a_broker_whose_port_is_taken_is_left_out_until_it_is_free() {
    let taken = std::net::TcpListener::bind(SocketAddr::from((QUIET, 0))).unwrap();
    let start = taken.local_addr().unwrap().port();
    let broker = Broker::start_with(|own| {
        move |seen: &crate::world::Seen| {
            if seen.api_key == ApiKey::Metadata.key() {
                return Act::Send(metadata_of(seen, &[(1, own), (2, own)], "main"));
            }
            let response = FindCoordinatorResponse {
                node_id: 1,
                host: own.ip().to_string(),
                port: i32::from(own.port()),
                ..Default::default()
            };
            Act::Send(answer(ApiKey::FindCoordinator, 3, seen.correlation_id, &response))
        }
    });
    let proxy = proxy_at(SocketAddr::from((QUIET, 0)), start, &[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    let told = client.call(8, &MetadataRequest::default());
    let ports = |told: &MetadataResponse| {
        told.brokers.iter().map(|broker| (broker.node_id, broker.port)).collect::<Vec<_>>()
    };
    assert_eq!(ports(&told), [(2, i32::from(start) + 1)]);
    let found = client.call(3, &FindCoordinatorRequest::default());
    assert_eq!(found.error_code, i16::from(ErrorCode::CoordinatorNotAvailable));
    assert_eq!((found.node_id, found.host.as_str(), found.port), (-1, "", -1));
    assert!(counter(&proxy, "broker_port_errors") > 0);
    drop(taken);
    let told = client.call(8, &MetadataRequest::default());
    assert_eq!(ports(&told), [(1, i32::from(start)), (2, i32::from(start) + 1)]);
}

#[test]
fn only_known_apis_and_versions_are_offered() {
    let offer = |api_key, min_version, max_version| ApiVersion {
        api_key,
        min_version,
        max_version,
        ..Default::default()
    };
    let broker = Broker::start(move |seen| {
        let offered = vec![
            offer(0, 0, 99),
            offer(1, 4, 12),
            offer(17, 0, 1),
            offer(18, 0, 4),
            offer(3, 90, 99),
            offer(9999, 0, 0),
        ];
        let response = ApiVersionsResponse { api_keys: offered, ..Default::default() };
        Act::Send(answer(ApiKey::ApiVersions, seen.api_version, seen.correlation_id, &response))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    let request = ApiVersionsRequest {
        client_software_name: "x".to_owned(),
        client_software_version: "1".to_owned(),
        ..Default::default()
    };
    for version in 3..=4 {
        let got = client.call(version, &request);
        let ranges: Vec<_> = got
            .api_keys
            .iter()
            .map(|api| (api.api_key, api.min_version, api.max_version))
            .collect();
        assert_eq!(ranges, [(0, 0, 13), (1, 4, 12), (17, 1, 1), (18, 0, 4)]);
    }
}

#[test]
fn a_later_api_versions_request_is_answered_with_what_is_served() {
    let broker = Broker::start(|seen| {
        assert_eq!(seen.api_version, i16::MAX);
        let served = ApiVersion { api_key: 18, max_version: 4, ..Default::default() };
        let response = ApiVersionsResponse {
            error_code: ErrorCode::UnsupportedVersion.into(),
            api_keys: vec![served],
            ..Default::default()
        };
        Act::Send(answer(ApiKey::ApiVersions, 0, seen.correlation_id, &response))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    let mut request = encode(4, 5, &ApiVersionsRequest::default());
    request[7] = 9;
    client.send(&request);
    let got: ApiVersionsResponse =
        crate::world::decode(ApiKey::ApiVersions, 0, 5, &client.receive());
    assert_eq!(got.error_code, i16::from(ErrorCode::UnsupportedVersion));
    assert_eq!((got.api_keys[0].api_key, got.api_keys[0].max_version), (18, 4));
}
