//! Records on their way through a filter: message, partition, batch, record.
//!
//! | module | what it holds |
//! |---|---|
//! | here | [`rewrite`], which asks a [`Policy`] about each record |
//! | `places` | where the records of each partition stand in a message |
//! | `names` | what topics that are called by id are named |
//! | `answer` | fetched partitions that are withheld |
//! | `refused` | produced partitions that are refused, and the answer that tells of them |
//!
//! Bytes that no policy changes are copied as they came, and a message in which nothing changes is
//! not copied at all. A batch of which a record changes is written anew: header, offsets, sequence
//! numbers, timestamps and codec stay, length and CRC are made to fit. Its CRC is checked before,
//! since a right one must not cover up damage. Control batches are never touched.
//!
//! Each compressed batch is unpacked once, into a buffer of its thread, and no record costs an
//! allocation but by its policy.

pub(crate) mod answer;
pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod refused;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::cell::RefCell;

use moldau_protocol::ErrorCode;
use moldau_proxy::TopicNames;
use moldau_records::{
    BATCH_HEADER_LEN, BatchView, Compression, Compressor, Decompressor, RawRecord, iter_batches,
    varint, write_header_like,
};

use self::names::MissingNames;
use self::places::{Place, Topic};

/// Looks at records and says what becomes of them.
pub(crate) trait Policy {
    /// What becomes of a partition; `topic` is `None` if nobody knows the name of its id.
    fn partition(&mut self, topic: Option<&str>) -> Choice;

    /// Looks at a record, the `index`th of its batch. One that is to be another is appended to
    /// `out`.
    fn record(
        &mut self,
        index: i32,
        record: &RawRecord<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Edited, Fault>;

    /// Called after the last record of a batch that had `records`.
    fn end_of_batch(&mut self, records: i32) -> Result<(), Fault> {
        let _count = records;
        Ok(())
    }

    /// Whether records of formats 0 and 1 pass unread.
    fn passes_old_formats(&self) -> bool {
        false
    }
}

/// What becomes of the records of a partition.
#[derive(Debug)]
pub(crate) enum Choice {
    /// They pass unread.
    Pass,
    /// The policy is asked about each.
    Read,
    /// They do not pass.
    Refuse(Fault),
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    Same,
    Changed,
}

/// Why a partition does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    /// For the client.
    pub(crate) message: Cow<'static, str>,
    /// The records that are to blame, by their index in the batch (KIP-467).
    pub(crate) records: Vec<(i32, Cow<'static, str>)>,
}

/// Which message the records belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Batches are whole, or the partition is refused.
    Produce,
    /// The last batch may be cut off, and is then left out. Batches before a fault pass.
    Fetch,
    /// As `Fetch`, but nothing of a partition with a fault passes: its client would take missing
    /// records for gaps, and acknowledge them.
    ShareFetch,
}

/// A message that a policy has seen.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The bytes behind the given header, if any differ from what came.
    pub(crate) bytes: Option<Vec<u8>>,
    /// What does not pass, by its place. Its records still stand in the message.
    pub(crate) faults: Vec<(usize, Fault)>,
}

/// The message whose records a policy is to see.
pub(crate) struct Message<'f> {
    pub(crate) source: Source,
    /// What goes before a body that is written anew.
    pub(crate) header: &'f dyn Fn() -> Vec<u8>,
    pub(crate) body: &'f [u8],
    pub(crate) flexible: bool,
    pub(crate) places: &'f [Place<'f>],
}

/// Takes all records of a message through a policy.
pub(crate) async fn rewrite(
    message: Message<'_>,
    names: &TopicNames,
    missing: &MissingNames,
    policy: &mut dyn Policy,
) -> Rewritten {
    let mut output = Output {
        header: message.header,
        body: message.body,
        flexible: message.flexible,
        bytes: Vec::new(),
        kept: 0,
    };
    let (mut faults, mut turn) = (Vec::new(), Turn::default());
    for (at, place) in message.places.iter().enumerate() {
        let choice = match place.topic {
            Topic::Name(name) => policy.partition(Some(name)),
            Topic::Id(id) => {
                let name = names.get(id);
                if name.is_none() {
                    missing.note(id);
                }
                policy.partition(name.as_deref())
            }
        };
        let fault = match choice {
            Choice::Pass => continue,
            Choice::Read => {
                rewrite_partition(message.source, place, &mut output, policy, &mut turn).await.err()
            }
            Choice::Refuse(fault) => Some(fault),
        };
        faults.extend(fault.map(|fault| (at, fault)));
    }
    Rewritten { bytes: output.finish(), faults }
}

