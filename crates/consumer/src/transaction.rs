//! Transactions of an exactly-once app: what handlers returned, and the offsets of what they
//! handled, become visible together (KIP-98, KIP-447).
//!
//! What a handler returns waits in [`Pending`] beside the ledger. A transaction takes all of it at
//! once, together with the offsets, so handlers go on meanwhile and none ever runs inside of an
//! open transaction: a slow handler neither delays readers of committed records nor makes a
//! transaction time out.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use moldau_client::{
    Cluster, CommittedOffset, Delivery, Error, GroupMetadata, Producer, ProducerOptions, Record,
    Result, TopicPartition,
};

use crate::outgoing::{Buffer, Outgoing};
use crate::scheduler::PartitionId;

/// What handlers returned and no transaction has taken yet. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// Guards the records, and that they and the ledger's progress are seen together.
    shared: Arc<Mutex<Records>>,
}

/// The records of each partition that is read, in the order in which they were handled.
#[derive(Debug, Default)]
pub(crate) struct Records {
    by_partition: HashMap<PartitionId, Vec<Outgoing>>,
    bytes: usize,
}

/// Where the handlers of one partition put what they return.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pending: Pending,
    partition: PartitionId,
}

impl Pending {
    /// The lane of a partition that is read from now on.
    pub(crate) fn open(&self, partition: PartitionId) -> Lane {
        self.lock().by_partition.insert(partition, Vec::new());
        Lane { pending: self.clone(), partition }
    }

    /// Whether a transaction is to take it before more is handled.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().bytes >= TRANSACTION_BYTES_MAX
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Records> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// Takes what there is of a partition.
    pub(crate) fn take(&mut self, partition: PartitionId) -> Vec<Outgoing> {
        let records = self.by_partition.get_mut(&partition).map(std::mem::take);
        let records = records.unwrap_or_default();
        self.bytes -= records.iter().map(Outgoing::bytes).sum::<usize>();
        records
    }

    /// Takes what there is of a partition, and nothing more of it from now on.
    pub(crate) fn close(&mut self, partition: PartitionId) -> Vec<Outgoing> {
        let records = self.take(partition);
        self.by_partition.remove(&partition);
        records
    }
}

impl Lane {
    /// Adds what a handler returned, and says by `done` that the record is handled: a transaction
    /// sees both or neither. Nothing is added to a lane that is closed.
    pub(crate) fn settle(&self, returned: &Buffer, done: impl FnOnce()) {
        let mut pending = self.pending.lock();
        let Records { by_partition, bytes } = &mut *pending;
        if let Some(records) = by_partition.get_mut(&self.partition) {
            let returned = returned.take();
            *bytes += returned.iter().map(Outgoing::bytes).sum::<usize>();
            records.extend(returned);
            done();
        }
    }
}

/// Why a transaction has no effect.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Others may have handled the records, or a server was not there: handle them again.
    Aborted(Error),
    /// A topic refuses the output of this index.
    Refused(Error, usize),
    /// Another producer has the transactional id, or the cluster refuses this one for good.
    Final(Error),
}

/// Makes the transactions of an app.
#[derive(Debug)]
pub(crate) struct Transactor {
    cluster: Cluster,
    options: ProducerOptions,
    /// `None` after a transaction of which it is not known how it ended.
    producer: Option<Producer>,
    /// Guards which batch was refused first.
    refused: Arc<Mutex<Option<RefusedBatch>>>,
    /// Topics that refused a batch of several outputs: each goes in a batch of its own until it is
    /// known which of them is to blame.
    alone: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct RefusedBatch {
    error: Error,
    topic: Arc<str>,
    /// Indexes of its outputs.
    outputs: Vec<u64>,
}

impl Transactor {
    /// Takes the transactional id over: what an app before it left open is aborted.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer.
    pub(crate) async fn start(cluster: &Cluster, options: ProducerOptions) -> Result<Self> {
        let refused = Arc::default();
        let producer = Some(start(cluster, &options, &refused).await?);
        let alone = HashSet::new();
        Ok(Self { cluster: cluster.clone(), options, producer, refused, alone })
    }

    /// Makes sure that the last transaction has ended, for as long as the coordinator is not there.
    ///
    /// # Errors
    /// The coordinator refuses.
    pub(crate) async fn recover(&mut self) -> Result<&Producer> {
        let started = match self.producer.take() {
            Some(producer) => producer,
            None => loop {
                match start(&self.cluster, &self.options, &self.refused).await {
                    Ok(producer) => break producer,
                    Err(error) if error.is_retriable() => {
                        tracing::warn!(%error, "no coordinator for transactions yet");
                    }
                    Err(error) => return Err(error),
                }
            },
        };
        Ok(self.producer.insert(started))
    }

