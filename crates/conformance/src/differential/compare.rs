//! What differs between two answers, field by field, and whether the table of differences says so.
//!
//! The order within an array does not count, since Kafka's own comes from hash maps: elements with
//! the same names and numbers are compared with each other.

use std::collections::BTreeSet;
use std::fmt;

use super::differences::{Difference, Found, is_so};
use super::session::{Answer, Answers, Request};
use super::tree::Tree;
use crate::check::Check;

/// Fields that tell which element of an array it is.
const IDENTITIES: &[&str] = &[
    "ApiKey",
    "Entity",
    "EntityType",
    "FeatureName",
    "GroupId",
    "Host",
    "Index",
    "Key",
    "Mechanism",
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

/// Whether a row is as exact as it can be: each of its cases differs in each of the versions, and
/// each of its fields in some request.
fn still_there(row: &Difference, asked: &Answers, found: &[(Request, Found)]) -> Check {
    let mut missing = Vec::new();
    for case in row.cases {
        let one = Difference { cases: std::slice::from_ref(case), ..*row };
        let requests = asked.keys().filter(|request| one.is_about(request));
        let versions: BTreeSet<_> = requests.map(|request| request.version).collect();
        if versions.is_empty() {
            missing.push(format!("there is no case [{case}]"));
        }
        for version in versions {
            let differs = |(request, found): &(Request, Found)| {
                request.version == version && one.covers(request, found)
            };
            if !found.iter().any(differs) {
                missing.push(format!("[{case}] in version {version} does not differ so"));
            }
        }
    }
    for field in row.fields {
        let differs =
            |(request, found): &(Request, Found)| row.is_about(request) && is_so(field, found);
        if !found.iter().any(differs) {
            missing.push(format!("{field:?} does not differ so"));
        }
    }
    let name = format!("{} differs in {:?}", row.api, row.cases);
    Check::new(&name, missing.is_empty(), &missing.join("\n"))
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
        let mut left: Vec<_> = left.into_iter().map(|(name, _)| name).collect();
        alone.sort_unstable();
        left.sort_unstable();
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
    // An id is what an element is called that has no name.
    let has_name = matches!(value(fields, "Name"), Some(Tree::Text(name)) if !name.is_empty());
    let own = fields.iter().filter(|(field, _)| {
        IDENTITIES.contains(&field.name) && !(has_name && field.name == "TopicId")
    });
    // The parts of the entity of a quota have no order.
    let shown = |value: &Tree| match value {
        Tree::List(elements) => {
            let mut all: Vec<_> = elements.iter().map(Tree::to_string).collect();
            all.sort_unstable();
            all.join(", ")
        }
        other => other.to_string(),
    };
    own.map(|(_, value)| shown(value)).collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use moldau_protocol::{ApiKey, Layout, messages};

    use super::*;
    use crate::differential::tree;

    const ROW: Difference = Difference {
        api: ApiKey::Heartbeat,
        cases: &["late"],
        versions: (0, 4),
        fields: &[("ErrorCode", "27", "0")],
        reason: "it is a test",
    };

    /// A heartbeat's answers in versions 1 and 2.
    fn answers(case: &str, code: i16) -> Answers {
        let layout = Layout::of::<messages::HeartbeatResponse>();
        let one = |version: i16| {
            let [high, low] = code.to_be_bytes();
            let body = tree::decode(&layout, version, &[0, 0, 0, 0, high, low]).unwrap();
            let request = Request { api: ApiKey::Heartbeat, case: case.to_owned(), version };
            (request, Answer::Body(body))
        };
        [1, 2].into_iter().map(one).collect()
    }

    fn failed(kafka: &Answers, ours: &Answers, table: &[Difference]) -> usize {
        compare(kafka, ours, table).iter().filter(|check| !check.ok).count()
    }

    #[test]
    fn a_difference_fails_unless_a_row_has_it() {
        let (kafka, ours) = (answers("late", 27), answers("late", 0));
        assert_eq!(failed(&kafka, &kafka, &[]), 0);
        assert_eq!(failed(&kafka, &ours, &[]), 2);
        assert_eq!(failed(&kafka, &ours, &[ROW]), 0);
        assert_eq!(failed(&kafka, &answers("late", 1), &[ROW]), 3);
        assert_eq!(failed(&kafka, &Answers::new(), &[]), 2);
    }

    #[test]
    fn a_row_that_no_longer_differs_fails() {
        let kafka = answers("late", 27);
        assert_eq!(failed(&kafka, &kafka, &[ROW]), 1);
        let ours = answers("late", 0);
        let beside = Difference { cases: &["late", "never"], ..ROW };
        assert_eq!(failed(&kafka, &ours, &[beside]), 1);
        let fields = &[("ErrorCode", "27", "0"), ("ThrottleTimeMs", "0", "1")];
        assert_eq!(failed(&kafka, &ours, &[Difference { fields, ..ROW }]), 1);
    }

    #[test]
    fn elements_are_compared_by_their_names_and_not_by_their_order() {
        let list = |names: &[&str]| {
            names.iter().map(|name| Tree::Text((*name).to_owned())).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        lists("Names", &list(&["a", "b"]), &list(&["b", "a"]), &mut found);
        assert_eq!(found, []);
        lists("Names", &list(&["a", "b"]), &list(&["b", "c"]), &mut found);
        let (field, kafka, ours) = ("Names".to_owned(), "a".to_owned(), "c".to_owned());
        assert_eq!(found, [Found { field, kafka, ours }]);
    }
}
