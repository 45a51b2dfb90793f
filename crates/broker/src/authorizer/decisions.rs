//! Decisions as they are made for requests, for the bench that counts their instructions.

use std::net::{IpAddr, Ipv4Addr};

use super::{
    AccessControlEntry, Acl, Acls, Authorizer, Operation, PatternType, Permission, ResourcePattern,
    ResourceType, Subject,
};
use crate::config::AuthorizationSettings;

/// An authorizer with ACLs, and the client about whom it decides.
#[derive(Debug)]
pub struct Decisions {
    authorizer: Authorizer,
    acls: Acls,
    subject: Subject,
}

impl Decisions {
    /// Beside one ACL that lets the client read and write a topic there are so many others: of
    /// four one is about the same client and another topic, one about another client and the same
    /// topic, one about another prefix, and one about a prefix that the topic has.
    #[must_use]
    pub fn new(others: usize) -> Self {
        let settings = AuthorizationSettings {
            super_users: Vec::new(),
            allow_everyone_if_no_acl_found: false,
        };
        let mut acls = Acls::default();
        let mut add = |pattern_type, name: &str, principal: &str| {
            acls.insert(Acl {
                pattern: ResourcePattern {
                    resource_type: ResourceType::Topic,
                    pattern_type,
                    name: name.to_owned(),
                },
                entry: AccessControlEntry {
                    principal: principal.to_owned(),
                    host: "*".to_owned(),
                    operation: Operation::All,
                    permission: Permission::Allow,
                },
            });
        };
        add(PatternType::Literal, TOPIC, PRINCIPAL);
        for number in 0..others {
            let other = format!("other-{number}");
            match number % 4 {
                0 => add(PatternType::Literal, &other, PRINCIPAL),
                1 => add(PatternType::Literal, TOPIC, &format!("User:{other}")),
                2 => add(PatternType::Prefixed, &other, PRINCIPAL),
                _ => add(PatternType::Prefixed, "ord", &format!("User:{other}")),
            }
        }
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let subject = Subject { principal: PRINCIPAL.to_owned(), address };
        Self { authorizer: Authorizer::new(&settings), acls, subject }
    }

    /// Whether the client may write to its topic, as a Produce request asks.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.may(Operation::Write, TOPIC)
    }

    /// Whether the client may read a topic that only prefixes stand for, as a Fetch request asks.
    #[must_use]
    pub fn may_read_other(&self) -> bool {
        self.may(Operation::Read, "order")
    }

    fn may(&self, operation: Operation, topic: &str) -> bool {
        self.authorizer.allows(&self.acls, &self.subject, operation, ResourceType::Topic, topic)
    }
}

const TOPIC: &str = "orders";
const PRINCIPAL: &str = "User:alice";
