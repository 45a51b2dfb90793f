//! A real Kroxylicious, as a process of its own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::peers::Peers;
use crate::process::Process;
use crate::virtual_cluster::VirtualCluster;

/// A cold JVM on a busy machine opens its ports after some seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The line with which the launcher says that all ports are open.
const STARTED: &str = "Kroxylicious started";

/// A running Kroxylicious; dropped, it is stopped.
#[derive(Debug)]
pub struct Kroxylicious {
    process: Process,
}

impl Kroxylicious {
    /// Starts it with `clusters`, its files in `directory`.
    pub fn start(peers: &Peers, clusters: &[VirtualCluster], directory: &Path) -> Result<Self> {
        let file = directory.join("kroxylicious.yaml");
        // JSON is YAML too.
        fs::write(&file, VirtualCluster::for_kroxylicious(clusters).to_string())?;
        let mut command = peers.kroxylicious();
        command.arg(file);
        let mut process = Process::spawn(command, "kroxylicious", directory)?;
        process.await_ready(START_TIMEOUT, |process| process.stdout_text().contains(STARTED))?;
        Ok(Self { process })
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        self.process.tail()
    }
}
