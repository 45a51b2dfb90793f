//! Batches of records as producers send them.

use bytes::Bytes;
use moldau_cluster::{AppendBatch, LogId, Part, ProducerBatch};
use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Marker,
    MarkerBatch, Producer,
};

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
        part: Part::Outside,
        bytes,
    }
}

/// A batch of a transaction, as [`batch`].
pub(crate) fn transactional(log: LogId, producer: i64, first_sequence: i32) -> AppendBatch {
    let sent = Producer { id: producer, epoch: 0, base_sequence: first_sequence };
    let options = BatchOptions {
        attributes: Attributes::default().with_transactional(true),
        producer: Some(sent),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    let value = format!("{producer} {first_sequence}");
    builder.append(1_700_000_000_000, None, Some(value.as_bytes()), []).unwrap();
    let bytes = builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap();
    AppendBatch { part: Part::Inside, bytes, ..batch(log, producer, first_sequence, 1) }
}

/// The marker that ends a transaction.
pub(crate) fn marker(log: LogId, producer: i64, marker: Marker, decision: i64) -> AppendBatch {
    let bytes = MarkerBatch::new(producer, 0, marker, 1_700_000_000_000);
    let commits = marker == Marker::Commit;
    AppendBatch {
        part: Part::Marker(moldau_cluster::Marker { commits, decision }),
        bytes: bytes.view().bytes().to_vec().into(),
        ..batch(log, producer, 0, 1)
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
