//! Kafka's command-line tools, with what their output must show.

mod api_versions;
mod client_metrics;
mod config_session;
mod controller;
mod quotas;
mod streams_groups;

use std::fs;
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
const CLIENT_METRICS: &str = "org.apache.kafka.tools.ClientMetricsCommand";
const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";
const SHARE_GROUPS: &str = "org.apache.kafka.tools.consumer.group.ShareGroupCommand";
const CONSOLE_SHARE_CONSUMER: &str = "org.apache.kafka.tools.consumer.ConsoleShareConsumer";
const OFFSETS: &str = "org.apache.kafka.tools.GetOffsetShell";
const DELETE_RECORDS: &str = "org.apache.kafka.tools.DeleteRecordsCommand";
const CONSOLE_PRODUCER: &str = "org.apache.kafka.tools.ConsoleProducer";
const CONSOLE_CONSUMER: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";
const API_VERSIONS: &str = "org.apache.kafka.tools.BrokerApiVersionsCommand";
const LOG_DIRS: &str = "org.apache.kafka.tools.LogDirsCommand";
const PRODUCER_PERFORMANCE: &str = "org.apache.kafka.tools.ProducerPerformance";

/// A family of tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Family {
    /// kafka-topics: create, describe, alter, list, delete.
    Topics,
    /// kafka-configs: alter and describe the configs of a topic.
    Configs,
    /// A session with every topic config, compared with what Apache Kafka answers.
    ConfigSession,
    /// kafka-log-dirs.
    LogDirs,
    /// kafka-consumer-groups: list, describe, reset and delete offsets, delete.
    Groups,
    /// kafka-consumer-groups with a group of the consumer protocol, and kafka-configs with one.
    ConsumerProtocol,
    /// kafka-share-groups and kafka-console-share-consumer.
    ShareGroups,
    /// kafka-streams-groups.
    StreamsGroups,
    /// kafka-get-offsets and kafka-delete-records.
    Records,
    /// kafka-console-producer and kafka-console-consumer.
    Console,
    /// kafka-broker-api-versions: what is advertised is what is served.
    ApiVersions,
    /// kafka-producer-perf-test.
    Performance,
    /// kafka-configs with quotas of users, clients and addresses.
    Quotas,
    /// kafka-client-metrics.
    ClientMetrics,
    /// kafka-leader-election, kafka-reassign-partitions, kafka-metadata-quorum, kafka-features and
    /// kafka-delegation-tokens.
    Controller,
}

