//! What a client without rights is told, and what a right changes.
//!
//! Kafka's own answers to the same requests are compared in `crates/conformance`.

use std::collections::BTreeSet;

use moldau_net::Reply;
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, CreatePartitionsRequest,
    DescribeClusterRequest, DescribeTopicPartitionsRequest, DescribeTransactionsRequest,
    EndTxnRequest, FetchRequest, InitProducerIdRequest, ListGroupsRequest, ListTransactionsRequest,
    MetadataRequest, describe_topic_partitions_request,
};
use moldau_protocol::{ApiKey, ErrorCode, Uuid};

use super::acls::{CLUSTER, GROUP, READ, TOPIC, TRANSACTIONAL_ID, every_deletion};
use super::requests::{
    FETCH_BY_NAME, commit, creatable, create, fetch, fetch_topic, fetch_topic_id, join,
    list_offsets, only,
};
use super::versions::ask_everything;
use super::world::{NOW_MS, World, batch, code};
use crate::authorizer::{Operation, ResourceType};
use crate::dispatch::declared_rights;
use crate::rights::ASKED;

/// Kafka's numbers of operations.
const WRITE: i8 = 4;
const CREATE: i8 = 5;
const ALTER: i8 = 7;
const DESCRIBE: i8 = 8;
const CLUSTER_ACTION: i8 = 9;
const IDEMPOTENT_WRITE: i8 = 12;

const CLUSTER_NAME: &str = "kafka-cluster";

/// A broker with two topics of two partitions each, whose requests come from `User:alice`.
fn world() -> World {
    let world = World::secured();
    world.create("orders", 2);
    world.create("invoices", 2);
    world.be("alice");
    world
}

fn named(names: &[&str]) -> MetadataRequest {
    let topics = names.iter().map(|name| MetadataRequestTopic {
        name: Some((*name).to_owned()),
        ..MetadataRequestTopic::default()
    });
    MetadataRequest {
        topics: Some(topics.collect()),
        include_topic_authorized_operations: true,
        ..MetadataRequest::default()
    }
}

/// Whoever may do nothing changes nothing, whatever is asked in whichever version; and each API of
/// the table has asked whether it is allowed.
#[test]
fn a_client_without_rights_changes_nothing() {
    let world = World::secured();
    ask_everything(&world);
    // Its frame also holds what the deletions left to be written, or follows it.
    world.create("last", 1);
    let end = world.state.storage.end();
    world.be("mallory");
    let open = [
        ApiKey::ApiVersions,
        ApiKey::SaslHandshake,
        ApiKey::SaslAuthenticate,
        // As in Kafka.
        ApiKey::GetTelemetrySubscriptions,
        ApiKey::PushTelemetry,
        // There are none.
        ApiKey::CreateDelegationToken,
        ApiKey::RenewDelegationToken,
        ApiKey::ExpireDelegationToken,
        ApiKey::DescribeDelegationToken,
    ];
    for (key, declared) in declared_rights() {
        ASKED.with_borrow_mut(BTreeSet::clear);
        let frames = world.frames();
        for frame in frames.iter().filter(|frame| frame[..2] == key.key().to_be_bytes()) {
            if let Reply::Later(answer, _) = world.send(frame) {
                world.wait(answer);
            }
        }
        let asked = ASKED.with_borrow(BTreeSet::clone);
        assert_eq!(asked.is_empty(), open.contains(&key), "{key}: {asked:?}");
        assert_eq!(declared.is_empty(), open.contains(&key), "{key}");
        assert_eq!(world.state.storage.end(), end, "{key} wrote something");
    }
}

