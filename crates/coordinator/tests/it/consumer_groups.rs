//! Groups of the consumer protocol: joining, reconciliation, leaving, fencing.

use moldau_coordinator::{
    Config, ConsumerConfig, ConsumerHeartbeat, GroupSettings, GroupState, GroupType, Partitions,
    Token,
};
use moldau_protocol::ErrorCode;

use crate::consumer_world::{Client, GROUP, INTERVAL_MS, SESSION_MS, World, settle};

fn world() -> World {
    let mut world = World::new();
    world.topics.put("orders", 4);
    world
}

#[test]
fn the_first_member_gets_everything_at_once() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    let reply = client.beat(&mut world);
    assert_eq!((reply.error, reply.member_epoch), (ErrorCode::None, 1));
    assert_eq!(reply.heartbeat_interval_ms, 5_000);
    assert_eq!(client.count(), 4);
    assert_eq!(world.state(), GroupState::Stable);
    // A heartbeat that says nothing new is answered in kind and writes nothing.
    let records = world.records.len();
    let reply = world.send(client.brief());
    assert_eq!((reply.member_epoch, reply.assignment), (1, None));
    assert_eq!(world.records.len(), records);
}

#[test]
fn a_partition_is_given_up_before_it_is_given_away() {
    let mut world = world();
    let mut first = Client::new("a", &["orders"]);
    first.beat(&mut world);
    world.pass(INTERVAL_MS);
    let mut second = Client::new("b", &["orders"]);
    second.beat(&mut world);
    assert_eq!((second.count(), second.epoch), (0, 2));
    assert_eq!(world.state(), GroupState::Reconciling);
    // The first one is told to give up two, and stays in its epoch until it has.
    let told = world.send(first.brief());
    assert_eq!(told.member_epoch, 1);
    let kept = told.assignment.expect("it changed");
    assert_eq!(kept.values().map(std::collections::BTreeSet::len).sum::<usize>(), 2);
    assert_eq!(world.send(second.brief()).assignment, None);
    first.owned = kept;
    let reply = first.beat(&mut world);
    assert_eq!(reply.member_epoch, 2);
    let given = world.send(second.brief()).assignment.expect("the others are free");
    assert!(given.iter().all(|(topic, held)| held.is_disjoint(&first.owned[topic])));
    assert_eq!(world.state(), GroupState::Stable);
}

#[test]
fn members_that_come_together_are_assigned_together() {
    let mut world = world();
    let mut clients: Vec<_> = ["a", "b", "c"].map(|id| Client::new(id, &["orders"])).into();
    for client in &mut clients {
        client.beat(&mut world);
    }
    // The second and third came within the interval: no target takes them into account yet.
    assert_eq!(world.state(), GroupState::Assigning);
    settle(&mut world, &mut clients);
    let mut counts: Vec<_> = clients.iter().map(Client::count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 2]);
}

#[test]
fn a_member_that_does_not_give_up_in_time_is_put_out() {
    let mut world = world();
    let mut first = Client::new("a", &["orders"]);
    first.beat(&mut world);
    world.pass(INTERVAL_MS);
    let mut second = Client::new("b", &["orders"]);
    second.beat(&mut world);
    for _beat in 0..6 {
        // It is alive, and says all the time that it holds everything.
        assert_eq!(world.send(first.full()).error, ErrorCode::None);
        assert_eq!(second.beat(&mut world).error, ErrorCode::None);
        world.pass(10_000);
    }
    assert_eq!(world.send(first.full()).error, ErrorCode::UnknownMemberId);
    settle(&mut world, std::slice::from_mut(&mut second));
    assert_eq!(second.count(), 4);
}

#[test]
fn a_member_without_heartbeats_is_put_out() {
    let mut world = world();
    let mut clients = vec![Client::new("a", &["orders"]), Client::new("b", &["orders"])];
    for client in &mut clients {
        client.beat(&mut world);
    }
    settle(&mut world, &mut clients);
    world.pass(SESSION_MS - 1);
    clients[1].beat(&mut world);
    world.pass(1);
    assert_eq!(world.send(clients[0].brief()).error, ErrorCode::UnknownMemberId);
    settle(&mut world, &mut clients[1..]);
    assert_eq!(clients[1].count(), 4);
}

