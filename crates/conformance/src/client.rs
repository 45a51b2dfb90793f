//! The client programs of `clients/` and how each is started.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::check::Check;
use crate::kafka::Kafka;
use crate::peers::Peers;
use crate::process::Process;
use crate::target::Target;

/// A program gives up its own waits after 40 s each, and 90 s for a cleaning; this ends one that
/// hangs elsewhere.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(200);

/// Partitions of the large topic, as an argument.
const LARGE_TOPIC_PARTITIONS: &str = "1000000";

/// A client library with its program.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Library {
    /// Kafka's own Java client.
    Java,
    /// librdkafka, through confluent-kafka for Python.
    Librdkafka,
    /// franz-go.
    Franz,
    /// Sarama.
    Sarama,
    /// kafka-python.
    KafkaPython,
    /// KafkaJS.
    Kafkajs,
}

/// What a program is asked to do; `clients/README.md` says what each contains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scenario {
    /// Records of every shape in one codec, there and back.
    ProduceConsume(&'static str),
    /// Two members, one leaves, a third resumes.
    Group,
    /// Idempotent producers, pipelined.
    Idempotent,
    /// Topics, configs, partitions, the cluster.
    Admin,
    /// Offsets by time.
    Offsets,
    /// A compacted topic, read once it is cleaned.
    Compacted,
    /// Transactions that are committed, aborted, left open and fenced.
    Transactions,
    /// Groups of the consumer protocol: members come and go, static ones, patterns, configurations.
    ConsumerProtocol,
    /// Groups that are rolled from the classic protocol to the consumer protocol and back.
    Migration,
    /// Share groups: records are accepted, released, rejected, renewed; offsets.
    ShareGroups,
    /// Kafka Streams loses its local state and restores it from a changelog.
    Streams,
    /// Kafka Streams with `exactly_once_v2`, whose process is killed.
    StreamsExactlyOnce,
    /// The same application in a streams group (KIP-1071).
    StreamsGroup,
    /// Kafka Connect copies a file to a topic and from there to a file; its workers are killed.
    Connect,
    /// MirrorMaker copies topics to Apache Kafka and back; its process is killed.
    Mirror,
    /// A topic of a million partitions, created, described, written to, read and deleted.
    LargeTopic,
}

impl Scenario {
    /// Every scenario, `produce-consume` once per codec.
    pub const ALL: [Self; 20] = [
        Self::ProduceConsume("none"),
        Self::ProduceConsume("gzip"),
        Self::ProduceConsume("snappy"),
        Self::ProduceConsume("lz4"),
        Self::ProduceConsume("zstd"),
        Self::Group,
        Self::Idempotent,
        Self::Admin,
        Self::Offsets,
        Self::Compacted,
        Self::Transactions,
        Self::ConsumerProtocol,
        Self::Migration,
        Self::ShareGroups,
        Self::Streams,
        Self::StreamsExactlyOnce,
        Self::StreamsGroup,
        Self::Connect,
        Self::Mirror,
        Self::LargeTopic,
    ];

    /// The short name: the codec, or the scenario's word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ProduceConsume(codec) => codec,
            Self::Group => "group",
            Self::Idempotent => "idempotent",
            Self::Admin => "admin",
            Self::Offsets => "offsets",
            Self::Compacted => "compacted",
            Self::Transactions => "transactions",
            Self::ConsumerProtocol => "kip-848",
            Self::Migration => "migration",
            Self::ShareGroups => "kip-932",
            Self::Streams => "streams",
            Self::StreamsExactlyOnce => "streams-exactly-once",
            Self::StreamsGroup => "kip-1071",
            Self::Connect => "connect",
            Self::Mirror => "mirror",
            Self::LargeTopic => "large-topic",
        }
    }

    /// Whether the library has a program for it. What a cleaned batch looks like to a reader is
    /// asked of the three readers that others are built on, and they alone have share groups;
    /// Streams, Connect and MirrorMaker are Java, as is the program that measures a large topic.
    pub fn is_for(self, library: Library) -> bool {
        match self {
            Self::Compacted | Self::ShareGroups => {
                matches!(library, Library::Java | Library::Librdkafka | Library::Franz)
            }
            Self::ConsumerProtocol => matches!(library, Library::Java | Library::Librdkafka),
            Self::Migration
            | Self::Streams
            | Self::StreamsExactlyOnce
            | Self::StreamsGroup
            | Self::Connect
            | Self::Mirror
            | Self::LargeTopic => library == Library::Java,
            _ => true,
        }
    }
}

