//! Apache Kafka as one KRaft process that is broker and controller, with its default settings.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{ProcessSpec, Ready, prepare};
use moldau_measure::Error;

/// Any cluster id will do, as the cluster lives for one experiment.
const CLUSTER_ID: &str = "bW9sZGF1LWxhYi1ydW5zMQ";

/// Heap of a node, bytes: that of Kafka's own start script.
pub const KAFKA_HEAP_BYTES: u64 = 1 << 30;

/// Where a Kafka distribution lies.
#[derive(Clone, Debug)]
pub struct KafkaInstallation {
    /// The `java` executable.
    pub java: PathBuf,
    /// A file whose content is the class path of `kafka.Kafka`.
    pub class_path_file: PathBuf,
}

impl KafkaInstallation {
    /// The class path.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot be read.
    pub fn class_path(&self) -> Result<String, Error> {
        let path = &self.class_path_file;
        let text = fs::read_to_string(path)
            .map_err(Error::machine(format!("reading {}", path.display())))?;
        Ok(text.trim().to_string())
    }
}

/// One node of a cluster whose first node is the controller.
#[derive(Clone, Copy, Debug)]
pub struct KafkaNode {
    /// Its node id; that of the controller is 1.
    pub id: u16,
    /// Where its clients connect.
    pub listen: SocketAddr,
    /// Where the controller is.
    pub controller: SocketAddr,
}

impl KafkaNode {
    /// Its configuration. A node that is no controller listens to clients alone. The files of a
    /// topic go with it: a minute later, by default, they would go in the window of another run.
    fn properties(&self, data: &Path) -> String {
        let Self { id, listen, controller } = self;
        let (roles, more) = match id {
            1 => ("broker,controller", format!(",CONTROLLER://{controller}")),
            _ => ("broker", String::new()),
        };
        format!(
            "process.roles={roles}\nnode.id={id}\n\
             controller.quorum.voters=1@{controller}\n\
             listeners=PLAINTEXT://{listen}{more}\n\
             advertised.listeners=PLAINTEXT://{listen}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=PLAINTEXT\n\
             log.dirs={}\n\
             offsets.topic.replication.factor=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
             log.segment.delete.delay.ms=0\n",
            data.display()
        )
    }
}

/// Writes the configuration and formats the data directory of a cluster of one node, as
/// `kafka-storage.sh format` does.
///
/// # Errors
/// As [`prepare_kafka_node`].
pub fn prepare_kafka(
    installation: &KafkaInstallation,
    directory: &Path,
    listen: SocketAddr,
    controller: SocketAddr,
) -> Result<(), Error> {
    prepare_kafka_node(installation, directory, KafkaNode { id: 1, listen, controller })
}

/// As [`prepare_kafka`], for one node of several, each with a directory of its own.
///
/// # Errors
/// [`Error::Machine`] when a file or the process cannot be made, [`Error::Ended`] when the
/// formatting fails.
pub fn prepare_kafka_node(
    installation: &KafkaInstallation,
    directory: &Path,
    node: KafkaNode,
) -> Result<(), Error> {
    let properties = directory.join("server.properties");
    let text = node.properties(&directory.join("data"));
    fs::write(&properties, text)
        .map_err(Error::machine(format!("writing {}", properties.display())))?;
    let class_path = installation.class_path()?;
    let args = ["-cp", &class_path, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"];
    let args = args.map(OsString::from).into_iter().chain([properties.into()]).collect();
    prepare("kafka format".into(), &installation.java, args, directory)
}

/// The broker over a directory made by [`prepare_kafka`], with a heap of 1 GiB as in Kafka's own
/// start script.
///
/// # Errors
/// [`Error::Machine`] when the class path cannot be read.
pub fn kafka_broker(
    installation: &KafkaInstallation,
    directory: &Path,
    listen: SocketAddr,
) -> Result<ProcessSpec, Error> {
    Ok(ProcessSpec {
        role: "broker".into(),
        program: installation.java.clone(),
        args: vec![
            "-Xmx1G".into(),
            "-Xms1G".into(),
            "-XX:+UseG1GC".into(),
            "-XX:MaxGCPauseMillis=20".into(),
            "-XX:InitiatingHeapOccupancyPercent=35".into(),
            "-XX:+ExplicitGCInvokesConcurrent".into(),
            "-cp".into(),
            installation.class_path()?.into(),
            "kafka.Kafka".into(),
            directory.join("server.properties").into(),
        ],
        env: Vec::new(),
        ready: Ready::Tcp(listen),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_node_is_a_controller() {
        let [listen, controller] = ["127.0.0.1:9092", "127.0.0.1:9093"].map(|a| a.parse().unwrap());
        let of = |id| KafkaNode { id, listen, controller }.properties(Path::new("/data"));
        assert!(of(1).contains("process.roles=broker,controller\n"));
        assert!(of(1).contains("listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"));
        assert!(of(2).contains("process.roles=broker\nnode.id=2\n"));
        assert!(of(2).contains("listeners=PLAINTEXT://127.0.0.1:9092\n"));
    }
}
