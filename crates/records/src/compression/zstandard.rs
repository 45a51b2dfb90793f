//! Zstandard (RFC 8878), in one shot: unpacking straight into a buffer that is large enough needs
//! no window memory, which a streaming reader would have to allocate on the frame's word.
//!
//! Java's stream writer leaves the content size out, so the room needed is found by walking the
//! block headers, which bound it from above.

use zstd::bulk;

use super::{Input, Output};
use crate::{Compression, Error};

const MAGIC: u32 = 0xfd2f_b528;
/// Magic numbers of skippable frames differ in the low four bits.
const MAGIC_SKIPPABLE: u32 = 0x184d_2a50;
const MAGIC_SKIPPABLE_MASK: u32 = 0xffff_fff0;
/// A block unpacks to at most this much.
const BLOCK_LEN_MAX: usize = 128 << 10;

pub(super) fn unpack(
    context: &mut Option<bulk::Decompressor<'static>>,
    input: &[u8],
    out: &mut Output<'_>,
) -> Result<(), Error> {
    let mut frames = Input::new(Compression::Zstd, input);
    let needed = unpacked_len_max(&mut frames)?;
    let context = match context {
        Some(context) => context,
        None => {
            let failed = |_| Error::CompressorFailed { compression: Compression::Zstd };
            context.insert(bulk::Decompressor::new().map_err(failed)?)
        }
    };
    let room = out.room();
    match context.decompress_to_buffer(input, out.free(needed.min(room))?) {
        Ok(unpacked) => {
            out.advance(unpacked);
            Ok(())
        }
        Err(_) if needed > room => Err(out.too_large()),
        Err(_) => Err(frames.corrupt("a frame does not unpack")),
    }
}

/// Upper bound of what all frames of `input` unpack to.
fn unpacked_len_max(input: &mut Input<'_>) -> Result<usize, Error> {
    let mut total = 0usize;
    while !input.is_empty() {
        let magic = input.u32_le()?;
        if magic & MAGIC_SKIPPABLE_MASK == MAGIC_SKIPPABLE {
            let len = usize::try_from(input.u32_le()?).map_err(|_| input.ends_early())?;
            input.take(len)?;
        } else if magic == MAGIC {
            total = total.saturating_add(frame_len_max(input)?);
        } else {
            return Err(input.corrupt("it is no Zstandard frame"));
        }
    }
    Ok(total)
}

/// Upper bound of one frame's content; moves `input` past the frame.
fn frame_len_max(input: &mut Input<'_>) -> Result<usize, Error> {
    let [descriptor] = input.array()?;
    let single_segment = descriptor & 0x20 != 0;
    let content_size_len = match descriptor >> 6 {
        0 => usize::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let dictionary_id_len = match descriptor & 0x03 {
        3 => 4,
        len => usize::from(len),
    };
    let window_len = usize::from(!single_segment);
    input.take(window_len + dictionary_id_len + content_size_len)?;
    let mut total = 0usize;
    loop {
        let [b0, b1, b2] = input.array()?;
        let header = u32::from_le_bytes([b0, b1, b2, 0]);
        let size = usize::try_from(header >> 3).map_err(|_| input.ends_early())?;
        let (stored_len, content_len_max) = match (header >> 1) & 0x03 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, BLOCK_LEN_MAX),
            _ => return Err(input.corrupt("a block type is reserved")),
        };
        input.take(stored_len)?;
        if content_len_max > BLOCK_LEN_MAX {
            return Err(input.corrupt("a block is larger than the format allows"));
        }
        total = total.saturating_add(content_len_max);
        if header & 1 != 0 {
            break;
        }
    }
    let has_checksum = descriptor & 0x04 != 0;
    input.take(if has_checksum { 4 } else { 0 })?;
    Ok(total)
}

pub(super) fn pack(
    context: &mut Option<bulk::Compressor<'static>>,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let level = level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
    let context = match context {
        Some(context) => context,
        None => context.insert(bulk::Compressor::new(level).ok()?),
    };
    context.set_compression_level(level).ok()?;
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(input.len()), 0);
    let len = context.compress_to_buffer(input, out.get_mut(start..)?).ok()?;
    out.truncate(start + len);
    Some(())
}
