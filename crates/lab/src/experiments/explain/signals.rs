//! Keeps the processes under test running during a run, whoever stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use moldau_measure::Error;

/// A thread that sends SIGCONT until it is dropped.
pub(super) struct Signals {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Makes processes go on every millisecond, whoever stops them.
    pub(super) fn go_on(pids: Vec<u32>) -> Result<Self, Error> {
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let thread = thread::Builder::new()
            .name("lab-signals".into())
            .spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    send(&pids);
                    thread::sleep(Duration::from_millis(1));
                }
            })
            .map_err(Error::machine("starting a thread"))?;
        Ok(Self { done, thread: Some(thread) })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that sends signals has panicked");
        }
    }
}

fn send(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        if let Err(error) = kill_process(pid, Signal::CONT) {
            // Whoever looks at the process next finds out that it has ended.
            tracing::debug!(?pid, %error, "a signal did not arrive");
        }
    }
}
