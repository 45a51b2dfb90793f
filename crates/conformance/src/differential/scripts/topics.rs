//! CreateTopics, DeleteTopics and CreatePartitions.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, ABSENT_ID, ILLEGAL, NO_ID, ORDERS, with};
use crate::differential::session::Session;

/// One more character than a topic's name may have.
const LONG: usize = 250;

pub(super) fn run(session: &mut Session) -> Result<()> {
    create_topics(session)?;
    create_topics_with(session)?;
    create_partitions(session)?;
    delete_topics(session)
}

fn create(topics: &[Value]) -> Value {
    json!({"Topics": topics, "timeoutMs": 10_000})
}

fn named(name: &str, partitions: i32, replicas: i16) -> Value {
    json!({"Name": name, "NumPartitions": partitions, "ReplicationFactor": replicas})
}

fn create_topics(session: &mut Session) -> Result<()> {
    let dry = |topics: &[Value]| with(&create(topics), "validateOnly", json!(true));
    let long = "a".repeat(LONG);
    let cases = [
        ("a topic", create(&[named("made-$v", 2, 1)])),
        ("a topic that exists", create(&[named(ORDERS, 2, 1)])),
        ("a topic that exists, to validate", dry(&[named(ORDERS, 2, 1)])),
        ("a topic, to validate", dry(&[named("dry", 3, 1)])),
        ("default numbers", create(&[named("defaults-$v", -1, -1)])),
        ("no partitions", dry(&[named("dry", 0, 1)])),
        ("-2 partitions", dry(&[named("dry", -2, 1)])),
        ("no replicas", dry(&[named("dry", 1, 0)])),
        ("-2 replicas", dry(&[named("dry", 1, -2)])),
        ("two replicas", dry(&[named("dry", 1, 2)])),
        ("32767 replicas", dry(&[named("dry", 1, i16::MAX)])),
        ("an illegal name", dry(&[named(ILLEGAL, 1, 1)])),
        ("an empty name", dry(&[named("", 1, 1)])),
        ("a name of dots", dry(&[named("..", 1, 1)])),
        ("a name that is too long", dry(&[named(&long, 1, 1)])),
        ("a name that collides", create(&[named("col.lide-$v", 1, 1), named("col_lide-$v", 1, 1)])),
        ("an internal topic", dry(&[named("__transaction_state", 1, 1)])),
        ("the metadata log", dry(&[named("__cluster_metadata", 1, 1)])),
        ("a topic twice", create(&[named("twice-$v", 1, 1), named("twice-$v", 2, 1)])),
        (
            "good and bad topics",
            dry(&[named("dry", 1, 1), named(ILLEGAL, 1, 1), named(ORDERS, 1, 1)]),
        ),
        ("no topics", create(&[])),
        ("a timeout of -1", with(&dry(&[named("dry", 1, 1)]), "timeoutMs", json!(-1))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::CreateTopics, name, request)?;
    }
    session.denied(ApiKey::CreateTopics, "a topic", &dry(&[named("denied", 1, 1)]))?;
    session.denied(ApiKey::CreateTopics, "a topic that exists", &dry(&[named(ORDERS, 1, 1)]))?;
    session.denied(ApiKey::CreateTopics, "an illegal name", &dry(&[named(ILLEGAL, 1, 1)]))
}

/// Assignments and configurations.
fn create_topics_with(session: &mut Session) -> Result<()> {
    let dry = |topic: &Value| json!({"Topics": [topic], "timeoutMs": 10_000, "validateOnly": true});
    let assigned = |partitions: i32, assignments: Value| {
        dry(&with(&named("dry", partitions, -1), "Assignments", assignments))
    };
    let at = |index: i32, brokers: Value| json!({"PartitionIndex": index, "BrokerIds": brokers});
    let configured = |name: &str, value: Value| {
        dry(&with(&named("dry", 1, 1), "Configs", json!([{"Name": name, "Value": value}])))
    };
    let cases = [
        ("an assignment", assigned(-1, json!([at(0, json!(["$broker"]))]))),
        ("an assignment and a number", assigned(1, json!([at(0, json!(["$broker"]))]))),
        ("an assignment to an unknown broker", assigned(-1, json!([at(0, json!([77]))]))),
        ("an assignment to no broker", assigned(-1, json!([at(0, json!([]))]))),
        (
            "an assignment to a broker twice",
            assigned(-1, json!([at(0, json!(["$broker", "$broker"]))])),
        ),
        ("an assignment with a gap", assigned(-1, json!([at(1, json!(["$broker"]))]))),
        (
            "a partition assigned twice",
            assigned(-1, json!([at(0, json!(["$broker"])), at(0, json!(["$broker"]))])),
        ),
        ("an assignment of partition -1", assigned(-1, json!([at(-1, json!(["$broker"]))]))),
        ("a configuration", configured("retention.ms", json!("1000"))),
        ("an unknown configuration", configured("no.such.key", json!("1"))),
        ("an empty configuration", configured("", json!("1"))),
        ("a configuration of null", configured("retention.ms", Value::Null)),
        ("a configuration that is no number", configured("retention.ms", json!("soon"))),
        ("a configuration out of range", configured("retention.ms", json!("-2"))),
        ("a configuration of another word", configured("cleanup.policy", json!("shred"))),
        ("two policies", configured("cleanup.policy", json!("compact,delete"))),
        ("compression", configured("compression.type", json!("zstd"))),
        ("replicas in sync", configured("min.insync.replicas", json!("2"))),
        ("bytes of a segment", configured("segment.bytes", json!("1"))),
        (
            "a configuration twice",
            dry(&with(
                &named("dry", 1, 1),
                "Configs",
                json!([
                {"Name": "retention.ms", "Value": "1"}, {"Name": "retention.ms", "Value": "2"}]),
            )),
        ),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::CreateTopics, name, request)?;
    }
    Ok(())
}

