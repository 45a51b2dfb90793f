//! Records on their way through a filter: message, topic, partition, batch, record.
//!
//! | module | what it holds |
//! |---|---|
//! | here | [`rewrite`], which asks a [`Policy`] about each topic and each record |
//! | `output` | the message as it is sent on |
//! | `places` | where the records of each partition stand in a message |
//! | `names` | the names of topics that messages call by id |
//! | `answer` | fetched partitions that are withheld |
//! | `refused` | produced partitions that are refused, and their errors in the answer |
//!
//! Bytes that no policy changes are copied as they came, and a message in which nothing changes is
//! not copied at all. If a record changes, a [`Rewriter`] writes its batch anew, straight into the
//! frame that is sent on if the batch is not compressed. Control batches are never touched.
//!
//! Each compressed batch is unpacked once, into a buffer of its thread, and no record costs an
//! allocation but by its policy. Only a policy that has to wait looks at a batch twice.

pub(crate) mod answer;
pub(crate) mod names;
mod output;
pub(crate) mod places;
pub(crate) mod refused;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;

use moldau_net::{MemoryAccount, MemoryExceeded, MemoryUse, Permit};
use moldau_protocol::ErrorCode;
use moldau_proxy::TopicNames;
use moldau_records::{
    BatchView, Compression, RawRecord, RecordEditor, RewriteLimits, Rewriter, iter_batches, varint,
};

use self::names::MissingNames;
use self::output::{Output, Partition};
use self::places::{Place, Topic};

/// Looks at records and decides which pass, and how.
pub(crate) trait Policy: RecordEditor<Error = Stop> {
    /// Called before the partitions of a topic; `None` if its name is not known.
    fn topic(&mut self, topic: Option<&str>) -> Choice;

    /// Called before the records of each partition, regardless of the choice for its topic.
    fn partition(&mut self, records: &[u8]) {
        let _records = records;
    }

    /// Called for each partition that does not pass.
    fn refused(&mut self, topic: Option<&str>, partition: i32, fault: &Fault);

    /// Whether records of formats 0 and 1 pass unread.
    fn passes_old_formats(&self) -> bool {
        false
    }

    /// Called after [`Choice::Wait`] and [`Stop::Wait`]. Asked again about the same topic or batch,
    /// the policy must be able to decide.
    fn wait<'a>(&'a mut self, ahead: Ahead<'a>) -> Waiting<'a> {
        let _ahead = ahead;
        Box::pin(std::future::ready(()))
    }
}

/// The time for which a message waits for its policy.
pub(crate) type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What is to be done with the records of a topic.
#[derive(Debug)]
pub(crate) enum Choice {
    /// They pass unread.
    Pass,
    /// The policy is asked about each.
    Read,
    /// They do not pass.
    Refuse(Fault),
    /// The policy has to wait before it can decide.
    Wait,
}

/// What keeps a batch from passing.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The policy refuses it.
    Fault(Fault),
    /// It is damaged or too large.
    Batch(moldau_records::Error),
    /// The policy has to wait before it can decide.
    Wait,
}

impl From<moldau_records::Error> for Stop {
    fn from(error: moldau_records::Error) -> Self {
        Self::Batch(error)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Why a partition does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    /// For the client.
    pub(crate) message: Cow<'static, str>,
    /// For the log, where that may show more than the client may see.
    pub(crate) detail: Option<String>,
    /// The records that are to blame, by their index in the batch (KIP-467).
    pub(crate) records: Vec<(i32, Cow<'static, str>)>,
}

impl Fault {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), detail: None, records: Vec::new() }
    }

    /// For a topic whose name must be known.
    pub(crate) fn unknown_topic() -> Self {
        Self::new(ErrorCode::UnknownTopicId, "the cluster does not know the topic id")
    }

    /// Producers repeat a request after `CORRUPT_MESSAGE`, for two minutes by default. So only what
    /// may have been damaged on its way has that code.
    pub(crate) fn of_batch(error: &moldau_records::Error) -> Self {
        use moldau_records::Error;
        let code = match error {
            Error::PayloadTooLarge { .. }
            | Error::RewrittenTooLarge { .. }
            | Error::FormatOverflow => ErrorCode::MessageTooLarge,
            Error::CrcMismatch { .. } | Error::UnknownMagic { .. } => ErrorCode::CorruptMessage,
            Error::UnknownCompression { .. } => ErrorCode::UnsupportedCompressionType,
            _ => ErrorCode::InvalidRecord,
        };
        Self::new(code, error.to_string())
    }
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

