//! Requests that only the controller of a cluster decides, from clients of another broker.

use std::sync::Arc;

use moldau_cluster::{Frames, Ownership, Requests};
use moldau_net::Reply;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::describe_topic_partitions_request::TopicRequest;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::{
    AlterConfigsRequest, AlterUserScramCredentialsRequest, CreateAclsRequest,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeTopicPartitionsRequest, MetadataRequest,
};
use moldau_storage::block_on;

use super::acls::{self, allowance, every_deletion, upsertion};
use super::clusters::{Cluster, append, eventually};
use super::configs::{altering, describe};
use super::quotas;
use super::requests::{creatable, create, fetch, fetch_topic, only, produce};
use super::world::{NOW_MS, World, base_offsets, batch, code, request_frame};
use crate::call::durable_within;
use crate::config::{AuthorizationSettings, DURABLE_WITHIN};
use crate::joining::runtime;
use crate::storage::Storage;
use crate::submissions::Submissions;

/// Kafka's numbers.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const SET: i8 = 0;
const SHA_256: i8 = 1;
const CREATE: i8 = 5;

/// A version of CreateTopics.
const CREATE_TOPICS: i16 = 7;

fn topic_partitions(world: &World, topic: &str) -> Option<u32> {
    world.state.catalog.by_name(topic).map(|topic| topic.partitions)
}

fn growth(name: &str, count: i32) -> CreatePartitionsRequest {
    let topic = CreatePartitionsTopic {
        name: name.to_owned(),
        count,
        assignments: None,
        ..Default::default()
    };
    CreatePartitionsRequest { topics: vec![topic], ..CreatePartitionsRequest::default() }
}

fn metadata_of(name: &str, allow_auto_topic_creation: bool) -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(name.to_owned()), ..Default::default() };
    MetadataRequest {
        topics: Some(vec![topic]),
        allow_auto_topic_creation,
        ..MetadataRequest::default()
    }
}

fn retention(world: &World, topic: &str) -> Option<String> {
    world.state.catalog.by_name(topic)?.overrides.get("retention.ms").cloned()
}

/// Two brokers; the second is asked, which is not the controller.
fn asked(cluster: &Cluster) -> &World {
    let world = cluster.world(2);
    assert!(!world.state.storage.decides());
    world
}

#[test]
fn topics_are_created_grown_configured_and_deleted_by_any_broker() {
    let cluster = Cluster::of(2);
    let world = asked(&cluster);
    // The broker that was asked knows the change as soon as it answers.
    world.create("orders", 1);
    assert_eq!(topic_partitions(world, "orders"), Some(1));
    let again = world.ask(&create(vec![creatable("orders", 1)]));
    assert_eq!(code(again.topics[0].error_code), ErrorCode::TopicAlreadyExists);

    let grown = world.ask(&growth("orders", 3));
    assert_eq!(code(grown.results[0].error_code), ErrorCode::None);
    assert_eq!(topic_partitions(world, "orders"), Some(3));
    for world in cluster.worlds() {
        let response = world.ask_in(9, &produce("orders", 2, batch(NOW_MS, &["a"])));
        let told = &response.responses[0].partition_responses[0];
        assert_eq!(code(told.error_code), ErrorCode::None, "{:?}", told.error_message);
    }
    let mut fetched = world.ask_in(12, &fetch(vec![fetch_topic("orders", &[(2, 0)])]));
    assert_eq!(base_offsets(only(&mut fetched).records.as_ref()), [0, 1]);

    let request = altering(TOPIC, "orders", &[(SET, "retention.ms", Some("5000"))]);
    assert_eq!(code(world.ask(&request).responses[0].error_code), ErrorCode::None);
    assert_eq!(retention(world, "orders").as_deref(), Some("5000"));
    let resource = AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: "orders".to_owned(),
        configs: vec![AlterableConfig {
            name: "retention.ms".to_owned(),
            value: Some("6000".to_owned()),
            ..AlterableConfig::default()
        }],
        ..AlterConfigsResource::default()
    };
    let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
    assert_eq!(code(world.ask(&request).responses[0].error_code), ErrorCode::None);
    assert_eq!(retention(world, "orders").as_deref(), Some("6000"));

    world.delete("orders");
    assert_eq!(topic_partitions(world, "orders"), None);
    assert_eq!(topic_partitions(cluster.world(1), "orders"), None);
}

