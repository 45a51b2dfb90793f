//! The thread that gathers evidence while a run goes on.
//!
//! It reads `/proc` and control groups at both ends of the window, and looks at states and sockets
//! in between, which no counter tells. For that it never takes more of a processor than it is
//! allowed.

mod proc;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use proc::Thread;

use crate::systems::http_get;
use moldau_measure::Error;
use moldau_measure::control_group::{ControlGroup, Periods};
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::evidence::{Evidence, Flushes, ProcessEvidence, THREADS_MAX, ThreadEvidence};
use moldau_measure::statistics::float;

/// Shortest pause between two looks, on average.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// How closely a run is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    /// The run is there to be explained.
    Close,
    /// The run's figures are what is asked, and looking is to leave them alone.
    Light,
}

impl Attention {
    /// The pause after a look at processes or at sockets: on average so many times as long as the
    /// look took that looking at both takes a thirtieth or a two-hundredth of a processor at most,
    /// however many threads and connections there are.
    fn pause(self, look: Duration) -> Duration {
        let times = match self {
            Self::Close => 60,
            Self::Light => 400,
        };
        (look * times).max(PAUSE_MIN)
    }
}

/// Name of the thread, which is none of the generator's.
const NAME: &str = "lab-evidence";

/// What is to be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    /// Processes by role and id, those under test alone.
    pub(crate) processes: Vec<(String, u32)>,
    /// Where some of them may have a page of metrics, by process id.
    pub(crate) metrics: Vec<(u32, SocketAddr)>,
    /// Where clients connect first, if that has a port.
    pub(crate) port: Option<u16>,
}

/// Evidence that is gathered from the first call of [`Gathering::edge`] to the second.
pub(crate) struct Gathering {
    subjects: Subjects,
    attention: Attention,
    /// Set at the end, to the generator's threads as they are there: where little is on its way
    /// they end with the window.
    end: Arc<OnceLock<BTreeMap<u32, Thread>>>,
    thread: Option<JoinHandle<Evidence>>,
}

impl Gathering {
    pub(crate) fn of(mut subjects: Subjects, attention: Attention) -> Self {
        subjects.processes.push((GENERATOR_ROLE.into(), std::process::id()));
        Self { subjects, attention, end: Arc::default(), thread: None }
    }

    /// Begins with the first call and ends with the second; neither waits for anything.
    pub(crate) fn edge(&mut self) {
        if self.thread.is_some() {
            self.end();
            return;
        }
        let (subjects, end) = (self.subjects.clone(), Arc::clone(&self.end));
        let attention = self.attention;
        let gather = move || gather(&subjects, attention, &end);
        // Without a thread there is no evidence, which the end of the gathering says.
        self.thread = thread::Builder::new().name(NAME.into()).spawn(gather).ok();
    }

