//! Signals to processes under test, again and again while a run goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use moldau_measure::Error;

/// A thread that sends signals until it is dropped, which leaves the processes running.
pub(super) struct Signals {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Makes processes go on every millisecond, whoever stops them.
    pub(super) fn go_on(pids: Vec<u32>) -> Result<Self, Error> {
        Self::repeat(pids, &[(Signal::CONT, Duration::from_millis(1))])
    }

    /// Stops processes and lets them go on in turn.
    pub(super) fn stop_and_go(
        pids: Vec<u32>,
        stopped: Duration,
        running: Duration,
    ) -> Result<Self, Error> {
        Self::repeat(pids, &[(Signal::STOP, stopped), (Signal::CONT, running)])
    }

    fn repeat(pids: Vec<u32>, turns: &[(Signal, Duration)]) -> Result<Self, Error> {
        let done = Arc::new(AtomicBool::new(false));
        let (is_done, turns) = (Arc::clone(&done), turns.to_vec());
        let thread = thread::Builder::new()
            .name("lab-signals".into())
            .spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    for (signal, then) in &turns {
                        send(&pids, *signal);
                        thread::sleep(*then);
                    }
                }
                send(&pids, Signal::CONT);
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

fn send(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        if let Err(error) = kill_process(pid, signal) {
            // Whoever looks at the process next finds out that it has ended.
            tracing::debug!(?pid, %error, "a signal did not arrive");
        }
    }
}