#[test]
fn epochs_that_do_not_fit_are_fenced() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    client.topics.push("refunds".to_owned());
    world.topics.put("refunds", 1);
    world.pass(INTERVAL_MS);
    let held = client.clone();
    client.beat(&mut world);
    assert_eq!(client.epoch, 2);
    // The answer may have been lost: the epoch before is taken with what the member was given.
    let again = world.send(held.full());
    assert_eq!((again.error, again.member_epoch), (ErrorCode::None, 2));
    let without = ConsumerHeartbeat { owned: None, ..held.full() };
    assert_eq!(world.send(without).error, ErrorCode::FencedMemberEpoch);
    let ahead = ConsumerHeartbeat { member_epoch: 9, ..client.full() };
    assert_eq!(world.send(ahead).error, ErrorCode::FencedMemberEpoch);
    // Fenced, it begins anew under its id.
    let again =
        ConsumerHeartbeat { member_epoch: 0, owned: Some(Partitions::new()), ..client.full() };
    let reply = world.send(again);
    assert_eq!((reply.error, reply.member_epoch), (ErrorCode::None, 2));
    assert!(reply.assignment.is_some());
}

#[test]
fn unknown_groups_and_members_are_named() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.epoch = 3;
    assert_eq!(world.send(client.full()).error, ErrorCode::GroupIdNotFound);
    assert_eq!(world.send(client.leaving(-1)).error, ErrorCode::GroupIdNotFound);
    let mut other = Client::new("b", &["orders"]);
    other.beat(&mut world);
    assert_eq!(world.send(client.full()).error, ErrorCode::UnknownMemberId);
    assert_eq!(world.send(client.leaving(-1)).error, ErrorCode::UnknownMemberId);
}

#[test]
fn requests_without_sense_are_refused() {
    let mut world = world();
    let join = Client::new("a", &["orders"]).full();
    let with = |change: &dyn Fn(&mut ConsumerHeartbeat)| {
        let mut request = join.clone();
        change(&mut request);
        request
    };
    let invalid = [
        with(&|it| it.member_id.clear()),
        with(&|it| it.group_id.clear()),
        with(&|it| it.instance_id = Some(String::new())),
        with(&|it| it.rack_id = Some(" ".to_owned())),
        with(&|it| it.rebalance_timeout_ms = -1),
        with(&|it| it.owned = None),
        with(&|it| it.topics = None),
        with(&|it| it.member_epoch = -2),
        with(&|it| it.member_epoch = -3),
    ];
    for request in invalid {
        let reply = world.send(request.clone());
        assert_eq!(reply.error, ErrorCode::InvalidRequest, "{request:?}");
    }
    let assignor = with(&|it| it.assignor = Some("sticky".to_owned()));
    assert_eq!(world.send(assignor).error, ErrorCode::UnsupportedAssignor);
    let regex = with(&|it| it.regex = Some("(".to_owned()));
    assert_eq!(world.send(regex).error, ErrorCode::InvalidRegularExpression);
    let long = with(&|it| it.topics = Some(vec!["x".repeat(2_000_000)]));
    assert_eq!(world.send(long).error, ErrorCode::PolicyViolation);
    assert_eq!(world.groups.list().count(), 0);
    assert_eq!(world.records, []);
}

#[test]
fn the_broker_makes_ids_for_clients_of_version_0() {
    let mut world = world();
    let mut request = Client::new("", &["orders"]).full();
    let one = world.send_as(request.clone(), false);
    assert_eq!(one.error, ErrorCode::None);
    let two = world.send_as(request.clone(), false);
    assert!(!one.member_id.is_empty() && one.member_id != two.member_id);
    request.member_epoch = 1;
    assert_eq!(world.send_as(request, false).error, ErrorCode::InvalidRequest);
}

