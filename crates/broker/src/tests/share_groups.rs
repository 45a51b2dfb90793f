//! Members of share groups over the handlers; the rules are tested in the coordinator.

use moldau_protocol::messages::share_group_describe_response::DescribedGroup;
use moldau_protocol::messages::{
    ConsumerGroupDescribeRequest, DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest,
    ShareGroupDescribeRequest, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use super::acls::{GROUP, READ, TOPIC};
use super::versions::each;
use super::world::{CLIENT_ID, World, code};

const DESCRIBE: i8 = 8;

const WORKERS: &str = "workers";

fn joining(member: &str, topics: &[&str]) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        subscribed_topic_names: Some(topics.iter().map(|it| (*it).to_owned()).collect()),
        ..staying(member, 0)
    }
}

fn staying(member: &str, epoch: i32) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: WORKERS.to_owned(),
        member_id: member.to_owned(),
        member_epoch: epoch,
        ..ShareGroupHeartbeatRequest::default()
    }
}

/// Partitions of each topic that the answer assigns.
fn assigned(answer: &ShareGroupHeartbeatResponse) -> Vec<(Uuid, Vec<i32>)> {
    let assignment = answer.assignment.as_ref().expect("an assignment");
    let topics = assignment.topic_partitions.iter();
    topics.map(|topic| (topic.topic_id, topic.partitions.clone())).collect()
}

fn described(world: &World, group: &str) -> DescribedGroup {
    let request =
        ShareGroupDescribeRequest { group_ids: vec![group.to_owned()], ..Default::default() };
    world.ask(&request).groups.remove(0)
}

fn deleted(world: &World, group: &str) -> ErrorCode {
    let groups_names = vec![group.to_owned()];
    let request = DeleteGroupsRequest { groups_names, ..Default::default() };
    code(world.ask(&request).results[0].error_code)
}

/// Every version with what it can say.
pub(super) fn ask_about_share_groups(world: &World) {
    for (version, answer) in each(world, |_| {
        let mut request = joining("member", &["orders"]);
        request.rack_id = Some("rack".to_owned());
        request
    }) {
        assert_eq!((code(answer.error_code), answer.member_epoch), (ErrorCode::None, 2));
        assert!(answer.assignment.is_some(), "{version}");
    }
    for (version, answer) in each(world, |_| staying("stranger", 5)) {
        assert_eq!(code(answer.error_code), ErrorCode::UnknownMemberId, "{version}");
    }
    let answers = each(world, |_| ShareGroupDescribeRequest {
        group_ids: vec![WORKERS.to_owned(), "absent".to_owned()],
        include_authorized_operations: true,
        ..ShareGroupDescribeRequest::default()
    });
    for (version, answer) in answers {
        let codes: Vec<_> = answer.groups.iter().map(|group| code(group.error_code)).collect();
        assert_eq!(codes, [ErrorCode::None, ErrorCode::GroupIdNotFound], "{version}");
    }
}

#[test]
fn a_member_joins_is_described_and_leaves() {
    let world = World::new();
    let orders = world.create("orders", 3);
    let joined = world.ask(&joining("a", &["orders"]));
    assert_eq!((code(joined.error_code), joined.member_epoch), (ErrorCode::None, 2));
    assert_eq!((joined.member_id.as_deref(), joined.heartbeat_interval_ms), (Some("a"), 5_000));
    assert_eq!(assigned(&joined), [(orders, vec![0, 1, 2])]);
    let group = described(&world, WORKERS);
    assert_eq!((group.group_state.as_str(), group.assignor_name.as_str()), ("Stable", "simple"));
    assert_eq!((group.group_epoch, group.assignment_epoch), (2, 2));
    let member = &group.members[0];
    assert_eq!((member.member_id.as_str(), member.member_epoch), ("a", 2));
    assert_eq!((member.client_id.as_str(), member.client_host.as_str()), (CLIENT_ID, "/127.0.0.1"));
    assert_eq!(member.subscribed_topic_names, ["orders"]);
    let topic = &member.assignment.topic_partitions[0];
    assert_eq!((topic.topic_name.as_str(), &topic.partitions), ("orders", &vec![0, 1, 2]));
    assert_eq!(deleted(&world, WORKERS), ErrorCode::NonEmptyGroup);
    let left = world.ask(&staying("a", -1));
    assert_eq!((code(left.error_code), left.member_epoch), (ErrorCode::None, -1));
    assert_eq!(described(&world, WORKERS).group_state, "Empty");
    assert_eq!(deleted(&world, WORKERS), ErrorCode::None);
    assert_eq!(code(described(&world, WORKERS).error_code), ErrorCode::GroupIdNotFound);
}

