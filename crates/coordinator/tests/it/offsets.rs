//! Committing, fetching, deleting and expiring offsets.

use moldau_coordinator::{
    Config, Effects, GroupRecord, Groups, JoinRequest, OffsetCommitRequest, OffsetDeleteRequest,
    PartitionCommit, Reply, TopicResult,
};
use moldau_protocol::ErrorCode;

use crate::world::{GROUP, World, commit_request, join_request};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn delete(world: &mut World, topic: &str) -> Result<Vec<TopicResult>, ErrorCode> {
    let token = world.token();
    let topics = vec![(topic.to_owned(), vec![0, 1])];
    let request = OffsetDeleteRequest { group_id: GROUP.to_owned(), topics };
    let effects = world.groups.offset_delete(world.now_ms, &request, token);
    world.take(effects);
    match world.reply(token) {
        Some(Reply::OffsetDelete(result)) => result,
        other => panic!("no delete reply but {other:?}"),
    }
}

fn delete_group(world: &mut World) -> ErrorCode {
    let token = world.token();
    let effects = world.groups.delete_groups(&[GROUP.to_owned()], token);
    world.take(effects);
    match world.reply(token) {
        Some(Reply::DeleteGroups(results)) => results[0].1,
        other => panic!("no delete reply but {other:?}"),
    }
}

fn errors(results: &[TopicResult]) -> Vec<ErrorCode> {
    results.iter().flat_map(|topic| topic.partitions.iter().map(|(_, error)| *error)).collect()
}

#[test]
fn a_simple_consumer_commits_and_fetches() {
    let mut world = World::new();
    assert_eq!(world.commit(&commit_request("", -1, "sales", 42)), ErrorCode::None);
    let all = world.groups.offset_fetch(GROUP, None);
    let [(topic, partitions)] = all.as_slice() else { panic!("one topic, not {all:?}") };
    let fetched = &partitions[0];
    assert_eq!((topic.as_str(), fetched.partition, fetched.offset), ("sales", 0, 42));
    assert_eq!((fetched.leader_epoch, fetched.metadata.as_str()), (4, "note"));
    assert_eq!(world.committed("sales", 0), 42);
    assert_eq!(world.committed("sales", 1), -1);
    assert_eq!(world.groups.describe(GROUP).expect("it exists").protocol_type, "");
    assert_eq!(world.groups.offset_fetch("other", None), []);
    let asked = [("sales".to_owned(), vec![3])];
    assert_eq!(world.groups.offset_fetch("other", Some(&asked))[0].1[0].offset, -1);
}

#[test]
fn a_member_commits_in_its_own_generation_only() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let mut commit =
        |id: &str, generation| world.commit(&commit_request(id, generation, "sales", 1));
    assert_eq!(commit(&ids[0], generation), ErrorCode::None);
    assert_eq!(commit(&ids[0], generation - 1), ErrorCode::IllegalGeneration);
    assert_eq!(commit(&ids[0], -1), ErrorCode::IllegalGeneration);
    assert_eq!(commit("who", generation), ErrorCode::UnknownMemberId);
    assert_eq!(commit("", -1), ErrorCode::UnknownMemberId, "the group has members");
    let elsewhere = OffsetCommitRequest {
        group_id: "other".to_owned(),
        ..commit_request(&ids[0], generation, "sales", 1)
    };
    assert_eq!(world.commit(&elsewhere), ErrorCode::IllegalGeneration);
}

#[test]
fn a_member_may_commit_while_it_is_asked_to_rejoin_but_not_before_it_synced() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let token = world.join(join_request(&ids[0]));
    let commit = commit_request(&ids[1], generation, "sales", 9);
    assert_eq!(world.commit(&commit), ErrorCode::None, "a last commit before it rejoins");
    world.join(join_request(&ids[1]));
    let generation = world.joined(token).generation;
    let commit = commit_request(&ids[1], generation, "sales", 10);
    assert_eq!(world.commit(&commit), ErrorCode::RebalanceInProgress);
    assert_eq!(world.committed("sales", 0), 9);
}

