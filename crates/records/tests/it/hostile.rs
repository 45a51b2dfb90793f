//! Hostile bytes cost an error, never a panic and never more memory than allowed.

use moldau_records::{
    AppendRules, BatchView, Compression, Decompressor, Error, Validator, iter_batches,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::sample::{codecs, plain, read, samples};

const BYTES_MAX: usize = 1 << 20;

/// Everything that reads bytes, also with a wrong CRC.
fn read_all(bytes: &[u8]) {
    let accepted = Validator::default().check(bytes, &AppendRules::LENIENT).is_ok();
    let walked = iter_batches(bytes).filter_map(Result::ok).inspect(|batch| {
        let whole = read(batch).is_ok();
        assert!(!(whole && batch.last_sequence() < -1));
    });
    assert!(walked.count() > 0 || !accepted);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    #[test]
    fn random_records_in_a_valid_frame_never_panic(
        payload in vec(any::<u8>(), 0..300), codec in 0u8..8, count in 0i32..50
    ) {
        let mut bytes = vec![0; 61];
        bytes[8..12].copy_from_slice(&i32::try_from(49 + payload.len()).unwrap().to_be_bytes());
        bytes[16] = 2;
        bytes[22] = codec;
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        bytes.extend_from_slice(&payload);
        read_all(&bytes);
    }

    #[test]
    fn mutated_batches_never_panic(
        samples in samples(), codec in codecs(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut: prop::sample::Index
    ) {
        let mut bytes = plain(&samples, codec);
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        read_all(&bytes);
    }

    #[test]
    fn a_flipped_bit_under_the_crc_is_always_detected(
        samples in samples(), codec in codecs(), at: prop::sample::Index, bit in 0..8
    ) {
        let mut bytes = plain(&samples, codec);
        let at = 17 + at.index(bytes.len() - 17);
        bytes[at] ^= 1u8 << bit;
        let detected = BatchView::parse(&bytes).unwrap().check_crc();
        let is_mismatch = matches!(detected, Err(Error::CrcMismatch { .. }));
        prop_assert!(is_mismatch);
    }

    #[test]
    fn random_payloads_unpack_within_the_limit(
        payload in vec(any::<u8>(), 0..400), codec in codecs(), limit in 0usize..5000
    ) {
        let mut out = Vec::new();
        let unpacked =
            Decompressor::default().decompress_into(codec, &payload, limit, &mut out);
        prop_assert!(out.len() <= limit && out.capacity() <= limit);
        prop_assert!(unpacked.is_ok() || out.is_empty());
    }
}

#[test]
fn a_decompression_bomb_costs_no_more_than_the_limit() {
    let bomb = vec![0; 64 << 20];
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut packed = Vec::new();
        moldau_records::Compressor::default().compress(codec, &bomb, &mut packed).unwrap();
        let mut decompressor = Decompressor::default();
        let measured = allocation_counter::measure(|| {
            let refused = decompressor.decompress(codec, &packed, BYTES_MAX);
            assert_eq!(refused, Err(Error::PayloadTooLarge { bytes_max: BYTES_MAX }), "{codec}");
        });
        // Growing holds the old buffer beside that of twice its size; contexts come on top.
        assert!(measured.bytes_max < 5 * BYTES_MAX as u64 / 2, "{codec}: {measured:?}");
    }
}
