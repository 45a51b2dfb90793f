//! Records that layers send to other topics.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_client::{
    Cluster, Delivery, Error, Producer, ProducerOptions, Record, Result, partition_for_key,
};
use tokio::sync::{OnceCell, oneshot};

/// Where a record is to be sent: to the partition of its key, or, without a key, to `partition`
/// modulo the number of partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct To<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    /// Whether the partition is that of a record with a key too.
    pub(crate) keeps_partition: bool,
}

/// Sends records and waits for their outcome. The producer starts with the first of them.
pub(crate) struct Outbox {
    cluster: Cluster,
    producer: OnceCell<Producer>,
    next_token: AtomicU64,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Guards who waits for which record.
    by_token: Mutex<HashMap<u64, oneshot::Sender<Result<()>>>>,
}

impl<'a> To<'a> {
    /// This partition, modulo the number of partitions.
    pub(crate) fn partition(topic: &'a str, partition: i32) -> Self {
        Self { topic, partition, keeps_partition: true }
    }

    /// The partition of the record's key, or, without a key, this one.
    pub(crate) fn key(topic: &'a str, partition: i32) -> Self {
        Self { topic, partition, keeps_partition: false }
    }
}

impl Outbox {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let (producer, waiting) = (OnceCell::new(), Arc::default());
        Self { cluster, producer, next_token: AtomicU64::new(0), waiting }
    }

    /// Sends a record. Returns when the cluster has it.
    pub(crate) async fn send_to(&self, to: To<'_>, record: Record<'_>) -> Result<()> {
        self.enqueue(to, record).await?.outcome().await
    }

    /// Gives a record to the producer.
    pub(crate) async fn enqueue(&self, to: To<'_>, record: Record<'_>) -> Result<Sent<'_>> {
        let To { topic, partition, keeps_partition } = to;
        let producer = self.producer.get_or_try_init(|| self.start()).await?;
        let partitions = self.cluster.topic(topic).await?.partitions.len();
        let count = i32::try_from(partitions).unwrap_or(i32::MAX).max(1);
        let partition = match record.key {
            Some(key) if !keeps_partition => partition_for_key(key, partitions),
            _ => partition.rem_euclid(count),
        };
        let handle = producer.partition(topic, partition).await?;
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let record = Record { token, ..record };
        let (sender, outcome) = oneshot::channel();
        self.waiting.lock().insert(token, sender);
        // Whoever is cancelled waits no longer.
        let sent = Sent { outcome, _registration: Registration { waiting: &self.waiting, token } };
        loop {
            match producer.send(handle, &record) {
                Err(Error::BufferFull) => producer.room_for(&record).await,
                given => break given?,
            }
        }
        Ok(sent)
    }

    async fn start(&self) -> Result<Producer> {
        let waiting = Arc::clone(&self.waiting);
        let sink = move |delivery: &Delivery<'_>| waiting.settle(delivery);
        Producer::start(&self.cluster, ProducerOptions::default(), sink).await
    }
}

/// A record on its way. Dropping it waits no longer for the outcome.
pub(crate) struct Sent<'a> {
    outcome: oneshot::Receiver<Result<()>>,
    _registration: Registration<'a>,
}

impl Sent<'_> {
    /// Waits until the cluster has the record.
    pub(crate) async fn outcome(self) -> Result<()> {
        self.outcome.await.map_err(|_| Error::Closed)?
    }
}

struct Registration<'a> {
    waiting: &'a Waiting,
    token: u64,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.token);
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<()>>>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, delivery: &Delivery<'_>) {
        let mut by_token = self.lock();
        for token in delivery.tokens {
            if let Some(sender) = by_token.remove(token) {
                let outcome = delivery.error.map_or(Ok(()), |error| Err(error.clone()));
                // A receiver that is gone was cancelled.
                drop(sender.send(outcome));
            }
        }
    }
}