#[test]
fn a_commit_counts_as_a_heartbeat() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    for offset in 0..5 {
        world.pass(9_000);
        let commit = commit_request(&ids[0], generation, "sales", offset);
        assert_eq!(world.commit(&commit), ErrorCode::None);
    }
}

#[test]
fn text_beyond_the_limit_is_refused_for_its_partition_alone() {
    let mut world = World::new();
    let mut request = commit_request("", -1, "sales", 5);
    let mut long = request.topics[0].partitions[0].clone();
    long.partition = 1;
    long.metadata = "x".repeat(4_097);
    let mut longest = long.clone();
    longest.partition = 2;
    longest.metadata = "\u{fc}".repeat(4_096);
    request.topics[0].partitions.extend([long, longest]);
    let token = world.token();
    let effects = world.groups.offset_commit(0, &request, token);
    let [(_, Reply::OffsetCommit(results))] = effects.replies.as_slice() else {
        panic!("one reply, not {:?}", effects.replies);
    };
    let expected = [ErrorCode::None, ErrorCode::OffsetMetadataTooLarge, ErrorCode::None];
    assert_eq!(errors(results), expected);
    let [GroupRecord::OffsetsCommitted { topics, .. }] = effects.records.as_slice() else {
        panic!("one record, not {:?}", effects.records);
    };
    assert_eq!(topics[0].partitions.len(), 2, "what was refused is not written");
}

#[test]
fn offsets_of_subscribed_topics_are_not_deleted() {
    let mut world = World::new();
    assert_eq!(delete(&mut world, "sales"), Err(ErrorCode::GroupIdNotFound));
    let (ids, generation) = world.stable(1);
    world.commit(&commit_request(&ids[0], generation, "sales", 1));
    world.commit(&commit_request(&ids[0], generation, "returns", 1));
    let refused = delete(&mut world, "sales").expect("the group may delete others");
    assert_eq!(errors(&refused), [ErrorCode::GroupSubscribedToTopic; 2]);
    let deleted = delete(&mut world, "returns").expect("the group may delete others");
    assert_eq!(errors(&deleted), [ErrorCode::None; 2]);
    assert_eq!((world.committed("sales", 0), world.committed("returns", 0)), (1, -1));
    let expected = GroupRecord::OffsetsDeleted {
        group_id: GROUP.to_owned(),
        topics: vec![("returns".to_owned(), vec![0])],
    };
    assert_eq!(world.records.last(), Some(&expected));
    world.leave(&[(&ids[0], None)]);
    delete(&mut world, "sales").expect("an empty group has no subscriptions");
    assert_eq!(world.committed("sales", 0), -1);
}

#[test]
fn an_unreadable_subscription_counts_as_one_of_every_topic() {
    let mut world = World::new();
    let mut request = join_request("");
    request.protocols[0].metadata = "?".into();
    world.stable_of(vec![request]);
    let refused = delete(&mut world, "anything").expect("an answer for each partition");
    assert_eq!(errors(&refused), [ErrorCode::GroupSubscribedToTopic; 2]);
}

#[test]
fn an_active_group_of_another_type_keeps_its_offsets() {
    let mut world = World::new();
    let request = JoinRequest { protocol_type: "connect".to_owned(), ..join_request("") };
    let token = world.join(request);
    world.pass(6_000);
    assert_eq!(world.joined(token).error, ErrorCode::None);
    assert_eq!(delete(&mut world, "sales"), Err(ErrorCode::NonEmptyGroup));
}

