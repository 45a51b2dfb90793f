//! An object store whose requests are counted, and whose outages are logged.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};

use crate::availability::{Access, Availability};
use crate::durations::Durations;
use crate::sequencer::{Answer, ObjectKey};
use crate::store::Store;

/// What is counted of the requests to a store.
#[derive(Debug, Default)]
pub struct StoreMetrics {
    /// Durations of PUTs that succeeded.
    pub put_durations: Durations,
    /// Bytes of the objects that they put.
    pub put_bytes: AtomicU64,
    /// Durations of GETs that succeeded.
    pub get_durations: Durations,
    /// Bytes that they gave.
    pub get_bytes: AtomicU64,
    /// Objects that were deleted.
    pub deleted: AtomicU64,
    /// PUTs without an answer, and those that were refused.
    pub put_failures: AtomicU64,
    /// The same for GETs.
    pub get_failures: AtomicU64,
    /// The same for deletions.
    pub delete_failures: AtomicU64,
    /// The same for lists.
    pub list_failures: AtomicU64,
}

/// A store whose requests are counted.
#[derive(Debug)]
pub struct Measured<S> {
    store: Arc<S>,
    availability: Arc<Availability>,
    metrics: Arc<StoreMetrics>,
}

impl<S: Store> Measured<S> {
    /// Requests to this store, which show whether it is available.
    pub fn new(store: Arc<S>, availability: Arc<Availability>) -> Self {
        Self { store, availability, metrics: Arc::default() }
    }

    /// What was counted.
    pub fn metrics(&self) -> &Arc<StoreMetrics> {
        &self.metrics
    }

    /// Whether the store answers.
    pub fn availability(&self) -> &Arc<Availability> {
        &self.availability
    }

    /// Puts a small object now and then while the store is away, so that the end of an outage shows
    /// also if no producer sends. Goes on until the returned future is dropped.
    pub async fn probe(&self) {
        loop {
            sleep(PROBE_INTERVAL).await;
            if self.availability.away_for().is_some() {
                // It is tried again if the store is still away.
                drop(timeout(PROBE_MAX, self.probe_once()).await);
            }
        }
    }

    /// Puts an object and deletes it. If this ends early, it is an orphan like any other.
    async fn probe_once(&self) -> Answer<()> {
        let key = ObjectKey::fresh();
        let put = self.store.put(key, Bytes::from_static(PROBE));
        self.availability.observe(Access::Write, "PUT", put).await?;
        self.store.delete(&[key]).await
    }

    async fn counted<T>(
        &self,
        (access, what): (Access, &'static str),
        failures: &AtomicU64,
        request: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        let answer = self.availability.observe(access, what, request).await;
        if answer.as_ref().is_err_and(crate::Error::is_outage) {
            failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

impl<S: Store> Store for Measured<S> {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Answer<()> {
        let (began, size, metrics) = (Instant::now(), length(bytes.len()), &self.metrics);
        let put = self.store.put(key, bytes);
        self.counted((Access::Write, "PUT"), &metrics.put_failures, put).await?;
        metrics.put_durations.add(began.elapsed());
        metrics.put_bytes.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    async fn expect_owned(&self) -> Answer<()> {
        self.store.expect_owned().await
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        let (began, metrics) = (Instant::now(), &self.metrics);
        let get = self.store.get(key, range);
        let bytes = self.counted((Access::Read, "GET"), &metrics.get_failures, get).await?;
        metrics.get_durations.add(began.elapsed());
        metrics.get_bytes.fetch_add(length(bytes.len()), Ordering::Relaxed);
        Ok(bytes)
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Answer<()> {
        // Nothing is sent for no keys, so that shows nothing either.
        if keys.is_empty() {
            return Ok(());
        }
        let (delete, metrics) = (self.store.delete(keys), &self.metrics);
        self.counted((Access::Read, "DELETE"), &metrics.delete_failures, delete).await?;
        metrics.deleted.fetch_add(length(keys.len()), Ordering::Relaxed);
        Ok(())
    }

    async fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> Answer<Vec<ObjectKey>> {
        let list = self.store.list(after, age, keys_max);
        self.counted((Access::Read, "LIST"), &self.metrics.list_failures, list).await
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// An outage is over when a PUT succeeds again, so this is how late its end shows.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// A PUT that was under way when the store hung may have lost its connection.
const PROBE_MAX: Duration = Duration::from_secs(5);
const PROBE: &[u8] = b"moldau";
