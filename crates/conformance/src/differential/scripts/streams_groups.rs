//! Members of streams groups: StreamsGroupHeartbeat, StreamsGroupDescribe, and what other APIs say
//! of a streams group.
//!
//! A group waits for other members before its first assignment. So a member that has just joined an
//! empty group has no tasks.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::{ABSENT, ORDERS, topic, with};
use crate::differential::session::Session;

/// A group with a member, and one that does not exist.
const COUNTING: &str = "counting";
const ABSENT_GROUP: &str = "absent-streams-group";

pub(super) fn run(session: &mut Session) -> Result<()> {
    let coordinator = json!({"KeyType": 0, "Key": COUNTING, "CoordinatorKeys": [COUNTING]});
    session.must(ApiKey::FindCoordinator, &coordinator)?;
    refused(session)?;
    invalid_topologies(session)?;
    life(session)?;
    static_member(session)?;
    describe(session)?;
    other_protocols(session)?;
    delete(session)
}

/// Reads one topic and keeps no state.
fn topology(source: &str) -> Value {
    json!({"Epoch": 0, "Subtopologies": [part(source)]})
}

fn part(source: &str) -> Value {
    json!({"SubtopologyId": "0", "SourceTopics": [source], "SourceTopicRegex": [],
        "StateChangelogTopics": [], "RepartitionSinkTopics": [], "RepartitionSourceTopics": [],
        "CopartitionGroups": []})
}

pub(super) fn join(group: &str, member: &str, source: &str) -> Value {
    json!({"GroupId": group, "MemberId": member, "MemberEpoch": 0,
        "EndpointInformationEpoch": 0, "RebalanceTimeoutMs": 30_000,
        "Topology": topology(source), "ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": [],
        "ProcessId": "process", "ClientTags": [{"Key": "zone", "Value": "a"}]})
}

fn stay(group: &str, member: &str, epoch: i32) -> Value {
    json!({"GroupId": group, "MemberId": member, "MemberEpoch": epoch,
        "EndpointInformationEpoch": 0})
}

fn internal(name: &str, partitions: i32) -> Value {
    json!({"Name": name, "Partitions": partitions, "ReplicationFactor": 0, "TopicConfigs": []})
}

fn refused(session: &mut Session) -> Result<()> {
    let good = join("refused-streams", "a", ORDERS);
    let staying = stay("refused-streams", "a", 1);
    let task = json!([{"SubtopologyId": "0", "Partitions": [0]}]);
    let cases = [
        ("no member id", with(&good, "MemberId", json!(""))),
        ("no group", with(&good, "GroupId", json!(""))),
        ("an empty instance", with(&good, "InstanceId", json!(""))),
        ("an empty rack", with(&good, "RackId", json!(""))),
        ("a join without a timeout", with(&good, "RebalanceTimeoutMs", json!(-1))),
        ("a join without a topology", with(&good, "Topology", Value::Null)),
        ("a join with a task", with(&good, "ActiveTasks", task.clone())),
        ("a stay with a topology", with(&staying, "Topology", topology(ORDERS))),
        ("a stay with one kind of tasks", with(&staying, "ActiveTasks", task)),
        ("an epoch of -2 without an instance", stay("refused-streams", "a", -2)),
        ("an epoch of -3", stay("refused-streams", "a", -3)),
        ("a stay in an unknown group", stay(ABSENT_GROUP, "a", 1)),
        ("a leave of an unknown group", stay(ABSENT_GROUP, "a", -1)),
        ("a stay in a classic group", stay("described", "a", 1)),
        ("a join of a share group", join("shared", "a", ORDERS)),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::StreamsGroupHeartbeat, name, request)?;
    }
    session.denied(ApiKey::StreamsGroupHeartbeat, "a join", &good)?;
    session.denied(ApiKey::StreamsGroupHeartbeat, "no group", &with(&good, "GroupId", json!("")))
}

fn invalid_topologies(session: &mut Session) -> Result<()> {
    let of = |part: Value| {
        let good = join("invalid-streams", "a", ORDERS);
        with(&good, "Topology", json!({"Epoch": 0, "Subtopologies": [part]}))
    };
    let good = part(ORDERS);
    let changelog = |partitions| json!([internal("app-changelog", partitions)]);
    let repartition = json!([internal("app-repartition", 0)]);
    let cases = [
        ("a regular expression", with(&good, "SourceTopicRegex", json!(["a.*"]))),
        ("a changelog with partitions", with(&good, "StateChangelogTopics", changelog(2))),
        ("no source topic", with(&good, "SourceTopics", json!([]))),
        ("a repartition topic of nobody", with(&good, "RepartitionSourceTopics", repartition)),
        ("an internal topic of Kafka", with(&good, "SourceTopics", json!(["__consumer_offsets"]))),
        ("an invalid name", with(&good, "SourceTopics", json!(["a/b"]))),
    ];
    for (name, part) in cases {
        session.ask(ApiKey::StreamsGroupHeartbeat, name, &of(part))?;
    }
    Ok(())
}

