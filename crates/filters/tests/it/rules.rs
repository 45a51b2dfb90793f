//! Rules at work in a proxy.

use std::sync::Arc;

use moldau_filters::{Authorization, Rules};
use moldau_protocol::messages::*;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_proxy::{Filter, Proxy, RequestFrame};

use crate::world::{Client, Cluster, body, proxy};

const RULES: &str = "
in readers allow User:ANONYMOUS Read topic public-*
in readers deny  *              All  topic public-secret
in writers allow *              All  any   *
";

/// The topics of the cluster, by ids of their number.
const TOPICS: [&str; 3] = ["public-1", "public-secret", "private"];

fn id(index: usize) -> Uuid {
    Uuid::from_bytes([u8::try_from(index + 1).unwrap(); 16])
}

fn script(request: &RequestFrame) -> Vec<u8> {
    let version = request.api_version();
    match request.api_key() {
        ApiKey::Metadata => {
            let asked: MetadataRequest = request.decode().unwrap();
            let wanted = asked.topics.unwrap_or_default();
            let known = TOPICS.iter().enumerate().map(|(index, name)| (*name, id(index)));
            let known = known.filter(|(_, id)| {
                wanted.is_empty() || wanted.iter().any(|topic| topic.topic_id == *id)
            });
            let topics = known.map(|(name, topic_id)| metadata_response::MetadataResponseTopic {
                name: Some(name.to_owned()),
                topic_id,
                ..Default::default()
            });
            body(version, &MetadataResponse { topics: topics.collect(), ..Default::default() })
        }
        ApiKey::Fetch => {
            let asked: FetchRequest = request.decode().unwrap();
            let responses = asked.topics.iter().map(|of| fetch_response::FetchableTopicResponse {
                topic_id: of.topic_id,
                ..Default::default()
            });
            let responses = responses.collect();
            body(version, &FetchResponse { responses, session_id: 0, ..Default::default() })
        }
        other => panic!("{other} has no script"),
    }
}

fn world() -> (Cluster, Proxy) {
    let cluster = Cluster::start(script);
    let filters = || -> Vec<Arc<dyn Filter>> {
        vec![Arc::new(Authorization::new(Rules::parse(RULES).unwrap()))]
    };
    let proxy = proxy(cluster.address, vec![("readers", filters()), ("writers", filters())]);
    (cluster, proxy)
}

#[test]
fn each_virtual_cluster_shows_what_its_rules_allow() {
    let (_cluster, proxy) = world();
    for (index, expected) in [(0, &TOPICS[..1]), (1, &TOPICS[..])] {
        let all = MetadataRequest { topics: None, ..Default::default() };
        let told = Client::connect(&proxy, index).call(12, &all);
        let names: Vec<_> = told.topics.iter().filter_map(|topic| topic.name.as_deref()).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn only_the_refused_topics_of_a_fetch_are() {
    let (cluster, proxy) = world();
    let mut client = Client::connect(&proxy, 0);
    let wanted = |topic_id| fetch_request::FetchTopic {
        topic_id,
        partitions: vec![fetch_request::FetchPartition::default()],
        ..Default::default()
    };
    let topics = vec![wanted(id(2)), wanted(id(0)), wanted(id(7)), wanted(id(1))];
    let told = client.call(17, &FetchRequest { topics, ..Default::default() });
    let codes = told.responses.iter().map(|topic| {
        (topic.topic_id, topic.partitions.first().map_or(0, |partition| partition.error_code))
    });
    let refused = i16::from(ErrorCode::TopicAuthorizationFailed);
    let unknown = i16::from(ErrorCode::UnknownTopicId);
    let expected = [(id(0), 0), (id(2), refused), (id(7), unknown), (id(1), refused)];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
    assert_eq!(cluster.take_seen(), [ApiKey::Metadata, ApiKey::Fetch]);
}

#[test]
fn answers_keep_the_order_of_requests_that_are_refused_between_them() {
    let (_cluster, proxy) = world();
    let mut client = Client::connect(&proxy, 0);
    let all = MetadataRequest { topics: None, ..Default::default() };
    let refused = HeartbeatRequest { group_id: "g".to_owned(), ..Default::default() };
    for _ in 0..3 {
        client.send(12, &all);
        client.send(4, &refused);
    }
    for _ in 0..3 {
        assert_eq!(client.receive::<MetadataRequest>(12).topics.len(), 1);
        let code = i16::from(ErrorCode::GroupAuthorizationFailed);
        assert_eq!(client.receive::<HeartbeatRequest>(4).error_code, code);
    }
}