#[test]
fn only_empty_groups_are_deleted_and_their_offsets_with_them() {
    let mut world = World::new();
    assert_eq!(delete_group(&mut world), ErrorCode::GroupIdNotFound);
    let (ids, generation) = world.stable(1);
    world.commit(&commit_request(&ids[0], generation, "sales", 1));
    assert_eq!(delete_group(&mut world), ErrorCode::NonEmptyGroup);
    world.leave(&[(&ids[0], None)]);
    assert_eq!(delete_group(&mut world), ErrorCode::None);
    assert_eq!(world.committed("sales", 0), -1);
    assert_eq!(world.groups.list().count(), 0);
    let expected = GroupRecord::GroupDeleted { group_id: GROUP.to_owned() };
    assert_eq!(world.records.last(), Some(&expected));
}

#[test]
fn the_offsets_of_a_deleted_topic_go_from_every_group() {
    let mut world = World::new();
    world.commit(&commit_request("", -1, "sales", 1));
    world.commit(&commit_request("", -1, "returns", 2));
    let elsewhere =
        OffsetCommitRequest { group_id: "other".to_owned(), ..commit_request("", -1, "sales", 3) };
    world.commit(&elsewhere);
    world.groups.topic_deleted("sales");
    assert_eq!((world.committed("sales", 0), world.committed("returns", 0)), (-1, 2));
    assert_eq!(world.groups.offset_fetch("other", None), []);
    let left: Vec<_> = world.groups.list().map(|group| group.group_id).collect();
    assert_eq!(left, [GROUP], "a group without offsets goes");
}

#[test]
fn offsets_of_simple_consumers_expire_after_their_commit() {
    let mut world = World::new();
    world.commit(&commit_request("", -1, "sales", 1));
    world.pass(6 * DAY_MS);
    world.commit(&commit_request("", -1, "returns", 2));
    world.pass(DAY_MS);
    assert_eq!((world.committed("sales", 0), world.committed("returns", 0)), (-1, 2));
    world.pass(7 * DAY_MS);
    assert_eq!(world.groups.list().count(), 0, "a group without offsets goes");
    let mut next = Groups::new(Config::default(), 8, world.now_ms);
    world.records.into_iter().for_each(|record| next.replay(record));
    assert_eq!(next.recovered(world.now_ms), Effects::default());
    assert_eq!(next.list().count(), 0, "nor does a restart bring it back");
}

#[test]
fn a_client_may_name_a_retention_of_its_own() {
    let mut world = World::new();
    let request =
        OffsetCommitRequest { retention_ms: Some(DAY_MS), ..commit_request("", -1, "sales", 1) };
    world.commit(&request);
    world.pass(DAY_MS - 1);
    assert_eq!(world.committed("sales", 0), 1);
    world.pass(Config::default().offsets_retention_check_interval_ms);
    assert_eq!(world.committed("sales", 0), -1);
}

#[test]
fn offsets_of_a_group_expire_after_its_last_member_left() {
    let mut world = World::new();
    let request = JoinRequest { session_timeout_ms: 1_800_000, ..join_request("") };
    let (ids, generation) = world.stable_of(vec![request]);
    world.commit(&commit_request(&ids[0], generation, "sales", 1));
    world.commit(&commit_request(&ids[0], generation, "returns", 1));
    for _ in 0..8 * 72 {
        world.pass(DAY_MS / 72);
        world.heartbeat(&ids[0], generation);
    }
    assert_eq!(world.committed("sales", 0), 1, "a topic that is read keeps its offsets");
    assert_eq!(world.committed("returns", 0), -1, "a topic that nobody reads does not");
    world.leave(&[(&ids[0], None)]);
    world.pass(6 * DAY_MS);
    assert_eq!(world.committed("sales", 0), 1);
    world.pass(DAY_MS + 600_000);
    assert_eq!(world.committed("sales", 0), -1);
    let expected = GroupRecord::GroupDeleted { group_id: GROUP.to_owned() };
    assert_eq!(world.records.last(), Some(&expected));
}

