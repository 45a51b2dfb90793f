//! Streams groups in a cluster: the controller coordinates them, and another broker goes on.

use std::collections::BTreeMap;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::streams_group_heartbeat_request::TaskIds;
use moldau_protocol::messages::streams_group_heartbeat_response::TaskIds as Assigned;
use moldau_protocol::messages::{
    OffsetCommitRequest, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse,
};

use super::clusters::{Cluster, eventually};
use super::requests::commit;
use super::streams_groups::{
    APPLICATION, CHANGELOG, MISSING_INTERNAL_TOPICS, described, hurry, joining, statuses, staying,
};
use super::world::{World, code};

/// The last version of OffsetCommit that names topics.
const COMMIT_BY_NAME: i16 = 9;

const PARTITIONS: i32 = 4;

/// A member that holds what it is given.
struct Member {
    id: &'static str,
    epoch: i32,
    /// Its active tasks of the one subtopology.
    tasks: Vec<i32>,
}

impl Member {
    fn join(world: &World, id: &'static str) -> (Self, StreamsGroupHeartbeatResponse) {
        let joined = world.ask(&joining(id));
        assert_eq!(code(joined.error_code), ErrorCode::None, "{:?}", joined.error_message);
        let mut member = Self { id, epoch: 0, tasks: Vec::new() };
        member.take(&joined);
        (member, joined)
    }

    fn heartbeat(&self) -> StreamsGroupHeartbeatRequest {
        let held = TaskIds {
            subtopology_id: "0".to_owned(),
            partitions: self.tasks.clone(),
            ..TaskIds::default()
        };
        let held = if self.tasks.is_empty() { Vec::new() } else { vec![held] };
        StreamsGroupHeartbeatRequest { active_tasks: Some(held), ..staying(self.id, self.epoch) }
    }

    fn beat(&mut self, world: &World) {
        let stayed = world.ask(&self.heartbeat());
        assert_eq!(code(stayed.error_code), ErrorCode::None, "{:?}", stayed.error_message);
        self.take(&stayed);
    }

    fn take(&mut self, answer: &StreamsGroupHeartbeatResponse) {
        self.epoch = answer.member_epoch;
        let tasks = |active: &Vec<Assigned>| {
            let mut tasks: Vec<i32> =
                active.iter().flat_map(|part| part.partitions.clone()).collect();
            tasks.sort_unstable();
            tasks
        };
        self.tasks = answer.active_tasks.as_ref().map_or(std::mem::take(&mut self.tasks), tasks);
    }
}

/// Heartbeats until the members share the tasks.
fn settle(world: &World, members: &mut [Member]) {
    let all: Vec<i32> = (0..PARTITIONS).collect();
    eventually(|| {
        members.iter_mut().for_each(|member| member.beat(world));
        let mut held: Vec<i32> = members.iter().flat_map(|it| it.tasks.clone()).collect();
        held.sort_unstable();
        let epoch = members[0].epoch;
        held == all && members.iter().all(|it| !it.tasks.is_empty() && it.epoch == epoch)
    });
}

/// Two members of an application whose changelog every broker knows.
fn application(cluster: &Cluster) -> [Member; 2] {
    cluster.create("orders", PARTITIONS);
    let owner = cluster.owner();
    let (first, joined) = Member::join(owner, "a");
    assert_eq!(statuses(&joined), [MISSING_INTERNAL_TOPICS]);
    eventually(|| cluster.worlds().all(|it| it.state.catalog.by_name(CHANGELOG).is_some()));
    let (second, _) = Member::join(owner, "b");
    let mut members = [first, second];
    settle(owner, &mut members);
    members
}

fn held(members: &[Member]) -> BTreeMap<&'static str, (i32, Vec<i32>)> {
    members.iter().map(|it| (it.id, (it.epoch, it.tasks.clone()))).collect()
}

#[test]
fn the_controller_alone_coordinates_and_all_brokers_know_the_group() {
    let cluster = Cluster::with(2, hurry);
    let members = application(&cluster);
    let (first, second) = (cluster.world(1), cluster.world(2));
    assert_eq!(code(second.ask(&joining("c")).error_code), ErrorCode::NotCoordinator);
    let refused = second.ask(&members[0].heartbeat());
    assert_eq!(code(refused.error_code), ErrorCode::NotCoordinator);
    let shown = described(first);
    assert_eq!((shown.group_state.as_str(), shown.members.len()), ("Stable", 2));
    assert_eq!(code(described(second).error_code), ErrorCode::NotCoordinator);
    let known = |world: &World| {
        let group = world.state.groups.view(|groups| groups.describe_streams(APPLICATION));
        group.map(|group| (group.epoch, group.members.len())).ok()
    };
    eventually(|| known(second) == Some((shown.group_epoch, 2)));
    let changelog = first.state.catalog.by_name(CHANGELOG).unwrap();
    assert_eq!(changelog.partitions_end(), PARTITIONS);
    assert_eq!(second.state.catalog.by_name(CHANGELOG).unwrap().id, changelog.id);
}

#[test]
fn a_group_goes_on_with_its_tasks_and_epochs_at_the_next_controller() {
    let mut cluster = Cluster::with(3, hurry);
    let mut members = application(&cluster);
    let commits = OffsetCommitRequest {
        generation_id_or_member_epoch: members[0].epoch,
        member_id: members[0].id.to_owned(),
        ..commit(APPLICATION, "orders", 1, 7)
    };
    let committed = cluster.owner().ask_in(COMMIT_BY_NAME, &commits);
    assert_eq!(code(committed.topics[0].partitions[0].error_code), ErrorCode::None);
    let (before, shown) = (held(&members), described(cluster.owner()));
    let changelog = cluster.owner().state.catalog.by_name(CHANGELOG).unwrap().id;

    cluster.fail_over();
    let owner = cluster.owner();
    members.iter_mut().for_each(|member| member.beat(owner));
    assert_eq!(held(&members), before);
    assert_eq!(described(owner), shown);
    assert_eq!(owner.committed(APPLICATION, "orders", 1).committed_offset, 7);
    let again = owner.ask_in(COMMIT_BY_NAME, &commits);
    assert_eq!(code(again.topics[0].partitions[0].error_code), ErrorCode::None);

    // Another member moves tasks, and makes no topic again.
    let (third, joined) = Member::join(owner, "c");
    assert_eq!(statuses(&joined), [0_i8; 0]);
    let [first, second] = members;
    let mut members = [first, second, third];
    settle(owner, &mut members);
    assert!(members[0].epoch > before["a"].0);
    assert_eq!(owner.state.catalog.by_name(CHANGELOG).unwrap().id, changelog);
    assert_eq!(owner.state.catalog.all().len(), 2);
}
