//! Opening the sealed values of a batch.
//!
//! Nothing here waits: a batch whose data key is not at hand says so, and the caller comes back
//! with the key.

use std::ops::Deref;

use moldau_records::{
    BATCH_HEADER_LEN, BatchView, Compression, Compressor, Decompressor, RawRecord, RawRecords,
    varint, write_header_like,
};

use crate::cipher::OpeningKey;
use crate::damage::Damage;
use crate::error::Error;
use crate::marker::{self, Marked};
use crate::parcel::{self, Field, Parcel};
use crate::seal::{BUFFER_RETAINED_MAX, Recompression};
use crate::wrapper::Wrapper;

/// What becomes of a sealed record that cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// The batch fails.
    #[default]
    Fail,
    /// The record passes as it is.
    Pass,
}

/// What an [`Opener`] goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Most bytes that a compressed batch may unpack to.
    pub bytes_max: usize,
    /// How opened batches are compressed.
    pub recompression: Recompression,
    /// What becomes of records that cannot be opened.
    pub on_damage: OnDamage,
}

/// What the caller knows of the data key of an EDEK.
pub enum KeyLookup<K> {
    /// The key.
    Found(K),
    /// Nothing yet: the service must be asked.
    Unknown,
    /// The service was asked and does not give the key: [`Damage::Edek`].
    Refused,
}

/// What came of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The batch has no sealed record: its own bytes are the outcome, nothing was appended.
    Unchanged,
    /// The batch was appended.
    Rewritten(OpenCounts),
    /// A data key is unknown; nothing was appended. [`Opener::edeks`] names all that are needed.
    KeyUnknown,
}

/// What became of the sealed records of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenCounts {
    /// Records opened.
    pub opened: u32,
    /// Records that could not be opened and passed.
    pub passed: u32,
    /// Offset of the first record that passed, and why.
    pub first_passed: Option<(i64, Damage)>,
}

/// Opens one batch after the other with buffers that it keeps. One per thread.
pub struct Opener {
    options: OpenOptions,
    decompressor: Decompressor,
    compressor: Compressor,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    /// Opened records that are yet to be compressed.
    opened: Vec<u8>,
    /// A parcel with headers, and the record made of it.
    parcel: Vec<u8>,
    body: Vec<u8>,
}

impl Opener {
    /// An opener without buffers.
    #[must_use]
    pub fn new(options: OpenOptions) -> Self {
        Self {
            options,
            decompressor: Decompressor::default(),
            compressor: Compressor::default(),
            buffers: Buffers::default(),
        }
    }

