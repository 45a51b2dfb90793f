//! Systems under test as processes of their own, on loopback, ended when their guard goes.

mod ending;
mod file;
mod front_files;
mod fronts;
mod kafka;
mod link;
mod moldau;
mod postgres;
mod temporary;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::net::TcpSocket;

use ending::{ENDING, id, kill_group};
use moldau_measure::Error;

pub use ending::kill_started;
pub use file::{
    Installations, LinkEnd, LinkFile, ProcessFile, ReadyFile, Replacement, RunningSystem, Stop,
    StopSignal, SystemFile,
};
pub use front_files::{ClientSecurity, FrontFiles};
pub use fronts::{
    FRONT_ROLE, FrontAddresses, Kroxylicious, LabKey, bare_relay, kroxylicious_proxy, moldau_proxy,
};
pub use kafka::{
    KAFKA_HEAP_BYTES, KafkaInstallation, KafkaNode, kafka_broker, prepare_kafka, prepare_kafka_node,
};
pub use link::{Disturbance, Link};
pub use moldau::{Durability, moldau_broker, moldau_broker_configured};

/// How long a system may take to become ready; a JVM on a busy machine takes a few seconds.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a system may take to end after SIGTERM before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what prepares a system may take.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes of a system's output that an error is given.
const SHOWN_BYTES_MAX: u64 = 4096;

/// Pause between two looks at a process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long one readiness probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// How to start a system and how to see that it is ready.
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
    /// How it shows that it is ready.
    pub ready: Ready,
}

/// How a system shows that it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A TCP connection is accepted.
    Tcp(SocketAddr),
    /// An HTTP GET is answered with status 200.
    Http(SocketAddr, String),
    /// PostgreSQL takes sessions.
    Postgres(SocketAddr),
}

/// A process without a readiness check.
pub(crate) const NEVER: Ready = Ready::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));

impl Ready {
    /// Whether that is so.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self {
            Self::Tcp(address) => TcpStream::connect_timeout(address, PROBE_TIMEOUT)
                // A connection to a free port may get this very port as its local one.
                .is_ok_and(|stream| stream.local_addr().is_ok_and(|own| own != *address)),
            Self::Http(address, path) => http_get(*address, path)
                .is_some_and(|answer| answer.split(' ').nth(1).is_some_and(|code| code == "200")),
            Self::Postgres(address) => postgres::takes_sessions(*address, PROBE_TIMEOUT),
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

/// A running system, the leader of a process group; dropping it ends and reaps it, with whatever
/// it started.
#[derive(Debug)]
pub struct Process {
    spec: ProcessSpec,
    child: Child,
    /// Once it has been waited for: its id may be another's from then on.
    ended: Option<ExitStatus>,
    log: PathBuf,
}

impl Process {
    /// Starts a system, its output going to `<role>.log` in `log_directory`, and waits until it
    /// is ready.
    ///
    /// # Errors
    /// [`Error::Plan`] where something is ready before it, [`Error::Machine`] when it cannot be
    /// started, [`Error::Ended`] when it ends at once, [`Error::NotReady`] after a minute.
    pub fn start(spec: &ProcessSpec, log_directory: &Path) -> Result<Self, Error> {
        if spec.ready.is_met() {
            let (Ready::Tcp(address) | Ready::Http(address, _) | Ready::Postgres(address)) =
                &spec.ready;
            let (role, program) = (&spec.role, spec.program.display());
            return Err(Error::Plan(format!(
                "{role} {program}: something else is ready at {address} before it is started"
            )));
        }
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
        Ok(Self { spec: spec.clone(), child, ended: None, log })
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
                return Err(self.late(timeout));
            }
            thread::sleep(POLL_INTERVAL);
        }
        // What is ready may be another that took its port.
        self.check_alive()
    }

    fn late(&self, timeout: Duration) -> Error {
        Error::NotReady {
            system: self.spec.role.clone(),
            seconds: timeout.as_secs(),
            output: tail(&self.log, SHOWN_BYTES_MAX),
        }
    }

    /// Kills the process with SIGKILL and starts it again as it was started, without waiting until
    /// it is ready; its output goes on in the same log.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn kill_and_restart(&mut self) -> Result<(), Error> {
        self.kill_at_once()?;
        let output = File::options().append(true).open(&self.log);
        let writing = format!("writing {}", self.log.display());
        self.child = spawn(&self.spec, output.map_err(Error::machine(writing))?)?;
        self.ended = None;
        Ok(())
    }

    /// Ends the process by a signal and starts it again as it was started, without waiting until
    /// it is ready.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn end_and_restart(&mut self, signal: Signal) -> Result<(), Error> {
        self.end(signal, STOP_TIMEOUT)?;
        self.kill_and_restart()
    }

    /// Kills the process with SIGKILL; it can be started again by [`Process::kill_and_restart`].
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn kill_at_once(&mut self) -> Result<(), Error> {
        self.kill_all().map(drop)
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

    /// Process id, and address of the HTTP readiness page, if there is one.
    #[must_use]
    pub fn admin_port(&self) -> Option<(u32, SocketAddr)> {
        match self.spec.ready {
            Ready::Http(address, _) => Some((self.pid(), address)),
            Ready::Tcp(_) | Ready::Postgres(_) => None,
        }
    }

    /// Finds out whether the process still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] when it does not.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => Err(Error::Ended {
                system: self.spec.role.clone(),
                status: status.to_string(),
                output: tail(&self.log, SHOWN_BYTES_MAX),
            }),
        }
    }

    /// Refuses a process that has started others: their resources would not be counted.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn check_alone(&self) -> Result<(), Error> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten();
        let children = tasks
            .flatten()
            .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
        if children.into_iter().all(|ids| ids.trim().is_empty()) {
            return Ok(());
        }
        Err(Error::Plan(format!(
            "{}: {} starts other processes, whose resources would not be counted; let it become \
             the system itself, as a shell does by exec",
            self.spec.role,
            self.spec.program.display()
        )))
    }

    /// How the process ended, if it has. What it started goes with it, before its id can become
    /// another's.
    fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() && has_ended(&self.child)? {
            return self.kill_all().map(Some);
        }
        Ok(self.ended)
    }

    /// Kills what is left of it and of what it started.
    fn kill_all(&mut self) -> Result<ExitStatus, Error> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        let killing = Error::machine(format!("killing {}", self.spec.role));
        kill_group(&self.child).map_err(killing)?;
        let status = self.child.wait().map_err(Error::machine("waiting for a process"))?;
        self.ended = Some(status);
        Ok(status)
    }

    /// Waits until the process has ended by itself.
    ///
    /// # Errors
    /// [`Error::NotReady`] when it still runs after `timeout`.
    pub fn wait(mut self, timeout: Duration) -> Result<ExitStatus, Error> {
        match self.ended_within(timeout)? {
            Some(status) => Ok(status),
            None => Err(self.late(timeout)),
        }
    }

    /// Waits until the process has ended by itself, without an error.
    fn succeed_within(&mut self, timeout: Duration) -> Result<(), Error> {
        match self.ended_within(timeout)? {
            Some(status) if status.success() => Ok(()),
            Some(_) => self.check_alive(),
            None => Err(self.late(timeout)),
        }
    }

    /// How it ended, if it does in this time.
    fn ended_within(&mut self, timeout: Duration) -> Result<Option<ExitStatus>, Error> {
        let end = Instant::now() + timeout;
        loop {
            let status = self.ended()?;
            if status.is_some() || Instant::now() > end {
                return Ok(status);
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
        self.kill_all()
    }

    fn end(&mut self, signal: Signal, within: Duration) -> Result<ExitStatus, Error> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.signal(signal)?;
        self.ended_within(within)?;
        self.kill_all()
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        // One that has been waited for has no id any more.
        let errno = match self.ended {
            None => kill_process_group(id(&self.child), signal).err(),
            Some(_) => Some(Errno::SRCH),
        };
        let failed = |errno: Errno| {
            Error::machine(format!("signalling {}", self.spec.role))(io::Error::from(errno))
        };
        errno.map_or(Ok(()), |errno| Err(failed(errno)))
    }
}

