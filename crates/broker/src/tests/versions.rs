//! Every API in every version that is served answers something that decodes in that version.
//!
//! An answer that its version cannot express is logged and the client waits for ever, so each API
//! is asked for things that exist and for things that do not.

use std::collections::BTreeSet;

use bytes::BytesMut;
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::create_topics_request::CreatableTopic;
use moldau_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use moldau_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use moldau_protocol::messages::fetch_request::ForgottenTopic;
use moldau_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use moldau_protocol::messages::leave_group_request::MemberIdentity;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use moldau_protocol::messages::{
    AlterConfigsRequest, ApiKey, ApiVersionsRequest, CreatePartitionsRequest, CreateTopicsRequest,
    DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeGroupsRequest, DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest, FetchRequest, FindCoordinatorRequest, HeartbeatRequest,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, LeaveGroupRequest, ListGroupsRequest,
    MetadataRequest, OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest,
    SyncGroupRequest, alter_configs_request,
};
use moldau_protocol::{ErrorCode, Request, Uuid, frame};

use super::acls::ask_about_security;
use super::consumer_groups::ask_about_consumer_groups;
use super::controller::ask_the_controller;
use super::requests::{commit, creatable, create, fetch, fetch_topic, join, list_offsets, produce};
use super::requests::{fetch_topic_id, pairs, sync};
use super::share_deliveries::ask_about_share_deliveries;
use super::share_groups::ask_about_share_groups;
use super::streams_groups::ask_about_streams_groups;
use super::telemetry::ask_about_telemetry;
use super::transactions::ask_about_transactions;
use super::world::{NOW_MS, World, batch, code, unknown_id};
use crate::config::NODE_ID;
use crate::dispatch::served_versions;

/// The last versions that name topics by name.
const PRODUCE_NAMES_UNTIL: i16 = 12;
const FETCH_NAMES_UNTIL: i16 = 12;
const OFFSETS_NAMES_UNTIL: i16 = 9;

fn versions_of(key: ApiKey) -> impl Iterator<Item = i16> {
    let versions = served_versions().find(|(served, _)| *served == key).map(|(_, range)| range);
    versions.unwrap().iter()
}

/// Asks every version for what `request` makes of it.
pub(super) fn each<Q: Request>(
    world: &World,
    request: impl Fn(i16) -> Q,
) -> Vec<(i16, Q::Response)> {
    versions_of(Q::KEY).map(|version| (version, world.ask_in(version, &request(version)))).collect()
}

#[test]
fn every_served_version_of_every_api_answers() {
    let world = World::new();
    ask_everything(&world);
    let served: BTreeSet<_> = served_versions()
        .flat_map(|(key, versions)| versions.iter().map(move |version| (key.key(), version)))
        .collect();
    let header = |frame: &BytesMut| frame::peek(frame).map(|it| (it.api_key, it.api_version));
    let asked: BTreeSet<_> = world.frames().iter().map(|frame| header(frame).unwrap()).collect();
    let left_out: Vec<_> = served.difference(&asked).collect();
    assert!(left_out.is_empty(), "not asked: {left_out:?}");
}

#[test]
fn client_without_software_name_is_refused() {
    let world = World::new();
    for (version, told) in each(&world, |_| ApiVersionsRequest::default()) {
        let expected = if version < 3 { ErrorCode::None } else { ErrorCode::InvalidRequest };
        assert_eq!(code(told.error_code), expected, "{version}");
        assert_eq!(told.api_keys.is_empty(), version >= 3, "{version}");
    }
}

/// KIP-1242: a client that finds another broker than it means starts again.
#[test]
fn client_of_another_cluster_must_rebootstrap() {
    let world = World::new();
    let here = world.ask(&MetadataRequest::default()).cluster_id;
    let asked = |cluster_id: Option<&str>, node_id| {
        let told = world.ask_in(
            5,
            &ApiVersionsRequest {
                client_software_name: "tester".to_owned(),
                client_software_version: "1".to_owned(),
                cluster_id: cluster_id.map(str::to_owned),
                node_id,
                ..ApiVersionsRequest::default()
            },
        );
        assert_eq!(told.api_keys.is_empty(), told.error_code != 0);
        code(told.error_code)
    };
    assert_eq!(asked(here.as_deref(), NODE_ID), ErrorCode::None);
    assert_eq!(asked(here.as_deref(), NODE_ID + 1), ErrorCode::RebootstrapRequired);
    assert_eq!(asked(Some("another cluster"), NODE_ID), ErrorCode::RebootstrapRequired);
    assert_eq!(asked(None, -1), ErrorCode::None);
    assert_eq!(asked(None, NODE_ID), ErrorCode::InvalidRequest, "a node without a cluster");
    assert_eq!(asked(here.as_deref(), -1), ErrorCode::InvalidRequest, "a cluster without a node");
}