/// The message whose records a policy is to see.
pub(crate) struct Message<'f> {
    pub(crate) source: Source,
    /// What goes before a body that is written anew.
    pub(crate) header: &'f dyn Fn() -> Vec<u8>,
    pub(crate) body: &'f [u8],
    pub(crate) flexible: bool,
    pub(crate) places: &'f [Place<'f>],
    /// Bytes of the whole frame as it came.
    pub(crate) size: usize,
    /// Most bytes of the frame that is sent on, if it grows.
    pub(crate) bytes_max: usize,
    /// Account that memory for unpacked records is charged to.
    pub(crate) memory: &'f MemoryAccount,
    /// The names of topics, if the policy needs those that are called by id.
    pub(crate) names: Option<Names<'f>>,
}

/// Names of topics by id.
#[derive(Clone, Copy)]
pub(crate) struct Names<'f> {
    pub(crate) known: &'f TopicNames,
    /// Where those are noted that are not known.
    pub(crate) missing: Option<&'f MissingNames>,
}

/// A message that a policy has seen.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The bytes behind the given header, if any differ from what came.
    pub(crate) bytes: Option<Vec<u8>>,
    /// What does not pass, by its place. Its records still stand in the message.
    pub(crate) faults: Vec<(usize, Fault)>,
}

/// Takes all records of a message through a policy.
pub(crate) async fn rewrite(message: Message<'_>, policy: &mut dyn Policy) -> Rewritten {
    let mut output = Output::new(&message);
    let (mut faults, mut turn) = (Vec::new(), Turn::default());
    let mut left = message.places;
    for of_topic in message.places.chunk_by(|one, other| one.ordinals.0 == other.ordinals.0) {
        let name = of_topic.first().and_then(|place| message.name(place.topic));
        let name = name.as_ref().map(Name::as_str);
        let choice = loop {
            match policy.topic(name) {
                Choice::Wait => policy.wait(message.ahead(left, 0)).await,
                choice => break choice,
            }
        };
        for place in of_topic {
            policy.partition(message.body.get(place.records.clone()).unwrap_or_default());
            let fault = match &choice {
                Choice::Pass | Choice::Wait => None,
                Choice::Read => {
                    rewrite_partition(&message, left, &mut output, policy, &mut turn).await.err()
                }
                Choice::Refuse(fault) => Some(fault.clone()),
            };
            if let Some(fault) = fault {
                policy.refused(name, place.partition, &fault);
                faults.push((message.places.len() - left.len(), fault));
            }
            left = left.get(1..).unwrap_or_default();
        }
    }
    Rewritten { bytes: output.finish(), faults }
}

impl<'f> Message<'f> {
    fn name(&self, topic: Topic<'f>) -> Option<Name<'f>> {
        let id = match topic {
            Topic::Name(name) => return Some(Name::Sent(name)),
            Topic::Id(id) => id,
        };
        let names = self.names?;
        let name = names.known.get(id).map(Name::Learned);
        if let (None, Some(missing)) = (&name, names.missing) {
            missing.note(id);
        }
        name
    }

    /// Most bytes of records of one batch, unpacked, before or after it is rewritten.
    fn records_bytes_max(&self) -> usize {
        BATCH_BYTES_MAX.max(self.bytes_max).max(self.size)
    }

    fn ahead<'a>(&'a self, places: &'a [Place<'a>], from: usize) -> Ahead<'a> {
        Ahead { message: self, places, from }
    }
}

/// The name of a topic.
pub(crate) enum Name<'f> {
    /// The message holds it.
    Sent(&'f str),
    /// The cluster was asked for it.
    Learned(Arc<str>),
}

impl Name<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Sent(name) => name,
            Self::Learned(name) => name,
        }
    }
}

/// What is left of a message while its policy waits, so that the policy can prepare for all of it.
pub(crate) struct Ahead<'a> {
    message: &'a Message<'a>,
    places: &'a [Place<'a>],
    /// Where in the body the first batch begins that is left.
    from: usize,
}

