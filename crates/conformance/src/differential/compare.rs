//! What differs between two answers, field by field, and whether the table of differences says so.
//!
//! The order within an array does not count, since Kafka's own comes from hash maps: elements with
//! the same names and numbers are compared with each other.

use std::fmt;

use super::differences::Difference;
use super::session::{Answer, Answers, Request};
use super::tree::Tree;
use crate::check::Check;

/// Fields that tell which element of an array it is.
const IDENTITIES: &[&str] = &[
    "ApiKey",
    "FeatureName",
    "GroupId",
    "Host",
    "Index",
    "Key",
    "MemberId",
    "Name",
    "Operation",
    "Partition",
    "PartitionId",
    "PartitionIndex",
    "PatternType",
    "PermissionType",
    "Principal",
    "ResourceName",
    "ResourceType",
    "Topic",
    "TopicId",
    "TopicName",
    "TransactionalId",
    "User",
];

/// Beyond this many characters the rest of a value is cut off in what is printed.
const SHOWN_MAX: usize = 400;

/// A field whose values differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// Names of fields, the outermost first, joined by dots.
    pub(super) field: String,
    pub(super) kafka: String,
    pub(super) ours: String,
}

/// One check for each request and for each row of the table.
pub(super) fn compare(kafka: &Answers, ours: &Answers, table: &[Difference]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut found = Vec::new();
    for (request, wanted) in kafka {
        let differing = match ours.get(request) {
            Some(answer) => differing(wanted, answer),
            None => vec![whole(wanted, &"not asked")],
        };
        let open = differing.iter().filter(|it| !table.iter().any(|row| row.covers(request, it)));
        let open: Vec<_> = open.map(ToString::to_string).collect();
        checks.push(Check::new(&request.to_string(), open.is_empty(), &open.join("\n")));
        found.extend(differing.into_iter().map(|it| (request.clone(), it)));
    }
    for request in ours.keys().filter(|request| !kafka.contains_key(request)) {
        checks.push(Check::new(&request.to_string(), false, "Kafka was not asked"));
    }
    checks.extend(table.iter().map(|row| still_there(row, kafka, &found)));
    checks
}

/// Whether each case of a row differs as it says: a named one in every version, and of those that
/// share a beginning at least one in each.
fn still_there(row: &Difference, asked: &Answers, found: &[(Request, Found)]) -> Check {
    let mut missing = Vec::new();
    let mut is_asked = false;
    for case in row.cases {
        let one = Difference { cases: std::slice::from_ref(case), ..*row };
        let requests: Vec<_> = asked.keys().filter(|request| one.is_about(request)).collect();
        let versions: std::collections::BTreeSet<_> =
            requests.iter().map(|it| it.version).collect();
        is_asked |= !requests.is_empty();
        if requests.is_empty() {
            missing.push(format!("no case {case}"));
        }
        for version in versions {
            let differs = |(request, found): &&(Request, Found)| {
                request.version == version && one.covers(request, found)
            };
            if !found.iter().any(|it| differs(&it)) {
                missing.push(format!("{case} in version {version} does not differ so"));
            }
        }
    }
    let name = format!("{} differs in {} of {:?}", row.api, row.field, row.cases);
    Check::new(&name, is_asked && missing.is_empty(), &missing.join("\n"))
}

fn differing(kafka: &Answer, ours: &Answer) -> Vec<Found> {
    match (kafka, ours) {
        (Answer::Body(kafka), Answer::Body(ours)) => {
            let mut found = Vec::new();
            diff("", kafka, ours, &mut found);
            found
        }
        (kafka, ours) if kafka == ours => Vec::new(),
        (kafka, ours) => vec![whole(kafka, ours)],
    }
}

fn whole(kafka: &impl fmt::Display, ours: &impl fmt::Display) -> Found {
    Found { field: String::new(), kafka: kafka.to_string(), ours: ours.to_string() }
}

fn diff(path: &str, kafka: &Tree, ours: &Tree, found: &mut Vec<Found>) {
    match (kafka, ours) {
        (Tree::Struct(wanted), Tree::Struct(had)) => {
            let mut names: Vec<_> = wanted.iter().map(|(field, _)| field.name).collect();
            let further = had.iter().filter(|(field, _)| value(wanted, field.name).is_none());
            names.extend(further.map(|(field, _)| field.name));
            for name in names {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                match (value(wanted, name), value(had, name)) {
                    (Some(kafka), Some(ours)) => diff(&path, kafka, ours, found),
                    (kafka, ours) => {
                        let shown =
                            |it: Option<&Tree>| it.map_or("absent".to_owned(), Tree::to_string);
                        found.push(Found { field: path, kafka: shown(kafka), ours: shown(ours) });
                    }
                }
            }
        }
        (Tree::List(wanted), Tree::List(had)) => lists(path, wanted, had, found),
        (kafka, ours) if kafka == ours => {}
        (kafka, ours) => found.push(Found {
            field: path.to_owned(),
            kafka: kafka.to_string(),
            ours: ours.to_string(),
        }),
    }
}

/// Compares elements with the same identity, and says once which have no counterpart.
fn lists(path: &str, kafka: &[Tree], ours: &[Tree], found: &mut Vec<Found>) {
    let mut left: Vec<_> = ours.iter().map(|it| (identity(it), it)).collect();
    let mut alone = Vec::new();
    for wanted in kafka {
        let name = identity(wanted);
        match left.iter().position(|(other, _)| *other == name) {
            Some(at) => diff(path, wanted, left.remove(at).1, found),
            None => alone.push(name),
        }
    }
    if !alone.is_empty() || !left.is_empty() {
        let left: Vec<_> = left.into_iter().map(|(name, _)| name).collect();
        let field = path.to_owned();
        found.push(Found { field, kafka: alone.join(", "), ours: left.join(", ") });
    }
}

fn value<'a>(
    fields: &'a [(&'static moldau_protocol::Field, Tree)],
    name: &str,
) -> Option<&'a Tree> {
    fields.iter().find(|(field, _)| field.name == name).map(|(_, value)| value)
}

fn identity(tree: &Tree) -> String {
    let Tree::Struct(fields) = tree else { return tree.to_string() };
    let own = fields.iter().filter(|(field, _)| IDENTITIES.contains(&field.name));
    own.map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = |text: &str| text.chars().take(SHOWN_MAX).collect::<String>();
        let field = if self.field.is_empty() { "the answer" } else { &self.field };
        write!(f, "{field}: Kafka [{}], the broker [{}]", cut(&self.kafka), cut(&self.ours))
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => write!(f, "{}", bytes.escape_ascii()),
            Self::List(elements) => {
                let all: Vec<_> = elements.iter().map(Self::to_string).collect();
                write!(f, "[{}]", all.join(", "))
            }
            Self::Struct(fields) => {
                let one = |(field, value): &(&moldau_protocol::Field, Self)| {
                    format!("{}={value}", field.name)
                };
                write!(f, "{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(" "))
            }
        }
    }
}