#[test]
fn produce_needs_write_and_reveals_nothing_else() {
    let world = world();
    let produce = |topic| code(world.produce(topic, 0, batch(NOW_MS, &["a"])).error_code);
    assert_eq!(produce("orders"), ErrorCode::TopicAuthorizationFailed);
    assert_eq!(produce("absent"), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "orders", WRITE);
    world.allow(TOPIC, "absent", WRITE);
    assert_eq!(produce("orders"), ErrorCode::None);
    assert_eq!(produce("absent"), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(produce("invoices"), ErrorCode::TopicAuthorizationFailed);
}

#[test]
fn a_fetch_is_refused_partition_by_partition() {
    let world = world();
    world.allow(TOPIC, "orders", READ);
    let request =
        fetch(vec![fetch_topic("invoices", &[(0, 0), (1, 0)]), fetch_topic("orders", &[(0, 0)])]);
    let response = world.ask_in(FETCH_BY_NAME, &request);
    let codes = response.responses.iter().flat_map(|topic| &topic.partitions);
    let codes: Vec<_> = codes.map(|partition| code(partition.error_code)).collect();
    let denied = ErrorCode::TopicAuthorizationFailed;
    assert_eq!(codes, [denied, denied, ErrorCode::None]);
    let invoices = world.state.catalog.by_name("invoices").unwrap().id;
    for (id, wanted) in [(invoices, denied), (Uuid::from_bytes([7; 16]), ErrorCode::UnknownTopicId)]
    {
        let mut response = world.ask(&fetch(vec![fetch_topic_id(id, &[(0, 0)])]));
        assert_eq!(code(only(&mut response).error_code), wanted);
    }
}

#[test]
fn broker_fetch_needs_cluster_action() {
    let world = world();
    let mut request = fetch(vec![fetch_topic("orders", &[(0, 0)])]);
    request.replica_id = 1;
    let fetch = || code(only(&mut world.ask_in(FETCH_BY_NAME, &request)).error_code);
    world.allow(TOPIC, "orders", READ);
    assert_eq!(fetch(), ErrorCode::TopicAuthorizationFailed);
    world.allow(CLUSTER, CLUSTER_NAME, CLUSTER_ACTION);
    assert_eq!(fetch(), ErrorCode::None);
}

#[test]
fn topic_list_shows_only_describable_topics() {
    let world = world();
    world.allow(TOPIC, "orders", READ);
    let all = MetadataRequest { topics: None, ..named(&[]) };
    let response = world.ask(&all);
    let names: Vec<_> = response.topics.iter().map(|it| it.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["orders"]);
    let bits = [Operation::Read, Operation::Describe].map(Operation::bit);
    assert_eq!(response.topics[0].topic_authorized_operations, bits[0] | bits[1]);
    let pages = world.ask(&DescribeTopicPartitionsRequest {
        response_partition_limit: 1,
        ..DescribeTopicPartitionsRequest::default()
    });
    assert_eq!(pages.topics.len(), 1);
    assert_eq!(pages.topics[0].name.as_deref(), Some("orders"));
    assert_eq!(pages.next_cursor.unwrap().partition_index, 1);
}

#[test]
fn refusal_hides_whether_a_topic_exists() {
    let world = world();
    let response = world.ask(&named(&["orders", "absent"]));
    for topic in &response.topics {
        assert_eq!(code(topic.error_code), ErrorCode::TopicAuthorizationFailed);
        assert_eq!((topic.topic_id, topic.partitions.len()), (Uuid::ZERO, 0));
        assert_eq!(topic.topic_authorized_operations, i32::MIN);
    }
    let topics = ["orders", "absent"].map(|name| describe_topic_partitions_request::TopicRequest {
        name: name.to_owned(),
        ..Default::default()
    });
    let response = world.ask(&DescribeTopicPartitionsRequest {
        topics: topics.into(),
        response_partition_limit: 10,
        ..DescribeTopicPartitionsRequest::default()
    });
    let codes: Vec<_> = response.topics.iter().map(|topic| code(topic.error_code)).collect();
    assert_eq!(codes, [ErrorCode::TopicAuthorizationFailed; 2]);
}

#[test]
fn metadata_creates_a_topic_only_with_the_create_right() {
    let world = world();
    world.allow(TOPIC, "wanted", DESCRIBE);
    let ask = || {
        let request = MetadataRequest { allow_auto_topic_creation: true, ..named(&["wanted"]) };
        code(world.ask(&request).topics[0].error_code)
    };
    assert_eq!(ask(), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "wanted", CREATE);
    assert_eq!(ask(), ErrorCode::None);
}

#[test]
fn topics_are_created_with_a_right_on_the_name_or_on_the_cluster() {
    let world = world();
    let create = |name: &str| world.ask(&create(vec![creatable(name, 1)])).topics.remove(0);
    assert_eq!(code(create("a").error_code), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "a", CREATE);
    let created = create("a");
    assert_eq!(code(created.error_code), ErrorCode::None);
    assert_eq!(code(created.topic_config_error_code), ErrorCode::TopicAuthorizationFailed);
    assert_eq!((created.num_partitions, created.replication_factor), (-1, -1));
    world.allow(CLUSTER, CLUSTER_NAME, CREATE);
    assert_eq!(code(create("b").error_code), ErrorCode::None);
}

#[test]
fn partitions_are_added_with_the_right_to_alter() {
    let world = world();
    let grow = || {
        let topic = CreatePartitionsTopic {
            name: "orders".to_owned(),
            count: 3,
            assignments: None,
            ..CreatePartitionsTopic::default()
        };
        let request =
            CreatePartitionsRequest { topics: vec![topic], ..CreatePartitionsRequest::default() };
        code(world.ask(&request).results[0].error_code)
    };
    assert_eq!(grow(), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "orders", ALTER);
    assert_eq!(grow(), ErrorCode::None);
}

#[test]
fn groups_need_rights_on_the_group_and_on_the_topics() {
    let world = world();
    let joined = world.ask(&join("readers", ""));
    assert_eq!(code(joined.error_code), ErrorCode::GroupAuthorizationFailed);
    let commit = || {
        let response = world.ask_in(9, &commit("readers", "orders", 0, 1));
        code(response.topics[0].partitions[0].error_code)
    };
    assert_eq!(commit(), ErrorCode::GroupAuthorizationFailed);
    world.allow(GROUP, "readers", READ);
    assert_eq!(commit(), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "orders", READ);
    assert_eq!(commit(), ErrorCode::None);
    world.lead("readers");
}

#[test]
fn group_list_shows_only_describable_groups() {
    let world = world();
    world.be("admin");
    world.lead("readers");
    world.lead("writers");
    world.be("alice");
    let listed = || {
        let groups = world.ask(&ListGroupsRequest::default()).groups;
        let mut names: Vec<_> = groups.into_iter().map(|group| group.group_id).collect();
        names.sort();
        names
    };
    assert_eq!(listed(), [""; 0]);
    world.allow(GROUP, "readers", DESCRIBE);
    assert_eq!(listed(), ["readers"]);
    world.allow(CLUSTER, CLUSTER_NAME, DESCRIBE);
    assert_eq!(listed(), ["readers", "writers"]);
}

#[test]
fn write_right_on_any_topic_allows_idempotence() {
    let ask = |world: &World, id: Option<&str>| {
        let request = InitProducerIdRequest {
            transactional_id: id.map(str::to_owned),
            transaction_timeout_ms: 1_000,
            ..InitProducerIdRequest::default()
        };
        code(world.ask(&request).error_code)
    };
    for (resource_type, name, operation) in
        [(TOPIC, "orders", WRITE), (CLUSTER, CLUSTER_NAME, IDEMPOTENT_WRITE)]
    {
        let world = world();
        assert_eq!(ask(&world, None), ErrorCode::ClusterAuthorizationFailed);
        world.allow(resource_type, name, operation);
        assert_eq!(ask(&world, None), ErrorCode::None);
    }
    let world = world();
    assert_eq!(ask(&world, Some("t")), ErrorCode::TransactionalIdAuthorizationFailed);
    world.allow(TRANSACTIONAL_ID, "t", WRITE);
    assert_eq!(ask(&world, Some("t")), ErrorCode::None);
}

#[test]
fn transactions_need_the_rights_that_they_need_in_kafka() {
    let world = world();
    let id = || "t".to_owned();
    let end = || {
        let request =
            EndTxnRequest { transactional_id: id(), producer_id: 77, ..EndTxnRequest::default() };
        code(world.ask(&request).error_code)
    };
    let add_group = || {
        let request = AddOffsetsToTxnRequest {
            transactional_id: id(),
            producer_id: 77,
            group_id: "readers".to_owned(),
            ..AddOffsetsToTxnRequest::default()
        };
        code(world.ask(&request).error_code)
    };
    let describe = || {
        let request = DescribeTransactionsRequest {
            transactional_ids: vec![id()],
            ..DescribeTransactionsRequest::default()
        };
        code(world.ask(&request).transaction_states[0].error_code)
    };
    let listed = || world.ask(&ListTransactionsRequest::default()).transaction_states.len();
    let denied = ErrorCode::TransactionalIdAuthorizationFailed;
    assert_eq!((end(), add_group(), describe(), listed()), (denied, denied, denied, 0));
    world.allow(TRANSACTIONAL_ID, "t", WRITE);
    let init = InitProducerIdRequest {
        transactional_id: Some(id()),
        transaction_timeout_ms: 1_000,
        ..InitProducerIdRequest::default()
    };
    assert_eq!(code(world.ask(&init).error_code), ErrorCode::None);
    // Whoever may write may describe.
    let unknown = ErrorCode::InvalidProducerIdMapping;
    let (no_group, none) = (ErrorCode::GroupAuthorizationFailed, ErrorCode::None);
    assert_eq!((end(), add_group(), describe(), listed()), (unknown, no_group, none, 1));
    world.allow(GROUP, "readers", READ);
    assert_eq!(add_group(), unknown);
    assert_eq!(code(world.ask(&AddPartitionsToTxnRequest::default()).error_code), CLUSTER_DENIED);
}

const CLUSTER_DENIED: ErrorCode = ErrorCode::ClusterAuthorizationFailed;

#[test]
fn revoked_right_has_no_effect_at_once() {
    let world = world();
    world.allow(TOPIC, "orders", READ);
    let offset = || code(world.offset_at("orders", 0, -1).error_code);
    assert_eq!(offset(), ErrorCode::None);
    world.be("admin");
    world.ask(&every_deletion());
    world.be("alice");
    assert_eq!(offset(), ErrorCode::TopicAuthorizationFailed);
}

#[test]
fn authorized_operations_are_reported_on_request() {
    let operations = |world: &World| {
        let request = DescribeClusterRequest {
            include_cluster_authorized_operations: true,
            endpoint_type: 1,
            ..DescribeClusterRequest::default()
        };
        world.ask(&request).cluster_authorized_operations
    };
    let all = ResourceType::Cluster.operations().iter();
    let all = all.fold(0, |bits, operation| bits | operation.bit());
    assert_eq!(operations(&World::new()), all);
    let world = world();
    assert_eq!(operations(&world), 0);
    world.allow(CLUSTER, CLUSTER_NAME, DESCRIBE);
    assert_eq!(operations(&world), Operation::Describe.bit());
    world.be("admin");
    assert_eq!(operations(&world), all);
}

#[test]
fn lookups_hide_undescribable_topics() {
    let world = world();
    for topic in ["orders", "absent"] {
        let response = world.ask(&list_offsets(topic, 0, -1));
        let told = &response.topics[0].partitions[0];
        assert_eq!(code(told.error_code), ErrorCode::TopicAuthorizationFailed);
        assert_eq!((told.offset, told.timestamp, told.leader_epoch), (-1, -1, -1));
    }
}

/// A consumer that waited for records got those that came minutes after its right was taken.
#[test]
fn revoked_right_ends_a_waiting_fetch() {
    let world = world();
    world.allow(TOPIC, "orders", READ);
    let waiting =
        FetchRequest { max_wait_ms: 300_000, ..fetch(vec![fetch_topic("orders", &[(0, 0)])]) };
    let mut pending = world.begin(FETCH_BY_NAME, &waiting);
    assert!(!world.poll(&mut pending));
    world.be("admin");
    world.ask(&every_deletion());
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    let mut answer = world.finish::<FetchRequest>(pending);
    assert_eq!(code(only(&mut answer).error_code), ErrorCode::TopicAuthorizationFailed);
}
