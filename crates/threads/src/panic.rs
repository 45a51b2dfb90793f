//! A panic as a value.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

thread_local! {
    /// A panic of this thread released a lock.
    static HALF_CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// A panic that was caught. Its message was printed by the panic hook already.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Panic {
    message: String,
    has_left_half_changed: bool,
}

impl Panic {
    /// Whether the panic came while a lock was held, so that what the lock guards may be half
    /// changed.
    #[must_use]
    pub fn has_left_half_changed(&self) -> bool {
        self.has_left_half_changed
    }

    fn of(payload: &(dyn Any + Send)) -> Self {
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(message), _) => (*message).to_owned(),
            (_, Some(message)) => message.clone(),
            (None, None) => "no message".to_owned(),
        };
        Self { message, has_left_half_changed: HALF_CHANGED.take() }
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panic: {}", self.message)?;
        if self.has_left_half_changed {
            f.write_str(" (while a lock was held)")?;
        }
        Ok(())
    }
}

/// Runs `run` and returns its panic, if it panics.
///
/// # Errors
/// The panic.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| Panic::of(&*payload))
}

/// As [`catch`], for a future.
///
/// # Errors
/// The panic.
pub async fn catch_in<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    poll_fn(|context| match catch(|| future.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// Notes that a panic released a lock.
pub(crate) fn note_half_changed() {
    HALF_CHANGED.set(true);
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::task::{Context, Waker};

    use super::*;
    use crate::Mutex;

    #[test]
    fn a_panic_is_caught_with_its_message() {
        assert_eq!(catch(|| 1), Ok(1));
        let panic = catch(|| panic!("{} went wrong", "something")).unwrap_err();
        assert_eq!(panic.to_string(), "panic: something went wrong");
        assert!(!panic.has_left_half_changed());
    }

    #[test]
    fn a_panic_under_a_lock_says_so_once() {
        let mutex = Mutex::new(1);
        let panic = catch(|| {
            let _guard = mutex.lock();
            panic!("no");
        });
        assert!(panic.unwrap_err().has_left_half_changed());
        assert!(!catch(|| panic!("again")).unwrap_err().has_left_half_changed());
    }

    #[test]
    fn a_future_that_panics_is_ready() {
        let mut context = Context::from_waker(Waker::noop());
        let fine = pin!(catch_in(ready(2))).poll(&mut context);
        assert_eq!(fine, Poll::Ready(Ok(2)));
        let wrong = pin!(catch_in(async { panic!("no") })).poll(&mut context);
        assert!(matches!(wrong, Poll::Ready(Err(panic)) if panic.to_string() == "panic: no"));
    }
}
