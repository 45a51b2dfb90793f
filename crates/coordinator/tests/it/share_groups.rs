//! Members of share groups (KIP-932).

use std::collections::BTreeSet;

use moldau_coordinator::{
    Config, ConsumerHeartbeat, Effects, GroupRecord, GroupState, GroupType, HeartbeatRequest,
    JoinRequest, LeaveRequest, OffsetDeleteRequest, Partitions, Reply, ShareHeartbeat, SyncRequest,
    Token, Topics,
};
use moldau_protocol::ErrorCode;

use crate::consumer_world::{Client, INTERVAL_MS, SESSION_MS};
use crate::share_world::{GROUP, Member, World};

fn count(partitions: &Partitions) -> usize {
    partitions.values().map(BTreeSet::len).sum()
}

#[test]
fn a_member_gets_all_partitions_and_a_second_one_half() {
    let mut world = World::new();
    let orders = world.topics.put("orders", 4);
    let (mut a, mut b) = (Member::new("a", &["orders"]), Member::new("b", &["orders"]));
    let reply = a.beat(&mut world);
    assert_eq!((reply.error, reply.member_epoch), (ErrorCode::None, 2));
    assert_eq!((reply.member_id.as_str(), reply.heartbeat_interval_ms), ("a", 5_000));
    assert_eq!(a.assigned, [(orders, [0, 1, 2, 3].into())].into());
    world.pass(INTERVAL_MS);
    assert_eq!(b.beat(&mut world).member_epoch, 3);
    let before = a.assigned.clone();
    let reply = world.send(&a.brief());
    let assigned = reply.assignment.expect("the assignment changed");
    assert_eq!((reply.member_epoch, count(&assigned), count(&b.assigned)), (3, 2, 2));
    assert!(assigned[&orders].is_subset(&before[&orders]));
    assert_eq!(world.send(&a.at(3).brief()).assignment, None, "nothing changed");
}

#[test]
fn more_members_than_partitions_share_them() {
    let mut world = World::new();
    world.topics.put("orders", 1);
    let mut members: Vec<Member> =
        (0..3).map(|it| Member::new(&format!("m{it}"), &["orders"])).collect();
    for _round in 0..2 {
        members.iter_mut().for_each(|member| drop(member.beat(&mut world)));
        world.pass(INTERVAL_MS);
    }
    members.iter_mut().for_each(|member| drop(member.beat(&mut world)));
    assert!(members.iter().all(|member| count(&member.assigned) == 1));
}

/// Members that come together are assigned together.
#[test]
fn a_member_that_comes_early_waits_for_the_next_target() {
    let mut world = World::new();
    world.topics.put("orders", 2);
    let (mut a, mut b) = (Member::new("a", &["orders"]), Member::new("b", &["orders"]));
    a.beat(&mut world);
    let reply = b.beat(&mut world);
    assert_eq!((reply.member_epoch, count(&b.assigned)), (2, 0));
    let group = world.describe();
    assert_eq!((group.epoch, group.target_epoch), (3, 2));
    world.pass(INTERVAL_MS);
    assert_eq!(b.beat(&mut world).member_epoch, 3);
    assert_eq!(count(&b.assigned), 1);
}

#[test]
fn the_topics_of_a_group_are_followed() {
    let mut world = World::new();
    let orders = world.topics.put("orders", 1);
    let mut member = Member::new("a", &["orders", "later"]);
    member.beat(&mut world);
    world.pass(INTERVAL_MS);
    world.topics.put("orders", 3);
    let later = world.topics.put("later", 1);
    assert_eq!(member.beat(&mut world).member_epoch, 3);
    assert_eq!(member.assigned, [(orders, [0, 1, 2].into()), (later, [0].into())].into());
    world.pass(INTERVAL_MS);
    world.topics.remove("orders");
    member.beat(&mut world);
    assert_eq!(member.assigned, [(later, [0].into())].into());
    member.topics = vec!["orders".to_owned()];
    let reply = member.beat(&mut world);
    assert_eq!(reply.assignment, Some(Partitions::new()), "it no longer subscribes to later");
}

#[test]
fn requests_are_checked_as_by_kafka() {
    let mut world = World::new();
    world.topics.put("orders", 1);
    let full = Member::new("a", &["orders"]).full();
    let mut code = |request: ShareHeartbeat| world.send(&request).error;
    let brief = |member_id: &str, member_epoch| ShareHeartbeat {
        member_id: member_id.to_owned(),
        member_epoch,
        topics: None,
        ..full.clone()
    };
    let invalid = ErrorCode::InvalidRequest;
    assert_eq!(code(ShareHeartbeat { member_id: " ".to_owned(), ..full.clone() }), invalid);
    assert_eq!(code(ShareHeartbeat { group_id: String::new(), ..full.clone() }), invalid);
    assert_eq!(code(ShareHeartbeat { rack_id: Some(String::new()), ..full.clone() }), invalid);
    assert_eq!(code(ShareHeartbeat { topics: Some(Vec::new()), ..full.clone() }), invalid);
    assert_eq!(code(brief("a", 0)), invalid);
    assert_eq!(code(brief("a", -2)), invalid);
    assert_eq!(code(brief("a", 1)), ErrorCode::GroupIdNotFound);
    assert_eq!(code(brief("a", -1)), ErrorCode::GroupIdNotFound);
    assert_eq!(code(full.clone()), ErrorCode::None);
    assert_eq!(code(brief("b", 1)), ErrorCode::UnknownMemberId);
    assert_eq!(code(brief("b", -1)), ErrorCode::UnknownMemberId);
    assert_eq!(code(brief("a", 3)), ErrorCode::FencedMemberEpoch);
    let long = ShareHeartbeat { member_id: "m".repeat(40_000), ..full.clone() };
    assert_eq!(code(long), ErrorCode::PolicyViolation);
}

