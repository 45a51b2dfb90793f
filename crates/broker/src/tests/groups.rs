//! Groups over the handlers; the rules themselves are tested in the coordinator.

use bytes::Bytes;
use moldau_coordinator as coordinator;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::find_coordinator_response::Coordinator;
use moldau_protocol::messages::leave_group_request::MemberIdentity;
use moldau_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use moldau_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, SyncGroupRequest,
};

use super::requests::{commit, join, sync};
use super::world::{CLIENT_ID, NOW_MS, World, code, unknown_id};
use crate::group_service::GroupService;

const GROUP: &str = "readers";

/// The newest version that commits by name.
const COMMIT_BY_NAME: i16 = 9;

fn heartbeat(world: &World, member: &JoinGroupResponse) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: GROUP.to_owned(),
        generation_id: member.generation_id,
        member_id: member.member_id.clone(),
        ..HeartbeatRequest::default()
    };
    code(world.ask(&request).error_code)
}

/// A group of two: the leader, then the follower, both in the same generation and synced.
fn of_two(world: &World) -> (JoinGroupResponse, JoinGroupResponse) {
    let first = world.lead(GROUP);
    let told = world.ask(&join(GROUP, ""));
    let second = world.begin(9, &join(GROUP, &told.member_id));
    assert_eq!(heartbeat(world, &first), ErrorCode::RebalanceInProgress);
    let first = world.begin(9, &join(GROUP, &first.member_id));
    let first = world.finish::<JoinGroupRequest>(first);
    let second = world.finish::<JoinGroupRequest>(second);
    assert_eq!(first.generation_id, second.generation_id);
    assert_eq!((&first.leader, &second.leader), (&first.member_id, &first.member_id));
    assert_eq!((first.members.len(), second.members.len()), (2, 0));
    let waiting = world.begin(5, &sync(GROUP, &second, &second.member_id, &[]));
    let shares =
        [(first.member_id.as_str(), "share one"), (second.member_id.as_str(), "share two")];
    let one = world.ask(&sync(GROUP, &first, &first.member_id, &shares));
    let two = world.finish::<SyncGroupRequest>(waiting);
    assert_eq!((one.assignment, two.assignment), ("share one".into(), "share two".into()));
    (first, second)
}

fn leave(world: &World, member: &JoinGroupResponse) -> ErrorCode {
    let leaving = MemberIdentity {
        member_id: member.member_id.clone(),
        group_instance_id: None,
        ..MemberIdentity::default()
    };
    let request = LeaveGroupRequest {
        group_id: GROUP.to_owned(),
        members: vec![leaving],
        ..LeaveGroupRequest::default()
    };
    let response = world.ask(&request);
    assert_eq!(code(response.error_code), ErrorCode::None);
    code(response.members[0].error_code)
}

fn state_of(world: &World, group: &str) -> String {
    let request = DescribeGroupsRequest { groups: vec![group.to_owned()], ..Default::default() };
    world.ask_in(5, &request).groups.remove(0).group_state
}

fn delete(world: &World, group: &str) -> ErrorCode {
    let request =
        DeleteGroupsRequest { groups_names: vec![group.to_owned()], ..Default::default() };
    code(world.ask(&request).results[0].error_code)
}

#[test]
fn a_group_that_does_not_exist_has_none_of_the_members_that_leave_it() {
    let world = World::new();
    let member = JoinGroupResponse { member_id: "absent".to_owned(), ..Default::default() };
    assert_eq!(leave(&world, &member), ErrorCode::UnknownMemberId);
}