/// librdkafka takes a broker whose Produce begins above 0 for one that cannot compress.
#[test]
fn advertised_versions_are_served_except_old_produce() {
    let told = World::new().ask_in(2, &ApiVersionsRequest::default());
    let told: Vec<_> =
        told.api_keys.iter().map(|it| (it.api_key, it.min_version, it.max_version)).collect();
    let served = served_versions().map(|(key, versions)| match key {
        ApiKey::Produce => (key.key(), 0, versions.max),
        _ => (key.key(), versions.min, versions.max),
    });
    assert_eq!(told, served.collect::<Vec<_>>());
}

/// Asks every API in every version, for what exists and for what does not.
pub(super) fn ask_everything(world: &World) {
    let orders = world.create_with("orders", 3, &[("retention.bytes", "1000000")]);
    world.append("orders", 0, batch(NOW_MS, &["a", "b"]));
    world.append("orders", 0, batch(NOW_MS + 1, &["c"]));
    world.append("orders", 1, batch(NOW_MS, &["d"]));
    world.lead("readers");
    assert_eq!(world.commit("tools", "orders", 0, 2), ErrorCode::None);
    ask_for_data(world, orders);
    ask_for_lookups(world);
    ask_for_descriptions(world, orders);
    ask_for_groups(world);
    ask_about_consumer_groups(world);
    ask_about_share_groups(world);
    ask_about_share_deliveries(world, orders);
    ask_about_streams_groups(world);
    ask_about_telemetry(world);
    ask_for_offsets(world, orders);
    ask_for_changes(world);
    ask_the_controller(world);
    ask_about_security(world);
    ask_about_transactions(world);
    ask_for_deletions(world);
}

fn ask_for_data(world: &World, orders: Uuid) {
    let records = batch(NOW_MS, &["e"]);
    each(world, |version| {
        let mut request = produce("orders", 2, records.clone());
        for (topic, partition) in [("absent", 0), ("orders", 9)] {
            request.topic_data.extend(produce(topic, partition, records.clone()).topic_data);
        }
        for (topic, id) in request.topic_data.iter_mut().zip([orders, unknown_id(), orders]) {
            if version > PRODUCE_NAMES_UNTIL {
                topic.topic_id = id;
                topic.name.clear();
            }
        }
        request
    });
    for session_epoch in [-1, 0] {
        each(world, |version| {
            let places = [(0, 0), (0, 1), (1, 0), (2, 99), (7, 0)];
            let by_name = version <= FETCH_NAMES_UNTIL;
            let topics = match by_name {
                true => vec![fetch_topic("orders", &places), fetch_topic("absent", &[(0, 0)])],
                false => {
                    vec![fetch_topic_id(orders, &places), fetch_topic_id(unknown_id(), &[(0, 0)])]
                }
            };
            let mut request = fetch(topics);
            if version >= 7 {
                request.session_epoch = session_epoch;
                request.forgotten_topics_data = vec![ForgottenTopic {
                    topic: if by_name { "orders".to_owned() } else { String::new() },
                    topic_id: if by_name { Uuid::ZERO } else { orders },
                    partitions: vec![0],
                    ..ForgottenTopic::default()
                }];
            }
            if version >= 9 {
                // A fenced epoch, an unknown one and, from version 12, one that was never.
                request.topics[0].partitions[1].current_leader_epoch = 5;
                request.topics[0].partitions[2].current_leader_epoch = 0;
            }
            if version >= 12 {
                request.topics[0].partitions[0].last_fetched_epoch = 0;
            }
            request
        });
    }
    // A session that does not exist, where there are sessions.
    for version in versions_of(ApiKey::Fetch).filter(|version| *version >= 7) {
        let request = FetchRequest { session_id: 5, session_epoch: 3, ..fetch(Vec::new()) };
        let response = world.ask_in(version, &request);
        assert_eq!(code(response.error_code), ErrorCode::FetchSessionIdNotFound);
    }
}