impl<'a> Ahead<'a> {
    /// The topics, as far as their names are known.
    pub(crate) fn topics(&self) -> impl Iterator<Item = Name<'a>> {
        let topics = self.places.chunk_by(|one, other| one.ordinals.0 == other.ordinals.0);
        topics.filter_map(|of_topic| self.message.name(of_topic.first()?.topic))
    }

    /// Gives all records to `each`, up to where a partition is damaged.
    pub(crate) async fn records(&self, mut each: impl FnMut(&RawRecord<'_>)) {
        let (mut turn, bytes_max) = (Turn::default(), self.message.records_bytes_max());
        for place in self.places {
            let left = self.from.max(place.records.start)..place.records.end;
            let batches = iter_batches(self.message.body.get(left).unwrap_or_default());
            for batch in batches.map_while(Result::ok) {
                let mut room = Room::little(&batch, bytes_max);
                let (damage, unpacked_bytes) = loop {
                    let (damage, unpacked_bytes) = with_rewriter(|rewriter| {
                        let read = rewriter.read(&batch, room.bytes_max, &mut each);
                        (read.err(), rewriter.unpacked_bytes())
                    });
                    match damage {
                        Some(moldau_records::Error::PayloadTooLarge { .. }) if room.is_little => {
                            room = Room::wait(self.message.memory, bytes_max).await;
                        }
                        damage => break (damage, unpacked_bytes),
                    }
                };
                // It is reported when the batch has its turn.
                let _damage = damage;
                turn.read(unpacked_bytes).await;
            }
        }
    }
}

/// Appends a record like `record` with another value and other headers, `headers_count` in all.
pub(crate) fn write_record(
    out: &mut Vec<u8>,
    record: &RawRecord<'_>,
    value: Option<&[u8]>,
    headers_count: usize,
    headers: [&[u8]; 2],
) -> Result<(), moldau_records::Error> {
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

/// Takes the records of the first of `places` through a policy. After an error nothing of them has
/// changed.
async fn rewrite_partition<'m>(
    message: &'m Message<'_>,
    places: &'m [Place<'m>],
    output: &mut Output<'_>,
    policy: &mut dyn Policy,
    turn: &mut Turn,
) -> Result<(), Fault> {
    let Some(place) = places.first() else { return Ok(()) };
    let records = place.records.clone();
    let mut partition = Partition::new(place, message.flexible, output);
    let mut at = records.start;
    let mut fault = None;
    for batch in iter_batches(message.body.get(records.clone()).unwrap_or_default()) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(moldau_records::Error::UnsupportedMagic { .. }) if policy.passes_old_formats() => {
                at = records.end;
                break;
            }
            Err(error) => {
                fault = Some(Fault::of_batch(&error));
                break;
            }
        };
        let bytes_max = message.records_bytes_max();
        let mut room = Room::little(&batch, bytes_max);
        let rewritten = loop {
            match rewrite_batch(&batch, at, &room, &mut partition, output, policy, turn).await {
                Err(Stop::Wait) => {
                    // The others must not wait for what the policy waits for.
                    room = Room::little(&batch, bytes_max);
                    policy.wait(message.ahead(places, at)).await;
                }
                Err(Stop::Batch(moldau_records::Error::PayloadTooLarge { .. }))
                    if room.is_little =>
                {
                    room = Room::wait(message.memory, bytes_max).await;
                }
                Err(Stop::Fault(fault)) => break Err(fault),
                Err(Stop::Batch(error)) => break Err(Fault::of_batch(&error)),
                Ok(()) => break Ok(()),
            }
        };
        if let Err(of_batch) = rewritten {
            fault = Some(of_batch);
            break;
        }
        at += batch.bytes().len();
    }
    let is_cut_off = at < records.end;
    match (message.source, fault) {
        (Source::Fetch, Some(_)) if at > records.start => partition.cut(output, at),
        (_, Some(fault)) => {
            partition.undo(output);
            return Err(fault);
        }
        (Source::Produce, None) if is_cut_off => {
            partition.undo(output);
            let message = "the records end within a batch";
            return Err(Fault::new(ErrorCode::InvalidRecord, message));
        }
        (_, None) if is_cut_off => partition.cut(output, at),
        (_, None) => partition.close(output),
    }
    Ok(())
}

