//! OffsetCommit, OffsetFetch and OffsetDelete.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::groups::stable_group;
use super::{ABSENT, EMPTY, ORDERS, topic, with};
use crate::differential::session::Session;

/// A group that commits without members, and one with a member.
const SIMPLE: &str = "simple";
const MANAGED: &str = "managed";

/// One byte more than the text of a commit may have.
const METADATA_LONG: usize = 4097;

pub(super) fn run(session: &mut Session) -> Result<()> {
    let member = stable_group(session, MANAGED)?;
    commit(session, &member)?;
    fetch(session)?;
    delete(session)
}

fn commit(session: &mut Session, member: &str) -> Result<()> {
    let at = |partition: i32, offset: i64, text: Value| {
        json!({"Partitions": [{"PartitionIndex": partition, "CommittedOffset": offset,
            "CommittedLeaderEpoch": -1, "CommittedMetadata": text}]})
    };
    let of = |group: &str, topics: Vec<Value>| {
        json!({"GroupId": group, "GenerationIdOrMemberEpoch": -1, "MemberId": "",
            "RetentionTimeMs": -1, "Topics": topics})
    };
    let one = |name: &str, partition: i32, offset: i64, text: Value| {
        Ok::<_, anyhow::Error>(of(
            SIMPLE,
            vec![topic(session, name, &at(partition, offset, text))?],
        ))
    };
    let managed = |generation: i32, member: &str| -> Result<Value> {
        let body = of(MANAGED, vec![topic(session, ORDERS, &at(0, 1, Value::Null))?]);
        let body = with(&body, "GenerationIdOrMemberEpoch", json!(generation));
        Ok(with(&body, "MemberId", json!(member)))
    };
    let good = one(ORDERS, 0, 1, Value::Null)?;
    let instance = with(&managed(1, member)?, "GroupInstanceId", json!("instance"));
    let both = vec![
        topic(session, ORDERS, &at(1, 5, json!("text")))?,
        topic(session, ABSENT, &at(0, 5, Value::Null))?,
    ];
    let cases = [
        ("an offset", good.clone()),
        ("an offset with a text", one(ORDERS, 1, 2, json!("text"))?),
        ("an empty text", one(EMPTY, 0, 2, json!(""))?),
        ("a text that is too long", one(ORDERS, 0, 2, json!("a".repeat(METADATA_LONG)))?),
        ("offset -1", one(ORDERS, 0, -1, Value::Null)?),
        ("offset -7", one(ORDERS, 0, -7, Value::Null)?),
        ("the last offset that a number can name", one(ORDERS, 1, i64::MAX, Value::Null)?),
        ("an unknown topic", one(ABSENT, 0, 1, Value::Null)?),
        ("no name and no id", one("", 0, 1, Value::Null)?),
        ("an unknown partition", one(ORDERS, 7, 1, Value::Null)?),
        ("partition -1", one(ORDERS, -1, 1, Value::Null)?),
        ("good and bad topics", of(SIMPLE, both)),
        ("no topics", of(SIMPLE, vec![])),
        ("an empty group", with(&good, "GroupId", json!(""))),
        ("a retention", with(&good, "RetentionTimeMs", json!(1000))),
        ("a generation without a group", with(&good, "GenerationIdOrMemberEpoch", json!(3))),
        ("a member without a group", with(&good, "MemberId", json!("nobody"))),
        ("a member", managed(1, member)?),
        ("an old generation", managed(0, member)?),
        ("a coming generation", managed(2, member)?),
        ("no generation beside a member", managed(-1, member)?),
        ("nobody beside a member", managed(-1, "")?),
        ("an unknown member", managed(1, "nobody")?),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::OffsetCommit, name, request)?;
    }
    session.ask_in(7..=i16::MAX, ApiKey::OffsetCommit, "an unknown instance", &instance)?;
    session.denied(ApiKey::OffsetCommit, "an offset", &good)?;
    let unknown = of(SIMPLE, vec![topic(session, ABSENT, &at(0, 1, Value::Null))?]);
    session.denied(ApiKey::OffsetCommit, "an unknown topic", &unknown)
}

