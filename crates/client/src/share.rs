//! A member of a share group (KIP-932): several members read a partition side by side, and each
//! record is locked for one of them until that one says what became of it.
//!
//! | module | what it holds |
//! |---|---|
//! | `consumer` | [`ShareConsumer`]: what its owner calls |
//! | `session` | what is asked of a broker and said of its records: no I/O |
//! | `request` | ShareFetch and ShareAcknowledge on the wire |

mod consumer;
mod request;
mod session;

use std::time::Duration;

use bytes::Bytes;
use moldau_records::{Decompressor, RecordView, iter_batches};

pub use self::consumer::ShareConsumer;
pub use self::session::Acknowledgement;
use crate::Result;
use crate::metadata::TopicRef;
use crate::offsets::TopicPartition;

/// Who says what became of records (`share.acknowledgement.mode`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AcknowledgeMode {
    /// What [`ShareConsumer::next`] returned is accepted by the following call, unless something
    /// else was said of it.
    #[default]
    Implicit,
    /// The caller says it of each record. One of which it says nothing stays locked for the
    /// duration that the group has for it, and is then delivered again.
    Explicit,
}

/// Options of a member of a share group. Names and defaults are Kafka's unless said otherwise.
#[derive(Clone, Debug)]
pub struct ShareOptions {
    /// Topics to read. One that does not exist has no partitions until it is created.
    pub topics: Vec<String>,
    /// Who says what became of records.
    pub acknowledge: AcknowledgeMode,
    /// Where the member is (`client.rack`).
    pub rack: Option<String>,
    /// How long a broker may wait for `min_bytes` (`fetch.max.wait.ms`).
    pub max_wait: Duration,
    /// Bytes that end the wait (`fetch.min.bytes`).
    pub min_bytes: i32,
    /// Bytes of one answer (`fetch.max.bytes`). One answer per broker is kept, and none is asked
    /// for before the last was returned to the caller.
    pub max_bytes: i32,
    /// Records of one answer (`max.poll.records`); brokers give whole batches, so it may be more.
    pub max_records: i32,
    /// Bytes that one batch may unpack to. Not in Kafka.
    pub unpacked_bytes_max: usize,
}

impl Default for ShareOptions {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            acknowledge: AcknowledgeMode::Implicit,
            rack: None,
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            max_bytes: 50 * 1024 * 1024,
            max_records: 500,
            unpacked_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// Consecutive offsets that a member holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Acquired {
    /// The first of them.
    pub first_offset: i64,
    /// The last of them.
    pub last_offset: i64,
    /// How often they were delivered, this time included.
    pub delivery_count: i16,
}

/// Records of one partition that the member holds.
#[derive(Debug)]
pub struct ShareFetched {
    /// Topic name and id.
    pub topic: TopicRef,
    /// Partition number.
    pub partition: i32,
    /// Which records of the batches it holds, in order.
    pub acquired: Vec<Acquired>,
    /// How long it holds them, counted from the moment at which the broker answered.
    pub lock_duration: Duration,
    /// The batches, as the broker stores them.
    pub bytes: Bytes,
    node: i32,
    unpacked_bytes_max: usize,
}

impl ShareFetched {
    /// Gives each record that is held to `take`, with the number of its deliveries, after its
    /// batch's CRC was checked.
    ///
    /// # Errors
    /// A batch is damaged, or unpacks to more than the options say.
    pub fn for_each_record(
        &self,
        decompressor: &mut Decompressor,
        mut take: impl FnMut(&RecordView<'_>, i16),
    ) -> Result<()> {
        let mut acquired = self.acquired.iter().peekable();
        for batch in iter_batches(&self.bytes) {
            let batch = batch?;
            if batch.is_control() {
                continue;
            }
            batch.check_crc()?;
            for record in batch.records(decompressor, self.unpacked_bytes_max)? {
                let record = record?;
                let offset = record.offset();
                while acquired.next_if(|range| range.last_offset < offset).is_some() {}
                match acquired.peek() {
                    Some(range) if range.first_offset <= offset => {
                        take(&record, range.delivery_count);
                    }
                    Some(_) => {}
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// How often the record at `offset` was delivered, this time included; `None` if it is not
    /// held.
    #[must_use]
    pub fn delivery_count(&self, offset: i64) -> Option<i16> {
        let after = self.acquired.partition_point(|range| range.last_offset < offset);
        let range = self.acquired.get(after).filter(|range| range.first_offset <= offset)?;
        Some(range.delivery_count)
    }

    /// Number of records that are held.
    #[must_use]
    pub fn records_count(&self) -> usize {
        let count = |range: &Acquired| range.last_offset - range.first_offset + 1;
        usize::try_from(self.acquired.iter().map(count).sum::<i64>()).unwrap_or(0)
    }

    /// Topic and partition number as one key.
    #[must_use]
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.name.clone(), partition: self.partition }
    }
}