#[test]
fn only_the_epoch_before_is_forgiven() {
    let mut world = World::new();
    world.topics.put("orders", 1);
    let mut member = Member::new("a", &["orders"]);
    for partitions in 2..5 {
        member.beat(&mut world);
        world.pass(INTERVAL_MS);
        world.topics.put("orders", partitions);
    }
    assert_eq!(member.epoch, 4);
    assert_eq!(world.send(&member.at(3).brief()).member_epoch, 5);
    assert_eq!(world.send(&member.at(4).brief()).member_epoch, 5, "its answer may be lost");
    assert_eq!(world.send(&member.at(3).brief()).error, ErrorCode::FencedMemberEpoch);
    assert_eq!(world.send(&member.at(0).full()).member_epoch, 5, "it may always rejoin");
}

#[test]
fn a_full_group_takes_those_that_it_knows() {
    let mut config = Config::default();
    config.share.group_size_max = 1;
    let mut world = World::with(config);
    world.topics.put("orders", 1);
    let mut member = Member::new("a", &["orders"]);
    member.beat(&mut world);
    let stranger = Member::new("b", &["orders"]);
    assert_eq!(world.send(&stranger.full()).error, ErrorCode::GroupMaxSizeReached);
    assert_eq!(world.send(&stranger.at(1).brief()).error, ErrorCode::GroupMaxSizeReached);
    assert_eq!(member.beat(&mut world).error, ErrorCode::None);
}

#[test]
fn a_member_leaves_or_is_put_out_and_the_group_stays() {
    let mut world = World::new();
    world.topics.put("orders", 2);
    let (mut a, mut b) = (Member::new("a", &["orders"]), Member::new("b", &["orders"]));
    a.beat(&mut world);
    b.beat(&mut world);
    world.pass(SESSION_MS - 1);
    let left = world.send(&a.at(-1).brief());
    assert_eq!((left.error, left.member_epoch, left.assignment), (ErrorCode::None, -1, None));
    assert_eq!(world.groups.share_state(GROUP), Ok(Some(GroupState::Stable)));
    world.pass(1);
    let group = world.describe();
    assert_eq!((group.state, group.members.len()), (GroupState::Empty, 0));
    assert_eq!((group.epoch, group.target_epoch), (5, 5));
    world.pass(8 * 24 * 60 * 60 * 1_000);
    assert_eq!(world.groups.share_state(GROUP), Ok(Some(GroupState::Empty)), "it never expires");
    assert_eq!(a.at(0).beat(&mut world).member_epoch, 6);
}

