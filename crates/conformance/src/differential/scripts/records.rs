//! Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, EMPTY, ORDERS, batch, topic, with};
use crate::differential::session::Session;

/// Enough for all that the topics hold.
const BYTES_MAX: i32 = 1 << 20;

/// No leader has this epoch.
const EPOCH_TO_COME: i32 = 1_000_000;

pub(super) fn run(session: &mut Session) -> Result<()> {
    produce(session)?;
    fetch(session)?;
    fetch_sessions(session)?;
    list_offsets(session)?;
    leader_epochs(session)?;
    producers(session)?;
    delete_records(session)
}

fn produce(session: &mut Session) -> Result<()> {
    let records = batch(session, 2);
    let one = |index: i32| json!({"PartitionData": [{"Index": index, "Records": records}]});
    let orders = topic(session, ORDERS, &one(0))?;
    let body = |topics: Vec<Value>| json!({"Acks": -1, "TimeoutMs": 5000, "TopicData": topics});
    let good = body(vec![orders.clone()]);
    let twice = json!({"PartitionData": [
        {"Index": 0, "Records": records}, {"Index": 9, "Records": records},
        {"Index": 1, "Records": records}]});
    let of = |rest: &Value| topic(session, ORDERS, rest);
    let cases = [
        ("a batch", good.clone()),
        ("acks of the leader", with(&good, "Acks", json!(1))),
        ("acks of two", with(&good, "Acks", json!(2))),
        ("acks of -2", with(&good, "Acks", json!(-2))),
        ("a timeout of -1", with(&good, "TimeoutMs", json!(-1))),
        ("no topics", body(vec![])),
        ("a topic without partitions", body(vec![of(&json!({}))?])),
        ("an unknown topic", body(vec![topic(session, ABSENT, &one(0))?])),
        ("no name and no id", body(vec![topic(session, "", &one(0))?])),
        ("an unknown partition", body(vec![of(&one(2))?])),
        ("partition -1", body(vec![of(&one(-1))?])),
        ("the last partition that a number can name", body(vec![of(&one(i32::MAX))?])),
        ("good and bad partitions", body(vec![of(&twice)?])),
        (
            "good and bad topics",
            body(vec![
                topic(session, ABSENT, &one(0))?,
                of(&one(0))?,
                topic(session, "", &one(0))?,
            ]),
        ),
        ("no records", body(vec![of(&json!({"PartitionData": [{"Index": 0, "Records": ""}]}))?])),
        ("a transactional id", with(&good, "TransactionalId", json!("payments"))),
        ("an empty transactional id", with(&good, "TransactionalId", json!(""))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::Produce, name, request)?;
    }
    session.denied(ApiKey::Produce, "a batch", &good)?;
    session.denied(ApiKey::Produce, "no topics", &body(vec![]))?;
    session.denied(
        ApiKey::Produce,
        "a transactional id",
        &with(&good, "TransactionalId", json!("p")),
    )
}

/// A partition of a fetch, from an offset.
fn from(partition: i32, offset: i64) -> Value {
    json!({"Partition": partition, "CurrentLeaderEpoch": -1, "FetchOffset": offset,
        "LastFetchedEpoch": -1, "LogStartOffset": -1, "PartitionMaxBytes": BYTES_MAX})
}

/// The name of a topic stands in another field than elsewhere.
fn fetched(session: &Session, name: &str, partitions: &[Value]) -> Result<Value> {
    let mut one = topic(session, name, &json!({"Topic": name, "Partitions": partitions}))?;
    one.as_object_mut().map(|it| it.remove("Name"));
    Ok(one)
}

fn fetch_of(topics: &[Value]) -> Value {
    json!({"ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": BYTES_MAX,
        "SessionId": 0, "SessionEpoch": -1, "Topics": topics})
}

