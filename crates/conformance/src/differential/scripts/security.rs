//! Access control lists and SCRAM credentials.

use anyhow::Result;
use moldau_protocol::ApiKey;
use serde_json::{Value, json};

use super::with;
use crate::differential::session::Session;
use crate::differential::tree::Tree;

pub(super) fn run(session: &mut Session) -> Result<()> {
    create_acls(session)?;
    describe_acls(session)?;
    delete_acls(session)?;
    alter_credentials(session)?;
    describe_credentials(session)
}

/// A literal list for a topic: any host, all operations allowed.
fn acl() -> Value {
    json!({"ResourceType": 2, "ResourceName": "guarded-$v", "ResourcePatternType": 3,
        "Principal": "User:alice", "Host": "*", "Operation": 3, "PermissionType": 3})
}

fn create_acls(session: &mut Session) -> Result<()> {
    let of = |acls: &[Value]| json!({"Creations": acls});
    let changed = |name: &str, value: Value| of(&[with(&acl(), name, value)]);
    let cluster = with(&with(&acl(), "ResourceType", json!(4)), "ResourceName", json!("other"));
    let cases = [
        ("a list", of(&[acl()])),
        ("a list that exists", of(&[acl()])),
        ("a list twice", of(&[acl(), acl()])),
        ("a prefix", changed("ResourcePatternType", json!(4))),
        ("a deny", changed("PermissionType", json!(2))),
        ("a host", changed("Host", json!("10.0.0.7"))),
        ("a host of no form", changed("Host", json!("not a host"))),
        ("an empty host", changed("Host", json!(""))),
        ("a pattern that matches any", changed("ResourcePatternType", json!(1))),
        ("a pattern that matches", changed("ResourcePatternType", json!(2))),
        ("a pattern of type 9", changed("ResourcePatternType", json!(9))),
        ("a resource of type 0", changed("ResourceType", json!(0))),
        ("a resource of type 1", changed("ResourceType", json!(1))),
        ("a resource of type 99", changed("ResourceType", json!(99))),
        ("an empty resource", changed("ResourceName", json!(""))),
        ("another cluster", of(&[cluster])),
        ("operation 0", changed("Operation", json!(0))),
        ("operation 1", changed("Operation", json!(1))),
        ("operation 99", changed("Operation", json!(99))),
        ("permission 0", changed("PermissionType", json!(0))),
        ("permission 1", changed("PermissionType", json!(1))),
        ("permission 9", changed("PermissionType", json!(9))),
        ("a principal without a type", changed("Principal", json!("alice"))),
        ("an empty principal", changed("Principal", json!(""))),
        ("a principal of another type", changed("Principal", json!("Group:staff"))),
        ("good and bad lists", of(&[acl(), with(&acl(), "Operation", json!(99))])),
        ("no lists", of(&[])),
    ];
    for (name, request) in &cases {
        session.ask(ApiKey::CreateAcls, name, request)?;
    }
    session.denied(ApiKey::CreateAcls, "a list", &of(&[acl()]))
}

/// A filter for the lists of the topic that [`acl`] is about.
fn filter() -> Value {
    json!({"ResourceTypeFilter": 2, "ResourceNameFilter": "guarded-$v", "PatternTypeFilter": 3,
        "PrincipalFilter": null, "HostFilter": null, "Operation": 1, "PermissionType": 1})
}

