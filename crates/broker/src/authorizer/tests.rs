//! The rules of Kafka's authorizer, case by case, and against a plain walk over all ACLs.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::Operation as Op;
use super::*;

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn alice() -> Subject {
    Subject { principal: "User:alice".to_owned(), address: HOST }
}

fn acl(
    pattern: (ResourceType, PatternType, &str),
    who: (&str, &str),
    permission: Permission,
    operation: Op,
) -> Acl {
    let (resource_type, pattern_type, name) = pattern;
    let (principal, host) = who;
    Acl {
        pattern: ResourcePattern { resource_type, pattern_type, name: name.to_owned() },
        entry: AccessControlEntry {
            principal: principal.to_owned(),
            host: host.to_owned(),
            operation,
            permission,
        },
    }
}

fn topic(pattern_type: PatternType, name: &str, permission: Permission, operation: Op) -> Acl {
    acl((ResourceType::Topic, pattern_type, name), ("User:alice", "*"), permission, operation)
}

fn literal(name: &str, permission: Permission, operation: Op) -> Acl {
    topic(PatternType::Literal, name, permission, operation)
}

fn prefixed(name: &str, permission: Permission, operation: Op) -> Acl {
    topic(PatternType::Prefixed, name, permission, operation)
}

fn acls(all: impl IntoIterator<Item = Acl>) -> Acls {
    let mut acls = Acls::default();
    all.into_iter().for_each(|acl| assert!(acls.insert(acl)));
    acls
}

fn authorizer(allow_everyone_if_no_acl_found: bool) -> Authorizer {
    let super_users = vec!["User:admin".parse().unwrap()];
    Authorizer::new(&AuthorizationSettings { super_users, allow_everyone_if_no_acl_found })
}

fn allows(all: &[Acl], operation: Op, name: &str) -> bool {
    let acls = acls(all.iter().cloned());
    authorizer(false).allows(&acls, &alice(), operation, ResourceType::Topic, name)
}

#[test]
fn everything_is_denied_without_an_acl() {
    assert!(!allows(&[], Op::Read, "orders"));
    assert!(authorizer(true).allows(
        &Acls::default(),
        &alice(),
        Op::Read,
        ResourceType::Topic,
        "orders"
    ));
}

#[test]
fn an_acl_on_a_resource_ends_access_for_everyone() {
    let others = acl(
        (ResourceType::Topic, PatternType::Literal, "orders"),
        ("User:bob", "*"),
        Permission::Allow,
        Op::Read,
    );
    let (acls, everyone) = (acls([others]), authorizer(true));
    let allows = |name| everyone.allows(&acls, &alice(), Op::Read, ResourceType::Topic, name);
    assert!(!allows("orders"));
    assert!(allows("invoices"));
}

#[test]
fn super_user_ignores_denials() {
    let acls = acls([acl(
        (ResourceType::Topic, PatternType::Literal, "*"),
        ("User:*", "*"),
        Permission::Deny,
        Op::All,
    )]);
    let admin = Subject { principal: "User:admin".to_owned(), address: HOST };
    assert!(authorizer(false).allows(&acls, &admin, Op::Write, ResourceType::Topic, "orders"));
}

/// A host that was denied in the IPv6 form of its IPv4 address could do everything.
#[test]
fn an_address_of_ipv4_is_the_same_in_the_form_of_ipv6() {
    let pattern = (ResourceType::Topic, PatternType::Literal, "orders");
    let everyone = literal("orders", Permission::Allow, Op::Read);
    for (host, is_allowed) in [("::ffff:10.0.0.1", false), ("::ffff:10.0.0.2", true), ("x", true)] {
        let denied = acl(pattern, ("User:alice", host), Permission::Deny, Op::Read);
        assert_eq!(allows(&[everyone.clone(), denied], Op::Read, "orders"), is_allowed, "{host}");
    }
}

#[test]
fn names_are_matched_literally_by_prefix_or_all() {
    let read = |acl: Acl, name| allows(&[acl], Op::Read, name);
    assert!(read(literal("orders", Permission::Allow, Op::Read), "orders"));
    assert!(!read(literal("orders", Permission::Allow, Op::Read), "orders-eu"));
    assert!(read(prefixed("orders", Permission::Allow, Op::Read), "orders-eu"));
    assert!(!read(prefixed("orders", Permission::Allow, Op::Read), "order"));
    assert!(read(literal("*", Permission::Allow, Op::Read), "orders"));
    assert!(!read(prefixed("*", Permission::Allow, Op::Read), "orders"));
}

