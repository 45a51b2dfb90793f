//! The directory in which the systems of an experiment keep data and logs, and the end of an
//! experiment that is asked to end: what it started, and what they wrote, go with it.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context as _;
use moldau_lab::checks::Verdict;
use moldau_lab::experiments::{delete_left_topics, refuse_topics};
use moldau_lab::systems::kill_started;
use tokio::signal::unix::Signal;

use super::signals::Signals;

/// Whether the process was asked to end, which the thread that heard it does.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Where the systems keep data and logs during a run; removed afterwards.
pub(super) struct WorkDirectory {
    pub(super) path: PathBuf,
}

impl WorkDirectory {
    /// Makes it below `out`. From here on SIGTERM, SIGINT and SIGQUIT end the process and its
    /// children. So does SIGHUP, which the system sends when the terminal closes, unless the
    /// process was started with SIGHUP ignored.
    pub(super) fn make(out: &Path) -> anyhow::Result<Self> {
        let signals = Signals::watch()?;
        let hangups = if ignores_hangups() { None } else { Some(signals.hangups()?) };
        let quits = signals.quits()?;
        let path = make_another(out)?.canonicalize()?;
        let doomed = path.clone();
        let end = move || -> () {
            signals.wait_or(first(hangups, quits));
            IS_ENDING.store(true, Ordering::SeqCst);
            refuse_topics();
            kill_started();
            moldau_disk::unmount_all();
            // What is on its way out may still write there; the second time tells what remains.
            let _ = std::fs::remove_dir_all(&doomed);
            kill_started();
            remove(&doomed);
            tell_left();
            tell(format_args!("stopped by a signal"));
            std::process::exit(Verdict::Environment.exit_code().into())
        };
        thread::Builder::new().name("lab-signals".into()).spawn(end)?;
        Ok(Self { path })
    }
}

/// A unique directory below `out`, private to this user: files of systems may hold passwords. In
/// containers processes of different labs may have the same process id, and a killed lab may have
/// left its directory.
fn make_another(out: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let pid = std::process::id();
    let mut path = out.join(format!("work-{pid}"));
    let mut others = 1;
    loop {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
        others += 1;
        path = out.join(format!("work-{pid}-{others}"));
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // What is taken away from a run makes it fail; how the process ends is decided already.
        while IS_ENDING.load(Ordering::SeqCst) {
            thread::park();
        }
        tell_left();
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir_all(path)
        && error.kind() != ErrorKind::NotFound
    {
        tell(format_args!("failed to remove {}: {error}", path.display()));
    }
}

/// Deletes what is left on clusters that others go on to use, and says what cannot be.
fn tell_left() {
    for left in delete_left_topics() {
        tell(format_args!("{left}"));
    }
}

/// Prints it to stderr. That may have gone with its terminal, so an error is ignored.
fn tell(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "moldau lab: {what}");
}

/// Waits for the first of these signals.
async fn first(hangups: Option<Signal>, mut quits: Signal) {
    let hangup = async {
        match hangups {
            Some(mut hangups) => hangups.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = hangup => {}
        _ = quits.recv() => {}
    }
}

/// Whether this process was started with SIGHUP ignored, as `nohup` does. To wait for it would undo
/// that.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_hangup_ignored(&status)
}

/// The same by what `/proc/<pid>/status` says (`SigIgn` in proc_pid_status(5)): a mask in
/// hexadecimal digits, whose lowest bit is signal 1.
fn is_hangup_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|it| it & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_another_left_is_not_taken() {
        let out = tempfile::tempdir().unwrap();
        let below = out.path().join("runs");
        let first = make_another(&below).unwrap();
        let second = make_another(&below).unwrap();
        assert!(first != second && first.is_dir() && second.is_dir());
        assert_eq!(second.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_mask_tells_whether_hangups_are_ignored() {
        let status = |mask: &str| format!("Name:\tsh\nSigBlk:\tffff\nSigIgn:\t{mask}\n");
        assert!(is_hangup_ignored(&status("0000000000001001")));
        assert!(!is_hangup_ignored(&status("0000000000001002")));
        assert!(!is_hangup_ignored("Name:\tsh\n"));
    }
}
