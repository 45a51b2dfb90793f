//! Control batches that end a transaction in one partition (Kafka's `EndTransactionMarker`).
//!
//! Such a batch has the transactional and the control bit, sequence number -1 and one record:
//!
//! | part | bytes | field |
//! |---|---|---|
//! | key | 0..2 | version, 0 |
//! | key | 2..4 | type: 0 abort, 1 commit |
//! | value | 0..2 | version, 0 |
//! | value | 2..6 | epoch of the coordinator |

use crate::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    NO_SEQUENCE, Producer,
};

/// How a transaction ends in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// Its records are not to be seen.
    Abort,
    /// Its records count.
    Commit,
}

/// A control batch with one marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerBatch {
    bytes: Vec<u8>,
}

impl MarkerBatch {
    /// The marker for a producer's transaction.
    #[must_use]
    pub fn new(producer_id: i64, producer_epoch: i16, marker: Marker, timestamp_ms: i64) -> Self {
        let attributes = Attributes::default().with_transactional(true).with_control(true);
        let producer =
            Producer { id: producer_id, epoch: producer_epoch, base_sequence: NO_SEQUENCE };
        let mut builder = BatchBuilder::new(BatchOptions {
            attributes,
            producer: Some(producer),
            ..BatchOptions::default()
        });
        let (key, value) = ([0, 0, 0, u8::from(marker == Marker::Commit)], [0; 6]);
        builder
            .append(timestamp_ms, Some(&key), Some(&value), [])
            .and_then(|_| builder.finish(Compression::None, &mut Compressor::default()))
            .map(|bytes| Self { bytes: bytes.to_vec() })
            .expect("a record of ten bytes fits a batch")
    }

    /// The batch.
    #[must_use]
    pub fn view(&self) -> BatchView<'_> {
        BatchView::parse(&self.bytes).expect("written by the builder")
    }
}

impl BatchView<'_> {
    /// The marker of a control batch; `None` for any other batch, and for control records of
    /// another type.
    #[must_use]
    pub fn marker(&self) -> Option<Marker> {
        if !self.is_control() {
            return None;
        }
        let mut decompressor = Decompressor::default();
        let mut records = self.records(&mut decompressor, MARKER_BYTES_MAX).ok()?;
        let record = records.next()?.ok()?;
        match record.key()? {
            [_, _, 0, 0] => Some(Marker::Abort),
            [_, _, 0, 1] => Some(Marker::Commit),
            _ => None,
        }
    }
}

/// A marker has far fewer bytes than this.
const MARKER_BYTES_MAX: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_has_the_bytes_that_kafka_writes() {
        let batch = MarkerBatch::new(4000, 3, Marker::Commit, 0x0102);
        #[rustfmt::skip]
        let golden = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 66, 255, 255, 255, 255, 2,
            // The CRC.
            0, 0, 0, 0,
            0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2,
            0, 0, 0, 0, 0, 0, 15, 160, 0, 3, 255, 255, 255, 255, 0, 0, 0, 1,
            32, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 0, 0,
        ];
        let mut bytes = batch.bytes.clone();
        bytes[17..21].fill(0);
        assert_eq!(bytes, golden);
        assert!(batch.view().check_crc().is_ok());
    }

    #[test]
    fn a_marker_says_how_its_transaction_ended() {
        for marker in [Marker::Abort, Marker::Commit] {
            let batch = MarkerBatch::new(1, 0, marker, 5);
            assert_eq!(batch.view().marker(), Some(marker));
        }
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(0, Some(&[0, 0, 0, 1]), None, []).expect("a record");
        let plain = builder.finish(Compression::None, &mut Compressor::default()).expect("a batch");
        assert_eq!(BatchView::parse(plain).expect("a batch").marker(), None);
    }
}
