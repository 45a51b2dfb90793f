//! Records as handlers see them: views of one shared buffer.

use std::sync::Arc;

use bytes::Bytes;
use moldau_client::{Fetched, Room};
use moldau_records::{BatchView, Decompressor, HeaderView, TimestampType, read_header};

use crate::scheduler::{Payload, Slice};

/// A record. Clones share the buffer that it was fetched into.
#[derive(Clone)]
pub struct Message {
    chunk: Arc<Chunk>,
    index: usize,
}

impl Message {
    /// Name of its topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.chunk.topic
    }

    /// Its partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.chunk.partition
    }

    /// Its offset.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.place().offset
    }

    /// Timestamp in ms since 1970, -1 for none.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.place().timestamp
    }

    /// The key; `None` is null.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.chunk.part(self.place().batch, self.place().key?)
    }

    /// The value; `None` is null, a tombstone in a compacted topic.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.chunk.part(self.place().batch, self.place().value?)
    }

    /// The headers in their order.
    pub fn headers(&self) -> impl Iterator<Item = HeaderView<'_>> {
        let place = self.place();
        let mut rest = self.chunk.part(place.batch, place.headers).unwrap_or_default();
        (0..place.headers_count).map_while(move |_| read_header(&mut rest).ok())
    }

    /// The value of the first header with this key.
    #[must_use]
    pub fn header(&self, key: &str) -> Option<&[u8]> {
        self.headers().find(|header| header.key == key.as_bytes())?.value
    }

    fn place(&self) -> &Place {
        self.chunk.records.get(self.index).expect("a message is made for a record of its chunk")
    }
}

impl Payload for Message {
    fn detach(&mut self) {
        if self.chunk.records.len() > 1 {
            *self = Self { chunk: Arc::new(self.chunk.detached(self.place())), index: 0 };
        }
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}@{}", self.topic(), self.partition(), self.offset())
    }
}

/// Records of one partition that are handled together, in order. Clones share them.
#[derive(Clone, Debug)]
pub struct Batch {
    slice: Slice<Message>,
    /// The first of the slice that is not done.
    from: usize,
    /// Those that filters kept; `None` for all.
    kept: Option<Arc<[usize]>>,
}

impl Batch {
    pub(crate) fn of(slice: &Slice<Message>) -> Self {
        Self { slice: slice.clone(), from: slice.done(), kept: None }
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        let all = self.slice.items().len() - self.from;
        self.kept.as_ref().map_or(all, |kept| kept.len())
    }

    /// Whether it holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, index: usize) -> Option<&Message> {
        let at = match &self.kept {
            Some(kept) => *kept.get(index)?,
            None => self.from + index,
        };
        self.slice.items().get(at).map(|item| &item.payload)
    }

    pub(crate) fn retaining(mut self, mut keep: impl FnMut(&Message) -> bool) -> Self {
        let items = self.slice.items();
        let places = match &self.kept {
            Some(kept) => kept.to_vec(),
            None => (self.from..items.len()).collect(),
        };
        let is_kept = |at: &usize| items.get(*at).is_some_and(|item| keep(&item.payload));
        self.kept = Some(places.into_iter().filter(is_kept).collect());
        self
    }
}

/// Where a part of a record lies in the payload of its batch.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

/// Where a record lies.
#[derive(Debug)]
struct Place {
    offset: i64,
    timestamp: i64,
    key: Option<Span>,
    value: Option<Span>,
    headers: Span,
    headers_count: u32,
    batch: u32,
}

/// What one fetch gave of a partition.
pub(crate) struct Chunk {
    topic: Arc<str>,
    partition: i32,
    /// The records of each batch, unpacked.
    payloads: Vec<Bytes>,
    records: Vec<Place>,
}

/// What could be read of a fetch.
pub(crate) struct Read {
    pub(crate) chunk: Arc<Chunk>,
    /// Offset after the last batch that was read.
    pub(crate) next: i64,
    /// Bytes that were fetched.
    pub(crate) bytes: usize,
    /// Why it ends before the end of the fetch.
    pub(crate) damage: Option<moldau_client::Error>,
    /// Its share of the fetcher's buffer, until all of it is queued.
    _room: Room,
}

