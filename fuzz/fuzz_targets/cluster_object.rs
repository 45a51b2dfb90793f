//! Arbitrary bytes as an object of a cluster, and as an extent of one.

#![no_main]

use moldau_cluster::{Extent, ObjectKey, object};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(runs) = object::runs(data) {
        let bytes: i64 = runs.iter().map(|run| i64::from(run.size)).sum();
        assert!(usize::try_from(bytes).unwrap() < data.len());
    }
    for sorted in [false, true] {
        let extent = Extent {
            base_offset: 5,
            last_offset: 8,
            object: ObjectKey::fresh(),
            position: 0,
            size: i32::try_from(data.len()).unwrap_or(i32::MAX),
            leader_epoch: 3,
            sorted,
            max_timestamp: 0,
        };
        if let Ok(batches) = object::batches(data, &extent) {
            assert_eq!(batches.len(), data.len());
        }
    }
});
