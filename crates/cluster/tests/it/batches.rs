//! Batches of records as producers send them.

use bytes::Bytes;
use moldau_cluster::{AppendBatch, LogId, ProducerBatch};
use moldau_records::{BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Producer};

/// A batch of the producer that begins with this sequence; the values are the sequences.
pub(crate) fn batch(log: LogId, producer: i64, first_sequence: i32, count: i32) -> AppendBatch {
    let producer = Producer { id: producer, epoch: 0, base_sequence: first_sequence };
    let options = BatchOptions { producer: Some(producer), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for sequence in first_sequence..first_sequence + count {
        let value = format!("{} {sequence}", producer.id);
        builder.append(1_700_000_000_000, None, Some(value.as_bytes()), []).unwrap();
    }
    let bytes = builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap();
    AppendBatch {
        log,
        leader_epoch: -1,
        offsets_count: count,
        max_timestamp: 1_700_000_000_000,
        producer: Some(ProducerBatch {
            id: producer.id,
            epoch: 0,
            first_sequence,
            last_sequence: first_sequence + count - 1,
        }),
        bytes,
    }
}

/// Offset and value of each record.
pub(crate) fn records(batches: &[Bytes]) -> Vec<(i64, String)> {
    let mut records = Vec::new();
    for batch in batches.iter().flat_map(|bytes| moldau_records::iter_batches(bytes)) {
        let batch: BatchView<'_> = batch.unwrap();
        for record in batch.records_of_payload(batch.payload()).unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value().unwrap().to_vec()).unwrap();
            records.push((record.offset(), value));
        }
    }
    records
}