#[test]
fn a_sync_has_to_name_the_protocol_from_version_5_on() {
    let world = World::new();
    let request = SyncGroupRequest { group_id: GROUP.to_owned(), ..SyncGroupRequest::default() };
    let refusal = |version| code(world.ask_in(version, &request).error_code);
    assert_eq!(refusal(4), ErrorCode::UnknownMemberId);
    assert_eq!(refusal(5), ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn two_members_share_a_group_until_one_leaves() {
    let world = World::new();
    let (first, second) = of_two(&world);
    assert_eq!(heartbeat(&world, &first), ErrorCode::None);
    assert_eq!(heartbeat(&world, &second), ErrorCode::None);
    assert_eq!(state_of(&world, GROUP), "Stable");
    assert_eq!(leave(&world, &second), ErrorCode::None);
    assert_eq!(heartbeat(&world, &second), ErrorCode::UnknownMemberId);
    assert_eq!(heartbeat(&world, &first), ErrorCode::RebalanceInProgress);
    assert_eq!(leave(&world, &second), ErrorCode::UnknownMemberId);
    assert_eq!(leave(&world, &first), ErrorCode::None);
    assert_eq!(state_of(&world, GROUP), "Empty");
}

#[test]
fn a_group_is_described_with_its_members() {
    let world = World::new();
    let (first, _) = of_two(&world);
    let request = DescribeGroupsRequest { groups: vec![GROUP.to_owned()], ..Default::default() };
    let group = world.ask(&request).groups.remove(0);
    assert_eq!((code(group.error_code), group.protocol_data.as_str()), (ErrorCode::None, "range"));
    let member = group.members.iter().find(|it| it.member_id == first.member_id).unwrap();
    assert_eq!(member.client_id, CLIENT_ID);
    assert_eq!(member.client_host, "/127.0.0.1");
    assert_eq!(member.member_metadata, Bytes::from_static(b"subscription"));
    assert_eq!(member.member_assignment, Bytes::from_static(b"share one"));
}

#[test]
fn an_absent_group_is_dead_and_from_version_6_on_an_error() {
    let world = World::new();
    assert_eq!(state_of(&world, "absent"), "Dead");
    let request = DescribeGroupsRequest { groups: vec!["absent".to_owned()], ..Default::default() };
    let group = world.ask(&request).groups.remove(0);
    assert_eq!(code(group.error_code), ErrorCode::GroupIdNotFound);
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let world = World::new();
    world.create("orders", 1);
    of_two(&world);
    world.commit("tools", "orders", 0, 0);
    let listed = |states: &[&str], types: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let request = ListGroupsRequest {
            states_filter: words(states),
            types_filter: words(types),
            ..ListGroupsRequest::default()
        };
        let mut ids: Vec<_> =
            world.ask(&request).groups.into_iter().map(|it| it.group_id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(listed(&[], &[]), [GROUP, "tools"]);
    assert_eq!(listed(&["stable"], &[]), [GROUP]);
    assert_eq!(listed(&["Empty", "Dead"], &["Classic"]), ["tools"]);
    assert!(listed(&[], &["consumer"]).is_empty());
}

#[test]
fn committed_epoch_and_metadata_are_returned() {
    let world = World::new();
    world.create("orders", 1);
    let mut request = commit("tools", "orders", 0, 7);
    request.topics[0].partitions[0].committed_leader_epoch = 3;
    let response = world.ask_in(COMMIT_BY_NAME, &request);
    assert_eq!(code(response.topics[0].partitions[0].error_code), ErrorCode::None);
    let found = world.committed("tools", "orders", 0);
    assert_eq!((found.committed_offset, found.committed_leader_epoch), (7, 3));
    assert_eq!(found.metadata.as_deref(), Some("note"));
}

#[test]
fn offsets_are_committed_and_fetched_by_topic_id() {
    let world = World::new();
    let id = world.create("orders", 1);
    let mut request = commit("tools", "", 0, 7);
    request.topics.extend(request.topics.clone());
    request.topics[0].topic_id = id;
    request.topics[1].topic_id = unknown_id();
    let response = world.ask(&request);
    let told = response.topics.iter().map(|it| (it.topic_id, code(it.partitions[0].error_code)));
    let unknown = (unknown_id(), ErrorCode::UnknownTopicId);
    assert_eq!(told.collect::<Vec<_>>(), [(id, ErrorCode::None), unknown]);
    assert_eq!(world.committed("tools", "orders", 0).committed_offset, 7);
    let all = OffsetFetchRequestGroup {
        group_id: "tools".to_owned(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest { groups: vec![all], ..OffsetFetchRequest::default() };
    let topics = world.ask(&request).groups.remove(0).topics;
    assert_eq!((topics.len(), topics[0].topic_id), (1, id));
    assert_eq!(topics[0].partitions[0].committed_offset, 7);
}

#[test]
fn an_offset_that_was_never_committed_is_minus_one() {
    let world = World::new();
    world.create("orders", 1);
    for (topic, partition) in [("orders", 0), ("orders", 9), ("absent", 0)] {
        let found = world.committed("tools", topic, partition);
        assert_eq!((found.committed_offset, found.committed_leader_epoch), (-1, -1));
        assert_eq!(
            (found.metadata.as_deref(), code(found.error_code)),
            (Some(""), ErrorCode::None)
        );
    }
}

#[test]
fn commit_to_a_missing_partition_is_refused_alone() {
    let world = World::new();
    world.create("orders", 1);
    let mut request = commit("tools", "absent", 0, 1);
    request.topics.extend(commit("tools", "orders", 9, 2).topics);
    request.topics.extend(commit("tools", "orders", 0, 3).topics);
    let response = world.ask_in(COMMIT_BY_NAME, &request);
    let codes = response.topics.iter().map(|topic| code(topic.partitions[0].error_code));
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(codes.collect::<Vec<_>>(), [unknown, unknown, ErrorCode::None]);
    assert_eq!(world.committed("tools", "orders", 0).committed_offset, 3);
}

#[test]
fn only_members_of_the_generation_commit_to_a_group_that_has_members() {
    let world = World::new();
    world.create("orders", 1);
    let member = world.lead(GROUP);
    assert_eq!(world.commit(GROUP, "orders", 0, 1), ErrorCode::UnknownMemberId);
    let by_member = |generation| {
        let request = OffsetCommitRequest {
            generation_id_or_member_epoch: generation,
            member_id: member.member_id.clone(),
            ..commit(GROUP, "orders", 0, 2)
        };
        let response = world.ask_in(COMMIT_BY_NAME, &request);
        code(response.topics[0].partitions[0].error_code)
    };
    assert_eq!(by_member(member.generation_id + 1), ErrorCode::IllegalGeneration);
    assert_eq!(by_member(member.generation_id), ErrorCode::None);
    assert_eq!(world.committed(GROUP, "orders", 0).committed_offset, 2);
}

#[test]
fn a_group_is_deleted_with_its_offsets_once_it_is_empty() {
    let world = World::new();
    world.create("orders", 1);
    world.commit(GROUP, "orders", 0, 1);
    let member = world.lead(GROUP);
    assert_eq!(delete(&world, GROUP), ErrorCode::NonEmptyGroup);
    assert_eq!(delete(&world, "absent"), ErrorCode::GroupIdNotFound);
    leave(&world, &member);
    assert_eq!(delete(&world, GROUP), ErrorCode::None);
    assert_eq!(world.committed(GROUP, "orders", 0).committed_offset, -1);
    assert_eq!(state_of(&world, GROUP), "Dead");
}

#[test]
fn one_offset_of_a_group_can_be_deleted() {
    let world = World::new();
    world.create("orders", 2);
    for partition in [0, 1] {
        world.commit("tools", "orders", partition, 5);
    }
    let topic = OffsetDeleteRequestTopic {
        name: "orders".to_owned(),
        partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
    };
    let request = OffsetDeleteRequest { group_id: "tools".to_owned(), topics: vec![topic] };
    let response = world.ask(&request);
    assert_eq!(code(response.topics[0].partitions[0].error_code), ErrorCode::None);
    assert_eq!(world.committed("tools", "orders", 0).committed_offset, -1);
    assert_eq!(world.committed("tools", "orders", 1).committed_offset, 5);
    let absent = OffsetDeleteRequest { group_id: "absent".to_owned(), ..request };
    assert_eq!(code(world.ask(&absent).error_code), ErrorCode::GroupIdNotFound);
}

#[test]
fn broker_coordinates_everything() {
    let world = World::new();
    let find = |version, key_type, keys: [&str; 2]| -> Vec<Coordinator> {
        let request = FindCoordinatorRequest {
            key_type,
            coordinator_keys: keys.map(str::to_owned).to_vec(),
            ..FindCoordinatorRequest::default()
        };
        world.ask_in(version, &request).coordinators
    };
    let topic = unknown_id();
    let shares = [format!("workers:{topic}:0"), format!("a:b:{topic}:7")];
    let shares = [shares[0].as_str(), shares[1].as_str()];
    for (key_type, keys) in [(0, ["a", "b"]), (1, ["a", "b"]), (2, shares)] {
        let found = find(6, key_type, keys);
        assert!(found.iter().all(|it| (it.node_id, it.port) == (0, 9_092)));
        assert_eq!((found[0].key.as_str(), found[1].key.as_str()), (keys[0], keys[1]));
    }
    let group = format!(":{topic}:0");
    let wrong = [find(6, 2, ["a", &group]), find(6, 2, ["a:b:0", "a:b"]), find(5, 2, shares)];
    for refused in wrong.into_iter().flatten().chain(find(6, 3, ["a", "b"])) {
        assert_eq!(code(refused.error_code), ErrorCode::InvalidRequest);
        assert!(refused.error_message.is_some());
    }
}

/// A commit that was refused must not be shown: after a restart it would be gone, and whoever had
/// read it would have skipped records.
#[test]
fn a_commit_that_the_journal_refused_is_not_shown() {
    let world = World::new();
    world.create("orders", 1);
    let committed = |offset| world.commit(GROUP, "orders", 0, offset);
    assert_eq!(committed(3), ErrorCode::None);
    world.state.storage.close().unwrap();
    assert_eq!(committed(5), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(committed(6), ErrorCode::CoordinatorNotAvailable);
    let asked = OffsetFetchRequestGroup {
        group_id: GROUP.to_owned(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() };
    let shown = world.ask_in(9, &request);
    assert_eq!(code(shown.groups[0].error_code), ErrorCode::CoordinatorNotAvailable);
    assert!(shown.groups[0].topics.is_empty());
}

/// The metadata of a commit came back as often as a request named its partition.
#[test]
fn duplicates_in_a_request_are_answered_once() {
    let world = World::new();
    world.create("orders", 2);
    assert_eq!(world.commit(GROUP, "orders", 0, 7), ErrorCode::None);
    let topic = OffsetFetchRequestTopics {
        name: "orders".to_owned(),
        partition_indexes: vec![0, 0, 1, 0],
        ..OffsetFetchRequestTopics::default()
    };
    let group = OffsetFetchRequestGroup {
        group_id: GROUP.to_owned(),
        topics: Some(vec![topic; 2]),
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest { groups: vec![group; 2], ..OffsetFetchRequest::default() };
    let told = world.ask_in(9, &request).groups;
    let codes = told.iter().map(|group| (code(group.error_code), group.topics.len()));
    let again = ErrorCode::InvalidRequest;
    assert_eq!(codes.collect::<Vec<_>>(), [(ErrorCode::None, 2), (again, 0)]);
    let [first, second] = &told[0].topics[..] else { panic!("two topics were asked for") };
    let offsets: Vec<_> =
        first.partitions.iter().map(|it| (it.partition_index, it.committed_offset)).collect();
    assert_eq!(offsets, [(0, 7), (1, -1)]);
    assert!(second.partitions.iter().all(|it| code(it.error_code) == again));
    let groups = vec![GROUP.to_owned(); 3];
    let described = world.ask(&DescribeGroupsRequest { groups, ..Default::default() });
    assert_eq!(described.groups.len(), 1);
}

/// One such commit made every group unavailable until the broker was started anew.
#[test]
fn oversized_commit_is_refused_alone() {
    let world = World::new();
    world.create("orders", 300);
    let mut request = commit(GROUP, "orders", 0, 7);
    let first = request.topics[0].partitions[0].clone();
    let partitions = (0..300).map(|partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_metadata: Some("x".repeat(4_096)),
        ..first.clone()
    });
    request.topics[0].partitions = partitions.collect();
    let response = world.ask_in(COMMIT_BY_NAME, &request);
    let codes = response.topics[0].partitions.iter().map(|it| code(it.error_code));
    assert_eq!(codes.collect::<Vec<_>>(), [ErrorCode::InvalidCommitOffsetSize; 300]);
    assert_eq!(world.committed(GROUP, "orders", 0).committed_offset, -1);
    assert_eq!(world.commit("others", "orders", 0, 8), ErrorCode::None);
}

/// A record that the journal can never take was tried again by every request for ever.
#[test]
fn oversized_record_fails_one_request() {
    let world = World::new();
    let config = coordinator::Config { record_bytes_max: usize::MAX, ..Default::default() };
    let groups = coordinator::Groups::new(config, 1, NOW_MS);
    let groups = GroupService::start(groups, NOW_MS, Box::new(|_group_id| {}));
    let ask = |group: &str, partitions: i32| {
        let partitions = (0..partitions).map(|partition| coordinator::PartitionCommit {
            partition,
            offset: 7,
            leader_epoch: -1,
            metadata: "x".repeat(4_096),
        });
        let topic = coordinator::TopicCommit {
            topic: "orders".to_owned(),
            topic_id: moldau_protocol::Uuid::ZERO,
            partitions: partitions.collect(),
        };
        let commit = coordinator::OffsetCommitRequest {
            group_id: group.to_owned(),
            generation: -1,
            member_id: String::new(),
            instance_id: None,
            retention_ms: None,
            knows_member_epochs: true,
            topics: vec![topic],
        };
        let storage = &world.state.storage;
        let reply =
            groups.submit(storage, |groups, now, token| groups.offset_commit(now, &commit, token));
        world.wait(reply).map(|_told| ())
    };
    assert_eq!(ask(GROUP, 300), Err(ErrorCode::CoordinatorNotAvailable));
    assert_eq!(ask("others", 1), Ok(()));
}

/// The message of such a name could not be expressed, and no answer came.
#[test]
fn error_shortens_a_long_name() {
    let world = World::new();
    let name = "x".repeat(32_767);
    let request = DescribeGroupsRequest { groups: vec![name.clone()], ..Default::default() };
    let told = world.ask(&request).groups.remove(0).error_message.unwrap();
    assert!(told.len() < 200, "{told}");
    let told = crate::catalog::unknown_name(&name).message;
    assert!(told.len() < 200, "{told}");
}
