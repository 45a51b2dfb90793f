//! Topics: created, described, grown, deleted.

use std::collections::BTreeSet;

use moldau_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use moldau_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use moldau_protocol::messages::create_topics_response::CreatableTopicResult;
use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::metadata_response::MetadataResponseTopic;
use moldau_protocol::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeTopicPartitionsRequest, MetadataRequest,
};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_storage::Drive;

use super::requests::{creatable, create, pairs};
use super::world::{NOW_MS, World, batch, code, unknown_id};

fn try_create(world: &World, topic: CreatableTopic) -> CreatableTopicResult {
    world.ask(&create(vec![topic])).topics.remove(0)
}

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(name.to_owned()), ..MetadataRequestTopic::default() }
}

fn metadata(world: &World, topics: Vec<MetadataRequestTopic>) -> Vec<MetadataResponseTopic> {
    let request = MetadataRequest {
        topics: Some(topics),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    world.ask(&request).topics
}

/// What is said to a client that lets a topic come into being by asking for it.
fn ask_for(world: &World, name: &str) -> ErrorCode {
    let request = MetadataRequest {
        topics: Some(vec![named(name)]),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    code(world.ask(&request).topics[0].error_code)
}

fn names(world: &World) -> Vec<String> {
    let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
    world.ask(&request).topics.into_iter().filter_map(|topic| topic.name).collect()
}

fn assigned(places: &[(i32, &[i32])]) -> CreatableTopic {
    let assignments = places.iter().map(|(partition_index, brokers)| CreatableReplicaAssignment {
        partition_index: *partition_index,
        broker_ids: brokers.to_vec(),
        ..CreatableReplicaAssignment::default()
    });
    CreatableTopic {
        replication_factor: -1,
        assignments: assignments.collect(),
        ..creatable("assigned", -1)
    }
}

#[test]
fn created_topic_is_described_as_requested() {
    let world = World::new();
    let topic =
        CreatableTopic { configs: pairs(&[("retention.ms", "1000")]), ..creatable("orders", 2) };
    let created = try_create(&world, topic);
    assert_eq!((created.num_partitions, created.replication_factor), (2, 1));
    let configs = created.configs.unwrap();
    let retention = configs.iter().find(|config| config.name == "retention.ms").unwrap();
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("1000"), 1));
    let found = metadata(&world, vec![named("orders")]).remove(0);
    assert_eq!(found.topic_id, created.topic_id);
    assert_ne!(found.topic_id, Uuid::ZERO);
    let partitions: Vec<_> = found.partitions.iter().map(|it| it.partition_index).collect();
    assert_eq!(partitions, [0, 1]);
    assert!(found.partitions.iter().all(|it| it.leader_id == 0 && it.isr_nodes == [0]));
}

#[test]
fn unset_topic_values_are_defaults() {
    let world = World::new();
    let created =
        try_create(&world, CreatableTopic { replication_factor: -1, ..creatable("orders", -1) });
    assert_eq!((created.num_partitions, created.replication_factor), (3, 1));
}

#[test]
fn invalid_topic_gets_its_own_error_code() {
    let world = World::new();
    world.create("orders", 1);
    let long = "n".repeat(250);
    let refused = |topic| code(try_create(&world, topic).error_code);
    for name in ["", ".", "..", "a b", "a/b", "é", long.as_str()] {
        assert_eq!(refused(creatable(name, 1)), ErrorCode::InvalidTopicException, "{name}");
    }
    assert_eq!(refused(creatable("orders", 1)), ErrorCode::TopicAlreadyExists);
    for partitions in [0, -2, i32::MIN] {
        assert_eq!(refused(creatable("other", partitions)), ErrorCode::InvalidPartitions);
    }
    for replication_factor in [0, -2, 2] {
        let topic = CreatableTopic { replication_factor, ..creatable("other", 1) };
        assert_eq!(refused(topic), ErrorCode::InvalidReplicationFactor);
    }
    for (name, value) in [("segment.bytes", "1"), ("retention.ms", "week")] {
        let topic = CreatableTopic { configs: pairs(&[(name, value)]), ..creatable("other", 1) };
        assert_eq!(refused(topic), ErrorCode::InvalidConfig);
    }
    let config = CreatableTopicConfig {
        name: "retention.ms".to_owned(),
        value: None,
        ..CreatableTopicConfig::default()
    };
    let topic = CreatableTopic { configs: vec![config], ..creatable("other", 1) };
    assert_eq!(refused(topic), ErrorCode::InvalidConfig);
    assert_eq!(names(&world), ["orders"]);
}

