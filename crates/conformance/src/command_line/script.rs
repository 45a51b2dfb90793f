//! The commands to run, read from `script.txt` or `authorized.txt`.
//!
//! | line | meaning |
//! |---|---|
//! | `kafka-topics --list` | a command; without `{bootstrap}`, `--bootstrap-server` comes first |
//! | `~ kafka-groups --list` | its lines come in no fixed order |
//! | `# kafka-producer-perf-test ...` | its numbers are measured |
//! | `@ kafka-cluster list-endpoints` | its long numbers are ports, or the end of a journal |
//! | `kafka-console-producer ... << a\nb\n` | with standard input |
//! | `alice$ kafka-topics --list` | by a user, who logs in as `{files}/alice.properties` says |
//! | `file NAME << text` | a file in `{files}` |
//! | `-- text` | a comment |

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The commands of everyone.
pub(super) const ALL_TOOLS: &str = include_str!("script.txt");

/// The commands of users with rights and without.
pub(super) const AUTHORIZED: &str = include_str!("authorized.txt");

/// The tools by the names of their scripts in Kafka's `bin/`.
const CLASSES: &[(&str, &str)] = &[
    ("kafka-acls", "AclCommand"),
    ("kafka-broker-api-versions", "BrokerApiVersionsCommand"),
    ("kafka-client-metrics", "ClientMetricsCommand"),
    ("kafka-cluster", "ClusterTool"),
    ("kafka-configs", "ConfigCommand"),
    ("kafka-console-consumer", "consumer.ConsoleConsumer"),
    ("kafka-console-producer", "ConsoleProducer"),
    ("kafka-console-share-consumer", "consumer.ConsoleShareConsumer"),
    ("kafka-consumer-groups", "consumer.group.ConsumerGroupCommand"),
    ("kafka-consumer-perf-test", "ConsumerPerformance"),
    ("kafka-delegation-tokens", "DelegationTokenCommand"),
    ("kafka-delete-records", "DeleteRecordsCommand"),
    ("kafka-e2e-latency", "EndToEndLatency"),
    ("kafka-features", "FeatureCommand"),
    ("kafka-get-offsets", "GetOffsetShell"),
    ("kafka-groups", "GroupsCommand"),
    ("kafka-leader-election", "LeaderElectionCommand"),
    ("kafka-log-dirs", "LogDirsCommand"),
    ("kafka-metadata-quorum", "MetadataQuorumCommand"),
    ("kafka-producer-perf-test", "ProducerPerformance"),
    ("kafka-reassign-partitions", "reassign.ReassignPartitionsCommand"),
    ("kafka-replica-verification", "ReplicaVerificationTool"),
    ("kafka-share-consumer-perf-test", "ShareConsumerPerformance"),
    ("kafka-share-groups", "consumer.group.ShareGroupCommand"),
    ("kafka-streams-application-reset", "StreamsResetter"),
    ("kafka-streams-groups", "streams.StreamsGroupCommand"),
    ("kafka-topics", "TopicCommand"),
    ("kafka-transactions", "TransactionsCommand"),
    ("kafka-verifiable-consumer", "VerifiableConsumer"),
    ("kafka-verifiable-producer", "VerifiableProducer"),
    ("kafka-verifiable-share-consumer", "VerifiableShareConsumer"),
];

/// A command of the script.
#[derive(Debug)]
pub(super) struct Command {
    /// As it is written, without marks and input.
    pub(super) line: String,
    /// Whether its lines come in no fixed order.
    pub(super) is_unordered: bool,
    /// Whether its numbers are measured.
    pub(super) is_measured: bool,
    /// Whether its long numbers are ports, or the end of a journal.
    pub(super) has_positions: bool,
    class: &'static str,
    input: String,
}

