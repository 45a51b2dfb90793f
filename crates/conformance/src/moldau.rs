//! The broker and the proxy under test, as processes of the `moldau` binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::http;
use crate::process::{Process, free_ports, loopback};
use crate::virtual_cluster::VirtualCluster;

/// Our processes start in milliseconds; the rest is for a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How long what a metric counts may take to happen on a busy machine. The proxy keeps a session
/// for 30 s whose client has gone while an answer was on its way.
const METRIC_TIMEOUT: Duration = Duration::from_secs(60);

/// Ports that a proxy may use for the brokers of its cluster; their ids are less than this.
const BROKER_PORTS: u16 = 4;

/// A broker or a proxy; dropped, it is stopped.
#[derive(Debug)]
pub struct Moldau {
    process: Process,
    name: String,
    bootstrap: String,
    admin: u16,
}

impl Moldau {
    /// Starts a broker with its files in `directory`.
    pub fn broker(binary: &Path, directory: &Path) -> Result<Self> {
        let port = free_ports(2)?;
        let mut command = Command::new(binary);
        command
            .args(["broker", "--data-dir"])
            .arg(directory.join("broker-data"))
            .args(["--listen", &loopback(port).to_string()])
            .args(["--admin", &loopback(port + 1).to_string()]);
        Self::start("broker", command, directory, port, port + 1)
    }

    /// Starts a broker of a cluster, whose file is given, under a name of its own.
    pub fn cluster_broker(
        binary: &Path,
        [cluster, config]: [&Path; 2],
        name: &str,
        directory: &Path,
    ) -> Result<Self> {
        let port = free_ports(2)?;
        let mut command = Command::new(binary);
        command.args(["broker", "--cluster"]).arg(cluster).arg("--config").arg(config);
        command.args(["--listen", &loopback(port).to_string()]);
        command.args(["--admin", &loopback(port + 1).to_string()]);
        Self::start(name, command, directory, port, port + 1)
    }

    /// Starts a proxy that passes everything on to `upstream`, one address or several.
    pub fn proxy(binary: &Path, directory: &Path, upstream: &str) -> Result<Self> {
        let port = free_ports(2 + BROKER_PORTS)?;
        let config = proxy_config(port, upstream);
        Self::start_proxy(binary, &config, directory, port, port + 1)
    }

    /// Starts a proxy that has `clusters`, of which the first is its bootstrap address.
    pub fn encrypting_proxy(
        binary: &Path,
        clusters: &[VirtualCluster],
        admin: u16,
        directory: &Path,
    ) -> Result<Self> {
        let first = clusters.first().context("a proxy has a virtual cluster")?.port;
        let config = VirtualCluster::for_moldau(clusters, admin, directory)?;
        // JSON is YAML too.
        Self::start_proxy(binary, &config.to_string(), directory, first, admin)
    }

    /// Starts what `command` names with a configuration file of its own; clients connect to
    /// `port`.
    pub fn configured(
        command: &'static str,
        binary: &Path,
        config: &serde_json::Value,
        directory: &Path,
        port: u16,
        admin: u16,
    ) -> Result<Self> {
        let file = directory.join(format!("{command}.yaml"));
        // JSON is YAML too.
        fs::write(&file, config.to_string())?;
        Self::with_file(command, binary, &file, directory, port, admin)
    }

