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
    inside(log, (producer, 0), first_sequence, &format!("{producer} {first_sequence}"))
}

/// A record of a transaction, by id and epoch of the producer.
pub(crate) fn inside(
    log: LogId,
    (id, epoch): (i64, i16),
    sequence: i32,
    value: &str,
) -> AppendBatch {
    let options = BatchOptions {
        attributes: Attributes::default().with_transactional(true),
        producer: Some(Producer { id, epoch, base_sequence: sequence }),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    builder.append(1_700_000_000_000, None, Some(value.as_bytes()), []).unwrap();
    let bytes = builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap();
    let (first_sequence, last_sequence) = (sequence, sequence);
    let producer = Some(ProducerBatch { id, epoch, first_sequence, last_sequence });
    AppendBatch { part: Part::Inside, bytes, producer, ..batch(log, id, sequence, 1) }
}

/// The marker that ends a transaction.
pub(crate) fn marker(log: LogId, producer: i64, marker: Marker, decision: i64) -> AppendBatch {
    ending(log, (producer, 0), marker, decision)
}

/// As [`marker`], by id and epoch of the producer.
pub(crate) fn ending(
    log: LogId,
    (id, epoch): (i64, i16),
    marker: Marker,
    decision: i64,
) -> AppendBatch {
    let bytes = MarkerBatch::new(id, epoch, marker, 1_700_000_000_000);
    let commits = marker == Marker::Commit;
    let producer = Some(ProducerBatch { id, epoch, first_sequence: -1, last_sequence: -1 });
    AppendBatch {
        part: Part::Marker(moldau_cluster::Marker { commits, decision }),
        bytes: bytes.view().bytes().to_vec().into(),
        producer,
        ..batch(log, id, 0, 1)
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
