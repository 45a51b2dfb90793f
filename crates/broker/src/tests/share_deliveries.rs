//! Deliveries of share groups over the handlers; the rules are tested in the coordinator.

use moldau_coordinator::{GroupState, ShareHeartbeat, TopicShape, Topics};
use moldau_protocol::messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use moldau_protocol::messages::delete_share_group_offsets_request as delete_request;
use moldau_protocol::messages::describe_share_group_offsets_request as describe_request;
use moldau_protocol::messages::share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
};
use moldau_protocol::messages::share_fetch_request::{
    AcknowledgementBatch as FetchedBatch, FetchPartition, FetchTopic,
};
use moldau_protocol::messages::share_fetch_response::PartitionData;
use moldau_protocol::messages::{
    AlterShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest, ShareAcknowledgeRequest, ShareFetchRequest,
    ShareFetchResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use super::versions::each;
use super::world::{NOW_MS, World, base_offsets, batch, code};

pub(super) const SHARERS: &str = "sharers";

pub(super) const ACCEPT: i8 = 1;
pub(super) const RELEASE: i8 = 2;
pub(super) const REJECT: i8 = 3;
const RENEW: i8 = 4;

/// Topics are not what deliveries are about.
struct NoTopics;

impl Topics for NoTopics {
    fn version(&self) -> u64 {
        0
    }

    fn by_name(&self, _: &str) -> Option<TopicShape> {
        None
    }

    fn matching(&self, _: &dyn Fn(&str) -> bool) -> Vec<String> {
        Vec::new()
    }
}

impl World {
    /// A member joins or leaves a share group whose records begin with the first.
    pub(super) fn share(&self, group: &str, member: &str, epoch: i32) {
        let configured = self.state.groups.configure(&self.state.storage, group, |overrides| {
            overrides.insert("share.auto.offset.reset".to_owned(), "earliest".to_owned());
            Ok(())
        });
        configured.unwrap();
        let heartbeat = ShareHeartbeat {
            group_id: group.to_owned(),
            member_id: member.to_owned(),
            member_epoch: epoch,
            rack_id: None,
            topics: (epoch == 0).then(|| vec!["orders".to_owned()]),
            client_id: String::new(),
            client_host: String::new(),
        };
        let reply = self.state.groups.submit(&self.state.storage, |groups, now, token| {
            groups.share_heartbeat(now, &heartbeat, &NoTopics, token)
        });
        self.wait(reply).unwrap();
    }
}

pub(super) fn fetch(
    member: &str,
    epoch: i32,
    topic_id: Uuid,
    partitions: &[i32],
) -> ShareFetchRequest {
    let partitions = partitions
        .iter()
        .map(|index| FetchPartition { partition_index: *index, ..FetchPartition::default() });
    ShareFetchRequest {
        group_id: Some(SHARERS.to_owned()),
        member_id: Some(member.to_owned()),
        share_session_epoch: epoch,
        min_bytes: 1,
        max_bytes: 1 << 20,
        max_records: 500,
        batch_size: 500,
        topics: vec![FetchTopic {
            topic_id,
            partitions: partitions.collect(),
            ..FetchTopic::default()
        }],
        ..ShareFetchRequest::default()
    }
}

pub(super) fn acknowledge(
    member: &str,
    epoch: i32,
    topic_id: Uuid,
    (first_offset, last_offset, kinds): (i64, i64, &[i8]),
) -> ShareAcknowledgeRequest {
    ShareAcknowledgeRequest {
        group_id: Some(SHARERS.to_owned()),
        member_id: Some(member.to_owned()),
        share_session_epoch: epoch,
        is_renew_ack: kinds.contains(&RENEW),
        topics: vec![AcknowledgeTopic {
            topic_id,
            partitions: vec![AcknowledgePartition {
                partition_index: 0,
                acknowledgement_batches: vec![AcknowledgementBatch {
                    first_offset,
                    last_offset,
                    acknowledge_types: kinds.to_vec(),
                    ..AcknowledgementBatch::default()
                }],
                ..AcknowledgePartition::default()
            }],
            ..AcknowledgeTopic::default()
        }],
        ..ShareAcknowledgeRequest::default()
    }
}

pub(super) fn acknowledged(world: &World, request: &ShareAcknowledgeRequest) -> ErrorCode {
    let response = world.ask(request);
    match code(response.error_code) {
        ErrorCode::None => code(response.responses[0].partitions[0].error_code),
        refused => refused,
    }
}

pub(super) fn only(response: &ShareFetchResponse) -> &PartitionData {
    assert_eq!(code(response.error_code), ErrorCode::None);
    assert_eq!(response.responses.len(), 1);
    assert_eq!(response.responses[0].partitions.len(), 1);
    &response.responses[0].partitions[0]
}

/// First and last offsets of what a member got, with the number of the delivery.
pub(super) fn acquired(response: &ShareFetchResponse) -> Vec<(i64, i64, i16)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let ranges = partitions.flat_map(|partition| &partition.acquired_records);
    ranges.map(|range| (range.first_offset, range.last_offset, range.delivery_count)).collect()
}

