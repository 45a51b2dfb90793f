//! DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, ILLEGAL, with};
use crate::differential::session::Session;

/// Kafka's numbers of resource types.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

/// Kafka's numbers of what is done to a configuration.
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Keys that both brokers have, with the same value.
const BROKER_KEYS: [&str; 11] = [
    "compression.type",
    "group.consumer.assignors",
    "group.consumer.session.timeout.ms",
    "group.share.max.size",
    "log.cleanup.policy",
    "message.max.bytes",
    "offset.metadata.max.bytes",
    "quota.window.num",
    "socket.request.max.bytes",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
];

/// The topic whose configuration is described and changed.
const TUNED: &str = "tuned";

pub(super) fn run(session: &mut Session) -> Result<()> {
    session.create_topics(&[(TUNED, 1)])?;
    describe(session)?;
    incremental(session)?;
    alter(session)?;
    of_brokers(session)?;
    loggers(session)
}

fn describe(session: &mut Session) -> Result<()> {
    let of = |kind: i8, name: &str, keys: Value| {
        json!({"Resources": [
            {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}]})
    };
    let one = json!(["retention.ms"]);
    let some = of(TOPIC, TUNED, json!(["retention.ms", "cleanup.policy", "compression.type"]));
    let of_broker = of(BROKER, "$broker", json!(BROKER_KEYS));
    let cases = [
        ("a key", of(TOPIC, TUNED, one.clone())),
        ("keys", some.clone()),
        ("keys with synonyms", with(&some, "IncludeSynonyms", json!(true))),
        ("all keys", of(TOPIC, TUNED, Value::Null)),
        ("no keys", of(TOPIC, TUNED, json!([]))),
        ("an unknown key", of(TOPIC, TUNED, json!(["no.such.key"]))),
        ("a key twice", of(TOPIC, TUNED, json!(["retention.ms", "retention.ms"]))),
        ("an unknown topic", of(TOPIC, ABSENT, one.clone())),
        ("an illegal name", of(TOPIC, ILLEGAL, one.clone())),
        ("an empty name", of(TOPIC, "", one.clone())),
        ("a key of the broker", of(BROKER, "$broker", json!(["num.partitions"]))),
        ("keys of the broker with synonyms", with(&of_broker, "IncludeSynonyms", json!(true))),
        ("the defaults of brokers", of(BROKER, "", json!(["num.partitions"]))),
        ("an unknown broker", of(BROKER, "77", json!(["num.partitions"]))),
        ("a broker of no number", of(BROKER, "one", json!(["num.partitions"]))),
        ("loggers of an unknown broker", of(BROKER_LOGGER, "77", Value::Null)),
        ("metrics of clients", of(CLIENT_METRICS, ABSENT, Value::Null)),
        ("a resource of type 0", of(0, TUNED, one.clone())),
        ("a resource of type 1", of(1, TUNED, one.clone())),
        ("a resource of type 99", of(99, TUNED, one.clone())),
        ("no resources", json!({"Resources": []})),
        (
            "a resource twice",
            json!({"Resources": [
                {"ResourceType": TOPIC, "ResourceName": TUNED, "ConfigurationKeys": one},
                {"ResourceType": TOPIC, "ResourceName": TUNED, "ConfigurationKeys": one}]}),
        ),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeConfigs, name, request)?;
    }
    session.denied(ApiKey::DescribeConfigs, "a key", &cases[0].1)?;
    session.denied(ApiKey::DescribeConfigs, "an unknown topic", &of(TOPIC, ABSENT, one))?;
    let broker = of(BROKER, "$broker", json!(["num.partitions"]));
    session.denied(ApiKey::DescribeConfigs, "a key of the broker", &broker)?;
    session.denied(ApiKey::DescribeConfigs, "a group", &of(GROUP, "readers", Value::Null))
}

