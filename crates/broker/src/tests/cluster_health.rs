//! What a broker of a cluster shows of its steps, and of services and objects that are away.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use moldau_protocol::ErrorCode;

use super::clusters::{Cluster, append, eventually};
use super::requests::{fetch, fetch_topic, only, produce};
use super::world::{NOW_MS, World, base_offsets, batch, code};
use crate::metrics::open_metrics;

fn page(world: &World) -> String {
    open_metrics(&world.state, &Arc::default()).unwrap()
}

/// The value of a metric, named with its labels.
fn metric(world: &World, name: &str) -> i64 {
    let page = page(world);
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn each_step_of_an_append_and_of_a_read_is_measured() {
    let cluster = Cluster::of(2);
    cluster.create("orders", 1);
    let (first, second) = (cluster.world(1), cluster.world(2));
    append(first, "orders", batch(NOW_MS, &["a"]));
    for step in ["collect", "put", "commit", "append"] {
        let name = format!("moldau_cluster_{step}_seconds_count");
        assert_eq!((metric(first, &name), metric(second, &name)), (1, 0), "{step}");
    }
    let put = metric(first, "moldau_cluster_put_bytes_total");
    assert!(put > 0);
    assert_eq!(metric(first, "moldau_cluster_waiting_bytes"), 0);
    for hits in [0, 1] {
        assert_eq!(base_offsets(second.fetch("orders", 0, 0).records.as_ref()), [0]);
        assert_eq!(metric(second, "moldau_cluster_get_seconds_count"), 1);
        assert_eq!(metric(second, "moldau_cluster_cache_misses_total"), 1);
        assert_eq!(metric(second, "moldau_cluster_cache_hits_total"), hits);
    }
    assert_eq!(metric(second, "moldau_cluster_get_bytes_total"), put);
    assert_eq!(metric(second, "moldau_cluster_cache_bytes"), put);
}

#[test]
fn the_controller_its_epoch_and_the_position_in_the_metadata_log_are_shown() {
    let cluster = Cluster::of(2);
    cluster.create("orders", 1);
    let (first, second) = (cluster.world(1), cluster.world(2));
    let read = |name: &str| (metric(first, name), metric(second, name));
    assert_eq!(read("moldau_cluster_controller"), (1, 0));
    let (epoch, none) = read("moldau_cluster_controller_epoch");
    assert!(epoch > 0 && none == 0);
    // The frame of the topic is behind the one that began the cluster.
    assert!(read("moldau_cluster_metadata_position").0 >= 2);
    eventually(|| {
        let (ahead, behind) = read("moldau_cluster_metadata_position");
        ahead == behind
    });
}

#[test]
fn a_broker_of_a_cluster_shows_no_journal_and_one_with_a_journal_no_cluster() {
    let cluster = Cluster::of(1);
    let (shared, alone) = (page(cluster.world(1)), page(&World::new()));
    for name in ["moldau_journal_bytes", "moldau_checkpoints", "moldau_scrubbed_bytes"] {
        assert!(alone.contains(name) && !shared.contains(name), "{name}");
    }
    assert!(shared.contains("moldau_cluster_") && !alone.contains("moldau_cluster_"));
}

#[test]
fn puts_that_fail_are_counted_and_the_end_of_an_outage_shows_without_producers() {
    let cluster = Cluster::of(1);
    cluster.create("orders", 1);
    let world = cluster.world(1);
    let reached = "moldau_cluster_service_reached{service=\"object_store\"}";
    assert_eq!(metric(world, reached), 1);
    cluster.store.is_away.store(true, Ordering::SeqCst);
    let records = produce("orders", 0, batch(NOW_MS, &["a"]));
    let mut waiting = world.begin::<moldau_protocol::messages::ProduceRequest>(9, &records);
    eventually(|| {
        assert!(!world.poll(&mut waiting), "the store takes nothing");
        metric(world, reached) == 0
    });
    assert!(metric(world, "moldau_cluster_failures_total{request=\"put\"}") > 0);
    assert_eq!(metric(world, "moldau_cluster_failures_total{request=\"database\"}"), 0);
    let postgres = "moldau_cluster_service_reached{service=\"postgresql\"}";
    assert_eq!(metric(world, postgres), 1);
    drop(waiting);
    cluster.store.is_away.store(false, Ordering::SeqCst);
    eventually(|| metric(world, reached) == 1);
}

/// Consumers waited for records that were never to come.
#[test]
fn a_read_of_a_lost_object_is_an_error_and_one_before_it_gives_what_is_there() {
    let cluster = Cluster::of(1);
    cluster.create("orders", 1);
    let world = cluster.world(1);
    append(world, "orders", batch(NOW_MS, &["kept", "kept"]));
    assert_eq!(base_offsets(world.fetch("orders", 0, 0).records.as_ref()), [0]);
    append(world, "orders", batch(NOW_MS, &["lost"]));
    // What was read is in the cache of the broker.
    cluster.store.lose_all();
    let mut fetched = world.ask_in(12, &fetch(vec![fetch_topic("orders", &[(0, 0)])]));
    let before = only(&mut fetched);
    assert_eq!(code(before.error_code), ErrorCode::None);
    assert_eq!(base_offsets(before.records.as_ref()), [0]);
    assert_eq!(metric(world, "moldau_cluster_damaged_reads_total"), 0);
    let mut waits = fetch(vec![fetch_topic("orders", &[(0, 2)])]);
    (waits.max_wait_ms, waits.min_bytes) = (60_000, 1);
    let mut fetched = world.ask_in(12, &waits);
    assert_eq!(code(only(&mut fetched).error_code), ErrorCode::KafkaStorageError);
    assert_eq!(metric(world, "moldau_cluster_damaged_reads_total"), 1);
}
