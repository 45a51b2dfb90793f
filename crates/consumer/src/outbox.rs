//! Records that layers and handlers send to other topics.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_client::{
    Cluster, Delivery, Error, Producer, ProducerOptions, Record, Result, partition_for_key,
};
use tokio::sync::{OnceCell, oneshot};

use crate::outgoing::{Buffer, Outgoing};

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
    options: ProducerOptions,
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

    /// The partition of a topic with `count` partitions.
    pub(crate) fn of(self, key: Option<&[u8]>, count: usize) -> i32 {
        match key {
            Some(key) if !self.keeps_partition => partition_for_key(key, count),
            _ => self.partition.rem_euclid(i32::try_from(count).unwrap_or(i32::MAX).max(1)),
        }
    }
}

/// How the records are sent that come of one record.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'a> {
    outbox: &'a Outbox,
    /// Where they wait for their transaction; `None` without one.
    returned: Option<&'a Buffer>,
    now_ms: i64,
}

impl<'a> Sending<'a> {
    pub(crate) fn new(outbox: &'a Outbox, returned: Option<&'a Buffer>, now_ms: i64) -> Self {
        Self { outbox, returned, now_ms }
    }

    /// Sends a record. Returns when the cluster has it, or when it is part of what the next
    /// transaction sends.
    pub(crate) async fn send(&self, to: To<'_>, record: Record<'_>) -> Result<()> {
        match self.returned {
            None => self.outbox.send_to(to, record).await,
            Some(_) => self.send_all(vec![(to, record)]).await,
        }
    }

    /// Sends records in this order. Returns as [`send`](Self::send) does.
    pub(crate) async fn send_all(&self, records: Vec<(To<'_>, Record<'_>)>) -> Result<()> {
        let Some(buffer) = self.returned else {
            let mut sent = Vec::with_capacity(records.len());
            for (to, record) in records {
                sent.push(self.outbox.enqueue(to, record).await?);
            }
            return outcomes(sent).await;
        };
        let mut addressed = Vec::with_capacity(records.len());
        for (to, record) in records {
            let partition = to.of(record.key, self.outbox.partitions(to.topic).await?);
            let record = Outgoing::copy_of(to.topic, &record).partition(partition);
            addressed.push(self.address(record, partition).await?);
        }
        buffer.add(addressed);
        Ok(())
    }

    /// Sends what the handler of a record of partition `source` returned, in this order. Returns as
    /// [`send`](Self::send) does.
    pub(crate) async fn send_returned(&self, source: i32, records: Vec<Outgoing>) -> Result<()> {
        let mut addressed = Vec::with_capacity(records.len());
        for record in records {
            addressed.push(self.address(record, source).await?);
        }
        if let Some(buffer) = self.returned {
            buffer.add(addressed);
            return Ok(());
        }
        let mut sent = Vec::with_capacity(addressed.len());
        for record in &addressed {
            let headers = record.headers();
            let (topic, partition) = (record.topic(), record.partition_id());
            sent.push(self.outbox.enqueue_at(topic, partition, record.record(&headers)).await?);
        }
        outcomes(sent).await
    }

    async fn address(&self, record: Outgoing, source: i32) -> Result<Outgoing> {
        let Outbox { cluster, options, .. } = self.outbox;
        record.addressed(cluster, source, self.now_ms, options.request_bytes_max).await
    }
}

async fn outcomes(sent: Vec<Sent<'_>>) -> Result<()> {
    for record in sent {
        record.outcome().await?;
    }
    Ok(())
}

impl Outbox {
    pub(crate) fn new(cluster: Cluster, options: ProducerOptions) -> Self {
        let (producer, waiting) = (OnceCell::new(), Arc::default());
        Self { cluster, options, producer, next_token: AtomicU64::new(0), waiting }
    }

    /// Sends a record, outside of any transaction. Returns when the cluster has it.
    pub(crate) async fn send_to(&self, to: To<'_>, record: Record<'_>) -> Result<()> {
        self.enqueue(to, record).await?.outcome().await
    }

    /// Gives a record to the producer.
    async fn enqueue(&self, to: To<'_>, record: Record<'_>) -> Result<Sent<'_>> {
        let partition = to.of(record.key, self.partitions(to.topic).await?);
        self.enqueue_at(to.topic, partition, record).await
    }

    /// Number of partitions of a topic.
    async fn partitions(&self, topic: &str) -> Result<usize> {
        Ok(self.cluster.topic(topic).await?.partitions.len())
    }

    async fn enqueue_at(
        &self,
        topic: &str,
        partition: i32,
        record: Record<'_>,
    ) -> Result<Sent<'_>> {
        let producer = self.producer.get_or_try_init(|| self.start()).await?;
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
        Producer::start(&self.cluster, self.options.clone(), sink).await
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