impl Command {
    /// Reads a line that is a command.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (marks, rest) = match text.split_once(' ') {
            Some((marks, rest)) if marks.chars().all(|mark| "~#@".contains(mark)) => (marks, rest),
            _ => ("", text),
        };
        let (line, input) = rest.split_once(" << ").unwrap_or((rest, ""));
        let tool = tool(by_user(line).1);
        let class = CLASSES.iter().find(|(name, _)| *name == tool);
        let (_, class) = class.with_context(|| format!("no tool is called {tool:?}"))?;
        Ok(Self {
            line: line.to_owned(),
            is_unordered: marks.contains('~'),
            is_measured: marks.contains('#'),
            has_positions: marks.contains('@'),
            class,
            input: unescaped(input),
        })
    }

    /// The name of its tool.
    pub(super) fn tool(&self) -> &str {
        tool(self.by_user().1)
    }

    /// The user who gives it, and what is given.
    fn by_user(&self) -> (Option<&str>, &str) {
        by_user(&self.line)
    }

    /// The main class, the standard input and the arguments. Users connect to an address of their
    /// own.
    pub(super) fn words(&self, (bootstrap, users): (&str, &str), files: &Path) -> Vec<String> {
        let mut words = vec![format!("org.apache.kafka.tools.{}", self.class), self.input.clone()];
        let files = files.display().to_string();
        let (user, line) = self.by_user();
        if let Some(user) = user {
            words.extend(["--bootstrap-server".to_owned(), users.to_owned()]);
            words.extend(["--command-config".to_owned(), format!("{files}/{user}.properties")]);
        } else if !line.contains("{bootstrap}") {
            words.extend(["--bootstrap-server".to_owned(), bootstrap.to_owned()]);
        }
        let split = split(line).into_iter().skip(1);
        words.extend(
            split.map(|word| word.replace("{bootstrap}", bootstrap).replace("{files}", &files)),
        );
        words
    }
}

fn by_user(line: &str) -> (Option<&str>, &str) {
    match line.split_once("$ ") {
        Some((user, line)) => (Some(user), line),
        None => (None, line),
    }
}

fn tool(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// All commands of a script, in order.
pub(super) fn commands(script: &str) -> Result<Vec<Command>> {
    let lines = script.lines().filter(|line| !line.is_empty() && !line.starts_with("-- "));
    lines.filter(|line| !line.starts_with("file ")).map(Command::parse).collect()
}

/// Writes the files that the commands of a script read.
pub(super) fn write_files(script: &str, directory: &Path) -> Result<()> {
    for line in script.lines().filter_map(|line| line.strip_prefix("file ")) {
        let (name, text) = line.split_once(" << ").context("a file has a text")?;
        fs::write(directory.join(name), unescaped(text))?;
    }
    Ok(())
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t")
}

/// Words between spaces; single quotes keep spaces.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split(' ').filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_input_and_quotes_are_read() {
        let command = Command::parse("~ kafka-acls --list 'a b' --x {files}/f << a\\nb").unwrap();
        assert!(command.is_unordered && !command.is_measured);
        let words = command.words(("host:1", ""), Path::new("/d"));
        let class = "org.apache.kafka.tools.AclCommand";
        let server = "--bootstrap-server";
        assert_eq!(words, [class, "a\nb", server, "host:1", "--list", "a b", "--x", "/d/f"]);
        assert!(Command::parse("kafka-nothing --list").is_err());
    }

    #[test]
    fn a_user_connects_to_the_address_of_users_and_logs_in() {
        let command = Command::parse("~ alice$ kafka-acls --list").unwrap();
        assert!(command.is_unordered && command.tool() == "kafka-acls");
        let words = command.words(("host:1", "host:2"), Path::new("/d"));
        let login = ["--command-config", "/d/alice.properties"];
        assert_eq!(words[2..], ["--bootstrap-server", "host:2", login[0], login[1], "--list"]);
    }

    #[test]
    fn every_line_of_the_script_is_a_command_of_a_known_tool() {
        let commands = commands(ALL_TOOLS).unwrap();
        assert!(super::commands(AUTHORIZED).is_ok_and(|commands| !commands.is_empty()));
        for (tool, _) in CLASSES {
            assert!(commands.iter().any(|command| command.tool() == *tool), "{tool}");
        }
    }
}
