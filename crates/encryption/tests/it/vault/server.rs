//! A Vault on loopback with a directory of its own.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tempfile::TempDir;
use tokio::net::TcpSocket;

/// A running server, which ends with its owner.
pub(super) struct Server {
    process: Option<Child>,
    directory: TempDir,
    address: String,
    ca_file: Option<PathBuf>,
    root_token: String,
    unseal_key: String,
    /// Keeps the port for the server, also while that is down.
    _reserved: TcpSocket,
}

#[derive(Deserialize)]
struct Initialised {
    unseal_keys_b64: Vec<String>,
    root_token: String,
}

impl Server {
    /// A server whose data survive a restart, ready for use.
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (port, reserved) = reserved_port();
        let config = format!(
            "disable_mlock = true\n\
             storage \"file\" {{ path = \"{}\" }}\n\
             listener \"tcp\" {{ address = \"127.0.0.1:{port}\"\n tls_disable = true }}\n",
            directory.path().join("data").display()
        );
        fs::write(directory.path().join("config.hcl"), config).unwrap();
        let mut server = Self {
            process: None,
            directory,
            address: format!("http://127.0.0.1:{port}"),
            ca_file: None,
            root_token: String::new(),
            unseal_key: String::new(),
            _reserved: reserved,
        };
        server.restart_sealed();
        let arguments = ["operator", "init", "-key-shares=1", "-key-threshold=1", "-format=json"];
        let initialised: Initialised = serde_json::from_str(&server.admin(&arguments)).unwrap();
        server.root_token = initialised.root_token;
        server.unseal_key = initialised.unseal_keys_b64.into_iter().next().unwrap();
        server.unseal();
        server
    }

    /// A server in development mode that speaks TLS with an authority of its own.
    pub(super) fn start_tls() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (port, reserved) = reserved_port();
        let certificates = directory.path().join("certificates");
        fs::create_dir(&certificates).unwrap();
        let mut server = Self {
            process: None,
            directory,
            address: format!("https://127.0.0.1:{port}"),
            ca_file: Some(certificates.join("vault-ca.pem")),
            root_token: "root".to_owned(),
            unseal_key: String::new(),
            _reserved: reserved,
        };
        server.spawn(&[
            "server".into(),
            "-dev".into(),
            "-dev-tls".into(),
            "-dev-no-store-token".into(),
            "-dev-root-token-id=root".into(),
            format!("-dev-tls-cert-dir={}", certificates.display()).into(),
            format!("-dev-listen-address=127.0.0.1:{port}").into(),
        ]);
        server.wait_for_status(READY);
        server
    }

    /// Starts the server again after [`Server::stop`]: it is sealed.
    pub(super) fn restart_sealed(&mut self) {
        let mut config = OsString::from("-config=");
        config.push(self.directory.path().join("config.hcl"));
        self.spawn(&["server".into(), config]);
        self.wait_for_status(SEALED);
    }

    pub(super) fn unseal(&self) {
        self.admin(&["operator", "unseal", &self.unseal_key]);
        self.wait_for_status(READY);
    }

    pub(super) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Sends it a signal, such as `STOP`.
    #[allow(dead_code, reason = "the tests of the binary have this file too, and need it")]
    pub(super) fn signal(&self, name: &str) {
        let process = self.process.as_ref().unwrap();
        let arguments = [format!("-{name}"), process.id().to_string()];
        assert!(Command::new("kill").args(arguments).status().unwrap().success());
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn ca_file(&self) -> Option<PathBuf> {
        self.ca_file.clone()
    }

    pub(super) fn root_token(&self) -> &str {
        &self.root_token
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What the command line says to its administrator.
    pub(super) fn admin(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn spawn(&mut self, arguments: &[OsString]) {
        let log = File::create(self.directory.path().join("log")).unwrap();
        let mut command = self.command();
        command.args(arguments).stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    /// Waits until the server has this status.
    fn wait_for_status(&self, wanted: i32) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.command().arg("status").output().unwrap().status.code();
            if status == Some(wanted) {
                return;
            }
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap();
            assert!(Instant::now() < end, "status {status:?}, {}", log());
        }
    }

    fn command(&self) -> Command {
        let binary = env::var_os("MOLDAU_VAULT").expect("MOLDAU_VAULT names Vault's binary");
        let mut command = Command::new(binary);
        command
            .env("HOME", self.directory.path())
            .env("VAULT_ADDR", &self.address)
            .env("VAULT_TOKEN", &self.root_token)
            .stdin(Stdio::null());
        if let Some(file) = &self.ca_file {
            command.env("VAULT_CACERT", file);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A free port, and a socket that keeps it free for a server.
fn reserved_port() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    // With this option on both, a server may listen where another socket is bound.
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    (socket.local_addr().unwrap().port(), socket)
}

/// Exit codes of `vault status`.
const READY: i32 = 0;
const SEALED: i32 = 2;