    /// Ends the pause between two looks, or else what follows the window would be counted with it.
    fn end(&self) {
        self.end.get_or_init(|| proc::threads(std::process::id()));
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// What was found.
    ///
    /// # Errors
    /// [`Error::Plan`] when it was never begun.
    pub(crate) fn finish(mut self) -> Result<Evidence, Error> {
        self.end();
        let missing = || Error::Plan("no evidence was gathered".into());
        let thread = self.thread.take().ok_or_else(missing)?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    }
}

/// A run that failed is not looked at any longer.
impl Drop for Gathering {
    fn drop(&mut self) {
        self.end();
    }
}

fn gather(
    subjects: &Subjects,
    attention: Attention,
    end: &OnceLock<BTreeMap<u32, Thread>>,
) -> Evidence {
    let begun = Instant::now();
    let before: Vec<Counters> = subjects.read();
    let flushes_before = subjects.flushes();
    // What comes again at an even pace must not be met at the same point of it.
    let mut random = fastrand::Rng::new();
    let mut looks = Looks::of(subjects.processes.len());
    let mut sockets_due = begun;
    let generator = loop {
        if let Some(threads) = end.get() {
            break threads;
        }
        // The kernel walks all that it knows of connections, which takes many times as long as the
        // states of some threads.
        let started = Instant::now();
        if started >= sockets_due {
            looks.at_sockets(subjects);
            sockets_due = Instant::now() + attention.pause(started.elapsed());
        }
        let started = Instant::now();
        looks.at_processes(subjects);
        let pause = attention.pause(started.elapsed());
        thread::park_timeout(pause.mul_f64(0.5 + random.f64()));
    };
    let mut after = subjects.read();
    for ((role, _), counters) in subjects.processes.iter().zip(&mut after) {
        if role == GENERATOR_ROLE {
            // The last look takes the place of the end for a thread that was faster than that.
            counters.threads.clone_from(&looks.generator);
            counters.threads.extend(generator.clone());
        }
    }
    let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let flushes_after = subjects.flushes();
    let mut processes: Vec<ProcessEvidence> = Vec::new();
    for (at, ((role, pid), (before, after))) in
        subjects.processes.iter().zip(before.iter().zip(&after)).enumerate()
    {
        let flushes = |of: &BTreeMap<u32, Flushes>| of.get(pid).copied();
        processes.push(ProcessEvidence {
            role: role.clone(),
            stopped_share: looks.share(looks.stopped.get(at)),
            disk_wait_share: looks.share(looks.waiting_for_disk.get(at)),
            flushes: flushes(&flushes_before).zip(flushes(&flushes_after)).map(since),
            ..after.since(before)
        });
    }
    Evidence {
        elapsed_ns,
        processes,
        runnable: looks.mean(looks.runnable),
        unread_bytes: float(looks.unread_bytes) / float(looks.at_sockets.max(1)),
    }
}

fn since((before, after): (Flushes, Flushes)) -> Flushes {
    Flushes {
        count: after.count.saturating_sub(before.count),
        ns: after.ns.saturating_sub(before.ns),
    }
}

impl Subjects {
    fn read(&self) -> Vec<Counters> {
        self.processes.iter().map(|(_, pid)| Counters::read(*pid)).collect()
    }

    /// What processes with a page of metrics tell of their flushes.
    fn flushes(&self) -> BTreeMap<u32, Flushes> {
        let of = |(pid, address): &(u32, SocketAddr)| {
            Some((*pid, parse_flushes(&http_get(*address, "/metrics")?)?))
        };
        self.metrics.iter().filter_map(of).collect()
    }
}

/// The counters of the moldau broker.
fn parse_flushes(page: &str) -> Option<Flushes> {
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    };
    Some(Flushes {
        count: value("moldau_journal_flushes_total")?,
        ns: value("moldau_journal_flush_nanoseconds_total")?,
    })
}

/// Counters of a process at one moment.
struct Counters {
    threads: BTreeMap<u32, Thread>,
    written_bytes: u64,
    group: Option<ControlGroup>,
    periods: Periods,
}

impl Counters {
    fn read(pid: u32) -> Self {
        let group = ControlGroup::of(pid);
        Self {
            threads: proc::threads(pid),
            written_bytes: proc::written_bytes(pid),
            periods: group.as_ref().map(ControlGroup::periods).unwrap_or_default(),
            group,
        }
    }

    /// A thread that began in between counts from zero; one that ended tells nothing.
    fn since(&self, before: &Self) -> ProcessEvidence {
        let none = Thread::default();
        let since = |(tid, now): (&u32, &Thread)| {
            let then = before.threads.get(tid).unwrap_or(&none);
            ThreadEvidence {
                name: now.name.clone(),
                cpu_ns: now.cpu_ns.saturating_sub(then.cpu_ns),
                wait_ns: now.wait_ns.saturating_sub(then.wait_ns),
            }
        };
        let mut threads: Vec<ThreadEvidence> =
            self.threads.iter().map(since).filter(|thread| thread.name != NAME).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.cpu_ns));
        let collectors = threads.iter().filter(|thread| proc::is_collector(&thread.name));
        let garbage_collection_ns = collectors.map(|thread| thread.cpu_ns).max().unwrap_or(0);
        threads.truncate(THREADS_MAX);
        // A process that has changed its group meanwhile has no periods in common.
        let same = self.group == before.group;
        let periods = self.periods.all.saturating_sub(before.periods.all);
        let throttled = self.periods.throttled.saturating_sub(before.periods.throttled);
        ProcessEvidence {
            threads,
            garbage_collection_ns,
            throttled_share: if same { float(throttled) / float(periods.max(1)) } else { 0.0 },
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            ..ProcessEvidence::default()
        }
    }
}

