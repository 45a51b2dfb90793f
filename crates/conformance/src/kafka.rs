//! Apache Kafka in KRaft mode, each node a process of its own.

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::peers::{Peers, SHORT_LIVED_JVM};
use crate::process::{Process, free_ports, loopback};

/// A cold JVM on a busy machine opens its port after some seconds.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// The line with which Kafka says that it serves requests.
const STARTED: &str = "Kafka Server started";

/// The authorizer that Kafka ships, and a listener for users with a password. Without a secret
/// between nodes, its own requests are those of an anonymous user on loopback, whom the tests let
/// do everything.
const AUTHORIZING: &str = "auto.create.topics.enable=true
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
listeners=PLAINTEXT://{broker},CONTROLLER://{controller},USERS://{users}
advertised.listeners=PLAINTEXT://{broker},USERS://{users}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT
listener.name.users.sasl.enabled.mechanisms=PLAIN
listener.name.users.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required {passwords};";

/// The id of our broker.
const OUR_NODE_ID: u16 = 0;

/// Neighbouring ports of a node.
const PORTS: u16 = 3;

/// A running Apache Kafka; dropped, it is stopped.
#[derive(Debug)]
pub struct Kafka {
    nodes: Vec<Process>,
    bootstrap: String,
    users: String,
    directory: PathBuf,
}

impl Kafka {
    /// Starts a cluster of one node with its files in `directory`.
    pub fn start(peers: &Peers, directory: &Path) -> Result<Self> {
        Self::start_cluster(peers, directory, 1)
    }

    /// Starts a cluster of one node that has the id of our broker and enforces ACLs once there are
    /// any, with its files in `directory`. Users log in with their names as passwords.
    pub fn start_authorizing(peers: &Peers, directory: &Path, users: &[&str]) -> Result<Self> {
        let passwords = users.iter().map(|user| format!("user_{user}=\"{user}\""));
        let passwords = passwords.collect::<Vec<_>>().join(" ");
        let further = AUTHORIZING.replace("{passwords}", &passwords);
        Self::start_numbered(peers, directory, 1, OUR_NODE_ID, &further)
    }

    /// Starts a cluster of one node with further lines of its properties, its files in `directory`.
    pub fn start_with(peers: &Peers, directory: &Path, further: &str) -> Result<Self> {
        Self::start_nodes(peers, directory, 1, further)
    }

    /// Starts a cluster of one node that has the id of our broker, with its files in `directory`.
    pub fn start_as_ours(peers: &Peers, directory: &Path) -> Result<Self> {
        Self::start_numbered(peers, directory, 1, OUR_NODE_ID, "auto.create.topics.enable=true")
    }

    /// Starts a cluster of `nodes` brokers and controllers on free ports, their files in
    /// `directory`.
    pub fn start_cluster(peers: &Peers, directory: &Path, nodes: u16) -> Result<Self> {
        Self::start_nodes(peers, directory, nodes, "auto.create.topics.enable=false")
    }

    fn start_nodes(peers: &Peers, directory: &Path, nodes: u16, further: &str) -> Result<Self> {
        Self::start_numbered(peers, directory, nodes, 1, further)
    }

    fn start_numbered(
        peers: &Peers,
        directory: &Path,
        nodes: u16,
        first_id: u16,
        further: &str,
    ) -> Result<Self> {
        let port = free_ports(nodes * PORTS)?;
        let mut processes = Vec::new();
        for node in 1..=nodes {
            format_node(peers, directory, Layout { nodes, port, first_id }, node, further)?;
            processes.push(start_node(peers, directory, node)?);
        }
        for process in &mut processes {
            await_started(process)?;
        }
        let layout = Layout { nodes, port, first_id };
        let (bootstrap, users) = (layout.broker(1).to_string(), layout.users(1).to_string());
        Ok(Self { nodes: processes, bootstrap, users, directory: directory.to_owned() })
    }

    /// The address that clients connect to.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The address that users with a password connect to, where it is authorizing.
    pub fn users(&self) -> &str {
        &self.users
    }

    /// Ends a node, counted from 1, without a word to the others.
    pub fn kill(&mut self, node: u16) -> Result<()> {
        let process = self.nodes.get_mut(usize::from(node - 1)).context("there is no such node")?;
        process.kill().map(drop)
    }

