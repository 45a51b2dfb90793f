//! Groups of the consumer protocol over the handlers; the rules are tested in the coordinator.

use bytes::Bytes;
use moldau_protocol::messages::consumer_group_describe_response::DescribedGroup;
use moldau_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use moldau_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use moldau_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    DescribeGroupsRequest, JoinGroupRequest, ListGroupsRequest, OffsetCommitRequest,
};
use moldau_protocol::{ErrorCode, Uuid};

use super::acls::{GROUP, READ, TOPIC};
use super::requests::{commit, join, sync};
use super::versions::each;
use super::world::{CLIENT_ID, World, code};

const DESCRIBE: i8 = 8;

const READERS: &str = "readers";

/// The last version of JoinGroup.
const JOIN: i16 = 9;

/// The last version that commits by name.
const COMMIT_BY_NAME: i16 = 9;

fn joining(member: &str, topics: &[&str]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: READERS.to_owned(),
        member_id: member.to_owned(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(topics.iter().map(|it| (*it).to_owned()).collect()),
        topic_partitions: Some(Vec::new()),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

fn matching(member: &str, pattern: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        subscribed_topic_regex: Some(pattern.to_owned()),
        ..joining(member, &[])
    }
}

fn staying(member: &str, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: READERS.to_owned(),
        member_id: member.to_owned(),
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

/// Partitions of each topic that the answer assigns.
fn assigned(answer: &ConsumerGroupHeartbeatResponse) -> Vec<(Uuid, Vec<i32>)> {
    let assignment = answer.assignment.as_ref().expect("an assignment");
    let topics = assignment.topic_partitions.iter();
    topics.map(|topic| (topic.topic_id, topic.partitions.clone())).collect()
}

fn described(world: &World, group: &str) -> DescribedGroup {
    let request =
        ConsumerGroupDescribeRequest { group_ids: vec![group.to_owned()], ..Default::default() };
    world.ask(&request).groups.remove(0)
}

/// Every version with what it can say.
pub(super) fn ask_about_consumer_groups(world: &World) {
    for (version, answer) in each(world, |version| {
        let mut request = joining(if version < 1 { "" } else { "member" }, &["orders"]);
        request.group_id = format!("consumers-{version}");
        request.instance_id = Some("instance".to_owned());
        request.rack_id = Some("rack".to_owned());
        request.server_assignor = Some("range".to_owned());
        request.subscribed_topic_regex = (version >= 1).then(|| "orders.*".to_owned());
        request
    }) {
        assert_eq!(code(answer.error_code), ErrorCode::None, "{version}");
        assert_eq!(answer.member_epoch, 1, "{version}");
    }
    let answers = each(world, |_| ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(vec![TopicPartitions {
            topic_id: Uuid::from_bytes([7; 16]),
            partitions: vec![1, 2],
            ..TopicPartitions::default()
        }]),
        ..staying("stranger", 5)
    });
    for (version, answer) in answers {
        assert_eq!(code(answer.error_code), ErrorCode::GroupIdNotFound, "{version}");
    }
    let answers = each(world, |_| ConsumerGroupDescribeRequest {
        group_ids: vec!["consumers-0".to_owned(), "absent".to_owned()],
        include_authorized_operations: true,
        ..ConsumerGroupDescribeRequest::default()
    });
    for (version, answer) in answers {
        let codes: Vec<_> = answer.groups.iter().map(|group| code(group.error_code)).collect();
        assert_eq!(codes, [ErrorCode::None, ErrorCode::GroupIdNotFound], "{version}");
        let types: Vec<_> = answer.groups[0].members.iter().map(|it| it.member_type).collect();
        assert_eq!(types, [if version < 1 { -1 } else { 1 }]);
    }
}

#[test]
fn a_member_joins_is_described_and_leaves() {
    let world = World::new();
    let orders = world.create("orders", 3);
    let joined = world.ask(&joining("a", &["orders"]));
    assert_eq!((code(joined.error_code), joined.member_epoch), (ErrorCode::None, 1));
    assert_eq!(joined.member_id.as_deref(), Some("a"));
    assert_eq!(joined.heartbeat_interval_ms, 5_000);
    assert_eq!(assigned(&joined), [(orders, vec![0, 1, 2])]);
    let group = described(&world, READERS);
    assert_eq!((group.group_state.as_str(), group.assignor_name.as_str()), ("Stable", "uniform"));
    assert_eq!((group.group_epoch, group.assignment_epoch), (1, 1));
    let member = &group.members[0];
    assert_eq!((member.member_id.as_str(), member.member_type), ("a", 1));
    assert_eq!((member.client_id.as_str(), member.client_host.as_str()), (CLIENT_ID, "/127.0.0.1"));
    let topics = [&member.assignment, &member.target_assignment].map(|it| &it.topic_partitions[0]);
    for topic in topics {
        assert_eq!((topic.topic_name.as_str(), &topic.partitions), ("orders", &vec![0, 1, 2]));
    }
    let left = world.ask(&staying("a", -1));
    assert_eq!((code(left.error_code), left.member_epoch), (ErrorCode::None, -1));
    assert_eq!(described(&world, READERS).group_state, "Empty");
}

/// KIP-848: the member of the consumer protocol converts the group, and its last leave turns it
/// back.
#[test]
fn a_group_of_both_protocols_is_described() {
    let world = World::new();
    let orders = world.create("orders", 2);
    let classic = JoinGroupRequest { session_timeout_ms: 10_000, ..join(READERS, "") };
    let protocol = JoinGroupRequestProtocol {
        // A subscription of version 0 to the topic.
        metadata: Bytes::from_static(b"\0\0\0\0\0\x01\0\x06orders\xff\xff\xff\xff"),
        ..classic.protocols[0].clone()
    };
    let classic = JoinGroupRequest { protocols: vec![protocol], ..classic };
    let member_id = world.ask(&classic).member_id;
    let classic = JoinGroupRequest { member_id: member_id.clone(), ..classic };
    let first = world.begin::<JoinGroupRequest>(JOIN, &classic);
    let joined = world.ask(&joining("a", &["orders"]));
    assert_eq!(assigned(&joined), [(orders, vec![0])], "nobody holds any");
    let dismissed = world.finish::<JoinGroupRequest>(first);
    assert_eq!(code(dismissed.error_code), ErrorCode::RebalanceInProgress);
    let rejoined = world.ask(&classic);
    assert_eq!(code(rejoined.error_code), ErrorCode::None);
    let synced = world.ask(&sync(READERS, &rejoined, &member_id, &[]));
    assert_eq!(code(synced.error_code), ErrorCode::None);
    let group = described(&world, READERS);
    let types = group.members.iter().map(|it| (it.member_id.as_str(), it.member_type));
    assert_eq!(types.collect::<Vec<_>>(), [("a", 1), (member_id.as_str(), 0)]);
    let left = world.ask(&staying("a", -1));
    assert_eq!(code(left.error_code), ErrorCode::None);
    let request = DescribeGroupsRequest { groups: vec![READERS.to_owned()], ..Default::default() };
    let described = world.ask(&request).groups.remove(0);
    assert_eq!(described.group_state, "PreparingRebalance");
    assert_eq!(described.members[0].member_id, member_id);
}

#[test]
fn a_group_is_listed_by_its_type_and_is_no_classic_one() {
    let world = World::new();
    world.create("orders", 1);
    world.ask(&joining("a", &["orders"]));
    world.lead("classic");
    let listed = |group_type: &str| {
        let request = ListGroupsRequest {
            types_filter: vec![group_type.to_owned()],
            ..ListGroupsRequest::default()
        };
        let groups = world.ask(&request).groups.into_iter();
        groups.map(|group| (group.group_id, group.group_type)).collect::<Vec<_>>()
    };
    assert_eq!(listed("consumer"), [(READERS.to_owned(), "consumer".to_owned())]);
    assert_eq!(listed("Classic"), [("classic".to_owned(), "classic".to_owned())]);
    let request = DescribeGroupsRequest { groups: vec![READERS.to_owned()], ..Default::default() };
    assert_eq!(code(world.ask(&request).groups[0].error_code), ErrorCode::GroupIdNotFound);
    assert_eq!(code(described(&world, "classic").error_code), ErrorCode::GroupIdNotFound);
}

#[test]
fn members_and_what_they_committed_survive_a_restart() {
    let world = World::new();
    let orders = world.create("orders", 2);
    world.ask(&joining("a", &["orders"]));
    let mut request = commit(READERS, "orders", 1, 5);
    request.member_id = "a".to_owned();
    request.generation_id_or_member_epoch = 1;
    let committed = |world: &World, request: &OffsetCommitRequest| {
        code(world.ask_in(COMMIT_BY_NAME, request).topics[0].partitions[0].error_code)
    };
    assert_eq!(committed(&world, &request), ErrorCode::None);
    world.state.checkpoint().expect("a checkpoint");
    let world = world.restarted();
    let kept = world.ask(&staying("a", 1));
    assert_eq!((code(kept.error_code), kept.assignment), (ErrorCode::None, None));
    assert_eq!(
        described(&world, READERS).members[0].assignment.topic_partitions[0].topic_id,
        orders
    );
    request.generation_id_or_member_epoch = 2;
    assert_eq!(committed(&world, &request), ErrorCode::StaleMemberEpoch);
    assert_eq!(
        world.state.groups.view(|groups| { groups.offset_fetch(READERS, None)[0].1[0].offset }),
        5
    );
}

#[test]
fn topics_that_come_and_grow_reach_their_members() {
    let world = World::new();
    let joined = world.ask(&joining("a", &["orders"]));
    assert!(assigned(&joined).is_empty());
    let orders = world.create("orders", 2);
    let mut interval = moldau_coordinator::GroupOverrides::new();
    interval.insert("consumer.assignment.interval.ms".to_owned(), "0".to_owned());
    let storage = &world.state.storage;
    let configured = world.state.groups.configure(storage, READERS, |overrides| {
        *overrides = interval;
        Ok(())
    });
    assert!(configured.is_ok());
    let told = world.ask(&staying("a", joined.member_epoch));
    assert_eq!(assigned(&told), [(orders, vec![0, 1])]);
}

#[test]
fn a_member_needs_the_rights_of_its_group_and_its_topics() {
    let world = World::secured();
    world.create("orders", 1);
    world.create("orders-secret", 1);
    world.be("alice");
    let join = |request: &ConsumerGroupHeartbeatRequest| world.ask(request);
    let by_name = joining("a", &["orders"]);
    assert_eq!(code(join(&by_name).error_code), ErrorCode::GroupAuthorizationFailed);
    world.allow(GROUP, READERS, READ);
    assert_eq!(code(join(&by_name).error_code), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "orders", DESCRIBE);
    assert_eq!(code(join(&by_name).error_code), ErrorCode::None);
    // A pattern finds what its member may see.
    let answer = join(&matching("a", "orders.*"));
    assert_eq!(assigned(&answer).len(), 1);
    assert_eq!(code(described(&world, READERS).error_code), ErrorCode::None);
    world.be("admin");
    let mut others = joining("b", &["orders-secret"]);
    others.group_id = "others".to_owned();
    assert_eq!(code(join(&others).error_code), ErrorCode::None);
    world.be("alice");
    assert_eq!(code(described(&world, "others").error_code), ErrorCode::GroupAuthorizationFailed);
    world.allow(GROUP, "others", DESCRIBE);
    assert_eq!(code(described(&world, "others").error_code), ErrorCode::TopicAuthorizationFailed);
}

#[test]
fn refusals_say_what_is_wrong() {
    let world = World::new();
    let refused = |request: &ConsumerGroupHeartbeatRequest| {
        let answer = world.ask(request);
        assert!(answer.error_message.is_some_and(|message| !message.is_empty()));
        code(answer.error_code)
    };
    assert_eq!(refused(&staying("a", 1)), ErrorCode::GroupIdNotFound);
    assert_eq!(refused(&matching("a", "(")), ErrorCode::InvalidRegularExpression);
    let mut request = joining("a", &["orders"]);
    request.server_assignor = Some("sticky".to_owned());
    assert_eq!(refused(&request), ErrorCode::UnsupportedAssignor);
    assert_eq!(refused(&joining("", &["orders"])), ErrorCode::InvalidRequest);
    assert_eq!(code(described(&world, "").error_code), ErrorCode::InvalidGroupId);
}