/// Appends a record like `record` with another value and other headers, `headers_count` in all.
pub(crate) fn write_record(
    out: &mut Vec<u8>,
    record: &RawRecord<'_>,
    value: Option<&[u8]>,
    headers_count: usize,
    headers: [&[u8]; 2],
) -> Result<(), Fault> {
    let before = record.before_value();
    let value_len = value.map_or(Ok(-1), |value| field_len(value.len()))?;
    let count = field_len(headers_count)?;
    let headers_len: usize = headers.iter().map(|part| part.len()).sum();
    let body_len = before.len()
        + varint::len_i32(value_len)
        + value.map_or(0, <[u8]>::len)
        + varint::len_i32(count)
        + headers_len;
    let body_len_field = field_len(body_len)?;
    out.reserve(varint::LEN_32_MAX + body_len);
    varint::write_i32(out, body_len_field);
    out.extend_from_slice(before);
    varint::write_i32(out, value_len);
    out.extend_from_slice(value.unwrap_or_default());
    varint::write_i32(out, count);
    headers.iter().for_each(|part| out.extend_from_slice(part));
    Ok(())
}

impl Fault {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), records: Vec::new() }
    }

    /// For a topic whose name must be known.
    pub(crate) fn unknown_topic() -> Self {
        Self::new(ErrorCode::UnknownTopicId, "the cluster does not know the topic id")
    }

    pub(crate) fn of_batch(error: &moldau_records::Error) -> Self {
        use moldau_records::Error;
        let code = match error {
            Error::PayloadTooLarge { .. } | Error::FormatOverflow => ErrorCode::MessageTooLarge,
            Error::UnsupportedMagic { .. }
            | Error::UnknownMagic { .. }
            | Error::InvalidCount { .. }
            | Error::InvalidRecord { .. }
            | Error::InvalidVarint => ErrorCode::InvalidRecord,
            Error::UnknownCompression { .. } => ErrorCode::UnsupportedCompressionType,
            _ => ErrorCode::CorruptMessage,
        };
        Self::new(code, error.to_string())
    }
}

/// Takes the records of a partition through a policy. After an error nothing of them has changed.
async fn rewrite_partition(
    source: Source,
    place: &Place<'_>,
    output: &mut Output<'_>,
    policy: &mut dyn Policy,
    turn: &mut Turn,
) -> Result<(), Fault> {
    let mut partition = Partition { place, start: output.mark(), length_at: None };
    let (at, fault) = rewrite_batches(&mut partition, output, policy, turn).await;
    let is_cut_off = at < place.records.end;
    match (source, fault) {
        (Source::Fetch, Some(_)) if at > place.records.start => partition.cut(output, at),
        (_, Some(fault)) => {
            partition.undo(output);
            return Err(fault);
        }
        (Source::Produce, None) if is_cut_off => {
            partition.undo(output);
            let message = "the records end within a batch";
            return Err(Fault::new(ErrorCode::CorruptMessage, message));
        }
        (_, None) if is_cut_off => partition.cut(output, at),
        (_, None) => partition.close(output),
    }
    Ok(())
}

/// Takes batches through a policy, and gives where in the body it came to, and why no further.
async fn rewrite_batches(
    partition: &mut Partition<'_>,
    output: &mut Output<'_>,
    policy: &mut dyn Policy,
    turn: &mut Turn,
) -> (usize, Option<Fault>) {
    let records = partition.place.records.clone();
    let mut at = records.start;
    for batch in iter_batches(output.body.get(records.clone()).unwrap_or_default()) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(moldau_records::Error::UnsupportedMagic { .. }) if policy.passes_old_formats() => {
                return (records.end, None);
            }
            Err(error) => return (at, Some(Fault::of_batch(&error))),
        };
        let after = at + batch.bytes().len();
        let (outcome, unpacked) = with_scratch(|scratch| {
            let outcome = scratch.batch(&batch, policy).and_then(|edited| {
                if edited == Edited::Changed {
                    partition.open(output, at);
                    scratch.write_batch(&batch, &mut output.bytes)?;
                    output.kept = after;
                }
                Ok(())
            });
            (outcome, scratch.unpacked)
        });
        if let Err(fault) = outcome {
            return (at, Some(fault));
        }
        at = after;
        turn.read(unpacked).await;
    }
    (at, None)
}

/// Counts bytes of records, and lets other connections of the thread have their turn. What counts
/// is what they unpack to, which a client can make ten thousand times what it sends.
#[derive(Default)]
struct Turn {
    bytes: usize,
}

