//! Groups that change their protocol while they have members, and members of both protocols in one
//! group (KIP-848), with what Kafka answers.

use std::collections::BTreeSet;

use bytes::Bytes;
use moldau_coordinator::{
    Effects, GroupType, JoinReply, JoinRequest, LeaveRequest, LeavingMember, MigrationPolicy,
    Reply, SyncReply, SyncRequest, Token,
};
use moldau_protocol::ErrorCode;

use crate::consumer_world::{Client, GROUP, INTERVAL_MS, SESSION_MS, World};
use crate::mixed_member::{
    Classic, REBALANCE_MS, SESSION_MS as CLASSIC_SESSION_MS, Strategy, TOPIC, assignment,
    partitions, subscription,
};

const JOIN: Token = Token(10);
const SYNC: Token = Token(11);

fn world(policy: MigrationPolicy) -> World {
    let mut config = moldau_coordinator::Config::default();
    config.consumer.migration = policy;
    let mut world = World::with(config);
    world.topics.put(TOPIC, 4);
    world
}

fn group_type(world: &World) -> Option<GroupType> {
    world.groups.list().map(|it| it.group_type).next()
}

fn take(world: &mut World, effects: Effects) -> Vec<(Token, Reply)> {
    world.records.extend(effects.records);
    effects.replies
}

fn request(classic: &Classic) -> JoinRequest {
    JoinRequest { require_known_member_id: false, ..classic.join() }
}

