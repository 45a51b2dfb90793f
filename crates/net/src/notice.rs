use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use moldau_threads::Mutex;

/// Wakes the connection's task and remembers that a pending answer was the cause, so that a wake
/// by the socket alone does not poll every pending answer.
#[derive(Debug)]
pub(crate) struct Notice {
    woken: AtomicBool,
    /// Guards the waker of the task that serves the connection.
    task: Mutex<Waker>,
}

impl Notice {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { woken: AtomicBool::new(false), task: Mutex::new(Waker::noop().clone()) })
    }

    pub(crate) fn set_task(&self, waker: &Waker) {
        self.task.lock().clone_from(waker);
    }

    /// Whether any answer woke since the last call.
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            let task = self.task.lock().clone();
            task.wake();
        }
    }
}
