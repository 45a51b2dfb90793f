//! Walks Fetch responses and Produce requests while they stream by.
//!
//! A proxy need not hold a frame to know where its records are. A [`Walker`] is fed the pieces of
//! a frame as they arrive and says of each byte whether it is structure or belongs to records. It
//! keeps a few integers, whatever the size of the frame, and never looks at record bytes.
//!
//! A streamed frame cannot change its length, so leader addresses that a Fetch response carries
//! (`NodeEndpoints`, KIP-951) cannot be rewritten on the way. They can be hidden: the walker shows
//! the byte that holds their tag, and whoever writes [`HIDING_TAG`] over it turns the field into
//! one that no client knows.
//!
//! The layout of a frame is a short program of operations, with one loop for each array; the
//! walker can stop between any two bytes.

mod program;

#[cfg(test)]
mod tests;

use crate::error::DecodeError;
use crate::message::Message;
use crate::messages::{FetchResponse, ProduceRequest};
use crate::reader::STRING_LENGTH_MAX;

use program::{DEPTH_MAX, Op, Program};

/// A tag of one byte, so that the frame keeps its length, which Kafka has given to no field.
pub const HIDING_TAG: u8 = 0x7f;

/// What a run of bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// Everything but records.
    Structure,
    /// Record batches of a partition.
    Records,
    /// The one byte that holds the tag of `NodeEndpoints` in a Fetch response.
    NodeEndpointsTag,
}

/// Bytes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What they are.
    pub kind: RunKind,
    /// How many they are.
    pub len: usize,
}

/// Walks one frame.
#[derive(Clone, Debug)]
pub struct Walker {
    program: Program,
    /// The operation that comes next.
    position: usize,
    state: State,
    /// The arrays around the position, the innermost last.
    arrays: [Loop; DEPTH_MAX],
    depth: usize,
    tags_left: u32,
    /// Whether the tagged fields at hand may hold the node endpoints.
    endpoints_possible: bool,
    size: usize,
    /// Bytes of the frame that have not been walked.
    left: usize,
    structure_bytes: u64,
    record_bytes: u64,
}

/// An array whose elements are being walked.
#[derive(Clone, Copy, Debug, Default)]
struct Loop {
    elements_left: u32,
    /// The first operation of an element.
    start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Bytes whose content does not matter; at least one is left.
    Pass { left: usize, records: bool },
    /// Between the bytes of an integer.
    Integer { goal: Goal, value: u32, len: u32 },
    /// The end of the program.
    Done,
}

/// What an integer that is being read decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    StringLength { nullable: bool },
    RecordsLength,
    ArrayCount { nullable: bool, end: usize },
    TagCount,
    Tag,
    TagSize,
}

impl Walker {
    /// A walker for what follows the correlation id of a Fetch response: the header's tagged
    /// fields, if the version has any, and the body; `size` bytes in all.
    ///
    /// # Errors
    /// The version does not exist.
    pub fn fetch_response(version: i16, size: usize) -> Result<Self, DecodeError> {
        if !FetchResponse::VERSIONS.contains(version) {
            return Err(DecodeError::UnsupportedVersion { message: FetchResponse::NAME, version });
        }
        Self::start(program::fetch_response(version), size)
    }

    /// A walker for the body of a Produce request of `size` bytes.
    ///
    /// # Errors
    /// The version does not exist.
    pub fn produce_request(version: i16, size: usize) -> Result<Self, DecodeError> {
        if !ProduceRequest::VERSIONS.contains(version) {
            return Err(DecodeError::UnsupportedVersion { message: ProduceRequest::NAME, version });
        }
        Self::start(program::produce_request(version), size)
    }

