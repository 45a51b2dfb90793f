//! What a broker still knows after a restart.

use std::collections::HashSet;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::{
    CreatePartitionsRequest, DescribeConfigsRequest, HeartbeatRequest, InitProducerIdRequest,
};

use super::world::{NOW_MS, World, base_offsets, batch, code, sequenced};

#[test]
fn restart_restores_topics_and_records() {
    let world = World::new();
    let id = world.create_with("orders", 2, &[("retention.ms", "1000")]);
    world.create("deleted", 1);
    world.append("orders", 1, batch(NOW_MS, &["a", "b"]));
    world.append("deleted", 0, batch(NOW_MS, &["a"]));
    world.delete("deleted");
    let grown = CreatePartitionsTopic {
        name: "orders".to_owned(),
        count: 4,
        assignments: None,
        ..CreatePartitionsTopic::default()
    };
    world.ask(&CreatePartitionsRequest { topics: vec![grown], ..Default::default() });
    let cluster_id = world.state.cluster_id.clone();

    let world = world.restarted();
    assert_eq!(world.state.cluster_id, cluster_id);
    let topics = world.state.catalog.all();
    assert_eq!(topics.len(), 1);
    assert_eq!((topics[0].id, topics[0].partitions), (id, 4));
    let resource = DescribeConfigsResource {
        resource_type: 2,
        resource_name: "orders".to_owned(),
        configuration_keys: Some(vec!["retention.ms".to_owned()]),
        ..DescribeConfigsResource::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let configs = world.ask(&request).results.remove(0).configs;
    assert_eq!(configs[0].value.as_deref(), Some("1000"));
    let fetched = world.fetch("orders", 1, 0);
    assert_eq!((fetched.high_watermark, base_offsets(fetched.records.as_ref())), (2, vec![0]));
    assert_eq!(world.append("orders", 1, batch(NOW_MS, &["c"])), 2);
}

#[test]
fn restart_restores_offsets_and_members() {
    let world = World::new();
    world.create("orders", 1);
    world.commit("tools", "orders", 0, 7);
    let member = world.lead("readers");
    let world = world.restarted();
    let found = world.committed("tools", "orders", 0);
    assert_eq!((found.committed_offset, found.metadata.as_deref()), (7, Some("note")));
    let request = HeartbeatRequest {
        group_id: "readers".to_owned(),
        generation_id: member.generation_id,
        member_id: member.member_id,
        ..HeartbeatRequest::default()
    };
    assert_eq!(code(world.ask(&request).error_code), ErrorCode::None);
}

#[test]
fn restart_keeps_duplicate_detection() {
    let world = World::new();
    world.create("orders", 1);
    let id = world.producer_id().producer_id;
    assert_eq!(world.append("orders", 0, sequenced(id, 0, 0, &["a", "b"])), 0);
    let world = world.restarted();
    assert_eq!(world.append("orders", 0, sequenced(id, 0, 0, &["a", "b"])), 0);
    assert_eq!(world.append("orders", 0, sequenced(id, 0, 2, &["c"])), 2);
    assert_eq!(world.fetch("orders", 0, 0).high_watermark, 3);
}

#[test]
fn producer_ids_are_unique_over_restarts() {
    let mut world = World::new();
    let mut seen = HashSet::new();
    for _ in 0..3 {
        for _ in 0..50 {
            let given = world.producer_id();
            assert_eq!(given.producer_epoch, 0);
            assert!(seen.insert(given.producer_id));
        }
        world = world.restarted();
    }
}

#[test]
fn a_producer_that_names_its_id_gets_its_next_epoch() {
    let world = World::new();
    let given = world.producer_id();
    let request = InitProducerIdRequest {
        transactional_id: None,
        producer_id: given.producer_id,
        producer_epoch: given.producer_epoch,
        ..InitProducerIdRequest::default()
    };
    let bumped = world.ask(&request);
    assert_eq!((bumped.producer_id, bumped.producer_epoch), (given.producer_id, 1));
}