#[test]
fn denial_wins_regardless_of_order() {
    let allowed = literal("orders", Permission::Allow, Op::All);
    for denied in [
        literal("orders", Permission::Deny, Op::Read),
        literal("*", Permission::Deny, Op::Read),
        prefixed("ord", Permission::Deny, Op::All),
    ] {
        assert!(!allows(&[allowed.clone(), denied.clone()], Op::Read, "orders"), "{denied:?}");
    }
}

#[test]
fn rights_imply_describe_but_denials_do_not_deny_it() {
    for operation in [Op::Read, Op::Write, Op::Delete, Op::Alter, Op::Describe, Op::All] {
        let acl = literal("orders", Permission::Allow, operation);
        assert!(allows(&[acl], Op::Describe, "orders"), "{operation:?}");
    }
    for operation in [Op::Create, Op::DescribeConfigs, Op::AlterConfigs] {
        let acl = literal("orders", Permission::Allow, operation);
        assert!(!allows(&[acl], Op::Describe, "orders"), "{operation:?}");
    }
    let altered = literal("orders", Permission::Allow, Op::AlterConfigs);
    assert!(allows(std::slice::from_ref(&altered), Op::DescribeConfigs, "orders"));
    let described = literal("orders", Permission::Allow, Op::Describe);
    let unread = literal("orders", Permission::Deny, Op::Read);
    assert!(allows(&[described, unread], Op::Describe, "orders"));
}

#[test]
fn acl_applies_only_to_its_principal_and_host() {
    let of = |principal, host| {
        let pattern = (ResourceType::Topic, PatternType::Literal, "orders");
        allows(&[acl(pattern, (principal, host), Permission::Allow, Op::Read)], Op::Read, "orders")
    };
    assert!(of("User:*", "*"));
    assert!(of("User:alice", "10.0.0.1"));
    assert!(!of("User:alice", "10.0.0.2"));
    assert!(!of("User:alice", "10.0.0.0/8"), "Kafka 4.3.1 knows no networks");
    assert!(!of("Group:alice", "*"));
}

#[test]
fn write_to_any_topic_needs_an_allowance_without_covering_denial() {
    let somewhere = |all: &[Acl]| {
        let acls = acls(all.iter().cloned());
        authorizer(false).allows_somewhere(&acls, &alice(), Op::Write, ResourceType::Topic)
    };
    let allow = literal("orders", Permission::Allow, Op::Write);
    assert!(!somewhere(&[]));
    assert!(somewhere(std::slice::from_ref(&allow)));
    assert!(somewhere(&[prefixed("or", Permission::Allow, Op::All)]));
    assert!(!somewhere(&[literal("orders", Permission::Allow, Op::Read)]));
    assert!(!somewhere(&[allow.clone(), literal("orders", Permission::Deny, Op::Write)]));
    assert!(!somewhere(&[allow.clone(), prefixed("or", Permission::Deny, Op::Write)]));
    assert!(!somewhere(&[allow.clone(), literal("*", Permission::Deny, Op::All)]));
    assert!(somewhere(&[allow, prefixed("orders-", Permission::Deny, Op::Write)]));
    let prefix = prefixed("or", Permission::Allow, Op::Write);
    assert!(somewhere(&[prefix.clone(), prefixed("orders", Permission::Deny, Op::Write)]));
    assert!(!somewhere(&[prefix, prefixed("o", Permission::Deny, Op::Write)]));
}

fn filter(resource_type: i8, pattern_type: i8, name: Option<&str>) -> AclFilter {
    let fields = FilterFields {
        resource_type,
        pattern_type,
        name: name.map(str::to_owned),
        principal: None,
        host: None,
        operation: 1,
        permission: 1,
    };
    AclFilter::of(fields).unwrap()
}

