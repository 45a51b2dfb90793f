//! `moldau run`: handlers in other languages that crash, hang, and are stopped.

mod endings;
mod examples;
mod services;
mod shares;
mod site;
mod sources;

use std::collections::{HashMap, HashSet};

use crate::traffic::block_on;
use crate::world::run;
use site::Site;

/// A handler that does what records say.
const HANDLER: &str = include_str!("run/handler.py");

#[test]
fn poison_records_become_dead_letters_and_all_others_are_handled() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1), ("dead", 1)]).await;
        site.write("handler.py", HANDLER);
        let poison = ["kill", "exit", "hang", "garbage", "long", "unknown", "never", "fail"];
        let good = ["a", "b", "later", "c", "d", "e", "f", "g", "h"];
        let values = poison.iter().zip(&good).flat_map(|(poison, good)| [*poison, *good]);
        let values: Vec<_> = values.chain(["h"]).map(|value| (None, value)).collect();
        site.produce("in", &values).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    order: none\n    dead_letters: dead\n    \
             retry: {attempts_max: 3, pause_ms: 1}\n    handler:\n      \
             command: [python3, handler.py]\n      processes: 2\n      timeout_ms: 1000\n      \
             crashes_max: 2\n",
        );
        let worker = site.worker(&config);
        let out = site.values("out", good.len()).await;
        let dead = site.read("dead", |seen| seen.len() >= poison.len()).await;
        let said = worker.terminate();
        let handled: HashSet<_> = out.iter().map(String::as_str).collect();
        assert_eq!(handled, HashSet::from(good), "{said}");
        let causes: HashMap<&str, (&str, &str)> = dead
            .iter()
            .map(|it| {
                let header = |name: &str| it.headers[name].as_str();
                (it.value.as_str(), (header("dead-letter-attempts"), header("dead-letter-cause")))
            })
            .collect();
        let hint = "stdout is for replies, stderr for messages, 2 times";
        let problem = "expected value at line 1 column 1";
        let garbage = format!("wrote \"hello\", a reply that is not valid: {problem}; {hint}");
        let expected = [
            ("kill", "2", "the handler exited with signal 9, 2 times"),
            ("exit", "2", "the handler exited with status 3, 2 times"),
            ("hang", "3", "took longer than 1s"),
            ("garbage", "2", &format!("the handler {garbage}")),
            ("long", "2", "the handler wrote a reply of more than 16777216 bytes, 2 times"),
            ("unknown", "2", "the handler answered request 999999, which it was not sent, 2 times"),
            ("never", "1", "it never works"),
            ("fail", "3", "it fails 3"),
        ];
        for (value, attempts, cause) in expected {
            assert_eq!(causes[value], (attempts, cause), "{said}");
        }
        assert_eq!(dead.len(), poison.len(), "{said}");
        assert!(said.contains("in: 9 handled, "), "{said}");
        assert!(said.contains(" 8 given up"), "{said}");
        assert_eq!(site.committed("in").await, 17);
    });
}

#[test]
fn a_batch_with_poison_is_handled_record_by_record() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1), ("dead", 1)]).await;
        site.write("handler.py", HANDLER);
        let values = ["a", "b", "kill", "c", "never", "d"].map(|value| (None, value));
        site.produce("in", &values).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    batch_records_max: 10\n    dead_letters: dead\n    \
             retry: {attempts_max: 4, pause_ms: 1}\n    handler:\n      \
             command: [python3, handler.py]\n      crashes_max: 2\n",
        );
        let worker = site.worker(&config);
        let dead = site.read("dead", |seen| seen.len() >= 2).await;
        let out: HashSet<String> = site.values("out", 4).await.into_iter().collect();
        worker.terminate();
        assert_eq!(out, HashSet::from(["a", "b", "c", "d"].map(str::to_owned)));
        let dead: Vec<_> = dead.iter().map(|it| it.value.as_str()).collect();
        assert_eq!(dead, ["kill", "never"]);
        assert_eq!(site.committed("in").await, 6);
    });
}