fn fetch(session: &mut Session) -> Result<()> {
    let of = |group: &str, topics: Value| {
        json!({"GroupId": group, "Topics": topics, "RequireStable": true, "Groups": [
            {"GroupId": group, "MemberEpoch": -1, "Topics": topics}]})
    };
    let old = |topics: &Value| {
        // A topic of the older versions has no id.
        let mut topics = topics.clone();
        if let Some(all) = topics.as_array_mut() {
            for topic in all {
                topic.as_object_mut().map(|it| it.remove("TopicId"));
            }
        }
        topics
    };
    let of = |group: &str, topics: Value| {
        let old = old(&topics);
        with(&of(group, topics), "Topics", old)
    };
    let at = |name: &str, partitions: &[i32]| {
        topic(session, name, &json!({"PartitionIndexes": partitions}))
    };
    let good = of(SIMPLE, json!([at(ORDERS, &[0, 1])?]));
    let unknown = of(SIMPLE, json!([at(ABSENT, &[0])?]));
    let cases = [
        ("offsets", good.clone()),
        ("offsets, stable or not", with(&good, "RequireStable", json!(false))),
        ("no offsets", of(SIMPLE, json!([at(EMPTY, &[0])?]))),
        ("an unknown partition", of(SIMPLE, json!([at(ORDERS, &[7, -1])?]))),
        ("a partition twice", of(SIMPLE, json!([at(ORDERS, &[0, 0])?]))),
        ("an unknown topic", unknown.clone()),
        ("no name and no id", of(SIMPLE, json!([at("", &[0])?]))),
        ("good and bad topics", of(SIMPLE, json!([at(ORDERS, &[0])?, at(ABSENT, &[0])?]))),
        ("no topics", of(SIMPLE, json!([]))),
        ("an unknown group", of("absent-group", json!([at(ORDERS, &[0])?]))),
        ("an empty group", of("", json!([at(ORDERS, &[0])?]))),
        ("a group with a member", of(MANAGED, json!([at(ORDERS, &[0])?]))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::OffsetFetch, name, request)?;
    }
    let all =
        [("all of a group", of(SIMPLE, Value::Null)), ("all of none", of("none", Value::Null))];
    for (name, request) in &all {
        session.ask_in(2..=i16::MAX, ApiKey::OffsetFetch, name, request)?;
    }
    let member = |id: Value, epoch: i32| {
        json!({"Groups": [{"GroupId": MANAGED, "MemberId": id, "MemberEpoch": epoch,
            "Topics": null}]})
    };
    let groups = json!({"Groups": [{"GroupId": SIMPLE, "MemberEpoch": -1, "Topics": null},
        {"GroupId": "none", "MemberEpoch": -1, "Topics": null}]});
    session.ask_in(8..=i16::MAX, ApiKey::OffsetFetch, "groups", &groups)?;
    session.ask_in(8..=i16::MAX, ApiKey::OffsetFetch, "no groups", &json!({"Groups": []}))?;
    session.ask_in(9..=i16::MAX, ApiKey::OffsetFetch, "a member", &member(json!("nobody"), 1))?;
    session.ask_in(9..=i16::MAX, ApiKey::OffsetFetch, "an epoch", &member(Value::Null, 5))?;
    session.denied(ApiKey::OffsetFetch, "offsets", &good)?;
    session.denied(ApiKey::OffsetFetch, "an unknown topic", &unknown)
}

fn delete(session: &mut Session) -> Result<()> {
    let of = |group: &str, name: &str, partitions: &[i32]| {
        let all: Vec<_> = partitions.iter().map(|it| json!({"PartitionIndex": it})).collect();
        json!({"GroupId": group, "Topics": [{"Name": name, "Partitions": all}]})
    };
    let cases = [
        ("an offset", of(SIMPLE, ORDERS, &[0])),
        ("an offset that is gone", of(SIMPLE, ORDERS, &[0])),
        ("a partition twice", of(SIMPLE, ORDERS, &[1, 1])),
        ("an unknown partition", of(SIMPLE, ORDERS, &[7, -1])),
        ("an unknown topic", of(SIMPLE, ABSENT, &[0])),
        ("an empty name", of(SIMPLE, "", &[0])),
        ("a topic without partitions", of(SIMPLE, ORDERS, &[])),
        ("no topics", json!({"GroupId": SIMPLE, "Topics": []})),
        ("a group with a member", of(MANAGED, ORDERS, &[0])),
        ("an unknown group", of("absent-group", ORDERS, &[0])),
        ("an empty group", of("", ORDERS, &[0])),
    ];
    session.denied(ApiKey::OffsetDelete, "an offset", &cases[0].1)?;
    session.denied(ApiKey::OffsetDelete, "an unknown group", &of("absent-group", ORDERS, &[0]))?;
    for (name, request) in &cases {
        session.ask(ApiKey::OffsetDelete, name, request)?;
    }
    Ok(())
}