    /// Sends `outputs` and commits `offsets` as `member`, together.
    ///
    /// # Errors
    /// Nothing of it is visible then, ever; the next transaction may begin unless it is final.
    pub(crate) async fn commit(
        &mut self,
        member: &GroupMetadata,
        offsets: &[(TopicPartition, CommittedOffset)],
        outputs: &[Outgoing],
    ) -> std::result::Result<(), Refusal> {
        self.recover().await.map_err(Refusal::Final)?;
        let Some(producer) = self.producer.take() else { return Ok(()) };
        *self.refusal() = None;
        let begun = Instant::now();
        let mut culprit = None;
        let written = write(&producer, &self.alone, outputs, &mut culprit).await;
        let written = match written {
            Ok(()) => producer.send_offsets_to_transaction(member, offsets).await,
            failed => failed,
        };
        let mut error = match written {
            Ok(()) => match producer.commit_transaction().await {
                Ok(()) => {
                    self.alone.clear();
                    self.producer = Some(producer);
                    return Ok(());
                }
                Err(Error::NoTransaction) => Error::NoTransaction,
                // Whether it is committed is not known.
                Err(error) => return Err(self.refused(error, begun)),
            },
            Err(error) => error,
        };
        let aborted = producer.abort_transaction().await;
        let refused = self.refusal().take();
        if let Some(RefusedBatch { error: cause, topic, outputs }) = refused {
            culprit = match outputs.as_slice() {
                [output] => usize::try_from(*output).ok(),
                _ => None,
            };
            if culprit.is_none() && cause.is_refused() {
                self.alone.insert(topic);
            }
            error = cause;
        }
        match aborted {
            Ok(()) | Err(Error::NoTransaction) => self.producer = Some(producer),
            Err(fenced) if fenced.is_fenced() => error = fenced,
            Err(error) => tracing::debug!(%error, "a transaction was not aborted"),
        }
        Err(match culprit {
            Some(output) if error.is_refused() => Refusal::Refused(error, output),
            _ => self.refused(error, begun),
        })
    }

    /// What becomes of the app after a transaction that began then.
    fn refused(&self, error: Error, begun: Instant) -> Refusal {
        // The coordinator has ended one that was too old in the same way.
        let is_in_time = begun.elapsed() < self.options.transaction_timeout;
        if error.is_fenced() && is_in_time {
            Refusal::Final(error)
        } else {
            Refusal::Aborted(error)
        }
    }

    fn refusal(&self) -> MutexGuard<'_, Option<RefusedBatch>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a transaction and sends `outputs`; `culprit` is the one that fails it, if one does.
async fn write(
    producer: &Producer,
    alone: &HashSet<Arc<str>>,
    outputs: &[Outgoing],
    culprit: &mut Option<usize>,
) -> Result<()> {
    let mut handles = HashMap::new();
    for (index, output) in outputs.iter().enumerate() {
        *culprit = Some(index);
        if let Entry::Vacant(entry) = handles.entry((output.topic(), output.partition_id())) {
            entry.insert(producer.partition(output.topic(), output.partition_id()).await?);
        }
    }
    *culprit = None;
    let partitions: Vec<_> = handles.values().copied().collect();
    producer.begin_transaction(&partitions).await?;
    for (index, output) in outputs.iter().enumerate() {
        let Some(handle) = handles.get(&(output.topic(), output.partition_id())) else {
            continue;
        };
        *culprit = Some(index);
        let headers = output.headers();
        let record = Record { token: index as u64, ..output.record(&headers) };
        while let Err(error) = producer.send(*handle, &record) {
            let Error::BufferFull = error else { return Err(error) };
            producer.room_for(&record).await;
        }
        if alone.contains(output.topic()) {
            producer.seal(*handle)?;
        }
    }
    *culprit = None;
    Ok(())
}

async fn start(
    cluster: &Cluster,
    options: &ProducerOptions,
    refused: &Arc<Mutex<Option<RefusedBatch>>>,
) -> Result<Producer> {
    let refused = Arc::clone(refused);
    let sink = move |delivery: &Delivery<'_>| {
        if let Some(error) = delivery.error {
            let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.get_or_insert_with(|| RefusedBatch {
                error: error.clone(),
                topic: Arc::clone(delivery.topic),
                outputs: delivery.tokens.to_vec(),
            });
        }
    };
    Producer::start(cluster, options.clone(), sink).await
}

/// Bytes of returned records with which a transaction is made before its time: they are in memory
/// until it is committed.
const TRANSACTION_BYTES_MAX: usize = 16 * 1024 * 1024;