pub(super) fn offsets(world: &World, group: &str) -> Vec<(String, i32, i64, i64)> {
    let group = describe_request::DescribeShareGroupOffsetsRequestGroup {
        group_id: group.to_owned(),
        ..Default::default()
    };
    let group = describe_request::DescribeShareGroupOffsetsRequestGroup { topics: None, ..group };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
    let group = world.ask(&request).groups.remove(0);
    assert_eq!(code(group.error_code), ErrorCode::None);
    let rows = group.topics.into_iter().flat_map(|topic| {
        let name = topic.topic_name;
        topic.partitions.into_iter().map(move |it| {
            assert_eq!(code(it.error_code), ErrorCode::None);
            (name.clone(), it.partition_index, it.start_offset, it.lag)
        })
    });
    rows.collect()
}

fn alter(
    group: &str,
    topic: &str,
    partition_index: i32,
    start_offset: i64,
) -> AlterShareGroupOffsetsRequest {
    AlterShareGroupOffsetsRequest {
        group_id: group.to_owned(),
        topics: vec![AlterShareGroupOffsetsRequestTopic {
            topic_name: topic.to_owned(),
            partitions: vec![AlterShareGroupOffsetsRequestPartition {
                partition_index,
                start_offset,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..AlterShareGroupOffsetsRequest::default()
    }
}

fn delete(group: &str, topic: &str) -> DeleteShareGroupOffsetsRequest {
    DeleteShareGroupOffsetsRequest {
        group_id: group.to_owned(),
        topics: vec![delete_request::DeleteShareGroupOffsetsRequestTopic {
            topic_name: topic.to_owned(),
            ..Default::default()
        }],
        ..DeleteShareGroupOffsetsRequest::default()
    }
}

/// Every version with what it can say.
pub(super) fn ask_about_share_deliveries(world: &World, orders: Uuid) {
    world.share(SHARERS, "a", 0);
    for (version, answer) in each(world, |_| fetch("a", 0, orders, &[0, 1])) {
        assert_eq!(code(answer.error_code), ErrorCode::None, "{version}");
    }
    for (version, answer) in
        each(world, |version| acknowledge("a", i32::from(version), orders, (0, 0, &[ACCEPT])))
    {
        assert_eq!(code(answer.error_code), ErrorCode::None, "{version}");
    }
    let group = describe_request::DescribeShareGroupOffsetsRequestGroup {
        group_id: SHARERS.to_owned(),
        topics: Some(Vec::new()),
        ..Default::default()
    };
    each(world, |_| DescribeShareGroupOffsetsRequest {
        groups: vec![group.clone()],
        ..Default::default()
    });
    each(world, |_| alter(SHARERS, "orders", 0, 0));
    each(world, |_| delete(SHARERS, "orders"));
}

#[test]
fn what_is_accepted_never_comes_again_and_the_rest_does() {
    let world = World::new();
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b", "c"]));
    world.append("orders", 0, batch(NOW_MS, &["d"]));
    world.share(SHARERS, "a", 0);
    let got = world.ask(&fetch("a", 0, orders, &[0]));
    assert_eq!(acquired(&got), [(0, 3, 1)]);
    assert_eq!(got.acquisition_lock_timeout_ms, 30_000);
    assert_eq!(base_offsets(Some(&only(&got).records)), [0, 3]);
    let kinds = &[ACCEPT, REJECT, RELEASE];
    assert_eq!(acknowledged(&world, &acknowledge("a", 1, orders, (0, 2, kinds))), ErrorCode::None);
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 2, 2)]);

    let world = world.restarted();
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 2, 2)]);
    world.state.checkpoint().expect("a checkpoint");
    let world = world.restarted();
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 2, 2)]);
    let again = world.ask(&fetch("b", 0, orders, &[0]));
    assert_eq!(acquired(&again), [(2, 2, 2), (3, 3, 1)]);
    assert_eq!(base_offsets(Some(&only(&again).records)), [0, 3]);
}

