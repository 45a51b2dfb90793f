//! Processor time and related costs of processes and of the host, over a window of time.
//!
//! Processor time comes from the process's own CPU clock (`clock_getcpuclockid`), in nanoseconds
//! and with the threads that have ended, which neither `/proc/<pid>/stat` (10 ms steps) nor a sum
//! over `/proc/<pid>/task` (living threads only) gives. The rest comes from `/proc`: the split into
//! user and system time, context switches, time spent runnable but waiting for a processor,
//! resident memory, descriptors, and what the whole machine did meanwhile; and from control groups,
//! which report throttling and the page cache.
//!
//! A process counts together with its descendants: PostgreSQL works in one process for each
//! connection. This process alone counts without them, since it starts the measured ones.

mod descendants;
mod host;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use nix::sys::time::TimeSpec;
use nix::time::ClockId;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::control_group::ControlGroup;
use crate::error::Error;
use host::HostCounters;

/// Role of this process among the measured ones.
pub const GENERATOR_ROLE: &str = "generator";

/// What the generator used, among what the `processes` of a run did.
pub fn generator_among(processes: &[ProcessUsage]) -> Option<&ProcessUsage> {
    processes.iter().find(|usage| usage.role == GENERATOR_ROLE)
}

/// What one process and its descendants used during a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessUsage {
    /// What the process is to the experiment: `broker`, `proxy`, `generator`.
    pub role: String,
    /// Processor time in user and system mode, ns; that of a descendant that ended to 10 ms.
    pub cpu_ns: u64,
    /// User part of it in permille, from the kernel's tick-based split.
    pub user_permille: u64,
    /// Times that a thread gave up its processor by waiting. Living threads only.
    pub voluntary_switches: u64,
    /// Times that a thread was made to yield its processor. Living threads only.
    pub involuntary_switches: u64,
    /// Time that threads were runnable and waited for a processor, ns. Living threads only.
    pub run_queue_wait_ns: u64,
    /// Resident memory at the end of the window, bytes. Of descendants, which share most of theirs
    /// with it, the anonymous part.
    pub resident_bytes: u64,
    /// Highest resident memory of the process so far, bytes.
    pub resident_bytes_peak: u64,
    /// Processor time of the busiest thread, ns.
    pub busiest_thread_ns: u64,
    /// Its name as the kernel knows it, 15 bytes at most; empty where it has ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub busiest_thread: String,
    /// Time for which a limit kept its control group from processors, ns; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// Open descriptors of the process itself at the end of the window; absent where they cannot
    /// be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u64>,
    /// Page cache of its control group at the end of the window, bytes, with what other processes
    /// of the group have there; absent of the root group and of groups of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_bytes: Option<u64>,
}

/// Length of a tick of the machine's counters, ns.
pub const TICK_NS: f64 = 1e7;

/// What the machine as a whole did during a window, by time, `/proc/stat` and `/proc/vmstat`, in
/// ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostUsage {
    /// Processors neither idle nor taken away.
    pub busy_ticks: u64,
    /// Processors idle.
    pub idle_ticks: u64,
    /// Taken away by the hypervisor.
    pub steal_ticks: u64,
    /// Network and other deferred interrupt work, which no process is charged for.
    pub softirq_ticks: u64,
    /// Bytes read from block devices and written to them; 0 if not counted.
    #[serde(default)]
    pub disk_bytes: u64,
}

impl HostUsage {
    /// Both windows added up.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            busy_ticks: self.busy_ticks + more.busy_ticks,
            idle_ticks: self.idle_ticks + more.idle_ticks,
            steal_ticks: self.steal_ticks + more.steal_ticks,
            softirq_ticks: self.softirq_ticks + more.softirq_ticks,
            disk_bytes: self.disk_bytes + more.disk_bytes,
        }
    }

    /// All processors for all of the window.
    pub fn ticks(&self) -> u64 {
        self.busy_ticks + self.idle_ticks + self.steal_ticks
    }

    /// Share of all processors that was busy, 0 to 1.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        share(self.busy_ticks, self.ticks())
    }

    /// Share of all processors that the hypervisor took, 0 to 1.
    #[must_use]
    pub fn steal_share(&self) -> f64 {
        share(self.steal_ticks, self.ticks())
    }
}

