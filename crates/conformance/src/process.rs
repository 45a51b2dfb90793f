//! A child process that is stopped when its owner lets go of it.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How long a process may take to end after SIGTERM before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How far back the last line of a kind is looked for: a program tells its progress all the time.
const RECENT_BYTES: u64 = 8 * 1024;

/// A running child with its output in files.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `command` with its output in `<directory>/<name>.out` and `.err`.
    pub fn spawn(mut command: Command, name: &str, directory: &Path) -> Result<Self> {
        let stdout = directory.join(format!("{name}.out"));
        let stderr = directory.join(format!("{name}.err"));
        command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        let starting = no_other_starts();
        let child =
            command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        drop(starting);
        Ok(Self { child, name: name.to_owned(), stdout, stderr })
    }

    /// Runs `command` to its end, feeding it `input`; it is killed after `timeout`.
    pub fn run(
        mut command: Command,
        name: &str,
        directory: &Path,
        input: &str,
        timeout: Duration,
    ) -> Result<Finished> {
        let stdin = directory.join(format!("{name}.in"));
        fs::write(&stdin, input)?;
        command.stdin(Stdio::from(File::open(stdin)?));
        let mut process = Self::spawn(command, name, directory)?;
        let status = process.exits_within(timeout)?;
        let finished =
            Finished { status, stdout: process.stdout_text(), stderr: process.stderr_text() };
        Ok(finished)
    }

    /// Waits for the end of the process; `None` where it still runs after `timeout`.
    pub fn exits_within(&mut self, timeout: Duration) -> Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        let ends = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        let timeout = Timespec::try_from(timeout)?;
        poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&timeout))?;
        Ok(self.child.try_wait()?)
    }

    /// Tries `ready` every few milliseconds until it holds; an error where the process ends or
    /// the time is up before that.
    pub fn await_ready(&mut self, timeout: Duration, ready: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + timeout;
        while !ready(self) {
            if let Some(status) = self.exits_within(Duration::from_millis(20))? {
                bail!("{} ended with {status} before it was ready:\n{}", self.name, self.tail());
            }
            if Instant::now() > deadline {
                bail!("{} was not ready after {timeout:?}:\n{}", self.name, self.tail());
            }
        }
        Ok(())
    }

    /// Asks the process to end with SIGTERM and waits for it; kills it where it does not.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        match self.exits_within(STOP_TIMEOUT)? {
            Some(status) => Ok(status),
            None => self.kill(),
        }
    }

    /// Ends the process at once.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        Ok(self.child.wait()?)
    }

    /// Asks the process with SIGHUP to take its configuration anew.
    pub fn hang_up(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::HUP)?)
    }

    /// Stops the process with SIGSTOP where it is.
    pub fn suspend(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::STOP)?)
    }

    /// Lets it go on after [`suspend`](Self::suspend).
    pub fn resume(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::CONT)?)
    }

    /// Bytes of memory that the process holds.
    pub fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kibibytes.context("the memory of a process is told")?.trim().parse::<u64>()? * 1024)
    }

    /// How many files and sockets the process has open.
    pub fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }

    /// The last whole line on standard error that begins with `beginning`, without it, if it is
    /// among what was written last.
    pub fn last_line(&self, beginning: &str) -> Result<Option<String>> {
        let mut file = File::open(&self.stderr)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(end.saturating_sub(RECENT_BYTES)))?;
        let mut recent = Vec::new();
        file.read_to_end(&mut recent)?;
        let recent = String::from_utf8_lossy(&recent).into_owned();
        // What follows the last end of a line is still being written.
        let lines = recent.rsplit_once('\n').map_or("", |(lines, _)| lines).lines();
        let last = lines.rev().find_map(|line| line.strip_prefix(beginning));
        Ok(last.map(str::to_owned))
    }

    /// What the process wrote to its standard output so far.
    pub fn stdout_text(&self) -> String {
        text(&self.stdout)
    }

    /// What the process wrote to its standard error so far.
    pub fn stderr_text(&self) -> String {
        text(&self.stderr)
    }

    /// The last lines of both outputs, for an error message.
    pub fn tail(&self) -> String {
        last_lines(&format!("{}{}", self.stdout_text(), self.stderr_text()), 30)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("cannot stop {}: {error}", self.name);
        }
    }
}

