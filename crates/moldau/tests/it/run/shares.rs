//! Workers of a share group, and the keys that such a worker refuses.

use std::collections::BTreeSet;

use moldau_client::{Admin, ConfigResource};

use super::HANDLER;
use super::site::Site;
use crate::traffic::block_on;
use crate::world::run;

/// A site whose share group begins at the first record.
async fn site(topics: &[(&str, i32)]) -> Site {
    let site = Site::new(topics).await;
    site.write("handler.py", HANDLER);
    let group = ConfigResource::Group("workers".to_owned());
    let earliest = ("share.auto.offset.reset".to_owned(), Some("earliest".to_owned()));
    Admin::new(&site.cluster).alter_configs(&group, &[earliest]).await.unwrap();
    site
}

#[test]
fn workers_of_a_share_group_handle_one_partition_side_by_side() {
    block_on(async {
        let site = site(&[("in", 1), ("out", 1)]).await;
        let workers = ["0", "1"].map(|name| {
            let rest = format!(
                "group.type: share\nworkers: 1\nroutes:\n  - topics: in\n    handler: \
                 {{command: [python3, handler.py], environment: {{NAME: s{name}}}}}\n"
            );
            site.worker(&site.config(&format!("worker-{name}.yaml"), &rest))
        });
        // One of them is busy with the first record for ever, and may have fetched another; no
        // record is in a batch with it.
        for value in ["hang", "a", "b", "c", "d", "e"] {
            site.produce("in", &[(None, value)]).await;
        }
        let out = site.read("out", |seen| seen.len() >= 4).await;
        let described = site.describe_group();
        assert_eq!(described["state"], "Stable", "{described}");
        assert_eq!(described["members"].as_array().unwrap().len(), 2, "{described}");
        assert_eq!(described["offsets"][0]["topic"], "in", "{described}");
        for worker in workers {
            worker.kill();
        }
        let by: BTreeSet<_> = out.iter().map(|seen| seen.headers["by"].as_str()).collect();
        assert_eq!(by.len(), 1, "{out:?}");
    });
}

#[test]
fn a_share_group_gives_up_each_poison_record_once_and_handles_all_others() {
    block_on(async {
        let site = site(&[("in", 2), ("out", 1), ("dead", 1)]).await;
        let poison = ["kill", "exit", "garbage", "never", "fail"];
        let good = ["a", "b", "later", "c", "d", "e"];
        let values = poison.iter().zip(&good).flat_map(|(poison, good)| [*poison, *good]);
        let values: Vec<_> = values.chain(["e"]).map(|value| (Some(value), value)).collect();
        site.produce("in", &values).await;
        let rest = "group.type: share\nroutes:\n  - topics: in\n    dead_letters: dead\n    \
                    retry: {attempts_max: 3, pause_ms: 1}\n    handler: {command: [python3, \
                    handler.py], processes: 2, crashes_max: 2}\n";
        let config = site.config("worker.yaml", rest);
        let mut worker = site.worker(&config);
        worker.wait_for_line("share group workers at");
        worker.wait_for_line("in in any order");
        let out = site.values("out", good.len()).await;
        let dead = site.read("dead", |seen| seen.len() >= poison.len()).await;
        let said = worker.terminate();
        assert_eq!(out.iter().map(String::as_str).collect::<BTreeSet<_>>(), good.into(), "{said}");
        assert_eq!((out.len(), dead.len()), (good.len(), poison.len()), "{said}");
        let attempts = |value: &str| {
            let letter = dead.iter().find(|it| it.value == value).expect("it is a dead letter");
            letter.headers["dead-letter-attempts"].clone()
        };
        assert_eq!(attempts("fail"), "3", "{said}");
        assert_eq!(attempts("never"), "1", "{said}");
        assert!(said.contains("in: 6 handled, ") && said.contains(" 5 given up"), "{said}");
        // All are done.
        site.produce("in", &[(None, "another")]).await;
        let worker = site.worker(&config);
        site.read("out", |seen| seen.iter().any(|it| it.value == "another")).await;
        let said = worker.terminate();
        assert!(said.contains("in: 1 handled, 0 retries, 0 given up"), "{said}");
    });
}

#[test]
fn keys_that_do_not_go_with_a_share_group_are_refused() {
    let of_group = |key: &str| format!("is the group's own: set {key} with kafka-configs");
    let not_shared = "does not go with group.type: share";
    let of_file = [
        ("group.protocol: consumer", not_shared.to_owned()),
        ("group.instance.id: a", not_shared.to_owned()),
        ("auto.offset.reset: latest", of_group("share.auto.offset.reset")),
        ("isolation.level: read_committed", of_group("share.isolation.level")),
        ("session.timeout.ms: 45000", of_group("share.session.timeout.ms")),
        ("heartbeat.interval.ms: 3000", of_group("share.heartbeat.interval.ms")),
        ("auto.commit.interval.ms: 10", not_shared.to_owned()),
        ("max.poll.interval.ms: 10", not_shared.to_owned()),
        ("max.partition.fetch.bytes: 10", not_shared.to_owned()),
        ("transactional.id: a", not_shared.to_owned()),
        ("segment: {index: 0, count: 2}", not_shared.to_owned()),
        ("workers: auto", "a share group needs a number".to_owned()),
    ];
    let of_route = [
        ("topics: a\n    partitions: [0]", not_shared.to_owned()),
        ("topics: a\n    order: key", "a share group keeps none".to_owned()),
        ("topics: a\n    order: partition", "a share group keeps none".to_owned()),
        ("topics: a\n    batch_records_max: 2", not_shared.to_owned()),
        ("topics: a\n    retry_topics: {name: a, delays_ms: [1]}", not_shared.to_owned()),
        ("pattern: a.*", not_shared.to_owned()),
    ];
    let dir = tempfile::tempdir().unwrap();
    let check = |key: &str, route: &str| {
        let text = format!(
            "bootstrap.servers: 127.0.0.1:1\ngroup.id: g\ngroup.type: share\n{key}\nroutes:\n  \
             - {route}\n    handler: {{command: [cat]}}\n"
        );
        let file = dir.path().join("worker.yaml");
        std::fs::write(&file, text).unwrap();
        let output = run(["run", "--check", file.to_str().unwrap()]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let name =
        |key: &str| key.rsplit("\n    ").next().unwrap().split(':').next().unwrap().to_owned();
    for (key, why) in of_file {
        let (code, _, stderr) = check(key, "topics: a");
        assert_eq!(code, Some(1), "{key}: {stderr}");
        assert!(stderr.contains(&format!("{}: {why}", name(key))), "{key}: {stderr}");
    }
    for (route, why) in of_route {
        let (code, _, stderr) = check("", route);
        assert_eq!(code, Some(1), "{route}: {stderr}");
        assert!(stderr.contains(&format!("{}: {why}", name(route))), "{route}: {stderr}");
    }
    let (code, stdout, stderr) = check("drain_timeout_ms: 400000", "topics: a\n    order: none");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("a in any order -> 1 process: cat"), "{stdout}");
}