/// Reads the counters of a set of processes twice and gives the differences.
#[derive(Debug)]
pub struct CpuMeter {
    start: Vec<Measured>,
    surroundings: Vec<Surroundings>,
    host: HostCounters,
}

impl CpuMeter {
    /// Opens the window for processes given as role and process id.
    ///
    /// # Errors
    /// [`Error::Machine`] when a process is gone.
    pub fn start(processes: &[(String, u32)]) -> Result<Self, Error> {
        // Before all counters here and after them at the end, since it takes its time.
        let surroundings = processes.iter().map(|(_, pid)| Surroundings::of(*pid)).collect();
        let roots: Vec<u32> = processes.iter().map(|(_, pid)| *pid).collect();
        let families = descendants::of_each(&roots);
        let start = processes.iter().zip(families);
        let start = start
            .map(|((role, pid), family)| Measured::start(role.clone(), *pid, family))
            .collect::<Result<_, Error>>()?;
        Ok(Self { start, surroundings, host: HostCounters::read()? })
    }

    /// Closes the window.
    ///
    /// # Errors
    /// [`Error::Machine`] when a process is gone.
    pub fn stop(self) -> Result<(Vec<ProcessUsage>, HostUsage), Error> {
        let host = HostCounters::read()?.since(&self.host);
        let now = self.start.iter().map(|it| it.counters());
        let mut now = now.collect::<Result<Vec<ProcessCounters>, Error>>()?;
        // After the counters, since it takes its time: new ones count from zero.
        let roots: Vec<u32> = self.start.iter().map(|it| it.pid).collect();
        for ((it, now), family) in self.start.iter().zip(&mut now).zip(descendants::of_each(&roots))
        {
            now.add_those_alive(family.difference(&it.descendants));
        }
        let usages = self.start.into_iter().zip(now).zip(&self.surroundings);
        let usages = usages
            .map(|((it, now), around)| around.complete(now.since(&it.before, it.role, it.pid)));
        Ok((usages.collect(), host))
    }
}

/// A process at the start of the window.
#[derive(Debug)]
struct Measured {
    role: String,
    pid: u32,
    descendants: BTreeSet<u32>,
    before: ProcessCounters,
}

impl Measured {
    fn start(role: String, pid: u32, descendants: BTreeSet<u32>) -> Result<Self, Error> {
        let mut it = Self { role, pid, descendants, before: ProcessCounters::default() };
        it.before = it.counters()?;
        Ok(it)
    }

    /// The counters of the process and of the descendants that it had at the start.
    fn counters(&self) -> Result<ProcessCounters, Error> {
        let mut counters = ProcessCounters::read(self.pid)?;
        counters.add_those_alive(&self.descendants);
        Ok(counters)
    }
}

/// What one thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Processor time in user and system mode, ns.
    pub cpu_ns: u64,
    /// Time that it was runnable and waited for a processor, ns.
    pub wait_ns: u64,
    /// Times that it gave up its processor by waiting.
    pub voluntary: u64,
    /// Times that it was made to yield its processor.
    pub involuntary: u64,
}

impl ThreadUsage {
    /// What the calling thread has used since it began.
    ///
    /// # Errors [`Error::Machine`] if the kernel does not report it.
    pub fn own() -> Result<Self, Error> {
        let times = read("/proc/thread-self/schedstat").ok().as_deref().and_then(scheduled);
        let counters =
            thread_counters(times.unwrap_or_default(), &read("/proc/thread-self/status")?);
        // The clock counts what the scheduler's account has not yet taken in.
        let time = ClockId::CLOCK_THREAD_CPUTIME_ID.now().map_err(|errno| Error::Machine {
            action: "reading the CPU clock of a thread".into(),
            source: errno.into(),
        })?;
        Ok(Self { cpu_ns: clock_ns(time), ..counters })
    }

    /// What it has used since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

#[derive(Debug, Default)]
struct ProcessCounters {
    cpu_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
    resident_bytes: u64,
    resident_bytes_peak: u64,
    /// What it shares with no other process.
    anonymous_bytes: u64,
    threads: BTreeMap<u32, ThreadUsage>,
}

impl ProcessCounters {
    fn read(pid: u32) -> Result<Self, Error> {
        let mut times = parse_stat(&read(&format!("/proc/{pid}/stat"))?).unwrap_or_default();
        if pid == std::process::id() {
            times.ended_children = 0;
        }
        let status = read(&format!("/proc/{pid}/status"))?;
        let kilobytes = |name| field(&status, name).unwrap_or(0) * 1024;
        Ok(Self {
            cpu_ns: process_clock_ns(pid)? + times.ended_children.saturating_mul(10_000_000),
            user_ticks: times.user,
            system_ticks: times.system,
            resident_bytes: kilobytes("VmRSS:"),
            resident_bytes_peak: kilobytes("VmHWM:"),
            anonymous_bytes: kilobytes("RssAnon:"),
            threads: read_threads(pid)?,
        })
    }