fn incremental(session: &mut Session) -> Result<()> {
    let api = ApiKey::IncrementalAlterConfigs;
    let of = |kind: i8, name: &str, configs: &[(&str, i8, Value)]| {
        let configs: Vec<_> = configs.iter().map(operation).collect();
        json!({"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": configs}]})
    };
    let set = |key: &str, value: &str| of(TOPIC, TUNED, &[(key, SET, json!(value))]);
    let cases = [
        ("set", set("retention.ms", "1000000")),
        ("set to no number", set("retention.ms", "soon")),
        ("set out of range", set("retention.ms", "-2")),
        ("set an unknown key", set("no.such.key", "1")),
        ("set an empty key", set("", "1")),
        ("set to null", of(TOPIC, TUNED, &[("retention.ms", SET, Value::Null)])),
        ("delete", of(TOPIC, TUNED, &[("retention.ms", DELETE, Value::Null)])),
        ("delete what is not set", of(TOPIC, TUNED, &[("flush.ms", DELETE, Value::Null)])),
        ("delete an unknown key", of(TOPIC, TUNED, &[("no.such.key", DELETE, Value::Null)])),
        ("append", of(TOPIC, TUNED, &[("cleanup.policy", APPEND, json!("compact"))])),
        ("append again", of(TOPIC, TUNED, &[("cleanup.policy", APPEND, json!("compact"))])),
        ("append to no list", of(TOPIC, TUNED, &[("retention.ms", APPEND, json!("1"))])),
        ("subtract", of(TOPIC, TUNED, &[("cleanup.policy", SUBTRACT, json!("compact"))])),
        (
            "subtract what is not there",
            of(TOPIC, TUNED, &[("cleanup.policy", SUBTRACT, json!("compact"))]),
        ),
        ("subtract null", of(TOPIC, TUNED, &[("cleanup.policy", SUBTRACT, Value::Null)])),
        ("operation 9", of(TOPIC, TUNED, &[("retention.ms", 9, json!("1"))])),
        ("operation -1", of(TOPIC, TUNED, &[("retention.ms", -1, json!("1"))])),
        (
            "a key twice",
            of(TOPIC, TUNED, &[("flush.ms", SET, json!("1")), ("flush.ms", SET, json!("2"))]),
        ),
        ("no keys", of(TOPIC, TUNED, &[])),
        ("an unknown topic", of(TOPIC, ABSENT, &[("retention.ms", SET, json!("1"))])),
        ("an illegal name", of(TOPIC, ILLEGAL, &[("retention.ms", SET, json!("1"))])),
        ("an empty name", of(TOPIC, "", &[("retention.ms", SET, json!("1"))])),
        ("an unknown broker", of(BROKER, "77", &[("num.io.threads", SET, json!("8"))])),
        ("a static key of the broker", of(BROKER, "$broker", &[("log.dirs", SET, json!("x"))])),
        ("an unknown resource", of(99, TUNED, &[("retention.ms", SET, json!("1"))])),
        ("no resources", json!({"Resources": []})),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.ask(
        api,
        "to validate",
        &with(&set("retention.ms", "7"), "ValidateOnly", json!(true)),
    )?;
    let twice = json!({"Resources": [
        {"ResourceType": TOPIC, "ResourceName": TUNED, "Configs": []},
        {"ResourceType": TOPIC, "ResourceName": TUNED, "Configs": []}]});
    session.ask(api, "a resource twice", &twice)?;
    session.denied(api, "set", &set("retention.ms", "1000000"))?;
    session.denied(
        api,
        "an unknown topic",
        &of(TOPIC, ABSENT, &[("retention.ms", SET, json!("1"))]),
    )?;
    session.denied(api, "a broker", &of(BROKER, "$broker", &[("num.io.threads", SET, json!("8"))]))
}

fn operation((name, operation, value): &(&str, i8, Value)) -> Value {
    json!({"Name": name, "ConfigOperation": operation, "Value": value})
}

fn alter(session: &mut Session) -> Result<()> {
    let api = ApiKey::AlterConfigs;
    let of = |kind: i8, name: &str, configs: &[(&str, Value)]| {
        let one = |(name, value): &(&str, Value)| json!({"Name": name, "Value": value});
        let configs: Vec<_> = configs.iter().map(one).collect();
        json!({"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": configs}]})
    };
    let set = |key: &str, value: &str| of(TOPIC, TUNED, &[(key, json!(value))]);
    let cases = [
        ("set", set("retention.ms", "1000000")),
        ("set to no number", set("retention.ms", "soon")),
        ("set an unknown key", set("no.such.key", "1")),
        ("set to null", of(TOPIC, TUNED, &[("retention.ms", Value::Null)])),
        ("a key twice", of(TOPIC, TUNED, &[("flush.ms", json!("1")), ("flush.ms", json!("2"))])),
        ("nothing set", of(TOPIC, TUNED, &[])),
        ("an unknown topic", of(TOPIC, ABSENT, &[("retention.ms", json!("1"))])),
        ("an illegal name", of(TOPIC, ILLEGAL, &[("retention.ms", json!("1"))])),
        ("an unknown resource", of(99, TUNED, &[("retention.ms", json!("1"))])),
        ("no resources", json!({"Resources": []})),
        ("to validate", with(&set("retention.ms", "7"), "ValidateOnly", json!(true))),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "set", &set("retention.ms", "1000000"))?;
    session.denied(api, "an unknown topic", &of(TOPIC, ABSENT, &[("retention.ms", json!("1"))]))
}