/// Metrics show both as a_b_c.
#[test]
fn topics_that_differ_in_dots_and_underscores_only_are_refused() {
    let world = World::new();
    world.create("a.b_c", 1);
    let refused = |world: &World, name| code(try_create(world, creatable(name, 1)).error_code);
    for name in ["a_b_c", "a.b.c", "a_b.c"] {
        assert_eq!(refused(&world, name), ErrorCode::InvalidTopicException, "{name}");
        assert_eq!(ask_for(&world, name), ErrorCode::InvalidTopicException, "{name}");
    }
    assert_eq!(refused(&world, "a.b_c"), ErrorCode::TopicAlreadyExists);
    world.create("a-b-c", 1);
    world.create("a.b", 1);
    world.state.catalog.grow(&world.state.storage, "a.b_c", 2).unwrap();
    let world = world.restarted();
    assert_eq!(refused(&world, "a_b_c"), ErrorCode::InvalidTopicException);
    world.delete("a.b_c");
    world.create("a_b_c", 1);
    let world = world.restarted();
    assert_eq!(refused(&world, "a.b.c"), ErrorCode::InvalidTopicException);
}

#[test]
fn internal_topics_of_kafka_are_refused() {
    let world = World::new();
    let internal =
        ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"];
    for name in internal {
        let refused = try_create(&world, creatable(name, 1));
        assert_eq!(code(refused.error_code), ErrorCode::InvalidTopicException, "{name}");
        assert_eq!(ask_for(&world, name), ErrorCode::InvalidTopicException, "{name}");
    }
    assert_eq!(names(&world), Vec::<String>::new());
}

#[test]
fn duplicate_topic_is_refused_alone() {
    let world = World::new();
    let topics = ["twice", "once", "twice"].map(|name| creatable(name, 1));
    let response = world.ask(&create(topics.into()));
    let codes: Vec<_> = response.topics.iter().map(|it| code(it.error_code)).collect();
    assert_eq!(codes, [ErrorCode::InvalidRequest, ErrorCode::None]);
    assert_eq!(names(&world), ["once"]);
}

#[test]
fn a_topic_that_stands_twice_is_neither_grown_nor_deleted() {
    let world = World::new();
    world.create("orders", 1);
    let grown = CreatePartitionsTopic { name: "orders".to_owned(), count: 2, ..Default::default() };
    let grow = CreatePartitionsRequest { topics: vec![grown; 2], ..Default::default() };
    let codes: Vec<_> = world.ask(&grow).results.iter().map(|it| code(it.error_code)).collect();
    assert_eq!(codes, [ErrorCode::InvalidRequest]);
    let deleted = DeleteTopicState { name: Some("orders".to_owned()), ..Default::default() };
    let delete = DeleteTopicsRequest { topics: vec![deleted; 2], ..Default::default() };
    let codes: Vec<_> = world.ask(&delete).responses.iter().map(|it| code(it.error_code)).collect();
    assert_eq!(codes, [ErrorCode::InvalidRequest]);
    assert_eq!(names(&world), ["orders"]);
}

/// An answer that holds the whole name and a word more could not be encoded.
#[test]
fn longest_possible_name_is_refused_with_a_response() {
    let world = World::new();
    let longest = "t".repeat(32_767);
    let response = world.ask(&create(vec![creatable(&longest, 1), creatable(&longest, 1)]));
    assert_eq!(code(response.topics[0].error_code), ErrorCode::InvalidRequest);
    let refused = try_create(&world, creatable(&longest, 1));
    assert_eq!(code(refused.error_code), ErrorCode::InvalidTopicException);
}