    /// Gives the EDEKs of the sealed records of `batch` to `each`, one for those in a row that
    /// have the same. Damaged records are passed over.
    ///
    /// # Errors
    /// [`Error::Batch`] if the bytes are damaged.
    pub fn edeks(
        &mut self,
        batch: &BatchView<'_>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        if !may_be_sealed(batch) {
            return Ok(());
        }
        let mut previous = None;
        for record in unpack(batch, &mut self.decompressor, self.options.bytes_max)? {
            let record = record?;
            let Some(Marked { version: Ok(()), .. }) = marker::find(&record)? else { continue };
            let Some(Ok(wrapper)) = record.value().map(Wrapper::parse) else { continue };
            if previous != Some(wrapper.edek) {
                each(wrapper.edek);
                previous = Some(wrapper.edek);
            }
        }
        Ok(())
    }

    /// Appends `batch` to `out` with one layer of sealing taken off each sealed record, if it has
    /// any. What the header says stays, but for length, CRC and maybe codec. `lookup` finds the
    /// data key of an EDEK and is asked once for records in a row that have the same.
    ///
    /// # Errors
    /// [`Error::Batch`] if the bytes are damaged, [`Error::Damaged`] under [`OnDamage::Fail`].
    /// `out` is then as it was.
    pub fn open<K: Deref<Target = OpeningKey>>(
        &mut self,
        batch: &BatchView<'_>,
        lookup: impl FnMut(&[u8]) -> KeyLookup<K>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        let start = out.len();
        let opened = self.append(batch, lookup, out);
        if !matches!(opened, Ok(Opened::Rewritten(_))) {
            out.truncate(start);
        }
        if self.buffers.opened.capacity().max(self.buffers.body.capacity()) > BUFFER_RETAINED_MAX {
            self.buffers = Buffers::default();
        }
        opened
    }

    fn append<K: Deref<Target = OpeningKey>>(
        &mut self,
        batch: &BatchView<'_>,
        lookup: impl FnMut(&[u8]) -> KeyLookup<K>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        if !may_be_sealed(batch) {
            return Ok(Opened::Unchanged);
        }
        let records = unpack(batch, &mut self.decompressor, self.options.bytes_max)?;
        if !has_marker(records.clone())? {
            return Ok(Opened::Unchanged);
        }
        // The rewritten batch gets a right CRC, which must not cover up damage.
        batch.check_crc()?;
        let start = out.len();
        out.resize(start + BATCH_HEADER_LEN, 0);
        let codec = self.options.recompression.of(batch.compression()?);
        let Buffers { opened, parcel, body } = &mut self.buffers;
        let layer = Layer {
            base_offset: batch.base_offset(),
            on_damage: self.options.on_damage,
            lookup,
            key: None,
            counts: OpenCounts::default(),
            parcel,
            body,
        };
        let counts = if codec == Compression::None {
            layer.take_off(records, out)?
        } else {
            opened.clear();
            let counts = layer.take_off(records, opened)?;
            self.compressor.compress(codec, opened, out)?;
            counts
        };
        let Some(counts) = counts else { return Ok(Opened::KeyUnknown) };
        write_header_like(out.get_mut(start..).unwrap_or_default(), batch, codec)?;
        Ok(Opened::Rewritten(counts))
    }
}

/// No one seals control batches, and a batch without records has nothing to open.
fn may_be_sealed(batch: &BatchView<'_>) -> bool {
    !batch.is_control() && batch.records_count() != 0
}

fn unpack<'r>(
    batch: &BatchView<'r>,
    decompressor: &'r mut Decompressor,
    bytes_max: usize,
) -> Result<RawRecords<'r>, Error> {
    Ok(batch.records(decompressor, bytes_max)?.raw())
}