fn join(world: &mut World, request: JoinRequest) -> Option<JoinReply> {
    let effects = world.groups.join(world.now_ms, request, &world.topics, JOIN);
    match take(world, effects).pop() {
        Some((JOIN, Reply::Join(reply))) => Some(reply),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

fn sync(world: &mut World, request: &SyncRequest) -> SyncReply {
    let effects = world.groups.sync(world.now_ms, request, &world.topics, SYNC);
    match take(world, effects).pop() {
        Some((SYNC, Reply::Sync(reply))) => reply,
        other => panic!("{other:?}"),
    }
}

fn beat(world: &mut World, classic: &Classic) -> ErrorCode {
    let effects = world.groups.heartbeat(world.now_ms, &classic.heartbeat(), SYNC);
    match take(world, effects).pop() {
        Some((SYNC, Reply::Heartbeat(error))) => error,
        other => panic!("{other:?}"),
    }
}

/// A stable classic group of one member, which leads it.
fn stable(world: &mut World, instance_id: Option<&str>) -> Classic {
    let mut classic = Classic::new(instance_id.map(str::to_owned), Strategy::Cooperative);
    assert_eq!(join(world, request(&classic)), None);
    let delay_ms = world.groups.next_deadline() - world.now_ms;
    world.now_ms += delay_ms;
    let effects = world.groups.tick(world.now_ms, &world.topics);
    let Some((JOIN, Reply::Join(reply))) = take(world, effects).pop() else { panic!("no join") };
    let synced = classic.joined(reply, 4).expect("it joined");
    let reply = sync(world, &synced);
    classic.synced(&reply);
    assert_eq!(classic.owned, [0, 1, 2, 3].into());
    classic
}

/// Joins again and fetches the assignment, as often as the member is asked to.
fn rejoin(world: &mut World, classic: &mut Classic) {
    for _ in 0..4 {
        let reply = join(world, request(classic)).expect("a consumer group answers at once");
        let synced = classic.joined(reply, 4).expect("it joined");
        let reply = sync(world, &synced);
        classic.synced(&reply);
        if beat(world, classic) == ErrorCode::None {
            return;
        }
    }
    panic!("{classic:?} rejoins for ever");
}

#[test]
fn a_classic_group_becomes_one_of_the_consumer_protocol_and_back() {
    let mut world = world(MigrationPolicy::Bidirectional);
    let mut classic = stable(&mut world, None);
    assert_eq!(world.commit(&classic.id, classic.generation, (TOPIC, 1), 17), ErrorCode::None);
    let mut client = Client::new("c", &[TOPIC]);
    assert_eq!(client.beat(&mut world).error, ErrorCode::None);
    assert_eq!(group_type(&world), Some(GroupType::Consumer));
    assert_eq!((client.epoch, client.count()), (classic.generation + 1, 0));
    for from_snapshot in [false, true] {
        let before = world.groups.describe_consumer(GROUP);
        world.restart(from_snapshot);
        assert_eq!(world.groups.describe_consumer(GROUP), before);
    }
    assert_eq!(beat(&mut world, &classic), ErrorCode::RebalanceInProgress);
    rejoin(&mut world, &mut classic);
    client.beat(&mut world);
    assert_eq!((client.count(), classic.owned.len()), (2, 2));
    assert_eq!(world.committed(TOPIC, 1), 17);
    let described = world.groups.describe_consumer(GROUP).expect("it is there");
    let classics = described.members.iter().map(|it| it.member.classic.is_some());
    assert_eq!(classics.collect::<Vec<_>>(), [false, true], "the ids are c and classic-…");

    assert_eq!(world.send(client.leaving(-1)).error, ErrorCode::None);
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    world.restart(true);
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    assert_eq!(world.committed(TOPIC, 1), 17);
    let refused = world.commit(&classic.id, classic.generation, (TOPIC, 1), 18);
    assert_eq!(refused, ErrorCode::IllegalGeneration, "the group has gone on without it");
}

#[test]
fn a_group_of_both_is_a_classic_one_once_the_sessions_of_the_others_end() {
    let mut world = world(MigrationPolicy::Bidirectional);
    let mut classic = stable(&mut world, None);
    Client::new("c", &[TOPIC]).beat(&mut world);
    rejoin(&mut world, &mut classic);
    for _ in 0..10 {
        assert_eq!(group_type(&world), Some(GroupType::Consumer));
        world.pass(SESSION_MS / 10 - 1);
        assert_eq!(beat(&mut world, &classic), ErrorCode::None);
    }
    world.pass(10);
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    assert_eq!(beat(&mut world, &classic), ErrorCode::IllegalGeneration);
}

#[test]
fn members_that_wait_join_again_when_the_group_changes_its_protocol() {
    let mut world = world(MigrationPolicy::Bidirectional);
    let classic = Classic::new(None, Strategy::Eager);
    assert_eq!(join(&mut world, request(&classic)), None);
    let client = Client::new("c", &[TOPIC]).full();
    let effects =
        world.groups.consumer_heartbeat(world.now_ms, client, true, &world.topics, Token(1));
    let [(JOIN, Reply::Join(refused)), (_, Reply::ConsumerHeartbeat(taken))] = &effects.replies[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(refused.error, ErrorCode::RebalanceInProgress);
    assert!(refused.member_id.starts_with("classic-"), "it keeps its id");
    assert_eq!(taken.error, ErrorCode::None);
}

#[test]
fn the_policy_says_which_groups_change_their_protocol() {
    use MigrationPolicy::{Bidirectional, Disabled, Downgrade, Upgrade};
    for (policy, upgrades) in
        [(Disabled, false), (Downgrade, false), (Upgrade, true), (Bidirectional, true)]
    {
        let mut world = world(policy);
        stable(&mut world, None);
        let error = Client::new("c", &[TOPIC]).beat(&mut world).error;
        let expected = if upgrades { ErrorCode::None } else { ErrorCode::GroupIdNotFound };
        assert_eq!(error, expected, "{policy:?}");
    }
    for (policy, error, after) in [
        (Disabled, ErrorCode::InconsistentGroupProtocol, GroupType::Consumer),
        (Downgrade, ErrorCode::None, GroupType::Classic),
        (Upgrade, ErrorCode::None, GroupType::Consumer),
        (Bidirectional, ErrorCode::None, GroupType::Classic),
    ] {
        let mut world = world(policy);
        let mut client = Client::new("c", &[TOPIC]);
        client.beat(&mut world);
        let classic = Classic::new(None, Strategy::Eager);
        let reply = join(&mut world, request(&classic)).expect("an answer");
        assert_eq!(reply.error, error, "{policy:?}");
        world.send(client.leaving(-1));
        assert_eq!(group_type(&world), Some(after), "{policy:?}");
    }
}

#[test]
fn a_group_that_only_classic_members_are_left_of_assigns_them_all() {
    let mut world = world(MigrationPolicy::Upgrade);
    let mut classic = stable(&mut world, None);
    let mut client = Client::new("c", &[TOPIC]);
    client.beat(&mut world);
    rejoin(&mut world, &mut classic);
    client.beat(&mut world);
    world.send(client.leaving(-1));
    assert_eq!(beat(&mut world, &classic), ErrorCode::None, "the next target has to wait");
    world.pass(INTERVAL_MS);
    assert_eq!(beat(&mut world, &classic), ErrorCode::RebalanceInProgress);
    rejoin(&mut world, &mut classic);
    assert_eq!(classic.owned, [0, 1, 2, 3].into());
}

#[test]
fn groups_that_are_no_consumers_or_have_assignors_of_their_own_stay_classic() {
    let mut world = world(MigrationPolicy::Bidirectional);
    let connect = Classic::new(None, Strategy::Eager);
    let connect = JoinRequest { protocol_type: "connect".to_owned(), ..request(&connect) };
    assert_eq!(join(&mut world, connect), None);
    let client = Client::new("c", &[TOPIC]).full();
    assert_eq!(world.send(client.clone()).error, ErrorCode::GroupIdNotFound);

    for (metadata, given) in [
        (vec![0, 1, 0, 0, 0, 9], assignment(&BTreeSet::new())),
        (subscription(&BTreeSet::new()).to_vec(), user_data()),
    ] {
        let mut world = self::world(MigrationPolicy::Bidirectional);
        let mut classic = Classic::new(None, Strategy::Eager);
        let mut request = request(&classic);
        request.protocols[0].metadata = metadata.into();
        assert_eq!(join(&mut world, request), None);
        world.now_ms = world.groups.next_deadline();
        let effects = world.groups.tick(world.now_ms, &world.topics);
        let Some((_, Reply::Join(reply))) = take(&mut world, effects).pop() else { panic!() };
        let reply = JoinReply { members: Vec::new(), ..reply };
        let mut synced = classic.joined(reply, 4).expect("it joined");
        synced.assignments = vec![(classic.id.clone(), given)];
        assert_eq!(sync(&mut world, &synced).error, ErrorCode::None);
        assert_eq!(world.send(client.clone()).error, ErrorCode::GroupIdNotFound);
        assert_eq!(group_type(&world), Some(GroupType::Classic));
    }
}

/// An assignment with user data, which another assignor could not read.
fn user_data() -> Bytes {
    [&[0, 1, 0, 0, 0, 0], &[0, 0, 0, 1, 7][..]].concat().into()
}

#[test]
fn a_classic_member_of_a_consumer_group_gets_the_errors_of_kafka() {
    let mut world = world(MigrationPolicy::Bidirectional);
    Client::new("c", &[TOPIC]).beat(&mut world);
    let mut classic = Classic::new(None, Strategy::Eager);
    let unknown = join(&mut world, classic.join()).expect("an answer");
    assert_eq!(unknown.error, ErrorCode::MemberIdRequired);
    let other = JoinRequest { protocol_type: "connect".to_owned(), ..request(&classic) };
    let reply = join(&mut world, other).expect("an answer");
    assert_eq!(reply.error, ErrorCode::InconsistentGroupProtocol);
    let unreadable = |bytes: &'static [u8]| {
        let mut request = request(&Classic::new(None, Strategy::Eager));
        request.protocols[0].metadata = Bytes::from_static(bytes);
        request
    };
    let reply = join(&mut world, unreadable(&[0])).expect("an answer");
    assert_eq!(reply.error, ErrorCode::InconsistentGroupProtocol);

    let reply = join(&mut world, JoinRequest { member_id: unknown.member_id, ..request(&classic) });
    let synced = classic.joined(reply.expect("an answer"), 4).expect("it joined");
    let protocol_name = Some("other".to_owned());
    for (request, error) in [
        (SyncRequest { member_id: "x".to_owned(), ..synced.clone() }, ErrorCode::UnknownMemberId),
        (SyncRequest { member_id: "c".to_owned(), ..synced.clone() }, ErrorCode::UnknownMemberId),
        (SyncRequest { generation: 99, ..synced.clone() }, ErrorCode::IllegalGeneration),
        (SyncRequest { protocol_name, ..synced.clone() }, ErrorCode::InconsistentGroupProtocol),
    ] {
        assert_eq!(sync(&mut world, &request).error, error);
    }
    let reply = sync(&mut world, &synced);
    assert_eq!(reply.protocol_name.as_deref(), Some("range"));
    assert_eq!(partitions(&reply.assignment), BTreeSet::new(), "the other has them all");
    let other = Classic { generation: 99, ..classic.clone() };
    assert_eq!(beat(&mut world, &other), ErrorCode::IllegalGeneration);
    let other = Classic { id: "c".to_owned(), ..classic.clone() };
    assert_eq!(beat(&mut world, &other), ErrorCode::UnknownMemberId);

    let member = LeavingMember { member_id: classic.id.clone(), instance_id: None };
    let request = LeaveRequest { group_id: GROUP.to_owned(), members: vec![member] };
    let effects = world.groups.leave(world.now_ms, &request, &world.topics, SYNC);
    let Some((_, Reply::Leave(left))) = take(&mut world, effects).pop() else { panic!() };
    assert_eq!(left.members[0].error, ErrorCode::None);
    assert_eq!(beat(&mut world, &classic), ErrorCode::UnknownMemberId);
    assert_eq!(group_type(&world), Some(GroupType::Consumer));
}

#[test]
fn a_classic_member_that_does_not_sync_or_rejoin_in_time_is_put_out() {
    let mut world = world(MigrationPolicy::Upgrade);
    let mut classic = stable(&mut world, None);
    let mut client = Client::new("c", &[TOPIC]);
    let mut is_put_out = |world: &mut World, classic: &Classic| {
        for _ in 0..2 * REBALANCE_MS / CLASSIC_SESSION_MS {
            world.pass(i64::from(CLASSIC_SESSION_MS) - 1);
            assert_eq!(client.beat(world).error, ErrorCode::None);
            if beat(world, classic) == ErrorCode::UnknownMemberId {
                return true;
            }
        }
        false
    };
    assert!(is_put_out(&mut world, &classic), "it was asked to join again");

    let mut other = Classic::new(None, Strategy::Eager);
    let reply = join(&mut world, request(&other)).expect("an answer");
    other.joined(reply, 4).expect("it joined");
    assert!(is_put_out(&mut world, &other), "it never fetched its assignment");

    classic.id.clear();
    rejoin(&mut world, &mut classic);
    world.pass(i64::from(CLASSIC_SESSION_MS) + 1);
    assert_eq!(beat(&mut world, &classic), ErrorCode::UnknownMemberId, "its session ended");
}

#[test]
fn a_static_member_goes_on_under_the_other_protocol() {
    let mut world = world(MigrationPolicy::Bidirectional);
    let classic = stable(&mut world, Some("i"));
    let instance_id = Some("i".to_owned());
    let mut client = Client { instance_id: instance_id.clone(), ..Client::new("c", &[TOPIC]) };
    assert_eq!(client.beat(&mut world).error, ErrorCode::None, "it need not wait");
    assert_eq!(client.count(), 4);
    assert_eq!(group_type(&world), Some(GroupType::Consumer));
    assert_eq!(beat(&mut world, &classic), ErrorCode::FencedInstanceId);
    let other = Client { instance_id: instance_id.clone(), ..Client::new("d", &[TOPIC]) };
    assert_eq!(world.send(other.full()).error, ErrorCode::UnreleasedInstanceId);

    let mut back = Classic::new(instance_id, Strategy::Eager);
    let reply = join(&mut world, request(&back)).expect("an answer");
    assert_eq!((reply.error, reply.generation), (ErrorCode::None, client.epoch));
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    assert_eq!(client.beat(&mut world).error, ErrorCode::GroupIdNotFound);
    world.restart(true);
    let synced = back.joined(reply, 4).expect("it joined");
    let reply = sync(&mut world, &synced);
    back.synced(&reply);
    assert_eq!(back.owned, [0, 1, 2, 3].into(), "nobody had to join again");
    assert_eq!(beat(&mut world, &back), ErrorCode::None);
}