#[test]
fn a_manual_assignment_must_fit_the_one_broker() {
    let world = World::new();
    let refused = |topic| code(try_create(&world, topic).error_code);
    let invalid = ErrorCode::InvalidReplicaAssignment;
    assert_eq!(refused(assigned(&[(0, &[1])])), invalid);
    assert_eq!(refused(assigned(&[(0, &[0, 0])])), invalid);
    assert_eq!(refused(assigned(&[(0, &[])])), invalid);
    assert_eq!(refused(assigned(&[(1, &[0])])), invalid);
    assert_eq!(refused(assigned(&[(0, &[0]), (0, &[0])])), invalid);
    let counted = CreatableTopic { num_partitions: 1, ..assigned(&[(0, &[0])]) };
    assert_eq!(refused(counted), ErrorCode::InvalidRequest);
    let created = try_create(&world, assigned(&[(1, &[0]), (0, &[0])]));
    assert_eq!((code(created.error_code), created.num_partitions), (ErrorCode::None, 2));
}

#[test]
fn validating_a_topic_creates_nothing() {
    let world = World::new();
    world.create("orders", 1);
    let request = CreateTopicsRequest {
        validate_only: true,
        ..create(vec![creatable("fine", 4), creatable("orders", 1)])
    };
    let response = world.ask(&request);
    assert_eq!(code(response.topics[0].error_code), ErrorCode::None);
    assert_eq!(response.topics[0].num_partitions, 4);
    assert_eq!(code(response.topics[1].error_code), ErrorCode::TopicAlreadyExists);
    assert_eq!(names(&world), ["orders"]);
}

#[test]
fn a_topic_is_deleted_by_name_or_by_id() {
    let world = World::new();
    world.create("by-name", 1);
    let id = world.create("by-id", 1);
    let both = world.create("both", 1);
    let state = |name: Option<&str>, topic_id| DeleteTopicState {
        name: name.map(str::to_owned),
        topic_id,
        ..DeleteTopicState::default()
    };
    let topics = vec![
        state(Some("by-name"), Uuid::ZERO),
        state(None, id),
        state(Some("both"), both),
        state(None, Uuid::ZERO),
        state(None, unknown_id()),
        state(Some("absent"), Uuid::ZERO),
    ];
    let response = world.ask(&DeleteTopicsRequest { topics, ..DeleteTopicsRequest::default() });
    let codes: Vec<_> = response.responses.iter().map(|it| code(it.error_code)).collect();
    let (fine, invalid) = (ErrorCode::None, ErrorCode::InvalidRequest);
    let unknown = [ErrorCode::UnknownTopicId, ErrorCode::UnknownTopicOrPartition];
    assert_eq!(codes, [fine, fine, invalid, invalid, unknown[0], unknown[1]]);
    assert_eq!(response.responses[1].name.as_deref(), Some("by-id"));
    assert_eq!(names(&world), ["both"]);
}

#[test]
fn a_topic_created_again_is_empty_and_has_another_id() {
    let world = World::new();
    let before = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(world.commit("readers", "orders", 0, 1), ErrorCode::None);
    world.delete("orders");
    assert_ne!(world.create("orders", 1), before);
    assert_eq!(world.fetch("orders", 0, 0).high_watermark, 0);
    assert_eq!(world.committed("readers", "orders", 0).committed_offset, -1);
}

