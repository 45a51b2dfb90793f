//! Members of share groups: ShareGroupHeartbeat, ShareGroupDescribe, and what other APIs say of a
//! share group.
//!
//! Most members subscribe to a topic that does not exist: Kafka assigns the partitions of one that
//! does with a heartbeat after the first, some time later.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, ORDERS, topic, with};
use crate::differential::session::Session;

/// A group with one member, and one that does not exist.
const SHARED: &str = "shared";
const ABSENT_GROUP: &str = "absent-share-group";

pub(super) fn run(session: &mut Session) -> Result<()> {
    let coordinator = json!({"KeyType": 0, "Key": SHARED, "CoordinatorKeys": [SHARED]});
    session.must(ApiKey::FindCoordinator, &coordinator)?;
    refused(session)?;
    life(session)?;
    describe(session)?;
    other_protocols(session)?;
    delete(session)
}

fn join(group: &str, member: &str, topics: &[&str]) -> Value {
    json!({"GroupId": group, "MemberId": member, "MemberEpoch": 0, "SubscribedTopicNames": topics})
}

fn stay(group: &str, member: &str, epoch: i32) -> Value {
    json!({"GroupId": group, "MemberId": member, "MemberEpoch": epoch})
}

fn refused(session: &mut Session) -> Result<()> {
    let good = join("refused-share", "a", &[ABSENT]);
    let cases = [
        ("no member id", with(&good, "MemberId", json!(""))),
        ("no group", with(&good, "GroupId", json!(""))),
        ("an empty rack", with(&good, "RackId", json!(""))),
        ("a join without topics", stay("refused-share", "a", 0)),
        ("a join with no topics", join("refused-share", "a", &[])),
        ("an epoch of -2", stay("refused-share", "a", -2)),
        ("a stay in an unknown group", stay(ABSENT_GROUP, "a", 1)),
        ("a leave of an unknown group", stay(ABSENT_GROUP, "a", -1)),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::ShareGroupHeartbeat, name, request)?;
    }
    session.denied(ApiKey::ShareGroupHeartbeat, "a join", &good)?;
    session.denied(ApiKey::ShareGroupHeartbeat, "no group", &with(&good, "GroupId", json!("")))
}

/// A member from its first heartbeat on. Each step has its own group epoch.
fn life(session: &mut Session) -> Result<()> {
    let ask = |session: &mut Session, case: &str, body: &Value| {
        session.ask(ApiKey::ShareGroupHeartbeat, case, body).map(drop)
    };
    ask(session, "a first member", &join(SHARED, "a", &[ABSENT]))?;
    ask(session, "a member that joins again", &join(SHARED, "a", &[ABSENT]))?;
    ask(session, "a member that stays", &stay(SHARED, "a", 2))?;
    ask(session, "the epoch before", &stay(SHARED, "a", 0))?;
    ask(session, "a coming epoch", &stay(SHARED, "a", 3))?;
    ask(session, "an unknown member", &stay(SHARED, "b", 1))?;
    ask(session, "a leave of an unknown member", &stay(SHARED, "b", -1))?;
    let rack = with(&stay(SHARED, "a", 2), "RackId", json!("rack"));
    ask(session, "a rack", &rack)?;
    let same = with(&join(SHARED, "a", &[ABSENT]), "MemberEpoch", json!(2));
    ask(session, "the same topics", &same)?;
    ask(session, "a first member of a topic", &join("with-topic", "a", &[ORDERS]))?;
    ask(session, "a classic group", &join("described", "a", &[ABSENT]))?;
    ask(session, "a member for a while", &join("leaving-share", "a", &[ABSENT]))?;
    ask(session, "a leave", &stay("leaving-share", "a", -1))?;
    ask(session, "a leave again", &stay("leaving-share", "a", -1))?;
    ask(session, "a member that comes back", &join("leaving-share", "a", &[ABSENT]))?;
    ask(session, "a leave for good", &stay("leaving-share", "a", -1))
}

fn describe(session: &mut Session) -> Result<()> {
    let of = |groups: &[&str]| json!({"GroupIds": groups, "IncludeAuthorizedOperations": true});
    let cases = [
        ("a group", of(&[SHARED])),
        ("a group without members", of(&["leaving-share"])),
        ("an unknown group", of(&[ABSENT_GROUP])),
        ("a classic group", of(&["described"])),
        ("an empty name", of(&[""])),
        ("groups", of(&[SHARED, ABSENT_GROUP])),
        ("a group twice", of(&[SHARED, SHARED])),
        ("no groups", of(&[])),
        ("a group without operations", json!({"GroupIds": [SHARED]})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::ShareGroupDescribe, name, request)?;
    }
    session.denied(ApiKey::ShareGroupDescribe, "a group", &of(&[SHARED]))?;
    session.denied(ApiKey::ShareGroupDescribe, "an unknown group", &of(&[ABSENT_GROUP]))
}