#[test]
fn topics_are_created_automatically_by_any_broker() {
    let cluster = Cluster::with(2, |config| config.auto_create_topics = true);
    let world = asked(&cluster);
    let told = world.ask(&metadata_of("orders", false));
    assert_eq!(code(told.topics[0].error_code), ErrorCode::UnknownTopicOrPartition);
    let told = world.ask(&metadata_of("orders", true));
    assert_eq!(code(told.topics[0].error_code), ErrorCode::None);
    assert_eq!(told.topics[0].partitions.len(), 3);
    assert_eq!(append(world, "orders", batch(NOW_MS, &["a"])), 0);
}

#[test]
fn a_topic_is_known_to_all_brokers_once_its_creation_is_answered() {
    let cluster = Cluster::of(2);
    let world = asked(&cluster);
    for number in 0..60 {
        let name = format!("orders-{number}");
        cluster.world(1).create(&name, 1);
        let told = match number % 3 {
            0 => world.ask(&metadata_of(&name, false)).topics[0].error_code,
            1 => describe(world, TOPIC, &name, Some(&[])).error_code,
            _ => {
                let topics = vec![TopicRequest { name, ..TopicRequest::default() }];
                let request = DescribeTopicPartitionsRequest { topics, ..Default::default() };
                world.ask(&request).topics[0].error_code
            }
        };
        assert_eq!(code(told), ErrorCode::None, "{number}");
    }
    let told = world.ask(&metadata_of("unknown", false)).topics[0].error_code;
    assert_eq!(code(told), ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn quotas_are_altered_by_any_broker() {
    let cluster = Cluster::of(2);
    let world = asked(&cluster);
    let user = [("user", Some("alice"))];
    let altered = world.ask(&quotas::altering(&user, "producer_byte_rate", Some(1_000.0)));
    assert_eq!(code(altered.entries[0].error_code), ErrorCode::None);
    assert!(world.state.quotas.exist() && cluster.world(1).state.quotas.exist());
}

#[test]
fn acls_and_credentials_are_altered_by_any_broker_with_the_rights_of_the_client() {
    let super_users = vec!["User:admin".parse().unwrap()];
    let settings = AuthorizationSettings { super_users, ..AuthorizationSettings::default() };
    let cluster = Cluster::with(2, |config| config.authorization = Some(settings.clone()));
    let world = asked(&cluster);
    let upsertion = AlterUserScramCredentialsRequest {
        upsertions: vec![upsertion("alice", SHA_256, 4_096)],
        ..AlterUserScramCredentialsRequest::default()
    };
    let acls = || CreateAclsRequest {
        creations: vec![allowance(acls::TOPIC, "orders", CREATE)],
        ..CreateAclsRequest::default()
    };
    let refused = ErrorCode::ClusterAuthorizationFailed;
    for (user, expected) in [("alice", refused), ("admin", ErrorCode::None)] {
        world.be(user);
        let altered = world.ask(&upsertion);
        assert_eq!(code(altered.results[0].error_code), expected);
        let created = world.ask(&acls());
        assert_eq!(code(created.results[0].error_code), expected);
    }
    let has = |world: &World| world.state.security.view_credentials(|all| all.users().count());
    assert_eq!(cluster.worlds().map(has).collect::<Vec<_>>(), [1, 1]);

    // What alice may do is decided by her name, not by that of the broker.
    world.be("alice");
    let created = world.ask(&create(vec![creatable("orders", 1), creatable("invoices", 1)]));
    let codes: Vec<_> = created.topics.iter().map(|topic| code(topic.error_code)).collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::TopicAuthorizationFailed]);
    let deleted = world.ask(&every_deletion());
    assert_eq!(code(deleted.filter_results[0].error_code), refused);
    world.be("admin");
    let deleted = world.ask(&every_deletion());
    assert_eq!(deleted.filter_results[0].matching_acls.len(), 1);
}