/// Each key has its order, over all processes and with a handler that answers in any order.
#[test]
fn keys_keep_their_order_over_several_processes() {
    block_on(async {
        let site = Site::new(&[("in", 2), ("out", 2)]).await;
        site.write("handler.py", HANDLER);
        let records: Vec<_> = (0..400).map(|n| (format!("k{}", n % 7), n.to_string())).collect();
        let records: Vec<_> =
            records.iter().map(|(key, value)| (Some(key.as_str()), value.as_str())).collect();
        site.produce("in", &records).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: [in]\n    order: key\n    handler: \
             {command: [python3, handler.py], processes: 3, in_flight_max: 2}\n",
        );
        let worker = site.worker(&config);
        let out = site.read("out", |seen| seen.len() >= 400).await;
        worker.terminate();
        let mut last: HashMap<&str, u32> = HashMap::new();
        for record in &out {
            let number = record.value.parse().unwrap();
            let before = last.insert(record.key.as_deref().unwrap(), number);
            assert!(before.is_none_or(|before| before < number), "{record:?} after {before:?}");
        }
        let processes: HashSet<_> = out.iter().map(|it| it.headers["process"].as_str()).collect();
        assert_eq!(processes, HashSet::from(["0", "1", "2"]));
    });
}

/// The window is full before any request is answered, and then never fuller.
#[test]
fn a_process_has_as_many_requests_as_its_window() {
    const WINDOW: &str = r#"
import json, sys
print('{"moldau":1}', flush=True)
held = []
for line in sys.stdin:
    held.append(json.loads(line))
    if len(held) > 5:
        sys.exit(9)
    if len(held) == 5:
        for record in reversed(held):
            produce = [{"topic": "out", "value": record["value"]}]
            print(json.dumps({"id": record["id"], "ok": True, "produce": produce}))
        sys.stdout.flush()
        held = []
"#;
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("window.py", WINDOW);
        let values: Vec<_> = (0..100).map(|n: i32| n.to_string()).collect();
        let values: Vec<_> = values.iter().map(|value| (None, value.as_str())).collect();
        site.produce("in", &values).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    order: none\n    handler: \
             {command: [python3, window.py], in_flight_max: 5}\n",
        );
        let worker = site.worker(&config);
        site.values("out", 100).await;
        let said = worker.terminate();
        assert!(said.contains("in: 100 handled, 0 retries, 0 given up"), "{said}");
    });
}

#[test]
fn undecodable_payloads_do_not_keep_others_of_a_batch_from_being_handled() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1), ("dead", 1)]).await;
        site.write("handler.py", HANDLER);
        site.produce("in", &[(None, "{\"a\":\n1}"), (None, "{"), (None, "[2]")]).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    batch_records_max: 10\n    dead_letters: dead\n    \
             handler: {command: [python3, handler.py], value: json}\n",
        );
        let worker = site.worker(&config);
        let out = site.values("out", 2).await;
        let dead = site.read("dead", |seen| !seen.is_empty()).await;
        worker.terminate();
        assert_eq!(out, ["{\"a\": 1}", "[2]"]);
        let cause = &dead[0].headers["dead-letter-cause"];
        assert!(
            cause.starts_with("cannot be decoded: the value at offset 1 is not JSON"),
            "{cause}"
        );
    });
}