fn ask_for_lookups(world: &World) {
    for timestamp in [-6, -5, -4, -3, -2, -1, 0, NOW_MS, NOW_MS + 1, i64::MAX, i64::MIN] {
        each(world, |version| {
            let mut request = list_offsets("orders", 0, timestamp);
            request.topics.push(list_offsets("absent", 0, timestamp).topics.remove(0));
            if version >= 4 {
                request.topics[0].partitions[0].current_leader_epoch = 0;
            }
            request
        });
    }
    each(world, |_| OffsetForLeaderEpochRequest {
        topics: ["orders", "absent"]
            .map(|topic| OffsetForLeaderTopic {
                topic: topic.to_owned(),
                partitions: [0, 1, 9]
                    .map(|epoch| OffsetForLeaderPartition {
                        partition: 0,
                        current_leader_epoch: epoch - 1,
                        leader_epoch: epoch,
                        ..OffsetForLeaderPartition::default()
                    })
                    .into(),
                ..OffsetForLeaderTopic::default()
            })
            .into(),
        replica_id: -2,
        ..OffsetForLeaderEpochRequest::default()
    });
    each(world, |version| FindCoordinatorRequest {
        key: if version < 4 { "readers".to_owned() } else { String::new() },
        coordinator_keys: if version < 4 { vec![] } else { vec!["readers".to_owned()] },
        ..FindCoordinatorRequest::default()
    });
    for version in versions_of(ApiKey::FindCoordinator).filter(|version| *version >= 1) {
        let keys = vec!["transaction".to_owned()];
        let request = FindCoordinatorRequest {
            key_type: 1,
            coordinator_keys: if version < 4 { vec![] } else { keys },
            ..FindCoordinatorRequest::default()
        };
        world.ask_in(version, &request);
    }
}

fn ask_for_descriptions(world: &World, orders: Uuid) {
    each(world, |version| ApiVersionsRequest {
        client_software_name: if version < 3 { String::new() } else { "tester".to_owned() },
        client_software_version: if version < 3 { String::new() } else { "1".to_owned() },
        ..ApiVersionsRequest::default()
    });
    let named = |name: &str| MetadataRequestTopic {
        name: Some(name.to_owned()),
        ..MetadataRequestTopic::default()
    };
    each(world, |version| MetadataRequest {
        topics: (version > 0).then(Vec::new).or(Some(Vec::new())),
        ..MetadataRequest::default()
    });
    each(world, |version| {
        let mut topics =
            vec![named("orders"), named("not a name"), named(&format!("created-by-{version}"))];
        if version >= 10 {
            topics.extend([orders, unknown_id()].map(|topic_id| MetadataRequestTopic {
                topic_id,
                name: None,
                ..MetadataRequestTopic::default()
            }));
        }
        MetadataRequest { topics: Some(topics), ..MetadataRequest::default() }
    });
    each(world, |_| DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        ..DescribeClusterRequest::default()
    });
    world.ask_in(1, &DescribeClusterRequest { endpoint_type: 2, ..Default::default() });
    each(world, |version| DescribeConfigsRequest {
        resources: [(2, "orders"), (2, "absent"), (4, "0"), (4, "7"), (32, "readers")]
            .map(|(resource_type, name)| DescribeConfigsResource {
                resource_type,
                resource_name: name.to_owned(),
                configuration_keys: None,
                ..DescribeConfigsResource::default()
            })
            .into(),
        include_synonyms: true,
        include_documentation: version >= 3,
        ..DescribeConfigsRequest::default()
    });
    each(world, |_| DescribeLogDirsRequest::default());
    each(world, |_| DescribeLogDirsRequest {
        topics: Some(
            ["orders", "absent"]
                .map(|topic| DescribableLogDirTopic {
                    topic: topic.to_owned(),
                    partitions: vec![0, 2, 9, -1],
                    ..DescribableLogDirTopic::default()
                })
                .into(),
        ),
        ..DescribeLogDirsRequest::default()
    });
    each(world, |_| DescribeTopicPartitionsRequest {
        topics: ["orders", "absent", "not a name"]
            .map(|name| TopicRequest { name: name.to_owned(), ..TopicRequest::default() })
            .into(),
        response_partition_limit: 2,
        cursor: Some(Cursor {
            topic_name: "orders".to_owned(),
            partition_index: 1,
            ..Cursor::default()
        }),
        ..DescribeTopicPartitionsRequest::default()
    });
}