impl Library {
    /// The name in the table of results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Librdkafka => "librdkafka",
            Self::Franz => "franz-go",
            Self::Sarama => "sarama",
            Self::KafkaPython => "kafka-python",
            Self::Kafkajs => "kafkajs",
        }
    }

    /// Runs one scenario against `target` on topics and groups named after `topic`.
    pub fn run(
        self,
        peers: &Peers,
        scenario: Scenario,
        target: &Target,
        topic: &str,
        directory: &Path,
    ) -> Result<Vec<Check>> {
        let bootstrap = target.bootstrap();
        let other = match scenario {
            Scenario::Mirror => Some(other_cluster(peers, directory)?),
            _ => None,
        };
        let mut command = match scenario {
            Scenario::Streams => peers.java_tool("StreamsCount")?,
            Scenario::StreamsExactlyOnce | Scenario::StreamsGroup => {
                peers.java_tool("StreamsExactlyOnce")?
            }
            Scenario::Connect => peers.java_tool("ConnectLines")?,
            Scenario::Mirror => peers.java_tool("MirrorTopics")?,
            Scenario::LargeTopic => peers.large_java_tool("LargeTopic")?,
            _ => self.command(peers)?,
        };
        match scenario {
            Scenario::ProduceConsume(codec) => {
                command.args([bootstrap, "produce-consume", topic, codec]);
            }
            Scenario::LargeTopic => {
                command.args([bootstrap, topic, LARGE_TOPIC_PARTITIONS]);
            }
            other => {
                command.args([bootstrap, other.name(), topic]);
            }
        }
        if let Some(kafka) = &other {
            command.arg(kafka.bootstrap()).arg(peers.mirror_maker_jars());
        }
        command.env("CONFORMANCE_BROKERS", target.kind().brokers().to_string());
        if let Some(hosts) = target.hosts() {
            command = hosts.known_to(&command);
        }
        let finished = Process::run(command, topic, directory, "", PROGRAM_TIMEOUT)?;
        let mut checks =
            Check::parse_lines(&finished.stdout).with_context(|| finished.explanation())?;
        checks.push(Check::new(
            "the program ends well",
            finished.success(),
            &finished.explanation(),
        ));
        Ok(checks)
    }

    fn command(self, peers: &Peers) -> Result<Command> {
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
        Ok(match self {
            Self::Java => peers.java_tool("ConformanceClient")?,
            Self::Librdkafka => {
                script(&peers.python(), &clients.join("python-confluent/client.py"))
            }
            Self::KafkaPython => script(&peers.python(), &clients.join("python-kafka/client.py")),
            Self::Franz => Command::new(peers.franz()),
            Self::Sarama => Command::new(peers.sarama()),
            Self::Kafkajs => {
                let mut node = script(Path::new("node"), &clients.join("node-kafkajs/client.js"));
                node.env("NODE_PATH", peers.node().join("node_modules"));
                node
            }
        })
    }
}

/// The cluster that MirrorMaker copies to and from, with its files apart from the target's.
fn other_cluster(peers: &Peers, directory: &Path) -> Result<Kafka> {
    let directory = directory.join("other-cluster");
    fs::create_dir_all(&directory)?;
    Kafka::start(peers, &directory)
}

pub(crate) fn script(interpreter: &Path, file: &Path) -> Command {
    let mut command = Command::new(interpreter);
    // Byte code beside the sources would put files into the checkout.
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(file);
    command
}
