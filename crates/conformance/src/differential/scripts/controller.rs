//! What the controller is asked: ElectLeaders, AlterPartitionReassignments,
//! ListPartitionReassignments, DescribeQuorum, UpdateFeatures, ListConfigResources, and delegation
//! tokens on a listener where nobody proves who they are.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, ILLEGAL, ORDERS, with};
use crate::differential::session::Session;

pub(super) fn run(session: &mut Session) -> Result<()> {
    elections(session)?;
    reassignments(session)?;
    quorum(session)?;
    features(session)?;
    config_resources(session)?;
    tokens(session)
}

fn elections(session: &mut Session) -> Result<()> {
    let of = |election: i8, topics: Value| -> Value {
        json!({"ElectionType": election, "TopicPartitions": topics, "TimeoutMs": 10_000})
    };
    let topic = |name: &str, partitions: &[i32]| json!({"Topic": name, "Partitions": partitions});
    let good = of(0, json!([topic(ORDERS, &[0, 1])]));
    let cases = [
        ("preferred leaders", good.clone()),
        ("of all partitions", of(0, Value::Null)),
        ("of no partitions", of(0, json!([]))),
        ("of a topic without partitions", of(0, json!([topic(ORDERS, &[])]))),
        ("of an unknown topic", of(0, json!([topic(ABSENT, &[0])]))),
        ("of an illegal name", of(0, json!([topic(ILLEGAL, &[0])]))),
        ("of unknown partitions", of(0, json!([topic(ORDERS, &[7, -1])]))),
        ("of a partition twice", of(0, json!([topic(ORDERS, &[0, 0])]))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::ElectLeaders, name, request)?;
    }
    let unclean = of(1, json!([topic(ORDERS, &[0])]));
    session.ask_in(1..=i16::MAX, ApiKey::ElectLeaders, "any leaders", &unclean)?;
    let unknown = of(9, json!([topic(ORDERS, &[0])]));
    session.ask_in(1..=i16::MAX, ApiKey::ElectLeaders, "an election of type 9", &unknown)?;
    session.denied(ApiKey::ElectLeaders, "preferred leaders", &good)?;
    session.denied(ApiKey::ElectLeaders, "of all partitions", &of(0, Value::Null))
}

fn reassignments(session: &mut Session) -> Result<()> {
    let of = |topic: &str, partition: i32, replicas: Value| {
        json!({"TimeoutMs": 10_000, "AllowReplicationFactorChange": true, "Topics": [{
            "Name": topic,
            "Partitions": [{"PartitionIndex": partition, "Replicas": replicas}]}]})
    };
    let here = || json!(["$broker"]);
    let good = of(ORDERS, 0, here());
    let cases = [
        ("to where it is", good.clone()),
        ("to nowhere", of(ORDERS, 0, json!([]))),
        ("to an unknown broker", of(ORDERS, 0, json!([77]))),
        ("to an unknown broker as well", of(ORDERS, 0, json!(["$broker", 77]))),
        ("to the broker twice", of(ORDERS, 0, json!(["$broker", "$broker"]))),
        ("to broker -1", of(ORDERS, 0, json!([-1]))),
        ("cancelled", of(ORDERS, 0, Value::Null)),
        ("of an unknown topic", of(ABSENT, 0, here())),
        ("of an unknown topic, cancelled", of(ABSENT, 0, Value::Null)),
        ("of an unknown partition", of(ORDERS, 7, here())),
        ("of partition -1", of(ORDERS, -1, here())),
        ("of nothing", json!({"TimeoutMs": 10_000, "Topics": []})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::AlterPartitionReassignments, name, request)?;
    }
    session.denied(ApiKey::AlterPartitionReassignments, "to where it is", &good)?;
    let of = |topics: Value| json!({"TimeoutMs": 10_000, "Topics": topics});
    let topic =
        |name: &str, partitions: &[i32]| json!({"Name": name, "PartitionIndexes": partitions});
    let cases = [
        ("of all", of(Value::Null)),
        ("of none", of(json!([]))),
        ("of a topic", of(json!([topic(ORDERS, &[0, 1])]))),
        ("of unknown partitions", of(json!([topic(ORDERS, &[7]), topic(ABSENT, &[0])]))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::ListPartitionReassignments, name, request)?;
        session.denied(ApiKey::ListPartitionReassignments, name, request)?;
    }
    Ok(())
}