    /// Adds what other processes have used. One that has ended is counted with the children of
    /// its parent.
    fn add_those_alive<'a>(&mut self, pids: impl IntoIterator<Item = &'a u32>) {
        for more in pids.into_iter().filter_map(|pid| Self::read(*pid).ok()) {
            self.cpu_ns += more.cpu_ns;
            self.user_ticks += more.user_ticks;
            self.system_ticks += more.system_ticks;
            self.resident_bytes += more.anonymous_bytes;
            self.resident_bytes_peak += more.anonymous_bytes;
            self.threads.extend(more.threads);
        }
    }

    /// A thread that began inside the window counts from zero; one that ended inside it is
    /// missing from everything but the processor time, which the process's clock keeps.
    fn since(&self, before: &Self, role: String, pid: u32) -> ProcessUsage {
        let mut usage = ProcessUsage {
            role,
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            resident_bytes: self.resident_bytes,
            resident_bytes_peak: self.resident_bytes_peak,
            ..ProcessUsage::default()
        };
        let user = self.user_ticks.saturating_sub(before.user_ticks);
        let system = self.system_ticks.saturating_sub(before.system_ticks);
        usage.user_permille = (user * 1_000).checked_div(user + system).unwrap_or(0);
        let mut busiest = pid;
        for (tid, now) in &self.threads {
            let then = before.threads.get(tid).copied().unwrap_or_default();
            let used = now.since(then);
            if used.cpu_ns > usage.busiest_thread_ns {
                (usage.busiest_thread_ns, busiest) = (used.cpu_ns, *tid);
            }
            usage.run_queue_wait_ns += used.wait_ns;
            usage.voluntary_switches += used.voluntary;
            usage.involuntary_switches += used.involuntary;
        }
        let name = text(Path::new(&format!("/proc/{busiest}/comm")));
        usage.busiest_thread = name.unwrap_or_default().trim().to_owned();
        usage
    }
}

/// What is around a process at the start of the window.
#[derive(Debug)]
struct Surroundings {
    pid: u32,
    group: Option<ControlGroup>,
    throttled_ns: Option<u64>,
}

impl Surroundings {
    fn of(pid: u32) -> Self {
        Self::in_group(pid, ControlGroup::of(pid))
    }

    fn in_group(pid: u32, group: Option<ControlGroup>) -> Self {
        let throttled_ns = group.as_ref().and_then(ControlGroup::throttled_ns);
        Self { pid, group, throttled_ns }
    }

    /// With their values at the end of the window.
    fn complete(&self, usage: ProcessUsage) -> ProcessUsage {
        let group = self.group.as_ref();
        // A limit that came or went inside the window covers only a part of it.
        let throttled = group.and_then(ControlGroup::throttled_ns).zip(self.throttled_ns);
        ProcessUsage {
            throttled_ns: throttled.map(|(now, then)| now.saturating_sub(then)),
            descriptors: descriptors(self.pid),
            page_cache_bytes: group.and_then(ControlGroup::page_cache_bytes),
            ..usage
        }
    }
}

/// Open descriptors of a process.
fn descriptors(pid: u32) -> Option<u64> {
    let directory = format!("/proc/{pid}/fd");
    // The size of the directory is their number, at once; of kernels before 6.2 it is 0.
    match fs::metadata(&directory).ok()?.len() {
        0 => u64::try_from(fs::read_dir(&directory).ok()?.count()).ok(),
        count => Some(count),
    }
}

fn process_clock_ns(pid: u32) -> Result<u64, Error> {
    let action = || format!("reading the CPU clock of process {pid}");
    let raw = i32::try_from(pid).unwrap_or(i32::MAX);
    let time = ClockId::pid_cpu_clock_id(Pid::from_raw(raw))
        .and_then(ClockId::now)
        .map_err(|errno| Error::Machine { action: action(), source: errno.into() })?;
    Ok(clock_ns(time))
}

