//! Rules: who may do what to which resource, one on each line.
//!
//! ```text
//! # Words are separated by spaces; what follows a # is a comment.
//! allow User:alice   Read,Describe  topic  orders
//! allow User:billing-*  Read        group  billing-*
//! allow User:*       Describe       topic  public-*
//! deny  User:bob     All            any    *
//! in eu allow User:admin  All       any    *
//! ```
//!
//! | word | what it says |
//! |---|---|
//! | `in NAME` | only for this virtual cluster; without it, for all |
//! | `allow`, `deny` | a rule that denies wins over all that allow |
//! | principal | a principal, or the beginning of principals before a `*` |
//! | operations | Kafka's names, with commas; `All` is every one |
//! | resource | `topic`, `group`, `transactional_id`, `cluster` or `any` |
//! | name | a name, or the beginning of names before a `*`; none for `cluster` |
//!
//! A rule for `any` resource is one for the cluster too if its name is `*` alone.
//!
//! As in Kafka, who may read, write, delete or alter a thing may describe it, and who may alter
//! configurations may describe them; to deny one operation denies no other.

use std::str::FromStr;

use moldau_proxy::Principal;

use crate::error::Error;

use super::NAME;

/// What may be done, by Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// To read records, to be a member of a group.
    Read,
    /// To write records, to use a transactional id.
    Write,
    /// To create topics.
    Create,
    /// To delete topics, records and groups.
    Delete,
    /// To change what is not a configuration.
    Alter,
    /// To see that a thing is there.
    Describe,
    /// What brokers do among themselves.
    ClusterAction,
    /// To see configurations.
    DescribeConfigs,
    /// To change configurations.
    AlterConfigs,
    /// To produce with sequence numbers.
    IdempotentWrite,
}

/// What kind of thing something is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceType {
    /// A topic.
    Topic,
    /// A group of any kind.
    Group,
    /// A transactional id.
    TransactionalId,
    /// The cluster as a whole.
    Cluster,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The only virtual cluster that it is for, if it is not for all.
    pub virtual_cluster: Option<String>,
    /// Whether it allows; otherwise it denies.
    pub allows: bool,
    /// The principals that it is about, as `User:name`.
    pub principals: Pattern,
    /// The operations, or `None` for all.
    pub operations: Option<Vec<Operation>>,
    /// The kind of things, or `None` for all kinds.
    pub resource_type: Option<ResourceType>,
    /// The things.
    pub names: Pattern,
}

/// Names, or their beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This name.
    Literal(String),
    /// Every name that begins so.
    Prefixed(String),
}

/// All rules, of which none allows what no rule allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) virtual_cluster: &'a str,
    /// As `User:name`.
    pub(super) principal: &'a str,
}

impl Rules {
    /// Reads the lines of a file.
    ///
    /// # Errors
    /// A line is no rule; the error names it by its number.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().zip(1..).filter(|(line, _)| !words(line).is_empty());
        let rules = lines.map(|(line, number)| {
            line.parse()
                .map_err(|reason: String| Error::setting(NAME, format!("line {number}: {reason}")))
        });
        rules.collect::<Result<_, _>>().map(Self)
    }

    /// Whether the subject may do this to the resource of this name.
    pub(super) fn allow(
        &self,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        let mut is_allowed = false;
        for rule in self.about(subject, resource_type) {
            if rule.stands_for(resource_type, name) && rule.covers(operation) {
                if !rule.allows {
                    return false;
                }
                is_allowed = true;
            }
        }
        is_allowed
    }

    /// Whether there can be a resource of the type to which the subject may do this: something is
    /// allowed that is not denied altogether (KIP-679).
    pub(super) fn allow_somewhere(
        &self,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let rules = || self.about(subject, resource_type).filter(|rule| rule.covers(operation));
        rules().filter(|rule| rule.allows).any(|allowing| {
            rules().filter(|rule| !rule.allows).all(|denying| !denying.names.hold(&allowing.names))
        })
    }

    /// Whether the subject may do this to every resource of the type.
    pub(super) fn allow_everywhere(
        &self,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let rules = || self.about(subject, resource_type).filter(|rule| rule.covers(operation));
        rules().any(|rule| rule.allows && rule.names.is_everything())
            && rules().all(|rule| rule.allows)
    }

    fn about(
        &self,
        subject: Subject<'_>,
        resource_type: ResourceType,
    ) -> impl Iterator<Item = &Rule> {
        self.0.iter().filter(move |rule| {
            let cluster = rule.virtual_cluster.as_deref();
            cluster.is_none_or(|cluster| cluster == subject.virtual_cluster)
                && rule.resource_type.is_none_or(|of| of == resource_type)
                && rule.principals.matches(subject.principal)
        })
    }
}

