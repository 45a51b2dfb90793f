//! A cache that loads missing keys from the service: one call per key at a time, shared by all
//! waiters.
//!
//! A call is a task of its own on the runtime of the first waiter, so that it goes on if that
//! waiter gives up. Others wait for it on their own runtimes.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::cache::{Cache, Change, Landed, Limits, Look, Use};
use super::counters::{KeyCache, Operation};
use super::service::Service;
use crate::{Kms, KmsError, KmsFuture};

/// Kind of value in a cache, and how to load it.
pub(super) trait Source: Send + Sync + 'static {
    type Key: ?Sized + Eq + Hash + Send + Sync;
    type Value: Send;
    const OPERATION: Operation;
    const CACHE: KeyCache;

    fn ask<'a>(kms: &'a dyn Kms, key: &'a Self::Key) -> KmsFuture<'a, Self::Value>;
}

/// The cache of a source.
pub(super) struct Loader<S: Source> {
    /// Guards what is known and asked for; never held across a wait.
    cache: Mutex<Cache<S::Key, S::Value>>,
    /// Bounds the calls of this kind, so that the service is not flooded with unknown keys.
    calls: Semaphore,
    service: Arc<Service>,
}

impl<S: Source> Loader<S>
where
    Arc<S::Key>: Borrow<S::Key> + for<'a> From<&'a S::Key>,
{
    pub(super) fn new(limits: Limits, service: Arc<Service>) -> Arc<Self> {
        let cache = Mutex::new(Cache::new(limits));
        Arc::new(Self { cache, calls: Semaphore::new(CALLS_MAX), service })
    }

    /// Uses a value if that needs no wait; `None` if a call for it is under way.
    pub(super) fn get_now<T>(
        self: &Arc<Self>,
        key: &S::Key,
        take: impl FnOnce(&mut S::Value) -> Use<T>,
    ) -> Option<Result<T, KmsError>> {
        let outcome = self.look(key, take).ok()?;
        self.service.counters.count_hit(S::CACHE);
        Some(outcome)
    }

    /// Uses a value, waiting for it where necessary, up to [`WAIT_MAX`] after its call began: who
    /// comes later does not wait for a service that has been silent for so long.
    pub(super) async fn get<T>(
        self: &Arc<Self>,
        key: &S::Key,
        take: impl Fn(&mut S::Value) -> Use<T>,
    ) -> Result<T, KmsError> {
        let (mut flight, departed) = match self.look(key, &take) {
            Ok(outcome) => {
                self.service.counters.count_hit(S::CACHE);
                return outcome;
            }
            Err(waiting) => waiting,
        };
        self.service.counters.count_wait(S::CACHE);
        let outcome = timeout_at(departed + WAIT_MAX, async {
            loop {
                land(flight).await?;
                match self.look(key, &take) {
                    Ok(outcome) => return outcome,
                    Err((next, _)) => flight = next,
                }
            }
        });
        outcome.await.unwrap_or_else(|_| {
            Err(KmsError::Unavailable(format!("no key within {} s", WAIT_MAX.as_secs())))
        })
    }

    /// Forgets what is not to be used.
    pub(super) fn sweep(&self) {
        self.cache().sweep(Instant::now());
    }

    /// The outcome of a look-up, or the call to wait for and when it began.
    fn look<T>(
        self: &Arc<Self>,
        key: &S::Key,
        take: impl FnOnce(&mut S::Value) -> Use<T>,
    ) -> Result<Result<T, KmsError>, (watch::Receiver<Landed>, Instant)> {
        let now = Instant::now();
        let look = self.cache().look(now, key, take);
        match look {
            Look::Ready(taken) => Ok(Ok(taken)),
            Look::ReadyLoad(taken, landing) => {
                self.depart(key, landing);
                Ok(Ok(taken))
            }
            Look::Load(landing) => {
                let flight = landing.subscribe();
                self.depart(key, landing);
                Err((flight, now))
            }
            Look::Wait(flight, departed) => Err((flight, departed)),
            Look::Failed(error) => Ok(Err(error)),
        }
    }

    /// Starts a call.
    fn depart(self: &Arc<Self>, key: &S::Key, landing: watch::Sender<Landed>) {
        let mut flight =
            Flight { loader: Arc::clone(self), key: key.into(), landing, result: None };
        tokio::spawn(async move {
            let permit = flight.loader.calls.acquire().await;
            let call = flight.loader.service.call(S::OPERATION, |kms| S::ask(kms, &flight.key));
            let result = call.await;
            drop(permit);
            flight.result = Some(result);
            drop(flight);
        });
    }

    fn cache(&self) -> MutexGuard<'_, Cache<S::Key, S::Value>> {
        // A panic of one thread must not stop the others: at worst one key is asked for again.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a call to end.
async fn land(mut flight: watch::Receiver<Landed>) -> Result<(), KmsError> {
    match flight.wait_for(Option::is_some).await {
        Ok(landed) => landed.clone().unwrap_or(Ok(())),
        Err(_) => Ok(()),
    }
}

/// A call under way. However it ends, also with its runtime, the cache and the waiters get the
/// result.
struct Flight<S: Source>
where
    Arc<S::Key>: Borrow<S::Key> + for<'a> From<&'a S::Key>,
{
    loader: Arc<Loader<S>>,
    key: Arc<S::Key>,
    landing: watch::Sender<Landed>,
    result: Option<Result<S::Value, KmsError>>,
}

impl<S: Source> Drop for Flight<S>
where
    Arc<S::Key>: Borrow<S::Key> + for<'a> From<&'a S::Key>,
{
    fn drop(&mut self) {
        let given_up = || Err(KmsError::Unavailable("the call was given up".to_owned()));
        let result = self.result.take().unwrap_or_else(given_up);
        let landed = result.as_ref().map(|_| ()).map_err(Clone::clone);
        let change = self.loader.cache().land(Instant::now(), &self.key, result);
        match (change, &landed) {
            (Change::Replaced, _) if S::OPERATION == Operation::GenerateDataKey => {
                self.loader.service.counters.count_replaced();
            }
            // No task waits for this call, so its failure is logged here. A service that does not
            // answer is logged once for all keys.
            (Change::ServesOn, Err(error)) if !matches!(error, KmsError::Unavailable(_)) => {
                tracing::warn!(operation = S::OPERATION.name(), %error, "a key is not renewed");
            }
            _ => {}
        }
        self.landing.send_replace(Some(landed));
    }
}

/// Most calls of one kind at a time.
const CALLS_MAX: usize = 32;
/// How long a call is waited for: all attempts at a service that answers, and no more, since what
/// waits holds up all behind it on its connection. The call itself goes on, so that the next
/// attempt of a client finds the key.
const WAIT_MAX: Duration = Duration::from_secs(2);
