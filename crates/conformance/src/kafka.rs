//! A single-node Apache Kafka in KRaft mode, as a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::peers::Peers;
use crate::process::{Process, free_ports};

/// A cold JVM on a busy machine opens its port after some seconds.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// The line with which Kafka says that it serves requests.
const STARTED: &str = "Kafka Server started";

/// A running Apache Kafka; dropped, it is stopped.
#[derive(Debug)]
pub struct Kafka {
    process: Process,
    bootstrap: String,
}

impl Kafka {
    /// Formats `<directory>/kafka` and starts a broker and controller there on free ports.
    pub fn start(peers: &Peers, directory: &Path) -> Result<Self> {
        let port = free_ports(2)?;
        let home = directory.join("kafka");
        fs::create_dir_all(&home)?;
        let properties = home.join("server.properties");
        fs::write(&properties, server_properties(port, port + 1, &home.join("data")))?;

        let mut format = peers.java_tool("kafka.tools.StorageTool")?;
        format.args(["format", "--cluster-id", "MoldauConformanceTestA", "--config"]);
        format.arg(&properties);
        let formatted = Process::run(format, "kafka-format", directory, "", START_TIMEOUT)?;
        ensure!(formatted.success(), "cannot format: {}", formatted.explanation());

        let mut command = Command::new("java");
        command
            .args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-Dorg.slf4j.simpleLogger.log.kafka.server=info")
            .args(["-cp", &peers.kafka_classpath()?, "kafka.Kafka"])
            .arg(&properties);
        let mut process = Process::spawn(command, "kafka", directory)?;
        process.await_ready(START_TIMEOUT, |kafka| {
            kafka.stderr_text().contains(STARTED) || kafka.stdout_text().contains(STARTED)
        })?;
        Ok(Self { process, bootstrap: format!("127.0.0.1:{port}") })
    }

    /// The address that clients connect to.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        self.process.tail()
    }
}

/// The internal topics are kept small, and the first rebalance and the cleaning of compacted topics
/// come at once, so that tests are short.
fn server_properties(port: u16, controller_port: u16, data: &Path) -> String {
    format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
",
        data.display()
    )
}