/// Whether a process that has not been waited for has ended; it still keeps its id.
fn has_ended(child: &Child) -> Result<bool, Error> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(id(child)), options) {
        Ok(status) => Ok(status.is_some()),
        Err(errno) => Err(Error::machine("waiting for a process")(errno.into())),
    }
}

/// The last bytes of a file as text; empty if it cannot be read.
pub(crate) fn tail(path: &Path, bytes_max: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
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

/// Refuses systems whose records cannot be compared with what was sent.
///
/// # Errors
/// [`Error::Plan`] with the name of the first.
pub fn keep_records(names: &[String], systems: &[SystemFile]) -> Result<(), Error> {
    match names.iter().zip(systems).find(|(_, system)| !system.keeps_records) {
        Some((name, _)) => Err(Error::Plan(format!("{name}: its records cannot be read back"))),
        None => Ok(()),
    }
}

/// Runs a program that prepares a system, which is what its role says, to its end.
///
/// # Errors
/// [`Error::Machine`] when it cannot be run, [`Error::Ended`] when it fails, [`Error::NotReady`]
/// when it goes on for ten minutes.
fn prepare(role: String, program: &Path, args: Vec<OsString>, log: &Path) -> Result<(), Error> {
    let spec = ProcessSpec { role, program: program.into(), args, env: Vec::new(), ready: NEVER };
    Process::launch(&spec, log)?.succeed_within(PREPARE_TIMEOUT)
}

/// Runs a program to its end and gives the last of its output.
///
/// # Errors
/// As [`prepare`], after `within`.
pub(crate) fn run_to_end(
    spec: &ProcessSpec,
    directory: &Path,
    within: Duration,
) -> Result<String, Error> {
    let mut process = Process::launch(spec, directory)?;
    process.succeed_within(within)?;
    Ok(tail(process.log(), SHOWN_BYTES_MAX))
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end(Signal::TERM, STOP_TIMEOUT) {
            tracing::warn!(role = self.spec.role, %error, "a process under test may still run");
        }
    }
}

/// Distinct loopback addresses whose ports are free at this moment, and stay so but for a server
/// that listens there: the kernel gives them to no other socket, even while the server is down.
///
/// # Errors
/// [`Error::Machine`] when there are none.
pub fn free_addresses<const N: usize>() -> Result<[SocketAddr; N], Error> {
    let reserve = || -> io::Result<(TcpSocket, SocketAddr)> {
        let socket = TcpSocket::new_v4()?;
        // With this option on both, a server may listen where another socket is bound.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    };
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    for address in &mut addresses {
        let (socket, free) = reserve().map_err(Error::machine("looking for free ports"))?;
        *address = free;
        reserved.push_back(socket);
    }
    let excess = reserved.len().saturating_sub(RESERVED_MAX);
    reserved.drain(..excess);
    Ok(addresses)
}

/// Sockets that hold the last ports that were given away, and do nothing else.
static RESERVED: Mutex<VecDeque<TcpSocket>> = Mutex::new(VecDeque::new());

/// More than all systems of one experiment have at a time.
const RESERVED_MAX: usize = 256;

#[cfg(test)]
mod tests;
