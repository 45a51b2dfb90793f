//! Record batches of which any field may be wrong, and what can be read of those that are stored.
//!
//! Independent of the crates under test on purpose.

use std::fmt::Write as _;
use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};

/// A codec by its id in the attributes.
pub(crate) const NONE: i16 = 0;
pub(crate) const GZIP: i16 = 1;
pub(crate) const SNAPPY: i16 = 2;
pub(crate) const LZ4: i16 = 3;
pub(crate) const ZSTD: i16 = 4;

/// The bit of the attributes for LogAppendTime.
pub(crate) const LOG_APPEND_TIME: i16 = 8;

const XERIAL: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
const HEADER: usize = 61;

/// One record; `None` is null.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) attributes: u8,
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i64,
    pub(crate) key: Option<&'static str>,
    pub(crate) value: Option<String>,
    /// Count and bytes of the headers.
    pub(crate) headers: (i64, Vec<u8>),
}

impl Record {
    pub(crate) fn at(offset_delta: i64) -> Self {
        Self {
            attributes: 0,
            timestamp_delta: offset_delta,
            offset_delta,
            key: Some("key"),
            value: Some(format!("value {offset_delta}")),
            headers: (0, Vec::new()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = vec![self.attributes];
        varint(&mut body, self.timestamp_delta);
        varint(&mut body, self.offset_delta);
        nullable(&mut body, self.key.map(str::as_bytes));
        nullable(&mut body, self.value.as_deref().map(str::as_bytes));
        varint(&mut body, self.headers.0);
        body.extend_from_slice(&self.headers.1);
        let mut record = Vec::new();
        varint(&mut record, i64::try_from(body.len()).expect("short"));
        record.extend_from_slice(&body);
        record
    }
}

/// A header of a record.
pub(crate) fn header(key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    nullable(&mut bytes, key);
    nullable(&mut bytes, value);
    bytes
}

fn nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    varint(out, bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).expect("short")));
    out.extend_from_slice(bytes.unwrap_or_default());
}

/// A zigzag varint.
pub(crate) fn varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while zigzag > 0x7f {
        let [low, ..] = zigzag.to_le_bytes();
        out.push(low | 0x80);
        zigzag >>= 7;
    }
    let [last, ..] = zigzag.to_le_bytes();
    out.push(last);
}

/// A batch of format 2. What is `None` gets the right value.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) base_offset: i64,
    pub(crate) length: Option<i32>,
    pub(crate) leader_epoch: i32,
    pub(crate) magic: i8,
    pub(crate) crc: Option<u32>,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer: (i64, i16, i32),
    pub(crate) count: i32,
    pub(crate) payload: Vec<u8>,
}

impl Batch {
    /// A sound batch of these records, the first of which has this timestamp.
    pub(crate) fn of(base_timestamp: i64, records: &[Record]) -> Self {
        let count = i32::try_from(records.len()).expect("few");
        let deltas = records.iter().map(|record| record.timestamp_delta);
        Self {
            base_offset: 0,
            length: None,
            leader_epoch: -1,
            magic: 2,
            crc: None,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp,
            max_timestamp: base_timestamp.wrapping_add(deltas.max().unwrap_or(0)),
            producer: (-1, -1, -1),
            count,
            payload: records.iter().flat_map(Record::encode).collect(),
        }
    }

    /// The same batch compressed.
    pub(crate) fn packed(mut self, codec: i16) -> Self {
        self.payload = pack(codec, &self.payload);
        self.attributes |= codec;
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut covered = Vec::new();
        covered.extend_from_slice(&self.attributes.to_be_bytes());
        covered.extend_from_slice(&self.last_offset_delta.to_be_bytes());
        covered.extend_from_slice(&self.base_timestamp.to_be_bytes());
        covered.extend_from_slice(&self.max_timestamp.to_be_bytes());
        covered.extend_from_slice(&self.producer.0.to_be_bytes());
        covered.extend_from_slice(&self.producer.1.to_be_bytes());
        covered.extend_from_slice(&self.producer.2.to_be_bytes());
        covered.extend_from_slice(&self.count.to_be_bytes());
        covered.extend_from_slice(&self.payload);
        let length = i32::try_from(covered.len() + 9).expect("short");
        let crc = self.crc.unwrap_or_else(|| crc_fast::crc32_iscsi(&covered));
        let mut batch = self.base_offset.to_be_bytes().to_vec();
        batch.extend_from_slice(&self.length.unwrap_or(length).to_be_bytes());
        batch.extend_from_slice(&self.leader_epoch.to_be_bytes());
        batch.extend_from_slice(&self.magic.to_be_bytes());
        batch.extend_from_slice(&crc.to_be_bytes());
        batch.extend_from_slice(&covered);
        batch
    }
}

/// Compresses as Kafka's producers do.
pub(crate) fn pack(codec: i16, bytes: &[u8]) -> Vec<u8> {
    const IN_MEMORY: &str = "nothing fails in memory";
    match codec {
        GZIP => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(bytes).expect(IN_MEMORY);
            out.finish().expect(IN_MEMORY)
        }
        SNAPPY => {
            let mut out = XERIAL.to_vec();
            for chunk in bytes.chunks(32 << 10) {
                let block = snap::raw::Encoder::new().compress_vec(chunk).expect(IN_MEMORY);
                out.extend_from_slice(&u32::try_from(block.len()).expect("short").to_be_bytes());
                out.extend_from_slice(&block);
            }
            out
        }
        LZ4 => {
            let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
            out.write_all(bytes).expect(IN_MEMORY);
            out.finish().expect(IN_MEMORY)
        }
        ZSTD => zstd::encode_all(bytes, 3).expect(IN_MEMORY),
        _ => bytes.to_vec(),
    }
}

