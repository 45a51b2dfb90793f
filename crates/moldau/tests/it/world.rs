//! Processes under test, on free loopback ports, killed when their guard is dropped.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use moldau_lab::experiments::Conditions;
use moldau_lab::result::RunResult;
use moldau_lab::systems::{Installations, SystemFile};

/// How long a process may take to say where it listens. Generous, since machines are shared.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Lines of stderr kept for a failed test.
const LINES_MAX: usize = 10_000;

/// A system file of a broker.
pub(crate) const SYSTEM: &str = r#"{
    "description": "a broker", "bootstrap": "${address.clients}",
    "processes": [{
        "name": "broker", "role": "broker",
        "command": ["${moldau}", "broker", "--data-dir", "${dir}/data", "--listen",
            "${address.clients}", "--admin", "${address.admin}"],
        "ready": {"http": "${address.admin}/readyz"}}]}"#;

/// Below Linux's default `ip_local_port_range`, above the ports of well-known services.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// The binary under test: that of this build, or the one that `MOLDAU_BIN` names.
pub(crate) fn moldau() -> &'static str {
    static BINARY: LazyLock<String> = LazyLock::new(|| {
        std::env::var("MOLDAU_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_moldau").to_owned())
    });
    &BINARY
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(moldau()).args(arguments).output().expect("the binary can be run")
}

/// The same, with its exit code and stderr where nobody reads stdout.
pub(crate) fn run_unread<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("there are descriptors");
    drop(reader);
    let output = Command::new(moldau()).args(arguments).stdout(writer).output();
    let output = output.expect("the binary can be run");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The result that `moldau lab ... --json` prints.
pub(crate) fn result_of(output: &Output) -> RunResult {
    let said = String::from_utf8_lossy(&output.stderr);
    let document = String::from_utf8(output.stdout.clone()).unwrap();
    RunResult::from_json(&document).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A broker as a system file has it, and what it is started from.
pub(crate) fn system() -> (SystemFile, Installations) {
    let installations = Installations { moldau: moldau().into(), ..Installations::default() };
    (serde_json::from_str(SYSTEM).expect("the text is constant"), installations)
}

/// Those of an experiment in its short form.
pub(crate) fn conditions(work_directory: &Path) -> Conditions {
    let (version, work_directory) = ("0".into(), work_directory.to_owned());
    Conditions { version, work_directory, seed: 1, quick: true }
}

/// A broker or proxy that runs.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    /// Where Kafka clients connect.
    pub(crate) address: SocketAddr,
    /// Where the admin pages are.
    pub(crate) admin: SocketAddr,
}

impl Process {
    /// A broker on this data directory.
    pub(crate) fn broker(data_dir: &Path, more: &[&str]) -> Self {
        Self::broker_on(SocketAddr::from(([127, 0, 0, 1], 0)), data_dir, more)
    }

    /// A broker on this data directory that clients find at this address.
    pub(crate) fn broker_on(listen: SocketAddr, data_dir: &Path, more: &[&str]) -> Self {
        let mut command = broker_command(listen, data_dir);
        command.args(more);
        Self::start(command)
    }

    /// A proxy in front of an address, configured in `dir`.
    pub(crate) fn proxy(dir: &Path, upstream: SocketAddr) -> Self {
        let config = dir.join("proxy.yaml");
        let start = free_port();
        let text = format!(
            "admin: 127.0.0.1:0\nvirtual_clusters:\n  - name: main\n    \
             bootstrap: 127.0.0.1:0\n    upstream: [\"{upstream}\"]\n    \
             broker_port_start: {start}\n"
        );
        std::fs::write(&config, text).expect("the directory is writable");
        let mut command = Command::new(moldau());
        command.arg("proxy").arg("--config").arg(config);
        Self::start(command)
    }

    /// Starts a command that says on stderr where it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be run");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (sender, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // A full or closed queue means that nobody asks for more.
                drop(sender.try_send(line));
            }
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut process = Self { child, lines, said: Vec::new(), address: nowhere, admin: nowhere };
        let connect = process.wait_for_line("connect to ");
        process.address = address_after(&connect, "connect to ");
        let admin = process.wait_for_line("http://");
        process.admin = address_after(&admin, "http://");
        process
    }

    /// The next line of stderr that has this part.
    pub(crate) fn wait_for_line(&mut self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(START_TIMEOUT) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {part:?} ({error}); said: {:#?}", self.said),
            }
        }
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_none()
    }

    /// SIGKILL, and waits for the end.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the child is ours");
        self.killed();
    }

    /// Waits for the end of a process that something else kills.
    pub(crate) fn killed(self) {
        const SIGKILL: i32 = 9;
        let (status, said) = self.wait_with_stderr();
        assert_eq!(status.signal(), Some(SIGKILL), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }

    /// SIGTERM, and waits for the end.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.terminate_with_stderr().0
    }

    /// As [`terminate`](Self::terminate), and tells what the process said on stderr.
    pub(crate) fn terminate_with_stderr(self) -> (ExitStatus, String) {
        let (status, said) = self.terminate_failing_with_stderr();
        assert!(!said.contains("panicked"), "{said}");
        (status, said)
    }

    /// The same of a process whose threads may have panicked.
    pub(crate) fn terminate_failing_with_stderr(self) -> (ExitStatus, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill can be run");
        assert!(sent.success());
        self.wait_with_stderr()
    }

    /// Waits for the end of a process that ends by itself, and tells what it said on stderr.
    pub(crate) fn wait_with_stderr(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("the child is ours");
        // The lines end with the process.
        self.said.extend(self.lines.iter());
        (status, self.said.join("\n"))
    }

    /// A page of the admin port.
    pub(crate) fn page(&self, path: &str) -> String {
        http_get(self.admin, path)
    }

    /// The value of a metric, named with the labels that it has.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        metric_of(&self.page("/metrics"), name)
    }
}

/// The value of a metric on the page of them.
pub(crate) fn metric_of(page: &str, name: &str) -> f64 {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = value.unwrap_or_else(|| panic!("no metric {name} in {page}"));
    value.trim().parse().expect("a metric is a number")
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The command of a broker, with its admin pages on any port.
pub(crate) fn broker_command(listen: SocketAddr, data_dir: &Path) -> Command {
    let mut command = Command::new(moldau());
    command.arg("broker").arg("--listen").arg(listen.to_string());
    command.args(["--admin", "127.0.0.1:0"]).arg("--data-dir").arg(data_dir);
    command
}

fn address_after(line: &str, part: &str) -> SocketAddr {
    let rest = line.split_once(part).expect("the line has the part").1;
    let end = rest.find([',', '/', ' ']).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

/// A port that was free a moment ago, outside of the range that outgoing connections get theirs
/// from: there a client that tries again and again could be given the very port that it calls, and
/// be connected to itself.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(PORTS);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn http_get(address: SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("the admin port listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: moldau\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is text");
    let (_, body) = answer.split_once("\r\n\r\n").expect("the answer has a body");
    body.to_owned()
}
