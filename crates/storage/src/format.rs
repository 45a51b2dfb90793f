//! The bytes of the journal on disk: file header, frame header, entry header.
//!
//! All integers are little-endian; `docs/formats.md` draws the same tables for readers of the disk.
//!
//! File header, at the start of each file, padded with zeros to 4096 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | magic `MOLDAUJF` |
//! | 8..12 | format version, u32 |
//! | 12..16 | node id, i32 |
//! | 16..32 | cluster id |
//! | 32..40 | file number, u64 |
//! | 40..48 | base: journal position of the file's first byte, u64 |
//! | 48..56 | length of the file in bytes, u64 |
//! | 56..60 | largest frame that may be in the file in bytes, u32 |
//! | 60..64 | CRC32C of bytes 0..60 |
//!
//! Frame header, at a multiple of 4096; entries follow it without gaps, zeros pad the frame to a
//! multiple of 4096:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | magic `MOLDAUFR` |
//! | 8..12 | frame version, u32 |
//! | 12..16 | length of the frame in bytes, header and padding included, u32 |
//! | 16..24 | journal position of the frame, u64 |
//! | 24..32 | sequence number, u64, never used twice in one journal |
//! | 32..40 | sequence number of the frame before, 0 for the first |
//! | 40..48 | highest sequence number known to be flushed when this frame was sealed, 0 for none |
//! | 48..52 | header CRC of the frame before |
//! | 52..56 | number of entries, u32 |
//! | 56..60 | CRC32C of all entry headers in order |
//! | 60..64 | CRC32C of bytes 0..60 |
//!
//! Entry header, followed by its payload:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | kind, see [`Kind`] |
//! | 1..4 | zero |
//! | 4..8 | length of the payload, u32 |
//! | 8..24 | topic id, zero where the kind has none |
//! | 24..28 | partition, i32, zero where the kind has none |
//! | 28..32 | CRC32C of the payload; zero for a batch, which carries its own |
//! | 32..48 | for a batch its first 16 bytes, which its own CRC leaves out; otherwise zero |

use moldau_records::crc32c;

use crate::io::BLOCK;
use crate::{LogId, TopicId};

/// Version of all files and of frames.
pub(crate) const FORMAT_VERSION: u32 = 2;
pub(crate) const FILE_HEADER_BYTES: usize = BLOCK;
/// No journal position reaches this, nor does a sequence number: a sum of two does not overflow.
pub(crate) const POSITION_MAX: u64 = 1 << 62;
pub(crate) const FRAME_HEADER_BYTES: usize = 64;
pub(crate) const ENTRY_HEADER_BYTES: usize = 48;
/// Leading bytes of a batch that its CRC does not cover: base offset, length, leader epoch.
pub(crate) const BATCH_PREFIX_BYTES: usize = 16;

const FILE_MAGIC: [u8; 8] = *b"MOLDAUJF";
const FRAME_MAGIC: [u8; 8] = *b"MOLDAUFR";
/// Bytes of a header that its CRC covers; the CRC follows them.
const CHECKED_BYTES: usize = 60;

/// Content of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A record batch of a log.
    Batch,
    /// Bytes of the owner.
    Metadata,
    /// A log's start offset moved: payload is the offset, i64.
    LogStart,
    /// A topic and all its logs are gone; no payload.
    DeleteTopic,
    /// Which sorted segments count changed: payload is the number of those added, u32, and the
    /// numbers of those added and removed, u64 each.
    Segments,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Kind::Batch => 1,
            Kind::Metadata => 2,
            Kind::LogStart => 3,
            Kind::DeleteTopic => 4,
            Kind::Segments => 5,
        }
    }

    const fn of(code: u8) -> Option<Kind> {
        Some(match code {
            1 => Kind::Batch,
            2 => Kind::Metadata,
            3 => Kind::LogStart,
            4 => Kind::DeleteTopic,
            5 => Kind::Segments,
            _ => return None,
        })
    }
}

/// Reads little-endian fields one after the other; `None` at the end of the bytes.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }
}

