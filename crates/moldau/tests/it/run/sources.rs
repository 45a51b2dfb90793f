//! What a worker reads beside named topics, and how: by pattern, partition and segment, in
//! transactions, and with retry topics.

use std::collections::{BTreeSet, HashMap};

use crate::traffic::block_on;

use super::HANDLER;
use super::site::{Seen, Site};

const COMMAND: &str = "handler: {command: [python3, handler.py]}";

fn values(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|it| it.value.as_str()).collect()
}

#[test]
fn a_pattern_reads_the_topics_that_match() {
    block_on(async {
        let site = Site::new(&[("in-a", 1), ("in-b", 1), ("other-in-a", 1), ("out", 1)]).await;
        site.write("handler.py", HANDLER);
        site.produce("in-a", &[(None, "a")]).await;
        site.produce("in-b", &[(None, "b")]).await;
        site.produce("other-in-a", &[(None, "c")]).await;
        let routes = format!("workers: auto\nroutes:\n  - pattern: 'in-.*'\n    {COMMAND}\n");
        let worker = site.worker(&site.config("worker.yaml", &routes));
        let out = site.read("out", |seen| seen.len() >= 2).await;
        let said = worker.terminate();
        assert_eq!(BTreeSet::from_iter(values(&out)), BTreeSet::from(["a", "b"]), "{said}");
        assert!(said.contains("in-.*: 2 handled"), "{said}");
        assert_eq!(site.committed("other-in-a").await, 0);
    });
}

#[test]
fn partitions_that_a_file_names_are_read_and_no_others() {
    block_on(async {
        let site = Site::new(&[("in", 3), ("out", 1)]).await;
        site.write("handler.py", HANDLER);
        let keys: Vec<String> = (0..30).map(|number| format!("k{number}")).collect();
        let records: Vec<_> = keys.iter().map(|key| (Some(key.as_str()), key.as_str())).collect();
        site.produce("in", &records).await;
        let is_read = |key: &&str| moldau_client::partition_for_key(key.as_bytes(), 3) != 1;
        let expected: BTreeSet<_> = keys.iter().map(String::as_str).filter(is_read).collect();
        let routes = format!("routes:\n  - topics: in\n    partitions: [0, 2]\n    {COMMAND}\n");
        let worker = site.worker(&site.config("worker.yaml", &routes));
        let out = site.read("out", |seen| seen.len() >= expected.len()).await;
        worker.terminate();
        assert_eq!(BTreeSet::from_iter(values(&out)), expected);
        assert_eq!(site.committed("in").await, i64::try_from(expected.len()).unwrap());
    });
}

#[test]
fn segments_share_the_keys_of_a_partition() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("handler.py", HANDLER);
        let keys: Vec<String> = (0..40).map(|number| format!("k{number}")).collect();
        let records: Vec<_> = keys.iter().map(|key| (Some(key.as_str()), key.as_str())).collect();
        site.produce("in", &records).await;
        let workers = ["0", "1"].map(|index| {
            let name = format!(
                "handler: {{command: [python3, handler.py], environment: {{NAME: s{index}}}}}"
            );
            let rest = format!(
                "segment: {{index: {index}, count: 2}}\nroutes:\n  - topics: in\n    {name}\n"
            );
            site.worker(&site.config(&format!("worker-{index}.yaml"), &rest))
        });
        let out = site.read("out", |seen| seen.len() >= 40).await;
        for worker in workers {
            worker.terminate();
        }
        let mut by: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for seen in &out {
            by.entry(&seen.headers["by"]).or_default().insert(&seen.value);
        }
        assert_eq!((by.len(), out.len()), (2, 40), "{by:?}");
        assert!(by["s0"].is_disjoint(&by["s1"]));
        assert_eq!(site.committed_by("workers-0", "in").await, 40);
        assert_eq!(site.committed_by("workers-1", "in").await, 40);
    });
}

/// A worker that is killed between two transactions leaves no output of records that its
/// successor handles again. That begins when the killed member's session is over.
#[test]
fn a_transactional_worker_that_is_killed_produces_each_record_once() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("handler.py", HANDLER);
        let numbers: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let records: Vec<_> = numbers.iter().map(|number| (None, number.as_str())).collect();
        let routes = format!(
            "transactional.id: worker-0\nauto.commit.interval.ms: 20\n\
             session.timeout.ms: 6000\nroutes:\n  - topics: in\n    {COMMAND}\n"
        );
        let config = site.config("worker.yaml", &routes);
        let (first, second) = records.split_at(100);
        let worker = site.worker(&config);
        site.produce("in", first).await;
        site.read("out", |seen| seen.len() >= 20).await;
        worker.kill();
        site.produce("in", second).await;
        let worker = site.worker(&config);
        let out = site.read_committed("out", |seen| seen.len() >= 200).await;
        let said = worker.terminate();
        assert_eq!(values(&out), numbers, "{said}");
        assert_eq!(site.committed("in").await, 200);
    });
}

#[test]
fn failed_records_wait_in_retry_topics() {
    block_on(async {
        let topics = [("in", 1), ("out", 1), ("dead", 1), ("in.retry-1", 1), ("in.retry-2", 1)];
        let site = Site::new(&topics).await;
        site.write("handler.py", HANDLER);
        let records = ["later", "a", "fail", "b"].map(|value| (None, value));
        site.produce("in", &records).await;
        let routes = format!(
            "routes:\n  - topics: in\n    retry_topics: {{name: in.retry, delays_ms: [1, 2]}}\n    \
             dead_letters: dead\n    {COMMAND}\n"
        );
        let worker = site.worker(&site.config("worker.yaml", &routes));
        let out = site.read("out", |seen| seen.len() >= 3).await;
        let dead = site.read("dead", |seen| !seen.is_empty()).await;
        let said = worker.terminate();
        assert_eq!(out.len(), 3, "{said}");
        assert_eq!(BTreeSet::from_iter(values(&out)), BTreeSet::from(["a", "b", "later"]));
        assert_eq!(
            (values(&dead), dead[0].headers["dead-letter-attempts"].as_str()),
            (vec!["fail"], "3")
        );
        let waited = site.read("in.retry-2", |seen| seen.len() >= 2).await;
        assert_eq!(values(&waited), ["later", "fail"]);
    });
}
