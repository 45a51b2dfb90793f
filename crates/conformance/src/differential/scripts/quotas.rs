//! AlterClientQuotas and DescribeClientQuotas.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::with;
use crate::differential::session::Session;
use crate::differential::tree::Tree;

pub(super) fn run(session: &mut Session) -> Result<()> {
    describe(session)?;
    alter(session)?;
    describe_altered(session)
}

/// An entity as kinds and names.
fn entity(parts: &[(&str, Value)]) -> Value {
    parts.iter().map(|(kind, name)| json!({"EntityType": kind, "EntityName": name})).collect()
}

fn entry(parts: &[(&str, Value)], ops: &[(&str, Option<f64>)]) -> Value {
    let ops = ops.iter().map(|(key, value)| {
        let bits = i64::from_be_bytes(value.unwrap_or_default().to_be_bytes());
        json!({"Key": key, "Value": bits, "Remove": value.is_none()})
    });
    json!({"Entity": entity(parts), "Ops": ops.collect::<Vec<_>>()})
}

fn alter(session: &mut Session) -> Result<()> {
    let of = |entries: &[Value]| json!({"Entries": entries});
    let one =
        |parts: &[(&str, Value)], key: &str, value: f64| of(&[entry(parts, &[(key, Some(value))])]);
    let user = || ("user", json!("alice-$v"));
    let client = || ("client-id", json!("app-$v"));
    let (any_user, any_client) = (("user", Value::Null), ("client-id", Value::Null));
    let rate = "producer_byte_rate";
    let all = [
        (rate, Some(1e15)),
        ("consumer_byte_rate", Some(1e15)),
        ("request_percentage", Some(1e6)),
        ("controller_mutation_rate", Some(1e6 + 0.5)),
    ];
    let good = of(&[entry(&[user()], &all)]);
    let cases = [
        ("a user", good.clone()),
        ("a user again", good.clone()),
        ("a client", one(&[client()], rate, 1e15)),
        ("a user and a client", one(&[client(), user()], rate, 1e15)),
        ("a user and any client", one(&[user(), any_client.clone()], rate, 1e15)),
        ("an address", one(&[("ip", json!("10.0.0.$v"))], "connection_creation_rate", 1e6)),
        ("any address", one(&[("ip", Value::Null)], "connection_creation_rate", 1e6)),
        ("a host of no form", one(&[("ip", json!("not a host"))], "connection_creation_rate", 1e6)),
        ("a user with the quota of an address", one(&[user()], "connection_creation_rate", 1e6)),
        ("an address with the quota of a user", one(&[("ip", json!("10.0.0.7"))], rate, 1e6)),
        ("a user and an address", one(&[user(), ("ip", json!("10.0.0.7"))], rate, 1e6)),
        ("a quota that does not exist", one(&[user()], "planets_rate", 1.0)),
        ("a quota of 0", one(&[user()], rate, 0.0)),
        ("a quota of -1", one(&[user()], rate, -1.0)),
        ("a quota of 1.5", one(&[user()], rate, 1.5)),
        ("a quota of almost a whole number", one(&[user()], rate, 1e6 + 1e-7)),
        ("a percentage of 0", one(&[user()], "request_percentage", 0.0)),
        ("a kind that does not exist", one(&[("planet", json!("mars"))], rate, 1e6)),
        ("an empty kind", one(&[("", json!("mars"))], rate, 1e6)),
        ("an empty user", one(&[("user", json!(""))], rate, 1e6)),
        ("a user twice", one(&[user(), any_user.clone()], rate, 1e6)),
        ("an entity of nothing", one(&[], rate, 1e6)),
        ("a quota twice", of(&[entry(&[user()], &[(rate, Some(1e6)), (rate, Some(1e7))])])),
        ("a quota that is not there", of(&[entry(&[("user", json!("bob"))], &[(rate, None)])])),
        (
            "removing a quota that does not exist",
            of(&[entry(&[("user", json!("bob"))], &[("planets_rate", None)])]),
        ),
        ("no quotas", of(&[entry(&[user()], &[])])),
        ("nothing", of(&[])),
        (
            "good and bad",
            of(&[
                entry(&[user()], &[(rate, Some(-1.0))]),
                entry(&[client()], &[(rate, Some(1e14))]),
            ]),
        ),
        ("removing one", of(&[entry(&[user()], &[("controller_mutation_rate", None)])])),
    ];
    let only = |case: &Value| with(case, "ValidateOnly", json!(true));
    session.ask(ApiKey::AlterClientQuotas, "validating a user", &only(&good))?;
    let bad = only(&one(&[user()], rate, -1.0));
    session.ask(ApiKey::AlterClientQuotas, "validating a quota of -1", &bad)?;
    for (name, request) in &cases {
        session.ask(ApiKey::AlterClientQuotas, name, request)?;
    }
    session.denied(ApiKey::AlterClientQuotas, "a user", &good)
}

