//! A PostgreSQL server for tests. It refuses to run as the superuser, so it runs as `nobody` then.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use moldau_cluster::{Postgres, Settings};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// A running server; it ends with the last copy.
pub(crate) struct Server {
    directory: TempDir,
    process: Mutex<Child>,
    databases: AtomicU32,
    /// Of the socket in the directory as well.
    port: u16,
    /// Settings of the server, `name=value`.
    options: Vec<String>,
}

/// The server of all tests that run at a time.
pub(crate) fn shared() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Server::start());
        *shared = Arc::downgrade(&server);
        server
    })
}

impl Server {
    /// A server without databases of ours.
    pub(crate) fn start() -> Self {
        // A crash of the machine is not tested.
        Self::start_with("fsync=off")
    }

    /// One that flushes commits, or not: `fsync=on` or `fsync=off`. It listens only on a socket in
    /// its directory.
    pub(crate) fn start_with(fsync: &str) -> Self {
        Self::start_of(PORT, &[], &[fsync, "listen_addresses="])
    }

    /// One with files of its own in its directory, which only its user may read.
    pub(crate) fn start_of(port: u16, files: &[(&str, &str)], options: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("moldau-postgres").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        if geteuid().is_root() {
            chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let made = as_user("initdb")
            .args(["--no-sync", "--auth=trust", "--username=moldau", "--encoding=UTF8", "-D"])
            .arg(&data)
            .output()
            .expect("PostgreSQL is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for (name, text) in files {
            let file = data.join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            if geteuid().is_root() {
                chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let process = Mutex::new(Self::run(&data, port, &options));
        let server = Self { directory, process, databases: 0.into(), port, options };
        server.await_ready();
        server
    }

    /// Ends the server at once, as a crash does, and starts it again.
    pub(crate) fn crash(&self) {
        self.halt();
        self.go_on();
    }

    /// Ends the server at once.
    pub(crate) fn halt(&self) {
        stop(&mut self.process.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Starts the server again.
    pub(crate) fn go_on(&self) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) =
            Self::run(&self.data(), self.port, &self.options);
        self.await_ready();
    }

    /// How to connect to a database of the caller's own, with the schema.
    pub(crate) async fn database(&self) -> Settings {
        let settings = self.empty_database();
        Postgres::migrate(&settings).await.unwrap();
        settings
    }

    /// How to connect to a database of the caller's own that has no schema.
    pub(crate) fn empty_database(&self) -> Settings {
        let name = format!("moldau_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let made = self.psql(&format!("create database {name}"));
        assert!(made, "a database cannot be made");
        Settings {
            connection: self.connection_of(&name),
            application_name: "moldau".to_owned(),
            connections_max: 8,
            timeout: Duration::from_secs(20),
        }
    }

    /// A copy of a database, as a backup is restored.
    pub(crate) fn restored(&self, from: &Settings) -> Settings {
        let copy = self.empty_database();
        let file = self.data().join("backup.sql");
        let mut dump = Command::new(program("pg_dump"));
        dump.args(["--schema", "moldau", "--file"]).arg(&file).arg(&from.connection);
        assert!(dump.status().unwrap().success(), "the database is dumped");
        let mut restore = Command::new(program("psql"));
        restore.args(["-q", "-X", "-v", "ON_ERROR_STOP=1", "--single-transaction", "--file"]);
        restore.arg(&file).arg(&copy.connection).stdout(Stdio::null());
        assert!(restore.status().unwrap().success(), "the database is restored");
        copy
    }

    fn connection_of(&self, name: &str) -> String {
        let (data, port) = (self.data(), self.port);
        format!("host={} port={port} user=moldau dbname={name}", data.display())
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Runs a statement in a database; false if it fails.
    pub(crate) fn run_statement(&self, settings: &Settings, statement: &str) -> bool {
        let mut command = Command::new(program("psql"));
        command.args(["-q", "-X", "-c", statement, settings.connection.as_str()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap().success()
    }

    fn psql(&self, statement: &str) -> bool {
        let connection = self.connection_of("postgres");
        let (connections_max, timeout) = (1, Duration::ZERO);
        let application_name = String::new();
        let settings = Settings { connection, application_name, connections_max, timeout };
        self.run_statement(&settings, statement)
    }

    fn run(data: &Path, port: u16, options: &[String]) -> Child {
        as_user("postgres")
            .arg("-D")
            .arg(data)
            .arg("-k")
            .arg(data)
            .args(["-p", &port.to_string()])
            .args(options.iter().flat_map(|option| ["-c", option]))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn await_ready(&self) {
        let started = Instant::now();
        while !self.psql("select 1") {
            assert!(started.elapsed() < Duration::from_secs(60), "the server does not start");
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.process.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Without a checkpoint; the server ends its own processes.
fn stop(process: &mut Child) {
    kill_process(Pid::from_child(process), Signal::QUIT).unwrap();
    process.wait().unwrap();
}

fn as_user(name: &str) -> Command {
    let program = program(name);
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(program);
    command
}

/// Debian keeps the programs of each version apart.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}

const NOBODY: u32 = 65_534;
const PORT: u16 = 5_432;
