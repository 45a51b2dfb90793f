//! What the partitions of a fetch give, within the bytes of its answer and its memory.

use moldau_protocol::ErrorCode;
use moldau_protocol::fetch::FetchedPartition;
use moldau_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, PartitionData,
};

use crate::error::read_code;
use crate::fetch_session::{FetchPartition, Noteworthy, TopicRef};
use crate::logs::{Error, Isolation, Log, PendingRead, Read, ReadLimits, Reading};

/// Reads of one fetch that wait for the disk at a time.
const COLD_READS_MAX: usize = 8;

/// What the logs gave.
pub(crate) struct Gathered {
    pub(crate) partitions: Vec<Served>,
    pub(crate) bytes: usize,
    /// Memory that the records keep in use.
    pub(crate) memory: usize,
    /// Bytes that count towards the least that is waited for.
    pub(crate) available: usize,
    pub(crate) has_error: bool,
}

/// One partition of an answer.
pub(crate) struct Served {
    pub(crate) topic: TopicRef,
    pub(crate) fetched: FetchedPartition,
    pub(crate) noteworthy: Noteworthy,
    /// As many bytes as there are, up to those that the partition is allowed: whole batches may be
    /// less, where one more has no room.
    available: usize,
    /// Memory that the records keep in use.
    pub(crate) memory: usize,
}

/// Partitions in the order of the request. Reads that wait for the disk are under way together, up
/// to a number; what follows the first of them is settled after it.
pub(crate) struct Gathering<'a> {
    bytes_max: usize,
    /// Memory that all of it may take, reads under way included.
    memory_max: usize,
    isolation: Isolation,
    /// The rest of `bytes_max` or `memory_max` was too little for a batch: nothing more is read,
    /// since each read would bring batches from the disk only to find the same.
    is_full: bool,
    /// Memory that the first batch takes, if that is more than there may be.
    needed: Option<usize>,
    /// What is settled.
    gathered: Gathered,
    /// What follows, the first of it being a read that waits for the disk.
    open: Vec<Open<'a>>,
    /// Reads in `open` that wait for the disk.
    cold: usize,
    /// Bytes that `open` comes to at most, and memory.
    open_bytes: usize,
    open_memory: usize,
}

/// A partition that is not settled.
enum Open<'a> {
    Served(Served),
    Cold {
        asked: &'a FetchPartition,
        log: Log,
        read: PendingRead,
        /// It may take less than the partition is allowed.
        is_cut: bool,
    },
}

impl<'a> Gathering<'a> {
    /// Of answers with so many bytes that take so much memory at most.
    pub(crate) fn new(
        (bytes_max, memory_max): (usize, usize),
        isolation: Isolation,
        partitions: usize,
    ) -> Self {
        let partitions = Vec::with_capacity(partitions);
        Self {
            bytes_max,
            memory_max,
            isolation,
            is_full: false,
            needed: None,
            gathered: Gathered { partitions, bytes: 0, memory: 0, available: 0, has_error: false },
            open: Vec::new(),
            cold: 0,
            open_bytes: 0,
            open_memory: 0,
        }
    }

    pub(crate) fn add(&mut self, served: Served) {
        if self.open.is_empty() {
            self.gathered.add(served);
        } else {
            self.open_bytes += served.bytes();
            self.open_memory += served.memory;
            self.open.push(Open::Served(served));
        }
    }

