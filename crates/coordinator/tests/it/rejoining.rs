//! What happens to a stable group when members rejoin, leave or fall silent.

use bytes::Bytes;
use moldau_coordinator::{GroupRecord, GroupState, JoinRequest};
use moldau_protocol::ErrorCode;

use crate::world::{REBALANCE_MS, SESSION_MS, World, join_request, sync_request};

fn with_metadata(id: &str, metadata: &'static str) -> JoinRequest {
    let mut request = join_request(id);
    request.protocols[0].metadata = Bytes::from(metadata);
    request
}

#[test]
fn a_follower_that_rejoins_unchanged_gets_its_generation_back() {
    let mut world = World::new();
    let (ids, generation) = world.stable(3);
    let token = world.join(join_request(&ids[1]));
    let reply = world.joined(token);
    assert_eq!((reply.error, reply.generation), (ErrorCode::None, generation));
    assert_eq!((reply.leader.as_str(), reply.members.len()), (ids[0].as_str(), 0));
    assert_eq!(world.state(), Some(GroupState::Stable));
}

#[test]
fn a_leader_that_rejoins_starts_a_rebalance() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let leader = world.join(join_request(&ids[0]));
    assert_eq!(world.heartbeat(&ids[1], generation), ErrorCode::RebalanceInProgress);
    let follower = world.join(join_request(&ids[1]));
    let reply = world.joined(leader);
    assert_eq!((reply.generation, reply.leader), (generation + 1, ids[0].clone()));
    assert_eq!(world.joined(follower).generation, generation + 1);
    world.sync_all(&ids, generation + 1);
}

#[test]
fn a_follower_with_other_metadata_starts_a_rebalance() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let changed = world.join(with_metadata(&ids[1], "changed"));
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    let leader = world.join(join_request(&ids[0]));
    assert_eq!(world.joined(changed).generation, generation + 1);
    let members = world.joined(leader).members;
    let seen = members.iter().find(|member| member.member_id == ids[1]).expect("the follower");
    assert_eq!(seen.metadata, "changed");
}

#[test]
fn while_the_assignment_is_awaited_an_unchanged_rejoin_repeats_the_answer() {
    let mut world = World::new();
    let tokens = [world.join(join_request("")), world.join(join_request(""))];
    world.pass(6_000);
    let leader = tokens.map(|token| world.joined(token))[0].leader.clone();
    let token = world.join(join_request(&leader));
    let reply = world.joined(token);
    assert_eq!((reply.generation, reply.members.len()), (1, 2), "the leader sees all again");
    assert_eq!(world.state(), Some(GroupState::CompletingRebalance));
}

#[test]
fn a_member_that_comes_while_the_assignment_is_awaited_sends_waiting_syncs_back() {
    let mut world = World::new();
    let tokens = [world.join(join_request("")), world.join(join_request(""))];
    world.pass(6_000);
    let replies = tokens.map(|token| world.joined(token));
    let follower = replies.iter().find(|reply| reply.members.is_empty()).expect("a follower");
    let waiting = world.sync(&sync_request(&follower.member_id, 1, Vec::new()));
    let third = world.join(join_request(""));
    assert_eq!(world.synced(waiting).error, ErrorCode::RebalanceInProgress);
    let late = world.sync(&sync_request(&replies[0].leader, 1, Vec::new()));
    assert_eq!(world.synced(late).error, ErrorCode::RebalanceInProgress);
    for reply in &replies {
        world.join(join_request(&reply.member_id));
    }
    assert_eq!(world.joined(third).generation, 2);
}

#[test]
fn members_that_do_not_rejoin_in_time_are_dropped() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let token = world.join(join_request(&ids[0]));
    for _ in 0..REBALANCE_MS / 5_000 {
        assert_eq!(world.reply(token), None);
        let error = world.heartbeat(&ids[1], generation);
        assert_eq!(error, ErrorCode::RebalanceInProgress, "alive, but it does not rejoin");
        world.pass(5_000);
    }
    let reply = world.joined(token);
    assert_eq!((reply.generation, reply.members.len()), (generation + 1, 1));
    assert_eq!(world.heartbeat(&ids[1], generation), ErrorCode::UnknownMemberId);
}

#[test]
fn a_new_leader_is_found_when_the_leader_does_not_rejoin() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let token = world.join(with_metadata(&ids[1], "changed"));
    world.pass(i64::from(REBALANCE_MS));
    let reply = world.joined(token);
    assert_eq!((reply.generation, &reply.leader), (generation + 1, &ids[1]));
}