fn create_partitions(session: &mut Session) -> Result<()> {
    session.create_topics(&[("grown", 2)])?;
    let of = |name: &str, count: i32, assignments: Value| {
        json!({"TimeoutMs": 10_000, "ValidateOnly": true, "Topics": [
            {"Name": name, "Count": count, "Assignments": assignments}]})
    };
    let to = |brokers: Value| json!([{"BrokerIds": brokers}]);
    let cases = [
        ("one more, to validate", of("grown", 3, Value::Null)),
        ("as many as there are", of("grown", 2, Value::Null)),
        ("fewer", of("grown", 1, Value::Null)),
        ("none", of("grown", 0, Value::Null)),
        ("-1", of("grown", -1, Value::Null)),
        ("too many", of("grown", i32::MAX, Value::Null)),
        ("an unknown topic", of(ABSENT, 3, Value::Null)),
        ("an illegal name", of(ILLEGAL, 3, Value::Null)),
        ("an empty name", of("", 3, Value::Null)),
        ("an assignment", of("grown", 3, to(json!(["$broker"])))),
        ("an assignment to an unknown broker", of("grown", 3, to(json!([77])))),
        ("an assignment to no broker", of("grown", 3, to(json!([])))),
        ("too few assignments", of("grown", 4, to(json!(["$broker"])))),
        ("no assignments", of("grown", 3, json!([]))),
        (
            "a topic twice",
            json!({"TimeoutMs": 10_000, "ValidateOnly": true, "Topics": [
                {"Name": "grown", "Count": 3, "Assignments": null},
                {"Name": "grown", "Count": 4, "Assignments": null}]}),
        ),
        ("no topics", json!({"TimeoutMs": 10_000, "Topics": []})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::CreatePartitions, name, request)?;
    }
    for version in session.versions_of(ApiKey::CreatePartitions) {
        let grown =
            with(&of("grown", 3 + i32::from(version), Value::Null), "ValidateOnly", json!(false));
        session.ask_in(version..=version, ApiKey::CreatePartitions, "one more", &grown)?;
    }
    session.denied(ApiKey::CreatePartitions, "one more, to validate", &cases[0].1)?;
    session.denied(ApiKey::CreatePartitions, "an unknown topic", &of(ABSENT, 3, Value::Null))
}

fn by_id(id: &str, name: Value) -> Value {
    json!({"TimeoutMs": 10_000, "Topics": [{"Name": name, "TopicId": id}]})
}

fn delete_topics(session: &mut Session) -> Result<()> {
    for version in session.versions_of(ApiKey::DeleteTopics) {
        session.create_topics(&[(&format!("doomed-{version}"), 1)])?;
    }
    session.create_topics(&[("doomed-by-id", 1)])?;
    let of = |names: &[&str]| {
        let topics: Vec<_> = names.iter().map(|name| json!({"Name": name})).collect();
        json!({"Topics": topics, "TopicNames": names, "TimeoutMs": 10_000})
    };
    session.denied(ApiKey::DeleteTopics, "a topic", &of(&["doomed-$v"]))?;
    session.denied(ApiKey::DeleteTopics, "an unknown topic", &of(&[ABSENT]))?;
    let cases = [
        ("a topic", of(&["doomed-$v"])),
        ("an unknown topic", of(&[ABSENT])),
        ("an illegal name", of(&[ILLEGAL])),
        ("an empty name", of(&[""])),
        ("a topic twice", of(&["absent-too", "absent-too"])),
        ("no topics", of(&[])),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DeleteTopics, name, request)?;
    }
    let id = session.id_of("doomed-by-id")?;
    let cases = [
        ("an id and a name", by_id(&id, json!("doomed-by-id"))),
        ("an id", by_id(&id, Value::Null)),
        ("an unknown id", by_id(ABSENT_ID, Value::Null)),
        ("no id and no name", by_id(NO_ID, Value::Null)),
    ];
    for (name, request) in &cases {
        session.ask_in(6..=i16::MAX, ApiKey::DeleteTopics, name, request)?;
    }
    let denied = by_id(&session.id_of(ORDERS)?, Value::Null);
    session.denied(ApiKey::DeleteTopics, "an id", &denied)
}
