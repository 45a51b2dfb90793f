//! The rules of Kroxylicious's `AclAuthorizerService` as ours.
//!
//! ```text
//! from io.kroxylicious.filter.authorization import TopicResource as Topic;
//! deny User with name = "alice" to * Topic with name = "payments";
//! allow User with name in {"alice", "bob"} to {READ, DESCRIBE} Topic with name like "pay*";
//! otherwise deny;
//! ```
//!
//! | there | here |
//! |---|---|
//! | what denies an operation denies those that it implies | they are named as well |
//! | kinds of resources that no rule is about are not looked at | everyone may do all with them |
//! | who has not authenticated is no `User` | `User:ANONYMOUS` is denied what others get |
//! | regular expressions | a rule that allows is left out, one that denies is made wider |

mod parser;

use std::collections::BTreeSet;

use self::parser::{Names, Rule, parse};
use super::foreign::Notes;

/// Kinds of resources: their class there, and our word.
const KINDS: [(&str, &str); 3] = [
    ("TopicResource", "topic"),
    ("GroupResource", "group"),
    ("TransactionalIdResource", "transactional_id"),
];

/// Operations: theirs, ours, and what each implies.
const OPERATIONS: [(&str, &str, &str); 8] = [
    ("READ", "Read", "Describe"),
    ("WRITE", "Write", "Describe"),
    ("CREATE", "Create", ""),
    ("DELETE", "Delete", "Describe"),
    ("ALTER", "Alter", "Describe"),
    ("DESCRIBE", "Describe", ""),
    ("DESCRIBE_CONFIGS", "DescribeConfigs", ""),
    ("ALTER_CONFIGS", "AlterConfigs", "DescribeConfigs"),
];

/// Translates the text of a file into lines of rules; `path` names it in notes.
pub(super) fn rules(path: &str, text: &str, notes: &mut Notes) -> Vec<String> {
    let rules = match parse(text) {
        Ok(rules) => rules,
        Err(problem) => {
            notes.add(path, format_args!("{problem}; without rules nothing is allowed"));
            return Vec::new();
        }
    };
    let mut lines = Vec::new();
    let mut used = BTreeSet::new();
    for rule in &rules {
        let Some((_, kind)) = KINDS.iter().find(|(class, _)| *class == rule.resource) else {
            let what = format_args!("{}: {} has no counterpart", rule.place, rule.resource);
            notes.add(path, what);
            continue;
        };
        used.insert(*kind);
        lines.extend(translated(rule, kind, path, notes));
    }
    let allows_anyone = |line: &String| {
        let principal = line.strip_prefix("allow User:").and_then(|rest| rest.split(' ').next());
        let prefix = principal.and_then(|principal| principal.strip_suffix('*'));
        prefix.is_some_and(|prefix| "ANONYMOUS".starts_with(prefix))
    };
    if lines.iter().any(allows_anyone) {
        lines.extend(used.iter().map(|kind| format!("deny User:ANONYMOUS All {kind} *")));
    }
    let unused = KINDS.iter().filter(|(_, kind)| !used.contains(kind));
    lines.extend(unused.map(|(_, kind)| format!("allow User:* All {kind} *")));
    notes.add(path, "Kroxylicious does not check operations on the cluster; they are denied here");
    lines
}

/// The lines of a rule: one for each principal and name.
fn translated(rule: &Rule, kind: &str, path: &str, notes: &mut Notes) -> Vec<String> {
    let principals = patterns(&rule.principals);
    let (operations, names) = (operations(rule), patterns(&rule.names));
    let is_whole = rule.principal_type == "User"
        && [&principals, &names].iter().all(|it| it.is_ok())
        && operations.is_ok();
    if !is_whole {
        let cannot = "cannot be expressed by our rules";
        let what = if rule.allows { "it is left out" } else { "more is denied" };
        notes.add(path, format_args!("{}: {cannot}: {what}", rule.place));
        if rule.allows {
            return Vec::new();
        }
    }
    // What denies must not let anything through that it denied there.
    let all = |of: Result<Vec<String>, Inexpressible>| of.unwrap_or_else(|_| vec!["*".to_owned()]);
    let principals = match rule.principal_type.as_str() {
        "User" => all(principals),
        _ => vec!["*".to_owned()],
    };
    let (operations, names) = (operations.unwrap_or_else(|_| "All".to_owned()), all(names));
    let permission = if rule.allows { "allow" } else { "deny" };
    let of_principal = |principal: &String| {
        let line = format!("{permission} User:{principal} {operations} {kind}");
        names.iter().map(move |name| format!("{line} {name}")).collect::<Vec<_>>()
    };
    principals.iter().flat_map(of_principal).collect()
}

/// Something that our lines of words have no room for.
struct Inexpressible;

