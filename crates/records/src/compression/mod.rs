//! The five codecs behind one reusable pair of states.
//!
//! Codec contexts are made on first use and kept, so that packing or unpacking a batch allocates
//! nothing once the buffers have grown. Every unpacking has a byte limit: whatever a payload
//! claims, it costs at most that much memory.

mod gzip;
mod lz4;
mod snappy;
mod zstandard;

use crate::{Compression, Error};

/// Unpacked bytes beyond which a [`Decompressor`] gives its buffer back before the next payload.
/// Kafka's batches are 1 MB at most unless configured otherwise; a rare larger one should not
/// pin its memory for the life of the owner.
pub(crate) const BUFFER_RETAINED_MAX: usize = 4 << 20;

/// Unpacks payloads; holds codec contexts and one buffer. One per thread or connection.
#[derive(Default)]
pub struct Decompressor {
    gzip: Option<gzip::Unpacker>,
    snappy: snap::raw::Decoder,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    buffer: Vec<u8>,
}

impl Decompressor {
    /// Unpacks `payload` into the inner buffer; an uncompressed payload is lent back as it is,
    /// whatever its size.
    ///
    /// # Errors
    /// [`Error::CorruptPayload`], [`Error::PayloadTooLarge`] beyond `bytes_max`.
    pub fn decompress<'a>(
        &'a mut self,
        compression: Compression,
        payload: &'a [u8],
        bytes_max: usize,
    ) -> Result<&'a [u8], Error> {
        if compression == Compression::None {
            return Ok(payload);
        }
        self.shrink();
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut out = Output::new(&mut buffer, bytes_max);
        let unpacked = self.unpack(compression, payload, &mut out).map(|()| out.filled);
        self.buffer = buffer;
        unpacked.map(|len| self.buffer.get(..len).unwrap_or_default())
    }

    /// Unpacks `payload` into `out`, replacing what is there and keeping its capacity. For callers
    /// whose records outlive the next payload.
    ///
    /// # Errors
    /// As [`Self::decompress`]; `out` is empty then.
    pub fn decompress_into(
        &mut self,
        compression: Compression,
        payload: &[u8],
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut output = Output::new(out, bytes_max);
        let unpacked = match compression {
            Compression::None => output.copy(payload),
            _ => self.unpack(compression, payload, &mut output),
        };
        let filled = if unpacked.is_ok() { output.filled } else { 0 };
        out.truncate(filled);
        unpacked
    }

    /// Gives back what the buffer holds beyond what ordinary batches need.
    pub(crate) fn shrink(&mut self) {
        if self.buffer.len() > BUFFER_RETAINED_MAX {
            self.buffer = Vec::new();
        }
    }

    fn unpack(
        &mut self,
        compression: Compression,
        payload: &[u8],
        out: &mut Output<'_>,
    ) -> Result<(), Error> {
        match compression {
            Compression::None => out.copy(payload),
            Compression::Gzip => {
                self.gzip.get_or_insert_with(gzip::Unpacker::default).unpack(payload, out)
            }
            Compression::Snappy => snappy::unpack(&mut self.snappy, payload, out),
            Compression::Lz4 => lz4::unpack(payload, out),
            Compression::Zstd => zstandard::unpack(&mut self.zstd, payload, out),
        }
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("buffer_len", &self.buffer.len()).finish()
    }
}

/// How payloads are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The codec.
    pub codec: Compression,
    /// How hard it tries, from 1 to 9 for gzip, 1 to 17 for LZ4 and -131072 to 22 for Zstandard;
    /// `None` for Kafka's default. Snappy has no levels.
    pub level: Option<i32>,
}

impl From<Compression> for Packing {
    /// At Kafka's default level.
    fn from(codec: Compression) -> Self {
        Self { codec, level: None }
    }
}

/// Packs payloads; holds codec contexts. One per thread or producer.
#[derive(Default)]
pub struct Compressor {
    gzip: Option<gzip::Packer>,
    snappy: Option<snap::raw::Encoder>,
    lz4: Option<lz4::Table>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Compressor {
    /// Appends `input`, packed, to `out`.
    ///
    /// # Errors
    /// [`Error::CompressorFailed`].
    pub fn compress(
        &mut self,
        packing: impl Into<Packing>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Packing { codec: compression, level } = packing.into();
        let packed = match compression {
            Compression::None => {
                out.extend_from_slice(input);
                Some(())
            }
            Compression::Gzip => {
                self.gzip.get_or_insert_with(gzip::Packer::default).pack(level, input, out)
            }
            Compression::Snappy => {
                snappy::pack(self.snappy.get_or_insert_with(snap::raw::Encoder::new), input, out)
            }
            Compression::Lz4 => {
                lz4::pack(self.lz4.get_or_insert_with(lz4::Table::default), level, input, out)
            }
            Compression::Zstd => zstandard::pack(&mut self.zstd, level, input, out),
        };
        packed.ok_or(Error::CompressorFailed { compression })
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// A buffer that a codec fills from the front.
///
/// The vector's length is what has ever been initialised, not what is filled: growing it writes
/// zeros once, and later payloads reuse it without.
struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    filled: usize,
    bytes_max: usize,
}

impl<'a> Output<'a> {
    fn new(bytes: &'a mut Vec<u8>, bytes_max: usize) -> Self {
        Self { bytes, filled: 0, bytes_max }
    }

    /// Bytes that may still be filled.
    fn room(&self) -> usize {
        self.bytes_max - self.filled
    }

    fn too_large(&self) -> Error {
        Error::PayloadTooLarge { bytes_max: self.bytes_max }
    }

    /// What is filled, and at least `len` writable bytes after it.
    fn split(&mut self, len: usize) -> Result<(&[u8], &mut [u8]), Error> {
        if len > self.room() {
            return Err(self.too_large());
        }
        let end = self.filled + len;
        if self.bytes.len() < end {
            // Doubling, but never beyond the limit.
            let capacity = end.max(self.bytes.len() * 2).min(self.bytes_max);
            self.bytes.reserve_exact(capacity - self.bytes.len());
            self.bytes.resize(end, 0);
        }
        let limit = self.bytes.len().min(self.bytes_max);
        let (done, free) = self.bytes.split_at_mut(self.filled);
        let free = free.get_mut(..limit - self.filled).unwrap_or_default();
        Ok((done, free))
    }

    /// At least `len` writable bytes.
    fn free(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.split(len).map(|(_, free)| free)
    }

    /// Counts the first `len` of the free bytes as filled.
    fn advance(&mut self, len: usize) {
        self.filled += len;
        assert!(self.filled <= self.bytes.len() && self.filled <= self.bytes_max);
    }

    fn filled_from(&self, start: usize) -> &[u8] {
        self.bytes.get(start..self.filled).unwrap_or_default()
    }

    fn copy(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let free = self.free(bytes.len())?;
        if let Some(place) = free.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.advance(bytes.len());
        Ok(())
    }
}

/// Packed bytes that a codec takes from the front.
struct Input<'a> {
    rest: &'a [u8],
    compression: Compression,
}

impl<'a> Input<'a> {
    fn new(compression: Compression, rest: &'a [u8]) -> Self {
        Self { rest, compression }
    }

    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn corrupt(&self, reason: &'static str) -> Error {
        Error::CorruptPayload { compression: self.compression, reason }
    }

    fn ends_early(&self) -> Error {
        self.corrupt("it ends early")
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or_else(|| self.ends_early())?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, tail) = self.rest.split_first_chunk().ok_or_else(|| self.ends_early())?;
        self.rest = tail;
        Ok(*head)
    }

    fn u32_le(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }
}
