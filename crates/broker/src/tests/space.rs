//! Retention, and journal files that are given back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{AppendRules, Validator};
use moldau_storage::{Drive, TopicId};

use super::world::{NOW_MS, World, base_offsets, batch, code};
use crate::retention;
use crate::state::State;
use crate::topic_config::TopicOverrides;

/// How long something may take that should come about. Generous, since machines are shared.
const PATIENCE: Duration = Duration::from_mins(1);

/// A world whose journal files are as small as they can be.
fn of_small_files() -> World {
    World::with(Drive::Threads, |config| config.journal_file_bytes = 64 << 10)
}

/// Fills more than one journal file.
fn fill(world: &World, topic: &str) {
    let value = "v".repeat(10_000);
    for _ in 0..20 {
        world.append(topic, 0, batch(NOW_MS, &[&value]));
    }
}

#[test]
fn retention_by_time_drops_old_batches_and_keeps_those_of_other_topics() {
    let world = World::new();
    world.create_with("short", 1, &[("retention.ms", "60000")]);
    world.create_with("ever", 1, &[("retention.ms", "-1")]);
    for topic in ["short", "ever"] {
        world.append(topic, 0, batch(1_000, &["old"]));
        world.append(topic, 0, batch(NOW_MS, &["recent"]));
    }
    world.wait(retention::apply(&world.state, NOW_MS));
    assert_eq!(world.fetch("short", 0, 1).log_start_offset, 1);
    assert_eq!(base_offsets(world.fetch("ever", 0, 0).records.as_ref()), [0, 1]);
    let world = world.restarted();
    assert_eq!(code(world.fetch("short", 0, 0).error_code), ErrorCode::OffsetOutOfRange);
}

#[test]
fn retention_by_size_keeps_at_least_its_limit() {
    let world = World::new();
    let records = batch(NOW_MS, &["a"]);
    let two = (2 * records.len()).to_string();
    world.create_with("orders", 1, &[("retention.bytes", &two)]);
    for _ in 0..5 {
        world.append("orders", 0, records.clone());
    }
    world.wait(retention::apply(&world.state, NOW_MS));
    assert_eq!(base_offsets(world.fetch("orders", 0, 3).records.as_ref()), [3, 4]);
    assert_eq!(world.fetch("orders", 0, 3).log_start_offset, 3);
}

/// A broker that filled a journal file within each interval never applied retention, and its disk
/// ran full.
#[test]
fn retention_is_applied_while_journal_files_fill_and_topics_are_deleted() {
    let interval = Duration::from_millis(20);
    let world =
        World::with(Drive::Threads, |config| config.log_retention_check_interval = interval);
    world.create_with("orders", 1, &[("retention.ms", "1000")]);
    world.append("orders", 0, batch(1_000, &["old"]));
    let deleting = async {
        let mut ticks = tokio::time::interval(interval / 20);
        while world.state.storage.logs().iter().all(|log| log.start_offset() == 0) {
            world.state.deleted.notify_one();
            ticks.tick().await;
        }
    };
    let applied = world.wait(async {
        tokio::select! {
            () = retention::run(&world.state) => unreachable!("it never ends"),
            applied = tokio::time::timeout(PATIENCE, deleting) => applied,
        }
    });
    assert!(applied.is_ok(), "nothing was deleted in {PATIENCE:?}");
}

/// A compacted topic keeps its newest record of each key, however old it is.
#[test]
fn retention_ignores_topics_without_delete_policy() {
    let world = World::new();
    let small = [("retention.ms", "1"), ("retention.bytes", "1")];
    for (topic, policy, start) in
        [("compacted", "compact", 0), ("neither", "", 0), ("both", "compact,delete", 1)]
    {
        world.create_with(topic, 1, &[small[0], small[1], ("cleanup.policy", policy)]);
        world.append(topic, 0, batch(1_000, &["old"]));
        world.wait(retention::apply(&world.state, NOW_MS));
        assert_eq!(world.fetch(topic, 0, 1).log_start_offset, start, "{topic}");
    }
}

/// A produce that found its topic just before another connection deleted it leaves a log that
/// nobody can read, whose batches would keep journal files until the next start.
#[test]
fn log_of_a_deleted_topic_is_deleted() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    let gone = TopicId([7; 16]);
    let late = batch(NOW_MS, &["late"]);
    let mut validator = Validator::default();
    let late = validator.check(&late, &AppendRules::LENIENT).unwrap();
    world.state.storage.log(gone, 0).append(&late, 0).unwrap();
    world.wait(retention::apply(&world.state, NOW_MS));
    assert!(!world.state.storage.topics().contains(&gone));
    assert_eq!(base_offsets(world.fetch("orders", 0, 0).records.as_ref()), [0]);
}

#[test]
fn freeing_files_keeps_records_readable() {
    let world = of_small_files();
    let id = world.create_with("kept", 2, &[("retention.ms", "-1")]);
    world.create("filler", 1);
    world.commit("tools", "kept", 1, 5);
    let given = world.producer_id().producer_id;
    fill(&world, "filler");
    world.delete("filler");
    world.append("kept", 1, batch(NOW_MS, &["a", "b"]));
    let retired = |world: &World| world.state.storage.metrics().files_retired;
    world.wait(retention::checkpoint(&world.state));
    assert!(retired(&world) > 0, "nothing was given back");
    world.append("kept", 1, batch(NOW_MS, &["c"]));

    let world = world.restarted();
    assert_eq!(world.state.catalog.all().len(), 1);
    assert_eq!(world.state.catalog.by_name("kept").unwrap().id, id);
    assert_eq!(base_offsets(world.fetch("kept", 1, 0).records.as_ref()), [0, 2]);
    assert_eq!(world.committed("tools", "kept", 1).committed_offset, 5);
    assert!(world.producer_id().producer_id > given);
}

/// A record appended between the taking of the snapshot and its writing would be forgotten with
/// the files: an acknowledged topic or commit, or a deletion, would be undone by the next start.
#[test]
fn changes_during_freeing_of_files_are_kept() {
    let world = of_small_files();
    let fillers = ["first", "second", "third", "fourth"];
    for name in fillers {
        world.create(name, 1);
        fill(&world, name);
    }
    // So many that writing the snapshot takes a while.
    let mut expected: Vec<_> = (0..2_000).map(|index| format!("base-{index}")).collect();
    for name in &expected {
        create_quietly(&world.state, name);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let changes = {
        let (state, stop) = (Arc::clone(&world.state), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut names = Vec::new();
            while !stop.load(Ordering::Acquire) {
                let gone = create_quietly(&state, &format!("short-lived-{}", names.len()));
                let name = format!("topic-{}", names.len());
                create_quietly(&state, &name);
                let stores = (&state.storage, &state.logs);
                state.catalog.delete(stores, &state.groups, gone).unwrap();
                names.push(name);
            }
            names
        })
    };
    for name in fillers {
        world.delete(name);
        world.wait(retention::checkpoint(&world.state));
    }
    stop.store(true, Ordering::Release);
    expected.extend(changes.join().unwrap());
    assert!(world.state.storage.metrics().files_retired > 0, "nothing was given back");
    let world = world.restarted();
    let found = world.state.catalog.all();
    let found: BTreeSet<_> = found.iter().map(|topic| topic.name.to_string()).collect();
    let expected = expected.into_iter().collect();
    let differing: Vec<_> = found.symmetric_difference(&expected).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

/// Creates a topic without waiting for the disk.
fn create_quietly(state: &State, name: &str) -> Uuid {
    state.catalog.create(&state.storage, name, 1, TopicOverrides::new()).unwrap().0.id
}
