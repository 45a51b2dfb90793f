//! Metrics of clients: their configuration, GetTelemetrySubscriptions and PushTelemetry.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::with;
use crate::differential::session::Session;
use crate::differential::tree::{self, Tree};

const CLIENT_METRICS: i8 = 16;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Ids of clients: each is throttled by itself.
const IDS: [&str; 5] = [
    "AAAAAAAAABEAAAAAAAAAEQ",
    "AAAAAAAAABIAAAAAAAAAEg",
    "AAAAAAAAABMAAAAAAAAAEw",
    "AAAAAAAAABQAAAAAAAAAFA",
    "AAAAAAAAABUAAAAAAAAAFQ",
];

/// No client's id, and one that is taken.
const ZERO: &str = "AAAAAAAAAAAAAAAAAAAAAA";
const ONE: &str = "AAAAAAAAAAAAAAAAAAAAAQ";

pub(super) fn run(session: &mut Session) -> Result<()> {
    configs(session)?;
    subscriptions(session)?;
    pushes(session)
}

fn alter(name: &str, configs: &[(&str, i8, Value)]) -> Value {
    let configs = configs.iter().map(|(key, operation, value)| {
        json!({"Name": key, "ConfigOperation": operation, "Value": value})
    });
    json!({"Resources": [{"ResourceType": CLIENT_METRICS, "ResourceName": name,
        "Configs": configs.collect::<Vec<_>>()}]})
}

fn configs(session: &mut Session) -> Result<()> {
    let one = |key: &str, value: &str| alter("clients-$v", &[(key, SET, json!(value))]);
    let api = ApiKey::IncrementalAlterConfigs;
    let cases = [
        (
            "all keys of client metrics",
            alter(
                "clients-$v",
                &[
                    (
                        "metrics",
                        SET,
                        json!("org.apache.kafka.producer.,org.apache.kafka.consumer."),
                    ),
                    ("interval.ms", SET, json!("60000")),
                    ("match", SET, json!("client_id=nobody,client_software_name=.*")),
                ],
            ),
        ),
        ("a prefix more", alter("clients-$v", &[("metrics", APPEND, json!("a.b"))])),
        ("a prefix less", alter("clients-$v", &[("metrics", SUBTRACT, json!("a.b"))])),
        ("no interval", alter("clients-$v", &[("interval.ms", DELETE, Value::Null)])),
        ("an interval appended", alter("clients-$v", &[("interval.ms", APPEND, json!("1"))])),
        ("an interval of 99", one("interval.ms", "99")),
        ("an interval of an hour and more", one("interval.ms", "3600001")),
        ("an interval of no number", one("interval.ms", "soon")),
        ("a pattern without a name", one("match", ".*")),
        ("a pattern of an unknown name", one("match", "planet=.*")),
        ("a pattern that is none", one("match", "client_id=(")),
        ("a pattern with two signs", one("match", "client_id=a=b")),
        ("prefixes twice", one("metrics", "a,a")),
        ("no prefixes", one("metrics", "")),
        ("a key of client metrics that does not exist", one("planets", "1")),
        ("client metrics without a name", alter("", &[("metrics", SET, json!("*"))])),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "client metrics", &cases[0].1)?;
    let only = with(&one("interval.ms", "100"), "ValidateOnly", json!(true));
    session.ask(api, "validating client metrics", &only)?;
    let replaced = |configs: Value| {
        json!({"Resources": [{"ResourceType": CLIENT_METRICS, "ResourceName": "replaced-$v",
            "Configs": configs}]})
    };
    let configs =
        json!([{"Name": "metrics", "Value": "a"}, {"Name": "match", "Value": "client_id=nobody"}]);
    session.ask(ApiKey::AlterConfigs, "client metrics", &replaced(configs))?;
    session.ask(
        ApiKey::AlterConfigs,
        "client metrics of no key",
        &replaced(json!([{"Name": "planets", "Value": "a"}])),
    )?;
    describe(session)
}

