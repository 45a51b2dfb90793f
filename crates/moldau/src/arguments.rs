//! The command line.

mod ceiling;
mod check;
mod cluster;
mod overhead;
mod questions;
mod results;
mod run;
mod self_test;
mod users;
mod workers;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::units;
pub(crate) use ceiling::CeilingOptions;
pub(crate) use check::{CheckOptions, FaultChoice};
pub(crate) use cluster::{ClusterAction, ClusterFile, DemoOptions, GcOptions, InitOptions};
pub(crate) use overhead::{OverheadOptions, PlantChoice};
pub(crate) use questions::{
    AskedOptions, CompressionOptions, FaultsOptions, LatencyOptions, OfferedOptions, PayloadChoice,
    SoakOptions, ThreadsOptions,
};
pub(crate) use results::{
    CompareOptions, HistoryOptions, OmbOptions, PageOptions, ResultImportOptions,
};
pub(crate) use run::{
    AboutChoice, ExplainOptions, GoalOptions, OutputOptions, PeerOptions, ProfileOptions,
    RunOptions,
};
pub(crate) use self_test::{
    DatabaseOptions, NullSinkOptions, ReaderChoice, ReaderOptions, RelayOptions, SelftestChoice,
    SelftestOptions, StoreOptions,
};
pub(crate) use users::{ScramChoice, ScramOptions, UsersAction};
pub(crate) use workers::{WorkerOptions, WorkersOptions};

