//! Producer ids and transactions: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn,
//! TxnOffsetCommit, EndTxn, WriteTxnMarkers, DescribeTransactions and ListTransactions.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::groups::stable_group;
use super::streams_groups::join;
use super::{ABSENT, ORDERS, topic, with};
use crate::differential::session::Session;
use crate::differential::tree::Tree;

/// A transactional id that has no producer.
const NOBODY: &str = "nobody";

pub(super) fn run(session: &mut Session) -> Result<()> {
    for kind in [0, 1] {
        let key = json!({"KeyType": kind, "CoordinatorKeys": ["settled"]});
        session.must(ApiKey::FindCoordinator, &key)?;
    }
    producer_ids(session)?;
    partitions(session)?;
    offsets(session)?;
    offsets_of_members(session)?;
    ends(session)?;
    markers(session)?;
    describe(session)?;
    list(session)
}

fn init(id: Value) -> Value {
    json!({"TransactionalId": id, "TransactionTimeoutMs": 60_000, "ProducerId": -1,
        "ProducerEpoch": -1})
}

/// Starts a producer; the answer has its id and its epoch.
fn producer(session: &mut Session, id: &str) -> Result<(i64, i64)> {
    let answer = session.must(ApiKey::InitProducerId, &init(json!(id)))?;
    Ok((answer.number("ProducerId")?, answer.number("ProducerEpoch")?))
}

