//! Workers that are killed, stopped, and joined by others.

use std::collections::HashSet;

use super::HANDLER;
use super::site::{Seen, Site};
use crate::traffic::block_on;

/// Records with their numbers as values, over some keys.
fn numbered(range: std::ops::Range<u32>) -> Vec<(String, String)> {
    range.map(|n| (format!("k{}", n % 13), n.to_string())).collect()
}

async fn produce(site: &Site, range: std::ops::Range<u32>) {
    let records = numbered(range);
    let records: Vec<_> =
        records.iter().map(|(key, value)| (Some(key.as_str()), value.as_str())).collect();
    site.produce("in", &records).await;
}

/// Whether a process runs.
fn is_running(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn ids(site: &Site) -> Vec<String> {
    let text = std::fs::read_to_string(site.write("unused", "").with_file_name("pids")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Waits for the end of processes.
fn wait_for_end(ids: &[String]) {
    while ids.iter().any(|id| is_running(id)) {
        std::thread::yield_now();
    }
}

#[test]
fn nothing_is_lost_when_a_worker_is_killed() {
    block_on(async {
        let site = Site::new(&[("in", 2), ("out", 2)]).await;
        site.write("handler.py", HANDLER);
        produce(&site, 0..2000).await;
        let config = site.config(
            "worker.yaml",
            "group.instance.id: one\nauto.commit.interval.ms: 50\nroutes:\n  - topics: in\n    \
             order: key\n    handler: {command: [python3, handler.py], processes: 2}\n",
        );
        for seen in [200, 700, 1200] {
            let worker = site.worker(&config);
            site.values("out", seen).await;
            worker.kill();
        }
        let worker = site.worker(&config);
        let all = site.values("out", 2000).await;
        worker.terminate();
        let distinct: HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), 2000);
        assert_eq!(site.committed("in").await, 2000);
        // Handlers end by themselves when the worker is gone.
        wait_for_end(&ids(&site));
    });
}

/// A handler that waits for something else than its stdin does not find that closed, and what it
/// has started knows nothing of `moldau run`.
#[test]
fn handlers_that_hang_end_with_a_worker_that_is_killed() {
    const HANGING: &str = r#"
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
started = subprocess.Popen(["sleep", "1000"])
open("pids", "a").write(f"{os.getpid()}\n{started.pid}\n")
print('{"moldau":1}', flush=True)
sys.stdin.readline()
print("hangs", file=sys.stderr, flush=True)
while True:
    time.sleep(1)
"#;
    block_on(async {
        let site = Site::new(&[("in", 1)]).await;
        site.write("hanging.py", HANGING);
        site.produce("in", &[(None, "x")]).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    handler: \
             {command: [python3, hanging.py], stop_timeout_ms: 50}\n",
        );
        let mut worker = site.worker(&config);
        worker.wait_for_line("hangs");
        assert!(ids(&site).iter().all(|id| is_running(id)));
        worker.kill();
        wait_for_end(&ids(&site));
    });
}

#[test]
fn two_workers_share_partitions_and_one_takes_over() {
    block_on(async {
        let site = Site::new(&[("in", 4), ("out", 1)]).await;
        site.write("handler.py", HANDLER);
        let config = |name: &str| {
            let rest = format!(
                "group.protocol: consumer\nroutes:\n  - topics: in\n    order: key\n    \
                 handler:\n      command: [python3, handler.py]\n      \
                 environment: {{NAME: {name}}}\n"
            );
            site.config(&format!("{name}.yaml"), &rest)
        };
        let by = |seen: &[Seen]| -> HashSet<String> {
            seen.iter().map(|it| it.headers["by"].clone()).collect()
        };
        let mut first = site.worker(&config("first"));
        first.wait_for_line("runs until");
        let second = site.worker(&config("second"));
        let mut next = 0;
        // Until the second has its partitions.
        while by(&site.read("out", |seen| distinct(seen) >= next).await).len() < 2 {
            let from = u32::try_from(next).unwrap();
            produce(&site, from..from + 50).await;
            next += 50;
        }
        let described = site.describe_group();
        assert_eq!(described["members"].as_array().unwrap().len(), 2, "{described}");
        let said = first.terminate();
        assert!(said.contains(" handled, 0 retries, 0 given up"), "{said}");
        let from = u32::try_from(next).unwrap();
        produce(&site, from..from + 500).await;
        let all = site.read("out", |seen| distinct(seen) >= next + 500).await;
        second.terminate();
        assert_eq!(all.len(), next + 500, "a graceful end repeats nothing");
        assert_eq!(site.committed("in").await, i64::from(from) + 500);
    });
}