    /// Classifies the start of `chunk`, which must follow what was classified before. Call it
    /// again with what the run leaves of the chunk. A run ends with its chunk at the latest, so
    /// that neighbouring runs may be of one kind.
    ///
    /// # Errors
    /// The bytes are no such frame. The walker must not be used further.
    pub fn next_run(&mut self, chunk: &[u8]) -> Result<Run, DecodeError> {
        let mut rest = chunk;
        loop {
            let structure = chunk.len().saturating_sub(rest.len());
            let Some((byte, after)) = rest.split_first() else {
                return Ok(self.structure(structure));
            };
            match self.state {
                State::Pass { records: true, .. } if structure > 0 => {
                    return Ok(self.structure(structure));
                }
                State::Pass { left, records } => {
                    let len = left.min(rest.len());
                    self.pass(len, left, records)?;
                    if records {
                        return Ok(self.records(len));
                    }
                    rest = rest.get(len..).unwrap_or_default();
                }
                State::Integer { goal, value, len } => {
                    let endpoints = goal == Goal::Tag && self.endpoints_possible;
                    let endpoints = endpoints && len == 0 && *byte == 0;
                    if endpoints && structure > 0 {
                        return Ok(self.structure(structure));
                    }
                    self.byte(goal, value, len, *byte)?;
                    if endpoints {
                        return Ok(Run { kind: RunKind::NodeEndpointsTag, ..self.structure(1) });
                    }
                    rest = after;
                }
                State::Done => {
                    let remaining = rest.len();
                    return Err(DecodeError::Trailing { at: self.walked(), remaining });
                }
            }
        }
    }