/// Sums over the looks in between.
struct Looks {
    count: u64,
    stopped: Vec<u64>,
    waiting_for_disk: Vec<u64>,
    runnable: u64,
    /// Looks at sockets, of which there are fewer.
    at_sockets: u64,
    unread_bytes: u64,
    /// Threads of the generator as they were last seen.
    generator: BTreeMap<u32, Thread>,
}

impl Looks {
    fn of(processes: usize) -> Self {
        Self {
            count: 0,
            stopped: vec![0; processes],
            waiting_for_disk: vec![0; processes],
            runnable: 0,
            at_sockets: 0,
            unread_bytes: 0,
            generator: BTreeMap::new(),
        }
    }

    fn at_sockets(&mut self, subjects: &Subjects) {
        self.at_sockets += 1;
        self.unread_bytes += subjects.port.map_or(0, proc::unread_bytes);
    }

    fn at_processes(&mut self, subjects: &Subjects) {
        self.count += 1;
        // The thread that looks runs itself.
        self.runnable += proc::runnable().saturating_sub(1);
        let sums = self.stopped.iter_mut().zip(&mut self.waiting_for_disk);
        for ((role, pid), (stopped, waiting)) in subjects.processes.iter().zip(sums) {
            // The generator is neither stopped nor does it write.
            if role == GENERATOR_ROLE {
                self.generator.extend(proc::threads(*pid));
                continue;
            }
            *stopped += u64::from(proc::state(*pid, *pid) == Some('T'));
            let mut states = proc::thread_ids(*pid).into_iter().map(|tid| proc::state(*pid, tid));
            *waiting += u64::from(states.any(|state| state == Some('D')));
        }
    }

    fn mean(&self, sum: u64) -> f64 {
        float(sum) / float(self.count.max(1))
    }

    fn share(&self, sum: Option<&u64>) -> f64 {
        self.mean(sum.copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_is_found_by_its_name() {
        let mut child = std::process::Command::new("/bin/sh");
        let mut child = child.args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = child.id();
        let processes = vec![("shell".to_string(), pid)];
        let subjects = Subjects { processes, metrics: Vec::new(), port: None };
        let mut gathering = Gathering::of(subjects, Attention::Close);
        gathering.edge();
        let cpu_ns = || proc::threads(pid).values().map(|thread| thread.cpu_ns).max();
        let begun_at = cpu_ns().unwrap();
        while cpu_ns().unwrap() < begun_at + 20_000_000 {
            thread::yield_now();
        }
        gathering.edge();
        let evidence = gathering.finish().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let [shell, generator] = evidence.processes.as_slice() else { panic!("{evidence:?}") };
        assert_eq!((shell.role.as_str(), generator.role.as_str()), ("shell", GENERATOR_ROLE));
        let [busy] = shell.threads.as_slice() else { panic!("{evidence:?}") };
        assert!(busy.name == "sh" && busy.cpu_ns > 0, "{busy:?}");
        assert!(evidence.elapsed_ns >= busy.cpu_ns);
        assert!(generator.threads.iter().all(|thread| thread.name != NAME));
        assert_eq!((shell.garbage_collection_ns, shell.flushes), (0, None));
    }

    #[test]
    fn flushes_are_read_from_a_page_of_metrics() {
        let page = "# HELP moldau_journal_flushes Flushes.\nmoldau_journal_flushes_total 7\n\
                    moldau_journal_flush_nanoseconds_total 9000\n";
        assert_eq!(parse_flushes(page), Some(Flushes { count: 7, ns: 9_000 }));
        assert_eq!(parse_flushes("kafka_something 1\n"), None);
    }
}
