//! Arbitrary bytes as the coordinator's stored records: what decodes encodes to the same bytes.

#![no_main]

use moldau_coordinator::GroupRecord;
use moldau_coordinator::producer_ids::ProducerIdBlock;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(record) = GroupRecord::decode(data) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(GroupRecord::decode(&bytes).ok(), Some(record));
    }
    if let Ok(block) = ProducerIdBlock::decode(data) {
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        assert_eq!(bytes, data);
    }
});