#[test]
fn a_full_group_takes_no_more_members() {
    let consumer = ConsumerConfig { group_size_max: 1, ..ConsumerConfig::default() };
    let mut world = World::with(Config { consumer, ..Config::default() });
    world.topics.put("orders", 4);
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    let other = Client::new("b", &["orders"]);
    assert_eq!(world.send(other.full()).error, ErrorCode::GroupMaxSizeReached);
    assert_eq!(client.beat(&mut world).error, ErrorCode::None);
}

#[test]
fn a_static_member_comes_back_to_what_it_had() {
    let mut world = world();
    let mut first = Client::new("a", &["orders"]);
    first.instance_id = Some("instance".to_owned());
    let mut clients = vec![first, Client::new("b", &["orders"])];
    for client in &mut clients {
        client.beat(&mut world);
    }
    settle(&mut world, &mut clients);
    let epoch = clients[0].epoch;
    let mut back = Client { id: "c".to_owned(), epoch: 0, ..clients[0].clone() };
    back.owned.clear();
    assert_eq!(world.send(back.full()).error, ErrorCode::UnreleasedInstanceId);
    let left = world.send(clients[0].leaving(-2));
    assert_eq!((left.error, left.member_epoch), (ErrorCode::None, -2));
    world.restart(false);
    assert_eq!(back.beat(&mut world).error, ErrorCode::None);
    // Nothing moved: the epoch of the group is the same.
    assert_eq!((back.epoch, &back.owned), (epoch, &clients[0].owned));
    assert_eq!(world.send(clients[0].full()).error, ErrorCode::FencedInstanceId);
    assert_eq!(world.state(), GroupState::Stable);
}

#[test]
fn a_static_member_that_stays_away_is_put_out() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.instance_id = Some("instance".to_owned());
    client.beat(&mut world);
    world.send(client.leaving(-2));
    world.pass(SESSION_MS);
    assert_eq!(world.state(), GroupState::Empty);
    client.epoch = 0;
    client.owned.clear();
    assert_eq!(client.beat(&mut world).error, ErrorCode::None);
    assert_eq!(client.count(), 4);
}

#[test]
fn topics_that_come_grow_and_go_change_the_target() {
    let mut world = world();
    let mut clients = vec![Client::new("a", &["orders", "refunds"])];
    clients[0].beat(&mut world);
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 4);
    world.topics.put("refunds", 2);
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 6);
    world.topics.put("orders", 7);
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 9);
    world.topics.remove("orders");
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 2);
    let epoch = clients[0].epoch;
    // Topics of others do not matter.
    world.topics.put("parcels", 2);
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].epoch, epoch);
}

#[test]
fn a_regular_expression_follows_the_topics_that_the_member_may_describe() {
    let mut world = world();
    world.topics.put("orders-old", 2);
    world.topics.put("secret-orders", 3);
    world.topics.hide("orders-hidden");
    let mut clients = vec![Client::new("a", &[])];
    clients[0].regex = Some("orders.*".to_owned());
    clients[0].beat(&mut world);
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 6);
    world.topics.put("orders-new", 5);
    world.topics.put("orders-hidden", 5);
    world.pass(10_000);
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 11);
    // A restart looks for the topics again, and moves nothing.
    let epoch = clients[0].epoch;
    world.restart(true);
    settle(&mut world, &mut clients);
    assert_eq!((clients[0].count(), clients[0].epoch), (11, epoch));
    // The empty expression takes it back.
    clients[0].regex = Some(String::new());
    settle(&mut world, &mut clients);
    assert_eq!(clients[0].count(), 0);
}

#[test]
fn the_assignor_that_most_members_ask_for_is_taken() {
    let mut world = world();
    world.topics.put("refunds", 4);
    let mut clients: Vec<_> = ["a", "b"].map(|id| Client::new(id, &["orders", "refunds"])).into();
    for client in &mut clients {
        client.beat(&mut world);
    }
    let asked = ConsumerHeartbeat { assignor: Some("range".to_owned()), ..clients[0].brief() };
    assert_eq!(world.send(asked).error, ErrorCode::None);
    settle(&mut world, &mut clients);
    let group = world.groups.describe_consumer(GROUP).expect("the group is there");
    assert_eq!(group.assignor, "range");
    assert!(clients[0].owned.values().all(|held| *held == [0, 1].into()));
}

