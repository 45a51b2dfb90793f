//! A process beside `moldau run` that ends the handlers of one that was killed.
//!
//! A handler that waits for its next record finds its stdin closed. One that hangs does not, and
//! the death signal of Linux reaches only a process itself, not what it has started. So the guard
//! knows the process groups of the handlers. Its stdin ends with `moldau run`, however that ends.
//!
//! | line on its stdin | meaning |
//! |---|---|
//! | `watch GROUP MILLISECONDS` | a handler runs, and may take that long to end |
//! | `forget GROUP` | it has ended |

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The guard of this process. Dropping it ends the guard, and all handlers that it watches.
pub(crate) struct Guard {
    /// Guards the process and what it watches.
    state: Mutex<State>,
}

struct State {
    process: Child,
    groups: BTreeMap<i32, Duration>,
}

impl Guard {
    /// Starts it.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn start() -> io::Result<Self> {
        let state = State { process: spawn()?, groups: BTreeMap::new() };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Lets the guard end this process group after this process, with the given time to end by
    /// itself. A guard that was killed is replaced.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn watch(&self, group: Pid, patience: Duration) -> io::Result<()> {
        let mut state = self.lock();
        let group = group.as_raw_nonzero().get();
        state.groups.insert(group, patience);
        if state.tell(&watch_line(group, patience)).is_ok() {
            return Ok(());
        }
        state.end();
        state.process = spawn()?;
        let lines: String =
            state.groups.iter().map(|(group, patience)| watch_line(*group, *patience)).collect();
        state.tell(&lines)
    }

    /// The group has ended; its number may become that of another.
    pub(super) fn forget(&self, group: Pid) {
        let mut state = self.lock();
        let group = group.as_raw_nonzero().get();
        state.groups.remove(&group);
        // A guard that is gone watches nothing.
        drop(state.tell(&format!("forget {group}\n")));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, lines: &str) -> io::Result<()> {
        let stdin = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(lines.as_bytes())
    }

    fn end(&mut self) {
        drop(self.process.stdin.take());
        // It fails only if the process was waited for already.
        drop(self.process.wait());
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts this program as a guard. The path is that of the running program, also if its file was
/// replaced. A process group of its own keeps it from signals of the terminal. It holds nothing of
/// this process open, so whoever reads from that sees its end.
fn spawn() -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("moldau").arg(NAME).env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn watch_line(group: i32, patience: Duration) -> String {
    format!("watch {group} {}\n", patience.as_millis())
}

/// Is a guard: follows stdin to its end, then ends what is left.
pub(crate) fn run() -> ExitCode {
    let mut watched = BTreeMap::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        follow(&line, &mut watched);
    }
    let began = Instant::now();
    while !watched.is_empty() {
        watched.retain(|group, it: &mut Watched| {
            // Without processes the group is gone. A signal can fail only for the same reason.
            let is_left =
                Pid::from_raw(*group).is_some_and(|group| test_kill_process_group(group).is_ok());
            let Some(signal) = it.step(began.elapsed()).filter(|_| is_left) else { return is_left };
            let sent = Pid::from_raw(*group).map(|group| kill_process_group(group, signal));
            signal != Signal::KILL && sent.is_some_and(|sent| sent.is_ok())
        });
        sleep(POLL_INTERVAL);
    }
    ExitCode::SUCCESS
}

fn follow(line: &str, watched: &mut BTreeMap<i32, Watched>) {
    let mut words = line.split(' ');
    let verb = words.next();
    let Some(group) = words.next().and_then(|group| group.parse().ok()) else { return };
    match (verb, words.next().and_then(|patience| patience.parse().ok())) {
        (Some("watch"), Some(patience)) => {
            let patience = Duration::from_millis(patience);
            watched.insert(group, Watched { patience, is_asked: false });
        }
        (Some("forget"), _) => drop(watched.remove(&group)),
        _ => {}
    }
}

/// The handler of a process that is gone.
#[derive(Debug, Eq, PartialEq)]
struct Watched {
    patience: Duration,
    /// Whether it got SIGTERM.
    is_asked: bool,
}

impl Watched {
    /// The signal that is due when its stdin has been closed for this long: the same as when
    /// `moldau run` stops it.
    fn step(&mut self, closed_for: Duration) -> Option<Signal> {
        match self.is_asked {
            _ if closed_for < self.patience => None,
            false => {
                self.is_asked = true;
                Some(Signal::TERM)
            }
            true => (closed_for >= self.patience.saturating_mul(2)).then_some(Signal::KILL),
        }
    }
}

/// Name of the subcommand.
const NAME: &str = "run-guard";

/// How often the guard looks whether handlers have ended. It bounds for how long the number of a
/// group that is gone is kept.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_get_the_time_and_the_signals_of_a_stop() {
        let mut watched = BTreeMap::new();
        for line in ["watch 7 100", "watch 8 100", "forget 8", "", "watch", "watch x y", "watch 9"]
        {
            follow(line, &mut watched);
        }
        assert_eq!(watched.keys().collect::<Vec<_>>(), [&7]);
        let it = watched.get_mut(&7).unwrap();
        let mut at = |milliseconds| it.step(Duration::from_millis(milliseconds));
        assert_eq!(at(99), None);
        assert_eq!(at(100), Some(Signal::TERM));
        assert_eq!(at(199), None);
        assert_eq!(at(200), Some(Signal::KILL));
    }
}
