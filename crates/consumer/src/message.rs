//! Records as handlers see them: views of one shared buffer.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "encryption")]
use bytes::Bytes;
use moldau_records::HeaderView;
#[cfg(feature = "encryption")]
use moldau_records::{Error::FormatOverflow, RawRecord, varint};

use crate::chunk::{Chunk, Place};
use crate::scheduler::{Records, Slice};

/// A record. Clones share the buffer that it was fetched into.
#[derive(Clone)]
pub struct Message {
    chunk: Arc<Chunk>,
    index: usize,
}

/// A record of a [`Batch`] or of other [`Work`](crate::Work), borrowed from it.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    chunk: &'a Arc<Chunk>,
    index: usize,
}

impl Message {
    #[inline]
    pub(crate) fn new(chunk: Arc<Chunk>, index: usize) -> Self {
        Self { chunk, index }
    }

    /// The records of a chunk.
    pub(crate) fn all_of(chunk: &Arc<Chunk>) -> impl Iterator<Item = Self> {
        (0..chunk.len()).map(|index| Self::new(Arc::clone(chunk), index))
    }

    /// The record in memory of its own, which keeps no other record alive.
    pub(crate) fn detached(&self) -> Self {
        match self.chunk.detached(self.index..self.index + 1) {
            Some(chunk) => Self::new(Arc::new(chunk), 0),
            None => self.clone(),
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> MessageRef<'_> {
        MessageRef { chunk: &self.chunk, index: self.index }
    }

    /// Name of its topic.
    #[must_use]
    #[inline]
    pub fn topic(&self) -> &str {
        &self.chunk.topic
    }

    /// Its partition.
    #[must_use]
    #[inline]
    pub fn partition(&self) -> i32 {
        self.chunk.partition
    }

    /// Its offset.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> i64 {
        self.view().offset()
    }

    /// Timestamp in ms since 1970, -1 for none.
    #[must_use]
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.view().timestamp()
    }

    /// The key; `None` is null.
    #[must_use]
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.view().key()
    }

    /// The value; `None` is null, a tombstone in a compacted topic.
    #[must_use]
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        self.view().value()
    }

    /// The headers in their order.
    #[inline]
    pub fn headers(&self) -> impl Iterator<Item = HeaderView<'_>> {
        self.view().headers()
    }

    /// The value of the first header with this key.
    #[must_use]
    #[inline]
    pub fn header(&self, key: &str) -> Option<&[u8]> {
        self.view().header(key)
    }
}

impl<'a> From<&'a Message> for MessageRef<'a> {
    #[inline]
    fn from(message: &'a Message) -> Self {
        message.view()
    }
}

impl<'a> MessageRef<'a> {
    #[inline]
    pub(crate) fn new(chunk: &'a Arc<Chunk>, index: usize) -> Self {
        Self { chunk, index }
    }

    /// The record, for as long as it is needed. Nothing is copied.
    #[must_use]
    #[inline]
    pub fn to_message(self) -> Message {
        Message { chunk: Arc::clone(self.chunk), index: self.index }
    }

    /// Name of its topic.
    #[must_use]
    #[inline]
    pub fn topic(self) -> &'a str {
        &self.chunk.topic
    }

    /// Its partition.
    #[must_use]
    #[inline]
    pub fn partition(self) -> i32 {
        self.chunk.partition
    }

    /// Its offset.
    #[must_use]
    #[inline]
    pub fn offset(self) -> i64 {
        self.place().offset
    }

    /// Timestamp in ms since 1970, -1 for none.
    #[must_use]
    #[inline]
    pub fn timestamp(self) -> i64 {
        self.place().timestamp
    }

    /// The key; `None` is null.
    #[must_use]
    #[inline]
    pub fn key(self) -> Option<&'a [u8]> {
        self.chunk.part(self.place().batch, self.place().key?)
    }

    /// The value; `None` is null, a tombstone in a compacted topic.
    #[must_use]
    #[inline]
    pub fn value(self) -> Option<&'a [u8]> {
        self.chunk.part(self.place().batch, self.place().value?)
    }

    /// The headers in their order.
    #[inline]
    pub fn headers(self) -> impl Iterator<Item = HeaderView<'a>> {
        let place = self.place();
        let mut rest = self.chunk.part(place.batch, place.headers).unwrap_or_default();
        (0..place.headers_count).map_while(move |_| moldau_records::read_header(&mut rest).ok())
    }

    /// The value of the first header with this key.
    #[must_use]
    #[inline]
    pub fn header(self, key: &str) -> Option<&'a [u8]> {
        self.headers().find(|header| header.key == key.as_bytes())?.value
    }

    /// The same record with key, value and headers of the encoded record `record`.
    ///
    /// # Errors
    /// `record` is malformed.
    #[cfg(feature = "encryption")]
    pub(crate) fn with(self, record: Vec<u8>) -> Result<Message, moldau_records::Error> {
        let payload = Bytes::from(record);
        let raw = RawRecord::parse(&payload)?;
        raw.check_headers()?;
        let chunk = self.chunk.of(self.place(), &raw, payload.clone());
        Ok(Message { chunk: Arc::new(chunk), index: 0 })
    }

    /// It as an encoded record (KIP-98), with timestamp and offset of its batch.
    ///
    /// # Errors
    /// A part is longer than 2 GiB.
    #[cfg(feature = "encryption")]
    pub(crate) fn encoded(self) -> Result<Vec<u8>, moldau_records::Error> {
        let length = |len: usize| i32::try_from(len).map_err(|_| FormatOverflow);
        let place = self.place();
        let mut body = vec![0, 0, 0];
        for part in [self.key(), self.value()] {
            varint::write_i32(&mut body, part.map_or(Ok(-1), |part| length(part.len()))?);
            body.extend_from_slice(part.unwrap_or_default());
        }
        varint::write_i32(&mut body, i32::try_from(place.headers_count).unwrap_or(0));
        body.extend_from_slice(self.chunk.part(place.batch, place.headers).unwrap_or_default());
        let mut record = Vec::with_capacity(varint::LEN_32_MAX + body.len());
        varint::write_i32(&mut record, length(body.len())?);
        record.extend_from_slice(&body);
        Ok(record)
    }

    #[inline]
    fn place(self) -> &'a Place {
        self.chunk.place(self.index)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}@{}", self.topic(), self.partition(), self.offset())
    }
}

/// Records of one partition that are handled together, in order. Clones share them.
#[derive(Clone)]
pub struct Batch {
    slice: Slice<Chunk>,
    /// Those that filters kept; `None` for all.
    kept: Option<Arc<[Message]>>,
}

impl Batch {
    #[inline]
    pub(crate) fn of(slice: Slice<Chunk>) -> Self {
        Self { slice, kept: None }
    }

    /// The records in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = MessageRef<'_>> {
        let all = self.kept.is_none().then(|| self.slice.records());
        let all = all.into_iter().flatten().map(|(chunk, index)| MessageRef { chunk, index });
        all.chain(self.kept.iter().flat_map(|kept| kept.iter()).map(Message::view))
    }

    /// Number of records.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.slice.len(), |kept| kept.len())
    }

    /// Whether it holds no record.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn mapped(self, replace: impl FnMut(MessageRef<'_>) -> Message) -> Self {
        let kept = self.iter().map(replace).collect();
        Self { slice: self.slice, kept: Some(kept) }
    }

    pub(crate) fn retaining(self, mut keep: impl FnMut(&Message) -> bool) -> Self {
        let kept = self.iter().map(MessageRef::to_message).filter(|message| keep(message));
        let kept = kept.collect();
        Self { slice: self.slice, kept: Some(kept) }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
