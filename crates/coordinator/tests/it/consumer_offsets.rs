//! Offsets of groups of the consumer protocol: who may commit, fetch and delete them.

use moldau_coordinator::{OffsetDeleteRequest, Reply, Token};
use moldau_protocol::ErrorCode;

use crate::consumer_world::{Client, GROUP, INTERVAL_MS, World, settle};

fn world() -> World {
    let mut world = World::new();
    world.topics.put("orders", 4);
    world
}

#[test]
fn members_commit_in_their_epoch() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    assert_eq!(world.commit("a", 1, ("orders", 0), 5), ErrorCode::None);
    assert_eq!(world.commit("a", 2, ("orders", 0), 6), ErrorCode::StaleMemberEpoch);
    assert_eq!(world.commit("b", 1, ("orders", 0), 6), ErrorCode::UnknownMemberId);
    assert_eq!(world.commit("", -1, ("orders", 0), 6), ErrorCode::UnknownMemberId);
    assert_eq!(world.committed("orders", 0), 5);
    world.restart(true);
    assert_eq!(world.committed("orders", 0), 5);
}

/// A client learns its epoch by an answer that a commit on its way does not know yet.
#[test]
fn an_earlier_epoch_commits_what_it_had_then() {
    let mut world = world();
    let mut first = Client::new("a", &["orders"]);
    first.beat(&mut world);
    world.pass(INTERVAL_MS);
    let mut second = Client::new("b", &["orders"]);
    second.beat(&mut world);
    let told = world.send(first.brief());
    let gone = first.owned.clone();
    first.owned = told.assignment.expect("it has to give up two");
    // It holds what it is to give up until it says so, and may commit it.
    for partition in 0..4 {
        assert_eq!(world.commit("a", 1, ("orders", partition), 5), ErrorCode::None);
    }
    first.beat(&mut world);
    assert_eq!(first.epoch, 2);
    second.beat(&mut world);
    for (topic, partitions) in &gone {
        for partition in partitions {
            let keeps = first.owned[topic].contains(partition);
            let expected = if keeps { ErrorCode::None } else { ErrorCode::StaleMemberEpoch };
            assert_eq!(world.commit("a", 1, ("orders", *partition), 6), expected);
        }
    }
}

#[test]
fn fetches_of_members_say_their_epoch() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    let check = |member, epoch| world.groups.check_fetch(GROUP, member, epoch);
    assert_eq!(check(None, -1), Ok(()));
    assert_eq!(check(Some("a"), 1), Ok(()));
    assert_eq!(check(Some("a"), 0), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(check(Some("b"), 1), Err(ErrorCode::UnknownMemberId));
    assert_eq!(world.groups.check_fetch("other", Some("a"), 1), Ok(()));
}

#[test]
fn transactions_commit_for_members_alone() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    let check = |epoch, member: &str| {
        world.groups.check_transactional_commit(GROUP, epoch, (member, None), &[])
    };
    assert_eq!(check(1, "a"), Ok(()));
    assert_eq!(check(-1, ""), Ok(()));
    assert_eq!(check(2, "a"), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(check(1, "b"), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn offsets_of_subscribed_topics_stay() {
    let mut world = world();
    world.topics.put("refunds", 1);
    let mut client = Client::new("a", &["orders", "refunds"]);
    client.beat(&mut world);
    for topic in ["orders", "refunds"] {
        assert_eq!(world.commit("a", 1, (topic, 0), 5), ErrorCode::None);
    }
    client.topics.truncate(1);
    settle(&mut world, std::slice::from_mut(&mut client));
    let topics = ["orders", "refunds"].map(|topic| (topic.to_owned(), vec![0]));
    let request = OffsetDeleteRequest { group_id: GROUP.to_owned(), topics: topics.into() };
    let effects = world.groups.offset_delete(world.now_ms, &request, Token(9));
    let [(_, Reply::OffsetDelete(Ok(results)))] = &effects.replies[..] else { panic!() };
    let codes: Vec<_> = results.iter().map(|result| result.partitions[0].1).collect();
    assert_eq!(codes, [ErrorCode::GroupSubscribedToTopic, ErrorCode::None]);
    assert_eq!((world.committed("orders", 0), world.committed("refunds", 0)), (5, -1));
}

#[test]
fn offsets_expire_unless_members_read_their_topic() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    assert_eq!(world.commit("a", 1, ("orders", 0), 5), ErrorCode::None);
    let retention_ms = world.config.offsets_retention_ms;
    for _beat in 0..retention_ms / 40_000 + 100 {
        world.pass(40_000);
        assert_eq!(client.beat(&mut world).error, ErrorCode::None);
    }
    assert_eq!(world.committed("orders", 0), 5);
    world.send(client.leaving(-1));
    world.pass(world.config.offsets_retention_check_interval_ms);
    assert_eq!(world.committed("orders", 0), -1);
    // Neither members nor offsets: nothing is left of the group.
    assert_eq!(world.groups.list().count(), 0);
    world.restart(false);
    assert_eq!(world.groups.list().count(), 0);
}

#[test]
fn a_group_is_deleted_once_it_has_no_members() {
    let mut world = world();
    let mut client = Client::new("a", &["orders"]);
    client.beat(&mut world);
    assert_eq!(world.commit("a", 1, ("orders", 0), 5), ErrorCode::None);
    let delete = |world: &mut World| {
        let effects = world.groups.delete_groups(&[GROUP.to_owned()], Token(9));
        world.records.extend(effects.records);
        match &effects.replies[..] {
            [(_, Reply::DeleteGroups(results))] => results[0].1,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(delete(&mut world), ErrorCode::NonEmptyGroup);
    world.send(client.leaving(-1));
    assert_eq!(delete(&mut world), ErrorCode::None);
    world.restart(false);
    assert_eq!(world.groups.list().count(), 0);
    assert_eq!(world.committed("orders", 0), -1);
}
