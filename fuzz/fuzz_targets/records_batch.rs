//! Arbitrary bytes as produced record batches: what passes the broker's check can be read to its
//! last record and is accepted unchanged when it is sent again, and nothing panics.
//!
//! The checksum is put right first, since the rest is behind it.

#![no_main]

use moldau_records::{
    AppendRules, BatchView, Decompressor, Timestamps, ValidBatch, Validator, crc32c, iter_batches,
};

/// Most bytes that a payload may unpack to.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

const RULES: [AppendRules; 3] = [
    AppendRules { unpacked_bytes_max: PAYLOAD_BYTES_MAX, ..AppendRules::LENIENT },
    AppendRules {
        batch_bytes_max: 1 << 16,
        unpacked_bytes_max: PAYLOAD_BYTES_MAX,
        timestamps: Timestamps::Create { earliest: 0, latest: 1 << 41 },
        is_compacted: true,
    },
    AppendRules {
        unpacked_bytes_max: PAYLOAD_BYTES_MAX,
        timestamps: Timestamps::Append(1 << 40),
        ..AppendRules::LENIENT
    },
];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut sealed = data.to_vec();
    if data.len() > 21 {
        let crc = crc32c(&data[21..]).to_be_bytes();
        sealed[17..21].copy_from_slice(&crc);
    }
    for (bytes, rules) in [data, &sealed].into_iter().flat_map(|it| RULES.map(|rules| (it, rules)))
    {
        if let Ok(batch) = Validator::default().check(bytes, &rules) {
            is_sound(&batch, &rules);
        }
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

fn is_sound(batch: &ValidBatch<'_>, rules: &AppendRules) {
    let view: &BatchView<'_> = batch.view();
    assert_eq!(view.check_crc(), Ok(()));
    let mut decompressor = Decompressor::default();
    let records =
        view.records(&mut decompressor, PAYLOAD_BYTES_MAX).expect("it was unpacked before");
    let mut count = 0;
    let mut timestamp_max = -1;
    for record in records {
        let record = record.expect("every record was checked");
        record.headers().expect("headers were checked").for_each(drop);
        timestamp_max = timestamp_max.max(record.timestamp());
        count += 1;
    }
    assert_eq!(count, batch.records_count());
    assert_eq!(timestamp_max, view.max_timestamp());
    if matches!(rules.timestamps, Timestamps::Create { .. }) {
        let mut validator = Validator::default();
        let again = validator.check(view.bytes(), rules).expect("it is valid");
        assert_eq!(again.view().bytes(), view.bytes());
    }
}