fn fetch(session: &mut Session) -> Result<()> {
    let one = |name: &str, partition: Value| fetched(session, name, &[partition]);
    let good = fetch_of(&[one(ORDERS, from(0, 0))?]);
    let of = |partition: Value| Ok::<_, anyhow::Error>(fetch_of(&[one(ORDERS, partition)?]));
    let changed = |name: &str, value: i32| of(with(&from(0, 0), name, json!(value)));
    let cases = [
        ("from the start", good.clone()),
        ("from within a batch", of(from(0, 1))?),
        ("an empty partition", fetch_of(&[one(EMPTY, from(0, 0))?])),
        ("beyond the end", of(from(0, 1_000_000))?),
        ("offset -1", of(from(0, -1))?),
        ("the last offset that a number can name", of(from(0, i64::MAX))?),
        ("an unknown partition", of(from(7, 0))?),
        ("partition -1", of(from(-1, 0))?),
        ("an unknown topic", fetch_of(&[one(ABSENT, from(0, 0))?])),
        ("no name and no id", fetch_of(&[one("", from(0, 0))?])),
        (
            "good and bad topics",
            fetch_of(&[
                one(ABSENT, from(0, 0))?,
                one(ORDERS, from(0, 2))?,
                one(EMPTY, from(3, 0))?,
            ]),
        ),
        ("no topics", fetch_of(&[])),
        ("a topic without partitions", fetch_of(&[fetched(session, ORDERS, &[])?])),
        ("a partition twice", fetch_of(&[fetched(session, ORDERS, &[from(0, 0), from(0, 2)])?])),
        ("a topic twice", fetch_of(&[one(ORDERS, from(0, 0))?, one(ORDERS, from(1, 0))?])),
        ("a leader epoch to come", changed("CurrentLeaderEpoch", EPOCH_TO_COME)?),
        ("a leader epoch of -2", changed("CurrentLeaderEpoch", -2)?),
        ("the leader epoch", changed("CurrentLeaderEpoch", 0)?),
        ("a last epoch to come", changed("LastFetchedEpoch", EPOCH_TO_COME)?),
        ("the last epoch", changed("LastFetchedEpoch", 0)?),
        ("no bytes of the partition", changed("PartitionMaxBytes", 0)?),
        ("-1 bytes of the partition", changed("PartitionMaxBytes", -1)?),
        ("no bytes", with(&good, "MaxBytes", json!(0))),
        ("-1 bytes", with(&good, "MaxBytes", json!(-1))),
        ("committed records", with(&good, "IsolationLevel", json!(1))),
        ("an isolation level of 9", with(&good, "IsolationLevel", json!(9))),
        ("a wait of -1", with(&good, "MaxWaitMs", json!(-1))),
        ("at least -1 bytes", with(&good, "MinBytes", json!(-1))),
        ("a rack", with(&good, "RackId", json!("rack"))),
        ("another cluster", with(&good, "ClusterId", json!("other"))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::Fetch, name, request)?;
    }
    session.denied(ApiKey::Fetch, "from the start", &good)?;
    session.denied(
        ApiKey::Fetch,
        "an unknown topic",
        &fetch_of(&[fetched(session, ABSENT, &[from(0, 0)])?]),
    )
}

/// Sessions of KIP-227.
fn fetch_sessions(session: &mut Session) -> Result<()> {
    let api = ApiKey::Fetch;
    let orders = fetch_of(&[fetched(session, ORDERS, &[from(1, 0)])?]);
    let of = |base: &Value, id: i64, epoch: i32| {
        with(&with(base, "SessionId", json!(id)), "SessionEpoch", json!(epoch))
    };
    let none = fetch_of(&[]);
    for version in session.versions_of(api).filter(|version| *version >= 7) {
        let versions = version..=version;
        let mut ask = |case: &str, body: &Value| session.ask_in(versions.clone(), api, case, body);
        let begun = ask("a session", &of(&orders, 0, 0))?;
        let id = begun.first().map_or(Ok(0), |answer| answer.number("SessionId"))?;
        ask("a session goes on", &of(&none, id, 1))?;
        ask("an epoch of a session again", &of(&none, id, 1))?;
        ask("an epoch of a session too far", &of(&none, id, 9))?;
        ask("an unknown session", &of(&none, 77_777, 1))?;
        ask("a session of -1", &of(&none, -1, 1))?;
        ask("a session ends", &of(&none, id, -1))?;
        ask("a session that has ended", &of(&none, id, 2))?;
    }
    Ok(())
}

fn list_offsets(session: &mut Session) -> Result<()> {
    fn one(partition: i32, epoch: i32, timestamp: i64) -> Value {
        json!({"PartitionIndex": partition, "CurrentLeaderEpoch": epoch, "Timestamp": timestamp})
    }
    let of = |name: &str, partitions: &[Value]| {
        json!({"ReplicaId": -1, "TimeoutMs": 5000,
            "Topics": [{"Name": name, "Partitions": partitions}]})
    };
    let at = |timestamp: i64| of(ORDERS, &[one(0, -1, timestamp), one(1, -1, timestamp)]);
    let now = session.now_ms();
    let latest = at(-1);
    let cases = [
        ("latest", latest.clone()),
        ("earliest", at(-2)),
        ("the greatest timestamp", at(-3)),
        ("the earliest local", at(-4)),
        ("the latest tiered", at(-5)),
        ("the earliest pending upload", at(-6)),
        ("a timestamp of -7", at(-7)),
        ("the first timestamp of a batch", at(now)),
        ("the second timestamp of a batch", at(now + 1)),
        ("a timestamp to come", at(now + 1_000_000)),
        ("timestamp 0", at(0)),
        ("the last timestamp that a number can name", at(i64::MAX)),
        ("an empty partition", of(EMPTY, &[one(0, -1, -3)])),
        ("an empty partition, by time", of(EMPTY, &[one(0, -1, now)])),
        ("an unknown topic", of(ABSENT, &[one(0, -1, -1)])),
        ("an empty name", of("", &[one(0, -1, -1)])),
        ("an unknown partition", of(ORDERS, &[one(7, -1, -1)])),
        ("partition -1", of(ORDERS, &[one(-1, -1, -1)])),
        ("a partition twice", of(ORDERS, &[one(0, -1, -1), one(0, -1, -2)])),
        ("a leader epoch to come", of(ORDERS, &[one(0, 5, -1)])),
        ("the leader epoch", of(ORDERS, &[one(0, 0, -1)])),
        ("no topics", json!({"ReplicaId": -1, "Topics": []})),
        ("a topic without partitions", of(ORDERS, &[])),
        ("committed records", with(&latest, "IsolationLevel", json!(1))),
        ("an isolation level of 9", with(&latest, "IsolationLevel", json!(9))),
        ("of a debugger", with(&latest, "ReplicaId", json!(-2))),
        ("of another broker", with(&latest, "ReplicaId", json!(7))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::ListOffsets, name, request)?;
    }
    session.denied(ApiKey::ListOffsets, "latest", &latest)?;
    session.denied(ApiKey::ListOffsets, "an unknown topic", &of(ABSENT, &[one(0, -1, -1)]))
}