fn ask_for_groups(world: &World) {
    for version in versions_of(ApiKey::JoinGroup) {
        let group = format!("group-{version}");
        let mut joined = world.ask_in(version, &join(&group, ""));
        if code(joined.error_code) == ErrorCode::MemberIdRequired {
            joined = world.ask_in(version, &join(&group, &joined.member_id));
        }
        assert_eq!(code(joined.error_code), ErrorCode::None, "{version}");
        assert_eq!(joined.members.len(), 1, "{version}");
        let own = joined.member_id.clone();
        let mut synced = sync(&group, &joined, &own, &[(&own, "assigned")]);
        for version in versions_of(ApiKey::SyncGroup) {
            if version >= 5 {
                synced.protocol_type = Some("consumer".to_owned());
                synced.protocol_name = Some("range".to_owned());
            }
            let answer = world.ask_in(version, &synced);
            assert_eq!(code(answer.error_code), ErrorCode::None, "{version}");
            assert_eq!(answer.assignment, "assigned");
        }
        // A member that the group does not know.
        let refused = world.ask_in(version, &join(&group, "stranger"));
        assert_eq!(code(refused.error_code), ErrorCode::UnknownMemberId, "{version}");
    }
    each(world, |version| {
        let mut stranger = join("group-5", "stranger");
        stranger.group_instance_id = (version >= 5).then(|| "instance".to_owned());
        stranger
    });
    each(world, |version| SyncGroupRequest {
        group_id: "absent".to_owned(),
        protocol_type: (version >= 5).then(|| "consumer".to_owned()),
        ..SyncGroupRequest::default()
    });
    each(world, |_| HeartbeatRequest {
        group_id: "readers".to_owned(),
        ..HeartbeatRequest::default()
    });
    each(world, |_| DescribeGroupsRequest {
        groups: vec!["readers".to_owned(), "absent".to_owned(), "tools".to_owned()],
        ..DescribeGroupsRequest::default()
    });
    let listed = each(world, |version| ListGroupsRequest {
        states_filter: if version < 4 { vec![] } else { vec!["Stable".to_owned()] },
        types_filter: if version < 5 { vec![] } else { vec!["classic".to_owned()] },
        ..ListGroupsRequest::default()
    });
    assert!(listed.iter().all(|(_, answer)| answer.groups.len() >= 2));
    each(world, |version| LeaveGroupRequest {
        group_id: "readers".to_owned(),
        member_id: if version < 3 { "stranger".to_owned() } else { String::new() },
        members: match version {
            0..3 => vec![],
            _ => vec![MemberIdentity {
                member_id: "stranger".to_owned(),
                group_instance_id: Some("instance".to_owned()),
                reason: None,
                ..MemberIdentity::default()
            }],
        },
        ..LeaveGroupRequest::default()
    });
}

fn ask_for_offsets(world: &World, orders: Uuid) {
    for topic in ["orders", "absent"] {
        each(world, |version| {
            let mut request = commit("tools", topic, 0, 2);
            if version > OFFSETS_NAMES_UNTIL {
                let asked = &mut request.topics[0];
                asked.name.clear();
                asked.topic_id = if topic == "orders" { orders } else { unknown_id() };
            }
            if version >= 6 {
                request.topics[0].partitions[0].committed_leader_epoch = 0;
            }
            request
        });
    }
    for group in ["tools", "absent"] {
        for all in [false, true] {
            each(world, |version| offset_fetch(version, group, all, orders));
        }
    }
    each(world, |_| OffsetDeleteRequest {
        group_id: "tools".to_owned(),
        topics: ["orders", "absent"]
            .map(|name| OffsetDeleteRequestTopic {
                name: name.to_owned(),
                partitions: vec![OffsetDeleteRequestPartition::default()],
            })
            .into(),
    });
    each(world, |version| DeleteGroupsRequest {
        groups_names: vec![format!("group-{version}"), "absent".to_owned()],
        ..DeleteGroupsRequest::default()
    });
}

