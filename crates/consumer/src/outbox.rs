//! Records that layers and handlers send to other topics.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_client::{
    Cluster, Delivery, Error, Producer, ProducerOptions, Record, Result, partition_for_key,
};
use tokio::sync::{OnceCell, oneshot};

use crate::outgoing::{Buffer, Outgoing};
use crate::refusals::Refusals;

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
    by_token: Mutex<HashMap<u64, Asker>>,
}

type Asker = oneshot::Sender<std::result::Result<(), Refused>>;

/// A record that was not delivered.
struct Refused {
    error: Error,
    /// Records of its batch, which have the same outcome.
    batch_records: usize,
}

/// A record and its place.
struct Placed<'a> {
    topic: &'a str,
    partition: i32,
    record: Record<'a>,
}

/// Which records may be in the batch of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Company {
    Any,
    None,
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
    refusals: &'a Refusals,
    now_ms: i64,
}

impl<'a> Sending<'a> {
    pub(crate) fn new(
        outbox: &'a Outbox,
        returned: Option<&'a Buffer>,
        refusals: &'a Refusals,
        now_ms: i64,
    ) -> Self {
        Self { outbox, returned, refusals, now_ms }
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
            let mut placed = Vec::with_capacity(records.len());
            for (to, record) in records {
                let partition = to.of(record.key, self.outbox.partitions(to.topic).await?);
                placed.push(Placed { topic: to.topic, partition, record });
            }
            return self.outbox.send_all(&placed).await;
        };
        let mut addressed = Vec::with_capacity(records.len());
        for (to, record) in records {
            let partition = to.of(record.key, self.outbox.partitions(to.topic).await?);
            let record = Outgoing::copy_of(to.topic, &record).partition(partition);
            addressed.push(self.address(record, partition).await?);
        }
        buffer.add(addressed, self.refusals)
    }

    /// Sends what the handler of a record of partition `source` returned, in this order. Returns as
    /// [`send`](Self::send) does.
    pub(crate) async fn send_returned(&self, source: i32, records: Vec<Outgoing>) -> Result<()> {
        let mut addressed = Vec::with_capacity(records.len());
        for record in records {
            addressed.push(self.address(record, source).await?);
        }
        if let Some(buffer) = self.returned {
            return buffer.add(addressed, self.refusals);
        }
        let headers: Vec<_> = addressed.iter().map(Outgoing::headers).collect();
        let placed = addressed.iter().zip(&headers).map(|(record, headers)| Placed {
            topic: record.topic(),
            partition: record.partition_id(),
            record: record.record(headers),
        });
        self.outbox.send_all(&placed.collect::<Vec<_>>()).await
    }

    async fn address(&self, record: Outgoing, source: i32) -> Result<Outgoing> {
        let Outbox { cluster, options, .. } = self.outbox;
        record.addressed(cluster, source, self.now_ms, options.request_bytes_max).await
    }
}

impl Outbox {
    pub(crate) fn new(cluster: Cluster, options: ProducerOptions) -> Self {
        let (producer, waiting) = (OnceCell::new(), Arc::default());
        Self { cluster, options, producer, next_token: AtomicU64::new(0), waiting }
    }

    /// Sends a record, outside of any transaction. Returns when the cluster has it.
    pub(crate) async fn send_to(&self, to: To<'_>, record: Record<'_>) -> Result<()> {
        let partition = to.of(record.key, self.partitions(to.topic).await?);
        self.send_all(&[Placed { topic: to.topic, partition, record }]).await
    }

    /// Sends records in this order. Returns when the cluster has all of them.
    async fn send_all(&self, records: &[Placed<'_>]) -> Result<()> {
        let mut sent = Vec::with_capacity(records.len());
        for placed in records {
            sent.push(self.enqueue(placed, Company::Any).await?);
        }
        for (placed, sent) in records.iter().zip(sent) {
            match sent.outcome().await {
                Ok(()) => {}
                // Another record of its batch may be to blame.
                Err(refused) if refused.batch_records > 1 && refused.error.is_refused() => {
                    let alone = self.enqueue(placed, Company::None).await?;
                    alone.outcome().await.map_err(|refused| refused.error)?;
                }
                Err(refused) => return Err(refused.error),
            }
        }
        Ok(())
    }

    /// Number of partitions of a topic.
    async fn partitions(&self, topic: &str) -> Result<usize> {
        Ok(self.cluster.topic(topic).await?.partitions.len())
    }

    /// Gives a record to the producer.
    async fn enqueue(&self, placed: &Placed<'_>, company: Company) -> Result<Sent<'_>> {
        let producer = self.producer.get_or_try_init(|| self.start()).await?;
        let handle = producer.partition(placed.topic, placed.partition).await?;
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let record = Record { token, ..placed.record };
        let (sender, outcome) = oneshot::channel();
        self.waiting.lock().insert(token, sender);
        // Whoever is cancelled waits no longer.
        let sent = Sent { outcome, _registration: Registration { waiting: &self.waiting, token } };
        loop {
            if company == Company::None {
                producer.seal(handle)?;
            }
            match producer.send(handle, &record) {
                Err(Error::BufferFull) => producer.room_for(&record).await,
                given => break given?,
            }
        }
        if company == Company::None {
            producer.seal(handle)?;
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
struct Sent<'a> {
    outcome: oneshot::Receiver<std::result::Result<(), Refused>>,
    _registration: Registration<'a>,
}

impl Sent<'_> {
    /// Waits until the cluster has the record.
    async fn outcome(self) -> std::result::Result<(), Refused> {
        let outcome = self.outcome.await;
        outcome.unwrap_or(Err(Refused { error: Error::Closed, batch_records: 1 }))
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
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Asker>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, delivery: &Delivery<'_>) {
        let mut by_token = self.lock();
        for token in delivery.tokens {
            if let Some(sender) = by_token.remove(token) {
                let batch_records = delivery.tokens.len();
                let refused = |error: &Error| Refused { error: error.clone(), batch_records };
                let outcome = delivery.error.map_or(Ok(()), |error| Err(refused(error)));
                // A receiver that is gone was cancelled.
                drop(sender.send(outcome));
            }
        }
    }
}