fn distinct(seen: &[Seen]) -> usize {
    seen.iter().map(|it| it.value.as_str()).collect::<HashSet<_>>().len()
}

#[test]
fn a_stop_waits_for_records_and_ends_stubborn_handlers() {
    const STUBBORN: &str = r#"
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pids", "a").write(f"{os.getpid()}\n")
print('{"moldau":1}', flush=True)
record = json.loads(sys.stdin.readline())
print("works", file=sys.stderr, flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
produce = [{"topic": "out", "value": record["value"]}]
print(json.dumps({"id": record["id"], "ok": True, "produce": produce}), flush=True)
while True:
    time.sleep(1)
"#;
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("stubborn.py", STUBBORN);
        site.produce("in", &[(None, "slow"), (None, "not reached")]).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    handler: \
             {command: [python3, stubborn.py], stop_timeout_ms: 100}\n",
        );
        let mut worker = site.worker(&config);
        assert_eq!(worker.wait_for_line("works"), "in[0]: works");
        let stopping = std::thread::spawn(move || worker.terminate());
        site.write("go", "");
        let said = stopping.join().unwrap();
        assert!(said.contains("in: 1 handled, 0 retries, 0 given up"), "{said}");
        assert_eq!(site.values("out", 1).await, ["slow"]);
        assert_eq!(site.committed("in").await, 1);
        wait_for_end(&ids(&site));
    });
}

#[test]
fn handlers_do_not_see_the_secrets_of_the_file() {
    const SECRETS: &str = r#"
import json, os, sys
print('{"moldau":1}', flush=True)
for line in sys.stdin:
    names = ["AUTHORIZATION", "MINE", "MOLDAU_PROCESS", "MOLDAU_PROTOCOL"]
    seen = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    files = [os.path.realpath(f"/proc/self/fd/{it}") for it in os.listdir("/proc/self/fd")]
    seen += [file for file in files if "socket:" in file or "secret" in file]
    assert "top secret" not in str(os.environ)
    produce = [{"topic": "out", "value": " ".join(seen)}]
    print(json.dumps({"id": json.loads(line)["id"], "ok": True, "produce": produce}), flush=True)
"#;
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("secrets.py", SECRETS);
        let secret = site.write("secret", "Bearer top secret\n");
        site.produce("in", &[(None, "x")]).await;
        let rest = format!(
            "routes:\n  - topics: in\n    handler: {{command: [python3, secrets.py], \
             environment: {{MINE: '1'}}}}\n  - topics: other\n    handler: {{url: \
             'http://127.0.0.1:1/', authorization_file: {}}}\n",
            secret.display()
        );
        let worker = site.worker(&site.config("worker.yaml", &rest));
        let seen = site.values("out", 1).await;
        let said = worker.terminate();
        assert_eq!(seen, ["MINE=1 MOLDAU_PROCESS=0 MOLDAU_PROTOCOL=1"]);
        assert!(!said.contains("top secret"), "{said}");
    });
}

#[test]
fn a_handler_that_stops_reading_is_killed_while_more_waits_for_it() {
    const DEAF: &str = r#"
import os, time
open("pids", "a").write(f"{os.getpid()}\n")
print('{"moldau":1}', flush=True)
while True:
    time.sleep(1)
"#;
    block_on(async {
        let site = Site::new(&[("in", 1)]).await;
        site.write("deaf.py", DEAF);
        // More than a pipe holds, and more than is gathered for one write.
        let value = "x".repeat(10_000);
        let records: Vec<_> = (0..60).map(|_| (None, value.as_str())).collect();
        site.produce("in", &records).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    order: none\n    handler: \
             {command: [python3, deaf.py], timeout_ms: 200, in_flight_max: 50}\n",
        );
        let mut worker = site.worker(&config);
        worker.wait_for_line("did not answer within 200ms and was killed");
        // It would wait for its handlers as long as they may take.
        worker.kill();
    });
}
