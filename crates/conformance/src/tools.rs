//! Kafka's command-line tools where a look at their output is not enough, or where it must show
//! what no other broker does: `command_line` compares all others with Apache Kafka.

mod api_versions;
mod config_session;
mod quotas;
mod streams_groups;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::check::Check;
use crate::peers::Peers;
use crate::process::{Finished, Process};
use crate::target::Kind;

/// A tool is a JVM that starts, asks and ends.
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);

/// Some hundred requests one after the other; Kafka's broker learns of each change a moment later.
const SESSION_TIMEOUT: Duration = Duration::from_secs(150);

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";
const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";
const CONSOLE_PRODUCER: &str = "org.apache.kafka.tools.ConsoleProducer";
const API_VERSIONS: &str = "org.apache.kafka.tools.BrokerApiVersionsCommand";
const PRODUCER_PERFORMANCE: &str = "org.apache.kafka.tools.ProducerPerformance";

/// A family of tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Family {
    /// A session with every topic config, compared with what Apache Kafka answers.
    ConfigSession,
    /// kafka-streams-groups.
    StreamsGroups,
    /// kafka-broker-api-versions: what is advertised is what is served.
    ApiVersions,
    /// A quota, and a client that is slowed down by it.
    Quotas,
}

impl Family {
    /// The name in the table of results.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfigSession => "config-steps",
            Self::StreamsGroups => "groups-1071",
            Self::ApiVersions => "api-versions",
            Self::Quotas => "quotas",
        }
    }
}

/// Kafka's tools, pointed at one server.
#[derive(Debug)]
pub struct Tools<'a> {
    peers: &'a Peers,
    kind: Kind,
    bootstrap: &'a str,
    /// A topic and group that nobody else uses.
    topic: &'a str,
    directory: &'a Path,
    checks: Vec<Check>,
}

impl<'a> Tools<'a> {
    /// Tools that work on topics and groups named after `topic`, with files in `directory`.
    pub fn new(
        peers: &'a Peers,
        kind: Kind,
        bootstrap: &'a str,
        topic: &'a str,
        directory: &'a Path,
    ) -> Self {
        Self { peers, kind, bootstrap, topic, directory, checks: Vec::new() }
    }

    /// Runs a family of tools and returns what they showed.
    pub fn run(mut self, family: Family) -> Result<Vec<Check>> {
        match family {
            Family::ConfigSession => self.config_session()?,
            Family::StreamsGroups => self.streams_groups()?,
            Family::ApiVersions => self.api_versions()?,
            Family::Quotas => self.quotas()?,
        }
        Ok(self.checks)
    }

    /// Steps that each show what came of a configuration; see [`config_session`].
    fn config_session(&mut self) -> Result<()> {
        let mut command = self.peers.java_tool("ConfigSession")?;
        command.args([self.bootstrap, self.topic]);
        let session = Process::run(command, self.topic, self.directory, "", SESSION_TIMEOUT)?;
        self.check("the session ends well", session.success(), &session.explanation());
        let name = format!("{}-windowed-changelog", self.topic);
        let entity = ["--entity-type", "topics", "--entity-name", &name];
        let configs = self.tool(CONFIGS, &[&["--describe", "--all"][..], &entity].concat())?;
        let name = format!("{}-two-replicas-in-sync", self.topic);
        let topics = self.tool(TOPICS, &["--describe", "--topic", &name])?;
        let transcript =
            config_session::transcript(&session.stdout, &configs.stdout, &topics.stdout);
        let differences = config_session::differences(&transcript, self.kind.is_ours());
        self.check("every step ends as it is written down", differences.is_empty(), &differences);
        Ok(())
    }

    fn api_versions(&mut self) -> Result<()> {
        let shown = self.tool(API_VERSIONS, &[])?;
        self.check("the tool ends well", shown.success(), &shown.explanation());
        let advertised = api_versions::advertised(&shown.stdout);
        self.checks.extend(api_versions::compare(&advertised, self.kind));
        Ok(())
    }

    fn create_topic(&mut self, partitions: u8) -> Result<()> {
        let partitions = partitions.to_string();
        let created =
            self.tool(TOPICS, &["--create", "--topic", self.topic, "--partitions", &partitions])?;
        self.shows("a topic is created", &created, "Created topic");
        Ok(())
    }

    fn produce_to(&self, topic: &str, lines: &str) -> Result<Finished> {
        let parse_keys =
            ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"];
        let arguments = [&["--topic", topic][..], &parse_keys].concat();
        self.tool_with_input(CONSOLE_PRODUCER, &arguments, lines)
    }

    fn tool(&self, class: &str, arguments: &[&str]) -> Result<Finished> {
        self.tool_with_input(class, arguments, "")
    }

    fn tool_with_input(&self, class: &str, arguments: &[&str], input: &str) -> Result<Finished> {
        let mut command = self.peers.java_tool(class)?;
        command.args(["--bootstrap-server", self.bootstrap]).args(arguments);
        Process::run(command, self.topic, self.directory, input, TOOL_TIMEOUT)
    }

    fn shows(&mut self, name: &str, finished: &Finished, wanted: &str) {
        self.check(name, finished.stdout.contains(wanted), &both_outputs(finished));
    }

    fn lacks(&mut self, name: &str, finished: &Finished, unwanted: &str) {
        let ok = finished.success() && !finished.stdout.contains(unwanted);
        self.check(name, ok, &both_outputs(finished));
    }

    /// Whether a line of the output begins with these columns.
    fn has_row(&mut self, name: &str, finished: &Finished, columns: &[&str]) {
        let begins = |line: &str| {
            let row: Vec<&str> = line.split_whitespace().collect();
            row.starts_with(columns)
        };
        self.check(name, finished.stdout.lines().any(begins), &both_outputs(finished));
    }

    fn check(&mut self, name: &str, ok: bool, detail: &str) {
        self.checks.push(Check::new(name, ok, detail));
    }
}

fn both_outputs(finished: &Finished) -> String {
    format!("{}\n{}", finished.stdout.trim(), finished.explanation())
}