fn clock_ns(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec()).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

fn read_threads(pid: u32) -> Result<BTreeMap<u32, ThreadUsage>, Error> {
    let directory = format!("/proc/{pid}/task");
    let entries =
        fs::read_dir(&directory).map_err(Error::machine(format!("reading {directory}")))?;
    let mut threads = BTreeMap::new();
    for entry in entries.flatten() {
        let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A thread may end between the listing and the reading; it is then simply not there. And a
        // kernel may keep no statistics of its scheduler.
        let read = |name| text(&entry.path().join(name)).ok();
        let times = read("schedstat").as_deref().and_then(scheduled);
        let Some(times) = times.or_else(|| ticked(&read("stat")?)) else { continue };
        let Some(status) = read("status") else { continue };
        threads.insert(tid, thread_counters(times, &status));
    }
    Ok(threads)
}

/// Times on and ahead of a processor, ns, by the file `schedstat` of a thread.
fn scheduled(schedstat: &str) -> Option<(u64, u64)> {
    let mut times = schedstat.split_ascii_whitespace().map(str::parse);
    Some((times.next()?.ok()?, times.next()?.ok()?))
}

/// The same by its file `stat`: in ticks, and without those ahead of one.
fn ticked(stat: &str) -> Option<(u64, u64)> {
    let times = parse_stat(stat)?;
    Some((times.user.saturating_add(times.system).saturating_mul(10_000_000), 0))
}

/// Usage of a thread, from its times and its file `status`.
fn thread_counters((cpu_ns, wait_ns): (u64, u64), status: &str) -> ThreadUsage {
    ThreadUsage {
        cpu_ns,
        wait_ns,
        voluntary: field(status, "voluntary_ctxt_switches:").unwrap_or(0),
        involuntary: field(status, "nonvoluntary_ctxt_switches:").unwrap_or(0),
    }
}

/// Processor time by `/proc/<pid>/stat`, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    user: u64,
    system: u64,
    /// Of children that have ended and been waited for, with theirs.
    ended_children: u64,
}

/// The second field of `/proc/<pid>/stat` is the program's name in parentheses and may itself hold
/// spaces and parentheses.
fn parse_stat(text: &str) -> Option<Times> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let (user, system) = (next()?, next()?);
    Some(Times { user, system, ended_children: next()?.saturating_add(next()?) })
}

/// The number after `name` on a line of its own.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn read(path: &str) -> Result<String, Error> {
    text(Path::new(path)).map_err(Error::machine(format!("reading {path}")))
}