/// A Kafka broker, a Kafka proxy, workers in any language, and a laboratory that measures them.
#[derive(Debug, Parser)]
#[command(name = "moldau", version, about, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Log level on stderr.
    #[arg(long, global = true, value_enum, default_value_t = LogLevel::Warn)]
    pub(crate) log_level: LogLevel,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Kafka-compatible broker that flushes each record before it acknowledges it.
    Broker(BrokerArguments),
    /// Set up, watch and check a cluster of brokers.
    #[command(subcommand)]
    Cluster(ClusterAction),
    /// Run a Kafka proxy in front of a cluster, or edit its key file.
    Proxy(ProxyOptions),
    /// Measure brokers and proxies.
    #[command(subcommand)]
    Lab(LabQuestion),
    /// List, describe, create, extend and delete topics.
    Topics(TopicsOptions),
    /// Produce one record for each line of stdin.
    Produce(ProduceOptions),
    /// Print records of a topic.
    Consume(ConsumeOptions),
    /// Hand the records of topics to handlers in any language.
    Run(WorkOptions),
    /// End the handlers of a `moldau run` that was killed.
    #[command(hide = true)]
    RunGuard,
    /// List, describe and delete consumer groups.
    Groups(GroupsOptions),
    /// Create entries for a users file.
    Users {
        #[command(subcommand)]
        action: UsersAction,
    },
    /// Check configuration files.
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BrokerArguments {
    #[command(subcommand)]
    pub(crate) action: Option<BrokerAction>,
    #[command(flatten)]
    pub(crate) options: BrokerOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BrokerAction {
    /// List the damage in the data directory of a stopped broker, and salvage the rest.
    Repair(RepairOptions),
    /// Translate Kafka's server.properties, and describe the effect of each line here.
    Import(BrokerImportOptions),
}

/// Print the broker's file. The exit code is 1 if a line is not supported.
#[derive(Args, Clone, Debug)]
pub(crate) struct BrokerImportOptions {
    /// Kafka's file.
    #[arg(value_name = "SERVER.PROPERTIES")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RepairOptions {
    /// Configuration file of the broker (YAML).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the journal [default: ./moldau-data].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Build a sound directory from the rest. The original files go to its `damaged-<time>`.
    #[arg(long)]
    pub(crate) apply: bool,
    /// Name for a topic whose metadata is lost [default: recovered-ID].
    #[arg(long = "topic", value_name = "ID=NAME")]
    pub(crate) topics: Vec<String>,
    /// Print one JSON document on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments replace the values of a configuration file.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BrokerOptions {
    /// Configuration file (YAML).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Joins the cluster of this file (YAML), whose brokers have no data directory.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "durability"])]
    pub(crate) cluster: Option<PathBuf>,
    /// Id of this broker in its cluster [default: broker.id of the file].
    #[arg(long, value_name = "ID", requires = "cluster")]
    #[arg(value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) broker_id: Option<i32>,
    /// Directory of the journal, created if absent [default: ./moldau-data].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Listening address for Kafka clients [default: 127.0.0.1:9092].
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Address for clients [default: the address that each client connected to].
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertised: Option<String>,
    /// Address of /metrics, /livez and /readyz [default: 127.0.0.1:9644].
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) admin: Option<SocketAddr>,
    /// When a record counts as stored [default: fsync].
    #[arg(long, value_enum)]
    pub(crate) durability: Option<DurabilityChoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DurabilityChoice {
    /// After fdatasync: a record survives a power loss.
    Fsync,
    /// After write: a record survives only a crash of the process.
    Os,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ProxyOptions {
    /// Configuration file (YAML).
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) action: Option<ProxyAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProxyAction {
    /// Create, change and show a file of key encryption keys.
    #[command(subcommand)]
    Keys(KeysAction),
    /// Translate the configuration of Kroxylicious or kafka-proxy.
    Import(ImportOptions),
}

/// The exit code is 1 if something has no translation.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImportOptions {
    /// Configuration file of Kroxylicious.
    #[arg(value_name = "KROXYLICIOUS.YAML", required_unless_present = "kafka_proxy")]
    pub(crate) file: Option<PathBuf>,
    /// Translate the flags of kafka-proxy: `--kafka-proxy -- FLAGS`.
    #[arg(long, conflicts_with = "file")]
    pub(crate) kafka_proxy: bool,
    /// Flags of kafka-proxy.
    #[arg(last = true, requires = "kafka_proxy", value_name = "FLAGS")]
    pub(crate) flags: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysAction {
    /// Create a key file without keys, readable only by its owner.
    Init {
        /// The file, which must not exist.
        file: PathBuf,
    },
    /// Add a key.
    Add {
        /// The key file.
        file: PathBuf,
        /// Name of the key, as a template such as KEK_$(topicName) produces it.
        alias: String,
    },
    /// Add a version to a key, for new records.
    Rotate {
        /// The key file.
        file: PathBuf,
        /// Alias of the key.
        alias: String,
    },
    /// Show the keys without their secrets.
    List {
        /// The key file.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabQuestion {
    /// What does a proxy in front of a broker cost?
    Overhead(OverheadOptions),
    /// Which rate does a system sustain, and how do systems compare?
    Ceiling(CeilingOptions),
    /// How does latency grow with the load?
    Latency(LatencyOptions),
    /// Which codec?
    Compression(CompressionOptions),
    /// How many consumer threads?
    Threads(ThreadsOptions),
    /// Does a failure lose records, and how long do clients wait?
    Faults(FaultsOptions),
    /// Does a cluster keep Kafka's promises under faults?
    Check(CheckOptions),
    /// Does anything grow under a steady load?
    Soak(SoakOptions),
    /// What do partitions cost, and how many can a system take?
    Partitions(PartitionsOptions),
    /// How much slower than the disk is the broker?
    Storage(StorageOptions),
    /// How many cores does the proxy need?
    Cores(CoresOptions),
    /// How many cores does another load need? Answers from a result of `lab cores`.
    Size(SizeOptions),
    /// Run an experiment file: compare settings, or test published claims.
    Run(RunOptions),
    /// Run workload files of the OpenMessaging Benchmark.
    Omb(OmbOptions),
    /// Import outputs of other tools as a result, with notes about their gaps.
    Import(ResultImportOptions),
    /// What differs between two results?
    Compare(CompareOptions),
    /// What changed over many results?
    History(HistoryOptions),
    /// Write a performance reference page in Markdown from results.
    Page(PageOptions),
    /// What limits a load on a system? Tests each finding by a change.
    Explain(ExplainOptions),
    /// Does the laboratory measure correctly?
    Selftest(SelftestOptions),
    /// Resume an interrupted experiment, except `storage`, `soak`, `explain` and `selftest`.
    Resume {
        /// Directory of the run.
        dir: PathBuf,
    },
    /// Rebuild the report of a run from its result file.
    Report {
        /// Directory of the run.
        dir: PathBuf,
        #[command(flatten)]
        goals: GoalOptions,
    },
    /// List the questions.
    List,
    /// Generate load for an experiment on another machine (`lab run` and `lab omb` with --workers).
    Worker(WorkerOptions),
    /// Read a backlog once, for comparisons of clients.
    Reader(ReaderOptions),
    /// Relay TCP connections, as a lower bound for the cost of a proxy.
    Relay(RelayOptions),
    /// Acknowledge and discard produced records, to measure a client.
    NullSink(NullSinkOptions),
    /// Run PostgreSQL for brokers of a system under test.
    #[command(hide = true)]
    Database(DatabaseOptions),
    /// Run an object store for brokers of a system under test.
    #[command(hide = true)]
    Store(StoreOptions),
    /// Run a loop over one file, by which the lab measures the disk.
    #[command(hide = true)]
    BareDisk {
        /// The task, as JSON.
        task: String,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StorageOptions {
    /// Take less than four minutes, with wider intervals.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Bytes of the cold scan [default: 5 GiB, with --quick 1 GiB].
    #[arg(long, value_name = "COUNT")]
    pub(crate) bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CoresOptions {
    /// Take less than five minutes instead of 30, with fewer and shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Paths to size.
    #[arg(
        long,
        value_name = "ARM",
        value_parser = ["relay", "passthrough", "encryption"],
        value_delimiter = ',',
        default_values = ["passthrough", "encryption"]
    )]
    pub(crate) arms: Vec<String>,
    #[command(flatten)]
    pub(crate) load: LoadOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SizeOptions {
    /// Result file of `lab cores`, or its directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,
    #[command(flatten)]
    pub(crate) load: LoadOptions,
    /// Print one JSON document on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The load to size for. KB, MB and GB are 2^10, 2^20 and 2^30 bytes.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadOptions {
    /// Bytes of record values produced per second.
    #[arg(long, value_name = "BYTES/s", default_value = "100MB/s", value_parser = units::byte_rate)]
    pub(crate) produce: f64,
    /// Size of a record's value.
    #[arg(long, value_name = "BYTES", default_value = "1KB", value_parser = units::byte_count)]
    pub(crate) record: u64,
    /// Mean size of a sent batch: the producers' batch-size-avg, not batch.size.
    #[arg(long, value_name = "BYTES", default_value = "16KB", value_parser = units::byte_count)]
    pub(crate) batch: u64,
    /// Consumer groups that each read everything.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub(crate) groups: u16,
    /// Number of topics.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = at_least_one())]
    pub(crate) topics: u16,
    /// Partitions of each topic.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = at_least_one())]
    pub(crate) partitions: u16,
    /// Batches in a produce request [default: as in the most similar measured case].
    #[arg(long, value_name = "COUNT", value_parser = units::positive)]
    pub(crate) batches_per_request: Option<f64>,
    /// Batches in a fetch response [default: as in the most similar measured case].
    #[arg(long, value_name = "COUNT", value_parser = units::positive)]
    pub(crate) batches_per_fetch: Option<f64>,
}

fn at_least_one() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PartitionsOptions {
    /// Take seven minutes instead of 45, with fewer points and shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Compare with `kafka` (of `cargo xtask peers`), the HOST:PORT of a cluster, or `none`.
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',', default_value = "kafka")]
    pub(crate) against: Vec<String>,
    /// Parts to run [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) parts: Vec<PartChoice>,
    /// Numbers of partitions, ascending, for the curve and for topics created by one request.
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub(crate) partitions: Vec<u32>,
    /// File with the class path of Apache Kafka [default: kafka/classpath in the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_classpath: Option<PathBuf>,
    /// Java to run Apache Kafka.
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartChoice {
    /// Throughput, latency and cost by number of partitions.
    Curve,
    /// Partitions created by one request, in steps, and as topics.
    Creation,
    /// Restart after a kill.
    Restart,
    /// Partitions moved between brokers.
    Reassignment,
}

/// Connection of a client tool to the cluster.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterOptions {
    /// Bootstrap servers.
    #[arg(short, long, global = true, value_name = "HOST:PORT", value_delimiter = ',')]
    #[arg(default_value = "127.0.0.1:9092")]
    pub(crate) bootstrap: Vec<String>,
    /// File with `tls` and `sasl`: encryption and credentials of the connection.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) security: Option<PathBuf>,
    /// Print one JSON document on stdout.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TopicsOptions {
    #[command(subcommand)]
    pub(crate) action: Option<TopicsAction>,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TopicsAction {
    /// List topics (the default).
    List,
    /// Show partitions, offsets and configuration of a topic.
    Describe {
        /// Name of the topic.
        topic: String,
    },
    /// Create a topic.
    Create {
        /// Name of the topic.
        topic: String,
        /// Number of partitions.
        #[arg(short, long, default_value_t = 1)]
        partitions: i32,
        /// Configuration, such as retention.ms=3600000.
        #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
        configs: Vec<String>,
    },
    /// Add partitions to a topic.
    Grow {
        /// Name of the topic.
        topic: String,
        /// New number of partitions.
        #[arg(short, long)]
        partitions: i32,
    },
    /// Delete a topic and its records.
    Delete {
        /// Name of the topic.
        topic: String,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ProduceOptions {
    /// Topic to produce to.
    pub(crate) topic: String,
    /// Split each line into key and value at this text.
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) key_separator: Option<String>,
    /// Codec of the batches.
    #[arg(short = 'z', long, value_enum, default_value_t = Codec::None)]
    pub(crate) compression: Codec,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WorkOptions {
    /// Configuration file (YAML).
    #[arg(value_name = "WORKER.YAML")]
    pub(crate) file: PathBuf,
    /// Only check the file, and print what it does.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Classic,
    Consumer,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ConsumeOptions {
    /// Topic to read.
    pub(crate) topic: String,
    /// Start at the first record instead of the next one.
    #[arg(long)]
    pub(crate) from_beginning: bool,
    /// Stop after this many records.
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// Stop at the end of the topic instead of waiting for more; not with --group.
    #[arg(short = 'e', long, conflicts_with = "group")]
    pub(crate) exit_at_end: bool,
    /// Join this consumer group and commit the offsets of printed records.
    #[arg(short, long)]
    pub(crate) group: Option<String>,
    /// Protocol of the group: classic, or that of KIP-848.
    #[arg(long, value_enum, default_value_t = Protocol::Classic, requires = "group")]
    pub(crate) group_protocol: Protocol,
    /// Skip unreadable records, with a warning that names their offsets.
    #[arg(long)]
    pub(crate) skip_unreadable: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GroupsOptions {
    #[command(subcommand)]
    pub(crate) action: Option<GroupsAction>,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GroupsAction {
    /// List groups (the default).
    List,
    /// Show members, committed offsets and lag of a group.
    Describe {
        /// Name of the group.
        group: String,
    },
    /// Delete a group without members.
    Delete {
        /// Name of the group.
        group: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the configuration file of a broker, a proxy, a worker or a client tool.
    Check {
        /// Configuration file (YAML).
        file: PathBuf,
    },
}
