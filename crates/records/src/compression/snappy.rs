//! Snappy in the framing of snappy-java ("xerial"), as Kafka's producers write it.
//!
//! ```text
//! 82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version i32, 1 | compatible i32, 1 | blocks
//! block: length i32, raw Snappy of at most 32 KB
//! ```
//! Big-endian. Streams may follow one another, each with its header. A payload without the header
//! is one raw Snappy block, which is what some C clients write.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::Output;
use crate::{Compression, Error};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const BLOCK_LEN: usize = 32 << 10;
/// A three-byte copy element yields 64 bytes at most, and nothing in the format yields more.
const EXPANSION_MAX: usize = 22;

fn corrupt(reason: &'static str) -> Error {
    Error::CorruptPayload { compression: Compression::Snappy, reason }
}

pub(super) fn unpack(
    decoder: &mut Decoder,
    input: &[u8],
    out: &mut Output<'_>,
) -> Result<(), Error> {
    let Some(mut rest) = input.strip_prefix(&MAGIC) else {
        return unpack_block(decoder, input, out);
    };
    take(&mut rest, VERSIONS.len())?;
    while !rest.is_empty() {
        if let Some(stream) = rest.strip_prefix(&MAGIC) {
            rest = stream;
            take(&mut rest, VERSIONS.len())?;
            continue;
        }
        let len: &[u8; 4] = take(&mut rest, 4)?.first_chunk().ok_or_else(too_short)?;
        let len = usize::try_from(i32::from_be_bytes(*len))
            .map_err(|_| corrupt("block length is negative"))?;
        unpack_block(decoder, take(&mut rest, len)?, out)?;
    }
    Ok(())
}

fn unpack_block(decoder: &mut Decoder, block: &[u8], out: &mut Output<'_>) -> Result<(), Error> {
    let len = decompress_len(block).map_err(|_| corrupt("block has no valid length"))?;
    if len / EXPANSION_MAX > block.len() {
        return Err(corrupt("block claims more than Snappy can unpack from it"));
    }
    let unpacked =
        decoder.decompress(block, out.free(len)?).map_err(|_| corrupt("block does not unpack"))?;
    out.advance(unpacked);
    Ok(())
}

fn too_short() -> Error {
    corrupt("stream ends early")
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Error> {
    let (head, tail) = rest.split_at_checked(len).ok_or_else(too_short)?;
    *rest = tail;
    Ok(head)
}

pub(super) fn pack(encoder: &mut Encoder, input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSIONS);
    for block in input.chunks(BLOCK_LEN) {
        let length_at = out.len();
        let start = length_at + 4;
        out.resize(start + max_compress_len(block.len()), 0);
        let len = encoder.compress(block, out.get_mut(start..)?).ok()?;
        let length = i32::try_from(len).ok()?.to_be_bytes();
        out.get_mut(length_at..start)?.copy_from_slice(&length);
        out.truncate(start + len);
    }
    Some(())
}
