//! What is counted of connections: those open, what they carried, and why some were refused.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::refusal::{Refusal, Refusals};

/// Counters of all connections of one set of network threads.
///
/// Every counter is monotonic except [`Metrics::connections_open`]. Bytes are wire bytes,
/// length prefixes included. A connection adds to them once per burst, not once per request.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections being served.
    pub connections_open: AtomicU64,
    /// Connections accepted and served.
    pub connections_total: AtomicU64,
    /// Requests handed to a service.
    pub requests: AtomicU64,
    /// Bytes read.
    pub bytes_in: AtomicU64,
    /// Bytes written.
    pub bytes_out: AtomicU64,
    refusals: Refusals,
}

impl Metrics {
    /// Counts that `peer`, where it is known, was refused for a reason that must hold no secret,
    /// and tells operators in a line of the log, of each cause at most one in five seconds. `at`
    /// is what the peer came to: a listener, a virtual cluster.
    pub fn refuse(
        &self,
        cause: Refusal,
        peer: Option<SocketAddr>,
        at: &dyn fmt::Display,
        why: &dyn fmt::Display,
    ) {
        self.refusals.refuse(cause, peer, at, why);
    }

    /// How many were refused for this cause.
    #[must_use]
    pub fn refused(&self, cause: Refusal) -> u64 {
        self.refusals.count(cause)
    }

    /// Why connections were refused or closed, each cause with its count.
    #[must_use]
    pub fn refusals(&self) -> [(&'static str, u64); Refusal::ALL.len()] {
        Refusal::ALL.map(|cause| (cause.name(), self.refused(cause)))
    }
}

/// Adds to a counter that orders nothing else.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