fn producer_ids(session: &mut Session) -> Result<()> {
    let api = ApiKey::InitProducerId;
    let good = init(json!("init-$v"));
    let timeout = |ms: i32| with(&init(json!("odd-$v")), "TransactionTimeoutMs", json!(ms));
    let cases = [
        ("an idempotent producer", init(Value::Null)),
        ("a transactional producer", good.clone()),
        ("a transactional producer again", good.clone()),
        ("an empty id", init(json!(""))),
        ("a timeout of 0", timeout(0)),
        ("a timeout of -1", timeout(-1)),
        ("a timeout that is too long", timeout(i32::MAX)),
        ("a timeout without an id", with(&init(Value::Null), "TransactionTimeoutMs", json!(-1))),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    let known = |id: i64, epoch: i64| {
        with(&with(&good, "ProducerId", json!(id)), "ProducerEpoch", json!(epoch))
    };
    for version in session.versions_of(api).filter(|version| *version >= 3) {
        let (id, epoch) = producer(session, &format!("init-{version}"))?;
        let cases = [
            ("the epoch that it has", known(id, epoch)),
            ("an old epoch", known(id, 0)),
            ("an epoch to come", known(id, epoch + 9)),
            ("another producer", known(id + 1000, epoch)),
            ("an epoch without a producer", known(-1, epoch)),
            ("a producer without an epoch", known(id, -1)),
            ("epoch -2", known(id, -2)),
        ];
        for (name, request) in &cases {
            session.ask_in(version..=version, api, name, request)?;
        }
    }
    session.denied(api, "an idempotent producer", &init(Value::Null))?;
    session.denied(api, "a transactional producer", &good)
}

/// Both forms of a request, of one and of many transactions.
fn adding(id: &str, (producer, epoch): (i64, i64), name: &str, partitions: &[i32]) -> Value {
    let topics = json!([{"Name": name, "Partitions": partitions}]);
    json!({
        "V3AndBelowTransactionalId": id, "V3AndBelowProducerId": producer,
        "V3AndBelowProducerEpoch": epoch, "V3AndBelowTopics": topics,
        "Transactions": [{"TransactionalId": id, "ProducerId": producer, "ProducerEpoch": epoch,
            "Topics": topics}],
    })
}

fn partitions(session: &mut Session) -> Result<()> {
    let api = ApiKey::AddPartitionsToTxn;
    let own = producer(session, "adds")?;
    let (id, epoch) = own;
    let cases = [
        ("partitions", adding("adds", own, ORDERS, &[0, 1])),
        ("partitions again", adding("adds", own, ORDERS, &[0])),
        ("an unknown partition", adding("adds", own, ORDERS, &[7])),
        ("good and bad partitions", adding("adds", own, ORDERS, &[0, -1])),
        ("an unknown topic", adding("adds", own, ABSENT, &[0])),
        ("no partitions", adding("adds", own, ORDERS, &[])),
        ("an old epoch", adding("adds", (id, epoch - 1), ORDERS, &[0])),
        ("an epoch to come", adding("adds", (id, epoch + 1), ORDERS, &[0])),
        ("another producer", adding("adds", (id + 1000, epoch), ORDERS, &[0])),
        ("producer -1", adding("adds", (-1, epoch), ORDERS, &[0])),
        ("an unknown transactional id", adding(NOBODY, own, ORDERS, &[0])),
        ("an empty transactional id", adding("", own, ORDERS, &[0])),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    let verify = |id: &str, producer: (i64, i64), partition: i32| {
        json!({"Transactions": [{"TransactionalId": id, "ProducerId": producer.0,
            "ProducerEpoch": producer.1, "VerifyOnly": true,
            "Topics": [{"Name": ORDERS, "Partitions": [partition]}]}]})
    };
    let cases = [
        ("partitions to verify", verify("adds", own, 0)),
        ("a partition that is not in the transaction", verify("adds", own, 7)),
        ("an unknown transaction to verify", verify(NOBODY, own, 0)),
        ("an old epoch to verify", verify("adds", (id, epoch - 1), 0)),
    ];
    for (name, request) in &cases {
        session.ask_in(4..=i16::MAX, api, name, request)?;
    }
    session.denied(api, "partitions", &adding("adds", own, ORDERS, &[0]))
}

fn offsets(session: &mut Session) -> Result<()> {
    let own = producer(session, "commits")?;
    let (id, epoch) = own;
    let of = |transaction: &str, (id, epoch): (i64, i64), group: &str| {
        json!({"TransactionalId": transaction, "ProducerId": id, "ProducerEpoch": epoch,
            "GroupId": group})
    };
    let cases = [
        ("a group", of("commits", own, "readers")),
        ("an empty group", of("commits", own, "")),
        ("an old epoch", of("commits", (id, epoch - 1), "readers")),
        ("an epoch to come", of("commits", (id, epoch + 1), "readers")),
        ("another producer", of("commits", (id + 1000, epoch), "readers")),
        ("an unknown transactional id", of(NOBODY, own, "readers")),
        ("an empty transactional id", of("", own, "readers")),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::AddOffsetsToTxn, name, request)?;
    }
    session.denied(ApiKey::AddOffsetsToTxn, "a group", &cases[0].1)?;
    let at = |name: &str, partition: i32, offset: i64| {
        topic(
            session,
            name,
            &json!({"Partitions": [{"PartitionIndex": partition,
            "CommittedOffset": offset, "CommittedLeaderEpoch": -1, "CommittedMetadata": null}]}),
        )
    };
    let commit = |base: &Value, topics: Value| {
        let base = with(base, "GenerationIdOrMemberEpoch", json!(-1));
        with(&with(&base, "MemberId", json!("")), "Topics", topics)
    };
    let good = of("commits", own, "readers");
    let one = json!([at(ORDERS, 0, 1)?]);
    let full = commit(&good, one.clone());
    let cases = [
        ("an offset", full.clone()),
        ("an unknown topic", commit(&good, json!([at(ABSENT, 0, 1)?]))),
        ("an unknown partition", commit(&good, json!([at(ORDERS, 7, 1)?]))),
        ("offset -1", commit(&good, json!([at(ORDERS, 0, -1)?]))),
        ("no topics", commit(&good, json!([]))),
        ("an empty group", commit(&of("commits", own, ""), one.clone())),
        ("an old epoch", commit(&of("commits", (id, epoch - 1), "readers"), one.clone())),
        ("an epoch to come", commit(&of("commits", (id, epoch + 1), "readers"), one.clone())),
        ("another producer", commit(&of("commits", (id + 1000, epoch), "readers"), one.clone())),
        ("an unknown transactional id", commit(&of(NOBODY, own, "readers"), one.clone())),
        ("an unknown member", with(&full, "MemberId", json!(NOBODY))),
        ("a generation", with(&full, "GenerationIdOrMemberEpoch", json!(7))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::TxnOffsetCommit, name, request)?;
    }
    session.denied(ApiKey::TxnOffsetCommit, "an offset", &full)
}

/// Commits that name a member, a generation, both or neither, in groups that have a member.
fn offsets_of_members(session: &mut Session) -> Result<()> {
    const CLASSIC: &str = "committing";
    const CONSUMER: &str = "committing-848";
    const STREAMS: &str = "committing-1071";
    const CONSUMER_MEMBER: &str = "AAAAAAAAAAsAAAAAAAAACw";
    let classic_member = stable_group(session, CLASSIC)?;
    let beat = json!({"GroupId": CONSUMER, "MemberId": CONSUMER_MEMBER, "MemberEpoch": 0,
        "RebalanceTimeoutMs": 60_000, "SubscribedTopicNames": [ORDERS], "TopicPartitions": []});
    let joined = session.must(ApiKey::ConsumerGroupHeartbeat, &beat)?;
    let consumer = (CONSUMER, CONSUMER_MEMBER, joined.number("MemberEpoch")?);
    let joined = session.must(ApiKey::StreamsGroupHeartbeat, &join(STREAMS, "a", ORDERS))?;
    let streams = (STREAMS, "a", joined.number("MemberEpoch")?);
    let (id, epoch) = producer(session, "member-commits")?;
    let one = topic(
        session,
        ORDERS,
        &json!({"Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1,
            "CommittedLeaderEpoch": -1, "CommittedMetadata": null}]}),
    )?;
    for (group, member, generation) in [(CLASSIC, classic_member.as_str(), 1), consumer, streams] {
        let base = json!({"TransactionalId": "member-commits", "ProducerId": id,
            "ProducerEpoch": epoch, "GroupId": group});
        // Older versions want the group to be added before.
        session.must(ApiKey::AddOffsetsToTxn, &base)?;
        let cases = [
            ("no member and no generation", "", -1),
            ("a generation without a member", "", generation),
            ("another generation without a member", "", generation + 7),
            ("a member without a generation", member, -1),
            ("a member with its generation", member, generation),
            ("a member with another generation", member, generation + 7),
            ("an unknown member with a generation", NOBODY, generation),
            ("an unknown member without a generation", NOBODY, -1),
        ];
        for (name, member, generation) in cases {
            let request = with(&base, "GenerationIdOrMemberEpoch", json!(generation));
            let request = with(&with(&request, "MemberId", json!(member)), "Topics", json!([one]));
            session.ask(ApiKey::TxnOffsetCommit, &format!("{name}, {group}"), &request)?;
        }
    }
    Ok(())
}