    pub(crate) async fn read(&mut self, asked: &'a FetchPartition, log: Log) {
        if let Some(served) = diverged(asked, &log) {
            return self.add(served);
        }
        let wanted = usize::try_from(asked.bytes_max).unwrap_or(0);
        // Where the reads under way may take what this one is allowed, their true size counts.
        let is_pressed = wanted > self.room() || self.cold >= COLD_READS_MAX;
        if !self.open.is_empty() && is_pressed {
            self.settle().await;
        }
        let mut begun = self.begin(asked, &log, wanted);
        if !self.open.is_empty() && begun.as_ref().is_ok_and(|begun| !self.has_memory(begun)) {
            self.settle().await;
            begun = self.begin(asked, &log, wanted);
        }
        if let Ok(outcome) = &begun
            && !self.has_memory(outcome)
        {
            if self.gathered.bytes == 0 {
                self.needed = Some(outcome.memory());
                return;
            }
            self.is_full = true;
            begun = self.begin(asked, &log, wanted);
        }
        match begun {
            Ok(Reading::Ready(read)) => self.add(served(asked, read, self.isolation)),
            Ok(Reading::Pending(read)) => {
                let bytes_max = wanted.min(self.room());
                let is_cut = bytes_max < wanted && !self.takes_one();
                self.cold += 1;
                self.open_bytes += bytes_max;
                self.open_memory += read.memory();
                self.open.push(Open::Cold { asked, log, read, is_cut });
            }
            Err(error) => self.add(failed(asked, &log, &error)),
        }
    }

    fn begin(&self, asked: &FetchPartition, log: &Log, wanted: usize) -> Result<Reading, Error> {
        log.read(
            asked.fetch_offset,
            ReadLimits {
                bytes_max: wanted.min(self.room()),
                memory_max: self.memory_left(),
                min_one: self.takes_one(),
            },
            self.isolation,
        )
    }

    /// Whether the next batch is returned whatever its size: the first of the answer (KIP-74).
    fn takes_one(&self) -> bool {
        self.gathered.bytes == 0 && self.open.is_empty()
    }

    fn has_memory(&self, read: &Reading) -> bool {
        read.memory() <= self.memory_left()
    }

    fn memory_left(&self) -> usize {
        self.memory_max.saturating_sub(self.gathered.memory + self.open_memory)
    }

    fn room(&self) -> usize {
        match self.is_full {
            true => 0,
            false => self.bytes_max.saturating_sub(self.gathered.bytes + self.open_bytes),
        }
    }

    /// Whether there is too little memory for the first batch.
    pub(crate) fn is_stuck(&self) -> bool {
        self.needed.is_some()
    }

    /// Waits for the reads under way, and returns all there is, or the memory that the first batch
    /// needs where that is more than there may be.
    pub(crate) async fn finish(mut self) -> Result<Gathered, usize> {
        self.settle().await;
        self.needed.map_or(Ok(self.gathered), Err)
    }

    /// Waits for the reads under way.
    async fn settle(&mut self) {
        for open in self.open.drain(..) {
            let mut served = match open {
                Open::Served(served) => served,
                Open::Cold { asked, log, read, is_cut } => match read.await {
                    Ok(read) => {
                        let has_more = read.next_offset < end_of(&read, self.isolation);
                        self.is_full |= is_cut && read.bytes == 0 && has_more;
                        served(asked, read, self.isolation)
                    }
                    Err(error) => failed(asked, &log, &error),
                },
            };
            let room = self.bytes_max.saturating_sub(self.gathered.bytes);
            if self.gathered.bytes > 0 && served.bytes() > room {
                // The first batch was larger than the limit; the next fetch gets what is left out.
                served.leave_out_records();
            }
            self.gathered.add(served);
        }
        self.cold = 0;
        self.open_bytes = 0;
        self.open_memory = 0;
    }
}

impl Gathered {
    fn add(&mut self, served: Served) {
        self.bytes += served.bytes();
        self.memory += served.memory;
        self.available = self.available.saturating_add(served.available);
        self.has_error |= served.noteworthy == Noteworthy::Error;
        self.partitions.push(served);
    }
}

/// KIP-595: a consumer whose last batch is of an epoch that ended earlier here must truncate.
fn diverged(asked: &FetchPartition, log: &Log) -> Option<Served> {
    if asked.last_fetched_epoch < 0 {
        return None;
    }
    let end = log.end_of_epoch(asked.last_fetched_epoch);
    let is_known = end.end_offset >= 0;
    if !is_known
        || (end.end_offset >= asked.fetch_offset && end.leader_epoch >= asked.last_fetched_epoch)
    {
        return None;
    }
    let mut served = refused(asked, ErrorCode::None);
    served.fetched.data.diverging_epoch = EpochEndOffset {
        epoch: end.leader_epoch,
        end_offset: end.end_offset,
        ..EpochEndOffset::default()
    };
    served.fetched.data.high_watermark = log.high_watermark();
    served.fetched.data.log_start_offset = log.start_offset();
    Some(served)
}

