//! The end of a laboratory that is asked to end: what it started goes with it, and it starts
//! nothing more.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use moldau_measure::Error;

/// That of this process.
pub(super) static ENDING: Ending = Ending::new();

/// Whether the end has begun. A process that is started after that would be left running.
#[derive(Debug)]
pub(super) struct Ending(AtomicBool);

impl Ending {
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Starts a process, unless the end has begun: the leader of a group of its own, in which
    /// whatever it starts in turn is, too.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot be started or may not.
    pub(super) fn spawn(&self, command: &mut Command) -> Result<Child, Error> {
        let action = format!("starting {}", command.get_program().display());
        if self.has_begun() {
            return Err(refusal(action));
        }
        let child = command.process_group(0).spawn().map_err(Error::machine(action.clone()))?;
        self.keep(child, action)
    }

    /// Returns the child, unless the end began while it was started: the killing thread may have
    /// missed it.
    fn keep(&self, mut child: Child, action: String) -> Result<Child, Error> {
        if !self.has_begun() {
            return Ok(child);
        }
        // Errors of either say that it has ended.
        let _ = kill_group(&child);
        let _ = child.wait();
        Err(refusal(action))
    }
}

/// The id of a process that has not been waited for, and of its group.
pub(super) fn id(child: &Child) -> Pid {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.expect("the kernel gives positive process ids")
}

/// Kills a process that has not been waited for, with all of its group.
///
/// # Errors
/// What the operating system says where it may not.
pub(super) fn kill_group(child: &Child) -> io::Result<()> {
    match kill_process_group(id(child), Signal::KILL) {
        // All of it has ended.
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn refusal(action: String) -> Error {
    Error::machine(action)(io::Error::other("the laboratory was asked to end"))
}

/// Ends every process that this one started and that still runs, at once: for one that is about
/// to end itself without stopping them in turn. From here on it starts no other.
pub fn kill_started() {
    ENDING.begin();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        let started = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let ids = started.split_ascii_whitespace().filter_map(|id| id.parse().ok());
        for pid in ids.filter_map(Pid::from_raw) {
            // Errors say that it has ended, or leads no group yet.
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn nothing_is_started_once_the_end_has_begun() {
        let ending = Ending::new();
        assert!(ending.spawn(&mut shell("exit 0")).unwrap().wait().unwrap().success());
        ending.begin();
        let refused = ending.spawn(&mut shell("exit 0")).unwrap_err().to_string();
        assert_eq!(refused, "starting /bin/sh: the laboratory was asked to end");
    }

    /// The broker that was just being started outlived the laboratory.
    #[test]
    fn a_process_started_while_the_end_begins_is_ended() {
        let ending = Ending::new();
        let child = shell("exec sleep 1000").process_group(0).spawn().unwrap();
        let pid = child.id();
        ending.begin();
        ending.keep(child, "starting a shell".into()).unwrap_err();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