/// A member from its first heartbeat on. Each step has its own group epoch.
fn life(session: &mut Session) -> Result<()> {
    let ask = |session: &mut Session, case: &str, body: &Value| {
        session.ask(ApiKey::StreamsGroupHeartbeat, case, body).map(drop)
    };
    ask(session, "a source topic that is missing", &join("without-source", "a", ABSENT))?;
    ask(session, "a first member", &join(COUNTING, "a", ORDERS))?;
    ask(session, "a member that joins again", &join(COUNTING, "a", ORDERS))?;
    ask(session, "a member that stays", &stay(COUNTING, "a", 1))?;
    ask(session, "a coming epoch", &stay(COUNTING, "a", 9))?;
    ask(session, "an unknown member", &stay(COUNTING, "b", 1))?;
    ask(session, "a leave of an unknown member", &stay(COUNTING, "b", -1))?;
    ask(session, "an unknown instance", &with(&stay(COUNTING, "a", 1), "InstanceId", json!("i")))?;
    let tasks = |id: &str, partition: i32| {
        let tasks = json!([{"SubtopologyId": id, "Partitions": [partition]}]);
        let staying = with(&stay(COUNTING, "a", 1), "ActiveTasks", tasks);
        with(&with(&staying, "StandbyTasks", json!([])), "WarmupTasks", json!([]))
    };
    ask(session, "a task of an unknown subtopology", &tasks("9", 0))?;
    ask(session, "a task that is not there", &tasks("0", 99))?;
    let offset = json!({"SubtopologyId": "0", "Partition": 0, "Offset": 1});
    let twice = with(&stay(COUNTING, "a", 1), "TaskOffsets", json!([offset, offset]));
    ask(session, "an offset twice", &twice)?;
    let other = with(&join(COUNTING, "b", ORDERS), "Topology", topology(ABSENT));
    ask(session, "another topology", &other)?;
    ask(session, "a member for a while", &join("leaving-streams", "a", ORDERS))?;
    ask(session, "a leave", &stay("leaving-streams", "a", -1))?;
    ask(session, "a leave again", &stay("leaving-streams", "a", -1))?;
    let endpoint = json!({"Host": "host", "Port": 9});
    let with_endpoint = with(&join("with-endpoint-$v", "a", ORDERS), "UserEndpoint", endpoint);
    ask(session, "a member with an endpoint", &with_endpoint)?;
    let ending = with(&join("ending", "a", ORDERS), "ShutdownApplication", json!(true));
    ask(session, "the end of the application", &ending)
}

fn static_member(session: &mut Session) -> Result<()> {
    let with_instance = |body: &Value| with(body, "InstanceId", json!("instance"));
    let ask = |session: &mut Session, case: &str, body: &Value| {
        session.ask(ApiKey::StreamsGroupHeartbeat, case, &with_instance(body)).map(drop)
    };
    session.must(ApiKey::StreamsGroupHeartbeat, &with_instance(&join("static", "a", ORDERS)))?;
    ask(session, "an instance in use", &join("static", "b", ORDERS))?;
    ask(session, "an instance of another member", &stay("static", "b", 1))?;
    ask(session, "a static leave", &stay("static", "a", -2))
}

fn describe(session: &mut Session) -> Result<()> {
    let of = |groups: &[&str]| json!({"GroupIds": groups, "IncludeAuthorizedOperations": true});
    let cases = [
        ("a group", of(&[COUNTING])),
        ("a group without members", of(&["leaving-streams"])),
        ("a group without its source topic", of(&["without-source"])),
        ("an unknown group", of(&[ABSENT_GROUP])),
        ("a classic group", of(&["described"])),
        ("an empty name", of(&[""])),
        ("groups", of(&[COUNTING, ABSENT_GROUP])),
        ("no groups", of(&[])),
        ("a group without operations", json!({"GroupIds": [COUNTING]})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::StreamsGroupDescribe, name, request)?;
    }
    session.denied(ApiKey::StreamsGroupDescribe, "a group", &of(&[COUNTING]))?;
    session.denied(ApiKey::StreamsGroupDescribe, "an unknown group", &of(&[ABSENT_GROUP]))
}

