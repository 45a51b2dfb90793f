//! PostgreSQL for the demonstration, in a directory of its own. It refuses to run as the
//! superuser, so it runs as `nobody` then.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};
use moldau_cluster::{Error, Postgres, Settings};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio::time::{Instant, sleep};

use super::{PATIENCE, POLL};

/// A running server, which ends when this is dropped.
pub(super) struct Database {
    process: Child,
    /// How to connect. Only the user of this process can, over a socket.
    pub(super) settings: Settings,
}

impl Database {
    /// A server with the schema.
    pub(super) async fn start(dir: &Path) -> anyhow::Result<Self> {
        let data = dir.join("postgres");
        let socket = data.to_str().filter(|path| path.len() <= SOCKET_DIR_LEN_MAX);
        let socket = socket.context("the path of the temporary directory is too long")?;
        fs::create_dir(&data)?;
        give(&data)?;
        let made = program("initdb")
            .args(["--no-sync", "--auth=trust", "--username=moldau", "--encoding=UTF8"])
            .args(["--locale=C", "-D"])
            .arg(&data)
            .output()
            .context(MISSING)?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr).trim());
        let log = dir.join("postgres.log");
        let process = program("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-k"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .context(MISSING)?;
        let settings = Settings {
            connection: format!("host={socket} user=moldau dbname=postgres"),
            application_name: "moldau".to_owned(),
            connections_max: 2,
            timeout: PATIENCE,
        };
        let mut database = Self { process, settings };
        database.await_ready(&log).await?;
        Ok(database)
    }

    async fn await_ready(&mut self, log: &Path) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Postgres::migrate(&self.settings).await {
                Ok(_) => return Ok(()),
                Err(Error::SequencerAway(_)) if Instant::now() < deadline => {}
                Err(error) => return Err(error).context("PostgreSQL"),
            }
            if self.process.try_wait()?.is_some() {
                let said = fs::read_to_string(log).unwrap_or_default();
                bail!("PostgreSQL has ended: {}", said.trim());
            }
            sleep(POLL).await;
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Without a checkpoint; the server ends its own processes. It fails only if it has ended.
        let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
        drop(self.process.wait());
    }
}

/// A program of PostgreSQL, as a user that it accepts.
pub(in crate::commands) fn program(name: &str) -> Command {
    let mut command = Command::new(newest(name));
    // The user may not see where this process runs.
    command.current_dir("/");
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Gives a file or directory to that user.
pub(in crate::commands) fn give(path: &Path) -> std::io::Result<()> {
    match geteuid().is_root() {
        true => chown(path, Some(NOBODY), Some(NOBODY)),
        false => Ok(()),
    }
}

/// Debian keeps the programs of each version apart, outside the search path.
fn newest(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        let path = version.path().join("bin").join(name);
        path.exists().then_some((number, path))
    });
    found.max().map_or_else(|| name.into(), |(_, path)| path)
}

pub(in crate::commands) const MISSING: &str =
    "PostgreSQL 15 or later is not installed (Debian: apt install postgresql)";
const NOBODY: u32 = 65_534;
/// The address of a socket has 107 bytes, of which its name takes some.
const SOCKET_DIR_LEN_MAX: usize = 88;
