//! Arbitrary bytes as produced record batches: what passes the broker's check can be walked, and
//! nothing panics.

#![no_main]

use moldau_records::{AppendLimits, Decompressor, ValidBatch, iter_batches};

/// Most bytes that a payload may unpack to.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let limits = AppendLimits { batch_bytes_max: PAYLOAD_BYTES_MAX };
    if let Ok(batch) = ValidBatch::check(data, &limits) {
        assert_eq!(batch.view().bytes(), data);
    }
    let mut decompressor = Decompressor::default();
    for batch in iter_batches(data).flatten() {
        let Ok(records) = batch.records(&mut decompressor, PAYLOAD_BYTES_MAX) else { continue };
        for record in records.flatten() {
            if let Ok(headers) = record.headers() {
                headers.for_each(drop);
            }
        }
    }
});