#[test]
fn a_restart_keeps_members_targets_and_what_is_to_be_given_up() {
    for from_snapshot in [false, true] {
        let mut world = world();
        let mut first = Client::new("a", &["orders"]);
        first.beat(&mut world);
        world.pass(INTERVAL_MS);
        let mut second = Client::new("b", &["orders"]);
        second.beat(&mut world);
        world.send(first.brief());
        let before = world.groups.describe_consumer(GROUP);
        world.restart(from_snapshot);
        assert_eq!(world.groups.describe_consumer(GROUP), before);
        assert_eq!(second.beat(&mut world).error, ErrorCode::None);
        assert_eq!(second.count(), 0);
        let mut clients = [first, second];
        settle(&mut world, &mut clients);
        assert_eq!(clients.map(|client| client.count()), [2, 2]);
    }
}

#[test]
fn a_group_without_members_changes_its_protocol_and_keeps_its_offsets() {
    let mut world = world();
    assert_eq!(world.commit("", -1, ("orders", 1), 17), ErrorCode::None);
    let group_type = |world: &World| world.groups.list().map(|it| it.group_type).next();
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    let mut client = Client::new("a", &["orders"]);
    assert_eq!(client.beat(&mut world).error, ErrorCode::None);
    assert_eq!(group_type(&world), Some(GroupType::Consumer));
    assert_eq!(world.committed("orders", 1), 17);
    let join = crate::world::join_request("");
    let join = moldau_coordinator::JoinRequest { group_id: GROUP.to_owned(), ..join };
    assert_eq!(world.send(client.leaving(-1)).error, ErrorCode::None);
    let taken = world.groups.join(world.now_ms, join, &world.topics, Token(4));
    world.records.extend(taken.records);
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    world.restart(false);
    assert_eq!(group_type(&world), Some(GroupType::Classic));
    assert_eq!(world.committed("orders", 1), 17);
}

#[test]
fn a_group_may_have_settings_of_its_own() {
    let mut world = world();
    let overrides = [
        ("consumer.session.timeout.ms".to_owned(), "60000".to_owned()),
        ("consumer.heartbeat.interval.ms".to_owned(), "7000".to_owned()),
    ];
    let record = world.groups.configure(GROUP, overrides.into()).expect("there is room");
    world.records.push(record);
    world.restart(true);
    let mut client = Client::new("a", &["orders"]);
    assert_eq!(client.beat(&mut world).heartbeat_interval_ms, 7_000);
    world.pass(59_999);
    assert_eq!(client.beat(&mut world).error, ErrorCode::None);
    world.pass(60_000);
    assert_eq!(client.beat(&mut world).error, ErrorCode::UnknownMemberId);
    let record = world.groups.configure(GROUP, [].into()).expect("there is room");
    world.records.push(record);
    world.restart(false);
    client.epoch = 0;
    client.owned.clear();
    let defaults: GroupSettings = world.config.consumer.settings;
    assert_eq!(client.beat(&mut world).heartbeat_interval_ms, defaults.heartbeat_interval_ms);
}

#[test]
fn a_refused_member_leaves_a_classic_group_as_it_was() {
    let mut world = world();
    assert_eq!(world.commit("", -1, ("orders", 1), 17), ErrorCode::None);
    let records = world.records.len();
    let mut client = Client::new("a", &[]);
    client.regex = Some("[".to_owned());
    assert_eq!(client.beat(&mut world).error, ErrorCode::InvalidRegularExpression);
    assert_eq!(world.groups.list().map(|it| it.group_type).next(), Some(GroupType::Classic));
    assert_eq!(world.records.len(), records);
}
