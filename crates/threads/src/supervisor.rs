//! Threads and tasks without which a service must not go on.

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::{Builder, JoinHandle};

use crate::{Mutex, catch, catch_in};

/// Keeps the first failure of a service's threads and tasks. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Supervisor {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    cause: Option<Arc<str>>,
    wakers: Vec<Waker>,
}

impl Supervisor {
    /// Starts a thread whose panic is a failure.
    ///
    /// # Errors
    /// The system refused the thread.
    pub fn spawn(
        &self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let (supervisor, thread) = (self.clone(), name.to_owned());
        Builder::new().name(name.to_owned()).spawn(move || {
            if let Err(panic) = catch(run) {
                supervisor.fail(format_args!("the thread {thread} ended by a {panic}"));
            }
        })
    }

    /// Runs a task whose panic is a failure.
    pub async fn watch(&self, name: &str, task: impl Future<Output = ()>) {
        if let Err(panic) = catch_in(task).await {
            self.fail(format_args!("{name} ended by a {panic}"));
        }
    }

    /// Notes a failure, unless there is one already, and wakes who waits for it.
    pub fn fail(&self, cause: impl Display) {
        let mut state = self.state.lock();
        if state.cause.is_none() {
            state.cause = Some(cause.to_string().into());
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The first failure, if there was one.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.state.lock().cause.clone()
    }

    /// Resolves with the first failure, if ever.
    #[must_use]
    pub fn failed(&self) -> Failed {
        Failed { supervisor: self.clone() }
    }
}

/// Future of [`Supervisor::failed`].
#[derive(Debug)]
pub struct Failed {
    supervisor: Supervisor,
}

impl Future for Failed {
    type Output = Arc<str>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Arc<str>> {
        let mut state = self.supervisor.state.lock();
        if let Some(cause) = &state.cause {
            return Poll::Ready(Arc::clone(cause));
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_thread_that_panics_wakes_who_waits_with_its_name() {
        let supervisor = Supervisor::default();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut failed = pin!(supervisor.failed());
        assert!(failed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(failed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        supervisor.spawn("fine", || ()).unwrap().join().unwrap();
        assert_eq!(supervisor.failure(), None);
        supervisor.spawn("worker", || panic!("boom")).unwrap().join().unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let cause = "the thread worker ended by a panic: boom";
        let now = failed.as_mut().poll(&mut Context::from_waker(&waker));
        assert_eq!(now, Poll::Ready(Arc::from(cause)));
    }

    #[test]
    fn the_first_failure_stays() {
        let supervisor = Supervisor::default();
        let mut context = Context::from_waker(Waker::noop());
        let task = supervisor.watch("the timer", async { panic!("boom") });
        assert!(pin!(task).poll(&mut context).is_ready());
        supervisor.fail("another");
        assert_eq!(supervisor.failure().as_deref(), Some("the timer ended by a panic: boom"));
    }
}