impl Family {
    /// The name in the table of results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Topics => "topics",
            Self::Configs => "configs",
            Self::ConfigSession => "config-steps",
            Self::LogDirs => "log-dirs",
            Self::Groups => "groups",
            Self::ConsumerProtocol => "groups-848",
            Self::ShareGroups => "groups-932",
            Self::StreamsGroups => "groups-1071",
            Self::Records => "records",
            Self::Console => "console",
            Self::ApiVersions => "api-versions",
            Self::Performance => "performance",
            Self::Quotas => "quotas",
            Self::ClientMetrics => "client-metrics",
            Self::Controller => "controller",
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
            Family::Topics => self.topics()?,
            Family::Configs => self.configs()?,
            Family::ConfigSession => self.config_session()?,
            Family::LogDirs => self.log_dirs()?,
            Family::Groups => self.groups()?,
            Family::ConsumerProtocol => self.consumer_protocol()?,
            Family::ShareGroups => self.share_groups()?,
            Family::StreamsGroups => self.streams_groups()?,
            Family::Records => self.records()?,
            Family::Console => self.console()?,
            Family::ApiVersions => self.api_versions()?,
            Family::Performance => self.performance()?,
            Family::Quotas => self.quotas()?,
            Family::ClientMetrics => self.client_metrics()?,
            Family::Controller => self.controller()?,
        }
        Ok(self.checks)
    }

    fn topics(&mut self) -> Result<()> {
        let topic = self.topic;
        let created = self.tool(TOPICS, &["--create", "--topic", topic, "--partitions", "2"])?;
        self.shows("a topic is created", &created, &format!("Created topic {topic}."));
        let again = self.tool(TOPICS, &["--create", "--topic", topic])?;
        let refused = !again.success() && again.stdout.contains("already exists");
        self.check("it is not created twice", refused, &again.stdout);
        let described = self.tool(TOPICS, &["--describe", "--topic", topic])?;
        self.shows("it has its partitions", &described, "PartitionCount: 2");
        self.shows("a partition has a leader and replicas", &described, "Partition: 1\tLeader: ");
        self.tool(TOPICS, &["--alter", "--topic", topic, "--partitions", "4"])?;
        let altered = self.tool(TOPICS, &["--describe", "--topic", topic])?;
        self.shows("partitions are added", &altered, "PartitionCount: 4");
        let listed = self.tool(TOPICS, &["--list"])?;
        self.shows("it is listed", &listed, topic);
        let deleted = self.tool(TOPICS, &["--delete", "--topic", topic])?;
        self.check("it is deleted", deleted.success(), &deleted.explanation());
        let listed = self.tool(TOPICS, &["--list"])?;
        self.lacks("a deleted topic is not listed", &listed, topic);
        Ok(())
    }

    fn configs(&mut self) -> Result<()> {
        let topic = self.topic;
        self.create_topic(1)?;
        let entity = ["--entity-type", "topics", "--entity-name", topic];
        let set = "retention.ms=3600000";
        let altered =
            self.tool(CONFIGS, &[&["--alter", "--add-config", set][..], &entity].concat())?;
        self.shows("a config is set", &altered, "Completed updating config");
        let described = self.tool(CONFIGS, &[&["--describe"][..], &entity].concat())?;
        self.shows("it is described", &described, set);
        let unset = ["--alter", "--delete-config", "retention.ms"];
        self.tool(CONFIGS, &[&unset[..], &entity].concat())?;
        let described = self.tool(CONFIGS, &[&["--describe"][..], &entity].concat())?;
        self.lacks("it is unset again", &described, set);
        let all = self.tool(CONFIGS, &[&["--describe", "--all"][..], &entity].concat())?;
        self.shows("defaults are described", &all, "cleanup.policy=delete");
        let unknown = ["--alter", "--add-config", "no.such.config=1"];
        let refused = self.tool(CONFIGS, &[&unknown[..], &entity].concat())?;
        self.check("an unknown config is refused", !refused.success(), &refused.stdout);
        Ok(())
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

    fn log_dirs(&mut self) -> Result<()> {
        let topic = self.topic;
        self.create_topic(2)?;
        self.produce("a:1\n")?;
        let named = self.tool(LOG_DIRS, &["--describe", "--topic-list", topic])?;
        let all = self.tool(LOG_DIRS, &["--describe"])?;
        for (name, shown) in [("a named topic", &named), ("every topic", &all)] {
            let sizes = [0, 1].map(|partition| log_dir_size(&shown.stdout, topic, partition));
            let mut sizes = sizes.map(|size| size.unwrap_or(-1));
            sizes.sort_unstable();
            let ok = sizes[0] == 0 && sizes[1] > 0;
            self.check(&format!("{name} has the size of its record"), ok, &both_outputs(shown));
        }
        Ok(())
    }

    fn groups(&mut self) -> Result<()> {
        let group = self.topic;
        self.create_topic(1)?;
        self.produce("a:1\nb:2\nc:3\n")?;
        let read = ["--topic", group, "--group", group, "--from-beginning", "--max-messages", "3"];
        let consumed = self.tool(CONSOLE_CONSUMER, &read)?;
        self.check("a group reads", consumed.stdout.contains('3'), &consumed.explanation());
        let listed = self.tool(GROUPS, &["--list"])?;
        self.shows("the group is listed", &listed, group);
        let described = self.tool(GROUPS, &["--describe", "--group", group])?;
        self.has_row("its lag is zero", &described, &[group, group, "0", "3", "3", "0"]);
        let state = self.tool(GROUPS, &["--describe", "--group", group, "--state"])?;
        self.shows("it is empty", &state, "Empty");
        let to_start = ["--reset-offsets", "--to-earliest", "--execute"];
        let names = ["--group", group, "--topic", group];
        let reset = self.tool(GROUPS, &[&to_start[..], &names].concat())?;
        self.has_row("its offsets are reset", &reset, &[group, group, "0", "0"]);
        let described = self.tool(GROUPS, &["--describe", "--group", group])?;
        self.has_row("its lag is all again", &described, &[group, group, "0", "0", "3", "3"]);
        let removed = self.tool(GROUPS, &[&["--delete-offsets"][..], &names].concat())?;
        self.has_row("its offsets are deleted", &removed, &[group, "0", "Successful"]);
        let deleted = self.tool(GROUPS, &["--delete", "--group", group])?;
        let row = format!("Deletion of requested consumer groups ('{group}') was successful");
        // A group whose last offset is deleted while it has no member exists no longer.
        let gone = deleted.stdout.contains(&row) || deleted.stdout.contains("GroupIdNotFound");
        self.check("it is deleted", gone, &deleted.stdout);
        let listed = self.tool(GROUPS, &["--list"])?;
        self.lacks("a deleted group is not listed", &listed, group);
        Ok(())
    }

    fn consumer_protocol(&mut self) -> Result<()> {
        let group = self.topic;
        self.create_topic(1)?;
        self.produce("a:1\nb:2\nc:3\n")?;
        let read = ["--topic", group, "--group", group, "--from-beginning", "--max-messages", "3"];
        let protocol = ["--consumer-property", "group.protocol=consumer"];
        let consumed = self.tool(CONSOLE_CONSUMER, &[&read[..], &protocol].concat())?;
        self.check("a group reads", consumed.stdout.contains('3'), &consumed.explanation());
        let listed = self.tool(GROUPS, &["--list", "--type", "consumer"])?;
        self.shows("the group is listed by its type", &listed, group);
        let listed = self.tool(GROUPS, &["--list", "--type", "classic"])?;
        self.lacks("it is not listed by another type", &listed, group);
        let described = self.tool(GROUPS, &["--describe", "--group", group])?;
        self.has_row("its lag is zero", &described, &[group, group, "0", "3", "3", "0"]);
        let state = ["--describe", "--group", group, "--state", "--verbose"];
        let state = self.tool(GROUPS, &state)?;
        self.shows("it is empty", &state, "Empty");
        self.shows("it has its assignor", &state, "uniform");
        let members = ["--describe", "--group", group, "--members", "--verbose"];
        let members = self.tool(GROUPS, &members)?;
        let told = both_outputs(&members);
        self.check("it has no members", told.contains("has no active members"), &told);
        let entity = ["--entity-type", "groups", "--entity-name", group];
        let set = "consumer.session.timeout.ms=50000";
        let altered =
            self.tool(CONFIGS, &[&["--alter", "--add-config", set][..], &entity].concat())?;
        self.shows("a config of the group is set", &altered, "Completed updating config");
        let shown = self.tool(CONFIGS, &[&["--describe"][..], &entity].concat())?;
        self.shows("it is described", &shown, set);
        let wrong = ["--alter", "--add-config", "consumer.session.timeout.ms=1"];
        let refused = self.tool(CONFIGS, &[&wrong[..], &entity].concat())?;
        self.check("a timeout out of bounds is refused", !refused.success(), &refused.stdout);
        let valid = self.tool(GROUPS, &["--validate-regex", "orders-[0-9]+"])?;
        self.shows("an expression is valid", &valid, "valid");
        let deleted = self.tool(GROUPS, &["--delete", "--group", group])?;
        let row = format!("Deletion of requested consumer groups ('{group}') was successful");
        self.shows("it is deleted", &deleted, &row);
        let listed = self.tool(GROUPS, &["--list"])?;
        self.lacks("a deleted group is not listed", &listed, group);
        Ok(())
    }

    fn share_groups(&mut self) -> Result<()> {
        let group = self.topic;
        self.create_topic(1)?;
        let entity = ["--entity-type", "groups", "--entity-name", group];
        let reset = ["--alter", "--add-config", "share.auto.offset.reset=earliest"];
        let altered = self.tool(CONFIGS, &[&reset[..], &entity].concat())?;
        self.shows("a config of the group is set", &altered, "Completed updating config");
        self.produce("a:1\nb:2\nc:3\n")?;
        let read = ["--topic", group, "--group", group, "--max-messages", "3"];
        let consumed = self.tool(CONSOLE_SHARE_CONSUMER, &read)?;
        self.check("a group reads", consumed.stdout.contains('3'), &consumed.explanation());
        let listed = self.tool(SHARE_GROUPS, &["--list"])?;
        self.shows("the group is listed", &listed, group);
        let described = self.tool(SHARE_GROUPS, &["--describe", "--group", group])?;
        // Kafka's start offset is that of the last write, which may lag behind.
        let has_no_lag = |line: &str| line.starts_with(group) && line.trim_end().ends_with(" 0");
        let is_done = described.stdout.lines().any(has_no_lag);
        self.check("it has no lag", is_done, &described.explanation());
        let state = self.tool(SHARE_GROUPS, &["--describe", "--group", group, "--state"])?;
        self.shows("it is empty", &state, "Empty");
        let whole = ["--reset-offsets", "--group", group, "--topic", group];
        let to = ["--to-earliest", "--execute"];
        let reset = self.tool(SHARE_GROUPS, &[&whole[..], &to].concat())?;
        self.has_row("its offset is reset", &reset, &[group, group, "0", "0"]);
        let again = self.tool(CONSOLE_SHARE_CONSUMER, &read)?;
        self.check("it reads again", again.stdout.contains('1'), &again.explanation());
        let deleted =
            self.tool(SHARE_GROUPS, &["--delete-offsets", "--group", group, "--topic", group])?;
        self.check("its offsets are deleted", deleted.success(), &deleted.explanation());
        let deleted = self.tool(SHARE_GROUPS, &["--delete", "--group", group])?;
        self.shows("it is deleted", &deleted, "successful");
        let listed = self.tool(SHARE_GROUPS, &["--list"])?;
        self.lacks("a deleted group is not listed", &listed, group);
        Ok(())
    }

    fn records(&mut self) -> Result<()> {
        let topic = self.topic;
        self.create_topic(1)?;
        self.produce("a:1\nb:2\nc:3\nd:4\ne:5\n")?;
        let latest = self.tool(OFFSETS, &["--topic", topic])?;
        self.shows("the end offset counts the records", &latest, &format!("{topic}:0:5"));
        let file = self.directory.join(format!("{topic}.json"));
        let partition = format!("{{\"topic\":\"{topic}\",\"partition\":0,\"offset\":3}}");
        fs::write(&file, format!("{{\"partitions\":[{partition}],\"version\":1}}"))?;
        let file = file.display().to_string();
        let deleted = self.tool(DELETE_RECORDS, &["--offset-json-file", &file])?;
        self.shows("records are deleted", &deleted, "low_watermark: 3");
        let earliest = self.tool(OFFSETS, &["--topic", topic, "--time", "earliest"])?;
        self.shows("the start offset has moved", &earliest, &format!("{topic}:0:3"));
        let read = ["--topic", topic, "--from-beginning", "--max-messages", "2"];
        let rest = self.tool(CONSOLE_CONSUMER, &read)?;
        self.check("the rest is read", rest.stdout.starts_with("4\n5\n"), &rest.stdout);
        Ok(())
    }

    fn console(&mut self) -> Result<()> {
        self.create_topic(1)?;
        let produced = self.produce("key:value\nother:\n:empty key\n")?;
        self.check("lines are produced", produced.success(), &produced.explanation());
        let show_keys =
            ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"];
        let read = ["--topic", self.topic, "--from-beginning", "--max-messages", "3"];
        let consumed = self.tool(CONSOLE_CONSUMER, &[&read[..], &show_keys].concat())?;
        let same = consumed.stdout.starts_with("key:value\nother:\n:empty key\n");
        self.check("the same lines are consumed", same, &consumed.stdout);
        Ok(())
    }

    fn api_versions(&mut self) -> Result<()> {
        let shown = self.tool(API_VERSIONS, &[])?;
        self.check("the tool ends well", shown.success(), &shown.explanation());
        let advertised = api_versions::advertised(&shown.stdout);
        self.checks.extend(api_versions::compare(&advertised, self.kind.is_ours()));
        Ok(())
    }

    fn performance(&mut self) -> Result<()> {
        self.create_topic(3)?;
        let size = ["--num-records", "5000", "--record-size", "1000", "--throughput", "-1"];
        let run =
            self.tool(PRODUCER_PERFORMANCE, &[&["--topic", self.topic][..], &size].concat())?;
        self.shows("every record is sent", &run, "5000 records sent");
        let offsets = self.tool(OFFSETS, &["--topic", self.topic])?;
        let ends = offsets.stdout.lines().filter_map(|line| line.rsplit(':').next());
        let total: u64 = ends.filter_map(|end| end.parse::<u64>().ok()).sum();
        self.check("as many are stored", total == 5000, &offsets.stdout);
        Ok(())
    }

    fn create_topic(&mut self, partitions: u8) -> Result<()> {
        let partitions = partitions.to_string();
        let created =
            self.tool(TOPICS, &["--create", "--topic", self.topic, "--partitions", &partitions])?;
        self.shows("a topic is created", &created, "Created topic");
        Ok(())
    }

    /// Produces lines of the form `key:value`.
    fn produce(&self, lines: &str) -> Result<Finished> {
        self.produce_to(self.topic, lines)
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

/// The size of a partition in the JSON that kafka-log-dirs prints.
fn log_dir_size(output: &str, topic: &str, partition: u32) -> Option<i64> {
    let json = output.lines().find(|line| line.starts_with('{'))?;
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    let dirs = json["brokers"].as_array()?.iter().flat_map(|broker| broker["logDirs"].as_array());
    let mut partitions = dirs.flatten().filter_map(|dir| dir["partitions"].as_array()).flatten();
    let name = format!("{topic}-{partition}");
    let found = partitions.find(|found| found["partition"] == name)?;
    (found["offsetLag"] == 0 && found["isFuture"] == false).then(|| found["size"].as_i64())?
}

fn both_outputs(finished: &Finished) -> String {
    format!("{}\n{}", finished.stdout.trim(), finished.explanation())
}
