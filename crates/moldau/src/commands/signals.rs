//! Waiting for the end: SIGTERM, SIGINT, or a failure that the process watches for.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the process to stop, watched from before the first connection.
pub(crate) struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to watch. Between this and [`Signals::wait_or`] a signal is remembered.
    ///
    /// # Errors
    /// The system refused a handler.
    pub(crate) fn watch() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        drop(guard);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// SIGHUP, which ends the process no longer: it asks servers for a reload, and what has a
    /// terminal to end with it.
    ///
    /// # Errors
    /// The system refused a handler.
    pub(crate) fn hangups(&self) -> std::io::Result<Signal> {
        let _guard = self.runtime.enter();
        signal(SignalKind::hangup())
    }

    /// SIGQUIT, which ends the process no longer.
    ///
    /// # Errors
    /// The system refused a handler.
    pub(crate) fn quits(&self) -> std::io::Result<Signal> {
        let _guard = self.runtime.enter();
        signal(SignalKind::quit())
    }

    /// Waits for a signal (`None`) or for something else (`Some`).
    pub(crate) fn wait_or<T>(self, other: impl Future<Output = T>) -> Option<T> {
        let Self { runtime, mut terminate, mut interrupt } = self;
        let ended = runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => None,
                _ = interrupt.recv() => None,
                ended = other => Some(ended),
            }
        });
        runtime.shutdown_timeout(Duration::ZERO);
        ended
    }
}