    /// [`configured`](Self::configured) in a control group, whose directory is given.
    pub fn configured_within(
        group: Option<&Path>,
        command: &'static str,
        binary: &Path,
        config: &serde_json::Value,
        directory: &Path,
        (port, admin): (u16, u16),
    ) -> Result<Self> {
        let file = directory.join(format!("{command}.yaml"));
        // JSON is YAML too.
        fs::write(&file, config.to_string())?;
        let Some(group) = group else {
            return Self::with_file(command, binary, &file, directory, port, admin);
        };
        // It has to be there before it looks how much memory it may use.
        let mut process = Command::new("sh");
        process.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.join("cgroup.procs"));
        process.arg(binary).args([command, "--config"]).arg(file);
        Self::start(command, process, directory, port, admin)
    }

    /// [`configured`](Self::configured) with a file that is there.
    pub fn with_file(
        command: &'static str,
        binary: &Path,
        file: &Path,
        directory: &Path,
        port: u16,
        admin: u16,
    ) -> Result<Self> {
        let mut process = Command::new(binary);
        process.args([command, "--config"]).arg(file);
        Self::start(command, process, directory, port, admin)
    }

    fn start_proxy(
        binary: &Path,
        config: &str,
        directory: &Path,
        port: u16,
        admin: u16,
    ) -> Result<Self> {
        let file = directory.join("proxy.yaml");
        fs::write(&file, config)?;
        Self::with_file("proxy", binary, &file, directory, port, admin)
    }

    fn start(
        name: &str,
        command: Command,
        directory: &Path,
        port: u16,
        admin: u16,
    ) -> Result<Self> {
        let mut process = Process::spawn(command, name, directory)?;
        process.await_ready(START_TIMEOUT, |_| is_ready(admin))?;
        Ok(Self { process, name: name.to_owned(), bootstrap: loopback(port).to_string(), admin })
    }

    /// The address that clients connect to.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The page of metrics.
    pub fn metrics(&self) -> Result<String> {
        http::page(self.admin, "/metrics")
    }

    /// The value of a metric without labels, or of the one whose labels are in `name`.
    pub fn metric(&self, name: &str) -> Result<u64> {
        let page = http::page(self.admin, "/metrics")?;
        metric(&page, name).with_context(|| format!("there is no {name} in {page}"))
    }

    /// Waits until a metric is as `enough` says. One with labels is not there before it counts
    /// something.
    pub fn await_metric(&self, name: &str, enough: impl Fn(u64) -> bool) -> Result<()> {
        let deadline = Instant::now() + METRIC_TIMEOUT;
        while !self.metric(name).is_ok_and(&enough) {
            ensure!(Instant::now() < deadline, "{name} is {:?}", self.metric(name).ok());
        }
        Ok(())
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        self.process.tail()
    }

    /// Ends it at once, with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// Ends it with SIGTERM; an error where it does not exit with 0.
    pub fn stop(mut self) -> Result<()> {
        let status = self.process.stop()?;
        ensure!(
            status.success(),
            "the {} ended with {status} after SIGTERM:\n{}",
            self.name,
            self.process.tail()
        );
        Ok(())
    }
}

fn proxy_config(port: u16, upstream: &str) -> String {
    let upstream = upstream.replace(',', "\", \"");
    format!(
        "admin: {}
virtual_clusters:
  - name: main
    bootstrap: {}
    upstream: [\"{upstream}\"]
    broker_port_start: {}
",
        loopback(port + 1),
        loopback(port),
        port + 2
    )
}

/// A metric of a page in the OpenMetrics text format.
fn metric(page: &str, name: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    page.lines().find_map(value)
}

/// Whether `GET /readyz` on the admin port answers 200.
fn is_ready(port: u16) -> bool {
    http::status(port, "GET /readyz", "", "").is_ok_and(|status| status == 200)
}

/// The `moldau` binary: the one given, or the release build, or the debug build.
pub fn find_binary(given: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(binary) = given {
        ensure!(binary.is_file(), "there is no binary {}", binary.display());
        return Ok(binary);
    }
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let target = own.ancestors().nth(2).context("this program is not in a target directory")?;
    for profile in ["release", "debug"] {
        let binary = target.join(profile).join("moldau");
        if binary.is_file() {
            return Ok(binary);
        }
    }
    bail!("no moldau binary in {}: run `cargo build --release` first", target.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_nobody_listens_on_is_not_ready() {
        assert!(!is_ready(free_ports(1).unwrap()));
    }

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let page = "# TYPE a counter\na_total_b 1\na_total 2\na_total{c=\"d\"} 3\n";
        assert_eq!(metric(page, "a_total"), Some(2));
        assert_eq!(metric(page, "a_total{c=\"d\"}"), Some(3));
        assert_eq!(metric(page, "a"), None);
    }

    #[test]
    fn the_proxy_gets_distinct_ports() {
        let config = proxy_config(1000, "127.0.0.1:9092");
        for port in ["admin: 127.0.0.1:1001", "bootstrap: 127.0.0.1:1000", "start: 1002"] {
            assert!(config.contains(port), "{config}");
        }
        let config = proxy_config(1000, "127.0.0.1:9092,127.0.0.1:9093");
        assert!(config.contains("[\"127.0.0.1:9092\", \"127.0.0.1:9093\"]"), "{config}");
    }
}
