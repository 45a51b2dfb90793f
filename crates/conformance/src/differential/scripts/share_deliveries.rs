//! Records of share groups: ShareFetch, ShareAcknowledge, and the offsets of a group.
//!
//! Each version has a group of its own, so that it finds the same records. A share group begins at
//! the end of a topic, so its offset is set to 0 before.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{batch, with};
use crate::differential::session::Session;
use crate::differential::tree::Tree;

/// A topic of one partition with four records, in batches of two.
const SHARED_RECORDS: &str = "shared-records";

/// The member: Kafka wants an id in base64url.
const MEMBER: &str = "AAAAAAAAAAkAAAAAAAAACQ";

/// Kafka's numbers: resources with a configuration, and the acknowledgement that gives a record up.
const TOPIC: i8 = 2;
const GROUPS: i8 = 32;
const REJECT: i8 = 3;

/// Where records go that a group gives up.
const DEAD_LETTERS: &str = "dlq.differential";

const OTHER_MEMBER: &str = "AAAAAAAAAAwAAAAAAAAADA";

/// A group that does not exist, and one that exists once its offsets were altered, on Kafka.
const ABSENT_GROUP: &str = "absent-deliveries";
const MADE_GROUP: &str = "made-deliveries";

pub(super) fn run(session: &mut Session) -> Result<()> {
    session.create_topics(&[(SHARED_RECORDS, 1)])?;
    let id = session.id_of(SHARED_RECORDS)?;
    for _ in 0..2 {
        let records = json!({"PartitionData": [{"Index": 0, "Records": batch(session, 2)}]});
        let topic = with(&with(&records, "Name", json!(SHARED_RECORDS)), "TopicId", json!(id));
        let produce = json!({"Acks": -1, "TimeoutMs": 5000, "TopicData": [topic]});
        session.must(ApiKey::Produce, &produce)?;
    }
    for api in [ApiKey::ShareFetch, ApiKey::ShareAcknowledge] {
        for version in session.versions_of(api) {
            begin_at_zero(session, &group(api, &version.to_string()))?;
        }
    }
    fetch(session, &id)?;
    acknowledge(session, &id)?;
    forget(session, &id)?;
    dead_letters(session, &id)?;
    describe_offsets(session)?;
    alter_offsets(session)?;
    delete_offsets(session)
}

fn group(api: ApiKey, version: &str) -> String {
    format!("{api}-{version}")
}

/// Makes a group that reads the topic from its first record.
fn begin_at_zero(session: &mut Session, group: &str) -> Result<()> {
    let coordinator = json!({"KeyType": 0, "Key": group, "CoordinatorKeys": [group]});
    session.must(ApiKey::FindCoordinator, &coordinator)?;
    let beat = |epoch: i32| {
        json!({"GroupId": group, "MemberId": MEMBER, "MemberEpoch": epoch,
            "SubscribedTopicNames": [SHARED_RECORDS]})
    };
    // The offsets of a group without members can be altered.
    session.must(ApiKey::ShareGroupHeartbeat, &beat(0))?;
    session.must(ApiKey::ShareGroupHeartbeat, &beat(-1))?;
    session.must(ApiKey::AlterShareGroupOffsets, &altered(group, SHARED_RECORDS, 0, 0)).map(drop)
}

fn altered(group: &str, topic: &str, partition: i32, offset: i64) -> Value {
    json!({"GroupId": group, "Topics": [{"TopicName": topic,
        "Partitions": [{"PartitionIndex": partition, "StartOffset": offset}]}]})
}

/// A fetch of a partition that acknowledges what `acknowledged` says.
fn fetching(group: &str, topic: &str, epoch: i32, acknowledged: &Value) -> Value {
    json!({"GroupId": group, "MemberId": MEMBER, "ShareSessionEpoch": epoch, "MaxWaitMs": 100,
        "MinBytes": 0, "MaxBytes": 1_000_000, "MaxRecords": 2, "BatchSize": 2,
        "Topics": [{"TopicId": topic, "Partitions": [{"PartitionIndex": 0,
            "AcknowledgementBatches": acknowledged}]}],
        "ForgottenTopicsData": []})
}

fn batch_of(first: i64, last: i64, types: &[i8]) -> Value {
    json!([{"FirstOffset": first, "LastOffset": last, "AcknowledgeTypes": types}])
}