impl Chunk {
    /// Finds the records in `fetched`.
    pub(crate) fn read(mut fetched: Fetched, decompressor: &mut Decompressor) -> Read {
        let (mut payloads, mut records) = (Vec::new(), Vec::new());
        let mut next = fetched.position;
        let mut damage = None;
        for batch in fetched.batches() {
            let unpacked = batch.and_then(|batch| {
                batch.check_crc()?;
                if !batch.is_control() {
                    let payload = unpack(&fetched.bytes, &batch, decompressor)?;
                    let of = u32::try_from(payloads.len()).unwrap_or(u32::MAX);
                    find(&batch, &payload, of, fetched.position, &mut records)?;
                    payloads.push(payload);
                }
                Ok(batch.next_offset())
            });
            match unpacked {
                Ok(end) => next = next.max(end),
                Err(error) => {
                    damage = Some(error);
                    records.retain(|place: &Place| place.offset < next);
                    break;
                }
            }
        }
        if damage.is_none() {
            next = next.max(fetched.next_position);
        }
        let _room = fetched.take_room();
        let bytes = fetched.bytes.len();
        let (topic, partition) = (fetched.topic.name, fetched.partition);
        let chunk = Arc::new(Self { topic, partition, payloads, records });
        Read { chunk, next, bytes, damage, _room }
    }

    /// The record at `index`, with its bytes in all.
    pub(crate) fn message(self: &Arc<Self>, index: usize) -> Option<(Message, usize)> {
        let place = self.records.get(index)?;
        let len = |span: Option<Span>| span.map_or(0, |span| span.len);
        let bytes = len(place.key) + len(place.value) + place.headers.len;
        let message = Message { chunk: Arc::clone(self), index };
        Some((message, usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// A chunk of one of its records alone.
    fn detached(&self, place: &Place) -> Self {
        let mut payload = Vec::new();
        let mut copy = |span: Span| {
            let part = self.part(place.batch, span).unwrap_or_default();
            let start = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            payload.extend_from_slice(part);
            Span { start, len: span.len }
        };
        let (key, value) = (place.key.map(&mut copy), place.value.map(&mut copy));
        let headers = copy(place.headers);
        let records = vec![Place { key, value, headers, batch: 0, ..*place }];
        let (topic, partition) = (Arc::clone(&self.topic), self.partition);
        Self { topic, partition, payloads: vec![payload.into()], records }
    }

    fn part(&self, batch: u32, span: Span) -> Option<&[u8]> {
        let payload = self.payloads.get(usize::try_from(batch).ok()?)?;
        let start = usize::try_from(span.start).ok()?;
        payload.get(start..start + usize::try_from(span.len).ok()?)
    }
}

fn unpack(
    fetched: &Bytes,
    batch: &BatchView<'_>,
    decompressor: &mut Decompressor,
) -> moldau_client::Result<Bytes> {
    let compression = batch.compression()?;
    if compression == moldau_records::Compression::None {
        return Ok(fetched.slice_ref(batch.payload()));
    }
    let mut unpacked = Vec::new();
    decompressor.decompress_into(
        compression,
        batch.payload(),
        UNPACKED_BYTES_MAX,
        &mut unpacked,
    )?;
    Ok(unpacked.into())
}

/// Adds the records from `position` on.
fn find(
    batch: &BatchView<'_>,
    payload: &[u8],
    of: u32,
    position: i64,
    records: &mut Vec<Place>,
) -> moldau_client::Result<()> {
    let log_append_time = match batch.timestamp_type() {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(batch.max_timestamp()),
    };
    let start = payload.as_ptr().addr();
    // Parts of a payload of at most 2 GiB.
    let span = |part: &[u8]| Span {
        start: u32::try_from(part.as_ptr().addr().saturating_sub(start)).unwrap_or(0),
        len: u32::try_from(part.len()).unwrap_or(0),
    };
    for record in batch.records_of_payload(payload)?.raw() {
        let record = record?;
        let offset = batch.base_offset().wrapping_add(i64::from(record.offset_delta()));
        if offset < position {
            continue;
        }
        let created = batch.base_timestamp().wrapping_add(record.timestamp_delta());
        records.push(Place {
            offset,
            timestamp: log_append_time.unwrap_or(created),
            key: record.key().map(span),
            value: record.value().map(span),
            headers: span(record.headers()),
            headers_count: u32::try_from(record.headers_count()).unwrap_or(0),
            batch: of,
        });
    }
    Ok(())
}

/// Most bytes that a batch may unpack to: what Kafka's largest requests hold.
const UNPACKED_BYTES_MAX: usize = 100 * 1024 * 1024;
