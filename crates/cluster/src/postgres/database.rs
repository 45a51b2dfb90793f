//! What is known of the database from the requests to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::Error;
use crate::availability::{Access, Availability, Service};
use crate::sequencer::Answer;

/// What the requests to a database show.
#[derive(Debug)]
pub struct Database {
    availability: Arc<Availability>,
    /// Requests without an answer or an error.
    failures: AtomicU64,
    /// Requests under way, and those that wait for a connection.
    requests: AtomicUsize,
    connections_max: usize,
}

/// Counts a request until dropped.
struct Request<'a>(&'a Database);

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Database {
    /// A database that was not asked yet.
    #[must_use]
    pub fn new(connections_max: usize) -> Self {
        Self {
            availability: Arc::new(Availability::of(Service::PostgreSql)),
            failures: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
            connections_max: connections_max.max(1),
        }
    }

    /// Whether it answers.
    pub fn availability(&self) -> &Arc<Availability> {
        &self.availability
    }

    /// Requests that failed, as it did not answer or refused them.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Connections in use: each request takes one.
    pub fn connections(&self) -> usize {
        self.requests.load(Ordering::Relaxed).min(self.connections_max)
    }

    /// Most connections at a time.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// Runs a request over a connection of the pool.
    pub(super) async fn query<T>(&self, query: impl Future<Output = Answer<T>>) -> Answer<T> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let _under_way = Request(self);
        self.observe("query", query).await
    }

    /// Runs a request, and notes what it shows of the database.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn observe<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        let answer = self.availability.observe(Access::Write, what, request).await;
        if answer.as_ref().is_err_and(Error::is_outage) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}
