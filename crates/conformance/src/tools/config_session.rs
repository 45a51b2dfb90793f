//! What came of each step of a session with topic configs, against what Apache Kafka answers.
//!
//! `config_session.txt` holds the steps as Apache Kafka 4.4.0 ended them, so a run against Kafka
//! proves the list and a run against our broker proves the broker. A step ends otherwise there
//! only if [`DIFFERENCES`] says how and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

const OF_KAFKA: &str = include_str!("config_session.txt");

/// Steps that end otherwise in our broker: the step, how it ends there, and why.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    (
        "set min.cleanable.dirty.ratio=[NaN]",
        "INVALID_CONFIG",
        "Kafka's bounds let through what is not a number",
    ),
    (
        "set internal.segment.bytes=[1048576]",
        "INVALID_CONFIG",
        "a key of Kafka's own tests, which it does not show either",
    ),
    (
        "create blanks",
        "37 keys, retention.ms=[5] DYNAMIC_TOPIC_CONFIG",
        "Kafka answers in the spelling of the request and describes in its own",
    ),
];

/// The steps of a session, with what the tools showed of its topics afterwards.
pub(super) fn transcript(session: &str, configs: &str, topics: &str) -> BTreeMap<String, String> {
    let mut steps = parse(session);
    for line in configs.lines().filter(|line| line.contains(" sensitive=")) {
        if let Some((key, shown)) = line.trim().split_once('=') {
            steps.insert(format!("kafka-configs shows {key}"), shown.to_owned());
        }
    }
    if let Some((_, shown)) = topics.lines().find_map(|line| line.split_once("Configs: ")) {
        steps.insert("kafka-topics shows configs".to_owned(), shown.trim().to_owned());
    }
    steps
}

/// Every step that does not end as it should, a line each; empty where all do.
pub(super) fn differences(found: &BTreeMap<String, String>, is_ours: bool) -> String {
    let mut wanted = parse(OF_KAFKA);
    if is_ours {
        let ours = DIFFERENCES.iter().map(|(step, ours, _)| (*step, *ours));
        wanted.extend(ours.map(|(step, ours)| (step.to_owned(), ours.to_owned())));
    }
    let mut text = String::new();
    let steps = wanted.keys().chain(found.keys().filter(|step| !wanted.contains_key(*step)));
    for step in steps {
        let (wanted, found) = (wanted.get(step), found.get(step));
        if wanted != found {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{step}: {found:?}, not {wanted:?}");
        }
    }
    text
}

/// Lines of a step, a tab and its end.
fn parse(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(step, end)| (step.to_owned(), end.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_difference_is_one() {
        let of_kafka = parse(OF_KAFKA);
        for (step, ours, _) in DIFFERENCES {
            assert!(of_kafka.get(*step).is_some_and(|end| end != ours), "{step}");
        }
    }

    #[test]
    fn a_step_that_ends_otherwise_or_is_missing_is_told() {
        let mut found = parse(OF_KAFKA);
        assert_eq!(differences(&found, false), "");
        assert_eq!(differences(&found, true).lines().count(), DIFFERENCES.len());
        found.remove("list 0: append [compact]");
        found.insert("another".to_owned(), "end".to_owned());
        assert_eq!(differences(&found, false).lines().count(), 2);
    }

    #[test]
    fn what_the_tools_show_are_steps() {
        let configs = "All configs:\n  a.b=x=1 sensitive=false synonyms={}\n";
        let topics = "Topic: t\tPartitionCount: 1\tConfigs: a.b=1\n\tTopic: t\tPartition: 0\n";
        let steps = transcript("one\tNONE\n", configs, topics);
        let steps: Vec<_> = steps.iter().map(|(step, end)| (step.as_str(), end.as_str())).collect();
        let shown = [
            ("kafka-configs shows a.b", "x=1 sensitive=false synonyms={}"),
            ("kafka-topics shows configs", "a.b=1"),
            ("one", "NONE"),
        ];
        assert_eq!(steps, shown);
    }
}
