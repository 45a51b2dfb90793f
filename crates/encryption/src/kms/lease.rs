//! A secret that is good for some time: fetched when it is needed, renewed before it ends, by one
//! caller at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::KmsError;

/// What is held at a time, if anything.
pub(super) struct Lease<T> {
    /// Guards what is held; never across a wait.
    held: Mutex<Option<Held<T>>>,
    /// The holder of the one permit fetches.
    fetching: Semaphore,
}

struct Held<T> {
    value: Arc<T>,
    renew_at: Option<Instant>,
    expires_at: Option<Instant>,
}

/// Result of a fetch.
pub(super) struct Fetched<T> {
    pub(super) value: T,
    /// How long it is good for; `None` for ever.
    pub(super) lifetime: Option<Duration>,
}

impl<T> Lease<T> {
    pub(super) fn new() -> Self {
        Self { held: Mutex::new(None), fetching: Semaphore::new(1) }
    }

    /// What is held, fetched or renewed where it is due. While it is good, a fetch that fails
    /// changes nothing. `fetch` gets what is still good.
    pub(super) async fn get<F>(
        &self,
        fetch: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> Result<Arc<T>, KmsError>
    where
        F: Future<Output = Result<Fetched<T>, KmsError>>,
    {
        if let Some(value) = self.fresh() {
            return Ok(value);
        }
        let permit = match (self.fetching.try_acquire(), self.good()) {
            (Ok(permit), _) => permit,
            (Err(_), Some(value)) => return Ok(value),
            (Err(_), None) => self.fetching.acquire().await.expect("the semaphore is never closed"),
        };
        // Someone else may have fetched it meanwhile.
        if let Some(value) = self.fresh() {
            return Ok(value);
        }
        let outcome = fetch(self.good()).await;
        let outcome = match (outcome, self.good()) {
            (Ok(fetched), _) => Ok(self.hold(fetched)),
            (Err(error), Some(value)) => {
                tracing::warn!(%error, "credentials are not renewed");
                self.renew_at(Instant::now() + RENEW_PAUSE);
                Ok(value)
            }
            (Err(error), None) => Err(error),
        };
        drop(permit);
        outcome
    }

    /// Forgets `value`, which was refused, unless another took its place.
    pub(super) fn reject(&self, value: &Arc<T>) {
        let mut held = self.held();
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(&held.value, value)) {
            *held = None;
        }
    }

    /// What is held, if it need not be renewed.
    fn fresh(&self) -> Option<Arc<T>> {
        let now = Instant::now();
        let held = self.held();
        let held = held.as_ref().filter(|held| held.renew_at.is_none_or(|at| now < at));
        held.map(|held| Arc::clone(&held.value))
    }

    /// The held value, if it has not expired.
    pub(super) fn good(&self) -> Option<Arc<T>> {
        let now = Instant::now();
        let held = self.held();
        let held = held.as_ref().filter(|held| held.expires_at.is_none_or(|at| now < at));
        held.map(|held| Arc::clone(&held.value))
    }

    fn hold(&self, fetched: Fetched<T>) -> Arc<T> {
        let now = Instant::now();
        let value = Arc::new(fetched.value);
        *self.held() = Some(Held {
            value: Arc::clone(&value),
            renew_at: fetched.lifetime.map(|lifetime| now + lifetime * 2 / 3),
            expires_at: fetched.lifetime.map(|lifetime| now + lifetime),
        });
        value
    }

    fn renew_at(&self, at: Instant) {
        if let Some(held) = &mut *self.held() {
            held.renew_at = Some(at);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held<T>>> {
        // It is replaced whole, so a thread that panicked left nothing half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a renewal that failed is not repeated.
const RENEW_PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{advance, sleep_until};

    use super::*;

    /// Fetches that are numbered, take a second, and give what is good for a minute.
    struct World {
        lease: Lease<u32>,
        fetches: AtomicU32,
    }

    impl World {
        async fn get(&self, fails: bool) -> Result<u32, KmsError> {
            let fetch = |_| async {
                sleep_until(Instant::now() + Duration::from_secs(1)).await;
                let value = self.fetches.fetch_add(1, Ordering::Relaxed);
                match fails {
                    true => Err(KmsError::Unavailable("down".into())),
                    false => Ok(Fetched { value, lifetime: Some(Duration::from_secs(60)) }),
                }
            };
            self.lease.get(fetch).await.map(|value| *value)
        }
    }

    fn world() -> World {
        World { lease: Lease::new(), fetches: AtomicU32::new(0) }
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_need_it_fetch_once() {
        let world = world();
        let (a, b, c) = tokio::join!(world.get(false), world.get(false), world.get(false));
        assert_eq!((a, b, c), (Ok(0), Ok(0), Ok(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_renewed_before_it_ends_and_serves_meanwhile() {
        let world = world();
        world.get(false).await.unwrap();
        advance(Duration::from_secs(39)).await;
        assert_eq!(world.get(false).await, Ok(0));
        advance(Duration::from_secs(1)).await;
        let (renewing, other) = tokio::join!(world.get(false), world.get(false));
        assert_eq!((renewing, other), (Ok(1), Ok(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_renewal_is_an_error_only_once_it_ended() {
        let world = world();
        world.get(false).await.unwrap();
        advance(Duration::from_secs(40)).await;
        assert_eq!(world.get(true).await, Ok(0));
        assert_eq!(world.get(true).await, Ok(0), "the pause after a failure");
        assert_eq!(world.fetches.load(Ordering::Relaxed), 2);
        advance(Duration::from_secs(20)).await;
        assert!(world.get(true).await.is_err());
        assert!(world.get(false).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_is_fetched_anew_once() {
        let world = world();
        world.get(false).await.unwrap();
        let lease = &world.lease;
        let refused = lease.good().unwrap();
        lease.reject(&refused);
        assert_eq!(world.get(false).await, Ok(1));
        lease.reject(&refused);
        assert_eq!(world.get(false).await, Ok(1), "what is held is another");
    }
}
