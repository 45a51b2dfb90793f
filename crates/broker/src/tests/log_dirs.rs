//! What the one log directory is said to hold.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::DescribeLogDirsRequest;
use moldau_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use moldau_protocol::messages::describe_log_dirs_response::DescribeLogDirsResult;

use super::world::{NOW_MS, World, batch, code};

fn ask(world: &World, topics: Option<&[(&str, &[i32])]>) -> DescribeLogDirsResult {
    let topics = topics.map(|topics| {
        let asked = topics.iter().map(|(topic, partitions)| DescribableLogDirTopic {
            topic: (*topic).to_owned(),
            partitions: partitions.to_vec(),
            ..DescribableLogDirTopic::default()
        });
        asked.collect()
    });
    let mut response = world.ask(&DescribeLogDirsRequest { topics, ..Default::default() });
    assert_eq!((code(response.error_code), response.results.len()), (ErrorCode::None, 1));
    response.results.remove(0)
}

/// Topic, partition and size of what is listed.
fn listed(result: &DescribeLogDirsResult) -> Vec<(&str, i32, i64)> {
    let partitions = result.topics.iter().flat_map(|topic| {
        let name = topic.name.as_str();
        topic.partitions.iter().map(move |it| (name, it.partition_index, it.partition_size))
    });
    partitions.collect()
}

#[test]
fn the_directory_holds_every_partition_with_the_bytes_of_its_batches() {
    let world = World::new();
    world.create("orders", 3);
    world.create("silent", 1);
    let records = batch(NOW_MS, &["a"]);
    let size = i64::try_from(records.len()).unwrap();
    world.append("orders", 1, records.clone());
    world.append("orders", 1, records);
    let all = ask(&world, None);
    let wanted = [("orders", 0, 0), ("orders", 1, 2 * size), ("orders", 2, 0), ("silent", 0, 0)];
    assert_eq!(listed(&all), wanted);
    let lags = all.topics.iter().flat_map(|topic| &topic.partitions);
    assert!(lags.clone().all(|it| it.offset_lag == 0 && !it.is_future_key));
}

#[test]
fn the_directory_has_a_name_and_the_size_of_its_disk() {
    let world = World::new();
    let result = ask(&world, None);
    assert_eq!(result.log_dir, world.state.config.data_dir.display().to_string());
    assert!(result.total_bytes >= result.usable_bytes && result.usable_bytes > 0);
    assert_eq!((code(result.error_code), result.is_cordoned), (ErrorCode::None, false));
}

#[test]
fn only_requested_existing_partitions_are_listed() {
    let world = World::new();
    world.create("orders", 3);
    world.create("silent", 1);
    let asked = ask(&world, Some(&[("orders", &[2, 3, -1]), ("absent", &[0])]));
    assert_eq!(listed(&asked), [("orders", 2, 0)]);
    assert!(listed(&ask(&world, Some(&[]))).is_empty());
}

#[test]
fn only_written_partitions_of_large_topics_are_listed() {
    let world = World::new();
    world.create("many", 100_000);
    world.create("few", 1);
    world.append("many", 77_777, batch(NOW_MS, &["a"]));
    let all = ask(&world, None);
    assert!(matches!(listed(&all)[..], [("many", 77_777, 1..)]));
    assert_eq!(listed(&ask(&world, Some(&[("many", &[5])]))), [("many", 5, 0)]);
    assert_eq!(world.state.storage.logs().len(), 1);
}
