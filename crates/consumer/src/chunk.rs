//! What one fetch gave of a partition: one shared buffer, and the places of its records.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::fast::RandomState;
use moldau_client::{Fetched, Room, ShareFetched};
#[cfg(feature = "encryption")]
use moldau_records::RawRecord;
use moldau_records::{BatchView, Decompressor, TimestampType};

use crate::scheduler::Records;

/// Where a part of a record lies in the payload of its batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    /// Bytes of the keys, values and headers of the chunk up to here.
    bytes_end: usize,
    pub(crate) key: Option<Span>,
    pub(crate) value: Option<Span>,
    pub(crate) headers: Span,
    pub(crate) headers_count: u32,
    pub(crate) batch: u32,
}

/// Where the records of a chunk are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// In the answer of the broker, which may hold those of other partitions.
    Fetched,
    /// In memory of their own.
    Copied,
}

/// The records of a fetch, in order.
pub(crate) struct Chunk {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    kind: Kind,
    /// The records of each batch, unpacked.
    payloads: Vec<Bytes>,
    places: Vec<Place>,
    /// Takes back the memory of `places`.
    spare: Spare,
}

/// Memory of chunks that ended, for the next ones. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Spare {
    /// Guards it; chunks may end on any thread.
    places: Arc<Mutex<Vec<Vec<Place>>>>,
}

impl Spare {
    fn take(&self) -> Vec<Place> {
        self.lock().pop().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.kind == Kind::Copied {
            return;
        }
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        let mut spare = self.spare.lock();
        if spare.len() < SPARE_MAX && places.capacity() <= SPARE_PLACES_MAX {
            spare.push(places);
        }
    }
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

impl Read {
    /// Leaves out records, by their offset and key.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(i64, Option<&[u8]>) -> bool) {
        // Nobody else has it yet.
        let Some(chunk) = Arc::get_mut(&mut self.chunk) else { return };
        let mut places = std::mem::take(&mut chunk.places);
        let (mut before, mut bytes_end) = (0, 0);
        places.retain_mut(|place| {
            let bytes = place.bytes_end - std::mem::replace(&mut before, place.bytes_end);
            let key = place.key.and_then(|key| chunk.part(place.batch, key));
            let is_kept = keep(place.offset, key);
            bytes_end += if is_kept { bytes } else { 0 };
            place.bytes_end = bytes_end;
            is_kept
        });
        chunk.places = places;
    }
}