fn describe_altered(session: &mut Session) -> Result<()> {
    let all = json!({"Components": []});
    // Kafka's broker learns of the last change a moment later.
    let is_done = |answer: &Tree| {
        let text = answer.to_string();
        text.contains("alice-1") && !text.contains("controller_mutation_rate")
    };
    session.until(ApiKey::DescribeClientQuotas, &all, is_done)?;
    let component = |kind: &str, match_type: i8, name: Value| -> Value {
        json!({"EntityType": kind, "MatchType": match_type, "Match": name})
    };
    let of = |components: &[Value]| json!({"Components": components});
    let alice = component("user", 0, json!("alice-1"));
    let cases = [
        ("all that there are", all),
        ("a user that has some", of(std::slice::from_ref(&alice))),
        ("that user alone", with(&of(std::slice::from_ref(&alice)), "Strict", json!(true))),
        ("the user with any client", of(&[alice.clone(), component("client-id", 2, Value::Null)])),
        ("the user by all clients", of(&[alice, component("client-id", 1, Value::Null)])),
        ("users", with(&of(&[component("user", 2, Value::Null)]), "Strict", json!(true))),
        ("the address of all", of(&[component("ip", 1, Value::Null)])),
        ("addresses", of(&[component("ip", 2, Value::Null)])),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeClientQuotas, name, request)?;
    }
    Ok(())
}

fn describe(session: &mut Session) -> Result<()> {
    fn of(kind: &str, match_type: i8, name: Value) -> Value {
        json!({"Components": [{"EntityType": kind, "MatchType": match_type, "Match": name}]})
    }
    let user = of("user", 0, json!("alice"));
    let cases = [
        ("all", json!({"Components": []})),
        ("a user", user.clone()),
        ("a user, strictly", with(&user, "Strict", json!(true))),
        ("the default user", of("user", 1, Value::Null)),
        ("any user", of("user", 2, Value::Null)),
        ("a client", of("client-id", 0, json!("a"))),
        ("an address", of("ip", 0, json!("127.0.0.1"))),
        ("a kind that does not exist", of("planet", 0, json!("a"))),
        ("an empty kind", of("", 0, json!("a"))),
        ("a match of type 9", of("user", 9, json!("a"))),
        ("an exact match without a name", of("user", 0, Value::Null)),
        ("a default with a name", of("user", 1, json!("a"))),
        (
            "a kind twice",
            json!({"Components": [
                {"EntityType": "user", "MatchType": 0, "Match": "a"},
                {"EntityType": "user", "MatchType": 0, "Match": "b"}]}),
        ),
        (
            "a user and an address",
            json!({"Components": [
                {"EntityType": "user", "MatchType": 0, "Match": "a"},
                {"EntityType": "ip", "MatchType": 0, "Match": "127.0.0.1"}]}),
        ),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeClientQuotas, name, request)?;
    }
    session.denied(ApiKey::DescribeClientQuotas, "all", &cases[0].1)
}
