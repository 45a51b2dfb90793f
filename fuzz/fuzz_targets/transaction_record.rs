//! Arbitrary bytes as stored records of transactions: what decodes encodes to the same bytes.

#![no_main]

use moldau_coordinator::transactions::TransactionRecord;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(record) = TransactionRecord::decode(data) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(bytes, data);
    }
});