#[test]
fn a_group_overrides_its_settings() {
    let mut world = World::new();
    let overrides =
        [("share.session.timeout.ms", "60000"), ("share.heartbeat.interval.ms", "7000")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let record = world.groups.configure(GROUP, overrides.into()).expect("there is room");
    world.records.push(record);
    world.topics.put("orders", 1);
    let mut member = Member::new("a", &["orders"]);
    assert_eq!(member.beat(&mut world).heartbeat_interval_ms, 7_000);
    world.pass(SESSION_MS);
    assert_eq!(world.describe().members.len(), 1);
    world.pass(15_000);
    assert_eq!(world.describe().members.len(), 0);
    assert_eq!(world.groups.share_settings(GROUP).session_timeout_ms, 60_000);
    assert_eq!(world.groups.share_settings("other").session_timeout_ms, 45_000);
}

#[test]
fn a_group_is_deleted_once_it_is_empty() {
    let mut world = World::new();
    world.topics.put("orders", 1);
    let mut member = Member::new("a", &["orders"]);
    member.beat(&mut world);
    let names = [GROUP.to_owned()];
    let delete = |world: &mut World| {
        let effects = world.groups.delete_groups(&names, Token(3));
        world.records.extend(effects.records);
        match &effects.replies[..] {
            [(_, Reply::DeleteGroups(results))] => results[0].1,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(delete(&mut world), ErrorCode::NonEmptyGroup);
    world.send(&member.at(-1).brief());
    assert_eq!(delete(&mut world), ErrorCode::None);
    world.restart(false);
    assert_eq!(world.groups.share_state(GROUP), Ok(None));
    assert_eq!(member.at(0).beat(&mut world).member_epoch, 2, "a new group begins anew");
}

/// What other protocols ask of a share group, and the other way round.
#[test]
fn a_group_has_one_type() {
    let mut world = World::new();
    world.topics.put("orders", 1);
    let member = Member::new("a", &["orders"]);
    world.send(&member.full());
    world.send(&member.at(-1).brief());
    let reply = |effects: Effects| effects.replies.into_iter().next().expect("a reply").1;
    let joined = reply(world.groups.join(world.now_ms, join(GROUP), &world.topics, Token(1)));
    let error = ErrorCode::InconsistentGroupProtocol;
    assert!(matches!(joined, Reply::Join(reply) if reply.error == error));
    let synced = reply(world.groups.sync(world.now_ms, &sync(), &world.topics, Token(1)));
    assert!(matches!(synced, Reply::Sync(reply) if reply.error == ErrorCode::UnknownMemberId));
    let beat = reply(world.groups.heartbeat(world.now_ms, &heartbeat(), Token(1)));
    assert_eq!(beat, Reply::Heartbeat(ErrorCode::UnknownMemberId));
    let leave = LeaveRequest { group_id: GROUP.to_owned(), members: Vec::new() };
    let left = reply(world.groups.leave(world.now_ms, &leave, &world.topics, Token(1)));
    assert!(matches!(left, Reply::Leave(reply) if reply.error == ErrorCode::UnknownMemberId));
    let consumer = Client::new("c", &["orders"]).full();
    let consumer = ConsumerHeartbeat { group_id: GROUP.to_owned(), ..consumer };
    let topics = world.topics.clone();
    let effects = world.groups.consumer_heartbeat(world.now_ms, consumer, true, &topics, Token(1));
    let Reply::ConsumerHeartbeat(refused) = reply(effects) else { panic!("another reply") };
    assert_eq!(refused.error, ErrorCode::GroupIdNotFound);
    let deletion = OffsetDeleteRequest { group_id: GROUP.to_owned(), topics: Vec::new() };
    let deleted = reply(world.groups.offset_delete(world.now_ms, &deletion, Token(1)));
    assert_eq!(deleted, Reply::OffsetDelete(Err(ErrorCode::GroupIdNotFound)));
    let commit = world.groups.check_transactional_commit(GROUP, -1, ("", None), &[]);
    assert_eq!(commit, Err(ErrorCode::GroupIdNotFound));
    assert!(world.groups.describe_consumer(GROUP).is_err());
    assert!(world.groups.describe(GROUP).is_none());
    let listed: Vec<_> = world.groups.list().collect();
    assert_eq!(
        (listed[0].group_type, listed[0].protocol_type.as_str()),
        (GroupType::Share, "share")
    );

    // A classic group never becomes a share group, not even an empty one.
    let effects = world.groups.join(world.now_ms, join("classic"), &world.topics, Token(2));
    assert_eq!(effects.replies, []);
    let other = ShareHeartbeat { group_id: "classic".to_owned(), ..member.full() };
    assert_eq!(world.send(&other).error, ErrorCode::GroupIdNotFound);
    assert!(world.groups.describe_share("classic").is_err());
}

#[test]
fn a_group_survives_a_restart() {
    for from_snapshot in [false, true] {
        let mut world = World::new();
        world.topics.put("orders", 3);
        let (mut a, mut b) = (Member::new("a", &["orders"]), Member::new("b", &["orders"]));
        a.beat(&mut world);
        world.pass(INTERVAL_MS);
        b.beat(&mut world);
        a.beat(&mut world);
        let before = world.describe();
        world.restart(from_snapshot);
        assert_eq!(world.describe(), before);
        assert_eq!(world.send(&a.brief()).assignment, None, "it has what it had");
        world.pass(SESSION_MS);
        assert_eq!(world.describe().state, GroupState::Empty, "sessions begin at the restart");
    }
}

#[test]
fn a_heartbeat_that_changes_nothing_writes_nothing() {
    let mut world = World::new();
    world.topics.put("orders", 3);
    let mut member = Member::new("a", &["orders"]);
    member.beat(&mut world);
    let written = world.records.len();
    assert_eq!(written, 1, "a change is one record");
    world.send(&member.brief());
    member.beat(&mut world);
    assert_eq!(world.records.len(), written);
    assert!(matches!(&world.records[0], GroupRecord::ShareChanged(change) if change.epoch == 2));
    assert!(world.topics.by_name("orders").is_some());
}

fn join(group: &str) -> JoinRequest {
    JoinRequest {
        group_id: group.to_owned(),
        member_id: String::new(),
        instance_id: None,
        client_id: "c".to_owned(),
        client_host: "/h".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![moldau_coordinator::Protocol {
            name: "range".to_owned(),
            metadata: bytes::Bytes::new(),
        }],
        require_known_member_id: false,
        supports_skipping_assignment: false,
    }
}

fn sync() -> SyncRequest {
    SyncRequest {
        group_id: GROUP.to_owned(),
        generation: 1,
        member_id: "a".to_owned(),
        instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: Vec::new(),
    }
}

fn heartbeat() -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: GROUP.to_owned(),
        generation: 1,
        member_id: "a".to_owned(),
        instance_id: None,
    }
}
