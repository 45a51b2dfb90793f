//! Three brokers of one cluster, with PostgreSQL and an S3 server of their own.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;
use serde_json::json;
use tempfile::TempDir;

use crate::moldau::Moldau;
use crate::process::{Process, free_ports, loopback};

/// Ids of the brokers.
pub(crate) const BROKERS: [i32; 3] = [0, 1, 2];

/// The bucket of `s3-server`.
const BUCKET: &str = "records";

/// The keys of `s3-server`, an example of the crate `cluster`, which listens on loopback only.
const ACCESS_KEY: &str = "ACCESS-KEY-OF-TEST";
const SECRET_KEY: &str = "SECRET-KEY-OF-TEST";

/// As short as it can be, so that a check waits for clients and not for batches.
const LINGER_MS: u32 = 10;

/// PostgreSQL refuses to run as the superuser, so it runs as this user then.
const NOBODY: u32 = 65_534;

/// Both services start in a second on an idle machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster; dropped, it is stopped, the brokers first.
#[derive(Debug)]
pub struct Cluster {
    brokers: Vec<Moldau>,
    store: Process,
    database: Process,
    /// Files that the user of the database can reach.
    _files: TempDir,
}

impl Cluster {
    /// Starts a cluster with the output of its processes in `directory`.
    pub fn start(binary: &Path, directory: &Path) -> Result<Self> {
        Self::start_with(binary, directory, &json!({}))
    }

    /// The same, with keys that all brokers have.
    pub fn start_with(binary: &Path, directory: &Path, keys: &serde_json::Value) -> Result<Self> {
        let files = tempfile::Builder::new().prefix("moldau-cluster-").tempdir()?;
        fs::set_permissions(files.path(), Permissions::from_mode(0o755))?;
        let (database, url) = database(files.path(), directory)?;
        let (store, endpoint) = store(files.path(), directory)?;
        let credentials = files.path().join("credentials");
        let text = format!(
            "[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        );
        write_secret(&credentials, &text)?;
        let common = files.path().join("broker.yaml");
        fs::write(&common, keys.to_string())?;
        let mut brokers = Vec::new();
        for id in BROKERS {
            let config = json!({
                "broker.id": id,
                "linger_ms": LINGER_MS,
                "postgres": {"url": &url},
                "bucket": {
                    "name": BUCKET,
                    "endpoint": &endpoint,
                    "prefix": "kafka",
                    "credentials_file": &credentials,
                },
            });
            let file = files.path().join(format!("broker-{id}.yaml"));
            // JSON is YAML too.
            write_secret(&file, &config.to_string())?;
            brokers.push(Moldau::cluster_broker(
                binary,
                [&file, &common],
                &format!("broker-{id}"),
                directory,
            )?);
        }
        Ok(Self { brokers, store, database, _files: files })
    }

    /// The addresses of all brokers, separated by commas.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<&str> = self.brokers.iter().map(Moldau::bootstrap).collect();
        addresses.join(",")
    }

    /// Ends the brokers with SIGTERM; an error where one does not exit with 0. The services end
    /// behind them.
    pub fn stop(self) -> Result<()> {
        self.brokers.into_iter().try_for_each(Moldau::stop)
    }

    /// The last lines that each process wrote.
    pub fn tail(&self) -> String {
        let brokers = self.brokers.iter().map(Moldau::tail);
        let all: Vec<String> = brokers.chain([self.store.tail(), self.database.tail()]).collect();
        all.join("\n")
    }
}

/// PostgreSQL in a directory of its own, and how to connect to it: by a socket that only its user
/// and the superuser can use.
fn database(files: &Path, directory: &Path) -> Result<(Process, String)> {
    let data = files.join("postgres");
    fs::create_dir(&data)?;
    if geteuid().is_root() {
        chown(&data, Some(NOBODY), Some(NOBODY))?;
    }
    let made = postgres("initdb")
        .args(["--no-sync", "--auth=trust", "--username=moldau", "--encoding=UTF8", "-D"])
        .arg(&data)
        .stdin(Stdio::null())
        .output()
        .context("PostgreSQL 15 or later is not installed (Debian: apt install postgresql)")?;
    ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr).trim());
    let mut command = postgres("postgres");
    command.arg("-D").arg(&data);
    // What a crash of the machine leaves is not tested here.
    command.args(["-c", "listen_addresses=", "-c", "fsync=off"]);
    command.args(["-c", "unix_socket_permissions=0700", "-k"]).arg(&data);
    let mut process = Process::spawn(command, "postgres", directory)?;
    process.await_ready(START_TIMEOUT, |_| {
        let mut asked = postgres("psql");
        asked.args(["-q", "-X", "-U", "moldau", "-d", "postgres", "-c", "select 1", "-h"]);
        asked.arg(&data).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    })?;
    Ok((process, format!("host={} user=moldau dbname=postgres", data.display())))
}

/// A program of PostgreSQL, as a user that it accepts. Debian keeps the programs of each version
/// apart, outside the search path.
fn postgres(name: &str) -> Command {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        let path = version.path().join("bin").join(name);
        path.exists().then_some((number, path))
    });
    let program = found.max().map_or_else(|| PathBuf::from(name), |(_, path)| path);
    let mut command = Command::new(program);
    // The user may not see where this process runs.
    command.current_dir("/");
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// The S3 server, whose objects are files, and its address.
fn store(files: &Path, directory: &Path) -> Result<(Process, String)> {
    let port = free_ports(1)?;
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let program = own.with_file_name("examples").join("s3-server");
    let missing = "run `cargo build -p moldau-cluster --example s3-server` first";
    ensure!(program.is_file(), "there is no {}: {missing}", program.display());
    let mut command = Command::new(program);
    command.arg(loopback(port).to_string()).arg(files.join("objects"));
    let mut process = Process::spawn(command, "s3-server", directory)?;
    process.await_ready(START_TIMEOUT, |_| TcpStream::connect(loopback(port)).is_ok())?;
    Ok((process, format!("http://{}", loopback(port))))
}

/// Writes a file that only this user reads.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}
