//! gzip (RFC 1952): members one after the other, each a header, a deflate stream, CRC32 and size.

use flate2::{Compress, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Input, Output};
use crate::{Compression, Error};

/// Magic, method deflate, no flags, no time, no hint, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const FLAG_HEADER_CRC: u8 = 0x02;
const FLAG_EXTRA: u8 = 0x04;
const FLAG_NAME: u8 = 0x08;
const FLAG_COMMENT: u8 = 0x10;
const FLAGS_RESERVED: u8 = 0xe0;
/// The greatest level of zlib.
const LEVEL_MAX: u32 = 9;
/// Least room to offer to deflate at a time.
const OUTPUT_STEP: usize = 16 << 10;

pub(super) struct Unpacker {
    inflate: Decompress,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self { inflate: Decompress::new(false) }
    }
}

impl Unpacker {
    pub(super) fn unpack(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<(), Error> {
        let mut input = Input::new(Compression::Gzip, input);
        loop {
            skip_header(&mut input)?;
            let start = out.filled;
            self.inflate_member(&mut input, out)?;
            let mut crc = Crc::new();
            crc.update(out.filled_from(start));
            if input.u32_le()? != crc.sum() || input.u32_le()? != crc.amount() {
                return Err(input.corrupt("checksum or size of a gzip member differs"));
            }
            if input.is_empty() {
                return Ok(());
            }
        }
    }

    fn inflate_member(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), Error> {
        self.inflate.reset(false);
        loop {
            // One byte beyond the limit tells a payload that fills it from one that exceeds it.
            let mut beyond = [0u8];
            let at_limit = out.room() == 0;
            let (consumed, produced) = (self.inflate.total_in(), self.inflate.total_out());
            let free = if at_limit {
                &mut beyond[..]
            } else {
                let step = out.room().min(OUTPUT_STEP.max(input.rest.len()));
                out.free(step)?
            };
            let status = self
                .inflate
                .decompress(input.rest, free, FlushDecompress::None)
                .map_err(|_| input.corrupt("deflate stream is damaged"))?;
            let consumed = position(self.inflate.total_in() - consumed);
            let produced = position(self.inflate.total_out() - produced);
            input.take(consumed)?;
            if at_limit && produced > 0 {
                return Err(out.too_large());
            }
            out.advance(produced);
            match status {
                Status::StreamEnd => return Ok(()),
                _ if consumed == 0 && produced == 0 => return Err(input.ends_early()),
                _ => {}
            }
        }
    }
}

fn position(count: u64) -> usize {
    usize::try_from(count).expect("zlib moves within slices, whose lengths are usize")
}

fn skip_header(input: &mut Input<'_>) -> Result<(), Error> {
    let [0x1f, 0x8b, 8, flags, ..] = input.array::<{ HEADER.len() }>()? else {
        return Err(input.corrupt("it is no gzip member"));
    };
    if flags & FLAGS_RESERVED != 0 {
        return Err(input.corrupt("reserved gzip flags are set"));
    }
    if flags & FLAG_EXTRA != 0 {
        let len = u16::from_le_bytes(input.array()?);
        input.take(usize::from(len))?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            while input.array()? != [0] {}
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        input.take(2)?;
    }
    Ok(())
}

pub(super) struct Packer {
    deflate: Compress,
    level: flate2::Compression,
}

impl Default for Packer {
    fn default() -> Self {
        let level = flate2::Compression::default();
        Self { deflate: Compress::new(level, false), level }
    }
}

impl Packer {
    pub(super) fn pack(
        &mut self,
        level: Option<i32>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let level = match level {
            Some(level) => flate2::Compression::new(u32::try_from(level).ok()?.min(LEVEL_MAX)),
            None => flate2::Compression::default(),
        };
        if level == self.level {
            self.deflate.reset();
        } else {
            *self = Self { deflate: Compress::new(level, false), level };
        }
        out.extend_from_slice(&HEADER);
        let mut rest = input;
        loop {
            out.reserve(OUTPUT_STEP.max(rest.len() / 4));
            let consumed = self.deflate.total_in();
            let status = self.deflate.compress_vec(rest, out, FlushCompress::Finish).ok()?;
            rest = rest.get(position(self.deflate.total_in() - consumed)..)?;
            if status == Status::StreamEnd {
                break;
            }
        }
        let mut crc = Crc::new();
        crc.update(input);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
        Some(())
    }
}