impl Turn {
    async fn read(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= BYTES_PER_TURN {
            self.bytes = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Buffers of a thread.
#[derive(Default)]
struct Scratch {
    decompressor: Decompressor,
    compressor: Compressor,
    /// Records of a batch that is written anew, not compressed.
    records: Vec<u8>,
    /// Bytes that the batch at hand unpacked to.
    unpacked: usize,
}

impl Scratch {
    /// Takes the records of a batch through a policy. If any changes, all are in `self.records`.
    fn batch(&mut self, batch: &BatchView<'_>, policy: &mut dyn Policy) -> Result<Edited, Fault> {
        self.unpacked = batch.bytes().len();
        if batch.is_control() || batch.records_count() == 0 {
            return Ok(Edited::Same);
        }
        let of_batch = |error| Fault::of_batch(&error);
        batch.check_crc().map_err(of_batch)?;
        let codec = batch.compression().map_err(of_batch)?;
        let payload = self.decompressor.decompress(codec, batch.payload(), BATCH_BYTES_MAX);
        let payload = payload.map_err(of_batch)?;
        self.unpacked = payload.len();
        let records = batch.records_of_payload(payload).map_err(of_batch)?.raw();
        let out = &mut self.records;
        out.clear();
        let (mut edited, mut passed) = (Edited::Same, 0);
        for (index, record) in (0..).zip(records) {
            let record = record.map_err(of_batch)?;
            match (policy.record(index, &record, out)?, edited) {
                (Edited::Same, Edited::Same) => {}
                (Edited::Same, Edited::Changed) => out.extend_from_slice(record.bytes()),
                (Edited::Changed, Edited::Changed) => {}
                (Edited::Changed, Edited::Same) => {
                    edited = Edited::Changed;
                    let before = payload.get(..passed).unwrap_or_default();
                    out.splice(0..0, before.iter().copied());
                }
            }
            passed += record.bytes().len();
            if out.len() > BATCH_BYTES_MAX {
                let message = "the batch is too large once it is rewritten";
                return Err(Fault::new(ErrorCode::MessageTooLarge, message));
            }
        }
        policy.end_of_batch(batch.records_count())?;
        Ok(edited)
    }

    /// Appends a batch like `original` with the records that are at hand, or nothing.
    fn write_batch(&mut self, original: &BatchView<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = out.len();
        out.resize(start + BATCH_HEADER_LEN, 0);
        let codec = original.compression().unwrap_or(Compression::None);
        let written = self.compressor.compress(codec, &self.records, out).and_then(|()| {
            write_header_like(out.get_mut(start..).unwrap_or_default(), original, codec)
        });
        written.map_err(|error| {
            out.truncate(start);
            Fault::of_batch(&error)
        })
    }
}

/// Lends the thread's buffers, which are worth keeping.
fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let done = work(scratch);
        if scratch.records.capacity() > BUFFER_RETAINED_MAX {
            scratch.records = Vec::new();
        }
        done
    })
}

/// A message as it is sent on, begun once anything in it changes.
struct Output<'f> {
    header: &'f dyn Fn() -> Vec<u8>,
    body: &'f [u8],
    flexible: bool,
    /// Empty until something changes.
    bytes: Vec<u8>,
    /// Up to where in the body everything stands in `bytes`, or was left out of it.
    kept: usize,
}

/// What an [`Output`] goes back to.
#[derive(Clone, Copy)]
struct Mark {
    bytes: usize,
    kept: usize,
}

impl Output<'_> {
    fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), kept: self.kept }
    }

    /// Appends the body up to `until`.
    fn keep(&mut self, until: usize) {
        if self.bytes.is_empty() {
            self.bytes = (self.header)();
        }
        self.bytes.extend_from_slice(self.body.get(self.kept..until).unwrap_or_default());
        self.kept = until;
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            return None;
        }
        self.keep(self.body.len());
        Some(self.bytes)
    }
}

/// A partition whose records are being written.
struct Partition<'p> {
    place: &'p Place<'p>,
    start: Mark,
    /// Where in the output the length stands, once anything changed.
    length_at: Option<usize>,
}

impl Partition<'_> {
    /// Appends everything before `at` in the body.
    fn open(&mut self, output: &mut Output<'_>, at: usize) {
        if self.length_at.is_none() {
            output.keep(self.place.length_at);
            self.length_at = Some(output.bytes.len());
        }
        output.keep(at);
    }

    /// Leaves out the records from `at` on.
    fn cut(mut self, output: &mut Output<'_>, at: usize) {
        self.open(output, at);
        output.kept = self.place.records.end;
        self.close(output);
    }

    /// Appends the rest of the records, and tells their length.
    fn close(self, output: &mut Output<'_>) {
        let Some(length_at) = self.length_at else { return };
        output.keep(self.place.records.end);
        let before = self.place.records.start - self.place.length_at;
        let length = output.bytes.len().saturating_sub(length_at + before);
        let mut written = Vec::with_capacity(varint::LEN_32_MAX);
        // A frame that is too long for its lengths is refused as a whole.
        let length = u32::try_from(length).unwrap_or(u32::MAX - 1);
        match output.flexible {
            true => varint::write_u32(&mut written, length.saturating_add(1)),
            false => written.extend_from_slice(&length.to_be_bytes()),
        }
        output.bytes.splice(length_at..length_at + before, written);
    }

    fn undo(self, output: &mut Output<'_>) {
        output.bytes.truncate(self.start.bytes);
        output.kept = self.start.kept;
    }
}

fn field_len(len: usize) -> Result<i32, Fault> {
    i32::try_from(len).map_err(|_| Fault::of_batch(&moldau_records::Error::FormatOverflow))
}

/// Bytes of records of one batch, unpacked, before or after it is rewritten: what a broker takes
/// as a frame at most.
const BATCH_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Bytes of records beyond which a buffer is given back after its batch. Kafka's batches are 1 MB
/// at most unless configured otherwise; a rare larger one should not pin its memory.
const BUFFER_RETAINED_MAX: usize = 4 << 20;

/// Bytes of records, unpacked, that are read before other connections of the thread get their turn.
const BYTES_PER_TURN: usize = 1024 * 1024;