#[test]
fn loggers_are_those_of_the_broker_that_is_asked_and_defaults_those_of_all() {
    let cluster = Cluster::of(2);
    let world = asked(&cluster);
    let of = |kind, name: &str, key: &str, value: &str| {
        let altered = world.ask(&altering(kind, name, &[(SET, key, Some(value))]));
        code(altered.responses[0].error_code)
    };
    // A test has no loggers, which only broker 2 says of itself.
    assert_eq!(of(BROKER_LOGGER, "2", "moldau", "DEBUG"), ErrorCode::InvalidConfig);
    assert_eq!(of(BROKER_LOGGER, "1", "moldau", "DEBUG"), ErrorCode::InvalidRequest);
    for name in ["1", "2"] {
        assert_eq!(of(BROKER, name, "log.retention.ms", "5000"), ErrorCode::InvalidRequest);
    }
    assert_eq!(of(BROKER, "", "log.retention.ms", "5000"), ErrorCode::None);
    let defaults = world.state.catalog.defaults();
    assert_eq!(defaults.of("retention.ms"), "5000");
}

#[test]
fn a_request_outlives_a_controller_that_has_not_taken_it_and_closes_with_one_that_has() {
    let cluster = Cluster::of(2);
    let world = cluster.world(2);
    let owned = own(&cluster);
    let begin = |name| world.begin(CREATE_TOPICS, &create(vec![creatable(name, 1)]));
    let taken = begin("taken");
    eventually(|| block_on(cluster.memory.take(owned.epoch)).unwrap().len() == 1);
    let waits = begin("waits");
    drop(owned);
    cluster.wakes.announce_requests();
    let response = world.wait(taken.answer);
    assert!(response.closes.is_some() && response.is_empty());
    let created = world.finish::<CreateTopicsRequest>(waits);
    assert_eq!(code(created.topics[0].error_code), ErrorCode::None);
}

#[test]
fn a_malformed_request_is_refused_by_the_broker_that_is_asked() {
    let cluster = Cluster::of(2);
    let world = asked(&cluster);
    let frame = request_frame(CREATE_TOPICS, &create(vec![creatable("orders", 1)]));
    let refused = world.send(&frame[..frame.len() - 8]);
    assert!(matches!(refused, Reply::Close("malformed request")));
}

#[test]
fn a_request_for_more_topics_than_kafka_takes_changes_nothing() {
    let cluster = Cluster::of(2);
    for world in [&World::new(), asked(&cluster)] {
        world.create("orders", 100_000);
        let names: Vec<_> = (0..10_001).map(|index| format!("topic-{index}")).collect();
        let topics = names.iter().map(|name| creatable(name, 1)).collect();
        let created = world.ask(&create(topics));
        assert_eq!(created.topics.len(), names.len());
        let refused = |it: i16| code(it) == ErrorCode::PolicyViolation;
        assert!(created.topics.iter().all(|topic| refused(topic.error_code)));
        let mut grown = growth("orders", 200_000);
        grown.topics.extend(names.iter().flat_map(|name| growth(name, 2).topics));
        let grown = world.ask(&grown);
        assert!(grown.results.iter().all(|topic| refused(topic.error_code)));
        let named =
            |name: &String| DeleteTopicState { name: Some(name.clone()), ..Default::default() };
        let mut topics: Vec<_> = names.iter().map(named).collect();
        topics[0] = named(&"orders".to_owned());
        let deleted = world.ask(&DeleteTopicsRequest { topics, ..Default::default() });
        assert!(deleted.responses.iter().all(|topic| refused(topic.error_code)));
        assert_eq!(topic_partitions(world, "orders"), Some(100_000));
        assert_eq!(topic_partitions(world, "topic-7"), None);
    }
}

/// Clients give up after `KAFKA_STORAGE_ERROR`, which a change got in an outage of the database.
#[test]
fn a_change_that_is_lost_with_the_ownership_is_asked_of_the_next_controller() {
    let submissions = Arc::new(Submissions::new(100, 100));
    submissions.own(1);
    let storage = Storage::Shared(Arc::clone(&submissions));
    let lsn = storage.write(b"a change").unwrap();
    submissions.lose();
    let durable = durable_within(DURABLE_WITHIN, &storage, lsn);
    let lost = runtime().unwrap().block_on(durable).unwrap_err();
    assert_eq!(lost.code, ErrorCode::NotController);
}

/// Owns the log in place of a broker, and answers nobody.
fn own(cluster: &Cluster) -> Ownership {
    loop {
        cluster.memory.end_sessions(1);
        cluster.memory.end_sessions(2);
        if let Some(owned) = block_on(cluster.memory.claim(9, "test:1")).unwrap() {
            eventually(|| cluster.worlds().all(|world| !world.state.storage.decides()));
            return owned;
        }
    }
}