fn leader_epochs(session: &mut Session) -> Result<()> {
    let of = |name: &str, partition: i32, current: i32, epoch: i32| {
        json!({"ReplicaId": -2, "Topics": [{"Topic": name, "Partitions": [
            {"Partition": partition, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch}]}]})
    };
    let good = of(ORDERS, 0, -1, 0);
    let cases = [
        ("the epoch", good.clone()),
        ("the epoch, knowing the leader's", of(ORDERS, 0, 0, 0)),
        ("an epoch to come", of(ORDERS, 0, -1, EPOCH_TO_COME)),
        ("epoch -1", of(ORDERS, 0, -1, -1)),
        ("a leader epoch to come", of(ORDERS, 0, 5, 0)),
        ("an empty partition", of(EMPTY, 0, -1, 0)),
        ("an unknown partition", of(ORDERS, 7, -1, 0)),
        ("partition -1", of(ORDERS, -1, -1, 0)),
        ("an unknown topic", of(ABSENT, 0, -1, 0)),
        ("no topics", json!({"ReplicaId": -2, "Topics": []})),
        ("of a consumer", with(&good, "ReplicaId", json!(-1))),
        ("of another broker", with(&good, "ReplicaId", json!(7))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::OffsetForLeaderEpoch, name, request)?;
    }
    session.denied(ApiKey::OffsetForLeaderEpoch, "the epoch", &good)?;
    session.denied(ApiKey::OffsetForLeaderEpoch, "an unknown topic", &of(ABSENT, 0, -1, 0))
}

fn producers(session: &mut Session) -> Result<()> {
    fn of(name: &str, partitions: &[i32]) -> Value {
        json!({"Topics": [{"Name": name, "PartitionIndexes": partitions}]})
    }
    let cases = [
        ("no producers", of(ORDERS, &[0, 1])),
        ("unknown partitions", of(ORDERS, &[7, -1])),
        ("a partition twice", of(ORDERS, &[0, 0])),
        ("an unknown topic", of(ABSENT, &[0])),
        ("an empty name", of("", &[0])),
        ("no topics", json!({"Topics": []})),
        ("no partitions", of(ORDERS, &[])),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeProducers, name, request)?;
    }
    session.denied(ApiKey::DescribeProducers, "no producers", &of(ORDERS, &[0]))?;
    session.denied(ApiKey::DescribeProducers, "an unknown topic", &of(ABSENT, &[0]))
}

fn delete_records(session: &mut Session) -> Result<()> {
    let of = |name: &str, partition: i32, offset: i64| {
        json!({"TimeoutMs": 5000, "Topics": [{"Name": name, "Partitions": [
            {"PartitionIndex": partition, "Offset": offset}]}]})
    };
    let good = of(ORDERS, 0, 1);
    let cases = [
        ("a record", good.clone()),
        ("records that are gone", of(ORDERS, 0, 0)),
        ("beyond the end", of(ORDERS, 0, 1_000_000)),
        ("offset -2", of(ORDERS, 0, -2)),
        ("the last offset that a number can name", of(ORDERS, 0, i64::MAX)),
        ("an unknown partition", of(ORDERS, 7, 0)),
        ("partition -1", of(ORDERS, -1, 0)),
        ("an unknown topic", of(ABSENT, 0, 0)),
        ("an empty name", of("", 0, 0)),
        ("no topics", json!({"TimeoutMs": 5000, "Topics": []})),
        ("a timeout of -1", with(&of(ORDERS, 0, 2), "TimeoutMs", json!(-1))),
        ("to the end", of(ORDERS, 1, -1)),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DeleteRecords, name, request)?;
    }
    session.denied(ApiKey::DeleteRecords, "a record", &good)?;
    session.denied(ApiKey::DeleteRecords, "an unknown topic", &of(ABSENT, 0, 0))?;
    let deleted = fetch_of(&[fetched(session, ORDERS, &[from(0, 0), from(1, 0)])?]);
    session.ask(ApiKey::Fetch, "records that are gone", &deleted).map(drop)
}
