//! Arbitrary bytes as produced record batches: what passes the broker's check can be read to its
//! last record, holds what was sent, packed as the topic says, and is accepted unchanged when it is
//! sent again; nothing panics.
//!
//! The checksum is put right first, since the rest is behind it.

#![no_main]

use moldau_records::{
    AppendRules, BatchView, Compression, Decompressor, Packing, Timestamps, ValidBatch, Validator,
    crc32c, iter_batches,
};

/// Most bytes that a payload may unpack to.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// With each, records are packed by another codec.
const PACKINGS: [Option<Packing>; 5] = [
    None,
    Some(Packing { codec: Compression::None, level: None }),
    Some(Packing { codec: Compression::Lz4, level: None }),
    Some(Packing { codec: Compression::Lz4, level: Some(12) }),
    Some(Packing { codec: Compression::Zstd, level: Some(1) }),
];

const RULES: [AppendRules; 3] = [
    AppendRules { unpacked_bytes_max: PAYLOAD_BYTES_MAX, ..AppendRules::LENIENT },
    AppendRules {
        batch_bytes_max: 1 << 16,
        unpacked_bytes_max: PAYLOAD_BYTES_MAX,
        timestamps: Timestamps::Create { earliest: 0, latest: 1 << 41 },
        needs_keys: true,
        ..AppendRules::LENIENT
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
    let mut validator = Validator::default();
    for bytes in [data, &sealed] {
        let sent = BatchView::parse(bytes).ok().and_then(|batch| contents(&batch));
        for rules in RULES.into_iter().flat_map(|rules| {
            PACKINGS.map(|packing| AppendRules { packing, ..rules })
        }) {
            if let Ok(batch) = validator.check(bytes, &rules) {
                is_sound(&batch, &rules, sent.as_ref());
            }
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

/// Keys, values and number of headers.
type Contents = Vec<(Option<Vec<u8>>, Option<Vec<u8>>, usize)>;

/// What a batch holds. Offsets that are written anew may take more bytes than those that came.
fn contents(batch: &BatchView<'_>) -> Option<Contents> {
    let mut decompressor = Decompressor::default();
    let records = batch.records(&mut decompressor, 2 * PAYLOAD_BYTES_MAX).ok()?;
    let owned = records.map(|record| {
        let record = record.ok()?;
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        Some((owned(record.key()), owned(record.value()), record.headers().ok()?.len()))
    });
    owned.collect()
}

fn is_sound(batch: &ValidBatch<'_>, rules: &AppendRules, sent: Option<&Contents>) {
    let view = batch.view();
    assert_eq!(view.check_crc(), Ok(()));
    assert_eq!(contents(view).as_ref(), sent);
    if let Some(packing) = rules.packing {
        assert_eq!(batch.compression(), packing.codec);
    }
    let mut decompressor = Decompressor::default();
    let records = view.records(&mut decompressor, 2 * PAYLOAD_BYTES_MAX).expect("it was unpacked");
    let mut timestamp_max = -1;
    for (index, record) in (0..).zip(records) {
        let record = record.expect("every record was checked");
        assert_eq!(record.offset_delta(), index);
        timestamp_max = timestamp_max.max(record.timestamp());
    }
    assert_eq!(timestamp_max, view.max_timestamp());
    if matches!(rules.timestamps, Timestamps::Create { .. }) {
        let unpacked_bytes_max = 2 * PAYLOAD_BYTES_MAX;
        let rules = AppendRules { unpacked_bytes_max, packing: None, ..*rules };
        let mut validator = Validator::default();
        let again = validator.check(view.bytes(), &rules).expect("it is valid");
        assert_eq!(again.view().bytes(), view.bytes());
    }
}
