//! Records that handlers return, to be sent to other topics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use moldau_client::{Cluster, Error, Record, Result, partition_for_key};
use moldau_records::HeaderView;

use crate::refusals::{Refusals, Source};

/// A record to be sent to a topic. A handler returns it, alone or with others; it is sent before
/// the record that was handled counts as done, in an [exactly-once](crate::App::exactly_once) app
/// together with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outgoing {
    topic: Arc<str>,
    partition: Option<i32>,
    timestamp: Option<i64>,
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(Bytes, Option<Bytes>)>,
    /// The record that it came of, once it waits for a transaction.
    source: Option<Source>,
}

impl Outgoing {
    /// A record for `topic`, with neither key nor value. It goes to the partition of its key, or,
    /// without a key, to that with the number of the handled record's partition modulo the number
    /// of partitions.
    pub fn to(topic: impl Into<Arc<str>>) -> Self {
        Self {
            topic: topic.into(),
            partition: None,
            timestamp: None,
            key: None,
            value: None,
            headers: Vec::new(),
            source: None,
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the value.
    #[must_use]
    pub fn value(mut self, value: impl Into<Bytes>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.headers.push((key.into(), Some(value.into())));
        self
    }

    /// Sends it to this partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Sets the timestamp, in ms since 1970. Unless set it is the time at which the handler
    /// returned.
    #[must_use]
    pub fn timestamp(mut self, timestamp: i64) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// A copy of a record that was borrowed.
    pub(crate) fn copy_of(topic: &str, record: &Record<'_>) -> Self {
        let copy = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice);
        let header = |it: &HeaderView<'_>| (Bytes::copy_from_slice(it.key), copy(it.value));
        Self {
            topic: topic.into(),
            partition: None,
            timestamp: Some(record.timestamp),
            key: copy(record.key),
            value: copy(record.value),
            headers: record.headers.iter().map(header).collect(),
            source: None,
        }
    }

    /// Name of the topic.
    pub(crate) fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The record that it came of.
    pub(crate) fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Its partition, once it is [addressed](Self::addressed).
    pub(crate) fn partition_id(&self) -> i32 {
        self.partition.unwrap_or_default()
    }

    /// Bytes that it takes in memory, and about as many in a batch.
    pub(crate) fn bytes(&self) -> usize {
        let len = |part: &Option<Bytes>| part.as_ref().map_or(0, Bytes::len);
        let header = |(key, value): &(Bytes, Option<Bytes>)| HEADER_BYTES + key.len() + len(value);
        RECORD_BYTES
            + len(&self.key)
            + len(&self.value)
            + self.headers.iter().map(header).sum::<usize>()
    }

    /// The same with its partition and timestamp, for a handled record of partition `source`.
    ///
    /// # Errors
    /// [`Error::RecordTooLarge`]; the topic or partition does not exist, or the cluster does not
    /// answer.
    pub(crate) async fn addressed(
        mut self,
        cluster: &Cluster,
        source: i32,
        now_ms: i64,
        bytes_max: usize,
    ) -> Result<Self> {
        let record_bytes = self.bytes();
        if record_bytes > bytes_max {
            return Err(Error::RecordTooLarge { record_bytes, bytes_max });
        }
        let topic = cluster.topic(&self.topic).await?;
        let partitions = topic.partitions.len();
        let partition = match (self.partition, &self.key) {
            (Some(partition), _) => partition,
            (None, Some(key)) => partition_for_key(key, partitions),
            (None, None) => source.rem_euclid(i32::try_from(partitions).unwrap_or(i32::MAX).max(1)),
        };
        if !topic.has_partition(partition) {
            let name = format!("{}-{partition}", self.topic).into();
            return Err(Error::UnknownTopicOrPartition { name });
        }
        self.partition = Some(partition);
        self.timestamp.get_or_insert(now_ms);
        Ok(self)
    }

    /// Its headers, for [`record`](Self::record).
    pub(crate) fn headers(&self) -> Vec<HeaderView<'_>> {
        let headers = self.headers.iter();
        headers.map(|(key, value)| HeaderView { key, value: value.as_deref() }).collect()
    }

    /// It with its [`headers`](Self::headers).
    pub(crate) fn record<'a>(&'a self, headers: &'a [HeaderView<'a>]) -> Record<'a> {
        Record {
            token: 0,
            timestamp: self.timestamp.unwrap_or(-1),
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers,
        }
    }
}

/// What a handler may return: nothing, or records to be sent.
pub trait Outputs: Send {
    /// The records in the order in which they are sent.
    fn into_records(self) -> Vec<Outgoing>;
}

impl Outputs for () {
    fn into_records(self) -> Vec<Outgoing> {
        Vec::new()
    }
}

impl Outputs for Outgoing {
    fn into_records(self) -> Vec<Outgoing> {
        vec![self]
    }
}

impl Outputs for Option<Outgoing> {
    fn into_records(self) -> Vec<Outgoing> {
        self.into_iter().collect()
    }
}

impl Outputs for Vec<Outgoing> {
    fn into_records(self) -> Vec<Outgoing> {
        self
    }
}

/// Records that a transaction is to send once the record that is being handled is done.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Guards the records; handling is sequential, but its future may move between threads.
    returned: Mutex<Returned>,
}

#[derive(Debug)]
struct Returned {
    source: Source,
    /// Offset of the last record that is being handled.
    last: i64,
    records: Vec<Outgoing>,
}

impl Buffer {
    /// For what comes of the records from `source` to offset `last`.
    pub(crate) fn new(source: Source, last: i64) -> Self {
        Self { returned: Mutex::new(Returned { source, last, records: Vec::new() }) }
    }

    /// The same for the record at `offset` of that partition alone; what it holds is dropped.
    pub(crate) fn go_on_at(&self, offset: i64) {
        let mut returned = self.lock();
        (returned.source.offset, returned.last) = (offset, offset);
        returned.records.clear();
    }

    /// Adds records, all or none.
    ///
    /// # Errors
    /// The last transaction with one of them was aborted, for its topic refused it.
    pub(crate) fn add(&self, mut records: Vec<Outgoing>, refusals: &Refusals) -> Result<()> {
        let mut returned = self.lock();
        for record in &mut records {
            if let Some(refused) = refusals.find(&returned.source, returned.last, &record.topic) {
                return Err(refused);
            }
            record.source = Some(returned.source.clone());
        }
        returned.records.extend(records);
        Ok(())
    }

    pub(crate) fn take(&self) -> Vec<Outgoing> {
        std::mem::take(&mut self.lock().records)
    }

    fn lock(&self) -> MutexGuard<'_, Returned> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a record takes beside its parts: more than Kafka's format needs.
const RECORD_BYTES: usize = 128;
const HEADER_BYTES: usize = 10;
