//! Consumer groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups and
//! DeleteGroups.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::with;
use crate::differential::session::Session;
use crate::differential::tree::Tree;

/// A group that does not exist.
const ABSENT_GROUP: &str = "absent-group";

pub(super) fn run(session: &mut Session) -> Result<()> {
    let coordinator = json!({"KeyType": 0, "Key": "readers", "CoordinatorKeys": ["readers"]});
    session.must(ApiKey::FindCoordinator, &coordinator)?;
    refused_joins(session)?;
    for version in session.versions_of(ApiKey::JoinGroup) {
        member(session, version)?;
    }
    static_member(session)?;
    wrong_members(session)?;
    describe(session)?;
    list(session)?;
    delete(session)
}

fn join(group: &str) -> Value {
    json!({"GroupId": group, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 30_000,
        "MemberId": "", "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": "topics"}]})
}

fn refused_joins(session: &mut Session) -> Result<()> {
    let good = join("refused-$v");
    let cases = [
        ("an empty group", join("")),
        ("a session that is too short", with(&good, "SessionTimeoutMs", json!(1))),
        ("a session that is too long", with(&good, "SessionTimeoutMs", json!(i32::MAX))),
        ("a session of -1", with(&good, "SessionTimeoutMs", json!(-1))),
        ("a rebalance of -1", with(&join("briefly-$v"), "RebalanceTimeoutMs", json!(-1))),
        ("an unknown member", with(&good, "MemberId", json!("nobody"))),
        ("no protocols", with(&good, "Protocols", json!([]))),
        ("no kind of protocol", with(&good, "ProtocolType", json!(""))),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::JoinGroup, name, request)?;
    }
    session.denied(ApiKey::JoinGroup, "a group", &good)?;
    session.denied(ApiKey::JoinGroup, "an empty group", &join(""))
}

/// The life of a group of one, each step in the newest version that goes with that of the join.
fn member(session: &mut Session, version: i16) -> Result<()> {
    let group = format!("group-{version}");
    let joining = join(&group);
    let versions = version..=version;
    let join = |session: &mut Session, case: &str, body: &Value| {
        session.ask_in(versions.clone(), ApiKey::JoinGroup, case, body)
    };
    let first = join(session, "a first member", &joining)?;
    let mut member = text(&first, "MemberId")?;
    if version >= 4 {
        let named = with(&joining, "MemberId", json!(member));
        let joined = join(session, "a member with its id", &named)?;
        member = text(&joined, "MemberId")?;
    }
    let again = with(&joining, "MemberId", json!(member));
    let base = json!({"GroupId": group, "GenerationId": 1, "MemberId": member});
    let with_protocol =
        with(&with(&base, "ProtocolType", json!("consumer")), "ProtocolName", json!("range"));
    let assignment = json!([{"MemberId": member, "Assignment": "all"}]);
    let sync = with(&with_protocol, "Assignments", assignment);
    let heard = |case: &str| format!("{case}, in the group of join v{version}");
    session.ask(ApiKey::Heartbeat, &heard("while a group rebalances"), &base)?;
    let other = with(&sync, "ProtocolName", json!("other"));
    session.ask(ApiKey::SyncGroup, &heard("another protocol"), &other)?;
    session.ask(ApiKey::SyncGroup, &heard("the leader's assignment"), &sync)?;
    session.ask(ApiKey::SyncGroup, &heard("an assignment again"), &with_protocol)?;
    for (case, generation) in [("an old", 0), ("a coming", 2), ("no", -1)] {
        let odd = with(&base, "GenerationId", json!(generation));
        session.ask(ApiKey::Heartbeat, &heard(&format!("{case} generation")), &odd)?;
        session.ask(ApiKey::SyncGroup, &heard(&format!("{case} generation")), &odd)?;
    }
    session.ask(ApiKey::Heartbeat, &heard("a heartbeat"), &base)?;
    join(session, "a member that joins again", &again)?;
    let other = with(&again, "ProtocolType", json!("connect"));
    join(session, "another kind of protocol", &other)?;
    let protocols = json!([{"Name": "sticky", "Metadata": ""}]);
    join(
        session,
        "a second member without a common protocol",
        &with(&joining, "Protocols", protocols),
    )?;
    leave(session, version, &group, &member)
}