fn quorum(session: &mut Session) -> Result<()> {
    let of = |topic: &str, partitions: &[i32]| {
        let partitions: Vec<_> =
            partitions.iter().map(|it| json!({"PartitionIndex": it})).collect();
        json!({"TopicName": topic, "Partitions": partitions})
    };
    let metadata = "__cluster_metadata";
    let good = json!({"Topics": [of(metadata, &[0])]});
    let cases = [
        ("metadata", good.clone()),
        ("another partition", json!({"Topics": [of(metadata, &[1])]})),
        ("partitions", json!({"Topics": [of(metadata, &[0, 1])]})),
        ("no partitions", json!({"Topics": [of(metadata, &[])]})),
        ("another topic", json!({"Topics": [of(ORDERS, &[0])]})),
        ("topics", json!({"Topics": [of(metadata, &[0]), of(ORDERS, &[0])]})),
        ("no topics", json!({"Topics": []})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeQuorum, name, request)?;
    }
    session.denied(ApiKey::DescribeQuorum, "metadata", &good)
}

fn features(session: &mut Session) -> Result<()> {
    // Version 0 says whether a downgrade is allowed, later ones which kind of update it is.
    let of = |feature: &str, level: i16, upgrade: i8| {
        json!({"timeoutMs": 10_000, "FeatureUpdates": [{"Feature": feature,
            "MaxVersionLevel": level, "AllowDowngrade": upgrade != 1, "UpgradeType": upgrade}]})
    };
    let good = of("transaction.version", 2, 1);
    let cases = [
        ("the level that it has", good.clone()),
        ("the level that groups have", of("group.version", 1, 1)),
        ("a lower level as an upgrade", of("transaction.version", 1, 1)),
        ("a level that does not exist", of("transaction.version", 99, 1)),
        ("a negative level", of("transaction.version", -1, 1)),
        ("a feature that does not exist", of("planets.version", 1, 1)),
        ("an empty name", of("", 1, 1)),
        ("no features", json!({"timeoutMs": 10_000, "FeatureUpdates": []})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::UpdateFeatures, name, request)?;
    }
    let kind = of("transaction.version", 2, 9);
    session.ask_in(1..=i16::MAX, ApiKey::UpdateFeatures, "an update of type 9", &kind)?;
    let only = with(&of("transaction.version", 99, 1), "ValidateOnly", json!(true));
    session.ask_in(1..=i16::MAX, ApiKey::UpdateFeatures, "validating a level", &only)?;
    session.denied(ApiKey::UpdateFeatures, "the level that it has", &good)
}

fn config_resources(session: &mut Session) -> Result<()> {
    let of = |types: &[i8]| json!({"ResourceTypes": types});
    let api = ApiKey::ListConfigResources;
    session.ask_in(1..=1, api, "brokers", &of(&[4]))?;
    session.ask_in(1..=1, api, "loggers of brokers", &of(&[8]))?;
    session.ask_in(1..=1, api, "client metrics", &of(&[16]))?;
    session.ask_in(1..=1, api, "brokers twice", &of(&[4, 4]))?;
    session.ask_in(1..=1, api, "a type that does not exist", &of(&[99]))?;
    session.ask_in(0..=0, api, "all", &of(&[]))?;
    session.denied(api, "all", &of(&[]))
}

fn tokens(session: &mut Session) -> Result<()> {
    let create = json!({"Renewers": [], "MaxLifetimeMs": -1});
    session.ask(ApiKey::CreateDelegationToken, "a token", &create)?;
    let renew = json!({"Hmac": "00", "RenewPeriodMs": 1});
    session.ask(ApiKey::RenewDelegationToken, "a token", &renew)?;
    let expire = json!({"Hmac": "00", "ExpiryTimePeriodMs": 1});
    session.ask(ApiKey::ExpireDelegationToken, "a token", &expire)?;
    session.ask(ApiKey::DescribeDelegationToken, "all", &json!({"Owners": null}))?;
    session.ask(ApiKey::DescribeDelegationToken, "none", &json!({"Owners": []}))?;
    session.denied(ApiKey::CreateDelegationToken, "a token", &create)
}
