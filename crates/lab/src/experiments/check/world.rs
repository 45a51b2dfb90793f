//! What all clients of a run know, and how they poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use moldau_checker::Seen;
use moldau_client::{
    Cluster, ClusterOptions, Delivery, Fetched, Fetcher, FetcherOptions, Isolation,
    PartitionHandle, Producer, ProducerOptions, Reset,
};
use moldau_records::Decompressor;
use tokio::time::Instant;

use super::recorder::{Recorder, Replies};

/// How long clients wait for an answer: less than the broker may stand still, so that requests are
/// repeated.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a batch is tried.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(8);

/// How long other requests are tried. A JVM takes some seconds to come back.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(15);

/// After how long the cluster aborts a transaction whose client is gone.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a poll waits for records.
pub(super) const POLL_WAIT: Duration = Duration::from_millis(50);

/// Bytes to which a batch may unpack. Nothing is compressed.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The value of records whose bytes are not a value of the workload: no client sends it.
const FOREIGN: u64 = u64::MAX;

/// What all clients of a run know.
pub(super) struct World {
    /// Addresses, separated by commas.
    pub(super) bootstrap: String,
    pub(super) options: ClusterOptions,
    pub(super) topic: String,
    pub(super) recorder: Arc<Recorder>,
    /// The end of each partition, as far as it was polled.
    pub(super) ends: Vec<AtomicI64>,
    /// Mean pause of a client between two operations.
    pub(super) pause: Duration,
    /// Whether clients end in the middle of their work.
    pub(super) clients_end: bool,
    pub(super) is_over: AtomicBool,
}

impl World {
    pub(super) async fn connect(&self) -> moldau_client::Result<Cluster> {
        let bootstrap: Vec<&str> = self.bootstrap.split(',').collect();
        Cluster::connect(&bootstrap, self.options.clone()).await
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.recorder.is_full()
    }

    /// A transactional id, the same for all clients of a place.
    pub(super) fn transactional_id(&self, place: usize) -> String {
        format!("{}-{place}", self.topic)
    }

    /// A producer, with the replies to its sends.
    pub(super) async fn producer(
        &self,
        cluster: &Cluster,
        transactional_id: Option<String>,
    ) -> moldau_client::Result<(Producer, Replies)> {
        let options = ProducerOptions {
            linger: Duration::ZERO,
            delivery_timeout: DELIVERY_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            transactional_id,
            transaction_timeout: TRANSACTION_TIMEOUT,
            ..ProducerOptions::default()
        };
        let replies = Replies::new(&self.recorder);
        let sink = replies.clone();
        let take = move |delivery: &Delivery<'_>| sink.take(delivery);
        Ok((Producer::start(cluster, options, take).await?, replies))
    }

    pub(super) fn fetcher(cluster: &Cluster) -> Fetcher {
        let options = FetcherOptions {
            isolation: Isolation::ReadCommitted,
            reset: Reset::Earliest,
            max_wait: Duration::from_millis(100),
            ..FetcherOptions::default()
        };
        Fetcher::start(cluster, options)
    }

    pub(super) async fn handles(
        &self,
        producer: &Producer,
    ) -> moldau_client::Result<Vec<PartitionHandle>> {
        let mut handles = Vec::new();
        for partition in (0..).take(self.ends.len()) {
            handles.push(producer.partition(&self.topic, partition).await?);
        }
        Ok(handles)
    }
}

/// A fetcher and what it needs.
pub(super) struct Polling {
    pub(super) fetcher: Fetcher,
    pub(super) decompressor: Decompressor,
}

impl Polling {
    /// The partition and the records of an answer.
    pub(super) fn records(&mut self, fetched: &Fetched) -> moldau_client::Result<(u32, Vec<Seen>)> {
        let mut records = Vec::new();
        fetched.for_each_record(&mut self.decompressor, BATCH_BYTES_MAX, |record| {
            let bytes = record.value().and_then(|value| value.try_into().ok());
            let value = bytes.map_or(FOREIGN, u64::from_be_bytes);
            records.push(Seen { offset: record.offset(), value });
        })?;
        Ok((u32::try_from(fetched.partition).unwrap_or(u32::MAX), records))
    }
}

/// When something that should have happened by then is given up.
pub(super) fn deadline(within: Duration) -> Instant {
    Instant::now() + within
}
