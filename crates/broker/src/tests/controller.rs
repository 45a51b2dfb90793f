//! What tools ask the controller of a cluster, as one broker answers it.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use moldau_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use moldau_protocol::messages::elect_leaders_request::TopicPartitions;
use moldau_protocol::messages::list_partition_reassignments_request as list_request;
use moldau_protocol::messages::update_features_request::FeatureUpdateKey;
use moldau_protocol::messages::{
    AlterPartitionReassignmentsRequest, CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest, DescribeQuorumRequest, ElectLeadersRequest,
    ExpireDelegationTokenRequest, ListConfigResourcesRequest, ListPartitionReassignmentsRequest,
    RenewDelegationTokenRequest, UpdateFeaturesRequest,
};

use super::versions::each;
use super::world::{World, code};
use crate::config::NODE_ID;

fn election(election_type: i8, partitions: &[i32]) -> ElectLeadersRequest {
    let topic = TopicPartitions {
        topic: "orders".to_owned(),
        partitions: partitions.to_vec(),
        ..TopicPartitions::default()
    };
    ElectLeadersRequest {
        election_type,
        topic_partitions: Some(vec![topic]),
        ..ElectLeadersRequest::default()
    }
}

fn reassignment(
    partition_index: i32,
    replicas: Option<&[i32]>,
) -> AlterPartitionReassignmentsRequest {
    let partition = ReassignablePartition {
        partition_index,
        replicas: replicas.map(<[i32]>::to_vec),
        ..ReassignablePartition::default()
    };
    let topic = ReassignableTopic {
        name: "orders".to_owned(),
        partitions: vec![partition],
        ..ReassignableTopic::default()
    };
    AlterPartitionReassignmentsRequest {
        topics: vec![topic],
        ..AlterPartitionReassignmentsRequest::default()
    }
}

fn quorum(topic: &str, partition_index: i32) -> DescribeQuorumRequest {
    let partition = PartitionData { partition_index, ..PartitionData::default() };
    let topic = TopicData {
        topic_name: topic.to_owned(),
        partitions: vec![partition],
        ..TopicData::default()
    };
    DescribeQuorumRequest { topics: vec![topic], ..DescribeQuorumRequest::default() }
}

fn update(feature: &str, max_version_level: i16, upgrade_type: i8) -> UpdateFeaturesRequest {
    let update = FeatureUpdateKey {
        feature: feature.to_owned(),
        max_version_level,
        upgrade_type,
        ..FeatureUpdateKey::default()
    };
    UpdateFeaturesRequest { feature_updates: vec![update], ..UpdateFeaturesRequest::default() }
}

#[test]
fn every_partition_has_its_leader() {
    let world = World::new();
    world.create("orders", 2);
    for election_type in [0, 1] {
        let response = world.ask(&election(election_type, &[0, 1, 2]));
        let results = response.replica_election_results[0].partition_result.iter();
        let codes: Vec<_> = results.map(|result| code(result.error_code)).collect();
        let not_needed = ErrorCode::ElectionNotNeeded;
        assert_eq!(codes, [not_needed, not_needed, ErrorCode::UnknownTopicOrPartition]);
        assert_eq!(response.error_code, 0);
    }
    assert_eq!(code(world.ask(&election(9, &[0])).error_code), ErrorCode::InvalidRequest);
}

