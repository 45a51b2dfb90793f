//! The processes of a route.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::dispatch::Request;
use super::document::Document;
use super::guard::Guard;
use super::process;
use super::requests::{Answer, Call, PoolSettings, Shared};

/// The processes of a route. Dropping it kills them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    next_id: AtomicU64,
    stop: watch::Sender<bool>,
    /// Guards the tasks of the processes.
    tasks: Mutex<JoinSet<()>>,
}

impl Pool {
    /// Starts the processes and waits until each has said hello.
    ///
    /// # Errors
    /// Which one did not, and why.
    pub(crate) async fn start(settings: PoolSettings, guard: Arc<Guard>) -> Result<Self, String> {
        let processes = settings.processes;
        let shared = Arc::new(Shared::new(settings, guard));
        let stop = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        let mut started = Vec::new();
        for slot in 0..processes {
            let (sender, receiver) = oneshot::channel();
            tasks.spawn(process::supervise(Arc::clone(&shared), slot, stop.subscribe(), sender));
            started.push(receiver);
        }
        let pool = Self { shared, next_id: AtomicU64::new(1), stop, tasks: Mutex::new(tasks) };
        for started in started {
            match started.await {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => return Err(problem),
                Err(_) => return Err("a handler process could not be supervised".to_owned()),
            }
        }
        Ok(pool)
    }

    /// Number of a request, never used twice.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn exchange(&self, id: u64, document: Document, is_suspect: bool) -> Answer {
        let (answer, answered) = oneshot::channel();
        let payload = Call { document, answer };
        self.shared.with(|dispatch| dispatch.push(Request { id, is_suspect, payload }));
        answered.await.unwrap_or_else(|_| Answer::Died("was stopped".to_owned()))
    }

    /// Asks all processes to end, and waits until they have.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.join_all().await;
    }
}
