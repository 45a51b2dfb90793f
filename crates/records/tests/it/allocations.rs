//! Reading and writing allocate nothing once their buffers have grown.

use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, BatchView, CleanPolicy, Cleaned, Cleaner, Compression,
    Compressor, Decompressor, HeaderView, KeyMap, Validator, iter_batches,
};

use crate::sample::{BYTES_MAX, Sample, plain};

const RECORDS: usize = 1000;

fn batch(codec: Compression) -> Vec<u8> {
    let samples: Vec<Sample> = (0..RECORDS)
        .map(|i| Sample {
            timestamp: 1_700_000_000_000 + i as i64,
            key: Some(format!("key-{i}").into_bytes()),
            value: Some(vec![b'v'; 100]),
            headers: vec![(b"h".to_vec(), Some(b"1".to_vec())), (b"h".to_vec(), None)],
        })
        .collect();
    plain(&samples, codec)
}

fn walk(bytes: &[u8], decompressor: &mut Decompressor) -> usize {
    let mut seen = 0;
    for batch in iter_batches(bytes).map(Result::unwrap) {
        batch.check_crc().unwrap();
        for record in batch.records(decompressor, BYTES_MAX).unwrap().map(Result::unwrap) {
            let headers = record.headers().unwrap().filter(|header| header.key == b"h").count();
            seen += usize::from(record.key().is_some() && headers == 2);
        }
    }
    seen
}

#[test]
fn walking_records_of_every_codec_allocates_nothing_after_the_first_batch() {
    for codec in Compression::ALL {
        let bytes = batch(codec);
        let mut decompressor = Decompressor::default();
        assert_eq!(walk(&bytes, &mut decompressor), RECORDS);
        let measured = allocation_counter::measure(|| {
            assert_eq!(walk(&bytes, &mut decompressor), RECORDS);
        });
        assert_eq!(measured.count_total, 0, "{codec}");
    }
}

#[test]
fn walking_an_uncompressed_batch_allocates_nothing_at_all() {
    let bytes = batch(Compression::None);
    let measured = allocation_counter::measure(|| {
        assert_eq!(walk(&bytes, &mut Decompressor::default()), RECORDS);
    });
    assert_eq!(measured.count_total, 0);
}

#[test]
fn a_validator_used_again_allocates_nothing_with_any_codec() {
    for codec in Compression::ALL {
        let bytes = batch(codec);
        let mut validator = Validator::default();
        let mut check = || {
            validator.check(&bytes, &AppendRules::LENIENT).unwrap();
        };
        check();
        assert_eq!(allocation_counter::measure(check).count_total, 0, "{codec}");
    }
}

#[test]
fn a_builder_used_again_allocates_nothing_with_any_codec() {
    for codec in Compression::ALL {
        let mut compressor = Compressor::default();
        let mut builder = BatchBuilder::new(BatchOptions::default());
        let mut write = || {
            builder.start(BatchOptions::default());
            for i in 0..RECORDS {
                let header = HeaderView { key: b"h", value: None };
                builder.append(i as i64, Some(b"key"), Some(&[b'v'; 100]), [header]).unwrap();
            }
            let bytes = builder.finish(codec, &mut compressor).unwrap();
            assert_eq!(BatchView::parse(bytes).unwrap().records_count(), RECORDS as i32);
        };
        write();
        assert_eq!(allocation_counter::measure(write).count_total, 0, "{codec}");
    }
}

#[test]
fn cleaning_batches_of_every_codec_allocates_nothing_after_the_first_round() {
    let policy =
        CleanPolicy { now_ms: 0, delete_retention_ms: 1, first_uncleanable_offset: RECORDS as i64 };
    let mut map = KeyMap::new(1 << 16, 3);
    let mut cleaner = Cleaner::new(BYTES_MAX, policy);
    for codec in Compression::ALL {
        let bytes = batch(codec);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut round = || {
            cleaner.start(policy);
            map.start(0, RECORDS as i64);
            cleaner.map_batch(&batch, &mut map).unwrap();
            map.insert(b"key-7", RECORDS as i64).unwrap();
            let cleaned = cleaner.clean_batch(&batch, &map, false).unwrap();
            let Cleaned::Rewritten(cleaned) = cleaned else { panic!("{cleaned:?}") };
            BatchView::parse(cleaned).unwrap().records_count()
        };
        assert_eq!(round(), RECORDS as i32 - 1);
        let measured = allocation_counter::measure(|| {
            round();
        });
        assert_eq!(measured.count_total, 0, "{codec}");
    }
}

#[test]
fn a_pass_over_tiny_records_takes_less_than_twice_their_bytes() {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..400_000 {
        builder.append(0, Some(b""), Some(b""), []).unwrap();
    }
    let unpacked = builder.estimated_size();
    let bytes = builder.finish(Compression::Zstd, &mut Compressor::default()).unwrap();
    let batch = BatchView::parse(bytes).unwrap();
    let policy =
        CleanPolicy { now_ms: 0, delete_retention_ms: 1, first_uncleanable_offset: i64::MAX };
    let measured = allocation_counter::measure(|| {
        let mut map = KeyMap::new(240, 3);
        Cleaner::new(BYTES_MAX, policy).map_batch(&batch, &mut map).unwrap();
    });
    assert!(measured.bytes_max < 2 * unpacked as u64, "{measured:?}");
    let measured = allocation_counter::measure(|| {
        let mut cleaner = Cleaner::new(BYTES_MAX, policy);
        let cleaned = cleaner.clean_batch(&batch, &KeyMap::new(0, 3), false);
        assert_eq!(cleaned, Ok(Cleaned::Unchanged));
    });
    assert!(measured.bytes_max < 2 * unpacked as u64, "{measured:?}");
}
