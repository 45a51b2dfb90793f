//! A HashiCorp Vault in development mode with the Transit engine, as a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::http;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback};
use crate::virtual_cluster::Kms;

/// It starts in a second; the rest is for a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const TOKEN: &str = "root";

/// A running Vault; dropped, it is stopped and its keys are gone.
#[derive(Debug)]
pub struct Vault {
    process: Process,
    port: u16,
    token_file: PathBuf,
}

impl Vault {
    /// Starts one that has a Transit engine without keys, its files in `directory`.
    pub fn start(peers: &Peers, directory: &Path) -> Result<Self> {
        let port = free_ports(1)?;
        let token_file = directory.join("vault-token");
        fs::write(&token_file, TOKEN)?;
        let mut command = Command::new(peers.vault());
        command
            .env("HOME", directory)
            .args(["server", "-dev", "-dev-no-store-token"])
            .arg(format!("-dev-root-token-id={TOKEN}"))
            .arg(format!("-dev-listen-address={}", loopback(port)));
        let process = Process::spawn(command, "vault", directory)?;
        let mut vault = Self { process, port, token_file };
        let is_ready = |_: &Process| {
            http::status(port, "GET /v1/sys/health", "", "").is_ok_and(|status| status == 200)
        };
        vault.process.await_ready(START_TIMEOUT, is_ready)?;
        vault.post("sys/mounts/transit", "{\"type\":\"transit\"}")?;
        Ok(vault)
    }

    /// Makes a key encryption key.
    pub fn add_key(&self, name: &str) -> Result<()> {
        self.post(&format!("transit/keys/{name}"), "{}")
    }

    /// The engine, as a proxy is told of it.
    pub fn kms(&self) -> Kms {
        let url = format!("http://{}/v1/transit", loopback(self.port));
        Kms::Vault { url, token_file: self.token_file.clone() }
    }

    fn post(&self, path: &str, body: &str) -> Result<()> {
        let token = format!("X-Vault-Token: {TOKEN}\r\n");
        let status = http::status(self.port, &format!("POST /v1/{path}"), &token, body)?;
        ensure!(matches!(status, 200 | 204), "{path}: status {status}\n{}", self.process.tail());
        Ok(())
    }
}