/// What the APIs of other groups answer about a share group, and ListGroups.
fn other_protocols(session: &mut Session) -> Result<()> {
    let case = |name: &str| format!("{name}, of a share group");
    let member = json!({"GroupId": SHARED, "GenerationId": 1, "MemberId": "a"});
    let joining = json!({"GroupId": SHARED, "SessionTimeoutMs": 30_000,
        "RebalanceTimeoutMs": 30_000, "MemberId": "", "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": "topics"}]});
    session.ask(ApiKey::JoinGroup, &case("a join"), &joining)?;
    let empty = with(&joining, "GroupId", json!("leaving-share"));
    session.ask(ApiKey::JoinGroup, &case("a join of an empty one"), &empty)?;
    session.ask(ApiKey::Heartbeat, &case("a heartbeat"), &member)?;
    let sync =
        with(&with(&member, "ProtocolType", json!("consumer")), "ProtocolName", json!("range"));
    session.ask(ApiKey::SyncGroup, &case("a sync"), &sync)?;
    let leave = json!({"GroupId": SHARED, "MemberId": "a", "Members": [{"MemberId": "a"}]});
    session.ask(ApiKey::LeaveGroup, &case("a leave"), &leave)?;
    session.ask(ApiKey::DescribeGroups, &case("a group"), &json!({"Groups": [SHARED]}))?;
    let consumers = json!({"GroupIds": [SHARED]});
    session.ask(ApiKey::ConsumerGroupDescribe, &case("a group"), &consumers)?;
    let consumer = json!({"GroupId": SHARED, "MemberId": "c", "MemberEpoch": 0,
        "RebalanceTimeoutMs": 30_000, "SubscribedTopicNames": [ABSENT], "TopicPartitions": []});
    session.ask(ApiKey::ConsumerGroupHeartbeat, &case("a join"), &consumer)?;
    let one = json!({"Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1,
        "CommittedLeaderEpoch": -1, "CommittedMetadata": null}]});
    let commit = json!({"GroupId": SHARED, "GenerationIdOrMemberEpoch": -1, "MemberId": "",
        "RetentionTimeMs": -1, "Topics": [topic(session, ORDERS, &one)?]});
    session.ask(ApiKey::OffsetCommit, &case("an offset"), &commit)?;
    let partitions = topic(session, ORDERS, &json!({"PartitionIndexes": [0]}))?;
    let fetch = json!({"GroupId": SHARED,
        "Topics": [{"Name": ORDERS, "PartitionIndexes": [0]}],
        "Groups": [{"GroupId": SHARED, "Topics": [partitions]}]});
    session.ask(ApiKey::OffsetFetch, &case("a partition"), &fetch)?;
    let delete = json!({"GroupId": SHARED,
        "Topics": [{"Name": ORDERS, "Partitions": [{"PartitionIndex": 0}]}]});
    session.ask(ApiKey::OffsetDelete, &case("a partition"), &delete)?;
    let types = json!({"StatesFilter": [], "TypesFilter": ["share"]});
    session.ask_in(5..=i16::MAX, ApiKey::ListGroups, "share groups", &types)?;
    let empty = json!({"StatesFilter": ["Empty"], "TypesFilter": ["share"]});
    session.ask_in(5..=i16::MAX, ApiKey::ListGroups, "empty share groups", &empty).map(drop)
}

fn delete(session: &mut Session) -> Result<()> {
    for version in session.versions_of(ApiKey::DeleteGroups) {
        let group = format!("deleted-share-{version}");
        session.must(ApiKey::ShareGroupHeartbeat, &join(&group, "a", &[ABSENT]))?;
        session.must(ApiKey::ShareGroupHeartbeat, &stay(&group, "a", -1))?;
    }
    let of = |groups: &[&str]| json!({"GroupsNames": groups});
    session.ask(ApiKey::DeleteGroups, "an empty share group", &of(&["deleted-share-$v"]))?;
    session.ask(ApiKey::DeleteGroups, "a share group with members", &of(&[SHARED]))?;
    let gone = json!({"GroupIds": ["deleted-share-0"]});
    session.ask(ApiKey::ShareGroupDescribe, "a deleted group", &gone).map(drop)
}