#[test]
fn partitions_can_be_added_but_not_removed() {
    let world = World::new();
    world.create("orders", 2);
    let grow = |name: &str, count, assignments: Option<&[i32]>, validate_only| {
        let assignments = assignments.map(|brokers| {
            let assignment = |broker: &i32| CreatePartitionsAssignment {
                broker_ids: vec![*broker],
                ..CreatePartitionsAssignment::default()
            };
            brokers.iter().map(assignment).collect()
        });
        let topic = CreatePartitionsTopic {
            name: name.to_owned(),
            count,
            assignments,
            ..CreatePartitionsTopic::default()
        };
        let topics = vec![topic];
        let request = CreatePartitionsRequest { topics, validate_only, ..Default::default() };
        code(world.ask(&request).results[0].error_code)
    };
    for count in [2, 1, 0, -1] {
        assert_eq!(grow("orders", count, None, false), ErrorCode::InvalidPartitions);
    }
    assert_eq!(grow("absent", 3, None, false), ErrorCode::UnknownTopicOrPartition);
    let invalid = ErrorCode::InvalidReplicaAssignment;
    assert_eq!(grow("orders", 4, Some(&[0]), false), invalid);
    assert_eq!(grow("orders", 4, Some(&[0, 1]), false), invalid);
    assert_eq!(grow("orders", 4, None, true), ErrorCode::None);
    assert_eq!(metadata(&world, vec![named("orders")])[0].partitions.len(), 2);
    assert_eq!(grow("orders", 4, Some(&[0, 0]), false), ErrorCode::None);
    assert_eq!(metadata(&world, vec![named("orders")])[0].partitions.len(), 4);
    world.append("orders", 3, batch(NOW_MS, &["a"]));
}

#[test]
fn metadata_creates_a_missing_topic_if_both_sides_allow_it() {
    let ask = |world: &World, name: &str, allow_auto_topic_creation| {
        let topics = Some(vec![named(name)]);
        let request =
            MetadataRequest { topics, allow_auto_topic_creation, ..MetadataRequest::default() };
        world.ask(&request).topics.remove(0)
    };
    let world = World::new();
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(code(ask(&world, "orders", false).error_code), unknown);
    let created = ask(&world, "orders", true);
    assert_eq!((code(created.error_code), created.partitions.len()), (ErrorCode::None, 3));
    let illegal = ask(&world, "not a name", true);
    assert_eq!(code(illegal.error_code), ErrorCode::InvalidTopicException);
    let strict = World::with(Drive::Threads, |config| config.auto_create_topics = false);
    assert_eq!(code(ask(&strict, "orders", true).error_code), unknown);
}

#[test]
fn metadata_finds_a_topic_by_id_and_says_null_for_the_name_of_an_unknown_one() {
    let world = World::new();
    let id = world.create("orders", 1);
    let by_id =
        |topic_id| MetadataRequestTopic { topic_id, name: None, ..MetadataRequestTopic::default() };
    let found = metadata(&world, vec![by_id(id), by_id(unknown_id())]);
    assert_eq!(found[0].name.as_deref(), Some("orders"));
    assert_eq!(code(found[1].error_code), ErrorCode::UnknownTopicId);
    assert_eq!((found[1].name.as_deref(), found[1].topic_id), (None, unknown_id()));
    // Kafka's consumer, which learns ids of topics by its assignment, leaves the name empty.
    let unnamed = MetadataRequestTopic { name: Some(String::new()), ..by_id(id) };
    assert_eq!(metadata(&world, vec![unnamed])[0].name.as_deref(), Some("orders"));
}

/// As in Kafka: the versions have the field, and do not take it.
#[test]
fn metadata_before_version_12_takes_no_ids() {
    let world = World::new();
    let id = world.create("orders", 1);
    for asked in [
        MetadataRequestTopic { topic_id: id, ..named("orders") },
        MetadataRequestTopic { topic_id: id, name: None, ..MetadataRequestTopic::default() },
    ] {
        let request = MetadataRequest { topics: Some(vec![asked]), ..MetadataRequest::default() };
        for version in [10, 11] {
            let response = world.ask_in(version, &request);
            assert_eq!(code(response.topics[0].error_code), ErrorCode::InvalidRequest);
            assert!(response.brokers.is_empty() && response.cluster_id.is_none());
        }
        assert_eq!(world.ask_in(12, &request).topics[0].error_code, 0);
    }
}

