//! Takes profiles of running processes: our own by their admin port, Java machines by
//! async-profiler, all others by `perf` where that is there and permitted.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{BYTES_MAX, MissingProfile, ProfileRecord, Tool, file_name, perf, sha256, sha256_of};
use crate::cpu::{GENERATOR_ROLE, ProcessUsage};
use crate::error::Error;
use crate::statistics::float;

/// Samples of the others for each second of processor time: those of our own processes.
const SAMPLES_PER_SECOND: u32 = 199;

/// The same in async-profiler's words.
const SAMPLE_INTERVAL: &str = "5025us";

/// Samples that a profile is made long enough for, as far as its process runs when the tick of the
/// kernel strikes, which short work on an idle processor does less often than that.
const SAMPLES_WANTED: f64 = 150.0;

/// Lengths of profiles, ms: no longer than a page of our own gives.
const WINDOW_MS: RangeInclusive<u64> = 5_000..=30_000;

/// How long a profile may take to be put together once its window is over.
const PATIENCE: Duration = Duration::from_secs(60);

/// What profiles are taken with.
#[derive(Clone, Debug)]
pub struct Profiler {
    moldau: PathBuf,
    moldau_sha256: String,
    /// `libasyncProfiler.so`, where it is there.
    async_profiler: Option<PathBuf>,
}

/// A process to profile.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// What the process is to the experiment.
    pub role: String,
    /// Its process id.
    pub pid: u32,
    /// Where its admin pages are, if it may have such.
    pub admin: Option<SocketAddr>,
}

/// A profile in text, and what took it of what.
struct Taken {
    tool: Tool,
    text: String,
    program_sha256: String,
    started_unix_ms: u64,
    window_ms: u64,
}

impl Profiler {
    /// A profiler for processes of this `moldau` executable and others; without `async_profiler`,
    /// its shared library, there is none for Java machines.
    ///
    /// # Errors
    /// [`Error::Machine`] when the executable cannot be read.
    pub fn new(moldau: PathBuf, async_profiler: Option<PathBuf>) -> Result<Self, Error> {
        let moldau_sha256 = sha256_of(&moldau)?;
        let async_profiler = async_profiler.filter(|library| library.is_file());
        Ok(Self { moldau, moldau_sha256, async_profiler })
    }

    /// The hash of the executable.
    pub fn moldau_sha256(&self) -> &str {
        &self.moldau_sha256
    }

    fn take(&self, of: &Profiled, window: Duration, directory: &Path) -> Result<Taken, String> {
        let link = PathBuf::from(format!("/proc/{}/exe", of.pid));
        let program = fs::read_link(&link).map_err(|error| format!("the process: {error}"))?;
        let is_named = |name: &Path| program.file_name() == name.file_name();
        let started = Instant::now();
        let started_unix_ms = unix_ms();
        let (tool, text) = match of.admin {
            Some(admin) if is_named(&self.moldau) => (Tool::Moldau, ask(admin, window)?),
            _ if is_named(Path::new("java")) => {
                let library = self.async_profiler.as_ref();
                let library = library
                    .ok_or("async-profiler is not there; fetch it with: cargo xtask peers")?;
                let java =
                    JavaMachine { pid: of.pid, jcmd: program.with_file_name("jcmd"), library };
                (Tool::AsyncProfiler, java.profile(started + window, directory)?)
            }
            _ => (Tool::Perf, by_perf(of.pid, window, directory)?),
        };
        let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let program_sha256 = sha256_of(&link).map_err(|error| error.to_string())?;
        Ok(Taken { tool, text, program_sha256, started_unix_ms, window_ms })
    }
}

/// Length of a profile in ms, of whole seconds, as a page of our own is asked for: the window of
/// the load that is profiled, or as long as a process needs that takes the share `least` of a
/// processor.
pub fn profile_window_ms(window_ms: u64, least: Option<f64>) -> u64 {
    let wanted = least.map_or(Duration::ZERO, |share| {
        let seconds = SAMPLES_WANTED / f64::from(SAMPLES_PER_SECOND) / share;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    });
    let wanted_ms = u64::try_from(wanted.as_millis()).unwrap_or(u64::MAX);
    let window_ms = window_ms.max(wanted_ms).clamp(*WINDOW_MS.start(), *WINDOW_MS.end());
    window_ms.next_multiple_of(1_000)
}

/// Share of a processor that the least busy profiled process takes, over windows of the given
/// lengths in ns.
pub fn least_share<'a>(windows: impl Iterator<Item = (&'a [ProcessUsage], u64)>) -> Option<f64> {
    let shares = windows.flat_map(|(processes, window_ns)| {
        let profiled = processes.iter().filter(|usage| usage.role != GENERATOR_ROLE);
        profiled.map(move |usage| float(usage.cpu_ns) / float(window_ns))
    });
    shares.filter(|share| *share > 0.0).reduce(f64::min)
}

/// Profiles that are being taken, a thread for each process.
pub struct Taking(Vec<(String, JoinHandle<Result<Taken, String>>)>);

