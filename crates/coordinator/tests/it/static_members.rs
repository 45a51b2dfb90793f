//! Static members (KIP-345), and leaders that come back (KIP-814).

use moldau_coordinator::{Config, GroupState, JoinRequest};
use moldau_protocol::ErrorCode;

use crate::world::{
    REBALANCE_MS, SESSION_MS, World, commit_request, join_request, protocol, static_request,
    sync_request,
};

/// A stable group of the instances `a` (leader) and `b`.
fn pair(world: &mut World) -> (Vec<String>, i32) {
    let (ids, generation) = world.stable_of(vec![static_request("a"), static_request("b")]);
    assert!(ids[0].starts_with("a-"), "ids begin with the instance: {}", ids[0]);
    (ids, generation)
}

#[test]
fn a_static_member_comes_back_without_a_rebalance() {
    let mut world = World::new();
    let (ids, generation) = pair(&mut world);
    let written = world.records.len();
    let token = world.join(static_request("b"));
    let reply = world.joined(token);
    assert_eq!((reply.error, reply.generation), (ErrorCode::None, generation));
    assert_ne!(reply.member_id, ids[1]);
    assert_eq!(world.state(), Some(GroupState::Stable));
    assert_eq!(world.records.len(), written + 1, "the replaced id is written");
    let token = world.sync(&sync_request(&reply.member_id, generation, Vec::new()));
    assert_eq!(world.synced(token).assignment, format!("for {}", ids[1]));
}

#[test]
fn the_replaced_id_is_fenced_everywhere() {
    let mut world = World::new();
    let (ids, generation) = pair(&mut world);
    world.join(static_request("b"));
    let fenced = ErrorCode::FencedInstanceId;
    assert_eq!(world.heartbeat_as(&ids[1], Some("b"), generation), fenced);
    let mut commit = commit_request(&ids[1], generation, "sales", 1);
    commit.instance_id = Some("b".to_owned());
    assert_eq!(world.commit(&commit), fenced);
    let mut sync = sync_request(&ids[1], generation, Vec::new());
    sync.instance_id = Some("b".to_owned());
    let token = world.sync(&sync);
    assert_eq!(world.synced(token).error, fenced);
    let token = world.join(JoinRequest { member_id: ids[1].clone(), ..static_request("b") });
    assert_eq!(world.joined(token).error, fenced);
    assert_eq!(world.leave(&[(&ids[1], Some("b"))]).members[0].error, fenced);
    let unknown = world.heartbeat_as(&ids[1], Some("c"), generation);
    assert_eq!(unknown, ErrorCode::UnknownMemberId);
}

#[test]
fn requests_of_the_replaced_id_that_wait_are_fenced() {
    let mut world = World::new();
    let (ids, _) = pair(&mut world);
    world.join(JoinRequest { member_id: ids[0].clone(), ..static_request("a") });
    let waiting = world.join(JoinRequest { member_id: ids[1].clone(), ..static_request("b") });
    // The join of both completes the phase; wait again in the next one.
    assert_eq!(world.joined(waiting).error, ErrorCode::None);
    let waiting = world.sync(&sync_request(&ids[1], 2, Vec::new()));
    world.join(static_request("b"));
    assert_eq!(world.synced(waiting).error, ErrorCode::FencedInstanceId);
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
}

#[test]
fn a_leader_that_comes_back_is_told_to_skip_the_assignment() {
    let mut world = World::new();
    let (_, generation) = pair(&mut world);
    let request = JoinRequest { supports_skipping_assignment: true, ..static_request("a") };
    let token = world.join(request);
    let reply = world.joined(token);
    assert_eq!((reply.generation, reply.skip_assignment), (generation, true));
    assert_eq!((&reply.leader, reply.members.len()), (&reply.member_id, 2));
}

#[test]
fn a_leader_that_cannot_skip_the_assignment_is_told_of_its_former_self() {
    let mut world = World::new();
    let (ids, _) = pair(&mut world);
    let token = world.join(static_request("a"));
    let reply = world.joined(token);
    assert_eq!((&reply.leader, reply.skip_assignment), (&ids[0], false));
    assert!(reply.members.is_empty());
    let token = world.join(JoinRequest { member_id: reply.member_id, ..static_request("a") });
    assert_eq!(world.reply(token), None, "it leads all the same: its rejoin is a rebalance");
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
}

