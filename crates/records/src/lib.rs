//! Kafka record batches, format version 2 (KIP-98): view, builder, CRC32C, varints, compression.
//!
//! # Layout
//! - [`BatchView`] and [`iter_batches`] read batches where they lie, [`Records`] walks the records
//!   of one without a heap allocation per record.
//! - [`BatchBuilder`] writes batches, for producers and for filters that choose among records.
//! - [`Rewriter`] takes the records of a batch through a [`RecordEditor`] that may replace them.
//! - [`patch_base_offset`], [`patch_partition_leader_epoch`] and [`set_producer`] change a finished
//!   batch in place.
//! - [`Validator`] is the broker's check of produced bytes; it makes a [`ValidBatch`], the one
//!   thing that a log appends.
//! - [`Cleaner`] filters the batches of a compacted log by the [`KeyMap`] of its last offsets.
//! - [`Decompressor`] and [`Compressor`] hold the state of the five codecs for reuse.
//! - [`crc32c`] and [`varint`] serve the crates above too.
//!
//! # Invariants
//! - All input is hostile: no panic, no indexing, no allocation that the input or the caller's
//!   byte limit does not justify.
//! - A reader changes nothing: header order, duplicate header keys, null and empty stay apart.
//! - The CRC covers a batch from byte 21 to its end; offset and leader epoch lie before it.
//! - No thread, file, socket or clock.

mod attributes;
mod batch;
mod builder;
mod clean;
mod compression;
mod crc;
mod error;
mod marker;
mod patch;
mod raw;
mod record;
mod rewrite;
mod summary;
mod validate;
pub mod varint;

pub use attributes::{Attributes, Compression, TimestampType};
pub use batch::{
    BATCH_HEADER_LEN, BatchView, Batches, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE,
    NO_TIMESTAMP, iter_batches,
};
pub use builder::{BatchBuilder, BatchOptions, Producer};
pub use clean::{CleanCounts, CleanPolicy, Cleaned, Cleaner, Full, KeyMap, Mapped};
pub use compression::{Compressor, Decompressor, Packing};
pub use crc::{Crc32c, crc32c};
pub use error::Error;
pub use marker::{Marker, MarkerBatch};
pub use patch::{patch_base_offset, patch_partition_leader_epoch, set_producer, write_header_like};
pub use raw::{HeaderView, RawRecord, RawRecords, read_header};
pub use record::{Headers, RecordView, Records};
pub use rewrite::{Edit, RecordEditor, RewriteLimits, Rewriter};
pub use validate::{
    AppendRules, FAULTY_RECORDS_MAX, FaultyRecord, Invalid, Timestamps, Unpacking, ValidBatch,
    Validator,
};