/// The record of such a commit could never be written, and every group waited for it.
#[test]
fn a_commit_too_large_for_a_record_is_refused_and_changes_nothing() {
    let mut world = World::with(Config { record_bytes_max: 2_000, ..Config::default() });
    assert_eq!(world.commit(&commit_request("", -1, "sales", 1)), ErrorCode::None);
    let mut request = commit_request("", -1, "sales", 5);
    let first = request.topics[0].partitions[0].clone();
    let partition = |partition| PartitionCommit { partition, ..first.clone() };
    request.topics[0].partitions = (0..100).map(partition).collect();
    request.topics[0].partitions[1].metadata = "x".repeat(4_097);
    let token = world.token();
    let effects = world.groups.offset_commit(0, &request, token);
    world.take(effects);
    let Some(Reply::OffsetCommit(results)) = world.reply(token) else { panic!("no reply") };
    let mut expected = vec![ErrorCode::InvalidCommitOffsetSize; 100];
    expected[1] = ErrorCode::OffsetMetadataTooLarge;
    assert_eq!(errors(&results), expected);
    assert_eq!((world.committed("sales", 0), world.committed("sales", 99)), (1, -1));
    assert_eq!(world.records.len(), 1);
    assert_eq!(world.commit(&commit_request("", -1, "sales", 6)), ErrorCode::None);
}

/// Such a record was left out of the journal, and a restart brought the offsets back.
#[test]
fn a_deletion_too_large_for_a_record_takes_several() {
    let mut world = World::with(Config { record_bytes_max: 2_000, ..Config::default() });
    let topics: Vec<(String, Vec<i32>)> =
        (0..30).map(|topic| (format!("topic-{topic}"), (0..40).collect())).collect();
    for (topic, partitions) in &topics {
        let mut request = commit_request("", -1, topic, 5);
        let first = request.topics[0].partitions[0].clone();
        let partition =
            |partition: &i32| PartitionCommit { partition: *partition, ..first.clone() };
        request.topics[0].partitions = partitions.iter().map(partition).collect();
        assert_eq!(world.commit(&request), ErrorCode::None);
    }
    let token = world.token();
    let request = OffsetDeleteRequest { group_id: GROUP.to_owned(), topics: topics.clone() };
    let effects = world.groups.offset_delete(0, &request, token);
    let (mut deleted, mut bytes) = (Vec::new(), Vec::new());
    assert!(effects.records.len() > 1, "{} records", effects.records.len());
    for record in effects.records {
        bytes.clear();
        record.encode(&mut bytes);
        assert!(bytes.len() <= 2_000, "{} bytes", bytes.len());
        let GroupRecord::OffsetsDeleted { topics, .. } = record else { panic!("{record:?}") };
        deleted.extend(topics.into_iter().flat_map(|(topic, partitions)| {
            partitions.into_iter().map(move |partition| (topic.clone(), partition))
        }));
    }
    let all = topics.into_iter().flat_map(|(topic, partitions)| {
        partitions.into_iter().map(move |partition| (topic.clone(), partition))
    });
    assert_eq!(deleted, all.collect::<Vec<_>>());
}

#[test]
fn of_a_partition_that_a_commit_names_again_the_last_offset_is_written() {
    let mut world = World::new();
    let mut request = commit_request("", -1, "sales", 5);
    let first = request.topics[0].partitions[0].clone();
    request.topics[0].partitions.push(PartitionCommit { offset: 6, ..first.clone() });
    request.topics.push(request.topics[0].clone());
    request.topics[1].partitions[1].offset = 7;
    assert_eq!(world.commit(&request), ErrorCode::None);
    assert_eq!(world.committed("sales", 0), 7);
    let [GroupRecord::OffsetsCommitted { topics, .. }] = world.records.as_slice() else {
        panic!("one record, not {:?}", world.records);
    };
    let offsets: Vec<_> = topics.iter().flat_map(|topic| &topic.partitions).collect();
    let [(0, committed)] = offsets.as_slice() else { panic!("one offset, not {offsets:?}") };
    assert_eq!(committed.offset, 7);
}
