//! Arbitrary bytes, with right checksums, as a compacted log: cleaning never panics, and what it
//! leaves reads well and keeps its place.

#![no_main]

use moldau_records::{
    BatchView, CleanPolicy, Cleaned, Cleaner, Decompressor, KeyMap, Mapped, crc32c, iter_batches,
};

/// Most bytes that a payload may unpack to.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;
const NOW_MS: i64 = 1_700_000_000_000;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut log = Vec::new();
    for batch in iter_batches(data).flatten() {
        let start = log.len();
        log.extend_from_slice(batch.bytes());
        let crc = crc32c(&log[start + 21..]);
        log[start + 17..start + 21].copy_from_slice(&crc.to_be_bytes());
    }
    let policy = CleanPolicy {
        now_ms: NOW_MS,
        delete_retention_ms: 1,
        first_uncleanable_offset: data.len() as i64,
    };
    let mut cleaner = Cleaner::new(PAYLOAD_BYTES_MAX, policy);
    let mut map = KeyMap::new(240, 1);
    map.start(0, i64::MAX);
    for batch in iter_batches(&log).flatten() {
        if cleaner.map_batch(&batch, &mut map) == Ok(Mapped::Full) {
            break;
        }
    }
    let mut decompressor = Decompressor::default();
    for batch in iter_batches(&log).flatten() {
        let cleaned = cleaner.clean_batch(&batch, &map, batch.producer_id() & 1 == 1);
        let Ok(Cleaned::Rewritten(bytes) | Cleaned::Emptied(bytes)) = cleaned else { continue };
        let cleaned = BatchView::parse(bytes).expect("a cleaned batch is whole");
        assert_eq!(cleaned.check_crc(), Ok(()));
        assert_eq!(cleaned.base_offset(), batch.base_offset());
        assert_eq!(cleaned.last_offset(), batch.last_offset());
        assert!(cleaned.records_count() <= batch.records_count());
        // Timestamps on a delete horizon may take more bytes than before.
        let records = cleaned.records(&mut decompressor, 2 * PAYLOAD_BYTES_MAX);
        let records = records.expect("a cleaned batch unpacks");
        let offsets = records.map(|record| record.expect("a cleaned record reads").offset());
        assert!(offsets.is_sorted_by(|a, b| a < b));
    }
});
