//! Two tenants with topics, groups and transactional ids of the same names on one cluster.

use std::sync::Arc;

use moldau_filters::{MultiTenant, MultiTenantSettings};
use moldau_protocol::messages::*;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_proxy::{Filter, Proxy, RequestFrame};

use crate::world::{Client, Cluster, body, proxy};

/// What is on the cluster: a topic of each tenant, and one of neither.
const TOPICS: [(&str, Uuid); 3] = [("a-orders", id(1)), ("b-orders", id(2)), ("plain", id(3))];

const fn id(byte: u8) -> Uuid {
    Uuid::from_bytes([byte; 16])
}

fn metadata(request: &MetadataRequest) -> MetadataResponse {
    let topic =
        |name: Option<&str>, topic_id, error: ErrorCode| metadata_response::MetadataResponseTopic {
            name: name.map(str::to_owned),
            topic_id,
            error_code: error.into(),
            ..Default::default()
        };
    let found = |(name, id): &(&str, Uuid)| topic(Some(*name), *id, ErrorCode::None);
    let topics = match &request.topics {
        None => TOPICS.iter().map(found).collect(),
        Some(wanted) => wanted
            .iter()
            .map(|of| {
                let known = TOPICS.iter().find(|(name, id)| match of.name.as_deref() {
                    Some(wanted) => wanted == *name,
                    None => of.topic_id == *id,
                });
                known.map_or_else(
                    || topic(of.name.as_deref(), of.topic_id, ErrorCode::UnknownTopicOrPartition),
                    found,
                )
            })
            .collect(),
    };
    MetadataResponse { topics, ..Default::default() }
}

fn fetched(request: &FetchRequest) -> FetchResponse {
    let topic = |of: &fetch_request::FetchTopic| fetch_response::FetchableTopicResponse {
        topic: of.topic.clone(),
        topic_id: of.topic_id,
        ..Default::default()
    };
    FetchResponse { responses: request.topics.iter().map(topic).collect(), ..Default::default() }
}

fn script(request: &RequestFrame) -> Vec<u8> {
    let version = request.api_version();
    match request.api_key() {
        ApiKey::Metadata => body(version, &metadata(&request.decode().unwrap())),
        ApiKey::Fetch => body(version, &fetched(&request.decode().unwrap())),
        ApiKey::ListGroups => {
            let group = |id: &str| list_groups_response::ListedGroup {
                group_id: id.to_owned(),
                ..Default::default()
            };
            let groups = ["a-g", "b-g", "b-h", "g"].map(group).to_vec();
            body(version, &ListGroupsResponse { groups, ..Default::default() })
        }
        ApiKey::ListTransactions => {
            let state = |id: &str| list_transactions_response::TransactionState {
                transactional_id: id.to_owned(),
                ..Default::default()
            };
            let transaction_states = ["a-t", "b-t", "t"].map(state).to_vec();
            body(version, &ListTransactionsResponse { transaction_states, ..Default::default() })
        }
        ApiKey::ApiVersions => {
            let offered = |api: &ApiKey| api_versions_response::ApiVersion {
                api_key: api.key(),
                min_version: 0,
                max_version: i16::MAX,
                ..Default::default()
            };
            let api_keys = ApiKey::ALL.iter().map(offered).collect();
            body(version, &ApiVersionsResponse { api_keys, ..Default::default() })
        }
        other => panic!("{other} has no script"),
    }
}

fn world() -> (Cluster, Proxy) {
    let cluster = Cluster::start(script);
    let settings = MultiTenantSettings::default();
    let filters =
        || -> Vec<Arc<dyn Filter>> { vec![Arc::new(MultiTenant::new(&settings).unwrap())] };
    let proxy = proxy(cluster.address, vec![("a", filters()), ("b", filters())]);
    (cluster, proxy)
}