/// What the APIs of other groups answer about a streams group, and ListGroups.
fn other_protocols(session: &mut Session) -> Result<()> {
    let case = |name: &str| format!("{name}, of a streams group");
    let member = json!({"GroupId": COUNTING, "GenerationId": 1, "MemberId": "a"});
    let joining = json!({"GroupId": COUNTING, "SessionTimeoutMs": 30_000,
        "RebalanceTimeoutMs": 30_000, "MemberId": "", "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": "topics"}]});
    session.ask(ApiKey::JoinGroup, &case("a join"), &joining)?;
    session.ask(ApiKey::Heartbeat, &case("a heartbeat"), &member)?;
    let sync =
        with(&with(&member, "ProtocolType", json!("consumer")), "ProtocolName", json!("range"));
    session.ask(ApiKey::SyncGroup, &case("a sync"), &sync)?;
    let leave = json!({"GroupId": COUNTING, "MemberId": "a", "Members": [{"MemberId": "a"}]});
    session.ask(ApiKey::LeaveGroup, &case("a leave"), &leave)?;
    session.ask(ApiKey::DescribeGroups, &case("a group"), &json!({"Groups": [COUNTING]}))?;
    let described = json!({"GroupIds": [COUNTING]});
    session.ask(ApiKey::ConsumerGroupDescribe, &case("a group"), &described)?;
    session.ask(ApiKey::ShareGroupDescribe, &case("a group"), &described)?;
    let consumer = json!({"GroupId": COUNTING, "MemberId": "c", "MemberEpoch": 0,
        "RebalanceTimeoutMs": 30_000, "SubscribedTopicNames": [ABSENT], "TopicPartitions": []});
    session.ask(ApiKey::ConsumerGroupHeartbeat, &case("a join"), &consumer)?;
    let one = json!({"Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1,
        "CommittedLeaderEpoch": -1, "CommittedMetadata": null}]});
    for (name, id, epoch) in
        [("nobody", "", -1), ("a member", "a", 1), ("an unknown member", "b", 1), ("later", "a", 9)]
    {
        let commit = json!({"GroupId": COUNTING, "GenerationIdOrMemberEpoch": epoch,
            "MemberId": id, "RetentionTimeMs": -1, "Topics": [topic(session, ORDERS, &one)?]});
        session.ask(ApiKey::OffsetCommit, &case(name), &commit)?;
    }
    let partitions = topic(session, ORDERS, &json!({"PartitionIndexes": [0]}))?;
    let fetch = json!({"GroupId": COUNTING,
        "Topics": [{"Name": ORDERS, "PartitionIndexes": [0]}],
        "Groups": [{"GroupId": COUNTING, "Topics": [partitions]}]});
    session.ask(ApiKey::OffsetFetch, &case("a partition"), &fetch)?;
    let delete = json!({"GroupId": COUNTING,
        "Topics": [{"Name": ORDERS, "Partitions": [{"PartitionIndex": 0}]}]});
    session.ask(ApiKey::OffsetDelete, &case("a partition"), &delete)?;
    let types = json!({"StatesFilter": [], "TypesFilter": ["streams"]});
    session.ask_in(5..=i16::MAX, ApiKey::ListGroups, "streams groups", &types)?;
    let not_ready = json!({"StatesFilter": ["NotReady"], "TypesFilter": ["streams"]});
    session.ask_in(5..=i16::MAX, ApiKey::ListGroups, "groups without topics", &not_ready).map(drop)
}

fn delete(session: &mut Session) -> Result<()> {
    for version in session.versions_of(ApiKey::DeleteGroups) {
        let group = format!("deleted-streams-{version}");
        session.must(ApiKey::StreamsGroupHeartbeat, &join(&group, "a", ORDERS))?;
        session.must(ApiKey::StreamsGroupHeartbeat, &stay(&group, "a", -1))?;
    }
    let of = |groups: &[&str]| json!({"GroupsNames": groups});
    session.ask(ApiKey::DeleteGroups, "an empty streams group", &of(&["deleted-streams-$v"]))?;
    session.ask(ApiKey::DeleteGroups, "a streams group with members", &of(&[COUNTING]))?;
    let gone = json!({"GroupIds": ["deleted-streams-0"]});
    session.ask(ApiKey::StreamsGroupDescribe, "a deleted group", &gone).map(drop)
}