#[test]
fn members_hold_different_records_and_only_their_own() {
    let world = World::new();
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b", "c", "d"]));
    world.share(SHARERS, "a", 0);
    let some = |member| ShareFetchRequest {
        share_acquire_mode: 1,
        max_records: 2,
        ..fetch(member, 0, orders, &[0])
    };
    assert_eq!(acquired(&world.ask(&some("a"))), [(0, 1, 1)]);
    assert_eq!(acquired(&world.ask(&some("b"))), [(2, 3, 1)]);
    assert_eq!(acquired(&world.ask(&some("c"))), []);
    let of_other = acknowledge("a", 1, orders, (1, 2, &[ACCEPT]));
    assert_eq!(acknowledged(&world, &of_other), ErrorCode::InvalidRecordState);
    let unknown = acknowledge("a", 2, orders, (1, 4, &[ACCEPT]));
    assert_eq!(acknowledged(&world, &unknown), ErrorCode::InvalidRequest);
    let renewed = acknowledge("a", 3, orders, (0, 1, &[RENEW]));
    assert_eq!(acknowledged(&world, &renewed), ErrorCode::None);
    // The end of the session gives back what is left, and its delivery counts.
    let last = acknowledge("a", -1, orders, (0, 0, &[ACCEPT]));
    assert_eq!(acknowledged(&world, &last), ErrorCode::None);
    assert_eq!(acquired(&world.ask(&some("c"))), [(1, 1, 2)]);
}

#[test]
fn a_waiting_member_gets_what_another_releases() {
    let world = World::new();
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b"]));
    world.share(SHARERS, "a", 0);
    assert_eq!(acquired(&world.ask(&fetch("a", 0, orders, &[0]))), [(0, 1, 1)]);
    let waits = ShareFetchRequest { max_wait_ms: 60_000, ..fetch("b", 0, orders, &[0]) };
    let mut pending = world.begin::<ShareFetchRequest>(2, &waits);
    assert!(!world.poll(&mut pending));
    let mut release = fetch("a", 1, orders, &[0]);
    release.topics[0].partitions[0].acknowledgement_batches = vec![FetchedBatch {
        first_offset: 1,
        last_offset: 1,
        acknowledge_types: vec![RELEASE],
        ..FetchedBatch::default()
    }];
    // Who acknowledges and fetches at once may get its own record back.
    release.max_records = 0;
    let released = world.ask(&release);
    assert_eq!(code(only(&released).acknowledge_error_code), ErrorCode::None);
    assert_eq!(acquired(&world.finish::<ShareFetchRequest>(pending)), [(1, 1, 2)]);
}

#[test]
fn a_waiting_member_gets_new_records() {
    let world = World::new();
    let orders = world.create("orders", 1);
    world.share(SHARERS, "a", 0);
    let waits = ShareFetchRequest { max_wait_ms: 60_000, ..fetch("a", 0, orders, &[0]) };
    let mut pending = world.begin::<ShareFetchRequest>(2, &waits);
    assert!(!world.poll(&mut pending));
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(acquired(&world.finish::<ShareFetchRequest>(pending)), [(0, 0, 1)]);
}

#[test]
fn wrong_requests_get_kafkas_codes() {
    let world = World::new();
    let orders = world.create("orders", 1);
    let refused = |request: &ShareFetchRequest| code(world.ask(request).error_code);
    let sound = fetch("a", 0, orders, &[0]);
    assert_eq!(code(only(&world.ask(&sound)).error_code), ErrorCode::GroupIdNotFound);
    world.share(SHARERS, "a", 0);
    let nobody = ShareFetchRequest { group_id: None, ..sound.clone() };
    assert_eq!(refused(&nobody), ErrorCode::InvalidRequest);
    let long = fetch(&"m".repeat(37), 0, orders, &[0]);
    assert_eq!(refused(&long), ErrorCode::InvalidRequest);
    let mode = ShareFetchRequest { share_acquire_mode: 7, ..sound.clone() };
    assert_eq!(refused(&mode), ErrorCode::InvalidRequest);
    let renewing = ShareFetchRequest { is_renew_ack: true, ..sound.clone() };
    assert_eq!(refused(&renewing), ErrorCode::InvalidRequest);
    assert_eq!(refused(&fetch("b", 1, orders, &[0])), ErrorCode::ShareSessionNotFound);
    assert_eq!(refused(&sound), ErrorCode::None);
    assert_eq!(refused(&fetch("a", 2, orders, &[0])), ErrorCode::InvalidShareSessionEpoch);
    let unknown = world.ask(&fetch("a", 0, Uuid::from_bytes([9; 16]), &[0]));
    assert_eq!(code(only(&unknown).error_code), ErrorCode::UnknownTopicId);
    let beyond = world.ask(&fetch("a", 0, orders, &[5]));
    assert_eq!(code(only(&beyond).error_code), ErrorCode::UnknownTopicOrPartition);
    let initial = acknowledge("a", 0, orders, (0, 0, &[ACCEPT]));
    assert_eq!(acknowledged(&world, &initial), ErrorCode::InvalidShareSessionEpoch);
    for kinds in [&[5][..], &[], &[ACCEPT, ACCEPT]] {
        world.ask(&fetch("a", 0, orders, &[0]));
        let wrong = acknowledge("a", 1, orders, (0, 0, kinds));
        assert_eq!(acknowledged(&world, &wrong), ErrorCode::InvalidRequest, "{kinds:?}");
    }
}