/// The text of a file in which names stand that may be cut within a character.
fn text(path: &Path) -> std::io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[expect(clippy::cast_precision_loss, reason = "ticks of a measurement stay far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn burn(cpu: Duration) {
        let clock = || ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from).unwrap();
        let end = clock() + cpu;
        while clock() < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_thread_that_ended_inside_the_window_is_counted() {
        let me = [("test".to_string(), std::process::id())];
        let meter = CpuMeter::start(&me).unwrap();
        std::thread::spawn(|| burn(Duration::from_millis(60))).join().unwrap();
        burn(Duration::from_millis(30));
        let (usages, _) = meter.stop().unwrap();
        assert!(usages[0].cpu_ns >= 90_000_000, "{usages:?}");
        assert!(usages[0].busiest_thread_ns >= 25_000_000, "{usages:?}");
        assert!(usages[0].resident_bytes > 0 && usages[0].resident_bytes_peak > 0);
    }

    /// A shell whose child shell burns processor time for some tenths of a second at each line that
    /// it reads, then answers; and ends at the end of its input.
    fn family(burning: &str) -> std::process::Child {
        let script = format!("while read line; do {burning}; echo done; done & wait");
        let script = format!("exec 3<&0; ( {} )", script.replace("read line", "read line <&3"));
        std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[test]
    fn descendants_count_while_they_live_and_after_they_end() {
        use std::io::{BufRead as _, BufReader, Write as _};
        const BURN: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
        // Within the shell that lives, and within one of its own that ends.
        for burning in [BURN.to_string(), format!("( {BURN} )")] {
            let mut parent = family(&burning);
            let mut input = parent.stdin.take().unwrap();
            let mut output = BufReader::new(parent.stdout.take().unwrap()).lines();
            let mut burn = || {
                input.write_all(b"once\n").unwrap();
                assert_eq!(output.next().unwrap().unwrap(), "done");
            };
            burn();
            let families = descendants::of_each(&[parent.id(), std::process::id()]);
            assert!(!families[0].is_empty() && families[1].is_empty(), "{families:?}");
            let before = process_clock_ns(parent.id()).unwrap();
            let meter = CpuMeter::start(&[("shell".into(), parent.id())]).unwrap();
            burn();
            let (usages, _) = meter.stop().unwrap();
            let alone = process_clock_ns(parent.id()).unwrap() - before;
            assert!(usages[0].cpu_ns > 20_000_000, "{burning}: {usages:?}");
            assert!(alone < 5_000_000, "{burning}: {alone} ns");
            drop(input);
            parent.wait().unwrap();
        }
    }

    #[test]
    fn surroundings_of_a_process_are_measured_over_the_window() {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
        write("cpu.max", "50000 100000\n");
        write("cpu.stat", "usage_usec 9\nthrottled_usec 5\n");
        let group = ControlGroup::in_directory(directory.path().to_path_buf());
        let start = Surroundings::in_group(std::process::id(), Some(group));
        write("cpu.stat", "usage_usec 40\nthrottled_usec 12\n");
        write("memory.current", "12288\n");
        write("memory.stat", "anon 1\nfile 8192\n");
        let files: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let usage = start.complete(ProcessUsage { cpu_ns: 3, ..ProcessUsage::default() });
        drop(files);
        assert_eq!((usage.throttled_ns, usage.page_cache_bytes), (Some(7_000), Some(8_192)));
        assert!(usage.cpu_ns == 3 && usage.descriptors > Some(50), "{usage:?}");
        let gone = Surroundings::in_group(u32::MAX >> 2, None).complete(ProcessUsage::default());
        assert_eq!(gone, ProcessUsage::default());
    }

    #[test]
    fn usage_without_the_surroundings_of_a_process_is_read() {
        let usage = ProcessUsage { role: "broker".into(), cpu_ns: 7, ..ProcessUsage::default() };
        let text = serde_json::to_string(&usage).unwrap();
        assert!(!text.contains("throttled_ns") && !text.contains("descriptors"), "{text}");
        assert_eq!(serde_json::from_str::<ProcessUsage>(&text).unwrap(), usage);
    }

    #[test]
    fn a_thread_knows_its_own_usage() {
        let before = ThreadUsage::own().unwrap();
        std::thread::spawn(|| burn(Duration::from_millis(20))).join().unwrap();
        let waited = ThreadUsage::own().unwrap().since(before);
        assert!(waited.cpu_ns < 20_000_000 && waited.voluntary > 0, "{waited:?}");
        burn(Duration::from_millis(10));
        let burnt = ThreadUsage::own().unwrap().since(before);
        assert!(burnt.cpu_ns >= 10_000_000, "{burnt:?}");
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let gone = [("ghost".to_string(), u32::MAX >> 2)];
        assert!(matches!(CpuMeter::start(&gone), Err(Error::Machine { .. })));
    }

    #[test]
    fn a_thread_is_counted_whatever_its_name_and_its_kernel() {
        assert_eq!(scheduled("123 456 7\n"), Some((123, 456)));
        assert_eq!(scheduled(""), None);
        let stat = "7 (a b) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 1 0";
        assert_eq!(ticked(stat), Some((3_000_000_000, 0)));
        let (named, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // 15 bytes. The last is the first half of a character.
                let name = [b"12345678901234".as_slice(), &"\u{e9}".as_bytes()[..1]].concat();
                fs::write("/proc/thread-self/comm", name).unwrap();
                named.wait();
                done.wait();
            });
            named.wait();
            let is_named = |it: &fs::DirEntry| {
                fs::read(it.path().join("comm")).is_ok_and(|name| name.starts_with(b"1234567890"))
            };
            let mut tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
            let tid = tasks.find(is_named).unwrap().file_name().to_str().unwrap().parse().unwrap();
            assert!(read_threads(std::process::id()).unwrap().contains_key(&tid));
            done.wait();
        });
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let text = "12 (a) b (c) S 1 1 1 0 -1 4194560 1 0 0 0 77 33 5 7 20 0 1 0";
        let times = Times { user: 77, system: 33, ended_children: 12 };
        assert_eq!(parse_stat(text), Some(times));
        assert_eq!(parse_stat("garbage"), None);
    }
}