/// Raw Snappy without the frame of the Java library, as some clients write it.
pub(crate) fn bare_snappy(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).expect("nothing fails in memory")
}

fn unpack(codec: i16, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match codec {
        GZIP => drop(flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out)?),
        SNAPPY if bytes.starts_with(&XERIAL) => {
            let mut rest = bytes.get(XERIAL.len()..).unwrap_or_default();
            while let Some((length, tail)) = rest.split_first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(*length))?;
                let block = tail.get(..length).context("a block ends early")?;
                out.extend(snap::raw::Decoder::new().decompress_vec(block)?);
                rest = tail.get(length..).unwrap_or_default();
            }
        }
        SNAPPY => out = snap::raw::Decoder::new().decompress_vec(bytes)?,
        LZ4 => drop(lz4_flex::frame::FrameDecoder::new(bytes).read_to_end(&mut out)?),
        ZSTD => out = zstd::decode_all(bytes)?,
        _ => out.extend_from_slice(bytes),
    }
    Ok(out)
}

/// Says what stands in fetched batches, with times as distances from `epoch`.
pub(crate) fn describe(bytes: &[u8], epoch: i64) -> String {
    describe_by(bytes, &|timestamp| match timestamp {
        -1 => "never".to_owned(),
        _ => timestamp.wrapping_sub(epoch).to_string(),
    })
}

/// [`describe`] with times as `time` says them.
pub(crate) fn describe_by(mut bytes: &[u8], time: &dyn Fn(i64) -> String) -> String {
    let mut told = String::new();
    while let Some((batch, rest)) = next_batch(bytes) {
        let described = describe_batch(batch, time);
        let described = described.unwrap_or_else(|error| format!("unreadable: {error}"));
        write!(told, "[{described}]").expect("a string takes all");
        bytes = rest;
    }
    told
}

fn next_batch(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    bytes.split_at_checked(usize::try_from(length).ok()? + 12)
}

fn describe_batch(batch: &[u8], time: &dyn Fn(i64) -> String) -> Result<String> {
    let mut fields = Fields(batch);
    let (base_offset, _length, _leader) = (fields.i64()?, fields.i32()?, fields.i32()?);
    let (magic, crc) = (fields.take::<1>()?[0], fields.i32()?.cast_unsigned());
    ensure!(magic == 2, "magic {magic}");
    ensure!(crc == crc_fast::crc32_iscsi(&batch[21..]), "its CRC does not match");
    let attributes = fields.i16()?;
    let last_offset = base_offset + i64::from(fields.i32()?);
    let (base_timestamp, max_timestamp) = (fields.i64()?, fields.i64()?);
    let producer = (fields.i64()?, fields.i16()?, fields.i32()?);
    let count = fields.i32()?;
    let max = match attributes & LOG_APPEND_TIME {
        0 => time(max_timestamp),
        _ => "of the append".to_owned(),
    };
    let payload = unpack(attributes & 7, &batch[HEADER..])?;
    let records =
        describe_records(&payload, base_offset, |delta| time(base_timestamp.wrapping_add(delta)));
    Ok(format!(
        "{base_offset} to {last_offset}, attributes {attributes:#x}, max time {max}, producer \
         {producer:?}, {count} records: {}",
        records?
    ))
}

fn describe_records(
    payload: &[u8],
    base_offset: i64,
    time: impl Fn(i64) -> String,
) -> Result<String> {
    let mut told = Vec::new();
    let mut fields = Fields(payload);
    while !fields.0.is_empty() {
        let length = fields.varint()?;
        let mut record = Fields(fields.bytes(length)?);
        record.take::<1>()?;
        let (timestamp, offset) = (time(record.varint()?), base_offset + record.varint()?);
        let (key, value) = (record.nullable()?, record.nullable()?);
        let mut headers = Vec::new();
        for _ in 0..record.varint()? {
            let (key, value) = (record.nullable()?, record.nullable()?);
            headers.push(format!("{key:?}={value:?}"));
        }
        let headers = headers.join(", ");
        told.push(format!("{offset} at {timestamp} {key:?}={value:?} and headers {headers}"));
    }
    Ok(told.join("; "))
}

/// Reads fields one after the other.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk().context("it ends early")?;
        self.0 = rest;
        Ok(*field)
    }

    pub(crate) fn bytes(&mut self, length: i64) -> Result<&'a [u8]> {
        let (head, rest) =
            self.0.split_at_checked(usize::try_from(length)?).context("it ends early")?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.take()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.take()?))
    }

    fn varint(&mut self) -> Result<i64> {
        let (mut zigzag, mut shift) = (0u64, 0);
        loop {
            let [byte] = self.take()?;
            zigzag |= u64::from(byte & 0x7f).checked_shl(shift).context("an endless varint")?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
            }
        }
    }

    fn nullable(&mut self) -> Result<Option<String>> {
        match self.varint()? {
            ..0 => Ok(None),
            length => Ok(Some(String::from_utf8_lossy(self.bytes(length)?).into_owned())),
        }
    }
}