fn filters() -> [(&'static str, Value); 16] {
    let changed = |name: &str, value: Value| with(&filter(), name, value);
    [
        ("a topic", filter()),
        ("an unknown topic", changed("ResourceNameFilter", json!("unguarded"))),
        ("an empty name", changed("ResourceNameFilter", json!(""))),
        ("a pattern that matches any", changed("PatternTypeFilter", json!(1))),
        // Without a principal it would match the lists of the administrator.
        (
            "a pattern that matches",
            with(&changed("PatternTypeFilter", json!(2)), "PrincipalFilter", json!("User:alice")),
        ),
        ("a pattern of type 0", changed("PatternTypeFilter", json!(0))),
        ("a pattern of type 9", changed("PatternTypeFilter", json!(9))),
        ("a resource of type 0", changed("ResourceTypeFilter", json!(0))),
        ("a resource of type 99", changed("ResourceTypeFilter", json!(99))),
        ("operation 0", changed("Operation", json!(0))),
        ("operation 99", changed("Operation", json!(99))),
        ("permission 0", changed("PermissionType", json!(0))),
        ("permission 9", changed("PermissionType", json!(9))),
        ("a principal", changed("PrincipalFilter", json!("User:alice"))),
        ("a principal without a type", changed("PrincipalFilter", json!("alice"))),
        ("a host", changed("HostFilter", json!("10.0.0.7"))),
    ]
}

fn describe_acls(session: &mut Session) -> Result<()> {
    let all = json!({"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1,
        "PermissionType": 1});
    let has_all = |answer: &Tree| answer.to_string().contains("guarded-3");
    session.until(ApiKey::DescribeAcls, &all, has_all)?;
    session.ask(ApiKey::DescribeAcls, "all", &all)?;
    for (name, request) in &filters() {
        session.ask(ApiKey::DescribeAcls, name, request)?;
    }
    session.denied(ApiKey::DescribeAcls, "all", &all)
}

fn delete_acls(session: &mut Session) -> Result<()> {
    let of = |filters: &[Value]| json!({"Filters": filters});
    session.denied(ApiKey::DeleteAcls, "a topic", &of(&[filter()]))?;
    let mut rest = filters();
    // What the first filters delete is not there for the others.
    rest.reverse();
    for (name, request) in &rest {
        session.ask(ApiKey::DeleteAcls, name, &of(std::slice::from_ref(request)))?;
    }
    let unknown = with(&filter(), "Operation", json!(99));
    session.ask(ApiKey::DeleteAcls, "good and bad filters", &of(&[filter(), unknown]))?;
    session.ask(ApiKey::DeleteAcls, "no filters", &of(&[])).map(drop)
}

fn alter_credentials(session: &mut Session) -> Result<()> {
    let api = ApiKey::AlterUserScramCredentials;
    let credential = |name: &str, mechanism: i8, iterations: i32| {
        json!({"Name": name, "Mechanism": mechanism, "Iterations": iterations, "Salt": "salt",
            "SaltedPassword": "a salted password of 32 bytes..."})
    };
    let of = |upsertions: &[Value]| json!({"Upsertions": upsertions, "Deletions": []});
    fn delete(name: &str, mechanism: i8) -> Value {
        json!({"Upsertions": [], "Deletions": [{"Name": name, "Mechanism": mechanism}]})
    }
    let cases = [
        ("a user", of(&[credential("alice", 1, 4096)])),
        ("another mechanism", of(&[credential("alice", 2, 8192)])),
        ("too few iterations", of(&[credential("bob", 1, 4095)])),
        ("too many iterations", of(&[credential("bob", 1, 16_385)])),
        ("-1 iterations", of(&[credential("bob", 1, -1)])),
        ("an empty name", of(&[credential("", 1, 4096)])),
        ("mechanism 0", of(&[credential("bob", 0, 4096)])),
        ("mechanism 9", of(&[credential("bob", 9, 4096)])),
        ("a user twice", of(&[credential("bob", 1, 4096), credential("bob", 1, 4096)])),
        (
            "a user with two mechanisms",
            of(&[credential("carol", 1, 4096), credential("carol", 2, 4096)]),
        ),
        ("good and bad users", of(&[credential("dave", 1, 4096), credential("erin", 1, 1)])),
        ("a deletion", delete("dave", 1)),
        ("a deletion of what is not there", delete("dave", 1)),
        ("a deletion of an unknown user", delete("nobody", 1)),
        ("a deletion of mechanism 9", delete("alice", 9)),
        ("a deletion of an empty name", delete("", 1)),
        (
            "a deletion and an upsertion of one",
            with(
                &of(&[credential("bob", 1, 4096)]),
                "Deletions",
                json!([{"Name": "bob", "Mechanism": 1}]),
            ),
        ),
        ("nothing", json!({"Upsertions": [], "Deletions": []})),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    session.denied(api, "a user", &of(&[credential("alice", 1, 4096)]))?;
    session.denied(api, "nothing", &of(&[]))
}

fn describe_credentials(session: &mut Session) -> Result<()> {
    let api = ApiKey::DescribeUserScramCredentials;
    let of = |names: &[&str]| {
        let users: Vec<_> = names.iter().map(|name| json!({"Name": name})).collect();
        json!({"Users": users})
    };
    let cases = [
        ("a user", of(&["alice"])),
        ("an unknown user", of(&["nobody"])),
        ("an empty name", of(&[""])),
        ("a user twice", of(&["alice", "alice"])),
        ("users", of(&["alice", "carol", "nobody"])),
        ("no users", of(&[])),
        ("all", json!({"Users": null})),
    ];
    for (name, request) in &cases {
        session.ask(api, name, request)?;
    }
    // Kafka never answers a client without rights that asks for all.
    session.denied(api, "a user", &of(&["alice"]))
}