#[test]
fn a_group_is_listed_by_its_type_and_is_no_other() {
    let world = World::new();
    world.create("orders", 1);
    world.ask(&joining("a", &["orders"]));
    world.lead("classic");
    let request = ListGroupsRequest {
        types_filter: vec!["Share".to_owned()],
        states_filter: vec!["stable".to_owned()],
        ..ListGroupsRequest::default()
    };
    let groups = world.ask(&request).groups;
    assert_eq!(groups.len(), 1);
    let listed = &groups[0];
    assert_eq!((listed.group_id.as_str(), listed.group_type.as_str()), (WORKERS, "share"));
    assert_eq!((listed.protocol_type.as_str(), listed.group_state.as_str()), ("share", "Stable"));
    let groups = vec![WORKERS.to_owned()];
    let request = DescribeGroupsRequest { groups: groups.clone(), ..Default::default() };
    assert_eq!(code(world.ask(&request).groups[0].error_code), ErrorCode::GroupIdNotFound);
    let request = ConsumerGroupDescribeRequest { group_ids: groups, ..Default::default() };
    assert_eq!(code(world.ask(&request).groups[0].error_code), ErrorCode::GroupIdNotFound);
    assert_eq!(code(described(&world, "classic").error_code), ErrorCode::GroupIdNotFound);
    assert_eq!(world.commit(WORKERS, "orders", 0, 5), ErrorCode::GroupIdNotFound);
}

#[test]
fn members_survive_a_restart_and_deleted_groups_do_not() {
    let world = World::new();
    world.create("orders", 2);
    world.ask(&joining("a", &["orders"]));
    world.state.checkpoint().expect("a checkpoint");
    let world = world.restarted();
    let kept = world.ask(&staying("a", 2));
    assert_eq!((code(kept.error_code), kept.assignment), (ErrorCode::None, None));
    world.ask(&staying("a", -1));
    assert_eq!(deleted(&world, WORKERS), ErrorCode::None);
    let world = world.restarted();
    assert_eq!(code(described(&world, WORKERS).error_code), ErrorCode::GroupIdNotFound);
}

#[test]
fn a_member_needs_the_rights_of_its_group_and_its_topics() {
    let world = World::secured();
    world.create("orders", 1);
    world.be("alice");
    let join = |request: &ShareGroupHeartbeatRequest| code(world.ask(request).error_code);
    let request = joining("a", &["orders"]);
    assert_eq!(join(&request), ErrorCode::GroupAuthorizationFailed);
    world.allow(GROUP, WORKERS, READ);
    assert_eq!(join(&request), ErrorCode::TopicAuthorizationFailed);
    world.allow(TOPIC, "orders", DESCRIBE);
    assert_eq!(join(&request), ErrorCode::None);
    assert_eq!(code(described(&world, WORKERS).error_code), ErrorCode::None);
    world.be("admin");
    world.create("secret", 1);
    let others =
        ShareGroupHeartbeatRequest { group_id: "others".to_owned(), ..joining("b", &["secret"]) };
    assert_eq!(join(&others), ErrorCode::None);
    world.be("alice");
    assert_eq!(code(described(&world, "others").error_code), ErrorCode::GroupAuthorizationFailed);
    world.allow(GROUP, "others", DESCRIBE);
    assert_eq!(code(described(&world, "others").error_code), ErrorCode::TopicAuthorizationFailed);
}

#[test]
fn refusals_say_what_is_wrong() {
    let world = World::new();
    let refused = |request: &ShareGroupHeartbeatRequest| {
        let answer = world.ask(request);
        assert!(answer.error_message.is_some_and(|message| !message.is_empty()));
        code(answer.error_code)
    };
    assert_eq!(refused(&staying("a", 1)), ErrorCode::GroupIdNotFound);
    assert_eq!(refused(&staying("a", 0)), ErrorCode::InvalidRequest);
    assert_eq!(refused(&joining("", &["orders"])), ErrorCode::InvalidRequest);
    assert_eq!(code(described(&world, "").error_code), ErrorCode::InvalidGroupId);
}
