//! How a group comes to a generation: joins, protocols, syncs.

use bytes::Bytes;
use moldau_coordinator::{
    Config, GroupRecord, GroupState, JoinRequest, MEMBER_METADATA_BYTES_MAX, PENDING_MEMBERS_MAX,
    PROTOCOLS_MAX,
};
use moldau_protocol::ErrorCode;

use crate::world::{
    GROUP, REBALANCE_MS, SESSION_MS, World, join_request, protocol, static_request, sync_request,
};

#[test]
fn the_first_generation_waits_for_the_initial_delay() {
    let mut world = World::new();
    let token = world.join(join_request(""));
    world.pass(2_999);
    assert_eq!(world.reply(token), None);
    world.pass(1);
    let reply = world.joined(token);
    assert_eq!((reply.error, reply.generation), (ErrorCode::None, 1));
    assert_eq!(reply.protocol_name.as_deref(), Some("range"));
    assert_eq!(reply.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(reply.leader, reply.member_id);
    assert!(reply.member_id.starts_with("app-"), "{}", reply.member_id);
    assert_eq!(reply.members.len(), 1);
    assert_eq!(world.state(), Some(GroupState::CompletingRebalance));
}

#[test]
fn members_that_come_extend_the_initial_delay_up_to_the_rebalance_timeout() {
    let mut world = World::new();
    let request = || JoinRequest { rebalance_timeout_ms: 10_000, ..join_request("") };
    let first = world.join(request());
    for _ in 0..9 {
        world.pass(1_000);
        world.join(request());
        assert_eq!(world.reply(first), None);
    }
    world.pass(1_000);
    assert_eq!(world.joined(first).members.len(), 10, "after ten seconds it is over");
}

#[test]
fn without_an_initial_delay_the_next_tick_begins_the_generation() {
    let mut world = World::with(Config { initial_rebalance_delay_ms: 0, ..Config::default() });
    let token = world.join(join_request(""));
    assert_eq!(world.groups.next_deadline(), 0);
    world.pass(0);
    assert_eq!(world.joined(token).generation, 1);
}

#[test]
fn a_dynamic_member_learns_its_id_first_where_the_version_knows_that() {
    let mut world = World::new();
    let careful = |id: &str| JoinRequest { require_known_member_id: true, ..join_request(id) };
    let token = world.join(careful(""));
    let reply = world.joined(token);
    assert_eq!(reply.error, ErrorCode::MemberIdRequired);
    assert_eq!(reply.generation, -1);
    let token = world.join(careful(&reply.member_id));
    world.pass(3_000);
    let joined = world.joined(token);
    assert_eq!((joined.error, joined.member_id), (ErrorCode::None, reply.member_id));
}

#[test]
fn an_id_that_nobody_uses_ends_with_its_session() {
    let mut world = World::new();
    let request = JoinRequest { require_known_member_id: true, ..join_request("") };
    let token = world.join(request);
    let id = world.joined(token).member_id;
    world.pass(i64::from(SESSION_MS));
    assert_eq!(world.groups.list().count(), 0, "the group goes with its only pending member");
    let token = world.join(join_request(&id));
    assert_eq!(world.joined(token).error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_pending_member_holds_up_the_join_phase_until_its_session_ends() {
    let mut world = World::new();
    let (ids, _) = world.stable(1);
    let request = JoinRequest { require_known_member_id: true, ..join_request("") };
    let pending = world.join(request);
    assert_eq!(world.joined(pending).error, ErrorCode::MemberIdRequired);
    assert_eq!(world.state(), Some(GroupState::Stable), "an id alone does not disturb the group");
    let leader = world.join(join_request(&ids[0]));
    assert_eq!(world.reply(leader), None);
    world.pass(i64::from(SESSION_MS));
    assert_eq!(world.joined(leader).generation, 2);
}

#[test]
fn ids_that_wait_for_their_members_are_bounded() {
    let mut world = World::new();
    let request = || JoinRequest { require_known_member_id: true, ..join_request("") };
    for _ in 0..PENDING_MEMBERS_MAX {
        let token = world.join(request());
        assert_eq!(world.joined(token).error, ErrorCode::MemberIdRequired);
    }
    let token = world.join(request());
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
}

#[test]
fn the_protocol_that_most_members_prefer_is_chosen_among_common_ones() {
    let mut world = World::new();
    let offering = |names: &[&str]| JoinRequest {
        protocols: names.iter().map(|name| protocol(name)).collect(),
        ..join_request("")
    };
    let token = world.join(offering(&["odd", "range", "sticky"]));
    world.join(offering(&["sticky", "range"]));
    world.join(offering(&["sticky", "range"]));
    let odd = world.join(offering(&["odd"]));
    assert_eq!(world.joined(odd).error, ErrorCode::InconsistentGroupProtocol);
    world.pass(i64::from(REBALANCE_MS));
    let reply = world.joined(token);
    assert_eq!(reply.protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn a_member_of_another_protocol_type_is_refused() {
    let mut world = World::new();
    world.stable(1);
    let token = world.join(JoinRequest { protocol_type: "connect".to_owned(), ..join_request("") });
    assert_eq!(world.joined(token).error, ErrorCode::InconsistentGroupProtocol);
    let token = world.join(JoinRequest { protocols: Vec::new(), ..join_request("") });
    assert_eq!(world.joined(token).error, ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn a_protocol_named_twice_counts_once() {
    let mut world = World::new();
    let twice = vec![protocol("range"), protocol("range"), protocol("sticky")];
    world.join(JoinRequest { protocols: twice, ..join_request("") });
    let token = world.join(JoinRequest { protocols: vec![protocol("range")], ..join_request("") });
    world.pass(i64::from(REBALANCE_MS));
    assert_eq!(world.joined(token).protocol_name.as_deref(), Some("range"));
}

#[test]
fn syncs_wait_for_the_assignment_of_the_leader() {
    let mut world = World::new();
    let tokens = [world.join(join_request("")), world.join(join_request(""))];
    world.pass(6_000);
    let [one, two] = tokens.map(|token| world.joined(token));
    let (leader, follower) = if one.members.is_empty() { (two, one) } else { (one, two) };
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
    let waiting = world.sync(&sync_request(&follower.member_id, 1, Vec::new()));
    assert_eq!(world.reply(waiting), None);
    assert!(world.records.is_empty(), "an unfinished generation is not written");

    let plan = vec![(follower.member_id.clone(), "all".into())];
    let done = world.sync(&sync_request(&leader.member_id, 1, plan));
    assert_eq!(world.synced(waiting).assignment, "all");
    let reply = world.synced(done);
    assert_eq!((reply.error, reply.assignment.len()), (ErrorCode::None, 0), "left out");
    let [GroupRecord::GroupMetadata(written)] = world.records.as_slice() else {
        panic!("one record for a stable generation, not {:?}", world.records);
    };
    assert_eq!((written.generation, written.members.len()), (1, 2));

    let again = world.sync(&sync_request(&follower.member_id, 1, Vec::new()));
    assert_eq!(world.synced(again).assignment, "all", "a stable group repeats the assignment");
}

#[test]
fn a_sync_that_does_not_fit_the_generation_is_refused() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let good = sync_request(&ids[0], generation, Vec::new());
    let mut refused = |request| {
        let token = world.sync(&request);
        world.synced(token).error
    };
    let mut old = good.clone();
    old.generation -= 1;
    assert_eq!(refused(old), ErrorCode::IllegalGeneration);
    assert_eq!(refused(sync_request("who", generation, Vec::new())), ErrorCode::UnknownMemberId);
    let mut name = good.clone();
    name.protocol_name = Some("sticky".to_owned());
    assert_eq!(refused(name), ErrorCode::InconsistentGroupProtocol);
    let mut kind = good.clone();
    kind.protocol_type = Some("connect".to_owned());
    assert_eq!(refused(kind), ErrorCode::InconsistentGroupProtocol);
    let mut elsewhere = good.clone();
    elsewhere.group_id = "other".to_owned();
    assert_eq!(refused(elsewhere), ErrorCode::UnknownMemberId);
    let mut nowhere = good;
    nowhere.group_id.clear();
    assert_eq!(refused(nowhere), ErrorCode::InvalidGroupId);
}

#[test]
fn a_member_that_does_not_sync_within_the_rebalance_timeout_is_dropped() {
    let mut world = World::new();
    let tokens = [world.join(join_request("")), world.join(join_request(""))];
    world.pass(6_000);
    let replies = tokens.map(|token| world.joined(token));
    let leader = replies[0].leader.clone();
    let lazy = replies.iter().find(|reply| reply.member_id != leader).expect("a follower");
    world.sync(&sync_request(&leader, 1, Vec::new()));
    for _ in 0..i64::from(REBALANCE_MS) / 2_000 {
        world.pass(2_000);
        world.heartbeat(&leader, 1);
        world.heartbeat(&lazy.member_id, 1);
    }
    assert_eq!(world.heartbeat(&lazy.member_id, 1), ErrorCode::UnknownMemberId);
    assert_eq!(world.heartbeat(&leader, 1), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_full_group_refuses_one_more() {
    let mut world = World::with(Config { group_size_max: 2, ..Config::default() });
    let (ids, _) = world.stable(2);
    let token = world.join(join_request(""));
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
    let tokens = [world.join(join_request(&ids[0])), world.join(join_request(&ids[1]))];
    for token in tokens {
        assert_eq!(world.joined(token).generation, 2, "members keep their place");
    }
}

#[test]
fn a_static_member_comes_back_to_a_full_group() {
    let mut world = World::with(Config { group_size_max: 2, ..Config::default() });
    let (_, generation) = world.stable_of(vec![static_request("a"), static_request("b")]);
    let token = world.join(static_request("b"));
    assert_eq!(world.joined(token).generation, generation);
    let token = world.join(static_request("c"));
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
}

#[test]
fn requests_outside_the_limits_are_refused() {
    let mut world = World::new();
    let mut refused = |request| {
        let token = world.join(request);
        world.joined(token).error
    };
    let group = JoinRequest { group_id: String::new(), ..join_request("") };
    assert_eq!(refused(group), ErrorCode::InvalidGroupId);
    for session_timeout_ms in [5_999, 1_800_001, -1] {
        let session = JoinRequest { session_timeout_ms, ..join_request("") };
        assert_eq!(refused(session), ErrorCode::InvalidSessionTimeout);
    }
    let mut large = join_request("");
    large.protocols[0].metadata = vec![0; MEMBER_METADATA_BYTES_MAX].into();
    assert_eq!(refused(large), ErrorCode::PolicyViolation);
    let many = (0..=PROTOCOLS_MAX).map(|index| protocol(&index.to_string())).collect();
    let many = JoinRequest { protocols: many, ..join_request("") };
    assert_eq!(refused(many), ErrorCode::PolicyViolation);
    assert_eq!(refused(join_request("stranger")), ErrorCode::UnknownMemberId);
    assert_eq!(world.groups.list().count(), 0, "refusals leave no group behind");
}

#[test]
fn the_number_of_groups_is_bounded() {
    let mut world = World::with(Config { groups_max: 1, ..Config::default() });
    world.stable(1);
    let token = world.join(JoinRequest { group_id: "second".to_owned(), ..join_request("") });
    assert_eq!(world.joined(token).error, ErrorCode::PolicyViolation);
    let token = world.join(join_request(""));
    assert_eq!(world.reply(token), None, "the group that exists goes on");
    assert_eq!(world.groups.list().map(|group| group.group_id).collect::<Vec<_>>(), [GROUP]);
}

#[test]
fn a_repeated_request_releases_the_one_that_waits() {
    let mut world = World::new();
    let (ids, _) = world.stable(2);
    let first = world.join(join_request(&ids[0]));
    let second = world.join(join_request(&ids[0]));
    assert_eq!(world.joined(first).error, ErrorCode::RebalanceInProgress);
    world.join(join_request(&ids[1]));
    let reply = world.joined(second);
    assert_eq!(reply.generation, 2);

    let follower = ids.iter().find(|id| **id != reply.leader).expect("a follower");
    let first = world.sync(&sync_request(follower, 2, Vec::new()));
    let second = world.sync(&sync_request(follower, 2, Vec::new()));
    assert_eq!(world.synced(first).error, ErrorCode::RebalanceInProgress);
    world.sync(&sync_request(&reply.leader, 2, Vec::new()));
    assert_eq!(world.synced(second).error, ErrorCode::None);
}

/// The record of such a group could never be written, and every group waited for it.
#[test]
fn a_group_too_large_for_a_record_is_told_so_by_its_syncs_and_can_be_used_again() {
    let mut world = World::with(Config { record_bytes_max: 2_000, ..Config::default() });
    let (ids, generation) = world.stable(2);
    let written = world.records.len();
    let rejoin = |world: &mut World| {
        let [first, second] = [0, 1].map(|at| world.join(join_request(&ids[at])));
        let joined = [world.joined(first), world.joined(second)];
        assert!(joined.iter().all(|reply| reply.error == ErrorCode::None));
        joined[0].generation
    };
    assert_eq!(rejoin(&mut world), generation + 1);
    let follower = world.sync(&sync_request(&ids[1], generation + 1, Vec::new()));
    let large = vec![(ids[1].clone(), Bytes::from(vec![7; 2_000]))];
    let leader = world.sync(&sync_request(&ids[0], generation + 1, large));
    let errors = [world.synced(leader).error, world.synced(follower).error];
    assert_eq!(errors, [ErrorCode::UnknownServerError; 2]);
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    assert_eq!(world.records.len(), written, "nothing is written that does not fit");
    assert_eq!(rejoin(&mut world), generation + 2);
    world.sync_all(&ids, generation + 2);
    assert_eq!(world.records.len(), written + 1);
}

/// The id of such a member could not be expressed in any answer.
#[test]
fn a_member_id_takes_only_the_begin_of_a_long_name() {
    let mut world = World::new();
    let token = world.join(static_request(&"\u{fc}".repeat(16_000)));
    world.pass(6_000);
    let id = world.joined(token).member_id;
    assert!(id.starts_with(&format!("{}-", "\u{fc}".repeat(255))), "{id}");
}
