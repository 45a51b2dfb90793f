//! ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions, DescribeLogDirs,
//! FindCoordinator and SASL on a listener without it.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, ABSENT_ID, EMPTY, ILLEGAL, NO_ID, ORDERS, with};
use crate::differential::session::Session;

pub(super) fn run(session: &mut Session) -> Result<()> {
    api_versions(session)?;
    metadata(session)?;
    describe_cluster(session)?;
    topic_partitions(session)?;
    log_dirs(session)?;
    coordinators(session)?;
    sasl(session)
}

fn api_versions(session: &mut Session) -> Result<()> {
    let good = json!({"ClientSoftwareName": "a-client", "ClientSoftwareVersion": "1.0",
        "NodeId": -1});
    let cases = [
        ("a client", good.clone()),
        ("a client without a name", with(&good, "ClientSoftwareName", json!(""))),
        ("a client without a version", with(&good, "ClientSoftwareVersion", json!(""))),
        ("a name that is not allowed", with(&good, "ClientSoftwareName", json!("a client!"))),
        ("another cluster", with(&good, "ClusterId", json!("other"))),
        ("a broker without a cluster", with(&good, "NodeId", json!("$broker"))),
        ("a cluster without a broker", with(&good, "ClusterId", json!("$cluster"))),
        (
            "another broker",
            json!({"ClientSoftwareName": "a", "ClientSoftwareVersion": "1",
                "ClusterId": "$cluster", "NodeId": 77}),
        ),
        (
            "this broker",
            json!({"ClientSoftwareName": "a", "ClientSoftwareVersion": "1",
                "ClusterId": "$cluster", "NodeId": "$broker"}),
        ),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::ApiVersions, name, request)?;
    }
    session.denied(ApiKey::ApiVersions, "a client", &good)
}

fn metadata(session: &mut Session) -> Result<()> {
    let of = |topics: Value| {
        json!({"Topics": topics, "AllowAutoTopicCreation": false,
            "IncludeTopicAuthorizedOperations": true, "IncludeClusterAuthorizedOperations": true})
    };
    let named = |name: &str| json!({"Name": name});
    let cases = [
        ("a topic", of(json!([named(ORDERS)]))),
        ("topics", of(json!([named(ORDERS), named(EMPTY), named(ABSENT)]))),
        ("an unknown topic", of(json!([named(ABSENT)]))),
        (
            "an unknown topic that may be created",
            with(&of(json!([named(ABSENT)])), "AllowAutoTopicCreation", json!(true)),
        ),
        ("an illegal name", of(json!([named(ILLEGAL)]))),
        ("an empty name", of(json!([named("")]))),
        ("a topic twice", of(json!([named(ORDERS), named(ORDERS)]))),
        ("no topics", json!({"Topics": []})),
    ];
    for (name, request) in &cases {
        // The first version means all topics by none.
        let first = if *name == "no topics" { 1 } else { 0 };
        session.ask_in(first..=i16::MAX, ApiKey::Metadata, name, request)?;
    }
    let by_id = |id: &str, name: Value| of(json!([{"TopicId": id, "Name": name}]));
    let id = session.id_of(ORDERS)?;
    let cases = [
        ("an id", by_id(&id, Value::Null)),
        ("an unknown id", by_id(ABSENT_ID, Value::Null)),
        ("an id and a name", by_id(&id, json!(ORDERS))),
        ("an id and the name of another", by_id(&id, json!(EMPTY))),
        ("no id and no name", by_id(NO_ID, Value::Null)),
    ];
    for (name, request) in &cases {
        session.ask_in(10..=i16::MAX, ApiKey::Metadata, name, request)?;
    }
    session.denied(ApiKey::Metadata, "a topic", &of(json!([named(ORDERS)])))?;
    session.denied(ApiKey::Metadata, "an unknown topic", &of(json!([named(ABSENT)])))?;
    session.denied(ApiKey::Metadata, "an illegal name", &of(json!([named(ILLEGAL)])))
}

fn describe_cluster(session: &mut Session) -> Result<()> {
    let good = json!({"IncludeClusterAuthorizedOperations": true, "EndpointType": 1});
    let cases = [
        ("brokers", good.clone()),
        ("without operations", json!({"EndpointType": 1})),
        ("fenced brokers", with(&good, "IncludeFencedBrokers", json!(true))),
        ("controllers", json!({"EndpointType": 2})),
        ("endpoints of type 0", json!({"EndpointType": 0})),
        ("endpoints of type -1", json!({"EndpointType": -1})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeCluster, name, request)?;
    }
    session.denied(ApiKey::DescribeCluster, "brokers", &good)
}