/// A request that repeats the name of a large topic would otherwise be answered by an answer that
/// no memory holds.
#[test]
fn metadata_describes_a_topic_once_however_often_it_is_asked_for() {
    let world = World::new();
    let id = world.create("orders", 1);
    let by_id = MetadataRequestTopic { topic_id: id, name: None, ..Default::default() };
    let asked = vec![named("orders"), named("orders"), by_id.clone(), by_id];
    assert_eq!(metadata(&world, asked).len(), 2, "once by name and once by id");
}

#[test]
fn metadata_of_no_topics_and_of_all_differ() {
    let world = World::new();
    world.create("a", 1);
    world.create("b", 1);
    assert_eq!(names(&world), ["a", "b"]);
    assert!(metadata(&world, Vec::new()).is_empty());
    let oldest = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
    assert_eq!(world.ask_in(0, &oldest).topics.len(), 2);
}

#[test]
fn pages_of_partitions_follow_one_another_without_gap_or_repetition() {
    let world = World::new();
    for (name, partitions) in [("a", 3), ("b", 1), ("c", 5), ("d", 2)] {
        world.create(name, partitions);
    }
    for limit in [-1, 0, 1, 2, 3, 4, 11, 100] {
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let request = DescribeTopicPartitionsRequest {
                topics: Vec::new(),
                response_partition_limit: limit,
                cursor,
                ..DescribeTopicPartitionsRequest::default()
            };
            let page = world.ask(&request);
            let described = page.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>();
            assert!(described <= usize::try_from(limit).unwrap_or(0).max(1), "{limit}");
            for topic in &page.topics {
                let name = topic.name.clone().unwrap();
                seen.extend(topic.partitions.iter().map(|it| (name.clone(), it.partition_index)));
            }
            let Some(next) = page.next_cursor else { break };
            cursor = Some(Cursor {
                topic_name: next.topic_name,
                partition_index: next.partition_index,
                ..Cursor::default()
            });
        }
        let distinct: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!((seen.len(), distinct.len()), (11, 11), "{limit}");
    }
}

#[test]
fn a_page_of_named_topics_names_those_that_do_not_exist() {
    let world = World::new();
    world.create("b", 2);
    let topics = ["c", "b", "a", "b", "not a name"]
        .map(|name| TopicRequest { name: name.to_owned(), ..TopicRequest::default() });
    let request = DescribeTopicPartitionsRequest {
        topics: topics.into(),
        response_partition_limit: 10,
        cursor: None,
        ..DescribeTopicPartitionsRequest::default()
    };
    let page = world.ask(&request);
    assert!(page.next_cursor.is_none());
    let told: Vec<_> = page
        .topics
        .iter()
        .map(|topic| (topic.name.as_deref().unwrap(), code(topic.error_code)))
        .collect();
    let unknown = ErrorCode::UnknownTopicOrPartition;
    let invalid = ErrorCode::InvalidTopicException;
    assert_eq!(
        told,
        [("a", unknown), ("b", ErrorCode::None), ("c", unknown), ("not a name", invalid)]
    );
}

#[test]
fn describe_cluster_names_only_this_broker() {
    let world = World::new();
    let cluster = world.ask(&DescribeClusterRequest::default());
    assert_eq!(code(cluster.error_code), ErrorCode::None);
    assert_eq!((cluster.cluster_id.as_str(), cluster.controller_id), (&*world.state.cluster_id, 0));
    let broker = &cluster.brokers[0];
    assert_eq!((broker.broker_id, broker.host.as_str(), broker.port), (0, "127.0.0.1", 9_092));
    let controllers = DescribeClusterRequest { endpoint_type: 2, ..Default::default() };
    let refused = world.ask(&controllers);
    assert_eq!(code(refused.error_code), ErrorCode::MismatchedEndpointType);
    assert!(refused.brokers.is_empty());
}