impl Taking {
    /// Begins with all of the processes; what tools leave behind lies in `directory`.
    pub fn begin(
        profiler: &Profiler,
        processes: &[Profiled],
        window: Duration,
        directory: &Path,
    ) -> Self {
        let begin = |(index, of): (usize, &Profiled)| {
            let (profiler, of, directory) = (profiler.clone(), of.clone(), directory.to_owned());
            let role = match processes.iter().take(index).filter(|it| it.role == of.role).count() {
                0 => of.role.clone(),
                before => format!("{} {}", of.role, before + 1),
            };
            (role, thread::spawn(move || profiler.take(&of, window, &directory)))
        };
        Self(processes.iter().enumerate().map(begin).collect())
    }

    /// Waits for the profiles.
    pub fn end(self, case: &str, arm: &str) -> Vec<Result<ProfileRecord, MissingProfile>> {
        let record = |(role, thread): (String, JoinHandle<Result<Taken, String>>)| {
            let taken = thread.join().unwrap_or_else(|_| Err("its thread failed".into()));
            let (case, arm) = (case.to_owned(), arm.to_owned());
            match taken {
                Ok(taken) => Ok(ProfileRecord {
                    file: file_name(&case, &arm, &role),
                    case,
                    arm,
                    role,
                    tool: taken.tool,
                    bytes: u64::try_from(taken.text.len()).unwrap_or(u64::MAX),
                    sha256: sha256(taken.text.as_bytes()),
                    program_sha256: taken.program_sha256,
                    started_unix_ms: taken.started_unix_ms,
                    window_ms: taken.window_ms,
                    text: Some(taken.text),
                }),
                Err(reason) => Err(MissingProfile { case, arm, role, reason }),
            }
        };
        self.0.into_iter().map(record).collect()
    }
}

/// A profile by the process itself.
fn ask(admin: SocketAddr, window: Duration) -> Result<String, String> {
    let text = |error: io::Error| format!("the admin port: {error}");
    let seconds = window.as_secs();
    let mut stream = TcpStream::connect(admin).map_err(text)?;
    stream.set_read_timeout(Some(window + PATIENCE)).map_err(text)?;
    write!(
        stream,
        "GET /profile?seconds={seconds} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"
    )
    .map_err(text)?;
    let mut answer = String::new();
    stream.take(BYTES_MAX).read_to_string(&mut answer).map_err(text)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the admin port gave no answer")?;
    if head.split(' ').nth(1) == Some("200") {
        return Ok(body.to_owned());
    }
    Err(format!("the admin port: {}", head.lines().next().unwrap_or_default()))
}

/// A Java machine, with the `jcmd` of its own installation.
struct JavaMachine<'a> {
    pid: u32,
    jcmd: PathBuf,
    library: &'a Path,
}

impl JavaMachine<'_> {
    /// Its profile until `end`. The library stays in the machine, and does nothing afterwards.
    fn profile(&self, end: Instant, directory: &Path) -> Result<String, String> {
        let file = directory.join(format!("{}.collapsed", self.pid));
        self.command(&format!("start,event=ctimer,interval={SAMPLE_INTERVAL},threads"))?;
        thread::sleep(end.saturating_duration_since(Instant::now()));
        self.command(&format!("stop,file={},collapsed,threads", file.display()))?;
        read(&file)
    }

    fn command(&self, arguments: &str) -> Result<(), String> {
        let mut jcmd = Command::new(&self.jcmd);
        jcmd.arg(self.pid.to_string()).arg("JVMTI.agent_load").arg(self.library);
        // Without quotes jcmd would take what has an equals sign for an option of its own.
        jcmd.arg(format!("\"{arguments}\""));
        let said = finish(jcmd)?;
        // The virtual machine prints the agent's exit code, 0 on success.
        if said.lines().any(|line| line.trim() == "return code: 0") {
            return Ok(());
        }
        Err(format!("async-profiler: {}", said.trim().replace('\n', "; ")))
    }
}

fn by_perf(pid: u32, window: Duration, directory: &Path) -> Result<String, String> {
    let file = directory.join(format!("{pid}.perf"));
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-g", "-F", &SAMPLES_PER_SECOND.to_string()]);
    record.args(["-p", &pid.to_string(), "-o"]).arg(&file);
    record.args(["--", "sleep", &window.as_secs().to_string()]);
    finish(record).map_err(|why| format!("perf: {why}"))?;
    let mut script = Command::new("perf");
    script.args(["script", "-F", "comm,ip,sym", "-i"]).arg(&file);
    finish(script).map(|text| perf::folded(&text)).map_err(|why| format!("perf: {why}"))
}

/// What a command says on its standard output.
fn finish(mut command: Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", command.get_program().display()))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(said(&output.stdout));
    }
    let why = said(&output.stderr);
    let line = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{}, {}", output.status, line.trim()))
}

fn read(file: &Path) -> Result<String, String> {
    super::read_text(file).ok_or_else(|| format!("{} cannot be read", file.display()))
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
