//! Share groups in a cluster: the controller has all share partitions, and another broker goes on.

use std::collections::BTreeSet;

use moldau_coordinator::GroupState;
use moldau_protocol::messages::{
    DeleteGroupsRequest, FindCoordinatorRequest, MetadataRequest, ShareFetchRequest,
    ShareFetchResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use super::clusters::{Cluster, eventually};
use super::share_deliveries::{
    ACCEPT, REJECT, RELEASE, SHARERS, acknowledge, acknowledged, acquired, fetch, offsets, only,
};
use super::world::{NOW_MS, World, base_offsets, batch, code};

const DEAD_LETTERS: &str = "dlq.orders";

/// Records `a` to `f` at offsets 0 to 5, of which every broker took some, and a member of a group.
fn cluster(brokers: i32) -> (Cluster, Uuid) {
    let cluster = Cluster::with(brokers, |config| {
        config.groups.share.dead_letter_auto_create = true;
        config.partitions_default = 1;
    });
    cluster.create("orders", 1);
    cluster.world(1).append("orders", 0, batch(NOW_MS, &["a", "b", "c"]));
    cluster.world(2).append("orders", 0, batch(NOW_MS, &["d", "e", "f"]));
    cluster.owner().share(SHARERS, "a", 0);
    let orders = cluster.owner().state.catalog.by_name("orders").unwrap().id;
    (cluster, orders)
}

/// What a member gets that waits for records.
fn wait(world: &World, member: &str, epoch: i32, orders: Uuid) -> ShareFetchResponse {
    let waits = ShareFetchRequest { max_wait_ms: 60_000, ..fetch(member, epoch, orders, &[0]) };
    world.ask(&waits)
}

fn say(world: &World, epoch: i32, orders: Uuid, said: (i64, i64, &[i8])) -> ErrorCode {
    acknowledged(world, &acknowledge("a", epoch, orders, said))
}

/// The leader of the partition and its epoch, as clients are told.
fn leader(world: &World) -> (i32, i32) {
    let metadata = world.ask(&MetadataRequest { topics: None, ..MetadataRequest::default() });
    let orders = metadata.topics.iter().find(|it| it.name.as_deref() == Some("orders"));
    let partition = &orders.unwrap().partitions[0];
    (partition.leader_id, partition.leader_epoch)
}

#[test]
fn the_controller_delivers_what_all_brokers_took() {
    let (cluster, orders) = cluster(2);
    let first = cluster.world(1);
    let got = wait(first, "a", 0, orders);
    assert_eq!(acquired(&got), [(0, 5, 1)]);
    assert_eq!(base_offsets(Some(&only(&got).records)), [0, 3]);
    assert_eq!(say(first, 1, orders, (0, 2, &[ACCEPT, REJECT, RELEASE])), ErrorCode::None);
    assert_eq!(say(first, 2, orders, (3, 5, &[ACCEPT])), ErrorCode::None);
    assert_eq!(say(first, 3, orders, (3, 5, &[ACCEPT])), ErrorCode::InvalidRecordState);
    assert_eq!(acquired(&wait(first, "b", 0, orders)), [(2, 2, 2)]);
    assert_eq!(offsets(first, SHARERS), [("orders".to_owned(), 0, 2, 1)]);
}

#[test]
fn a_member_that_waits_gets_what_another_broker_takes() {
    let (cluster, orders) = cluster(2);
    let first = cluster.world(1);
    assert_eq!(acquired(&wait(first, "a", 0, orders)), [(0, 5, 1)]);
    let waits = ShareFetchRequest { max_wait_ms: 60_000, ..fetch("b", 0, orders, &[0]) };
    let mut pending = first.begin::<ShareFetchRequest>(2, &waits);
    assert!(!first.poll(&mut pending));
    cluster.world(2).append("orders", 0, batch(NOW_MS, &["g"]));
    assert_eq!(acquired(&first.finish::<ShareFetchRequest>(pending)), [(6, 6, 1)]);
}

#[test]
fn other_brokers_send_members_to_the_controller_by_an_epoch_that_clients_take() {
    let (cluster, orders) = cluster(2);
    let second = cluster.world(2);
    eventually(|| second.state.nodes.share_leader().is_some());
    let sent = second.ask(&fetch("a", 0, orders, &[0]));
    let told = only(&sent);
    assert_eq!(code(told.error_code), ErrorCode::NotLeaderOrFollower);
    assert_eq!((told.current_leader.leader_id, sent.node_endpoints.len()), (1, 1));
    let leads = (1, told.current_leader.leader_epoch);
    // Metadata names the same leader.
    eventually(|| leader(second) == leads);
    let port = i32::from(cluster.brokers[0].0.address().port());
    assert_eq!((sent.node_endpoints[0].node_id, sent.node_endpoints[0].port), (1, port));

    let answer = second.ask(&acknowledge("a", 1, orders, (0, 0, &[ACCEPT])));
    let told = &answer.responses[0].partitions[0];
    assert_eq!(code(told.error_code), ErrorCode::NotLeaderOrFollower);
    assert_eq!((told.current_leader.leader_id, answer.node_endpoints[0].port), (1, port));
    let found = second.ask(&FindCoordinatorRequest {
        key_type: 2,
        coordinator_keys: vec![format!("{SHARERS}:{orders}:0")],
        ..FindCoordinatorRequest::default()
    });
    assert_eq!((found.coordinators[0].error_code, found.coordinators[0].node_id), (0, 1));
}

#[test]
fn the_controller_leads_a_topic_from_its_first_member_until_its_last_share_group_is_deleted() {
    let cluster = Cluster::of(3);
    cluster.create("orders", 30);
    let leaders = |world: &World| -> BTreeSet<i32> {
        let metadata = world.ask(&MetadataRequest { topics: None, ..MetadataRequest::default() });
        metadata.topics[0].partitions.iter().map(|partition| partition.leader_id).collect()
    };
    let all = |ids: &[i32]| {
        let ids = ids.iter().copied().collect();
        eventually(|| cluster.worlds().all(|world| leaders(world) == ids));
    };
    all(&[1, 2, 3]);
    let owner = cluster.owner();
    owner.share(SHARERS, "a", 0);
    all(&[1]);
    let orders = owner.state.catalog.by_name("orders").unwrap().id;
    owner.ask(&fetch("a", 0, orders, &[0]));
    // The group has read the topic, so the end of its members moves nothing.
    owner.share(SHARERS, "a", -1);
    let empty = |world: &World| {
        let state = world.state.groups.view(|groups| groups.share_state(SHARERS));
        state.unwrap() == Some(GroupState::Empty)
    };
    eventually(|| cluster.worlds().all(empty));
    all(&[1]);
    owner.ask(&DeleteGroupsRequest {
        groups_names: vec![SHARERS.to_owned()],
        ..DeleteGroupsRequest::default()
    });
    all(&[1, 2, 3]);
}

#[test]
fn acknowledged_records_stay_so_at_the_next_controller_and_held_ones_come_again() {
    let (mut cluster, orders) = cluster(2);
    let first = cluster.world(1);
    assert_eq!(acquired(&wait(first, "a", 0, orders)), [(0, 5, 1)]);
    let kinds = &[ACCEPT, REJECT, RELEASE];
    assert_eq!(say(first, 1, orders, (0, 2, kinds)), ErrorCode::None);
    assert_eq!(say(first, 2, orders, (4, 4, &[ACCEPT])), ErrorCode::None);
    let sent = {
        let second = cluster.world(2);
        eventually(|| second.state.nodes.share_leader().is_some());
        only(&second.ask(&fetch("c", 0, orders, &[0]))).current_leader.leader_epoch
    };

    cluster.fail_over();
    let owner = cluster.owner();
    // Clients leave the controller that they were sent to for this one.
    eventually(|| leader(owner).0 == owner.state.nodes.id());
    assert!(leader(owner).1 > sent);
    // What was held is held no longer, and may come to any member.
    assert_eq!(say(owner, 3, orders, (3, 3, &[ACCEPT])), ErrorCode::ShareSessionNotFound);
    let opens = ShareFetchRequest { max_records: 0, ..fetch("a", 0, orders, &[0]) };
    assert_eq!(acquired(&owner.ask(&opens)), []);
    assert_eq!(say(owner, 1, orders, (3, 3, &[ACCEPT])), ErrorCode::InvalidRecordState);
    assert_eq!(acquired(&wait(owner, "b", 0, orders)), [(2, 2, 2), (3, 3, 1), (5, 5, 1)]);
    let by_other = acknowledge("b", 1, orders, (2, 3, &[ACCEPT]));
    assert_eq!(acknowledged(owner, &by_other), ErrorCode::None);
    assert_eq!(offsets(owner, SHARERS), [("orders".to_owned(), 0, 5, 1)]);
}

#[test]
fn brokers_that_follow_know_all_of_a_group_until_it_is_deleted() {
    let (cluster, orders) = cluster(2);
    let (first, second) = (cluster.world(1), cluster.world(2));
    assert_eq!(acquired(&wait(first, "a", 0, orders)), [(0, 5, 1)]);
    assert_eq!(say(first, 1, orders, (0, 1, &[ACCEPT])), ErrorCode::None);
    let known = |world: &World| {
        let start = |shares: &moldau_coordinator::share_partitions::Shares| {
            shares.of_group(SHARERS).map(|(_, partition)| partition.start()).collect::<Vec<_>>()
        };
        world.state.shares.view(start)
    };
    eventually(|| known(second) == [2]);
    cluster.world(1).delete("orders");
    eventually(|| known(first).is_empty() && known(second).is_empty());
}

#[test]
fn rejected_records_get_dead_letters_whichever_broker_is_the_controller() {
    let (mut cluster, orders) = cluster(2);
    let first = cluster.world(1);
    let configured = first.state.groups.configure(&first.state.storage, SHARERS, |overrides| {
        let topic = "errors.deadletterqueue.topic.name".to_owned();
        overrides.insert(topic, DEAD_LETTERS.to_owned());
        Ok(())
    });
    first.wait(first.state.storage.wait_durable(configured.unwrap())).unwrap();
    assert_eq!(acquired(&wait(first, "a", 0, orders)), [(0, 5, 1)]);
    assert_eq!(say(first, 1, orders, (0, 1, &[REJECT])), ErrorCode::None);
    let letters = |world: &World, count: i64| {
        world.state.catalog.by_name(DEAD_LETTERS).is_some()
            && world.fetch(DEAD_LETTERS, 0, 0).high_watermark == count
    };
    eventually(|| letters(first, 2));
    eventually(|| offsets(first, SHARERS) == [("orders".to_owned(), 0, 2, 4)]);

    cluster.fail_over();
    let owner = cluster.owner();
    assert_eq!(acquired(&wait(owner, "a", 0, orders)), [(2, 5, 1)]);
    assert_eq!(say(owner, 1, orders, (2, 2, &[REJECT])), ErrorCode::None);
    eventually(|| letters(owner, 3));
}
