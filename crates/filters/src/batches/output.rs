//! The message as it is sent on: copied once anything in it changes.

use moldau_records::varint;

use super::Message;
use super::places::Place;

/// A message that is being written.
pub(super) struct Output<'f> {
    /// Empty until something changes.
    bytes: Vec<u8>,
    source: Origin<'f>,
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
        Self { bytes: Vec::new(), source: Origin { message, done: 0 } }
    }

    /// The bytes, and what they are copied from.
    pub(super) fn split(&mut self) -> (&mut Vec<u8>, &mut Origin<'f>) {
        (&mut self.bytes, &mut self.source)
    }

    /// Leaves out the next bytes of the body.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.source.done += bytes;
    }

    /// Bytes that may take the place of so many of the message.
    pub(super) fn room_instead_of(&self, bytes: usize) -> usize {
        let Origin { message, done } = &self.source;
        let size = match self.bytes.is_empty() {
            true => message.size,
            false => self.bytes.len() + message.body.len() - done,
        };
        // The length of the records may grow with them.
        message.bytes_max.saturating_sub(size - bytes + varint::LEN_32_MAX)
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
