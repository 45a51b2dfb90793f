//! Members of streams groups over the handlers; the rules are tested in the coordinator.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::streams_group_describe_response::DescribedGroup;
use moldau_protocol::messages::streams_group_heartbeat_request::{
    KeyValue, Subtopology, TopicInfo, Topology,
};
use moldau_protocol::messages::streams_group_heartbeat_response::TaskIds;
use moldau_protocol::messages::{
    DeleteGroupsRequest, DescribeConfigsRequest, StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse,
};
use moldau_storage::Drive;

use super::acls::{GROUP, READ, TOPIC};
use super::versions::each;
use super::world::{CLIENT_ID, World, code};
use crate::config::Config;

const CREATE: i8 = 5;
const DESCRIBE: i8 = 8;
const RESOURCE_TOPIC: i8 = 2;

pub(super) const APPLICATION: &str = "application";
pub(super) const CHANGELOG: &str = "application-counts-changelog";

/// Status of an application whose internal topics are missing.
pub(super) const MISSING_INTERNAL_TOPICS: i8 = 3;

/// Counts the records of `orders`.
fn topology() -> Topology {
    let compact = KeyValue {
        key: "cleanup.policy".to_owned(),
        value: "compact".to_owned(),
        ..<_>::default()
    };
    let changelog = TopicInfo {
        name: CHANGELOG.to_owned(),
        topic_configs: vec![compact],
        ..TopicInfo::default()
    };
    let part = Subtopology {
        subtopology_id: "0".to_owned(),
        source_topics: vec!["orders".to_owned()],
        state_changelog_topics: vec![changelog],
        ..Subtopology::default()
    };
    Topology { epoch: 0, subtopologies: vec![part], ..Topology::default() }
}

pub(super) fn joining(member: &str) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        rebalance_timeout_ms: 30_000,
        topology: Some(topology()),
        process_id: Some("process".to_owned()),
        ..staying(member, 0)
    }
}

pub(super) fn staying(member: &str, epoch: i32) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: APPLICATION.to_owned(),
        member_id: member.to_owned(),
        member_epoch: epoch,
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        ..StreamsGroupHeartbeatRequest::default()
    }
}

pub(super) fn described(world: &World) -> DescribedGroup {
    let group_ids = vec![APPLICATION.to_owned()];
    let request = StreamsGroupDescribeRequest { group_ids, ..Default::default() };
    world.ask(&request).groups.remove(0)
}

pub(super) fn statuses(answer: &StreamsGroupHeartbeatResponse) -> Vec<i8> {
    answer.status.iter().flatten().map(|status| status.status_code).collect()
}

/// A broker whose streams groups assign at once.
fn hasty() -> World {
    World::with(Drive::Threads, hurry)
}

pub(super) fn hurry(config: &mut Config) {
    config.groups.streams.settings.initial_rebalance_delay_ms = 0;
    config.groups.streams.settings.assignment_interval_ms = 0;
}

/// Every version with what it can say.
pub(super) fn ask_about_streams_groups(world: &World) {
    let answers = each(world, |version| StreamsGroupHeartbeatRequest {
        group_id: format!("application-{version}"),
        ..joining("member")
    });
    for (version, answer) in answers {
        assert_eq!(code(answer.error_code), ErrorCode::None, "{version}");
    }
    for (version, answer) in each(world, |_| staying("stranger", 5)) {
        assert_eq!(code(answer.error_code), ErrorCode::GroupIdNotFound, "{version}");
    }
    let answers = each(world, |version| StreamsGroupDescribeRequest {
        group_ids: vec![format!("application-{version}"), "absent".to_owned()],
        include_authorized_operations: true,
        include_topology_description: version >= 1,
        ..StreamsGroupDescribeRequest::default()
    });
    for (version, answer) in answers {
        let codes: Vec<_> = answer.groups.iter().map(|group| code(group.error_code)).collect();
        assert_eq!(codes, [ErrorCode::None, ErrorCode::GroupIdNotFound], "{version}");
    }
}