fn ends(session: &mut Session) -> Result<()> {
    let api = ApiKey::EndTxn;
    let of = |transaction: &str, (id, epoch): (i64, i64), is_committed: bool| {
        json!({"TransactionalId": transaction, "ProducerId": id, "ProducerEpoch": epoch,
            "Committed": is_committed})
    };
    for version in session.versions_of(api) {
        let name = format!("ends-{version}");
        let own = producer(session, &name)?;
        let (id, epoch) = own;
        let versions = version..=version;
        let cases = [
            ("an old epoch", of(&name, (id, epoch - 1), true)),
            ("an epoch to come", of(&name, (id, epoch + 1), true)),
            ("another producer", of(&name, (id + 1000, epoch), true)),
            ("a commit of nothing", of(&name, own, true)),
        ];
        for (case, request) in &cases {
            session.ask_in(versions.clone(), api, case, request)?;
        }
        let own = producer(session, &name)?;
        // What a transaction of the first protocol holds is added by a request of its own.
        let add = adding(&name, own, ORDERS, &[0]);
        session.ask_in(
            3..=3,
            ApiKey::AddPartitionsToTxn,
            &format!("before EndTxn v{version}"),
            &add,
        )?;
        let ended = session.ask_in(versions.clone(), api, "a commit", &of(&name, own, true))?;
        session.ask_in(versions.clone(), api, "the same commit again", &of(&name, own, true))?;
        session.ask_in(
            versions.clone(),
            api,
            "an abort of what is committed",
            &of(&name, own, false),
        )?;
        let next = ended.first().map_or(-1, |answer| answer.number("ProducerEpoch").unwrap_or(-1));
        if next >= 0 {
            let own = (ended[0].number("ProducerId")?, next);
            session.ask_in(versions, api, "an abort of nothing", &of(&name, own, false))?;
        }
    }
    let nobody = of(NOBODY, (1, 0), true);
    session.ask(api, "an unknown transactional id", &nobody)?;
    session.ask(api, "an empty transactional id", &of("", (1, 0), true))?;
    session.denied(api, "a commit", &nobody)
}