impl Chunk {
    /// Finds the records in `fetched`.
    pub(crate) fn read(
        mut fetched: Fetched,
        decompressor: &mut Decompressor,
        spare: &Spare,
    ) -> Read {
        let (mut payloads, mut places) = (Vec::new(), spare.take());
        let mut next = fetched.position;
        let mut damage = None;
        for batch in fetched.batches() {
            let unpacked = batch.and_then(|batch| {
                batch.check_crc()?;
                if !batch.is_control() {
                    let payload = unpack(&fetched.bytes, &batch, decompressor)?;
                    let of = u32::try_from(payloads.len()).unwrap_or(u32::MAX);
                    find(&batch, &payload, of, fetched.position, &mut places)?;
                    payloads.push(payload);
                }
                Ok(batch.next_offset())
            });
            match unpacked {
                Ok(end) => next = next.max(end),
                Err(error) => {
                    damage = Some(error);
                    places.retain(|place: &Place| place.offset < next);
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
        let chunk = Arc::new(Self {
            topic,
            partition,
            kind: Kind::Fetched,
            payloads,
            places,
            spare: spare.clone(),
        });
        Read { chunk, next, bytes, damage, _room }
    }

    /// The records that a member of a share group holds.
    ///
    /// # Errors
    /// A batch is damaged.
    pub(crate) fn acquired(
        fetched: &ShareFetched,
        decompressor: &mut Decompressor,
    ) -> moldau_client::Result<Arc<Self>> {
        let (mut payloads, mut places) = (Vec::new(), Vec::new());
        for batch in moldau_records::iter_batches(&fetched.bytes) {
            let batch = batch?;
            if batch.is_control() {
                continue;
            }
            batch.check_crc()?;
            let payload = unpack(&fetched.bytes, &batch, decompressor)?;
            let of = u32::try_from(payloads.len()).unwrap_or(u32::MAX);
            find(&batch, &payload, of, i64::MIN, &mut places)?;
            payloads.push(payload);
        }
        places.retain(|place: &Place| fetched.delivery_count(place.offset).is_some());
        let topic = Arc::clone(&fetched.topic.name);
        let (partition, kind) = (fetched.partition, Kind::Fetched);
        Ok(Arc::new(Self { topic, partition, kind, payloads, places, spare: Spare::default() }))
    }

    /// Where the record at `index` lies.
    ///
    /// # Panics
    /// There is no such record.
    #[inline]
    pub(crate) fn place(&self, index: usize) -> &Place {
        self.places.get(index).expect("an index is made for a record of the chunk")
    }

    /// A chunk of the record at `place`, with the key, value and headers of `record`, which lie in
    /// `payload`.
    #[cfg(feature = "encryption")]
    pub(crate) fn of(&self, place: &Place, record: &RawRecord<'_>, payload: Bytes) -> Self {
        let span = spans(&payload);
        let (key, value, headers) = (record.key(), record.value(), record.headers());
        let place = Place {
            bytes_end: key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + headers.len(),
            key: key.map(span),
            value: value.map(span),
            headers: span(headers),
            headers_count: u32::try_from(record.headers_count()).unwrap_or(0),
            batch: 0,
            ..*place
        };
        let (topic, kind, spare) = (Arc::clone(&self.topic), Kind::Copied, self.spare.clone());
        let (payloads, places) = (vec![payload], vec![place]);
        Self { topic, partition: self.partition, kind, payloads, places, spare }
    }

    #[inline]
    pub(crate) fn part(&self, batch: u32, span: Span) -> Option<&[u8]> {
        let payload = self.payloads.get(usize::try_from(batch).ok()?)?;
        let start = usize::try_from(span.start).ok()?;
        payload.get(start..start + usize::try_from(span.len).ok()?)
    }
}

impl Records for Chunk {
    #[inline]
    fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    fn offset(&self, index: usize) -> i64 {
        self.place(index).offset
    }

    fn bytes_before(&self, index: usize) -> usize {
        let last = index.checked_sub(1).and_then(|last| self.places.get(last));
        last.map_or(0, |place| place.bytes_end)
    }

    fn key_hash(&self, index: usize) -> Option<u64> {
        let place = self.place(index);
        let key = self.part(place.batch, place.key?)?;
        Some(HASHES.hash_one(key))
    }

    fn detached(&self, range: Range<usize>) -> Option<Self> {
        let bytes = self.bytes_before(range.end) - self.bytes_before(range.start);
        if self.kind == Kind::Copied && bytes * 2 >= self.bytes_before(self.len()) {
            return None;
        }
        let places = self.places.get(range)?;
        let mut payload = Vec::with_capacity(bytes);
        let places = places.iter().map(|place| {
            let mut copy = |span: Span| {
                let part = self.part(place.batch, span).unwrap_or_default();
                let start = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                payload.extend_from_slice(part);
                Span { start, len: span.len }
            };
            let (key, value) = (place.key.map(&mut copy), place.value.map(&mut copy));
            let headers = copy(place.headers);
            Place { bytes_end: payload.len(), key, value, headers, batch: 0, ..*place }
        });
        let places = places.collect();
        let (topic, partition) = (Arc::clone(&self.topic), self.partition);
        let kind = Kind::Copied;
        let payloads = vec![payload.into()];
        Some(Self { topic, partition, kind, payloads, places, spare: self.spare.clone() })
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

/// Where parts of a payload of at most 2 GiB lie in it.
fn spans(payload: &[u8]) -> impl Fn(&[u8]) -> Span + Copy + use<> {
    let start = payload.as_ptr().addr();
    move |part| Span {
        start: u32::try_from(part.as_ptr().addr().saturating_sub(start)).unwrap_or(0),
        len: u32::try_from(part.len()).unwrap_or(0),
    }
}

/// Adds the records from `position` on.
fn find(
    batch: &BatchView<'_>,
    payload: &[u8],
    of: u32,
    position: i64,
    places: &mut Vec<Place>,
) -> moldau_client::Result<()> {
    let log_append_time = match batch.timestamp_type() {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(batch.max_timestamp()),
    };
    let span = spans(payload);
    let mut bytes_end = places.last().map_or(0, |place| place.bytes_end);
    let records = batch.records_of_payload(payload)?.raw();
    places.reserve(records.remaining().min(payload.len() / RECORD_BYTES_MIN));
    for record in records {
        let record = record?;
        let offset = batch.base_offset().wrapping_add(i64::from(record.offset_delta()));
        if offset < position {
            continue;
        }
        let created = batch.base_timestamp().wrapping_add(record.timestamp_delta());
        let (key, value, headers) = (record.key(), record.value(), record.headers());
        bytes_end += key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + headers.len();
        places.push(Place {
            offset,
            timestamp: log_append_time.unwrap_or(created),
            bytes_end,
            key: key.map(span),
            value: value.map(span),
            headers: span(headers),
            headers_count: u32::try_from(record.headers_count()).unwrap_or(0),
            batch: of,
        });
    }
    Ok(())
}

/// Seeded for this process, so that no producer can choose keys that share a lane.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Chunks whose memory is kept: those between the fetcher and handlers that do not wait. And the
/// most records of such a chunk, a fetch of 1 MiB with small ones.
const SPARE_MAX: usize = 8;
const SPARE_PLACES_MAX: usize = 64 * 1024;

/// Length, attributes, two deltas, two lengths and the number of headers take a byte each.
const RECORD_BYTES_MIN: usize = 7;

/// Most bytes that a batch may unpack to: what Kafka's largest requests hold.
const UNPACKED_BYTES_MAX: usize = 100 * 1024 * 1024;