impl Rule {
    /// Whether the rule is about a resource of its type. The cluster's own name is Kafka's, and
    /// nobody means it by the beginnings of topics.
    fn stands_for(&self, resource_type: ResourceType, name: &str) -> bool {
        match resource_type {
            ResourceType::Cluster => self.names.is_everything(),
            _ => self.names.matches(name),
        }
    }

    /// Whether the rule decides about an operation. Those that allow cover what theirs imply.
    fn covers(&self, operation: Operation) -> bool {
        let Some(operations) = &self.operations else { return true };
        operations.contains(&operation)
            || (self.allows && operations.iter().any(|own| own.implies(operation)))
    }
}

impl Operation {
    fn implies(self, other: Self) -> bool {
        use Operation::{Alter, AlterConfigs, Delete, Describe, DescribeConfigs, Read, Write};
        match other {
            Describe => matches!(self, Read | Write | Delete | Alter),
            DescribeConfigs => self == AlterConfigs,
            _ => false,
        }
    }
}

impl Pattern {
    /// Whether the pattern stands for a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Literal(own) => own == name,
            Self::Prefixed(prefix) => name.starts_with(prefix.as_str()),
        }
    }

    /// Whether the pattern stands for all names that another does.
    fn hold(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(own), Self::Literal(other)) => own == other,
            (Self::Literal(_), Self::Prefixed(_)) => false,
            (Self::Prefixed(prefix), Self::Literal(other) | Self::Prefixed(other)) => {
                other.starts_with(prefix.as_str())
            }
        }
    }

    fn is_everything(&self) -> bool {
        matches!(self, Self::Prefixed(prefix) if prefix.is_empty())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words = words(line);
        let (virtual_cluster, words) = match words.as_slice() {
            ["in", name, rest @ ..] => (Some((*name).to_owned()), rest),
            rest => (None, rest),
        };
        let (permission, principal, operations, resource, name) = match *words {
            [permission, principal, operations, "cluster"] => {
                (permission, principal, operations, "cluster", "*")
            }
            [_, _, _, "cluster", _] => return Err("a cluster has no name here".to_owned()),
            [permission, principal, operations, resource, name] => {
                (permission, principal, operations, resource, name)
            }
            _ => return Err(format!("expected `{FORM}`")),
        };
        Ok(Self {
            virtual_cluster,
            allows: match permission {
                "allow" => true,
                "deny" => false,
                other => return Err(format!("`{other}` is neither `allow` nor `deny`")),
            },
            principals: principals(principal)?,
            operations: operations_of(operations)?,
            resource_type: match resource {
                "any" => None,
                "topic" => Some(ResourceType::Topic),
                "group" => Some(ResourceType::Group),
                "transactional_id" => Some(ResourceType::TransactionalId),
                "cluster" => Some(ResourceType::Cluster),
                other => return Err(format!("`{other}` is no kind of resource; {RESOURCES}")),
            },
            names: pattern(name)?,
        })
    }
}

/// The form of a rule.
const FORM: &str = "[in CLUSTER] allow|deny PRINCIPAL OPERATIONS RESOURCE NAME";

const RESOURCES: &str = "there are topic, group, transactional_id, cluster and any";

/// Kafka's names of operations.
const OPERATIONS: &[(&str, Operation)] = &[
    ("Read", Operation::Read),
    ("Write", Operation::Write),
    ("Create", Operation::Create),
    ("Delete", Operation::Delete),
    ("Alter", Operation::Alter),
    ("Describe", Operation::Describe),
    ("ClusterAction", Operation::ClusterAction),
    ("DescribeConfigs", Operation::DescribeConfigs),
    ("AlterConfigs", Operation::AlterConfigs),
    ("IdempotentWrite", Operation::IdempotentWrite),
];

/// The words of a line before its comment.
fn words(line: &str) -> Vec<&str> {
    let code = line.split('#').next().unwrap_or_default();
    code.split_whitespace().collect()
}

fn operations_of(text: &str) -> Result<Option<Vec<Operation>>, String> {
    if text == "All" {
        return Ok(None);
    }
    let operations = text.split(',').map(|name| {
        let known = OPERATIONS.iter().find(|(known, _)| *known == name);
        known.map(|(_, operation)| *operation).ok_or_else(|| {
            let names: Vec<&str> = OPERATIONS.iter().map(|(name, _)| *name).collect();
            format!("`{name}` is no operation; there are All, {}", names.join(", "))
        })
    });
    operations.collect::<Result<_, _>>().map(Some)
}

fn principals(text: &str) -> Result<Pattern, String> {
    let of_a_type = text == "*" || Principal::from_str(text.trim_end_matches('*')).is_ok();
    let is_prefix_of_type = text.ends_with(":*");
    if !of_a_type && !is_prefix_of_type {
        return Err(format!("`{text}` is no principal such as User:alice"));
    }
    pattern(text)
}