/// Defaults of topics that clients change, for one broker and for all.
fn of_brokers(session: &mut Session) -> Result<()> {
    let api = ApiKey::IncrementalAlterConfigs;
    let of = |name: &str, key: &str, operation: i8, value: Value| {
        let config = json!({"Name": key, "ConfigOperation": operation, "Value": value});
        json!({"Resources": [
            {"ResourceType": BROKER, "ResourceName": name, "Configs": [config]}]})
    };
    let key = "log.retention.bytes";
    let synonyms = |kind: i8, name: &str, key: &str| {
        let resource = json!({"ResourceType": kind, "ResourceName": name,
            "ConfigurationKeys": [key]});
        json!({"Resources": [resource], "IncludeSynonyms": true})
    };
    let changes = [
        ("set a default of all brokers", of("", key, SET, json!("3000000"))),
        ("set a default of a broker", of("$broker", key, SET, json!("2000000"))),
        ("set a default to no number", of("$broker", key, SET, json!("many"))),
        ("set a default out of range", of("$broker", "log.segment.bytes", SET, json!("1"))),
        ("append to a default", of("$broker", "log.cleanup.policy", APPEND, json!("compact"))),
        ("append to a default of no list", of("$broker", key, APPEND, json!("1"))),
        ("operation 9 on a broker", of("$broker", key, 9, json!("1"))),
        ("set a default to null", of("$broker", key, SET, Value::Null)),
        ("set the coarser key", of("$broker", "log.retention.hours", SET, json!("1"))),
    ];
    for (name, request) in &changes {
        session.ask(api, name, request)?;
    }
    let described = ApiKey::DescribeConfigs;
    for (name, request) in [
        ("a changed default of the broker", synonyms(BROKER, "$broker", key)),
        ("a changed default of all brokers", synonyms(BROKER, "", key)),
        ("a topic with a changed default", synonyms(TOPIC, TUNED, "retention.bytes")),
    ] {
        session.ask(described, name, &request)?;
    }
    let replace = |key: &str, value: &str| {
        let config = json!({"Name": key, "Value": value});
        json!({"Resources": [
            {"ResourceType": BROKER, "ResourceName": "$broker", "Configs": [config]}]})
    };
    session.ask(ApiKey::AlterConfigs, "a default of a broker", &replace(key, "1000000"))?;
    session.ask(ApiKey::AlterConfigs, "a static key of the broker", &replace("log.dirs", "x"))?;
    session.ask(api, "delete a default of a broker", &of("$broker", key, DELETE, Value::Null))?;
    session.ask(api, "delete a default of all brokers", &of("", key, DELETE, Value::Null))?;
    Ok(())
}

fn loggers(session: &mut Session) -> Result<()> {
    let api = ApiKey::IncrementalAlterConfigs;
    let of = |name: &str, logger: &str, operation: i8, value: Value| {
        let config = json!({"Name": logger, "ConfigOperation": operation, "Value": value});
        json!({"Resources": [
            {"ResourceType": BROKER_LOGGER, "ResourceName": name, "Configs": [config]}]})
    };
    let changes = [
        ("set the root logger", of("$broker", "root", SET, json!("ERROR"))),
        ("set no level", of("$broker", "root", SET, json!("LOUD"))),
        ("set a level to null", of("$broker", "root", SET, Value::Null)),
        ("set an unknown logger", of("$broker", "no.such.Logger", SET, json!("INFO"))),
        ("delete the level of the root logger", of("$broker", "root", DELETE, Value::Null)),
        ("append to a level", of("$broker", "root", APPEND, json!("INFO"))),
        ("a logger of an unknown broker", of("77", "root", SET, json!("INFO"))),
        ("a logger of no broker", of("", "root", SET, json!("INFO"))),
    ];
    for (name, request) in &changes {
        session.ask(api, name, request)?;
    }
    let root = json!({"ResourceType": BROKER_LOGGER, "ResourceName": "$broker",
        "ConfigurationKeys": ["root"]});
    let root = json!({"Resources": [root]});
    session.ask(ApiKey::DescribeConfigs, "the root logger", &root)?;
    session.denied(ApiKey::DescribeConfigs, "the root logger", &root)?;
    session.denied(api, "set the root logger", &changes[0].1)
}