/// Takes the batch at `at` in the body through a policy. After an error nothing of it has changed.
async fn rewrite_batch(
    batch: &BatchView<'_>,
    at: usize,
    memory: &Room,
    partition: &mut Partition<'_>,
    output: &mut Output<'_>,
    policy: &mut dyn Policy,
    turn: &mut Turn,
) -> Result<(), Stop> {
    let mark = partition.mark(output);
    let size = batch.bytes().len();
    let room = partition.room(output, &(at..at + size));
    // Where the batch grows, the length of the records may grow as well.
    let room_once_changed = room.saturating_sub(varint::LEN_32_MAX).max(size.min(room));
    let limits = RewriteLimits {
        unpacked_bytes_max: memory.bytes_max,
        records_bytes_max: output.message().records_bytes_max(),
        batch_bytes_max: match output.message().source {
            Source::Produce => room_once_changed,
            Source::Fetch | Source::ShareFetch => output.room_alone().max(size),
        },
    };
    let (rewritten, unpacked_bytes) = with_rewriter(|rewriter| {
        let (bytes, source) = output.split();
        let mut start = None;
        let prepare = |bytes: &mut Vec<u8>| {
            partition.open(source, bytes, at);
            start = Some(bytes.len());
        };
        let rewritten = rewriter.rewrite(batch, policy, limits, bytes, prepare);
        let new_size = start.map_or(0, |start| bytes.len() - start);
        let new_size = rewritten.map(|is_rewritten| is_rewritten.then_some(new_size));
        (new_size, rewriter.unpacked_bytes())
    });
    let outcome = match rewritten {
        Ok(Some(new_size)) if new_size <= room_once_changed => Ok(true),
        Ok(None) if size <= room => Ok(false),
        Ok(_) => Err(output.no_room().into()),
        Err(stop) => Err(stop),
    };
    match outcome {
        Ok(true) => output.skip(size),
        Ok(false) | Err(_) => partition.restore(output, mark),
    }
    turn.read(unpacked_bytes).await;
    outcome.map(drop)
}

/// Memory for the records of one batch, as they are unpacked and as they are packed again.
struct Room {
    /// Most bytes that they may unpack to.
    bytes_max: usize,
    /// It is what every thread has, and there may be more.
    is_little: bool,
    _permit: Option<Permit>,
}

impl Room {
    /// What needs no permit, for records of up to `bytes_max` bytes. Those that are not packed lie
    /// in the message.
    fn little(batch: &BatchView<'_>, bytes_max: usize) -> Self {
        let is_packed = batch.compression() != Ok(Compression::None);
        let is_little = is_packed && bytes_max > LITTLE_BYTES_MAX;
        let bytes_max = if is_little { LITTLE_BYTES_MAX } else { bytes_max };
        Self { bytes_max, is_little, _permit: None }
    }

    /// Waits for what records of up to `bytes_max` bytes take, or for the most that there is.
    async fn wait(memory: &MemoryAccount, bytes_max: usize) -> Self {
        let most = memory.budget().most(MemoryUse::Work);
        let bytes = bytes_max.saturating_mul(COPIES_OF_UNPACKED).min(most);
        let permit = match memory.acquire(MemoryUse::Work, bytes..=bytes) {
            Ok(permit) => Some(permit.await),
            Err(MemoryExceeded { .. }) => None,
        };
        let bytes_max = permit.as_ref().map_or(0, Permit::bytes) / COPIES_OF_UNPACKED;
        Self { bytes_max: bytes_max.max(LITTLE_BYTES_MAX), is_little: false, _permit: permit }
    }
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

/// Lends the thread's rewriter, whose buffers are worth keeping.
fn with_rewriter<T>(work: impl FnOnce(&mut Rewriter) -> T) -> T {
    thread_local! {
        static REWRITER: RefCell<Rewriter> = RefCell::default();
    }
    REWRITER.with_borrow_mut(work)
}

fn field_len(len: usize) -> Result<i32, moldau_records::Error> {
    i32::try_from(len).map_err(|_| moldau_records::Error::FormatOverflow)
}

/// Bytes of records that a batch may unpack to, or grow to, in a message of any size: what a broker
/// takes as a frame by default. A larger message may hold as much as itself.
const BATCH_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Bytes that the records of a batch may unpack to without a permit.
const LITTLE_BYTES_MAX: usize = 1024 * 1024;

/// Records of a batch are held as they are unpacked, and before they are packed again.
const COPIES_OF_UNPACKED: usize = 2;

/// Bytes of records, unpacked, that are read before other connections of the thread get their turn.
const BYTES_PER_TURN: usize = 1024 * 1024;