fn pattern(text: &str) -> Result<Pattern, String> {
    match text.strip_suffix('*') {
        Some(prefix) if !prefix.contains('*') => Ok(Pattern::Prefixed(prefix.to_owned())),
        None if !text.contains('*') => Ok(Pattern::Literal(text.to_owned())),
        _ => Err(format!("`{text}`: a `*` may stand at the end only")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Subject<'_> = Subject { virtual_cluster: "eu", principal: "User:alice" };

    fn rules(text: &str) -> Rules {
        Rules::parse(text).unwrap()
    }

    fn may(text: &str, operation: Operation, name: &str) -> bool {
        rules(text).allow(ALICE, operation, ResourceType::Topic, name)
    }

    #[test]
    fn nothing_is_allowed_that_no_rule_allows() {
        assert!(!may("", Operation::Read, "orders"));
        let orders = "allow User:alice Read topic orders # a comment";
        assert!(may(orders, Operation::Read, "orders"));
        assert!(
            !may(orders, Operation::Write, "orders") && !may(orders, Operation::Read, "orders2")
        );
        assert!(!may("allow User:bob Read topic orders", Operation::Read, "orders"));
        assert!(!may("allow User:alice Read group orders", Operation::Read, "orders"));
    }

    #[test]
    fn patterns_are_names_or_beginnings() {
        let text = "allow User:al* Read topic eu-*\nallow * Read any all";
        assert!(may(text, Operation::Read, "eu-1") && may(text, Operation::Read, "all"));
        assert!(!may(text, Operation::Read, "us-1"));
        assert!(may("allow User:* All any *", Operation::Alter, "x"));
    }

    #[test]
    fn operations_imply_others_where_they_are_allowed() {
        for operation in ["Read", "Write", "Delete", "Alter"] {
            let text = format!("allow User:alice {operation} topic t");
            assert!(may(&text, Operation::Describe, "t"));
            assert!(!may(&text, Operation::DescribeConfigs, "t"));
            let denied = format!("allow * All any *\ndeny User:alice {operation} topic t");
            assert!(may(&denied, Operation::Describe, "t"), "{operation}");
        }
        let text = "allow User:alice AlterConfigs topic t";
        assert!(may(text, Operation::DescribeConfigs, "t") && !may(text, Operation::Describe, "t"));
    }

    #[test]
    fn denying_wins_in_any_order() {
        for text in
            ["deny * Read topic x*\nallow * All any *", "allow * All any *\ndeny * All any x*"]
        {
            assert!(!may(text, Operation::Read, "xy") && may(text, Operation::Read, "y"));
        }
    }

    /// `allow User:alice All any kafka-*` gave away the cluster, which Kafka calls kafka-cluster.
    #[test]
    fn beginnings_of_names_stand_for_no_cluster() {
        let alters = |text: &str| {
            rules(text).allow(ALICE, Operation::Alter, ResourceType::Cluster, "kafka-cluster")
        };
        assert!(!alters("allow User:alice All any k*") && !alters("allow * All any kafka-cluster"));
        assert!(alters("allow User:alice All any *") && alters("allow User:alice All cluster"));
    }

    #[test]
    fn rules_may_be_for_one_virtual_cluster() {
        assert!(may("in eu allow * Read topic t", Operation::Read, "t"));
        assert!(!may("in us allow * Read topic t", Operation::Read, "t"));
    }

    #[test]
    fn something_is_allowed_unless_all_of_it_is_denied() {
        let somewhere =
            |text: &str| rules(text).allow_somewhere(ALICE, Operation::Write, ResourceType::Topic);
        assert!(somewhere("allow * Write topic a*") && !somewhere("allow * Read topic a*"));
        assert!(somewhere("allow * Write topic a*\ndeny * Write topic ab*"));
        assert!(!somewhere("allow * Write topic ab*\ndeny * All any a*"));
        let everywhere = |text: &str| {
            rules(text).allow_everywhere(ALICE, Operation::Describe, ResourceType::Topic)
        };
        assert!(everywhere("allow * Read topic *") && !everywhere("allow * Read topic a*"));
        assert!(!everywhere("allow * Read topic *\ndeny * Describe topic x"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = [
            ("permit * Read topic t", "neither"),
            ("allow alice Read topic t", "no principal"),
            ("allow User:a read topic t", "no operation"),
            ("allow User:a Read queue t", "no kind"),
            ("allow User:a Read topic a*b", "at the end only"),
            ("allow User:a Read cluster kafka-cluster", "no name"),
            ("allow User:a Read topic", "expected"),
        ];
        for (line, reason) in wrong {
            let error = Rules::parse(&format!("# first\n\n{line}")).unwrap_err().to_string();
            assert!(error.contains("line 3") && error.contains(reason), "{error}");
        }
    }
}
