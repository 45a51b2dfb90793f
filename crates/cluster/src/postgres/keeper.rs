//! The thread of sessions.

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Answer, Error};

/// The thread on which sessions live. It ends with this.
pub(super) struct Keeper {
    tasks: Handle,
    _end: oneshot::Sender<()>,
}

impl Keeper {
    /// # Errors
    /// [`Error::Settings`]: the system gives no thread.
    pub(super) fn start() -> Answer<Self> {
        let refused = |error: std::io::Error| Error::Settings(format!("no thread: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let tasks = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        // Only the sender's end is waited for.
        let run = move || drop(runtime.block_on(ended));
        std::thread::Builder::new().name("moldau-sessions".into()).spawn(run).map_err(refused)?;
        Ok(Self { tasks, _end: end })
    }

    /// Runs a task on the thread.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(task)
    }
}