/// Writes the fields one after the other and the CRC of the first 60 bytes behind them.
pub(crate) fn seal_header(fields: &[&[u8]]) -> [u8; 64] {
    let mut header = [0; 64];
    let mut at = 0;
    for field in fields {
        header[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
    assert!(at <= CHECKED_BYTES);
    let crc = crc32c(&header[..CHECKED_BYTES]);
    header[CHECKED_BYTES..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// The first 64 bytes, if they begin with `magic` and their CRC holds, without the magic.
pub(crate) fn open_header(bytes: &[u8], magic: [u8; 8]) -> Option<Fields<'_>> {
    let header: &[u8; 64] = bytes.first_chunk()?;
    let (checked, crc) = header.split_at(CHECKED_BYTES);
    let rest = checked.strip_prefix(&magic)?;
    (crc32c(checked).to_le_bytes() == crc).then_some(Fields(rest))
}

/// The header of a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) node_id: i32,
    pub(crate) cluster_id: [u8; 16],
    pub(crate) number: u64,
    pub(crate) base: u64,
    pub(crate) file_bytes: u64,
    pub(crate) frame_bytes_max: u32,
}

/// Type of the first bytes of a journal file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileHeaderRead {
    Known(FileHeader),
    OtherVersion(u32),
    Damaged,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; 64] {
        seal_header(&[
            &FILE_MAGIC,
            &FORMAT_VERSION.to_le_bytes(),
            &self.node_id.to_le_bytes(),
            &self.cluster_id,
            &self.number.to_le_bytes(),
            &self.base.to_le_bytes(),
            &self.file_bytes.to_le_bytes(),
            &self.frame_bytes_max.to_le_bytes(),
        ])
    }

    pub(crate) fn decode(bytes: &[u8]) -> FileHeaderRead {
        Self::fields(bytes).unwrap_or(FileHeaderRead::Damaged)
    }

    fn fields(bytes: &[u8]) -> Option<FileHeaderRead> {
        let mut fields = open_header(bytes, FILE_MAGIC)?;
        let version = fields.u32()?;
        if version != FORMAT_VERSION {
            return Some(FileHeaderRead::OtherVersion(version));
        }
        Some(FileHeaderRead::Known(FileHeader {
            node_id: fields.i32()?,
            cluster_id: fields.take()?,
            number: fields.u64()?,
            base: fields.u64()?,
            file_bytes: fields.u64()?,
            frame_bytes_max: fields.u32()?,
        }))
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) frame_bytes: u32,
    pub(crate) position: u64,
    pub(crate) sequence: u64,
    pub(crate) previous: FrameLink,
    pub(crate) flushed_sequence: u64,
    pub(crate) entries: u32,
    pub(crate) entries_crc: u32,
}

/// What a frame says about the frame before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FrameLink {
    pub(crate) sequence: u64,
    pub(crate) header_crc: u32,
}

impl FrameHeader {
    pub(crate) fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        seal_header(&[
            &FRAME_MAGIC,
            &FORMAT_VERSION.to_le_bytes(),
            &self.frame_bytes.to_le_bytes(),
            &self.position.to_le_bytes(),
            &self.sequence.to_le_bytes(),
            &self.previous.sequence.to_le_bytes(),
            &self.flushed_sequence.to_le_bytes(),
            &self.previous.header_crc.to_le_bytes(),
            &self.entries.to_le_bytes(),
            &self.entries_crc.to_le_bytes(),
        ])
    }

    /// The header at the start of `bytes` and its CRC, if it is one of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(FrameHeader, u32)> {
        let mut fields = open_header(bytes, FRAME_MAGIC)?;
        if fields.u32()? != FORMAT_VERSION {
            return None;
        }
        let frame_bytes = fields.u32()?;
        let position = fields.u64()?;
        let sequence = fields.u64()?;
        let previous_sequence = fields.u64()?;
        let flushed_sequence = fields.u64()?;
        let previous = FrameLink { sequence: previous_sequence, header_crc: fields.u32()? };
        let header = FrameHeader {
            frame_bytes,
            position,
            sequence,
            previous,
            flushed_sequence,
            entries: fields.u32()?,
            entries_crc: fields.u32()?,
        };
        let crc = Fields(bytes.get(CHECKED_BYTES..)?).u32()?;
        Some((header, crc))
    }
}

/// The header of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryHeader {
    pub(crate) kind: Kind,
    pub(crate) payload_bytes: u32,
    pub(crate) log: LogId,
    pub(crate) payload_crc: u32,
    pub(crate) batch_prefix: [u8; BATCH_PREFIX_BYTES],
}

impl EntryHeader {
    pub(crate) fn encode(&self) -> [u8; ENTRY_HEADER_BYTES] {
        let mut header = [0; ENTRY_HEADER_BYTES];
        header[0] = self.kind.code();
        header[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        header[8..24].copy_from_slice(&self.log.topic.0);
        header[24..28].copy_from_slice(&self.log.partition.to_le_bytes());
        header[28..32].copy_from_slice(&self.payload_crc.to_le_bytes());
        header[32..48].copy_from_slice(&self.batch_prefix);
        header
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<EntryHeader> {
        let mut fields = Fields(bytes);
        let [code, 0, 0, 0] = fields.take()? else { return None };
        Some(EntryHeader {
            kind: Kind::of(code)?,
            payload_bytes: fields.u32()?,
            log: LogId { topic: TopicId(fields.take()?), partition: fields.i32()? },
            payload_crc: fields.u32()?,
            batch_prefix: fields.take()?,
        })
    }
}

/// `bytes` rounded up to whole blocks.
pub(crate) const fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK)
}