#[test]
fn acl_filter_matches_its_pattern() {
    let all = acls([
        literal("orders", Permission::Allow, Op::Read),
        literal("*", Permission::Allow, Op::Read),
        prefixed("ord", Permission::Allow, Op::Read),
        prefixed("inv", Permission::Allow, Op::Read),
    ]);
    let names = |filter: &AclFilter| -> Vec<String> {
        all.matching(filter).into_iter().map(|(pattern, _)| pattern.name).collect()
    };
    let (any, covering, literal, prefixed) = (1, 2, 3, 4);
    assert_eq!(names(&filter(1, any, None)), ["*", "orders", "inv", "ord"]);
    assert_eq!(names(&filter(2, any, Some("ord"))), ["ord"]);
    assert_eq!(names(&filter(2, literal, None)), ["*", "orders"]);
    assert_eq!(names(&filter(2, prefixed, Some("inv"))), ["inv"]);
    assert_eq!(names(&filter(2, covering, Some("orders"))), ["*", "orders", "ord"]);
    assert_eq!(names(&filter(3, any, None)), [""; 0]);
}

#[test]
fn acl_filter_with_an_unknown_code_is_invalid() {
    for (resource_type, pattern_type) in [(0, 1), (1, 0), (8, 1), (1, 5), (-1, 1)] {
        let fields = FilterFields {
            resource_type,
            pattern_type,
            name: None,
            principal: None,
            host: None,
            operation: 1,
            permission: 1,
        };
        assert!(AclFilter::of(fields).is_none(), "{resource_type} {pattern_type}");
    }
}

/// Few letters, so that names are often prefixes of each other.
fn name() -> impl Strategy<Value = String> {
    "[aä]{0,4}[bü]{0,2}".prop_filter("resources have names", |name| !name.is_empty())
}

fn any_acl() -> impl Strategy<Value = Acl> {
    let pattern = prop_oneof![Just(PatternType::Literal), Just(PatternType::Prefixed)];
    let name = prop_oneof![5 => name(), 1 => Just("*".to_owned())];
    let permission = prop_oneof![1 => Just(Permission::Deny), 4 => Just(Permission::Allow)];
    let operation = prop::sample::select(vec![Op::All, Op::Read, Op::Write, Op::Describe]);
    let principal = prop::sample::select(vec!["User:alice", "User:*", "User:bob"]);
    (pattern, name, principal, permission, operation).prop_map(
        |(pattern_type, name, principal, permission, operation)| {
            let pattern = (ResourceType::Topic, pattern_type, name.as_str());
            acl(pattern, (principal, "*"), permission, operation)
        },
    )
}

/// What the rules say, without an index.
fn plainly(all: &BTreeSet<Acl>, operation: Op, name: &str) -> bool {
    let is_about = |acl: &&Acl| match acl.pattern.pattern_type {
        PatternType::Literal => acl.pattern.name == "*" || acl.pattern.name == name,
        PatternType::Prefixed => name.starts_with(&acl.pattern.name),
    };
    let told = all
        .iter()
        .filter(is_about)
        .filter(|acl| acl.entry.principal != "User:bob" && acl.entry.covers(operation));
    let permissions: Vec<_> = told.map(|acl| acl.entry.permission).collect();
    !permissions.is_empty() && !permissions.contains(&Permission::Deny)
}

proptest! {
    #[test]
    fn decisions_equal_those_of_a_full_scan(
        all in proptest::collection::btree_set(any_acl(), 0..12),
        name in name(),
        operation in prop::sample::select(vec![Op::Read, Op::Write, Op::Describe]),
    ) {
        let acls = acls(all.iter().cloned());
        let decided =
            authorizer(false).allows(&acls, &alice(), operation, ResourceType::Topic, &name);
        prop_assert_eq!(decided, plainly(&all, operation, &name));
    }

    #[test]
    fn removed_acl_has_no_effect(
        all in proptest::collection::btree_set(any_acl(), 0..12),
        removed in any_acl(),
    ) {
        let mut acls = acls(all.iter().cloned());
        prop_assert_eq!(acls.remove(&removed), all.contains(&removed));
        prop_assert!(!acls.contains(&removed));
        prop_assert_eq!(acls.len(), acls.iter().map(|(_, entries)| entries.len()).sum::<usize>());
        prop_assert!(acls.iter().all(|(_, entries)| !entries.is_empty()));
    }
}