fn leave(session: &mut Session, version: i16, group: &str, member: &str) -> Result<()> {
    let of = |members: &[&str]| {
        let all: Vec<_> = members.iter().map(|member| json!({"MemberId": member})).collect();
        json!({"GroupId": group, "MemberId": members[0], "Members": all})
    };
    let heard = |case: &str| format!("{case}, in the group of join v{version}");
    let leaving = session.versions_of(ApiKey::LeaveGroup).nth(usize::try_from(version % 6)?);
    let leaving = leaving.unwrap_or_default();
    let versions = leaving..=leaving;
    let mut ask = |case: &str, body: &Value| {
        session.ask_in(versions.clone(), ApiKey::LeaveGroup, &heard(case), body)
    };
    ask("an unknown member", &of(&["nobody"]))?;
    ask("a member and an unknown one", &of(&[member, "nobody"]))?;
    ask("a member that has left", &of(&[member]))?;
    Ok(())
}

/// A member with an instance id (KIP-345).
fn static_member(session: &mut Session) -> Result<()> {
    for version in session.versions_of(ApiKey::JoinGroup).filter(|version| *version >= 5) {
        let versions = version..=version;
        let group = format!("static-{version}");
        let joining = with(&join(&group), "GroupInstanceId", json!("instance"));
        let joined =
            session.ask_in(versions.clone(), ApiKey::JoinGroup, "an instance", &joining)?;
        let member = text(&joined, "MemberId")?;
        let base = json!({"GroupId": group, "GenerationId": 1, "MemberId": member,
            "GroupInstanceId": "instance"});
        let sync = with(&base, "ProtocolType", json!("consumer"));
        let sync = with(&sync, "ProtocolName", json!("range"));
        let sync = with(&sync, "Assignments", json!([{"MemberId": member, "Assignment": "all"}]));
        let heard = |case: &str| format!("{case}, in the group of join v{version}");
        session.ask(ApiKey::SyncGroup, &heard("an instance"), &sync)?;
        let again = session.ask_in(versions, ApiKey::JoinGroup, "an instance again", &joining)?;
        let member_now = text(&again, "MemberId")?;
        session.ask_in(3..=4, ApiKey::Heartbeat, &heard("a fenced instance"), &base)?;
        let other = with(&base, "GroupInstanceId", json!("other"));
        session.ask_in(3..=4, ApiKey::Heartbeat, &heard("an unknown instance"), &other)?;
        let now = with(&base, "MemberId", json!(member_now));
        session.ask(ApiKey::Heartbeat, &heard("an instance"), &now)?;
        session.ask(ApiKey::DescribeGroups, &heard("an instance"), &json!({"Groups": [group]}))?;
        let leave = json!({"GroupId": group, "Members": [
            {"MemberId": "", "GroupInstanceId": "instance"},
            {"MemberId": "", "GroupInstanceId": "other"}]});
        session.ask_in(5..=5, ApiKey::LeaveGroup, &heard("instances"), &leave)?;
    }
    Ok(())
}

/// Members and groups that do not exist.
fn wrong_members(session: &mut Session) -> Result<()> {
    for (case, group) in [("an unknown group", ABSENT_GROUP), ("an empty group", "")] {
        let body = json!({"GroupId": group, "GenerationId": 1, "MemberId": "nobody",
            "ProtocolType": "consumer", "ProtocolName": "range",
            "Members": [{"MemberId": "nobody"}], });
        let without = |name: &str| {
            let mut body = body.clone();
            body.as_object_mut().map(|it| it.remove(name));
            body
        };
        let heartbeat = json!({"GroupId": group, "GenerationId": 1, "MemberId": "nobody"});
        let leave = json!({"GroupId": group, "MemberId": "nobody",
            "Members": [{"MemberId": "nobody"}]});
        session.ask(ApiKey::Heartbeat, case, &heartbeat)?;
        session.ask(ApiKey::SyncGroup, case, &without("Members"))?;
        session.ask(ApiKey::LeaveGroup, case, &leave)?;
        session.denied(ApiKey::Heartbeat, case, &heartbeat)?;
        session.denied(ApiKey::SyncGroup, case, &without("Members"))?;
        session.denied(ApiKey::LeaveGroup, case, &leave)?;
    }
    let none = json!({"GroupId": ABSENT_GROUP, "Members": []});
    session.ask_in(3..=i16::MAX, ApiKey::LeaveGroup, "no members", &none).map(drop)
}