fn fetch(session: &mut Session, id: &str) -> Result<()> {
    let api = ApiKey::ShareFetch;
    let group = group(api, "$v");
    let none = json!([]);
    let of = |epoch: i32, acknowledged: &Value| fetching(&group, id, epoch, acknowledged);
    let first = of(0, &none);
    let cases = [
        ("no group", with(&first, "GroupId", json!(""))),
        ("no member", with(&first, "MemberId", json!(""))),
        ("a session that does not exist", of(3, &none)),
        ("an end of a session that does not exist", of(-1, &none)),
        ("acknowledgements of a new session", of(0, &batch_of(0, 0, &[1]))),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "a first fetch", &first)
}

fn acknowledge(session: &mut Session, id: &str) -> Result<()> {
    let api = ApiKey::ShareAcknowledge;
    let group = group(api, "$v");
    let of = |epoch: i32, topic: &str, acknowledged: &Value| {
        json!({"GroupId": group, "MemberId": MEMBER, "ShareSessionEpoch": epoch,
            "Topics": [{"TopicId": topic, "Partitions": [{"PartitionIndex": 0,
                "AcknowledgementBatches": acknowledged}]}]})
    };
    let accepted = batch_of(0, 0, &[1]);
    let good = of(1, id, &accepted);
    let cases = [
        ("no group", with(&good, "GroupId", json!(""))),
        ("no member", with(&good, "MemberId", json!(""))),
        ("a session that does not exist", good.clone()),
        ("a first epoch", of(0, id, &accepted)),
        ("an end of a session that does not exist", of(-1, id, &accepted)),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "an accepted record", &good)
}

/// What a member holds of a partition that its session forgets stays with it.
fn forget(session: &mut Session, id: &str) -> Result<()> {
    let api = ApiKey::ShareFetch;
    for version in session.versions_of(api) {
        let group = format!("forgetting-{version}");
        begin_at_zero(session, &group)?;
        let first = fetching(&group, id, 0, &json!([]));
        let has_records = |answer: &Tree| !answer.all("FirstOffset").is_empty();
        session.until(api, &first, has_records)?;
        let forgotten = json!([{"TopicId": id, "Partitions": [0]}]);
        let forgets = with(&fetching(&group, id, 1, &json!([])), "Topics", json!([]));
        let forgets = with(&forgets, "ForgottenTopicsData", forgotten);
        let other = with(&first, "MemberId", json!(OTHER_MEMBER));
        let versions = version..=version;
        session.ask_in(versions.clone(), api, "a partition is forgotten", &forgets)?;
        session.ask_in(versions, api, "another member after that", &other)?;
    }
    Ok(())
}

/// Rejected records come to the group's dead-letter topic, with headers that say why (KIP-1191).
fn dead_letters(session: &mut Session, id: &str) -> Result<()> {
    const GROUP: &str = "burying";
    session.create_topics(&[(DEAD_LETTERS, 1)])?;
    let resource = |kind: i8, name: &str, configs: &[(&str, &str)]| {
        let set =
            |(key, to): &(&str, &str)| json!({"Name": key, "ConfigOperation": 0, "Value": to});
        let configs: Vec<_> = configs.iter().map(set).collect();
        json!({"ResourceType": kind, "ResourceName": name, "Configs": configs})
    };
    let own = [
        ("errors.deadletterqueue.topic.name", DEAD_LETTERS),
        ("errors.deadletterqueue.copy.record.enable", "true"),
    ];
    let takes = [("errors.deadletterqueue.group.enable", "true")];
    let resources = [resource(TOPIC, DEAD_LETTERS, &takes), resource(GROUPS, GROUP, &own)];
    session.must(ApiKey::IncrementalAlterConfigs, &json!({"Resources": resources}))?;
    begin_at_zero(session, GROUP)?;
    let has_records = |answer: &Tree| !answer.all("FirstOffset").is_empty();
    session.until(ApiKey::ShareFetch, &fetching(GROUP, id, 0, &json!([])), has_records)?;
    let rejected = json!({"GroupId": GROUP, "MemberId": MEMBER, "ShareSessionEpoch": 1,
        "Topics": [{"TopicId": id, "Partitions": [{"PartitionIndex": 0,
            "AcknowledgementBatches": batch_of(0, 1, &[REJECT])}]}]});
    session.must(ApiKey::ShareAcknowledge, &rejected)?;
    let letters = json!({"Partition": 0, "CurrentLeaderEpoch": -1, "FetchOffset": 0,
        "LastFetchedEpoch": -1, "LogStartOffset": -1, "PartitionMaxBytes": 1 << 20});
    let topic = json!({"Topic": DEAD_LETTERS, "TopicId": session.id_of(DEAD_LETTERS)?,
        "Partitions": [letters]});
    let fetch = json!({"ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20,
        "SessionId": 0, "SessionEpoch": -1, "Topics": [topic]});
    let is_whole = |answer: &Tree| answer.number("HighWatermark").is_ok_and(|end| end >= 2);
    session.until(ApiKey::Fetch, &fetch, is_whole)?;
    session.ask(ApiKey::Fetch, "dead letters", &fetch).map(drop)
}

