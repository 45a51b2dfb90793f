//! ACLs and SCRAM credentials as clients make, see and delete them, over restarts and checkpoints.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use moldau_protocol::messages::create_acls_request::AclCreation;
use moldau_protocol::messages::delete_acls_request::DeleteAclsFilter;
use moldau_protocol::messages::describe_user_scram_credentials_request::UserName;
use moldau_protocol::messages::{
    AlterUserScramCredentialsRequest, CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest,
    DescribeAclsResponse, DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use moldau_storage::Drive;

use super::quotas::ask_about_quotas;
use super::versions::each;
use super::world::{World, code};
use crate::config::AuthorizationSettings;
use crate::scram_credentials::ScramMechanism;

/// Kafka's numbers.
pub(super) const TOPIC: i8 = 2;
pub(super) const GROUP: i8 = 3;
pub(super) const CLUSTER: i8 = 4;
pub(super) const TRANSACTIONAL_ID: i8 = 5;
const ANY: i8 = 1;
const LITERAL: i8 = 3;
const PREFIXED: i8 = 4;
const DENY: i8 = 2;
const ALLOW: i8 = 3;
pub(super) const READ: i8 = 3;
const WRITE: i8 = 4;

impl World {
    /// A broker whose super user is `User:admin`, who sends requests at first.
    pub(super) fn secured() -> Self {
        let world = Self::with(Drive::Threads, |config| {
            let super_users = vec!["User:admin".parse().unwrap()];
            let settings =
                AuthorizationSettings { super_users, ..AuthorizationSettings::default() };
            config.authorization = Some(settings);
        });
        world.be("admin");
        world
    }

    /// Sends further requests as this user.
    pub(super) fn be(&self, user: &'static str) {
        *self.user.borrow_mut() = user;
    }

    /// Lets `User:alice` do something, as the super user.
    pub(super) fn allow(&self, resource_type: i8, name: &str, operation: i8) {
        let before = *self.user.borrow();
        self.be("admin");
        let response = self.ask(&CreateAclsRequest {
            creations: vec![allowance(resource_type, name, operation)],
            ..CreateAclsRequest::default()
        });
        assert_eq!(code(response.results[0].error_code), ErrorCode::None);
        self.be(before);
    }

    fn acls(&self) -> DescribeAclsResponse {
        self.ask(&all_acls())
    }

    /// Everyone's credentials: user, mechanism and iterations.
    fn credentials(&self) -> Vec<(String, i8, i32)> {
        let response = self.ask(&DescribeUserScramCredentialsRequest::default());
        assert_eq!(code(response.error_code), ErrorCode::None);
        let infos = response.results.into_iter().flat_map(|result| {
            let user = result.user;
            let infos = result.credential_infos.into_iter();
            infos.map(move |info| (user.clone(), info.mechanism, info.iterations))
        });
        infos.collect()
    }
}

pub(super) fn allowance(resource_type: i8, name: &str, operation: i8) -> AclCreation {
    AclCreation {
        resource_type,
        resource_name: name.to_owned(),
        resource_pattern_type: LITERAL,
        principal: "User:alice".to_owned(),
        host: "*".to_owned(),
        operation,
        permission_type: ALLOW,
        ..AclCreation::default()
    }
}

fn all_acls() -> DescribeAclsRequest {
    DescribeAclsRequest {
        resource_type_filter: ANY,
        resource_name_filter: None,
        pattern_type_filter: ANY,
        principal_filter: None,
        host_filter: None,
        operation: ANY,
        permission_type: ANY,
        ..DescribeAclsRequest::default()
    }
}

fn deletion(resource_type_filter: i8) -> DeleteAclsFilter {
    DeleteAclsFilter {
        resource_type_filter,
        resource_name_filter: None,
        pattern_type_filter: ANY,
        principal_filter: None,
        host_filter: None,
        operation: ANY,
        permission_type: ANY,
        ..DeleteAclsFilter::default()
    }
}

/// Deletes every ACL.
pub(super) fn every_deletion() -> DeleteAclsRequest {
    DeleteAclsRequest { filters: vec![deletion(ANY)], ..DeleteAclsRequest::default() }
}

/// Creates ACLs and returns their codes.
fn create(world: &World, creations: Vec<AclCreation>) -> Vec<ErrorCode> {
    let response = world.ask(&CreateAclsRequest { creations, ..CreateAclsRequest::default() });
    response.results.iter().map(|result| code(result.error_code)).collect()
}

#[test]
fn without_authorization_acls_are_disabled() {
    let world = World::new();
    let disabled = ErrorCode::SecurityDisabled;
    assert_eq!(code(world.acls().error_code), disabled);
    assert_eq!(create(&world, vec![allowance(TOPIC, "orders", READ)]), [disabled]);
    let filters = vec![deletion(ANY)];
    let deleted = world.ask(&DeleteAclsRequest { filters, ..DeleteAclsRequest::default() });
    assert_eq!(code(deleted.filter_results[0].error_code), disabled);
}

#[test]
fn acls_survive_a_restart_and_a_checkpoint() {
    let mut world = World::secured();
    let denial = AclCreation {
        resource_pattern_type: PREFIXED,
        permission_type: DENY,
        ..allowance(GROUP, "app-", WRITE)
    };
    let creations =
        vec![allowance(TOPIC, "orders", READ), denial, allowance(TOPIC, "orders", WRITE)];
    assert_eq!(create(&world, creations), [ErrorCode::None; 3]);
    let described = world.acls();
    let shape: Vec<_> = described
        .resources
        .iter()
        .map(|it| (it.resource_type, it.pattern_type, it.resource_name.as_str(), it.acls.len()))
        .collect();
    assert_eq!(shape, [(TOPIC, LITERAL, "orders", 2), (GROUP, PREFIXED, "app-", 1)]);
    world = world.restarted();
    assert_eq!(world.acls(), described);
    world.state.checkpoint().unwrap();
    world = world.restarted();
    assert_eq!(world.acls(), described);
}

#[test]
fn existing_acl_is_created_again_without_a_record() {
    let world = World::secured();
    assert_eq!(create(&world, vec![allowance(TOPIC, "orders", READ)]), [ErrorCode::None]);
    let end = world.state.storage.end();
    assert_eq!(create(&world, vec![allowance(TOPIC, "orders", READ)]), [ErrorCode::None]);
    assert_eq!(world.state.storage.end(), end);
    assert_eq!(world.acls().resources[0].acls.len(), 1);
}

#[test]
fn invalid_acl_is_refused_alone() {
    let world = World::secured();
    let good = allowance(TOPIC, "orders", READ);
    let bad = [
        AclCreation { resource_type: ANY, ..good.clone() },
        AclCreation { resource_pattern_type: 2, ..good.clone() },
        AclCreation { operation: ANY, ..good.clone() },
        AclCreation { permission_type: ANY, ..good.clone() },
        AclCreation { resource_name: String::new(), ..good.clone() },
        AclCreation { principal: "alice".to_owned(), ..good.clone() },
        AclCreation { resource_type: CLUSTER, resource_name: "mine".to_owned(), ..good.clone() },
    ];
    let mut creations = bad.to_vec();
    creations.push(good);
    let mut wanted = vec![ErrorCode::InvalidRequest; bad.len()];
    wanted.push(ErrorCode::None);
    assert_eq!(create(&world, creations), wanted);
    assert_eq!(world.acls().resources.len(), 1);
}

#[test]
fn deletion_reports_deleted_acls_per_filter() {
    let world = World::secured();
    let creations = vec![allowance(TOPIC, "orders", READ), allowance(GROUP, "app", READ)];
    create(&world, creations);
    let filters = vec![deletion(TOPIC), deletion(ANY), deletion(9)];
    let deleted = world.ask(&DeleteAclsRequest { filters, ..DeleteAclsRequest::default() });
    let found: Vec<_> = deleted
        .filter_results
        .iter()
        .map(|result| (code(result.error_code), result.matching_acls.len()))
        .collect();
    assert_eq!(found, [(ErrorCode::None, 1), (ErrorCode::None, 2), (ErrorCode::InvalidRequest, 0)]);
    let world = world.restarted();
    assert_eq!(world.acls().resources, []);
}

fn delete(world: &World, filters: Vec<DeleteAclsFilter>) -> Vec<(ErrorCode, usize)> {
    let deleted = world.ask(&DeleteAclsRequest { filters, ..DeleteAclsRequest::default() });
    let results = deleted.filter_results.iter();
    results.map(|result| (code(result.error_code), result.matching_acls.len())).collect()
}

/// Every filter took every ACL: the answer had as many of them as there are of both together.
#[test]
fn a_deletion_of_too_many_acls_deletes_none() {
    let world = World::secured();
    let names = (0..6_000).map(|number| format!("topic-{number}"));
    let creations: Vec<_> = names.map(|name| allowance(TOPIC, &name, READ)).collect();
    create(&world, creations);
    let refused = (ErrorCode::InvalidRequest, 0);
    assert_eq!(delete(&world, vec![deletion(ANY), deletion(TOPIC)]), [refused; 2]);
    assert_eq!(world.acls().resources.len(), 6_000);
    assert_eq!(delete(&world, vec![deletion(ANY)]), [(ErrorCode::None, 6_000)]);
}

/// The broker compared every filter with every ACL, and nobody was let in meanwhile.
#[test]
fn thousands_of_filters_need_resource_names() {
    let world = World::secured();
    let names = (0..1_000).map(|number| format!("topic-{number}"));
    let creations: Vec<_> = names.map(|name| allowance(TOPIC, &name, READ)).collect();
    create(&world, creations);
    let of_nobody =
        || DeleteAclsFilter { principal_filter: Some("User:nobody".to_owned()), ..deletion(ANY) };
    let filters: Vec<_> = std::iter::repeat_with(of_nobody).take(10_000).collect();
    let refused = (ErrorCode::InvalidRequest, 0);
    assert_eq!(delete(&world, filters), vec![refused; 10_000]);
    let named = (0..10_000).map(|number| DeleteAclsFilter {
        resource_name_filter: Some(format!("topic-{number}")),
        ..deletion(ANY)
    });
    let found = delete(&world, named.collect());
    assert!(found.iter().all(|(code, _)| *code == ErrorCode::None));
    assert_eq!(found.iter().map(|(_, count)| count).sum::<usize>(), 1_000);
    assert_eq!(world.acls().resources, []);
}

pub(super) fn upsertion(name: &str, mechanism: i8, iterations: i32) -> ScramCredentialUpsertion {
    ScramCredentialUpsertion {
        name: name.to_owned(),
        mechanism,
        iterations,
        salt: bytes::Bytes::from_static(b"salt"),
        salted_password: bytes::Bytes::from_static(b"salted password"),
        ..ScramCredentialUpsertion::default()
    }
}

fn removal(name: &str, mechanism: i8) -> ScramCredentialDeletion {
    let name = name.to_owned();
    ScramCredentialDeletion { name, mechanism, ..ScramCredentialDeletion::default() }
}

fn alter(
    world: &World,
    upsertions: Vec<ScramCredentialUpsertion>,
    deletions: Vec<ScramCredentialDeletion>,
) -> Vec<(String, ErrorCode)> {
    let request = AlterUserScramCredentialsRequest {
        upsertions,
        deletions,
        ..AlterUserScramCredentialsRequest::default()
    };
    let response = world.ask(&request);
    response.results.into_iter().map(|it| (it.user, code(it.error_code))).collect()
}

#[test]
fn credentials_survive_a_restart_and_a_checkpoint() {
    let mut world = World::secured();
    let told =
        alter(&world, vec![upsertion("alice", 1, 4096), upsertion("bob", 2, 8192)], Vec::new());
    let ok = |user: &str| (user.to_owned(), ErrorCode::None);
    assert_eq!(told, [ok("alice"), ok("bob")]);
    assert_eq!(alter(&world, vec![upsertion("alice", 2, 16_384)], Vec::new()), [ok("alice")]);
    assert_eq!(alter(&world, Vec::new(), vec![removal("bob", 2)]), [ok("bob")]);
    let wanted = [("alice".to_owned(), 1, 4096), ("alice".to_owned(), 2, 16_384)];
    assert_eq!(world.credentials(), wanted);
    world = world.restarted();
    assert_eq!(world.credentials(), wanted);
    world.state.checkpoint().unwrap();
    world = world.restarted();
    assert_eq!(world.credentials(), wanted);
}

#[test]
fn the_keys_of_a_credential_are_those_of_rfc_7677() {
    // The example of RFC 7677, section 3: password "pencil", salt W22ZaJ0SNY7soEsUEjb6gQ==, 4096
    // iterations. Its server signature is made with this server key.
    let salted = hex("c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d");
    let world = World::secured();
    let mut upsertion = upsertion("user", 1, 4096);
    upsertion.salted_password = salted.into();
    alter(&world, vec![upsertion], Vec::new());
    let (stored_key, server_key) = world.state.security.view_credentials(|credentials| {
        let kept = credentials.find("user", ScramMechanism::Sha256).unwrap();
        (kept.0.stored_key.clone(), kept.0.server_key.clone())
    });
    let stored = "586e5df283e6dceb5c3e791d8b8528ec191e664045ce971792e2e6b5bb13e2a6";
    let server = "c1f3cbc1c13a9d35a14c0990eed97629ea225863e566a4314ab99f3f00e5d9d5";
    assert_eq!(stored_key, hex(stored));
    assert_eq!(server_key, hex(server));
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn invalid_credentials_are_refused() {
    let world = World::secured();
    let refused = |upsertion| alter(&world, vec![upsertion], Vec::new()).remove(0).1;
    assert_eq!(refused(upsertion("", 1, 4096)), ErrorCode::UnacceptableCredential);
    assert_eq!(refused(upsertion("alice", 1, 4095)), ErrorCode::UnacceptableCredential);
    assert_eq!(refused(upsertion("alice", 1, 16_385)), ErrorCode::UnacceptableCredential);
    assert_eq!(refused(upsertion("alice", 3, 4096)), ErrorCode::UnsupportedSaslMechanism);
    let absent = alter(&world, Vec::new(), vec![removal("alice", 1)]);
    assert_eq!(absent, [("alice".to_owned(), ErrorCode::ResourceNotFound)]);
    let twice = alter(&world, vec![upsertion("a", 1, 4096), upsertion("a", 2, 4096)], Vec::new());
    assert_eq!(twice, [("a".to_owned(), ErrorCode::DuplicateResource)]);
    assert_eq!(world.credentials(), []);
}

#[test]
fn duplicate_user_in_a_describe_request_is_refused() {
    let world = World::secured();
    alter(&world, vec![upsertion("alice", 1, 4096)], Vec::new());
    let users = ["alice", "bob", "carol", "carol"]
        .map(|name| UserName { name: name.to_owned(), ..UserName::default() });
    let request = DescribeUserScramCredentialsRequest {
        users: Some(users.into()),
        ..DescribeUserScramCredentialsRequest::default()
    };
    let response: DescribeUserScramCredentialsResponse = world.ask(&request);
    let told: Vec<_> =
        response.results.iter().map(|it| (it.user.as_str(), code(it.error_code))).collect();
    let wanted = [
        ("alice", ErrorCode::None),
        ("bob", ErrorCode::ResourceNotFound),
        ("carol", ErrorCode::DuplicateResource),
    ];
    assert_eq!(told, wanted);
}

/// Asks every version of what concerns ACLs and credentials.
pub(super) fn ask_about_security(world: &World) {
    each(world, |_| CreateAclsRequest {
        creations: vec![allowance(TOPIC, "orders", READ), allowance(9, "orders", READ)],
        ..CreateAclsRequest::default()
    });
    each(world, |_| all_acls());
    each(world, |_| DescribeAclsRequest { operation: 0, ..all_acls() });
    each(world, |_| DeleteAclsRequest {
        filters: vec![deletion(ANY), deletion(0)],
        ..DeleteAclsRequest::default()
    });
    each(world, |_| AlterUserScramCredentialsRequest {
        upsertions: vec![upsertion("alice", 1, 4096), upsertion("bob", 7, 4096)],
        deletions: vec![removal("carol", 1)],
        ..AlterUserScramCredentialsRequest::default()
    });
    for users in [None, Some(vec!["alice", "carol"])] {
        let user = |name: &str| UserName { name: name.to_owned(), ..UserName::default() };
        each(world, |_| DescribeUserScramCredentialsRequest {
            users: users.as_ref().map(|users| users.iter().map(|name| user(name)).collect()),
            ..DescribeUserScramCredentialsRequest::default()
        });
    }
    ask_about_quotas(world);
    each(world, |_| SaslHandshakeRequest { mechanism: "PLAIN".to_owned() });
    each(world, |_| SaslAuthenticateRequest::default());
}