#[test]
fn length_prefixed_frames_carry_any_bytes() {
    const FRAMES: &str = r#"
import json, struct, sys
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

def write(document, payloads=b""):
    text = json.dumps(document).encode()
    stdout.write(struct.pack(">II", 4 + len(text) + len(payloads), len(text)) + text + payloads)
    stdout.flush()

write({"moldau": 1})
while head := stdin.read(8):
    total, length = struct.unpack(">II", head)
    record = json.loads(stdin.read(length))
    payloads = stdin.read(total - 4 - length)
    key, value = payloads[:record["key"]], payloads[record["key"]:]
    assert len(value) == record["value"] and record["headers"] == []
    produce = [{"topic": "out", "key": len(value), "value": len(key)}]
    write({"id": record["id"], "ok": True, "produce": produce}, value + key)
"#;
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("frames.py", FRAMES);
        site.produce("in", &[(Some("k\n\u{0}"), "\u{1}\r\n\u{7f}")]).await;
        let config = site.config(
            "worker.yaml",
            "routes:\n  - topics: in\n    handler: \
             {command: [python3, frames.py], protocol: length-prefixed}\n",
        );
        let worker = site.worker(&config);
        let out = site.read("out", |seen| !seen.is_empty()).await;
        worker.terminate();
        assert_eq!(out[0].key.as_deref(), Some("\u{1}\r\n\u{7f}"));
        assert_eq!(out[0].value, "k\n\u{0}");
    });
}

#[test]
fn a_worker_that_cannot_start_says_why() {
    block_on(async {
        let site = Site::new(&[("in", 1)]).await;
        site.write("handler.py", HANDLER);
        site.write("silent.py", "import sys\nsys.exit('no database')");
        let routes = |rest: &str| format!("routes:\n  - topics: in\n    {rest}\n");
        for (rest, problem) in [
            (
                "handler: {command: [no-such-program]}",
                "handler process 0 of in cannot be started: no-such-program: No such file",
            ),
            (
                "handler: {command: [python3, silent.py]}",
                "handler process 0 of in exited with status 1 before it wrote {\"moldau\":1}",
            ),
            (
                "handler: {command: [echo, hello]}",
                "handler process 0 of in wrote \"hello\" before {\"moldau\":1}; stdout is for",
            ),
            (
                "handler: {command: [sleep, '1000'], start_timeout_ms: 100}",
                "handler process 0 of in did not write {\"moldau\":1} within 100ms",
            ),
            (
                "dead_letters: nowhere\n    handler: {command: [python3, handler.py]}",
                "the topic nowhere for dead letters of in does not exist",
            ),
        ] {
            let config = site.config("worker.yaml", &routes(rest));
            let (status, said) = site.worker(&config).ended();
            assert_eq!(status.code(), Some(1), "{said}");
            assert!(said.contains(problem), "{said}");
        }
    });
}

/// The summary counted each failure as a record that was given up, though nothing was.
#[test]
fn without_dead_letters_no_record_is_given_up() {
    block_on(async {
        let site = Site::new(&[("in", 1)]).await;
        site.write("handler.py", HANDLER);
        site.produce("in", &[(None, "never")]).await;
        let rest = "routes:\n  - topics: in\n    handler: {command: [python3, handler.py]}\n";
        let mut worker = site.worker(&site.config("worker.yaml", rest));
        let logged = worker.wait_for_line("failed; tried again");
        assert!(logged.contains("record=in-0@0 records=1 attempt=1"), "{logged}");
        let said = worker.terminate();
        assert!(said.contains("in: 0 handled, ") && said.ends_with(", 0 given up"), "{said}");
        assert!(!said.contains(" 0 retries"), "{said}");
    });
}

#[test]
fn a_process_that_closes_its_stdin_is_named_as_such() {
    const DEAF: &str = r#"
import os, time
os.close(0)
print('{"moldau":1}', flush=True)
time.sleep(10000)
"#;
    block_on(async {
        let site = Site::new(&[("in", 1)]).await;
        site.write("deaf.py", DEAF);
        site.produce("in", &[(None, "a")]).await;
        let rest = "routes:\n  - topics: in\n    handler: \
                    {command: [python3, deaf.py], crashes_max: 1}\n";
        let mut worker = site.worker(&site.config("worker.yaml", rest));
        worker.wait_for_line("handler process 0 of in closed its stdin; it is started again");
        worker.terminate();
    });
}