#[test]
fn a_silent_member_is_removed_when_its_session_ends() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    world.pass(i64::from(SESSION_MS) - 1);
    assert_eq!(world.heartbeat(&ids[0], generation), ErrorCode::None);
    world.pass(1);
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    assert_eq!(world.heartbeat(&ids[1], generation), ErrorCode::UnknownMemberId);
    let token = world.join(join_request(&ids[0]));
    assert_eq!(world.joined(token).members.len(), 1);
}

#[test]
fn a_member_that_waits_for_others_needs_no_heartbeat() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let token = world.join(join_request(&ids[0]));
    for _ in 0..5 {
        world.pass(9_000);
        world.heartbeat(&ids[1], generation);
    }
    world.join(join_request(&ids[1]));
    assert_eq!(world.joined(token).members.len(), 2);
}

#[test]
fn a_new_member_whose_join_waits_too_long_is_let_go() {
    let mut world = World::new();
    let long = |id: &str| JoinRequest { rebalance_timeout_ms: 600_000, ..join_request(id) };
    let (ids, generation) = world.stable_of(vec![long("")]);
    let token = world.join(long(""));
    for _ in 0..300 / 5 {
        assert_eq!(world.reply(token), None);
        world.pass(5_000);
        world.heartbeat(&ids[0], generation);
    }
    assert_eq!(world.joined(token).error, ErrorCode::UnknownMemberId);
}

#[test]
fn heartbeats_are_checked_against_group_member_and_generation() {
    let mut world = World::new();
    assert_eq!(world.heartbeat("who", 1), ErrorCode::UnknownMemberId);
    let (ids, generation) = world.stable(1);
    assert_eq!(world.heartbeat(&ids[0], generation), ErrorCode::None);
    assert_eq!(world.heartbeat("who", generation), ErrorCode::UnknownMemberId);
    assert_eq!(world.heartbeat(&ids[0], generation - 1), ErrorCode::IllegalGeneration);
    assert_eq!(world.heartbeat(&ids[0], generation + 1), ErrorCode::IllegalGeneration);
}

#[test]
fn leaving_makes_the_others_rejoin() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let reply = world.leave(&[(&ids[0], None), ("who", None)]);
    assert_eq!(reply.error, ErrorCode::None);
    let errors: Vec<ErrorCode> = reply.members.iter().map(|member| member.error).collect();
    assert_eq!(errors, [ErrorCode::None, ErrorCode::UnknownMemberId]);
    assert_eq!(world.heartbeat(&ids[1], generation), ErrorCode::RebalanceInProgress);
    let token = world.join(join_request(&ids[1]));
    let reply = world.joined(token);
    assert_eq!((reply.generation, reply.leader), (generation + 1, ids[1].clone()));
}

#[test]
fn the_last_member_to_leave_empties_the_group_with_a_record() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    world.leave(&[(&ids[0], None)]);
    assert_eq!(world.state(), Some(GroupState::Empty));
    let Some(GroupRecord::GroupMetadata(written)) = world.records.last() else {
        panic!("no metadata but {:?}", world.records.last());
    };
    assert_eq!((written.generation, written.members.len()), (generation + 1, 0));
    assert_eq!(written.leader, None);
    let (_, next) = world.stable(1);
    assert_eq!(next, generation + 2);
}

#[test]
fn a_pending_member_that_leaves_does_not_disturb_the_group() {
    let mut world = World::new();
    world.stable(1);
    let token = world.join(JoinRequest { require_known_member_id: true, ..join_request("") });
    let id = world.joined(token).member_id;
    let reply = world.leave(&[(&id, None)]);
    assert_eq!(reply.members[0].error, ErrorCode::None);
    assert_eq!(world.state(), Some(GroupState::Stable));
}

#[test]
fn leaving_a_group_that_does_not_exist_is_refused() {
    let mut world = World::new();
    assert_eq!(world.leave(&[("who", None)]).error, ErrorCode::UnknownMemberId);
}

#[test]
fn only_a_stable_group_shows_metadata_and_assignments() {
    let mut world = World::new();
    let (ids, _) = world.stable(2);
    let group = world.groups.describe("orders").expect("the group exists");
    assert_eq!((group.protocol_type.as_str(), group.protocol_name.as_str()), ("consumer", "range"));
    assert!(group.members.iter().all(|member| !member.assignment.is_empty()));
    assert_eq!(group.members[0].client_host, "/127.0.0.1");
    world.join(join_request(&ids[0]));
    let group = world.groups.describe("orders").expect("the group exists");
    assert_eq!((group.state.name(), group.protocol_name.as_str()), ("PreparingRebalance", ""));
    assert!(group.members.iter().all(|m| m.assignment.is_empty() && m.metadata.is_empty()));
    assert_eq!(world.groups.describe("other"), None);
}