#[test]
fn a_static_member_that_changes_the_choice_of_protocol_starts_a_rebalance() {
    let mut world = World::new();
    let both = |instance: &str, names: [&str; 2]| JoinRequest {
        protocols: names.iter().map(|name| protocol(name)).collect(),
        ..static_request(instance)
    };
    let names = ["range", "sticky"];
    let (ids, generation) = world.stable_of(vec![both("a", names), both("b", names)]);
    let token = world.join(JoinRequest { protocols: vec![protocol("sticky")], ..both("b", names) });
    assert_eq!(world.reply(token), None);
    let a = JoinRequest { member_id: ids[0].clone(), ..both("a", names) };
    world.join(a);
    let reply = world.joined(token);
    assert_eq!(
        (reply.generation, reply.protocol_name.as_deref()),
        (generation + 1, Some("sticky"))
    );
}

#[test]
fn static_members_survive_a_rebalance_that_they_miss_until_their_session_ends() {
    let mut world = World::new();
    let request = |instance: &str, id: &str| JoinRequest {
        member_id: id.to_owned(),
        session_timeout_ms: 4 * REBALANCE_MS,
        ..static_request(instance)
    };
    let (ids, generation) = world.stable_of(vec![request("a", ""), request("b", "")]);
    let token = world.join(request("a", &ids[0]));
    world.pass(i64::from(REBALANCE_MS));
    let reply = world.joined(token);
    assert_eq!((reply.generation, reply.members.len()), (generation + 1, 2));
}

#[test]
fn a_group_of_absent_static_members_empties_with_their_sessions() {
    let mut world = World::new();
    pair(&mut world);
    for instance in ["a", "b"] {
        // A timeout of zero must not make the coordinator spin.
        world.join(JoinRequest { rebalance_timeout_ms: 0, ..static_request(instance) });
    }
    world.leave(&[("", Some("a"))]);
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    world.pass(i64::from(SESSION_MS));
    assert_eq!(world.state(), Some(GroupState::Empty));
}

#[test]
fn an_administrator_removes_static_members_by_their_instance() {
    let mut world = World::new();
    let (ids, generation) = pair(&mut world);
    let reply = world.leave(&[("", Some("a")), ("", Some("c")), ("", None)]);
    let errors: Vec<ErrorCode> = reply.members.iter().map(|member| member.error).collect();
    assert_eq!(errors, [ErrorCode::None, ErrorCode::UnknownMemberId, ErrorCode::UnknownMemberId]);
    assert_eq!(world.heartbeat_as(&ids[0], Some("a"), generation), ErrorCode::UnknownMemberId);
    let token = world.join(JoinRequest { member_id: ids[1].clone(), ..static_request("b") });
    assert_eq!(world.joined(token).members.len(), 1);
}

#[test]
fn a_dynamic_member_shares_a_group_with_static_ones() {
    let mut world = World::new();
    let (ids, _) = world.stable_of(vec![static_request("a"), join_request("")]);
    let group = world.groups.describe("orders").expect("the group exists");
    let instances = group.members.iter().filter(|member| member.instance_id.is_some()).count();
    assert_eq!((ids.len(), instances), (2, 1));
}

#[test]
fn a_static_member_that_was_replaced_before_it_synced_still_has_to_sync() {
    let mut world = World::new();
    let tokens = ["a", "b"].map(|instance| world.join(static_request(instance)));
    world.pass(6_000);
    let leader = tokens.map(|token| world.joined(token))[0].leader.clone();
    world.sync(&sync_request(&leader, 1, Vec::new()));
    assert_eq!(world.state(), Some(GroupState::Stable));
    let token = world.join(static_request("b"));
    let id = world.joined(token).member_id;
    for _ in 0..REBALANCE_MS / 5_000 {
        world.pass(5_000);
        world.heartbeat_as(&leader, Some("a"), 1);
        world.heartbeat_as(&id, Some("b"), 1);
    }
    assert_eq!(world.heartbeat_as(&id, Some("b"), 1), ErrorCode::UnknownMemberId);
    assert_eq!(world.heartbeat_as(&leader, Some("a"), 1), ErrorCode::RebalanceInProgress);
}

/// The record of such a group could never be written, and every group waited for it.
#[test]
fn a_static_member_that_offers_more_than_a_record_takes_makes_the_group_rebalance() {
    let mut world = World::with(Config { record_bytes_max: 2_000, ..Config::default() });
    let (_, generation) = pair(&mut world);
    let written = world.records.len();
    let mut large = static_request("b");
    large.protocols.push(protocol(&"x".repeat(2_000)));
    let token = world.join(large);
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    assert_eq!(world.records.len(), written);
    world.join(static_request("a"));
    assert_eq!(world.joined(token).generation, generation + 1);
}