/// What follows on the topics of a route, and what is said of it.
const FAULTS: &[(&str, &str)] = &[
    ("handler: {}", "FILE:5:14: the key \"command\" is missing, or url"),
    ("handler: {command: []}", "FILE:5:24: command: names no program"),
    ("handler: {comand: [a]}", "unknown key \"comand\"; did you mean \"command\"?"),
    ("handler: {url: 'http://u:p@h/'}", "a user and password belong into authorization_file"),
    ("handler: {url: 'http://h/', processes: 2}", "processes: needs command"),
    ("handler: {command: [a], url: 'http://h/'}", "url: cannot be combined with command"),
    ("handler: {command: [a], processes: 0}", "processes: must be from 1 to 1024"),
    (
        "handler: {command: [a], protocol: length-prefixed, value: json}",
        "value: the protocol length-prefixed has bytes, not text",
    ),
    (
        "dead_letters: in\n    handler: {command: [a]}",
        "dead_letters: must be another topic than those of the route",
    ),
    (
        "handler: {command: [a]}\n  - topics: [other, in]\n    handler: {command: [a]}",
        "topics: \"in\" is in another route",
    ),
    ("pattern: a.*\n    handler: {command: [a]}", "pattern: a route has topics or a pattern"),
    (
        "handler: {command: [a]}\n  - pattern: 'or(ders'\n    handler: {command: [a]}",
        "6:14: pattern: \"or(ders\" is not a regular expression: unclosed group",
    ),
    (
        "dead_letters: in/dead\n    handler: {command: [a]}",
        "5:19: dead_letters: \"in/dead\" is not a name of a topic",
    ),
    (
        "retry_topics: {name: 'in again', delays_ms: [1]}\n    handler: {command: [a]}",
        "retry_topics: \"in again-1\" is not a name of a topic",
    ),
    ("handler: {url: 'http://:80/'}", "url: \"http://:80/\" names no host"),
    ("partitions: [-1]\n    handler: {command: [a]}", "partitions: numbers from 0 on are needed"),
    (
        "partitions: [1]\n    handler: {command: [a]}\n  - pattern: a\n    \
         handler: {command: [a]}",
        "partitions: all routes of a process need them, or none",
    ),
    (
        "retry_topics: {name: r, delays_ms: []}\n    handler: {command: [a]}",
        "retry_topics: a name and at least one of delays_ms are needed",
    ),
    ("handler: {command: [a]}\nworkers: many", "must be a number or auto"),
    ("handler: {command: [a]}\nworkers: 0", "workers: must be at least 1"),
    ("handler: {command: [a]}\ntransactional.id: ''", "transactional.id: is empty"),
    (
        "handler: {command: [a]}\nsegment: {index: 2, count: 2}",
        "segment: index must be less than count",
    ),
    ("handler: {command: [a]}\nsecurity.protocol: SSL", "the key \"security.protocol\" is called"),
];

#[test]
fn a_file_is_checked_without_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("worker.yaml");
    let head = "bootstrap.servers: localhost:1\ngroup.id: g\nroutes:\n  - topics: in\n    ";
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let output = run(["run", "--check", path]);
        let checked = run(["config", "check", path]);
        assert_eq!(output.status.code(), checked.status.code());
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap().replace(path, "FILE"))
    };
    let good = "order: key\n    retry: {attempts_max: 5}\n    dead_letters: in.dead\n    \
                handler: {command: [python3, handler.py], processes: 2}";
    let said = "FILE: a valid worker configuration\nin in order of keys, up to 5 attempts, dead \
                letters to in.dead -> 2 processes: python3 handler.py\n";
    assert_eq!(check(&format!("{head}{good}")), (Some(0), said.to_owned()));
    for (rest, problem) in FAULTS.iter().copied() {
        let (code, said) = check(&format!("{head}{rest}"));
        assert_eq!(code, Some(1), "{rest}: {said}");
        assert!(said.contains(problem), "{rest}: {said}");
        assert!(!said.contains("u:p"), "{said}");
    }
}
