//! The directory in which the systems of an experiment keep data and logs, and the end of an
//! experiment that is asked to end: what it started, and what they wrote, go with it.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use moldau_lab::checks::Verdict;
use moldau_lab::systems::kill_started;

use super::signals::Signals;

/// Where the systems keep data and logs during a run; removed afterwards.
pub(super) struct WorkDirectory {
    pub(super) path: PathBuf,
}

impl WorkDirectory {
    /// Makes it below `out`. From here on SIGTERM and SIGINT end the process with what it started.
    pub(super) fn make(out: &Path) -> anyhow::Result<Self> {
        let signals = Signals::watch()?;
        let path = out.join(format!("work-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        let path = path.canonicalize()?;
        let doomed = path.clone();
        let end = move || -> () {
            signals.wait_or(std::future::pending::<()>());
            kill_started();
            // What is on its way out may still write there; the second time tells what remains.
            let _ = std::fs::remove_dir_all(&doomed);
            kill_started();
            remove(&doomed);
            eprintln!("moldau lab: asked to end");
            std::process::exit(Verdict::Environment.exit_code().into())
        };
        thread::Builder::new().name("lab-signals".into()).spawn(end)?;
        Ok(Self { path })
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir_all(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("moldau lab: {} was not removed: {error}", path.display());
    }
}