fn describe_offsets(session: &mut Session) -> Result<()> {
    let api = ApiKey::DescribeShareGroupOffsets;
    let of = |group: &str, topics: Value| json!({"Groups": [{"GroupId": group, "Topics": topics}]});
    let one =
        |topic: &str, partition: i32| json!([{"TopicName": topic, "Partitions": [partition]}]);
    let group = group(ApiKey::ShareAcknowledge, "1");
    // Kafka never answers for a partition that does not exist.
    let cases = [
        ("a partition", of(&group, one(SHARED_RECORDS, 0))),
        ("all partitions", of(&group, Value::Null)),
        ("an unknown topic", of(&group, one(super::ABSENT, 0))),
        ("a topic without an offset", of(&group, one(super::ORDERS, 0))),
        ("no topics", of(&group, json!([]))),
        ("an unknown group", of(ABSENT_GROUP, one(SHARED_RECORDS, 0))),
        ("all partitions of an unknown group", of(ABSENT_GROUP, Value::Null)),
        ("a classic group", of("described", one(SHARED_RECORDS, 0))),
        ("no group", of("", one(SHARED_RECORDS, 0))),
        ("no groups", json!({"Groups": []})),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "a partition", &cases[0].1)?;
    session.denied(api, "all partitions", &cases[1].1)
}

fn alter_offsets(session: &mut Session) -> Result<()> {
    let api = ApiKey::AlterShareGroupOffsets;
    let group = group(ApiKey::ShareAcknowledge, "1");
    let cases = [
        ("a partition", altered(&group, SHARED_RECORDS, 0, 2)),
        ("an unknown partition", altered(&group, SHARED_RECORDS, 7, 0)),
        ("an unknown topic", altered(&group, super::ABSENT, 0, 0)),
        ("an unknown topic of an unknown group", altered(MADE_GROUP, super::ABSENT, 0, 0)),
        ("an unknown group", altered(MADE_GROUP, SHARED_RECORDS, 0, 0)),
        ("a classic group", altered("described", SHARED_RECORDS, 0, 0)),
        ("a group with members", altered("shared", SHARED_RECORDS, 0, 0)),
        ("no group", altered("", SHARED_RECORDS, 0, 0)),
        ("no topics", json!({"GroupId": group, "Topics": []})),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "a partition", &cases[0].1)?;
    let described = json!({"GroupIds": [MADE_GROUP], "IncludeAuthorizedOperations": false});
    session.ask(ApiKey::ShareGroupDescribe, "a group that an alteration made", &described)?;
    let made = json!({"GroupsNames": [MADE_GROUP]});
    session.until(ApiKey::DeleteGroups, &made, |_| true).map(drop)
}

fn delete_offsets(session: &mut Session) -> Result<()> {
    let api = ApiKey::DeleteShareGroupOffsets;
    let group = group(ApiKey::ShareAcknowledge, "1");
    let of = |group: &str, topics: &[&str]| {
        let topics: Vec<_> = topics.iter().map(|topic| json!({"TopicName": topic})).collect();
        json!({"GroupId": group, "Topics": topics})
    };
    let cases = [
        ("a topic without an offset", of(&group, &[super::ORDERS])),
        ("an unknown topic", of(&group, &[super::ABSENT])),
        ("no topics", of(&group, &[])),
        ("a topic", of(&group, &[SHARED_RECORDS])),
        ("a topic again", of(&group, &[SHARED_RECORDS])),
        ("an unknown group", of(ABSENT_GROUP, &[SHARED_RECORDS])),
        ("a classic group", of("described", &[SHARED_RECORDS])),
        ("a group with members", of("shared", &[SHARED_RECORDS])),
        ("no group", of("", &[SHARED_RECORDS])),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "a topic", &of(&group, &[SHARED_RECORDS]))
}
