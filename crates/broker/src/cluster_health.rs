//! The services of a cluster as this broker sees them: whether they answer, and what it has asked
//! of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use moldau_cluster::{Availability, Database, ReaderMetrics, StoreMetrics, WriterMetrics};

use crate::submissions::Submissions;

/// What is known of the services of a cluster.
pub(crate) struct ClusterHealth {
    pub(crate) database: Arc<Database>,
    /// Whether the store answers.
    pub(crate) store: Arc<Availability>,
    pub(crate) requests: Arc<StoreMetrics>,
    pub(crate) writer: Arc<WriterMetrics>,
    pub(crate) reader: Arc<ReaderMetrics>,
    /// Byte ranges of objects that this broker replaced by sorted ones.
    pub(crate) ranges_sorted: AtomicU64,
    pub(crate) submissions: Arc<Submissions>,
}

impl ClusterHealth {
    /// The database and the store.
    pub(crate) fn services(&self) -> [&Availability; 2] {
        [self.database.availability(), &self.store]
    }

    /// Which services have been away for too long to serve clients.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let away = self.services().into_iter().filter_map(|service| {
            let away_for = service.lasting_outage()?;
            let (name, seconds) = (service.service().name(), away_for.as_secs());
            Some(format!("requests to {name} have failed for {seconds} s"))
        });
        let away: Vec<String> = away.collect();
        (!away.is_empty()).then(|| away.join("; "))
    }
}