#[test]
fn a_partition_is_reassigned_to_where_it_is_alone() {
    let world = World::new();
    world.create("orders", 2);
    let ask = |partition, replicas: Option<&[i32]>| {
        let response = world.ask(&reassignment(partition, replicas));
        assert_eq!(response.error_code, 0);
        code(response.responses[0].partitions[0].error_code)
    };
    assert_eq!(ask(0, Some(&[NODE_ID])), ErrorCode::None);
    assert_eq!(ask(7, Some(&[NODE_ID])), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(ask(0, None), ErrorCode::NoReassignmentInProgress);
    for elsewhere in [&[][..], &[7], &[NODE_ID, 7], &[NODE_ID, NODE_ID]] {
        assert_eq!(ask(0, Some(elsewhere)), ErrorCode::InvalidReplicaAssignment);
    }
    let all = ListPartitionReassignmentsRequest { topics: None, ..Default::default() };
    assert!(world.ask(&all).topics.is_empty());
}

#[test]
fn the_broker_is_the_only_voter() {
    let world = World::new();
    world.create("orders", 2);
    let response = world.ask(&quorum("__cluster_metadata", 0));
    let partition = &response.topics[0].partitions[0];
    assert_eq!((partition.error_code, partition.leader_id), (0, NODE_ID));
    assert!(partition.high_watermark > 0);
    assert!(partition.current_voters[0].log_end_offset >= partition.high_watermark);
    assert!(partition.observers.is_empty());
    assert_eq!(response.nodes.iter().map(|node| node.node_id).collect::<Vec<_>>(), [NODE_ID]);
    let other = world.ask(&quorum("orders", 0));
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(code(other.topics[0].partitions[0].error_code), unknown);
}

#[test]
fn levels_of_features_are_fixed() {
    let world = World::new();
    let ask =
        |feature, level, upgrade| code(world.ask(&update(feature, level, upgrade)).error_code);
    assert_eq!(ask("transaction.version", 2, 1), ErrorCode::None);
    for (feature, level, upgrade) in [
        ("transaction.version", 1, 1),
        ("transaction.version", 1, 2),
        ("transaction.version", 3, 1),
        ("metadata.version", 1, 1),
    ] {
        assert_eq!(ask(feature, level, upgrade), ErrorCode::InvalidUpdateVersion);
    }
}

#[test]
fn resources_with_a_configuration_are_listed() {
    let world = World::new();
    world.create("orders", 1);
    let of = |resource_types: &[i8]| {
        let resource_types = resource_types.to_vec();
        let request = ListConfigResourcesRequest { resource_types, ..Default::default() };
        let response = world.ask(&request);
        let listed = response.config_resources.into_iter();
        (code(response.error_code), listed.map(|it| it.resource_name).collect::<Vec<_>>())
    };
    assert_eq!(of(&[2]), (ErrorCode::None, vec!["orders".to_owned()]));
    assert_eq!(of(&[4]), (ErrorCode::None, vec![NODE_ID.to_string()]));
    assert_eq!(of(&[16, 32]), (ErrorCode::None, vec![]));
    assert_eq!(of(&[]).1.len(), 3);
    assert_eq!(of(&[99]).0, ErrorCode::UnsupportedVersion);
}

#[test]
fn there_are_no_delegation_tokens() {
    let world = World::new();
    let response = world.ask(&DescribeDelegationTokenRequest::default());
    assert_eq!(code(response.error_code), ErrorCode::DelegationTokenRequestNotAllowed);
}

/// Asks every version of what tools ask the controller.
pub(super) fn ask_the_controller(world: &World) {
    each(world, |version| election(i8::from(version > 0), &[0, 7]));
    each(world, |_| reassignment(0, Some(&[NODE_ID])));
    each(world, |_| reassignment(7, None));
    each(world, |_| ListPartitionReassignmentsRequest {
        topics: Some(vec![list_request::ListPartitionReassignmentsTopics {
            name: "orders".to_owned(),
            partition_indexes: vec![0],
            ..list_request::ListPartitionReassignmentsTopics::default()
        }]),
        ..ListPartitionReassignmentsRequest::default()
    });
    each(world, |_| quorum("__cluster_metadata", 0));
    each(world, |_| quorum("orders", 0));
    each(world, |_| update("transaction.version", 2, 1));
    each(world, |_| update("planets.version", 2, 1));
    each(world, |_| ListConfigResourcesRequest::default());
    each(world, |_| CreateDelegationTokenRequest::default());
    each(world, |_| RenewDelegationTokenRequest::default());
    each(world, |_| ExpireDelegationTokenRequest::default());
    each(world, |_| DescribeDelegationTokenRequest::default());
}
