//! Systems under test as processes of their own, on loopback, ended when their guard goes.

mod ending;
mod file;
mod front_files;
mod fronts;
mod kafka;
mod moldau;
mod security;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::Error;
use ending::ENDING;

pub use ending::kill_started;
pub use file::{
    Installations, ProcessFile, ReadyFile, Replacement, RunningSystem, Stop, StopSignal, SystemFile,
};
pub use front_files::{ClientSecurity, FrontFiles};
pub use fronts::{
    FRONT_ROLE, FrontAddresses, Kroxylicious, LabKey, bare_relay, kroxylicious_proxy, moldau_proxy,
};
pub use kafka::{
    KAFKA_HEAP_BYTES, KafkaInstallation, KafkaNode, kafka_broker, prepare_kafka, prepare_kafka_node,
};
pub use moldau::{Durability, moldau_broker, moldau_broker_configured};
pub use security::{Credentials, SaslFile, SecurityFile, TlsFile};

/// How long a system may take to become ready; a JVM on a busy machine takes a few seconds.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a system may take to end after SIGTERM before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two looks at a process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long one readiness probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// How to start a system and how to tell that it is ready.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// What the process is to the experiment: `broker`, `proxy`.
    pub role: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables on top of the inherited ones.
    pub env: Vec<(String, String)>,
    /// What tells that it is ready.
    pub ready: Ready,
}

/// What tells that a system is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A TCP connection is accepted.
    Tcp(SocketAddr),
    /// An HTTP GET is answered with status 200.
    Http(SocketAddr, String),
}

impl Ready {
    /// Whether that is so.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self {
            Self::Tcp(address) => TcpStream::connect_timeout(address, PROBE_TIMEOUT).is_ok(),
            Self::Http(address, path) => http_get(*address, path)
                .is_some_and(|answer| answer.split(' ').nth(1).is_some_and(|code| code == "200")),
        }
    }
}

/// Answers longer than this are cut: a page of metrics has some ten thousand bytes.
const HTTP_ANSWER_BYTES_MAX: u64 = 4 << 20;