    /// Starts a node that was killed, with the files that it has, and waits until it serves.
    pub fn restart(&mut self, peers: &Peers, node: u16) -> Result<()> {
        let place = self.nodes.get_mut(usize::from(node - 1)).context("there is no such node")?;
        *place = start_node(peers, &self.directory, node)?;
        await_started(place)
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        self.nodes.iter().map(Process::tail).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Kafka {
    /// Nodes that are asked to end wait for a quorum that is gone; no data is kept, so a cluster is
    /// not asked.
    fn drop(&mut self) {
        if self.nodes.len() > 1 {
            for node in &mut self.nodes {
                if let Err(error) = node.kill() {
                    eprintln!("cannot end a node of Kafka: {error:#}");
                }
            }
        }
    }
}

fn await_started(node: &mut Process) -> Result<()> {
    node.await_ready(START_TIMEOUT, |kafka| {
        kafka.stderr_text().contains(STARTED) || kafka.stdout_text().contains(STARTED)
    })
}

/// Writes the properties of a node and formats its directory.
fn format_node(
    peers: &Peers,
    directory: &Path,
    layout: Layout,
    node: u16,
    further: &str,
) -> Result<()> {
    let name = format!("kafka-{node}");
    let home = directory.join(&name);
    fs::create_dir_all(&home)?;
    let properties = home.join("server.properties");
    let keys = server_properties(layout, node, &home.join("data"));
    let further = further
        .replace("{broker}", &layout.broker(node).to_string())
        .replace("{controller}", &layout.controller(node).to_string())
        .replace("{users}", &layout.users(node).to_string());
    fs::write(&properties, format!("{keys}{further}\n"))?;

    let mut format = peers.java_tool("kafka.tools.StorageTool")?;
    format.args(["format", "--cluster-id", "MoldauConformanceTestA", "--config"]);
    format.arg(&properties);
    let formatted = Process::run(format, &format!("{name}-format"), directory, "", START_TIMEOUT)?;
    ensure!(formatted.success(), "cannot format: {}", formatted.explanation());
    Ok(())
}

/// Starts a node, without waiting until it serves.
fn start_node(peers: &Peers, directory: &Path, node: u16) -> Result<Process> {
    let name = format!("kafka-{node}");
    let mut command = Command::new("java");
    command
        .args(SHORT_LIVED_JVM)
        .args(["-Xmx512m", &peers.class_archive_flag()])
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        .arg("-Dorg.slf4j.simpleLogger.log.kafka.server=info")
        .arg("-cp")
        .arg(peers.kafka_and_own_classes()?)
        .arg("kafka.Kafka")
        .arg(directory.join(&name).join("server.properties"));
    Process::spawn(command, &name, directory)
}

/// The nodes of a cluster, numbered from 1.
#[derive(Clone, Copy)]
struct Layout {
    nodes: u16,
    /// The first port of the first node.
    port: u16,
    /// The id of the first node.
    first_id: u16,
}

impl Layout {
    /// What a node is called in the cluster.
    fn id(self, node: u16) -> u16 {
        self.first_id + node - 1
    }

    /// Where clients and brokers connect to a node.
    fn broker(self, node: u16) -> SocketAddrV4 {
        loopback(self.port + (node - 1) * PORTS)
    }

    /// Where its controller listens.
    fn controller(self, node: u16) -> SocketAddrV4 {
        loopback(self.port + (node - 1) * PORTS + 1)
    }

    /// Where users with a password connect to it, if they can.
    fn users(self, node: u16) -> SocketAddrV4 {
        loopback(self.port + (node - 1) * PORTS + 2)
    }
}

/// The internal topics are kept small, and the first rebalance and the cleaning of compacted topics
/// come at once, so that tests are short. Every topic lives on while a node of three is
/// away. Metrics of clients are taken.
fn server_properties(layout: Layout, node: u16, data: &Path) -> String {
    let voter = |node: u16| format!("{}@{}", layout.id(node), layout.controller(node));
    let voters = (1..=layout.nodes).map(voter).collect::<Vec<_>>().join(",");
    let (broker, controller) = (layout.broker(node), layout.controller(node));
    let id = layout.id(node);
    let (replicas, in_sync) = (layout.nodes, layout.nodes.min(2));
    format!(
        "process.roles=broker,controller
node.id={id}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{broker},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{broker}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={}
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
offsets.topic.num.partitions=4
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr={in_sync}
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr={in_sync}
metric.reporters=TelemetryPlugin
",
        data.display()
    )
}