fn has_marker(records: RawRecords<'_>) -> Result<bool, Error> {
    for record in records {
        if marker::find(&record?)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// One layer of sealing on the records of a batch.
struct Layer<'p, 'b, K, L> {
    base_offset: i64,
    on_damage: OnDamage,
    lookup: L,
    /// The EDEK that was looked up last.
    key: Option<(&'p [u8], KeyLookup<K>)>,
    counts: OpenCounts,
    parcel: &'b mut Vec<u8>,
    body: &'b mut Vec<u8>,
}

/// Whether a record was appended, or waits for its data key.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    KeyUnknown,
}

impl<'p, K, L> Layer<'p, '_, K, L>
where
    K: Deref<Target = OpeningKey>,
    L: FnMut(&[u8]) -> KeyLookup<K>,
{
    /// Appends all records, opened, to `out`; `None` if a data key is unknown.
    fn take_off(
        mut self,
        records: RawRecords<'p>,
        out: &mut Vec<u8>,
    ) -> Result<Option<OpenCounts>, Error> {
        for record in records {
            let record = record?;
            // A null value is never sealed, whatever its headers say: who forged them must not keep
            // consumers from what comes behind.
            let (Some(marked), Some(value)) = (marker::find(&record)?, record.value()) else {
                out.extend_from_slice(record.bytes());
                continue;
            };
            let start = out.len();
            match self.open(&record, value, &marked, out) {
                Ok(Step::Done) => self.counts.opened += 1,
                Ok(Step::KeyUnknown) => return Ok(None),
                Err(damage) => {
                    out.truncate(start);
                    self.pass(&record, damage, out)?;
                }
            }
        }
        Ok(Some(self.counts))
    }

    fn pass(
        &mut self,
        record: &RawRecord<'_>,
        damage: Damage,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let offset = self.base_offset.wrapping_add(i64::from(record.offset_delta()));
        if self.on_damage == OnDamage::Fail {
            return Err(Error::Damaged { offset, damage });
        }
        out.extend_from_slice(record.bytes());
        self.counts.passed += 1;
        self.counts.first_passed.get_or_insert((offset, damage));
        Ok(())
    }

    /// Appends one record without its layer, or anything if it is damaged.
    ///
    /// The ciphertext is opened where the value is to stand: a parcel with a value only is the
    /// value's field and one byte more.
    #[inline]
    fn open(
        &mut self,
        record: &RawRecord<'p>,
        value: &'p [u8],
        marked: &Marked<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Damage> {
        marked.version?;
        let wrapper = Wrapper::parse(value)?;
        let field_len = wrapper.ciphertext.len().checked_sub(1).ok_or(Damage::Parcel)?;
        let key = match self.key_of(wrapper.edek) {
            KeyLookup::Found(key) => key,
            KeyLookup::Unknown => return Ok(Step::KeyUnknown),
            KeyLookup::Refused => return Err(Damage::Edek),
        };
        let before = record.before_value();
        let headers_count = length_field(marked.headers_count)?;
        let headers_len = varint::len_i32(headers_count) + marked.headers.len();
        let body_len = before.len() + field_len + headers_len;

        let start = out.len();
        out.reserve(varint::LEN_32_MAX + body_len + 1);
        varint::write_i32(out, length_field(body_len)?);
        out.extend_from_slice(before);
        let parcel_at = out.len();
        out.extend_from_slice(wrapper.ciphertext);
        let parcel = out.get_mut(parcel_at..).unwrap_or_default();
        key.open(&wrapper, parcel)?;
        if !parcel::has_value_only(parcel) {
            self.parcel.clear();
            self.parcel.extend_from_slice(parcel);
            out.truncate(start);
            return self.unwrap_parcel(record, marked, out);
        }
        out.truncate(parcel_at + field_len);
        varint::write_i32(out, headers_count);
        out.extend_from_slice(marked.headers);
        Ok(Step::Done)
    }

    /// Appends the record that the copied parcel makes of `record`.
    fn unwrap_parcel(
        &mut self,
        record: &RawRecord<'p>,
        marked: &Marked<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Damage> {
        let Parcel { value, headers } = Parcel::parse(self.parcel)?;
        let value = match value {
            Field::Present(value) => Some(value),
            Field::Null => None,
            Field::Absent => record.value(),
        };
        self.body.clear();
        self.body.extend_from_slice(record.before_value());
        write_nullable(self.body, value)?;
        match headers {
            Field::Absent => {
                varint::write_i32(self.body, length_field(marked.headers_count)?);
                self.body.extend_from_slice(marked.headers);
            }
            Field::Null => varint::write_i32(self.body, 0),
            Field::Present(headers) => {
                varint::write_i32(self.body, length_field(headers.len())?);
                for header in headers {
                    write_nullable(self.body, Some(header.key))?;
                    write_nullable(self.body, header.value)?;
                }
            }
        }
        varint::write_i32(out, length_field(self.body.len())?);
        out.extend_from_slice(self.body);
        Ok(Step::Done)
    }

    #[inline]
    fn key_of(&mut self, edek: &'p [u8]) -> &KeyLookup<K> {
        if self.key.as_ref().is_none_or(|(known, _)| *known != edek) {
            self.key = Some((edek, (self.lookup)(edek)));
        }
        self.key.as_ref().map(|(_, key)| key).expect("it was looked up")
    }
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) -> Result<(), Damage> {
    varint::write_i32(out, bytes.map_or(Ok(-1), |bytes| length_field(bytes.len()))?);
    out.extend_from_slice(bytes.unwrap_or_default());
    Ok(())
}

/// A length in an opened record. Beyond 31 bits it came of a parcel that no one has written.
#[inline]
fn length_field(len: usize) -> Result<i32, Damage> {
    i32::try_from(len).map_err(|_| Damage::Parcel)
}
