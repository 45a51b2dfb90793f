//! Arbitrary bytes as stored records of share partitions: what decodes encodes to the same bytes,
//! and can be applied.

#![no_main]

use moldau_coordinator::share_partitions::{ShareRecord, Shares};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(record) = ShareRecord::decode(data) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(bytes, data);
        Shares::default().apply(record);
    }
});
