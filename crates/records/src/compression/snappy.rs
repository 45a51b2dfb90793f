//! Snappy in the framing of snappy-java ("xerial"), as Kafka's producers write it.
//!
//! ```text
//! 82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version i32, 1 | compatible i32, 1 | blocks
//! block: length i32, raw Snappy of at most 32 KB
//! ```
//! Big-endian. Streams may follow one another, each with its header. A payload without the header
//! is one raw Snappy block, which is what some C clients write.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::{Input, Output};
use crate::{Compression, Error};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const BLOCK_LEN: usize = 32 << 10;
/// A three-byte copy element yields 64 bytes at most, and nothing in the format yields more.
const EXPANSION_MAX: usize = 22;

pub(super) fn unpack(
    decoder: &mut Decoder,
    input: &[u8],
    out: &mut Output<'_>,
) -> Result<(), Error> {
    let mut input = Input::new(Compression::Snappy, input);
    if !input.rest.starts_with(&MAGIC) {
        return unpack_block(decoder, &mut input, None, out);
    }
    while !input.is_empty() {
        if input.rest.starts_with(&MAGIC) {
            input.take(MAGIC.len() + VERSIONS.len())?;
            continue;
        }
        let len = usize::try_from(i32::from_be_bytes(input.array()?))
            .map_err(|_| input.corrupt("a block length is negative"))?;
        unpack_block(decoder, &mut input, Some(len), out)?;
    }
    Ok(())
}

/// Unpacks a block of `len` bytes, or all that is left.
fn unpack_block(
    decoder: &mut Decoder,
    input: &mut Input<'_>,
    len: Option<usize>,
    out: &mut Output<'_>,
) -> Result<(), Error> {
    let block = input.take(len.unwrap_or(input.rest.len()))?;
    let len = decompress_len(block).map_err(|_| input.corrupt("a block has no valid length"))?;
    if len / EXPANSION_MAX > block.len() {
        return Err(input.corrupt("a block claims more than Snappy can unpack from it"));
    }
    let unpacked = decoder
        .decompress(block, out.free(len)?)
        .map_err(|_| input.corrupt("a block does not unpack"))?;
    out.advance(unpacked);
    Ok(())
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