/// A process that has ended, or was killed at its deadline.
#[derive(Debug)]
pub struct Finished {
    /// How it ended; `None` where its time was up.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Finished {
    /// Whether it ended by itself with exit code 0.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it ended and the last lines that it wrote to standard error.
    pub fn explanation(&self) -> String {
        let end = self.status.map_or("timed out".to_owned(), |status| status.to_string());
        format!("{end}\n{}", last_lines(&self.stderr, 20))
    }
}

/// The last `count` lines of `text`.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Ports below those that outgoing connections get, which may lie closed for a minute and cannot
/// be listened on meanwhile.
const PORTS: Range<u16> = 10_000..30_000;

/// Held while a child starts, and while ports are tried: until it runs its program, a child holds
/// every listener that was open when it began, and with it the port.
static STARTING: Mutex<()> = Mutex::new(());

fn no_other_starts() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first of `count` neighbouring loopback ports that nothing listens on.
pub fn free_ports(count: u16) -> Result<u16> {
    let _starting = no_other_starts();
    closed_ports(count)
}

fn closed_ports(count: u16) -> Result<u16> {
    for _ in 0..100 {
        let first = fastrand::u16(PORTS);
        if (first..first + count).all(|port| TcpListener::bind(loopback(port)).is_ok()) {
            return Ok(first);
        }
    }
    bail!("no {count} neighbouring ports are free")
}

/// Lets some time go by between two looks at something that happens elsewhere.
pub fn pause(time: Duration) {
    std::thread::park_timeout(time);
}

/// The loopback address with `port`.
pub fn loopback(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

fn text(file: &Path) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_killed_at_its_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("tail");
        command.args(["-f", "/dev/null"]);
        let timeout = Duration::from_millis(50);
        let finished = Process::run(command, "hangs", directory.path(), "", timeout).unwrap();
        assert!(!finished.success());
        assert!(finished.explanation().starts_with("timed out"));
    }

    #[test]
    fn a_program_reads_its_input_and_its_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let timeout = Duration::from_secs(30);
        let finished =
            Process::run(Command::new("cat"), "cat", directory.path(), "hello", timeout).unwrap();
        assert!(finished.success());
        assert_eq!(finished.stdout, "hello");
    }

    #[test]
    fn the_last_whole_line_of_a_kind_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("printf");
        command.arg("a 1\na 2\nb 3\na 4 and no end");
        // What it writes to its standard output is looked for in a file of that name.
        let mut process = Process::spawn(command, "prints", directory.path()).unwrap();
        process.exits_within(Duration::from_secs(30)).unwrap();
        process.stderr = process.stdout.clone();
        assert_eq!(process.last_line("a ").unwrap().as_deref(), Some("2"));
        assert_eq!(process.last_line("c ").unwrap(), None);
    }

    #[test]
    fn a_process_holds_memory_and_files() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("tail");
        command.args(["-f", "/dev/null"]);
        let process = Process::spawn(command, "tail", directory.path()).unwrap();
        assert!(process.resident_bytes().unwrap() > 0);
        assert!(process.descriptors().unwrap() >= 3);
    }

    #[test]
    fn neighbouring_ports_can_all_be_bound() {
        let _starting = no_other_starts();
        let first = closed_ports(3).unwrap();
        let listeners: Vec<_> =
            (first..first + 3).map(|port| TcpListener::bind(loopback(port)).unwrap()).collect();
        assert_eq!(listeners.len(), 3);
    }
}
