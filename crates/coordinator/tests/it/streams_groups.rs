//! Streams groups: topologies, tasks, epochs, members that come, go and are fenced.

use moldau_coordinator::{
    CopartitionGroup, GroupRecord, GroupState, GroupType, JoinRequest, OffsetCommitRequest,
    PartitionCommit, Reply, StreamsHeartbeat, StreamsStatusCode, TaskOffset, Token, TopicCommit,
    UserEndpoint,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::streams_world::{
    DELAY_MS, GROUP, Member, SESSION_MS, World, codes, counting, internal, rekeying, tasks,
};

/// A world with the topics of [`counting`], and a group that assigns at once.
fn counting_world(partitions: i32, standby_replicas: i32) -> World {
    let mut world = World::hasty(standby_replicas);
    world.topics.put("in", partitions);
    world.topics.put("app-counts-changelog", partitions);
    world
}

fn member(id: &str, process: &str) -> Member {
    Member::new(id, process, counting())
}

#[test]
fn internal_topics_are_asked_for_and_then_their_tasks_are_assigned() {
    let mut world = World::hasty(0);
    world.topics.put("in", 3);
    world.topics.put("left", 2);
    world.topics.put("right", 2);
    let mut one = Member::new("one", "p", rekeying());
    let reply = one.beat(&mut world);
    assert_eq!(codes(&reply), [StreamsStatusCode::MissingInternalTopics]);
    let missing: Vec<_> =
        reply.missing_topics.iter().map(|it| (it.name.as_str(), it.partitions)).collect();
    let expected =
        [("app-counts-changelog", 3), ("app-joined-changelog", 2), ("app-rekeyed-repartition", 3)];
    assert_eq!(missing, expected);
    assert_eq!(world.describe().state, GroupState::NotReady);
    world.create(&reply);
    assert_eq!(codes(&one.beat(&mut world)), []);
    let all = tasks(&[("0", &[0, 1, 2]), ("1", &[0, 1, 2]), ("2", &[0, 1])]);
    assert_eq!(one.tasks.active, all);
    let described = world.describe();
    assert_eq!(described.state, GroupState::Stable);
    assert_eq!(described.topology.subtopologies["1"].changelog_topics[0].partitions, 3);
}

#[test]
fn a_group_says_which_topics_are_not_as_they_must_be() {
    let mut world = World::hasty(0);
    let mut one = Member::new("one", "p", rekeying());
    let reply = one.beat(&mut world);
    assert_eq!(codes(&reply), [StreamsStatusCode::MissingSourceTopics]);
    assert_eq!(reply.missing_topics, []);
    for (topic, partitions) in [("in", 1), ("left", 2), ("right", 3)] {
        world.topics.put(topic, partitions);
    }
    let reply = one.beat(&mut world);
    assert_eq!(codes(&reply), [StreamsStatusCode::IncorrectlyPartitionedTopics]);
    world.topics.put("left", 3);
    let reply = one.beat(&mut world);
    assert_eq!(codes(&reply), [StreamsStatusCode::MissingInternalTopics]);
    world.topics.put("app-joined-changelog", 2);
    let reply = one.beat(&mut world);
    assert_eq!(codes(&reply), [StreamsStatusCode::IncorrectlyPartitionedTopics]);
}

#[test]
fn repartition_topics_follow_the_topics_that_they_are_read_with() {
    let mut world = World::hasty(0);
    world.topics.put("in", 2);
    world.topics.put("left", 5);
    let mut topology = rekeying();
    topology.subtopologies.remove("2");
    let counting = topology.subtopologies.get_mut("1").expect("it is there");
    counting.source_topics = vec!["left".to_owned()];
    counting.copartition_groups =
        vec![CopartitionGroup { source_topics: vec![0], repartition_sources: vec![0] }];
    let reply = Member::new("one", "p", topology.clone()).beat(&mut world);
    let count = |name: &str| reply.missing_topics.iter().find(|it| it.name == name);
    assert_eq!(count("app-rekeyed-repartition").map(|it| it.partitions), Some(5));
    let counting = topology.subtopologies.get_mut("1").expect("it is there");
    counting.repartition_sources[0].partitions = 4;
    let mut fixed = Member::new("one", "p", topology.clone()).full();
    fixed.group_id = "fixed".to_owned();
    let reply = world.send(&fixed);
    assert_eq!(codes(&reply), [StreamsStatusCode::IncorrectlyPartitionedTopics]);
}

#[test]
fn topologies_that_cannot_work_are_refused() {
    let mut world = World::hasty(0);
    world.topics.put("in", 2);
    let mut code = |topology| {
        let reply = world.send(&Member::new("one", "p", topology).full());
        assert!(world.groups.describe_streams(GROUP).is_err(), "no group is left behind");
        reply.error
    };
    let invalid = ErrorCode::StreamsInvalidTopology;
    let mut part = counting();
    part.subtopologies.get_mut("0").expect("there").changelog_topics[0].partitions = 2;
    assert_eq!(code(part), invalid);
    let mut part = counting();
    part.subtopologies.get_mut("0").expect("there").source_topics.clear();
    assert_eq!(code(part), invalid);
    let mut part = counting();
    part.subtopologies.get_mut("0").expect("there").copartition_groups =
        vec![CopartitionGroup { source_topics: vec![1], repartition_sources: Vec::new() }];
    assert_eq!(code(part), invalid);
    let mut part = counting();
    part.subtopologies.get_mut("0").expect("there").repartition_sources =
        vec![internal("nobody-writes-it", 0)];
    assert_eq!(code(part), invalid);
    let mut part = counting();
    part.subtopologies.get_mut("0").expect("there").repartition_sources =
        vec![internal("huge", i32::MAX)];
    assert_eq!(code(part), invalid);
    let mut part = counting();
    let own = part.subtopologies.get_mut("0").expect("there");
    (own.source_topics, own.repartition_sources) = (Vec::new(), vec![internal("loop", 0)]);
    own.repartition_sinks = vec!["loop".to_owned()];
    assert_eq!(code(part), invalid);
}

#[test]
fn requests_are_checked_as_in_kafka() {
    let mut world = counting_world(1, 0);
    let full = member("one", "p").full();
    let mut code = |request: StreamsHeartbeat| world.send(&request).error;
    let invalid = ErrorCode::InvalidRequest;
    assert_eq!(code(StreamsHeartbeat { member_id: String::new(), ..full.clone() }), invalid);
    assert_eq!(code(StreamsHeartbeat { group_id: " ".to_owned(), ..full.clone() }), invalid);
    assert_eq!(
        code(StreamsHeartbeat { instance_id: Some(String::new()), ..full.clone() }),
        invalid
    );
    assert_eq!(code(StreamsHeartbeat { rebalance_timeout_ms: -1, ..full.clone() }), invalid);
    assert_eq!(code(StreamsHeartbeat { topology: None, ..full.clone() }), invalid);
    assert_eq!(code(StreamsHeartbeat { standby: None, ..full.clone() }), invalid);
    assert_eq!(code(StreamsHeartbeat { member_epoch: -2, ..full.clone() }), invalid);
    assert_eq!(code(StreamsHeartbeat { member_epoch: -3, ..full.clone() }), invalid);
    let active = Some(tasks(&[("0", &[0])]));
    assert_eq!(code(StreamsHeartbeat { active, ..full.clone() }), invalid);
    let unknown = StreamsHeartbeat { member_epoch: 1, topology: None, ..full.clone() };
    assert_eq!(code(unknown.clone()), ErrorCode::GroupIdNotFound);
    let long = StreamsHeartbeat { member_id: "m".repeat(40_000), ..full.clone() };
    assert_eq!(code(long), ErrorCode::PolicyViolation);
    assert_eq!(code(full), ErrorCode::None);
    let other = StreamsHeartbeat { member_id: "other".to_owned(), ..unknown.clone() };
    assert_eq!(code(other), ErrorCode::UnknownMemberId);
    let active = Some(tasks(&[("0", &[1])]));
    assert_eq!(code(StreamsHeartbeat { active, member_epoch: 2, ..unknown.clone() }), invalid);
    let offset = TaskOffset { subtopology: "0".to_owned(), partition: 0, offset: 1 };
    let task_offsets = Some(vec![offset.clone(), offset]);
    let twice = StreamsHeartbeat { task_offsets, member_epoch: 2, ..unknown.clone() };
    assert_eq!(code(twice), invalid);
    let ahead = StreamsHeartbeat { member_epoch: 9, ..unknown };
    assert_eq!(code(ahead), ErrorCode::FencedMemberEpoch);
}

#[test]
fn an_active_task_moves_once_its_former_owner_has_given_it_up() {
    let mut world = counting_world(2, 0);
    let (mut one, mut two) = (member("one", "p"), member("two", "q"));
    one.beat(&mut world);
    assert_eq!(one.tasks.active, tasks(&[("0", &[0, 1])]));
    two.beat(&mut world);
    assert_eq!(two.tasks.active, tasks(&[]), "the first member still has all");
    let before = one.tasks.clone();
    let reply = one.beat(&mut world);
    assert_eq!(one.tasks.active.values().flatten().count(), 1);
    let mut still = one.full();
    still.active = Some(before.active);
    world.send(&still);
    two.beat(&mut world);
    assert_eq!(two.tasks.active, tasks(&[]), "it has not said that it gave one up");
    assert_eq!(world.describe().state, GroupState::Reconciling);
    one.beat(&mut world);
    assert!(one.epoch > reply.member_epoch);
    two.beat(&mut world);
    assert_eq!(two.tasks.active.values().flatten().count(), 1);
    assert_eq!(world.describe().state, GroupState::Stable);
}

#[test]
fn copies_of_states_are_on_other_processes_and_take_over() {
    let mut world = counting_world(2, 1);
    let mut members = [member("one", "p"), member("two", "p"), member("three", "q")];
    let rounds = |world: &mut World, members: &mut [Member]| {
        for _round in 0..4 {
            members.iter_mut().for_each(|member| drop(member.beat(world)));
        }
    };
    rounds(&mut world, &mut members);
    let [one, two, three] = &members;
    let all = tasks(&[("0", &[0, 1])]);
    let mut on_p = one.tasks.clone();
    for (own, its) in
        [(&mut on_p.active, &two.tasks.active), (&mut on_p.standby, &two.tasks.standby)]
    {
        its.iter().for_each(|(id, held)| own.entry(id.clone()).or_default().extend(held));
    }
    assert_eq!((&on_p.active, &three.tasks.standby), (&three.tasks.standby, &on_p.active));
    let copies = three.tasks.standby.clone();
    for id in ["one", "two"] {
        let mut leave = member(id, "p").full();
        (leave.member_epoch, leave.topology) = (-1, None);
        assert_eq!(world.send(&leave).error, ErrorCode::None);
    }
    rounds(&mut world, &mut members[2..]);
    assert!(copies.values().flatten().count() > 0, "there were copies");
    assert_eq!(members[2].tasks.active, all);
    assert_eq!(members[2].tasks.standby, tasks(&[]));
}

#[test]
fn the_first_members_are_assigned_together() {
    let mut world = World::new();
    world.topics.put("in", 2);
    world.topics.put("app-counts-changelog", 2);
    let (mut one, mut two) = (member("one", "p"), member("two", "q"));
    assert_eq!(codes(&one.beat(&mut world)), [StreamsStatusCode::AssignmentDelayed]);
    assert_eq!(one.epoch, 1);
    world.pass(DELAY_MS / 2);
    two.beat(&mut world);
    world.pass(DELAY_MS / 2);
    for member in [&mut one, &mut two] {
        assert_eq!(codes(&member.beat(&mut world)), []);
        assert_eq!(member.tasks.active.values().flatten().count(), 1);
    }
    assert_eq!(world.describe().state, GroupState::Stable);
}

#[test]
fn a_member_whose_session_ends_is_put_out_and_its_tasks_move() {
    let mut world = counting_world(2, 0);
    let (mut one, mut two) = (member("one", "p"), member("two", "q"));
    one.beat(&mut world);
    world.pass(SESSION_MS / 2);
    two.beat(&mut world);
    world.pass(SESSION_MS / 2 + 1);
    two.beat(&mut world);
    assert_eq!(two.tasks.active, tasks(&[("0", &[0, 1])]));
    assert_eq!(one.beat(&mut world).error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_static_member_that_comes_back_has_its_tasks() {
    let mut world = counting_world(2, 0);
    let mut one = member("one", "p");
    one.instance = Some("instance".to_owned());
    one.beat(&mut world);
    let epoch = world.describe().epoch;
    let mut again = Member { id: "again".to_owned(), ..one.clone() };
    (again.epoch, again.tasks) = (0, Default::default());
    assert_eq!(again.beat(&mut world).error, ErrorCode::UnreleasedInstanceId);
    let mut leave = one.full();
    leave.member_epoch = -2;
    assert_eq!(world.send(&leave).member_epoch, -2);
    again.beat(&mut world);
    assert_eq!(again.tasks.active, tasks(&[("0", &[0, 1])]));
    assert_eq!(world.describe().epoch, epoch, "no rebalance");
    assert_eq!(one.beat(&mut world).error, ErrorCode::FencedInstanceId);
}

#[test]
fn a_member_with_an_older_topology_is_told_and_another_topology_is_refused() {
    let mut world = counting_world(1, 0);
    let mut later = member("one", "p");
    later.topology.epoch = 2;
    later.beat(&mut world);
    let mut stale = member("two", "q");
    stale.topology.epoch = 1;
    assert_eq!(codes(&stale.beat(&mut world)), [StreamsStatusCode::StaleTopology]);
    let mut other = member("three", "r");
    other.topology.epoch = 3;
    assert_eq!(other.beat(&mut world).error, ErrorCode::InvalidRequest);
}

#[test]
fn one_member_can_end_the_application() {
    let mut world = counting_world(1, 0);
    let (mut one, mut two) = (member("one", "p"), member("two", "q"));
    one.beat(&mut world);
    two.beat(&mut world);
    let mut leave = one.full();
    (leave.member_epoch, leave.shuts_down) = (-1, true);
    world.send(&leave);
    assert_eq!(codes(&two.beat(&mut world)), [StreamsStatusCode::ShutdownApplication]);
    let mut leave = two.full();
    leave.member_epoch = -1;
    world.send(&leave);
    two.epoch = 0;
    two.tasks = Default::default();
    assert_eq!(codes(&two.beat(&mut world)), [], "an empty group starts anew");
}

#[test]
fn endpoints_are_told_to_those_who_do_not_know_them() {
    let mut world = counting_world(2, 0);
    let mut one = member("one", "p");
    let endpoint = UserEndpoint { host: "host".to_owned(), port: 9 };
    let joining = StreamsHeartbeat { endpoint: Some(endpoint.clone()), ..one.full() };
    let reply = world.send(&joining);
    one.take(&reply);
    let known = reply.endpoints.expect("the first endpoints");
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].endpoint, endpoint);
    assert_eq!(known[0].active, [("in".to_owned(), vec![0, 1])]);
    let knowing = StreamsHeartbeat { endpoint_epoch: reply.endpoint_epoch, ..one.full() };
    assert_eq!(world.send(&knowing).endpoints, None);
}

#[test]
fn tags_that_a_client_lacks_are_named_to_those_who_understand() {
    let mut world = counting_world(1, 0);
    world.config.streams.settings.rack_tags = vec!["zone".to_owned(), "rack".to_owned()];
    world.restart(false);
    let mut request = member("one", "p").full();
    request.tags = Some([("rack".to_owned(), "r".to_owned())].into());
    assert_eq!(codes(&world.send(&request)), []);
    request.knows_missing_tags = true;
    let reply = world.send(&request);
    assert_eq!(codes(&reply), [StreamsStatusCode::MissingClientTags]);
    assert!(reply.statuses.iter().all(|status| status.detail.contains("zone")));
}

#[test]
fn offsets_are_committed_in_the_epoch_in_which_the_task_was_assigned() {
    let mut world = counting_world(2, 0);
    let (mut one, mut two) = (member("one", "p"), member("two", "q"));
    one.beat(&mut world);
    let topic = world.topics.all().find(|(name, _)| *name == "in").map(|(_, it)| it.id);
    let topic = topic.unwrap_or(Uuid::ZERO);
    let check = |world: &World, epoch: i32, partition: i32| {
        let member = ("one", None);
        world.groups.check_transactional_commit(GROUP, epoch, member, &[(topic, partition)])
    };
    let first = one.epoch;
    two.beat(&mut world);
    one.beat(&mut world);
    one.beat(&mut world);
    assert!(one.epoch > first);
    let kept = *one.tasks.active["0"].first().expect("one task stays");
    assert_eq!(check(&world, one.epoch, kept), Ok(()));
    assert_eq!(check(&world, first, kept), Ok(()), "it has the task since then");
    assert_eq!(check(&world, first, 1 - kept), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(check(&world, one.epoch + 1, kept), Err(ErrorCode::StaleMemberEpoch));
    let commit = |member_id: &str, generation| OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation,
        member_id: member_id.to_owned(),
        instance_id: None,
        retention_ms: None,
        knows_member_epochs: true,
        topics: vec![TopicCommit {
            topic: "in".to_owned(),
            topic_id: topic,
            partitions: vec![PartitionCommit {
                partition: 1 - kept,
                offset: 5,
                leader_epoch: -1,
                metadata: String::new(),
            }],
        }],
    };
    let mut code = |request: OffsetCommitRequest| {
        let effects = world.groups.offset_commit(world.now_ms, &request, Token(1));
        match &effects.replies[..] {
            [(_, Reply::OffsetCommit(topics))] => topics[0].partitions[0].1,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code(commit("one", first)), ErrorCode::StaleMemberEpoch);
    assert_eq!(code(commit("nobody", first)), ErrorCode::UnknownMemberId);
    assert_eq!(code(commit("", -1)), ErrorCode::UnknownMemberId);
    assert_eq!(code(commit("one", one.epoch)), ErrorCode::None);
    assert_eq!(world.groups.check_fetch(GROUP, Some("one"), one.epoch), Ok(()));
    let stale = world.groups.check_fetch(GROUP, Some("one"), first);
    assert_eq!(stale, Err(ErrorCode::StaleMemberEpoch));
}

#[test]
fn a_group_with_members_keeps_its_type_and_is_not_deleted() {
    let mut world = counting_world(1, 0);
    let mut one = member("one", "p");
    one.beat(&mut world);
    let join = JoinRequest {
        group_id: GROUP.to_owned(),
        member_id: String::new(),
        instance_id: None,
        client_id: "c".to_owned(),
        client_host: "/h".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: Vec::new(),
        require_known_member_id: false,
        supports_skipping_assignment: false,
    };
    let joined = world.groups.join(world.now_ms, join, &world.topics, Token(1));
    let refused = |it: &Reply| match it {
        Reply::Join(reply) => reply.error == ErrorCode::InconsistentGroupProtocol,
        _ => false,
    };
    assert!(joined.replies.iter().all(|(_, reply)| refused(reply)));
    let types: Vec<_> = world.groups.list().map(|it| (it.group_type, it.protocol_type)).collect();
    assert_eq!(types, [(GroupType::Streams, "streams".to_owned())]);
    let deleted = |world: &mut World| {
        let effects = world.groups.delete_groups(&[GROUP.to_owned()], Token(1));
        match &effects.replies[..] {
            [(_, Reply::DeleteGroups(results))] => results[0].1,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(deleted(&mut world), ErrorCode::NonEmptyGroup);
    let mut leave = one.full();
    leave.member_epoch = -1;
    world.send(&leave);
    assert_eq!(deleted(&mut world), ErrorCode::None);
}

#[test]
fn a_restart_changes_nothing() {
    let mut world = counting_world(3, 1);
    let mut members = [member("one", "p"), member("two", "q")];
    for _round in 0..3 {
        members.iter_mut().for_each(|member| drop(member.beat(&mut world)));
    }
    let before = world.describe();
    for from_snapshot in [false, true] {
        world.restart(from_snapshot);
        for member in &mut members {
            let reply = member.beat(&mut world);
            assert_eq!((reply.error, reply.assignment), (ErrorCode::None, None));
        }
        assert_eq!(world.describe(), before);
    }
    let is_streams = |record: &GroupRecord| matches!(record, GroupRecord::StreamsChanged(_));
    assert!(world.records.iter().all(is_streams));
}
