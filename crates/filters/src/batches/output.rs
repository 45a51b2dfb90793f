//! The message as it is sent on: copied once anything in it changes.

use std::ops::Range;

use moldau_protocol::ErrorCode;
use moldau_records::varint;

use super::places::Place;
use super::{Fault, Message, Source};

/// A message that is being written.
pub(super) struct Output<'f> {
    /// Empty until something changes.
    bytes: Vec<u8>,
    source: Origin<'f>,
    bytes_max: usize,
    room_alone: usize,
}

/// The message as it came.
pub(super) struct Origin<'f> {
    message: &'f Message<'f>,
    /// Up to where the body was copied, or replaced.
    done: usize,
}

/// What an [`Output`] and its partition go back to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    bytes: usize,
    done: usize,
    length_at: Option<usize>,
}

impl<'f> Output<'f> {
    pub(super) fn new(message: &'f Message<'f>) -> Self {
        let records: usize = message.places.iter().map(|place| place.records.len()).sum();
        // A message that is larger as it comes may stay so.
        let bytes_max = message.bytes_max.max(message.size);
        let others = message.size - records + varint::LEN_32_MAX;
        let room_alone = bytes_max.saturating_sub(others);
        Self { bytes: Vec::new(), source: Origin { message, done: 0 }, bytes_max, room_alone }
    }

    /// The bytes, and what they are copied from.
    pub(super) fn split(&mut self) -> (&mut Vec<u8>, &mut Origin<'f>) {
        (&mut self.bytes, &mut self.source)
    }

    /// Leaves out the next bytes of the body.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.source.done += bytes;
    }

    pub(super) fn message(&self) -> &'f Message<'f> {
        self.source.message
    }

    /// Most bytes that a batch may take if it is all that is left of the records.
    pub(super) fn room_alone(&self) -> usize {
        self.room_alone
    }

    /// For what does not fit into an answer. If other partitions have records, there may be room
    /// once the consumer asks again.
    pub(super) fn no_room(&self) -> Fault {
        let code = match self.source.message.places {
            [_] => ErrorCode::MessageTooLarge,
            _ => ErrorCode::KafkaStorageError,
        };
        Fault::new(code, "the answer would be too large once it is rewritten")
    }

    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            return None;
        }
        self.keep(self.source.message.body.len());
        Some(self.bytes)
    }

    fn keep(&mut self, until: usize) {
        self.source.copy(&mut self.bytes, until);
    }
}

impl Origin<'_> {
    /// Copies the body up to `until`.
    fn copy(&mut self, bytes: &mut Vec<u8>, until: usize) {
        if bytes.is_empty() {
            *bytes = (self.message.header)();
        }
        bytes.extend_from_slice(self.message.body.get(self.done..until).unwrap_or_default());
        self.done = until;
    }
}

/// A partition whose records are being written.
pub(super) struct Partition<'p> {
    place: &'p Place<'p>,
    flexible: bool,
    start: Mark,
    /// Where in the output the length stands, once anything changed.
    length_at: Option<usize>,
}

impl<'p> Partition<'p> {
    pub(super) fn new(place: &'p Place<'p>, flexible: bool, output: &Output<'_>) -> Self {
        let start = Mark { bytes: output.bytes.len(), done: output.source.done, length_at: None };
        Self { place, flexible, start, length_at: None }
    }

    /// Most bytes that the batch at this place in the body may take, so that all that stands before
    /// it and behind it fits as well. What follows in the partition of an answer may be left out.
    pub(super) fn room(&self, output: &Output<'_>, batch: &Range<usize>) -> usize {
        let Origin { message, done } = &output.source;
        let written = match output.bytes.is_empty() {
            true => message.size - message.body.len(),
            false => output.bytes.len(),
        };
        let behind_at = match message.source {
            Source::Produce => batch.end,
            Source::Fetch | Source::ShareFetch => self.place.records.end,
        };
        let others = written + (batch.start - done) + (message.body.len() - behind_at);
        output.bytes_max.saturating_sub(others)
    }

    /// Appends everything before `at` in the body.
    pub(super) fn open(&mut self, source: &mut Origin<'_>, bytes: &mut Vec<u8>, at: usize) {
        if self.length_at.is_none() {
            source.copy(bytes, self.place.length_at);
            self.length_at = Some(bytes.len());
        }
        source.copy(bytes, at);
    }

    /// Leaves out the records from `at` on.
    pub(super) fn cut(mut self, output: &mut Output<'_>, at: usize) {
        let (bytes, source) = output.split();
        self.open(source, bytes, at);
        source.done = self.place.records.end;
        self.close(output);
    }

    /// Appends the rest of the records, and writes their length.
    pub(super) fn close(self, output: &mut Output<'_>) {
        let Some(length_at) = self.length_at else { return };
        output.keep(self.place.records.end);
        let before = self.place.records.start - self.place.length_at;
        let length = output.bytes.len().saturating_sub(length_at + before);
        let mut written = Vec::with_capacity(varint::LEN_32_MAX);
        // A frame that is too long for its lengths is refused as a whole.
        let length = u32::try_from(length).unwrap_or(u32::MAX - 1);
        match self.flexible {
            true => varint::write_u32(&mut written, length.saturating_add(1)),
            false => written.extend_from_slice(&length.to_be_bytes()),
        }
        output.bytes.splice(length_at..length_at + before, written);
    }

    pub(super) fn mark(&self, output: &Output<'_>) -> Mark {
        Mark { bytes: output.bytes.len(), done: output.source.done, length_at: self.length_at }
    }

    pub(super) fn restore(&mut self, output: &mut Output<'_>, mark: Mark) {
        output.bytes.truncate(mark.bytes);
        output.source.done = mark.done;
        self.length_at = mark.length_at;
    }

    pub(super) fn undo(mut self, output: &mut Output<'_>) {
        let start = self.start;
        self.restore(output, start);
    }
}