/// There is nothing but the offset 0, at which the first record will be.
pub(crate) fn serve_unwritten(asked: &FetchPartition, isolation: Isolation) -> Served {
    if asked.fetch_offset == 0 {
        let read = Read {
            batches: Vec::new(),
            bytes: 0,
            memory: 0,
            next_offset: 0,
            high_watermark: 0,
            start_offset: 0,
            last_stable_offset: 0,
            aborted: Vec::new(),
        };
        return served(asked, read, isolation);
    }
    let mut served = refused(asked, ErrorCode::OffsetOutOfRange);
    served.fetched.data.log_start_offset = 0;
    served
}

/// Offset after the last record that a reader of this isolation may see.
fn end_of(read: &Read, isolation: Isolation) -> i64 {
    match isolation {
        Isolation::ReadUncommitted => read.high_watermark,
        Isolation::ReadCommitted => read.last_stable_offset,
    }
}

fn served(asked: &FetchPartition, read: Read, isolation: Isolation) -> Served {
    let has_records = read.bytes > 0;
    let allowed = usize::try_from(asked.bytes_max).unwrap_or(0);
    let has_more = read.next_offset < end_of(&read, isolation);
    let aborted = read.aborted.iter().map(|aborted| AbortedTransaction {
        producer_id: aborted.producer_id,
        first_offset: aborted.first_offset,
        ..AbortedTransaction::default()
    });
    let available = if has_more { allowed.max(read.bytes) } else { read.bytes };
    let data = PartitionData {
        partition_index: asked.partition,
        high_watermark: read.high_watermark,
        last_stable_offset: read.last_stable_offset,
        aborted_transactions: (isolation == Isolation::ReadCommitted).then(|| aborted.collect()),
        log_start_offset: read.start_offset,
        ..PartitionData::default()
    };
    Served {
        topic: asked.topic.clone(),
        fetched: FetchedPartition { data, records: read.batches },
        noteworthy: if has_records { Noteworthy::Records } else { Noteworthy::Nothing },
        available,
        memory: read.memory,
    }
}

fn failed(asked: &FetchPartition, log: &Log, error: &Error) -> Served {
    match error {
        Error::Corrupt { .. } => {
            let FetchPartition { topic, partition, fetch_offset, .. } = asked;
            tracing::error!(?topic, partition, fetch_offset, %error,
                "failed to read records; `moldau broker repair` lists the losses");
        }
        error => tracing::debug!(?asked, %error, "fetch refused"),
    }
    let mut served = refused(asked, read_code(error));
    served.fetched.data.log_start_offset = log.start_offset();
    served
}

/// Whether the partition itself is refused. As in Kafka, its list of aborted transactions is empty
/// then, and null where reading it failed.
fn is_unknown(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId
            | ErrorCode::TopicAuthorizationFailed
    )
}

pub(crate) fn refused(asked: &FetchPartition, code: ErrorCode) -> Served {
    let data = PartitionData {
        partition_index: asked.partition,
        error_code: code.into(),
        high_watermark: -1,
        aborted_transactions: is_unknown(code).then(Vec::new),
        ..PartitionData::default()
    };
    Served {
        topic: asked.topic.clone(),
        fetched: FetchedPartition { data, records: Vec::new() },
        noteworthy: Noteworthy::Error,
        available: 0,
        memory: 0,
    }
}

impl Served {
    fn bytes(&self) -> usize {
        self.fetched.records.iter().map(bytes::Bytes::len).sum()
    }

    fn leave_out_records(&mut self) {
        self.fetched.records.clear();
        self.memory = 0;
        if self.noteworthy == Noteworthy::Records {
            self.noteworthy = Noteworthy::Nothing;
        }
    }
}
