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

impl ResourceType {
    pub(super) const ALL: [Self; 4] =
        [Self::Topic, Self::Group, Self::TransactionalId, Self::Cluster];
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

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

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
}

impl Operation {
    pub(super) fn implies(self, other: Self) -> bool {
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

    pub(super) fn is_everything(&self) -> bool {
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