/// The whole answer to a GET, or `None` when there is none in time.
#[must_use]
pub fn http_get(address: SocketAddr, path: &str) -> Option<String> {
    // Whatever goes wrong here means one thing to the caller: no answer.
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.take(HTTP_ANSWER_BYTES_MAX).read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// A running system; dropping it ends and reaps it.
#[derive(Debug)]
pub struct Process {
    spec: ProcessSpec,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a system, its output going to `<role>.log` in `log_directory`, and waits until it
    /// is ready.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot be started, [`Error::Ended`] when it ends at once,
    /// [`Error::NotReady`] after a minute.
    pub fn start(spec: &ProcessSpec, log_directory: &Path) -> Result<Self, Error> {
        let mut process = Self::launch(spec, log_directory)?;
        process.wait_until_ready(&spec.ready, READY_TIMEOUT)?;
        Ok(process)
    }

    /// Starts a system as [`Process::start`] does, without waiting.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot be started.
    pub fn launch(spec: &ProcessSpec, log_directory: &Path) -> Result<Self, Error> {
        let log = log_directory.join(format!("{}.log", spec.role));
        let output =
            File::create(&log).map_err(Error::machine(format!("writing {}", log.display())))?;
        let child = spawn(spec, output)?;
        Ok(Self { spec: spec.clone(), child, log })
    }

    /// Waits until the system is ready.
    ///
    /// # Errors
    /// [`Error::Ended`] when it ends, [`Error::NotReady`] after `timeout`.
    pub fn wait_until_ready(&mut self, ready: &Ready, timeout: Duration) -> Result<(), Error> {
        let end = Instant::now() + timeout;
        while !ready.is_met() {
            self.check_alive()?;
            if Instant::now() > end {
                return Err(Error::NotReady {
                    system: self.spec.role.clone(),
                    seconds: timeout.as_secs(),
                    log: self.log.clone(),
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Kills the process with SIGKILL and starts it again as it was started, without waiting until
    /// it is ready; its output goes on in the same log.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn kill_and_restart(&mut self) -> Result<(), Error> {
        self.child.kill().map_err(Error::machine(format!("killing {}", self.spec.role)))?;
        self.child.wait().map_err(Error::machine("waiting for a process"))?;
        let output = File::options().append(true).open(&self.log);
        let writing = format!("writing {}", self.log.display());
        self.child = spawn(&self.spec, output.map_err(Error::machine(writing))?)?;
        Ok(())
    }

    /// Waits until the system is ready again.
    ///
    /// # Errors
    /// As [`Process::wait_until_ready`].
    pub fn wait_until_back(&mut self) -> Result<(), Error> {
        let ready = self.spec.ready.clone();
        self.wait_until_ready(&ready, READY_TIMEOUT)
    }

    /// What the process is to the experiment.
    #[must_use]
    pub fn role(&self) -> &str {
        &self.spec.role
    }

    /// The file that holds its output.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Process id and address of the HTTP pages by which it tells that it is ready, if it has such.
    #[must_use]
    pub fn admin_port(&self) -> Option<(u32, SocketAddr)> {
        match self.spec.ready {
            Ready::Http(address, _) => Some((self.pid(), address)),
            Ready::Tcp(_) => None,
        }
    }

    /// Finds out whether the process still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] when it does not.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        let status = self.child.try_wait().map_err(Error::machine("waiting for a process"))?;
        match status {
            None => Ok(()),
            Some(status) => Err(Error::Ended {
                system: self.spec.role.clone(),
                status: status.to_string(),
                log: self.log.clone(),
            }),
        }
    }

    /// Waits until the process has ended by itself.
    ///
    /// # Errors
    /// [`Error::NotReady`] when it still runs after `timeout`.
    pub fn wait(mut self, timeout: Duration) -> Result<ExitStatus, Error> {
        let end = Instant::now() + timeout;
        loop {
            let status = self.child.try_wait().map_err(Error::machine("waiting for a process"))?;
            if let Some(status) = status {
                return Ok(status);
            }
            if Instant::now() > end {
                return Err(Error::NotReady {
                    system: self.spec.role.clone(),
                    seconds: timeout.as_secs(),
                    log: self.log.clone(),
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Stops the process in its tracks until [`Process::resume`]; it keeps its sockets.
    ///
    /// # Errors
    /// [`Error::Machine`] when it is gone.
    pub fn suspend(&self) -> Result<(), Error> {
        self.signal(Signal::STOP)
    }

    /// Lets a suspended process go on.
    ///
    /// # Errors
    /// [`Error::Machine`] when it is gone.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::CONT)
    }

    /// Asks the process to end, waits, and kills it if it does not listen.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn stop(self) -> Result<ExitStatus, Error> {
        self.stop_by(Signal::TERM, STOP_TIMEOUT)
    }

    /// As [`Process::stop`], by another signal and with another patience.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn stop_by(mut self, signal: Signal, within: Duration) -> Result<ExitStatus, Error> {
        self.end(signal, within)
    }

    /// Kills the process with SIGKILL, which leaves it no time for anything.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn kill(mut self) -> Result<ExitStatus, Error> {
        self.child.kill().map_err(Error::machine(format!("killing {}", self.spec.role)))?;
        self.child.wait().map_err(Error::machine("waiting for a process"))
    }

    fn end(&mut self, signal: Signal, within: Duration) -> Result<ExitStatus, Error> {
        let waiting = "waiting for a process";
        if let Some(status) = self.child.try_wait().map_err(Error::machine(waiting))? {
            return Ok(status);
        }
        self.signal(signal)?;
        let end = Instant::now() + within;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().map_err(Error::machine(waiting))? {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.child.kill().map_err(Error::machine(format!("killing {}", self.spec.role)))?;
        self.child.wait().map_err(Error::machine(waiting))
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.expect("the kernel gives positive process ids");
        kill_process(pid, signal)
            .map_err(|errno| Error::machine(format!("signalling {}", self.spec.role))(errno.into()))
    }
}

fn spawn(spec: &ProcessSpec, output: File) -> Result<Child, Error> {
    let errors = output.try_clone().map_err(Error::machine("sharing a log file"))?;
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    ENDING.spawn(&mut command)
}

/// Refuses systems whose records nobody can compare with what was sent.
///
/// # Errors
/// [`Error::Plan`] with the name of the first.
pub fn keep_records(names: &[String], systems: &[SystemFile]) -> Result<(), Error> {
    match names.iter().zip(systems).find(|(_, system)| !system.keeps_records) {
        Some((name, _)) => Err(Error::Plan(format!("{name}: its records cannot be read back"))),
        None => Ok(()),
    }
}

/// Runs a command that prepares `system` to its end; what it complains of goes to `log`.
///
/// # Errors
/// [`Error::Machine`] when it cannot be run, [`Error::Ended`] when it fails.
fn prepare(command: &mut Command, system: String, log: PathBuf) -> Result<(), Error> {
    let output =
        File::create(&log).map_err(Error::machine(format!("writing {}", log.display())))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    let mut child = ENDING.spawn(command)?;
    let status = child.wait().map_err(Error::machine("waiting for a process"))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Ended { system, status: status.to_string(), log })
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end(Signal::TERM, STOP_TIMEOUT) {
            tracing::warn!(role = self.spec.role, %error, "a process under test may still run");
        }
    }
}

/// Distinct loopback addresses whose ports nobody holds at this moment.
///
/// # Errors
/// [`Error::Machine`] when there are none.
pub fn free_addresses<const N: usize>() -> Result<[SocketAddr; N], Error> {
    let action = "looking for free ports";
    // All are held until the last is found, so that none comes twice.
    let mut held = Vec::with_capacity(N);
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    for address in &mut addresses {
        let listener = TcpListener::bind(*address).map_err(Error::machine(action))?;
        *address = listener.local_addr().map_err(Error::machine(action))?;
        held.push(listener);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn shell(script: &str, ready: Ready) -> ProcessSpec {
        ProcessSpec {
            role: "shell".into(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("WORD".into(), "hello".into())],
            ready,
        }
    }

    #[test]
    fn a_ready_process_is_measured_suspended_and_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ready = Ready::Tcp(listener.local_addr().unwrap());
        let killed = Process::launch(&shell("exec sleep 1000", ready.clone()), directory.path());
        assert!(!killed.unwrap().kill().unwrap().success());
        let spec = shell("echo $WORD; exec sleep 1000", ready);
        let mut process = Process::start(&spec, directory.path()).unwrap();
        let said = || fs::read_to_string(directory.path().join("shell.log")).unwrap();
        while said().is_empty() {
            process.check_alive().unwrap();
            thread::yield_now();
        }
        process.suspend().unwrap();
        process.resume().unwrap();
        let pid = process.pid();
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(said().trim(), "hello");
    }

    #[test]
    fn a_killed_process_is_started_again_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ready = Ready::Tcp(listener.local_addr().unwrap());
        let spec = shell("echo $WORD; exec sleep 1000", ready);
        let mut process = Process::start(&spec, directory.path()).unwrap();
        let said = |count: usize| {
            let log = fs::read_to_string(directory.path().join("shell.log")).unwrap();
            log.lines().filter(|line| *line == "hello").count() >= count
        };
        for times in 1..=2 {
            while !said(times) {
                process.check_alive().unwrap();
                thread::yield_now();
            }
            let before = process.pid();
            process.kill_and_restart().unwrap();
            assert_ne!(process.pid(), before);
        }
        process.wait_until_back().unwrap();
    }

    #[test]
    fn a_process_that_ends_at_once_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let [address] = free_addresses().unwrap();
        let nobody = Ready::Http(address, "/readyz".into());
        let started = Process::start(&shell("exit 3", nobody), directory.path());
        assert!(matches!(started, Err(Error::Ended { .. })), "{started:?}");
    }

    #[test]
    fn readiness_over_http_needs_status_200() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            for status in ["503 Not yet", "200 OK"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
            }
        });
        let ready = Ready::Http(address, "/readyz".into());
        assert!(!ready.is_met());
        assert!(ready.is_met());
        server.join().unwrap();
    }
}
