//! `moldau lab list`: what can be asked, each with the words that ask it.

use std::path::Path;

use clap::ValueEnum as _;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::{experiment_file, lab_self_test};
use crate::arguments::SelftestChoice;
use crate::config;

/// The commands of one question each.
const COMMANDS: [(&str, &str); 13] = [
    ("overhead", "What does a proxy in front of a broker cost?"),
    ("ceiling", "Which rate does a system sustain, and how do systems compare?"),
    ("latency", "How does latency grow with the load?"),
    ("compression", "Which codec?"),
    ("threads", "How many consumer threads?"),
    ("faults", "Does a failure lose records, and how long do clients wait?"),
    ("check", "Does a cluster keep Kafka's promises under faults?"),
    ("soak", "Does anything grow under a steady load?"),
    ("partitions", "What do partitions cost, and how many can a system take?"),
    ("storage", "How much slower than the disk is the broker?"),
    ("cores", "How many cores does the proxy need?"),
    ("omb", "How do OpenMessaging Benchmark workloads run?"),
    ("explain", "What limits a load on a system?"),
];

/// Keys that only experiment files have.
const KEYS: [&str; 4] = ["question:", "factor:", "scenarios:", "threads:"];

/// The same for a file that can be parsed, even if it has other errors.
#[derive(Deserialize)]
struct Outline {
    question: Option<String>,
    factor: Option<IgnoredAny>,
    scenarios: Option<IgnoredAny>,
    threads: Option<IgnoredAny>,
}

impl Outline {
    fn is_experiment(&self) -> bool {
        let others = [&self.factor, &self.scenarios, &self.threads];
        self.question.is_some() || others.iter().any(|key| key.is_some())
    }
}

/// The list, line by line.
pub(super) fn lines() -> Vec<String> {
    let tests = SelftestChoice::value_variants().iter().filter_map(|choice| {
        let value = choice.to_possible_value()?;
        let question = lab_self_test::promise(*choice).question();
        Some((format!("selftest {}", value.get_name()), question))
    });
    let commands = COMMANDS.map(|(name, question)| (name.to_owned(), question));
    let asked: Vec<(String, &str)> = commands.into_iter().chain(tests).collect();
    let width = asked.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines: Vec<String> =
        asked.iter().map(|(name, question)| format!("{name:<width$} {question}")).collect();
    for (name, told) in experiment_file::list() {
        let path = Path::new(&name);
        lines.extend(match path.is_file().then(|| config::text(path)) {
            // What is no file is a published experiment, which is part of the program.
            None => vec![sound(&name, &told)],
            Some(Ok(text)) => of_file(&name, &text, &told),
            Some(Err(_)) => broken(&name, "", &told),
        });
    }
    lines
}

fn sound(name: &str, question: &str) -> String {
    format!("run {name}   {question}").trim_end().to_owned()
}

fn broken(name: &str, question: &str, problem: &str) -> Vec<String> {
    vec![sound(name, question), format!("    cannot be run: {problem}")]
}

/// The lines of a file with this text: none if it is no experiment. `told` is its question if it
/// can be run, otherwise the reason why it cannot.
fn of_file(name: &str, text: &str, told: &str) -> Vec<String> {
    let outline = config::parse::<Outline>(text);
    let is_experiment = match &outline {
        Ok(outline) => outline.is_experiment(),
        Err(_) => text.lines().any(|line| KEYS.iter().any(|key| line.starts_with(key))),
    };
    if !is_experiment {
        return Vec::new();
    }
    let question = outline.ok().and_then(|outline| outline.question).unwrap_or_default();
    let question = question.trim();
    if question == told { vec![sound(name, told)] } else { broken(name, question, told) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Arguments;

    const PROFILES: &str = include_str!("../../../../../experiments/produce-profiles.yaml");
    const QUESTION: &str =
        "Does a timer before each flush beat natural batching at the timer's own goal?";

    #[test]
    fn every_self_test_stands_with_the_words_that_ask_it() {
        let lines = lines();
        let words = lines.iter().filter(|line| line.starts_with("selftest "));
        let mut count = 0;
        for line in words {
            let name = line.split_whitespace().nth(1).unwrap();
            let parsed = Arguments::try_parse_from(["moldau", "lab", "selftest", name]);
            assert!(parsed.is_ok() && line.ends_with('?'), "{line}");
            count += 1;
        }
        assert_eq!(count, SelftestChoice::value_variants().len());
        assert!(lines.iter().any(|line| line.starts_with("run sources/chronik   What do ")));
    }

    #[test]
    fn a_file_that_is_no_experiment_is_not_listed() {
        assert_eq!(of_file("a.yaml", PROFILES, QUESTION), [format!("run a.yaml   {QUESTION}")]);
        let omb = "topics: 1\npartitionsPerTopic: 1\n";
        for text in [omb, "- a list\n", "- {torn\n", ""] {
            assert_eq!(of_file("b.yaml", text, "not read"), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_experiment_that_cannot_be_run_says_why_beside_its_question() {
        let broken = PROFILES.replacen("rounds: 8", "round: 8", 1);
        let told = "a.yaml:23:1: unknown key \"round\"";
        let [first, second] = of_file("a.yaml", &broken, told).try_into().unwrap();
        assert_eq!(first, format!("run a.yaml   {QUESTION}"));
        assert_eq!(second, format!("    cannot be run: {told}"));
        // A text that cannot be parsed has no known question.
        let torn = "question: What: else?\nsystems: [\n";
        let listed = of_file("a.yaml", torn, "a.yaml:1:15: is no value");
        assert_eq!(listed, ["run a.yaml", "    cannot be run: a.yaml:1:15: is no value"]);
    }
}