#[test]
fn internal_topics_are_created_and_tasks_assigned() {
    let world = hasty();
    world.create("orders", 3);
    let joined = world.ask(&joining("a"));
    assert_eq!((code(joined.error_code), joined.error_message.clone()), (ErrorCode::None, None));
    assert_eq!(statuses(&joined), [MISSING_INTERNAL_TOPICS]);
    assert_eq!((joined.heartbeat_interval_ms, joined.acceptable_recovery_lag), (5_000, 10_000));
    let changelog = world.state.catalog.by_name(CHANGELOG).expect("it was created");
    assert_eq!(changelog.partitions, 3);
    let resource = moldau_protocol::messages::describe_configs_request::DescribeConfigsResource {
        resource_type: RESOURCE_TOPIC,
        resource_name: CHANGELOG.to_owned(),
        configuration_keys: Some(vec!["cleanup.policy".to_owned()]),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let configs = world.ask(&request).results.remove(0).configs;
    assert_eq!(configs[0].value.as_deref(), Some("compact"));
    let stayed = world.ask(&staying("a", joined.member_epoch));
    assert_eq!(statuses(&stayed), [0_i8; 0]);
    let active = stayed.active_tasks.expect("an assignment");
    let tasks: Vec<_> =
        active.iter().map(|it| (it.subtopology_id.as_str(), &it.partitions[..])).collect();
    assert_eq!(tasks, [("0", &[0, 1, 2][..])]);
    assert_eq!(stayed.warmup_tasks, Some(Vec::<TaskIds>::new()));
    let group = described(&world);
    assert_eq!(
        (group.group_state.as_str(), group.assignor_name.as_deref()),
        ("Stable", Some("sticky"))
    );
    let topology = group.topology.expect("a topology");
    let parts = topology.subtopologies.expect("its parts");
    assert_eq!(parts[0].state_changelog_topics[0].partitions, 3);
    assert_eq!(group.members[0].client_id, CLIENT_ID);
    let world = world.restarted();
    assert_eq!(described(&world).group_state, "Stable");
    let left = world.ask(&StreamsGroupHeartbeatRequest {
        active_tasks: None,
        standby_tasks: None,
        warmup_tasks: None,
        ..staying("a", -1)
    });
    assert_eq!((code(left.error_code), left.member_epoch), (ErrorCode::None, -1));
    let groups_names = vec![APPLICATION.to_owned()];
    let deleted = world.ask(&DeleteGroupsRequest { groups_names, ..Default::default() });
    assert_eq!(code(deleted.results[0].error_code), ErrorCode::None);
    assert_eq!(code(described(&world).error_code), ErrorCode::GroupIdNotFound);
}

#[test]
fn a_topology_must_have_topics_that_there_can_be() {
    let world = hasty();
    let refused = |change: &dyn Fn(&mut Subtopology)| {
        let mut request = joining("a");
        let topology = request.topology.as_mut().expect("it joins");
        change(&mut topology.subtopologies[0]);
        code(world.ask(&request).error_code)
    };
    let invalid = ErrorCode::StreamsInvalidTopology;
    assert_eq!(
        refused(&|part| part.source_topics = vec!["__consumer_offsets".to_owned()]),
        invalid
    );
    assert_eq!(refused(&|part| part.source_topics = vec!["a/b".to_owned()]), invalid);
    let regex = refused(&|part| part.source_topic_regex = vec!["a.*".to_owned()]);
    assert_eq!(regex, ErrorCode::InvalidRequest);
    let mut twice = joining("a");
    let parts = &mut twice.topology.as_mut().expect("it joins").subtopologies;
    parts.push(parts[0].clone());
    assert_eq!(code(world.ask(&twice).error_code), invalid);
}

#[test]
fn internal_topics_that_cannot_be_created_are_explained() {
    let world = hasty();
    world.create("orders", 1);
    let mut request = joining("a");
    let topology = request.topology.as_mut().expect("it joins");
    topology.subtopologies[0].state_changelog_topics[0].replication_factor = 3;
    let answer = world.ask(&request);
    assert_eq!(statuses(&answer), [MISSING_INTERNAL_TOPICS]);
    let detail = &answer.status.expect("a status")[0].status_detail;
    assert!(detail.contains("replication factor of 3"), "{detail}");
    assert!(world.state.catalog.by_name(CHANGELOG).is_none());
}

#[test]
fn a_member_needs_the_rights_of_its_group_and_its_topics() {
    let world = World::secured();
    world.create("orders", 1);
    world.be("alice");
    let join = || world.ask(&joining("a"));
    assert_eq!(code(join().error_code), ErrorCode::GroupAuthorizationFailed);
    world.allow(GROUP, APPLICATION, READ);
    assert_eq!(code(join().error_code), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "orders", DESCRIBE);
    assert_eq!(code(join().error_code), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, CHANGELOG, DESCRIBE);
    let joined = join();
    assert_eq!(code(joined.error_code), ErrorCode::None);
    let detail = joined.status.iter().flatten().map(|status| status.status_detail.as_str());
    assert!(detail.clone().any(|it| it.contains("may not create")), "{:?}", joined.status);
    assert!(world.state.catalog.by_name(CHANGELOG).is_none());
    world.allow(TOPIC, CHANGELOG, CREATE);
    join();
    assert!(world.state.catalog.by_name(CHANGELOG).is_some());
    assert_eq!(code(described(&world).error_code), ErrorCode::None);
}