fn offset_fetch(version: i16, group: &str, all: bool, orders: Uuid) -> OffsetFetchRequest {
    let names = ["orders", "absent"];
    if version < 8 {
        let topics = names.map(|name| OffsetFetchRequestTopic {
            name: name.to_owned(),
            partition_indexes: vec![0, 9],
            ..OffsetFetchRequestTopic::default()
        });
        return OffsetFetchRequest {
            group_id: group.to_owned(),
            topics: if all && version >= 2 { None } else { Some(topics.into()) },
            ..OffsetFetchRequest::default()
        };
    }
    let topics = [("orders", orders), ("absent", unknown_id())].map(|(name, topic_id)| {
        let by_name = version <= OFFSETS_NAMES_UNTIL;
        OffsetFetchRequestTopics {
            name: if by_name { name.to_owned() } else { String::new() },
            topic_id: if by_name { Uuid::ZERO } else { topic_id },
            partition_indexes: vec![0, 9],
            ..OffsetFetchRequestTopics::default()
        }
    });
    let asked = OffsetFetchRequestGroup {
        group_id: group.to_owned(),
        topics: if all { None } else { Some(topics.into()) },
        ..OffsetFetchRequestGroup::default()
    };
    OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() }
}

fn ask_for_changes(world: &World) {
    each(world, |version| CreateTopicsRequest {
        validate_only: version % 2 == 0,
        topics: vec![
            creatable(&format!("topic-{version}"), 1),
            creatable("orders", 1),
            creatable("twice", 1),
            creatable("twice", 1),
            CreatableTopic {
                configs: pairs(&[("segment.bytes", "1")]),
                ..creatable("segmented", 1)
            },
        ],
        ..create(Vec::new())
    });
    each(world, |version| CreatePartitionsRequest {
        topics: ["orders", "absent"]
            .map(|name| CreatePartitionsTopic {
                name: name.to_owned(),
                count: 4 + i32::from(version),
                assignments: None,
                ..CreatePartitionsTopic::default()
            })
            .into(),
        ..CreatePartitionsRequest::default()
    });
    each(world, |_| IncrementalAlterConfigsRequest {
        resources: [(2, "orders"), (2, "absent"), (4, "0")]
            .map(|(resource_type, name)| AlterConfigsResource {
                resource_type,
                resource_name: name.to_owned(),
                configs: vec![AlterableConfig {
                    name: "retention.ms".to_owned(),
                    value: Some("5".to_owned()),
                    ..AlterableConfig::default()
                }],
                ..AlterConfigsResource::default()
            })
            .into(),
        ..IncrementalAlterConfigsRequest::default()
    });
    each(world, |_| AlterConfigsRequest {
        resources: [(2, "orders"), (2, "absent"), (4, "0")]
            .map(|(resource_type, name)| alter_configs_request::AlterConfigsResource {
                resource_type,
                resource_name: name.to_owned(),
                ..Default::default()
            })
            .into(),
        ..AlterConfigsRequest::default()
    });
    each(world, |version| InitProducerIdRequest {
        transactional_id: (version % 2 == 1).then(|| "transaction".to_owned()),
        ..InitProducerIdRequest::default()
    });
}

fn ask_for_deletions(world: &World) {
    each(world, |_| DeleteRecordsRequest {
        topics: ["orders", "absent"]
            .map(|name| DeleteRecordsTopic {
                name: name.to_owned(),
                partitions: [-1, 1_000]
                    .map(|offset| DeleteRecordsPartition { offset, ..Default::default() })
                    .into(),
                ..DeleteRecordsTopic::default()
            })
            .into(),
        ..DeleteRecordsRequest::default()
    });
    each(world, |version| {
        let names = [format!("created-by-{version}"), "absent".to_owned()];
        let mut request = DeleteTopicsRequest::default();
        match version {
            0..6 => request.topic_names = names.into(),
            _ => {
                let by_name = |name| DeleteTopicState { name, ..DeleteTopicState::default() };
                request.topics = names.map(|name| by_name(Some(name))).into();
                request.topics.push(DeleteTopicState { topic_id: unknown_id(), ..by_name(None) });
                request.topics.push(by_name(None));
            }
        }
        request
    });
}