fn describe(session: &mut Session) -> Result<()> {
    let of = |name: &str, keys: Value| {
        json!({"Resources": [{"ResourceType": CLIENT_METRICS, "ResourceName": name,
            "ConfigurationKeys": keys}], "IncludeSynonyms": true})
    };
    let listed = json!({"ResourceTypes": [CLIENT_METRICS]});
    let is_done = |answer: &Tree| answer.to_string().contains("replaced-2");
    session.until(ApiKey::ListConfigResources, &listed, is_done)?;
    session.ask_in(0..=0, ApiKey::ListConfigResources, "client metrics that exist", &json!({}))?;
    session.ask_in(1..=1, ApiKey::ListConfigResources, "client metrics that exist", &listed)?;
    let api = ApiKey::DescribeConfigs;
    session.ask(api, "client metrics that exist", &of("clients-1", Value::Null))?;
    session.ask(api, "client metrics with a pattern", &of("replaced-1", Value::Null))?;
    session.ask(api, "a key of client metrics", &of("clients-1", json!(["metrics"])))?;
    session.ask(api, "client metrics without a name", &of("", Value::Null))?;
    session.denied(api, "client metrics", &of("clients-1", Value::Null))
}

fn asking(id: &str) -> Value {
    json!({"ClientInstanceId": id})
}

fn subscriptions(session: &mut Session) -> Result<()> {
    let api = ApiKey::GetTelemetrySubscriptions;
    session.ask(api, "a client without an id", &asking(ZERO))?;
    let wanted = alter(
        "everyone",
        &[("metrics", SET, json!("org.apache.kafka.")), ("interval.ms", SET, json!("3600000"))],
    );
    session.must(ApiKey::IncrementalAlterConfigs, &wanted)?;
    let is_wanted = |answer: &Tree| answer.to_string().contains("org.apache.kafka.");
    session.until(api, &asking(ZERO), is_wanted)?;
    session.ask(api, "a client", &asking(IDS[0]))?;
    session.ask(api, "a client that asks again", &asking(IDS[0]))?;
    session.ask(api, "a client of the id 1", &asking(ONE))?;
    session.denied(api, "a client", &asking(IDS[1]))
}

fn pushes(session: &mut Session) -> Result<()> {
    let api = ApiKey::PushTelemetry;
    // An empty gauge.
    let metrics = tree::hex(&[10, 10, 18, 8, 18, 6, 10, 1, b'a', 42, 1, 0]);
    let of = |id: &str, subscription: i64, compression: i8, metrics: &str, is_last: bool| {
        json!({"ClientInstanceId": id, "SubscriptionId": subscription, "Terminating": is_last,
            "CompressionType": compression, "Metrics": metrics})
    };
    session.ask(api, "a client without an id", &of(ZERO, 0, 0, "", false))?;
    session.ask(api, "a client of the id 1", &of(ONE, 0, 0, "", false))?;
    session.ask(api, "another subscription", &of(IDS[2], 1, 0, "", false))?;
    session.ask(api, "too early", &of(IDS[2], 1, 0, "", false))?;
    let get = ApiKey::GetTelemetrySubscriptions;
    session.ask(get, "a client of another subscription", &asking(IDS[2]))?;
    let own = session.must(get, &asking(IDS[3]))?.number("SubscriptionId")?;
    let cut = "0a";
    session.ask(api, "a compression that does not exist", &of(IDS[3], own, 9, "", false))?;
    session.ask(api, "the last of a client", &of(IDS[3], own, 0, &metrics, true))?;
    session.ask(api, "after the last", &of(IDS[3], own, 0, "", false))?;
    let own = session.must(get, &asking(IDS[4]))?.number("SubscriptionId")?;
    session.ask(api, "no metrics of OTLP", &of(IDS[4], own, 0, cut, true))?;
    session.denied(api, "a client", &of(ZERO, 0, 0, "", false))?;
    session.must(
        ApiKey::IncrementalAlterConfigs,
        &alter(
            "everyone",
            &[("metrics", DELETE, Value::Null), ("interval.ms", DELETE, Value::Null)],
        ),
    )?;
    Ok(())
}