fn topic_partitions(session: &mut Session) -> Result<()> {
    let of = |names: &[&str], limit: i32, cursor: Value| {
        let topics: Vec<_> = names.iter().map(|name| json!({"Name": name})).collect();
        json!({"Topics": topics, "ResponsePartitionLimit": limit, "Cursor": cursor})
    };
    let at = |name: &str, index: i32| json!({"TopicName": name, "PartitionIndex": index});
    let cases = [
        ("a topic", of(&[ORDERS], 100, Value::Null)),
        ("topics", of(&[ORDERS, EMPTY, ABSENT], 100, Value::Null)),
        ("a topic twice", of(&[ORDERS, ORDERS], 100, Value::Null)),
        ("an unknown topic", of(&[ABSENT], 100, Value::Null)),
        ("an illegal name", of(&[ILLEGAL], 100, Value::Null)),
        ("an empty name", of(&[""], 100, Value::Null)),
        ("one partition", of(&[EMPTY, ORDERS], 1, Value::Null)),
        ("two partitions", of(&[EMPTY, ORDERS], 2, Value::Null)),
        ("no partitions", of(&[ORDERS], 0, Value::Null)),
        ("-1 partitions", of(&[ORDERS], -1, Value::Null)),
        ("a cursor", of(&[EMPTY, ORDERS], 100, at(ORDERS, 1))),
        ("a cursor at an unknown topic", of(&[EMPTY, ORDERS], 100, at(ABSENT, 0))),
        ("a cursor beyond the topic", of(&[ORDERS], 100, at(ORDERS, 5))),
        ("a cursor at partition -1", of(&[ORDERS], 100, at(ORDERS, -1))),
        ("a cursor beyond all topics", of(&[ORDERS], 100, at("zzz", 0))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeTopicPartitions, name, request)?;
    }
    session.denied(ApiKey::DescribeTopicPartitions, "a topic", &cases[0].1)?;
    session.denied(ApiKey::DescribeTopicPartitions, "an unknown topic", &cases[3].1)?;
    session.denied(ApiKey::DescribeTopicPartitions, "all", &of(&[], 100, Value::Null))
}

fn log_dirs(session: &mut Session) -> Result<()> {
    fn of(name: &str, partitions: &[i32]) -> Value {
        json!({"Topics": [{"Topic": name, "Partitions": partitions}]})
    }
    let cases = [
        ("a topic", of(ORDERS, &[0, 1])),
        ("an unknown partition", of(ORDERS, &[7, -1])),
        ("an unknown topic", of(ABSENT, &[0])),
        ("a topic without partitions", of(ORDERS, &[])),
        ("no topics", json!({"Topics": []})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeLogDirs, name, request)?;
    }
    session.denied(ApiKey::DescribeLogDirs, "a topic", &cases[0].1)?;
    session.denied(ApiKey::DescribeLogDirs, "all", &json!({"Topics": null}))
}

fn coordinators(session: &mut Session) -> Result<()> {
    let of = |key: &str, kind: i8| json!({"Key": key, "KeyType": kind, "CoordinatorKeys": [key]});
    // A coordinator settles before it is compared.
    for kind in [0, 1] {
        session.must(ApiKey::FindCoordinator, &of("settled", kind))?;
    }
    session.ask(ApiKey::FindCoordinator, "a group", &of("readers", 0))?;
    session.ask(ApiKey::FindCoordinator, "an empty group", &of("", 0))?;
    session.ask_in(1..=i16::MAX, ApiKey::FindCoordinator, "a transaction", &of("payments", 1))?;
    session.ask_in(1..=i16::MAX, ApiKey::FindCoordinator, "an empty transaction", &of("", 1))?;
    session.ask_in(1..=i16::MAX, ApiKey::FindCoordinator, "type 9", &of("readers", 9))?;
    session.ask_in(1..=i16::MAX, ApiKey::FindCoordinator, "type -1", &of("readers", -1))?;
    let key = format!("readers:{}:0", session.id_of(ORDERS)?);
    session.ask_in(1..=5, ApiKey::FindCoordinator, "a share group, too early", &of(&key, 2))?;
    session.ask_in(
        6..=6,
        ApiKey::FindCoordinator,
        "a share group of no form",
        &of("readers", 2),
    )?;
    let keys = |keys: &[&str]| json!({"KeyType": 0, "CoordinatorKeys": keys});
    session.ask_in(4..=6, ApiKey::FindCoordinator, "groups", &keys(&["one", "two", "one"]))?;
    session.ask_in(4..=6, ApiKey::FindCoordinator, "no groups", &keys(&[]))?;
    session.denied(ApiKey::FindCoordinator, "a group", &of("readers", 0))?;
    session.denied(ApiKey::FindCoordinator, "a transaction", &of("payments", 1))
}

fn sasl(session: &mut Session) -> Result<()> {
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "ROT13", ""] {
        let case = format!("a handshake for [{mechanism}] without SASL");
        session.ask(ApiKey::SaslHandshake, &case, &json!({"Mechanism": mechanism}))?;
    }
    for (case, token) in [("a token without SASL", "\0alice\0secret"), ("no token", "")] {
        session.ask(ApiKey::SaslAuthenticate, case, &json!({"AuthBytes": token}))?;
    }
    Ok(())
}