fn patterns(names: &Names) -> Result<Vec<String>, Inexpressible> {
    let of_word = |name: &String, end: &str| {
        let breaks = |c: char| c.is_whitespace() || c == '#' || c == '*';
        match name.contains(breaks) || (name.is_empty() && end.is_empty()) {
            true => Err(Inexpressible),
            false => Ok(format!("{name}{end}")),
        }
    };
    match names {
        Names::Any => Ok(vec!["*".to_owned()]),
        Names::In(names) => names.iter().map(|name| of_word(name, "")).collect(),
        Names::Like(prefix) => Ok(vec![of_word(prefix, "*")?]),
        Names::Matching => Err(Inexpressible),
    }
}

fn operations(rule: &Rule) -> Result<String, Inexpressible> {
    let Some(theirs) = &rule.operations else { return Ok("All".to_owned()) };
    let mut ours = BTreeSet::new();
    for name in theirs {
        let known = OPERATIONS.iter().find(|(theirs, ..)| theirs == name);
        let (_, own, implied) = known.ok_or(Inexpressible)?;
        ours.insert(*own);
        if !rule.allows && !implied.is_empty() {
            ours.insert(*implied);
        }
    }
    Ok(ours.into_iter().collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(rules_text: &str) -> (Vec<String>, Vec<String>) {
        let import = "from io.kroxylicious.filter.authorization import TopicResource as Topic, \
                      GroupResource, TransactionalIdResource as Tx;\n";
        let mut notes = Notes::default();
        let lines = rules("acl", &format!("{import}{rules_text}\notherwise deny;"), &mut notes);
        (lines, notes.0)
    }

    const CLUSTER: &str =
        "acl: Kroxylicious does not check operations on the cluster; they are denied here";

    #[test]
    fn names_and_operations_are_reported_by_lines() {
        let (lines, notes) = translate(
            "// comment\ndeny User with name = \"eve\" to {READ, ALTER_CONFIGS} Topic with name \
             like \"pay*\"; /* and\nanother */ allow User with name in {\"a\", \"b\"} to * Topic \
             with name in {\"x\", \"y\"};\nallow User with name like \"team-*\" to READ \
             GroupResource with name = \"g\";",
        );
        let wanted = [
            "deny User:eve AlterConfigs,Describe,DescribeConfigs,Read topic pay*",
            "allow User:a All topic x",
            "allow User:a All topic y",
            "allow User:b All topic x",
            "allow User:b All topic y",
            "allow User:team-* Read group g",
            "allow User:* All transactional_id *",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(notes, [CLUSTER]);
    }

    #[test]
    fn who_has_not_authenticated_gets_nothing_that_every_user_gets() {
        let (lines, _) = translate(
            "allow User with name * to DESCRIBE Topic with name *;\n\
             allow User with name * to READ GroupResource with name like \"*\";\n\
             allow User with name = \"a\" to WRITE Tx with name like \"plain\";",
        );
        let wanted = [
            "allow User:* Describe topic *",
            "allow User:* Read group *",
            "allow User:a Write transactional_id plain",
            "deny User:ANONYMOUS All group *",
            "deny User:ANONYMOUS All topic *",
            "deny User:ANONYMOUS All transactional_id *",
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn rules_without_a_counterpart_are_left_out_or_denied_wholly() {
        let (lines, notes) = translate(
            "deny User with name = \"a\" to READ Topic with name matching /a+/;\n\
             deny User with name = \"a b\" to READ Topic with name = \"x\";\n\
             allow User with name = \"a\" to READ Topic with name matching /a\\/+/;\n\
             allow User with name = \"a\" to READ Topic with name = \"with # and \\\" in it\";",
        );
        let wanted = [
            "deny User:a Describe,Read topic *",
            "deny User:* Describe,Read topic x",
            "allow User:* All group *",
            "allow User:* All transactional_id *",
        ];
        assert_eq!(lines, wanted);
        let told = [
            "acl: 2:1: cannot be expressed by our rules: more is denied",
            "acl: 3:1: cannot be expressed by our rules: more is denied",
            "acl: 4:1: cannot be expressed by our rules: it is left out",
            "acl: 5:1: cannot be expressed by our rules: it is left out",
            CLUSTER,
        ];
        assert_eq!(notes, told);
    }

    #[test]
    fn a_file_that_is_broken_allows_nothing() {
        for (text, problem) in [
            ("allow User with name = \"a\" to READ Topic", "3:1: expected `with`, not `otherwise`"),
            ("allow User with name = \"a to READ Topic;", "2:24: a text without an end"),
            ("permit User", "2:1: expected a rule, not `permit`"),
            (
                "allow User with name = \"a\" to READ Topics with name *;",
                "2:36: Topics is not imported",
            ),
        ] {
            let (lines, notes) = translate(text);
            assert_eq!(lines, [""; 0]);
            assert_eq!(notes, [format!("acl: {problem}; without rules nothing is allowed")]);
        }
    }
}