#[test]
fn each_tenant_sees_its_own_under_the_same_names() {
    let (_cluster, proxy) = world();
    for (index, own, groups) in [(0, id(1), &["g"][..]), (1, id(2), &["g", "h"][..])] {
        let mut client = Client::connect(&proxy, index);
        for topics in [None, Some(vec![named("orders")])] {
            let all = client.call(12, &MetadataRequest { topics, ..Default::default() });
            let told: Vec<_> =
                all.topics.iter().map(|it| (it.name.as_deref(), it.topic_id)).collect();
            assert_eq!(told, [(Some("orders"), own)]);
        }
        let listed = client.call(4, &ListGroupsRequest::default());
        assert_eq!(listed.groups.iter().map(|it| &*it.group_id).collect::<Vec<_>>(), groups);
        let listed = client.call(0, &ListTransactionsRequest::default());
        let ids: Vec<_> =
            listed.transaction_states.iter().map(|it| &*it.transactional_id).collect();
        assert_eq!(ids, ["t"]);
    }
}

#[test]
fn a_topic_of_neither_tenant_is_not_there() {
    let (_cluster, proxy) = world();
    let mut client = Client::connect(&proxy, 0);
    for name in ["plain", "a-orders", "b-orders"] {
        let wanted = MetadataRequest { topics: Some(vec![named(name)]), ..Default::default() };
        let told = client.call(12, &wanted);
        let code = i16::from(ErrorCode::UnknownTopicOrPartition);
        assert_eq!((told.topics[0].name.as_deref(), told.topics[0].error_code), (Some(name), code));
    }
}

#[test]
fn the_topic_of_another_tenant_is_not_reached_by_its_id() {
    let (cluster, proxy) = world();
    let mut client = Client::connect(&proxy, 0);
    let wanted = |topic_id| fetch_request::FetchTopic {
        topic_id,
        partitions: vec![fetch_request::FetchPartition::default()],
        ..Default::default()
    };
    let topics = vec![wanted(id(1)), wanted(id(2)), wanted(id(9))];
    let told = client.call(17, &FetchRequest { topics, ..Default::default() });
    let codes = told.responses.iter().map(|topic| {
        (topic.topic_id, topic.partitions.first().map_or(0, |partition| partition.error_code))
    });
    let unknown = i16::from(ErrorCode::UnknownTopicId);
    assert_eq!(codes.collect::<Vec<_>>(), [(id(1), 0), (id(2), unknown), (id(9), unknown)]);
    assert_eq!(cluster.take_seen(), [ApiKey::Metadata, ApiKey::Fetch]);

    let topics = vec![wanted(id(2))];
    let told = client.call(17, &FetchRequest { topics, ..Default::default() });
    assert_eq!(told.responses[0].partitions[0].error_code, unknown);
    assert_eq!(cluster.take_seen(), [], "the cluster was asked for another tenant's topic");

    let by_id = metadata_request::MetadataRequestTopic {
        topic_id: id(2),
        name: None,
        ..Default::default()
    };
    let told =
        client.call(12, &MetadataRequest { topics: Some(vec![by_id]), ..Default::default() });
    assert_eq!((told.topics[0].error_code, told.topics[0].name.as_deref()), (unknown, None));
}

#[test]
fn only_what_a_tenant_may_use_is_offered() {
    let (cluster, proxy) = world();
    let mut client = Client::connect(&proxy, 0);
    let offered = client.call(3, &ApiVersionsRequest::default()).api_keys;
    let is_offered = |api: ApiKey| offered.iter().any(|it| it.api_key == api.key());
    assert!(is_offered(ApiKey::Produce) && is_offered(ApiKey::ConsumerGroupHeartbeat));
    for refused in [ApiKey::CreateAcls, ApiKey::AlterClientQuotas, ApiKey::WriteTxnMarkers] {
        assert!(!is_offered(refused), "{refused}");
    }
    cluster.take_seen();
    client.send(3, &CreateAclsRequest::default());
    assert!(client.is_closed());
    assert_eq!(cluster.take_seen(), []);
}

fn named(name: &str) -> metadata_request::MetadataRequestTopic {
    metadata_request::MetadataRequestTopic { name: Some(name.to_owned()), ..Default::default() }
}
