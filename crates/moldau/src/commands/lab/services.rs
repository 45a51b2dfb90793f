//! `moldau lab database` and `moldau lab store`: what brokers of a cluster stand on, each as a
//! process that the lab can kill.

use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use tokio::runtime::Builder;

use crate::arguments::{DatabaseOptions, StoreOptions};
use crate::commands::cluster::demo::database::{MISSING, give, program};
use crate::commands::cluster::demo::store::Store;

/// Becomes PostgreSQL, with whatever an earlier process left in the directory.
pub(super) fn database(options: &DatabaseOptions) -> anyhow::Result<ExitCode> {
    let DatabaseOptions { data_dir, listen, password_file, .. } = options;
    if options.promote {
        let mut promoted = program("pg_ctl");
        promoted.args(["promote", "--silent", "--wait", "-D"]).arg(data_dir);
        succeed("pg_ctl", &mut promoted)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !data_dir.join("PG_VERSION").exists() {
        let password = word(password_file)?;
        // As the server demands it.
        let made = DirBuilder::new().mode(0o700).create(data_dir);
        made.with_context(|| data_dir.display().to_string())?;
        give(data_dir)?;
        match options.standby_of {
            Some(primary) => copy(data_dir, primary, &password)?,
            None => initialize(data_dir, &password)?,
        }
    }
    let mut server = program("postgres");
    server.arg("-D").arg(data_dir);
    set(&mut server, "listen_addresses", &listen.ip().to_string());
    set(&mut server, "port", &listen.port().to_string());
    set(&mut server, "unix_socket_directories", "");
    if !options.flush {
        // The process may crash; the machine does not.
        set(&mut server, "fsync", "off");
    }
    // A standby that lost its connection tries again at once.
    set(&mut server, "wal_retrieve_retry_interval", "100ms");
    if options.synchronous {
        set(&mut server, "synchronous_standby_names", "*");
    }
    Err(server.exec()).context(MISSING)
}

/// Serves until the process ends, and everything with it.
pub(super) fn store(options: &StoreOptions) -> anyhow::Result<ExitCode> {
    let access_key = word(&options.access_key_file)?;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listening = || format!("listening on {}", options.listen);
        let store = Store::start_on(options.listen, access_key, options.data_dir.clone());
        let _store = store.await.with_context(listening)?;
        std::future::pending().await
    })
}

/// Fills the directory, with a user who needs the password.
fn initialize(data_dir: &Path, password: &str) -> anyhow::Result<()> {
    // The user of the server cannot read our own file.
    let password_file = data_dir.with_extension("password");
    let mut file = File::options();
    let mut file = file.write(true).create_new(true).mode(0o600).open(&password_file)?;
    writeln!(file, "{password}")?;
    give(&password_file)?;
    let mut made = program("initdb");
    made.args(["--no-sync", "--auth=scram-sha-256", "--username=moldau", "--encoding=UTF8"]);
    made.args(["--locale=C", "--pwfile"]).arg(&password_file).arg("-D").arg(data_dir);
    succeed("initdb", &mut made)?;
    Ok(fs::remove_file(&password_file)?)
}

/// Fills the directory with what the server at this address has, for a standby.
fn copy(data_dir: &Path, primary: SocketAddr, password: &str) -> anyhow::Result<()> {
    let mut copied = program("pg_basebackup");
    copied.args(["--no-sync", "--write-recovery-conf", "--checkpoint=fast", "--username=moldau"]);
    copied.args(["--host", &primary.ip().to_string(), "--port", &primary.port().to_string()]);
    copied.arg("-D").arg(data_dir).env("PGPASSWORD", password);
    succeed("pg_basebackup", &mut copied)
}

/// Runs a program to its end.
fn succeed(name: &str, command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().context(MISSING)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}", said.trim());
    Ok(())
}

/// Sets a parameter of the server.
fn set(server: &mut Command, key: &str, value: &str) {
    server.arg("-c").arg(format!("{key}={value}"));
}

/// The one word of a file.
fn word(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(text.trim().to_owned())
}