fn describe(session: &mut Session) -> Result<()> {
    stable_group(session, "described")?;
    let of = |groups: &[&str]| json!({"Groups": groups, "IncludeAuthorizedOperations": true});
    let cases = [
        ("a group", of(&["described"])),
        ("an unknown group", of(&[ABSENT_GROUP])),
        ("an empty name", of(&[""])),
        ("groups", of(&["described", ABSENT_GROUP])),
        ("a group twice", of(&["described", "described"])),
        ("no groups", of(&[])),
        ("a group without operations", json!({"Groups": ["described"]})),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DescribeGroups, name, request)?;
    }
    session.denied(ApiKey::DescribeGroups, "a group", &of(&["described"]))?;
    session.denied(ApiKey::DescribeGroups, "an unknown group", &of(&[ABSENT_GROUP]))
}

fn list(session: &mut Session) -> Result<()> {
    let of =
        |states: &[&str], types: &[&str]| json!({"StatesFilter": states, "TypesFilter": types});
    session.ask(ApiKey::ListGroups, "all", &of(&[], &[]))?;
    for state in ["Stable", "stable", "Empty", "Dead", "NoSuchState", ""] {
        let case = format!("state [{state}]");
        session.ask_in(4..=i16::MAX, ApiKey::ListGroups, &case, &of(&[state], &[]))?;
    }
    for kind in ["classic", "Classic", "consumer", "share", "nosuchtype", ""] {
        let case = format!("type [{kind}]");
        session.ask_in(5..=i16::MAX, ApiKey::ListGroups, &case, &of(&[], &[kind]))?;
    }
    session.denied(ApiKey::ListGroups, "all", &of(&[], &[]))
}

fn delete(session: &mut Session) -> Result<()> {
    let of = |groups: &[&str]| json!({"GroupsNames": groups});
    for version in session.versions_of(ApiKey::DeleteGroups) {
        let member = stable_group(session, &format!("leaving-{version}"))?;
        let leave = json!({"GroupId": format!("leaving-{version}"),
            "Members": [{"MemberId": member}]});
        session.must(ApiKey::LeaveGroup, &leave)?;
    }
    session.denied(ApiKey::DeleteGroups, "a group", &of(&["described"]))?;
    session.denied(ApiKey::DeleteGroups, "an unknown group", &of(&[ABSENT_GROUP]))?;
    let cases = [
        ("an empty group", of(&["leaving-$v"])),
        ("a group with members", of(&["described"])),
        ("an unknown group", of(&[ABSENT_GROUP])),
        ("an empty name", of(&[""])),
        ("a group twice", of(&[ABSENT_GROUP, ABSENT_GROUP])),
        ("groups", of(&["described", ABSENT_GROUP])),
        ("no groups", of(&[])),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::DeleteGroups, name, request)?;
    }
    Ok(())
}

/// Makes a group of one member, whose id is returned.
pub(super) fn stable_group(session: &mut Session, group: &str) -> Result<String> {
    let joining = join(group);
    let has_id = |answer: &Tree| answer.text("MemberId").is_ok_and(|id| !id.is_empty());
    let first = session.until(ApiKey::JoinGroup, &joining, has_id)?;
    let named = with(&joining, "MemberId", json!(first.text("MemberId")?));
    let member = session.must(ApiKey::JoinGroup, &named)?.text("MemberId")?;
    let sync = json!({"GroupId": group, "GenerationId": 1, "MemberId": member,
        "ProtocolType": "consumer", "ProtocolName": "range",
        "Assignments": [{"MemberId": member, "Assignment": "all"}]});
    session.must(ApiKey::SyncGroup, &sync)?;
    Ok(member)
}

fn text(answers: &[Tree], name: &str) -> Result<String> {
    answers.first().map_or(Ok(String::new()), |answer| answer.text(name))
}
