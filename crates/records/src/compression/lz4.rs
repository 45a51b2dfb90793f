//! LZ4 frames, as Kafka writes them in format 2: standard header checksum (KIP-57), independent
//! blocks of 64 KB, no content size, no content checksum.
//!
//! ```text
//! magic 04 22 4d 18 | FLG | BD | [content size u64] | [dictionary id u32] | HC | blocks
//! block: size u32 (high bit: stored as it is; 0 ends the frame) | bytes | [XXH32 u32]
//! after the last block: [content XXH32 u32]
//! ```
//! Little-endian. Frames of any block size and with checksums are read, since other clients write
//! them. As for Java's consumers, a payload is one frame of independent blocks.

use lz4::block::{CompressionMode, compress_to_buffer};
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use twox_hash::XxHash32;

use super::{Input, Output};
use crate::{Compression, Error};

/// The hash table of the packer.
pub(super) type Table = CompressTable;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const VERSION_MASK: u8 = 0xc0;
const VERSION: u8 = 0x40;
const BLOCKS_INDEPENDENT: u8 = 0x20;
const BLOCK_CHECKSUM: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const CONTENT_CHECKSUM: u8 = 0x04;
const DICTIONARY_ID: u8 = 0x01;
/// BD byte of 64 KB blocks.
const BLOCK_64_KB: u8 = 0x40;
const BLOCK_LEN: usize = 64 << 10;
/// High bit of a block's size: its bytes are not compressed.
const STORED: u32 = 1 << 31;
/// A byte of a match length stands for at most 255 bytes.
const EXPANSION_MAX: usize = 255;

/// Kafka's default level.
const DEFAULT_LEVEL: i32 = 9;

struct Frame {
    flags: u8,
    block_len_max: usize,
}

pub(super) fn unpack(input: &[u8], out: &mut Output<'_>) -> Result<(), Error> {
    let mut input = Input::new(Compression::Lz4, input);
    let frame = read_frame_header(&mut input)?;
    let start = out.filled;
    while read_block(&frame, &mut input, out)? {}
    if frame.flags & CONTENT_CHECKSUM != 0
        && input.u32_le()? != XxHash32::oneshot(0, out.filled_from(start))
    {
        return Err(input.corrupt("the content checksum differs"));
    }
    match input.is_empty() {
        true => Ok(()),
        false => Err(input.corrupt("bytes follow its frame")),
    }
}

fn read_frame_header(input: &mut Input<'_>) -> Result<Frame, Error> {
    if input.array()? != MAGIC {
        return Err(input.corrupt("it is no LZ4 frame"));
    }
    let descriptor = input.rest;
    let [flags, block_size] = input.array()?;
    if flags & VERSION_MASK != VERSION {
        return Err(input.corrupt("the frame version is unknown"));
    }
    if flags & BLOCKS_INDEPENDENT == 0 {
        return Err(input.corrupt("the blocks of the frame depend on one another"));
    }
    if flags & DICTIONARY_ID != 0 {
        return Err(input.corrupt("the frame needs a dictionary"));
    }
    let block_len_max = match (block_size >> 4) & 0x07 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        _ => return Err(input.corrupt("the block size is unknown")),
    };
    if flags & CONTENT_SIZE != 0 {
        input.take(8)?;
    }
    let descriptor = descriptor.get(..descriptor.len() - input.rest.len()).unwrap_or_default();
    let [checksum] = input.array()?;
    if checksum != header_checksum(descriptor) {
        return Err(input.corrupt("the header checksum differs"));
    }
    Ok(Frame { flags, block_len_max })
}

/// Unpacks one block; `false` at the end mark.
fn read_block(frame: &Frame, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<bool, Error> {
    let size = input.u32_le()?;
    if size == 0 {
        return Ok(false);
    }
    let len = usize::try_from(size & !STORED).map_err(|_| input.ends_early())?;
    if len > frame.block_len_max {
        return Err(input.corrupt("a block is larger than its frame allows"));
    }
    let block = input.take(len)?;
    if frame.flags & BLOCK_CHECKSUM != 0 && input.u32_le()? != XxHash32::oneshot(0, block) {
        return Err(input.corrupt("a block checksum differs"));
    }
    if size & STORED != 0 {
        out.copy(block)?;
        return Ok(true);
    }
    let content_max = frame.block_len_max.min(len.saturating_mul(EXPANSION_MAX));
    let room = out.room();
    let (_, free) = out.split(content_max.min(room))?;
    let free = free.get_mut(..content_max.min(room)).unwrap_or_default();
    let unpacked = match decompress_into(block, free) {
        Ok(unpacked) => unpacked,
        Err(_) if content_max > room => return Err(out.too_large()),
        Err(_) => return Err(input.corrupt("a block does not unpack")),
    };
    out.advance(unpacked);
    Ok(true)
}

/// The second byte of the descriptor's XXH32.
fn header_checksum(descriptor: &[u8]) -> u8 {
    let [_, checksum, ..] = XxHash32::oneshot(0, descriptor).to_le_bytes();
    checksum
}

/// Packs at a level from 1 to 17, or as fast as can be: as Kafka, which leaves level 9 to the fast
/// compressor too, since that was there before levels were (KIP-390).
pub(super) fn pack(
    table: &mut Table,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let level = level.filter(|level| *level != DEFAULT_LEVEL);
    let descriptor = [VERSION | BLOCKS_INDEPENDENT, BLOCK_64_KB];
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&descriptor);
    out.push(header_checksum(&descriptor));
    for block in input.chunks(BLOCK_LEN) {
        let size_at = out.len();
        let start = size_at + 4;
        out.resize(start + get_maximum_output_size(block.len()), 0);
        let room = out.get_mut(start..)?;
        let len = match level {
            None => compress_into_with_table(block, room, table).ok()?,
            Some(level) => {
                let mode = Some(CompressionMode::HIGHCOMPRESSION(level));
                compress_to_buffer(block, mode, false, room).ok()?
            }
        };
        let size = if len < block.len() {
            out.truncate(start + len);
            u32::try_from(len).ok()?
        } else {
            out.truncate(start);
            out.extend_from_slice(block);
            u32::try_from(block.len()).ok()? | STORED
        };
        out.get_mut(size_at..start)?.copy_from_slice(&size.to_le_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    Some(())
}