#[test]
fn deleted_records_are_skipped() {
    let world = World::new();
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b"]));
    world.append("orders", 0, batch(NOW_MS, &["c"]));
    world.share(SHARERS, "a", 0);
    world.ask(&fetch("a", 0, orders, &[]));
    let log = world.state.catalog.by_name("orders").unwrap().logs.find(0).unwrap();
    let trimmed = log.of_journal().unwrap().delete_records(2).unwrap();
    world.wait(world.state.storage.wait_durable(trimmed.lsn)).unwrap();
    assert_eq!(acquired(&world.ask(&fetch("a", 0, orders, &[0]))), [(2, 2, 1)]);
}

#[test]
fn offsets_of_a_group_without_members_are_altered_and_deleted() {
    let world = World::new();
    let orders = world.create("orders", 2);
    world.append("orders", 0, batch(NOW_MS, &["a", "b", "c"]));
    world.share(SHARERS, "a", 0);
    world.ask(&fetch("a", 0, orders, &[0]));
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, -1, -1)]);
    let altered = |group: &str, topic: &str, index, offset| {
        let response = world.ask(&alter(group, topic, index, offset));
        match code(response.error_code) {
            ErrorCode::None => code(response.responses[0].partitions[0].error_code),
            refused => refused,
        }
    };
    assert_eq!(altered(SHARERS, "orders", 0, 1), ErrorCode::NonEmptyGroup);
    world.share(SHARERS, "a", -1);
    assert_eq!(altered(SHARERS, "orders", 0, 1), ErrorCode::None);
    assert_eq!(altered(SHARERS, "orders", 2, 1), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(altered(SHARERS, "absent", 0, 1), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 1, 2)]);
    let deleted = |topic: &str| {
        let response = world.ask(&delete(SHARERS, topic));
        code(response.responses[0].error_code)
    };
    assert_eq!(deleted("absent"), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(deleted("orders"), ErrorCode::None);
    assert_eq!(deleted("orders"), ErrorCode::UnknownTopicOrPartition);
    let world = world.restarted();
    assert_eq!(offsets(&world, SHARERS), []);
}

#[test]
fn an_alteration_makes_the_group() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b", "c"]));
    let refused = world.ask(&alter("others", "absent", 0, 1));
    assert_eq!(
        code(refused.responses[0].partitions[0].error_code),
        ErrorCode::UnknownTopicOrPartition
    );
    let state = |world: &World| world.state.groups.view(|groups| groups.share_state("others"));
    assert_eq!(state(&world), Ok(None));
    let altered = world.ask(&alter("others", "orders", 0, 1));
    assert_eq!(code(altered.responses[0].partitions[0].error_code), ErrorCode::None);
    assert_eq!(offsets(&world, "others"), [("orders".to_owned(), 0, 1, 2)]);
    let world = world.restarted();
    assert_eq!(state(&world), Ok(Some(GroupState::Empty)));
    assert_eq!(offsets(&world, "others"), [("orders".to_owned(), 0, 1, 2)]);
}

#[test]
fn a_deleted_topic_takes_its_deliveries_with_it() {
    let world = World::new();
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    world.share(SHARERS, "a", 0);
    world.ask(&fetch("a", 0, orders, &[0]));
    world.delete("orders");
    assert!(world.state.shares.view(|shares| shares.is_empty()));
    let gone = world.ask(&fetch("a", 1, orders, &[]));
    assert_eq!(code(only(&gone).error_code), ErrorCode::UnknownTopicId);
    let world = world.restarted();
    assert!(world.state.shares.view(|shares| shares.is_empty()));
}