    /// Whether the frame has been walked to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == State::Done && self.left == 0
    }

    /// How many bytes of structure have been walked.
    #[must_use]
    pub const fn structure_bytes(&self) -> u64 {
        self.structure_bytes
    }

    /// How many bytes of records have been walked.
    #[must_use]
    pub const fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    fn start(program: Program, size: usize) -> Result<Self, DecodeError> {
        let mut walker = Self {
            program,
            position: 0,
            state: State::Done,
            arrays: [Loop::default(); DEPTH_MAX],
            depth: 0,
            tags_left: 0,
            endpoints_possible: false,
            size,
            left: size,
            structure_bytes: 0,
            record_bytes: 0,
        };
        walker.advance()?;
        Ok(walker)
    }

    fn structure(&mut self, len: usize) -> Run {
        self.structure_bytes += len as u64;
        Run { kind: RunKind::Structure, len }
    }

    fn records(&mut self, len: usize) -> Run {
        self.record_bytes += len as u64;
        Run { kind: RunKind::Records, len }
    }

    fn walked(&self) -> usize {
        self.size.saturating_sub(self.left)
    }

    fn consume(&mut self, len: usize) -> Result<(), DecodeError> {
        self.left = self.left.checked_sub(len).ok_or_else(|| self.truncated("frame", len))?;
        Ok(())
    }

    /// Takes `len` of the `left` bytes that do not matter.
    fn pass(&mut self, len: usize, left: usize, records: bool) -> Result<(), DecodeError> {
        self.consume(len)?;
        self.skip(left.saturating_sub(len), records)
    }

    /// Passes over `left` bytes, which must be in the frame.
    fn skip(&mut self, left: usize, records: bool) -> Result<(), DecodeError> {
        if left > self.left {
            return Err(self.truncated(if records { "records" } else { "field" }, left));
        }
        if left == 0 {
            return self.advance();
        }
        self.state = State::Pass { left, records };
        Ok(())
    }

    /// Takes one byte of an integer of which `len` bytes have made `value`.
    fn byte(&mut self, goal: Goal, value: u32, len: u32, byte: u8) -> Result<(), DecodeError> {
        let at = self.walked();
        self.consume(1)?;
        let fixed = match goal {
            Goal::TagCount | Goal::Tag | Goal::TagSize => None,
            _ if self.program.flexible() => None,
            Goal::StringLength { .. } => Some(2),
            Goal::RecordsLength | Goal::ArrayCount { .. } => Some(4),
        };
        let (value, complete) = match fixed {
            Some(size) => (value << 8 | u32::from(byte), len + 1 == size),
            None if len == 4 && byte > 0x0f => return Err(DecodeError::Varint { at }),
            None => (value | u32::from(byte & 0x7f) << (7 * len), byte & 0x80 == 0),
        };
        if !complete {
            self.state = State::Integer { goal, value, len: len + 1 };
            return Ok(());
        }
        let length = match fixed {
            Some(2) if value == 0xffff => None,
            Some(4) if value == 0xffff_ffff => None,
            Some(_) => Some(value),
            None => value.checked_sub(1),
        };
        match goal {
            Goal::StringLength { nullable } => {
                self.field(length, nullable, STRING_LENGTH_MAX, "string")
            }
            Goal::RecordsLength => self.field(length, true, 0x7fff_ffff, "records"),
            Goal::ArrayCount { nullable, end } => self.array(length, nullable, end),
            Goal::TagCount => {
                self.tags_left = value;
                self.advance()
            }
            // The tag of the endpoints in more bytes than it needs could not be hidden.
            Goal::Tag if value == 0 && len > 0 => Err(DecodeError::Varint { at }),
            Goal::Tag => {
                self.read(Goal::TagSize);
                Ok(())
            }
            Goal::TagSize => self.skip(usize::try_from(value).unwrap_or(usize::MAX), false),
        }
    }

    /// Passes over the content of a string or of records.
    fn field(
        &mut self,
        length: Option<u32>,
        nullable: bool,
        length_max: usize,
        what: &'static str,
    ) -> Result<(), DecodeError> {
        let length = match length {
            None if nullable => 0,
            None => return Err(DecodeError::Null { what, at: self.walked() }),
            Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
        };
        if length > length_max {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            return Err(DecodeError::Length { what, at: self.walked(), length });
        }
        self.skip(length, what == "records")
    }

    /// Enters an array, or passes over it if it has no elements.
    fn array(&mut self, count: Option<u32>, nullable: bool, end: usize) -> Result<(), DecodeError> {
        let count = match count {
            None if nullable => 0,
            None => return Err(DecodeError::Null { what: "array", at: self.walked() }),
            Some(count) => count,
        };
        let needed = usize::try_from(count).unwrap_or(usize::MAX);
        if needed > self.left {
            return Err(self.truncated("array", needed));
        }
        if count == 0 {
            self.position = end;
        } else if let Some(array) = self.arrays.get_mut(self.depth) {
            *array = Loop { elements_left: count, start: self.position };
            self.depth += 1;
        }
        self.advance()
    }

    fn read(&mut self, goal: Goal) {
        self.state = State::Integer { goal, value: 0, len: 0 };
    }

    /// Moves on to what needs the next byte.
    fn advance(&mut self) -> Result<(), DecodeError> {
        if let Some(left) = self.tags_left.checked_sub(1) {
            self.tags_left = left;
            self.read(Goal::Tag);
            return Ok(());
        }
        while self.program.op(self.position) == Op::EndOfElement {
            self.end_element();
        }
        let op = self.program.op(self.position);
        self.position += 1;
        match op {
            Op::Fixed(len) => return self.skip(len, false),
            Op::String { nullable } => self.read(Goal::StringLength { nullable }),
            Op::Records => self.read(Goal::RecordsLength),
            Op::Array { nullable, end } => self.read(Goal::ArrayCount { nullable, end }),
            Op::TaggedFields { endpoints } => {
                self.endpoints_possible = endpoints;
                self.read(Goal::TagCount);
            }
            Op::EndOfElement | Op::End => self.state = State::Done,
        }
        Ok(())
    }

    /// Goes back to the start of an element, or leaves the array after its last one.
    fn end_element(&mut self) {
        self.position += 1;
        let innermost = self.depth.saturating_sub(1);
        let Some(array) = self.arrays.get_mut(innermost) else { return };
        array.elements_left = array.elements_left.saturating_sub(1);
        if array.elements_left == 0 {
            self.depth = innermost;
        } else {
            self.position = array.start;
        }
    }

    fn truncated(&self, what: &'static str, needed: usize) -> DecodeError {
        DecodeError::Truncated { what, at: self.walked(), needed, remaining: self.left }
    }
}