fn markers(session: &mut Session) -> Result<()> {
    let of = |name: &str, partitions: &[i32]| {
        json!({"Markers": [{"ProducerId": 424_242, "ProducerEpoch": 0, "TransactionResult": false,
            "CoordinatorEpoch": 0, "Topics": [{"Name": name, "PartitionIndexes": partitions}]}]})
    };
    let cases = [
        ("an unknown partition", of(ORDERS, &[7])),
        ("an unknown topic", of(ABSENT, &[0])),
        ("no partitions", of(ORDERS, &[])),
        ("no markers", json!({"Markers": []})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::WriteTxnMarkers, name, request)?;
    }
    session.denied(ApiKey::WriteTxnMarkers, "a partition", &of(ORDERS, &[0]))
}

fn describe(session: &mut Session) -> Result<()> {
    let api = ApiKey::DescribeTransactions;
    let of = |ids: &[&str]| json!({"TransactionalIds": ids});
    let cases = [
        ("an open transaction", of(&["adds"])),
        ("an empty one", of(&["init-0"])),
        ("an unknown one", of(&[NOBODY])),
        ("an empty id", of(&[""])),
        ("one twice", of(&["init-0", "init-0"])),
        ("some", of(&["init-0", NOBODY])),
        ("none", of(&[])),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "an open transaction", &of(&["adds"]))?;
    session.denied(api, "an unknown one", &of(&[NOBODY]))
}

fn list(session: &mut Session) -> Result<()> {
    let api = ApiKey::ListTransactions;
    let all = json!({"DurationFilter": -1});
    let is_ended = |answer: &Tree| !answer.to_string().contains("Prepare");
    session.until(api, &all, is_ended)?;
    session.ask(api, "all", &all)?;
    for state in ["Ongoing", "Empty", "CompleteCommit", "ongoing", "NoSuchState", ""] {
        let filter = with(&all, "StateFilters", json!([state]));
        session.ask(api, &format!("state [{state}]"), &filter)?;
    }
    session.ask(
        api,
        "a producer that is unknown",
        &with(&all, "ProducerIdFilters", json!([987_654])),
    )?;
    session.ask_in(1..=2, api, "of an hour", &with(&all, "DurationFilter", json!(3_600_000)))?;
    for pattern in ["init-.*", "a", "", "(", "ini[", "zzz"] {
        let filter = with(&all, "TransactionalIdPattern", json!(pattern));
        session.ask_in(2..=2, api, &format!("pattern [{pattern}]"), &filter)?;
    }
    session.denied(api, "all", &all)
}
