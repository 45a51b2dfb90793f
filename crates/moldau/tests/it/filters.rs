//! Policies from a file: planted mistakes, and a proxy with some of them before a broker.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use moldau_client::{
    Admin, Cluster, Delivery, Fetcher, FetcherOptions, Producer, ProducerOptions, Record, Start,
    TopicSpec,
};
use moldau_protocol::ErrorCode;
use moldau_records::Decompressor;

use crate::traffic::{block_on, connect, now_ms, soon};
use crate::world::{Process, moldau};

/// A batch unpacks to no more.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// A proxy's file with these filters.
fn file(upstream: &str, filters: &str) -> String {
    format!(
        "admin: 127.0.0.1:0\nvirtual_clusters:\n  - name: main\n    bootstrap: 127.0.0.1:0\n    \
         upstream: [\"{upstream}\"]\n    filters:\n{filters}"
    )
}

fn check(dir: &Path, filters: &str) -> Output {
    std::fs::write(dir.join("file.yaml"), file("k:1", filters)).unwrap();
    let mut command = Command::new(moldau());
    command.args(["config", "check", "file.yaml"]).current_dir(dir).output().unwrap()
}

fn write_files(dir: &Path) {
    std::fs::write(dir.join("order.schema.json"), r#"{"required": ["id"]}"#).unwrap();
    std::fs::write(dir.join("broken.schema.json"), r#"{"type": "colour"}"#).unwrap();
    std::fs::write(dir.join("mask.key"), "a secret of enough bytes\n").unwrap();
    std::fs::write(dir.join("short.key"), "short\n").unwrap();
}

#[test]
fn errors_of_policies_name_their_place() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let mut wrong = Vec::new();
    for (filter, said) in [
        (
            "header: {rules: [{topics: [a], on: both}, {topics: ['a*b'], on: produce}]}",
            "7:51: header: topic `a*b`: a `*` may stand at the end only",
        ),
        (
            "header: {rules: [{topics: [a], on: prodce}]}",
            "7:44: \"prodce\" is not one of produce, fetch, both; did you mean \"produce\"?",
        ),
        (
            "mask: {rules: [{topics: [a], fields: [$.a], masking: hash}]}",
            "7:24: mask: hashes need a key of 16 bytes at least",
        ),
        (
            "mask: {hash_key_file: short.key, rules: [{topics: [a], fields: [a], masking: hash}]}",
            "7:50: mask: hashes need a key of 16 bytes at least",
        ),
        (
            "mask: {rules: [{topics: [a], fields: ['$.a[x]'], masking: all}]}",
            "7:24: mask: field `$.a[x]`: ",
        ),
        (
            "record_validation: {rules: [{topics: [a], value: {content: {json_schema_file: \
             broken.schema.json}}}]}",
            "7:87: broken.schema.json: record_validation: schema of the value: ",
        ),
        (
            "record_validation: {rules: [{topics: []}]}",
            "7:37: record_validation: a rule names no topic; `*` stands for all",
        ),
        (
            "quota: {limits: [{entity: {topic: a}, produce_bytes_per_second: -5}]}",
            "7:73: produce_bytes_per_second: -5 is not a whole number, 0 or more; its unit is \
             bytes a second",
        ),
        (
            "quota: {limits: [{entity: {topic: a}, requests_per_second: 0}]}",
            "7:26: quota: a limit is 1 per second at least",
        ),
        ("quota: {limits: [{entity: {topic: a}}]}", "7:26: limits: sets no limit"),
        (
            "audit: {apis: [Produce, Fetsh]}",
            "7:33: apis: unknown API \"Fetsh\"; did you mean \"Fetch\"?",
        ),
        (
            "audit: {file: nowhere/audit.jsonl}",
            "7:23: nowhere/audit.jsonl: No such file or directory (os error 2)",
        ),
        (
            "chaos: {rules: [{apis: [Fetch], probability: 1.5, fault: disconnect}]}",
            "7:25: chaos: a probability lies between 0 and 1",
        ),
        (
            "chaos: {rules: [{apis: [Fetch], probability: 1, fault: {error: INVALID_RECORDS}}]}",
            "7:72: error: unknown error code \"INVALID_RECORDS\"; did you mean \"INVALID_RECORD\"?",
        ),
    ] {
        let output = check(dir.path(), &format!("      - {filter}\n"));
        let stderr = String::from_utf8(output.stderr).unwrap();
        let is_told = stderr.starts_with(&format!("moldau: file.yaml:{said}"));
        if !is_told || output.status.code() != Some(1) {
            wrong.push(format!("{filter}\n--- wanted\n{said}\n--- said\n{stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_documented_filter_value_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let page = include_str!("../../../../docs/configuration.md");
    let mut filters = String::new();
    for name in ["header", "mask", "record_validation", "quota", "chaos"] {
        let (_, section) = page.split_once(&format!("## `{name}`\n")).unwrap();
        let (_, example) = section.split_once("```yaml\nfilters:\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        filters.extend(example.lines().map(|line| format!("    {line}\n")));
    }
    filters.push_str(
        "      - header: {rules: [{topics: ['*'], on: fetch, add: [{key: a, value: \
         client_address}, {key: b, value: client_id}, {key: c, value: virtual_cluster}, {key: d, \
         value: time}]}]}
      - mask: {rules: [{topics: ['*'], fields: [a], masking: 'null', not_json: pass}, {topics: \
         ['*'], fields: [a], masking: null, not_json: empty}, {topics: ['*'], fields: [a], \
         masking: {first: 2}, not_json: error}, {topics: ['*'], fields: [a], masking: all}]}
      - record_validation: {rules: [{topics: ['*'], key: {content: {json: {}}, schema_ids: []}, \
         value: {content: any, allow_empty: false, bytes_max: 9}}]}
      - record_validation: {rules: [{topics: ['*'], value: {content: {json: {unique_keys: \
         true}}}}]}
      - audit: {file: audit.jsonl, apis: [Produce], summary_interval_s: 1, when_full: drop}
      - chaos: {rules: [{apis: [Fetch], principals: ['User:a'], probability: 0, fault: \
         {latency_ms: 5}}, {apis: [Fetch], probability: 1.0, fault: disconnect}]}\n",
    );
    let output = check(dir.path(), &filters);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!dir.path().join("audit.jsonl").exists());
}

/// Sends a record by itself, and says how the broker or the proxy refused it.
async fn send(cluster: &Cluster, value: &str) -> Option<ErrorCode> {
    let refused: Arc<Mutex<Option<ErrorCode>>> = Arc::default();
    let noted = Arc::clone(&refused);
    let sink = move |delivery: &Delivery<'_>| {
        *noted.lock().unwrap() = delivery.error.map(|error| error.code().unwrap());
    };
    let producer = Producer::start(cluster, ProducerOptions::default(), sink).await.unwrap();
    let partition = producer.partition("orders", 0).await.unwrap();
    let (key, value) = (None, Some(value.as_bytes()));
    let record = Record { token: 0, timestamp: now_ms(), key, value, headers: &[] };
    producer.send(partition, &record).unwrap();
    soon("a flush", producer.flush()).await;
    *refused.lock().unwrap()
}

/// The record at an offset of the topic, and its headers, each as `key=value`.
async fn record(cluster: &Cluster, offset: i64) -> (String, Vec<String>) {
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    fetcher.assign("orders", 0, Start::Offset(offset)).await.unwrap();
    let mut found = None;
    while found.is_none() {
        let fetched = soon("a fetch", fetcher.next()).await.unwrap();
        fetched
            .for_each_record(&mut Decompressor::default(), BATCH_BYTES_MAX, |record| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let headers = record.headers().unwrap();
                let headers =
                    headers.map(|it| format!("{}={}", text(it.key), text(it.value.unwrap())));
                found.get_or_insert((text(record.value().unwrap()), headers.collect()));
            })
            .unwrap();
    }
    found.unwrap()
}

#[test]
fn filters_validate_records_and_add_headers_of_the_current_configuration() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let broker = Process::broker(&dir.path().join("data"), &[]);
    let configure = |by: &str| {
        let filters = format!(
            "      - audit: {{file: audit.jsonl, when_full: hold}}
      - record_validation: {{rules: [{{topics: [orders], value: {{content: {{json_schema_file: \
             order.schema.json}}}}}}]}}
      - header: {{rules: [{{topics: ['*'], on: produce, add: [{{key: by, value: {{static: \
             {by}}}}}]}}]}}\n"
        );
        let text = file(&broker.address.to_string(), &filters);
        std::fs::write(dir.path().join("beside"), text).unwrap();
        std::fs::rename(dir.path().join("beside"), dir.path().join("proxy.yaml")).unwrap();
    };
    configure("us");
    let mut command = Command::new(moldau());
    command.args(["proxy", "--config", "proxy.yaml"]).current_dir(dir.path());
    let mut proxy = Process::start(command);
    block_on(async {
        let (through, direct) = (connect(proxy.address).await, connect(broker.address).await);
        let topic = [TopicSpec::new("orders", 1)];
        let created = Admin::new(&direct).create_topics(&topic, false).await.unwrap();
        created.into_iter().for_each(|created| created.unwrap());
        assert_eq!(send(&through, r#"{"name": "x"}"#).await, Some(ErrorCode::InvalidRecord));
        assert_eq!(send(&through, r#"{"id": 1}"#).await, None);
        assert_eq!(record(&direct, 0).await, (r#"{"id": 1}"#.to_owned(), vec!["by=us".to_owned()]));
    });
    configure("them");
    proxy.wait_for_line("was reloaded");
    block_on(async {
        let (through, direct) = (connect(proxy.address).await, connect(broker.address).await);
        assert_eq!(send(&through, r#"{"id": 2}"#).await, None);
        let stored = record(&direct, 1).await;
        assert_eq!(stored, (r#"{"id": 2}"#.to_owned(), vec!["by=them".to_owned()]));
    });
    let (status, said) = proxy.terminate_with_stderr();
    assert_eq!(status.code(), Some(0));
    assert!(!said.contains("audit"), "{said}");
    let audit = std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let is_told = |line: &str| line.contains("\"summary\"") && line.contains("INVALID_RECORD");
    assert!(audit.lines().any(is_told), "{audit}");
}
