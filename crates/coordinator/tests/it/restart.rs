//! Groups live on when the broker restarts from its records.

use moldau_coordinator::{Config, GroupRecord, GroupState, Groups};
use moldau_protocol::ErrorCode;

use crate::world::{GROUP, SESSION_MS, World, commit_request, join_request, static_request};

/// The world after a restart from these records.
fn restarted(world: &World, records: Vec<GroupRecord>, config: Config) -> World {
    let mut next = World::with(config);
    next.now_ms = world.now_ms;
    next.groups = Groups::new(Config::default(), 8, world.now_ms);
    records.into_iter().for_each(|record| next.groups.replay(record));
    let effects = next.groups.recovered(next.now_ms);
    next.take(effects);
    next
}

#[test]
fn a_running_group_keeps_its_generation_members_and_offsets() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    world.commit(&commit_request(&ids[0], generation, "sales", 17));
    let mut next = restarted(&world, world.records.clone(), Config::default());
    assert_eq!(next.groups.describe(GROUP), world.groups.describe(GROUP));
    assert_eq!(next.heartbeat(&ids[0], generation), ErrorCode::None);
    assert_eq!(next.committed("sales", 0), 17);
    let commit = commit_request(&ids[1], generation, "sales", 18);
    assert_eq!(next.commit(&commit), ErrorCode::None);
    let token = next.join(join_request(&ids[1]));
    assert_eq!(next.joined(token).generation, generation, "an unchanged rejoin stays quiet");
}

#[test]
fn members_that_do_not_return_after_a_restart_expire() {
    let mut world = World::new();
    let (_, generation) = world.stable(2);
    let mut next = restarted(&world, world.records.clone(), Config::default());
    next.pass(i64::from(SESSION_MS) - 1);
    assert_eq!(next.state(), Some(GroupState::Stable));
    next.pass(1);
    next.pass(120_000);
    assert_eq!(next.state(), Some(GroupState::Empty));
    let group = next.groups.describe(GROUP).expect("an empty group remains for a while");
    assert!(group.generation > generation);
}

#[test]
fn a_static_member_returns_to_its_place_after_a_restart() {
    let mut world = World::new();
    let (_, generation) = world.stable_of(vec![static_request("a"), static_request("b")]);
    let token = world.join(static_request("b"));
    let id = world.joined(token).member_id;
    let mut next = restarted(&world, world.records.clone(), Config::default());
    assert_eq!(next.heartbeat_as(&id, Some("b"), generation), ErrorCode::None);
    let token = next.join(static_request("b"));
    assert_eq!(next.joined(token).generation, generation);
    assert_eq!(next.state(), Some(GroupState::Stable));
}

#[test]
fn a_rebalance_under_way_is_forgotten_for_the_generation_before() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    world.join(join_request(&ids[0]));
    let snapshot: Vec<GroupRecord> = world.groups.snapshot().collect();
    for records in [world.records.clone(), snapshot] {
        let mut next = restarted(&world, records, Config::default());
        assert_eq!(next.state(), Some(GroupState::Stable));
        assert_eq!(next.heartbeat(&ids[1], generation), ErrorCode::None);
    }
}

#[test]
fn deleted_offsets_and_groups_stay_deleted() {
    let mut world = World::new();
    world.commit(&commit_request("", -1, "sales", 1));
    world.groups.topic_deleted("sales");
    let snapshot = world.groups.snapshot().collect();
    let next = restarted(&world, snapshot, Config::default());
    assert_eq!(next.committed("sales", 0), -1);
    world.commit(&commit_request("", -1, "sales", 2));
    let token = world.token();
    let effects = world.groups.delete_groups(&[GROUP.to_owned()], token);
    world.take(effects);
    let next = restarted(&world, world.records.clone(), Config::default());
    assert_eq!(next.groups.list().count(), 0);
}

#[test]
fn a_snapshot_of_many_offsets_comes_in_bounded_records() {
    let mut world = World::new();
    let mut request = commit_request("", -1, "sales", 3);
    let commit = request.topics[0].partitions[0].clone();
    for partition in 1..2_500 {
        let mut next = commit.clone();
        next.partition = partition;
        request.topics[0].partitions.push(next);
    }
    world.commit(&request);
    let snapshot: Vec<GroupRecord> = world.groups.snapshot().collect();
    assert_eq!(snapshot.len(), 3);
    let next = restarted(&world, snapshot, Config::default());
    assert_eq!(next.groups.offset_fetch(GROUP, None), world.groups.offset_fetch(GROUP, None));
}

#[test]
fn a_group_that_is_too_large_after_a_restart_rebalances() {
    let mut world = World::new();
    let (ids, generation) = world.stable(3);
    let mut groups =
        Groups::new(Config { group_size_max: 2, ..Config::default() }, 8, world.now_ms);
    world.records.iter().cloned().for_each(|record| groups.replay(record));
    let effects = groups.recovered(world.now_ms);
    assert!(effects.replies.is_empty());
    world.groups = groups;
    assert_eq!(world.heartbeat(&ids[0], generation), ErrorCode::RebalanceInProgress);
    let tokens = [0, 1, 2].map(|index| world.join(join_request(&ids[index])));
    let third = world.joined(tokens[2]);
    assert_eq!(third.error, ErrorCode::GroupMaxSizeReached);
    assert_eq!(world.joined(tokens[0]).generation, generation + 1);
}
