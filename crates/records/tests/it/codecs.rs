//! The framings that other clients write, and the edges of the limit.

use std::io::Write;

use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use moldau_records::{Compression, Compressor, Decompressor, Error};

const BYTES_MAX: usize = 16 << 20;

fn text(len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(5);
    (0..len).map(|at| if at % 50 < 40 { b'a' + (at % 9) as u8 } else { random.u8(..) }).collect()
}

fn unpack(codec: Compression, packed: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    Decompressor::default().decompress_into(codec, packed, BYTES_MAX, &mut out).map(|()| out)
}

fn pack(codec: Compression, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::default().compress(codec, input, &mut out).unwrap();
    out
}

#[test]
fn every_size_around_the_block_lengths_comes_back() {
    let mut compressor = Compressor::default();
    let mut decompressor = Decompressor::default();
    let whole = text(300_000);
    let around =
        [32 << 10, 64 << 10, 128 << 10].into_iter().flat_map(|len| [len - 1, len, len + 1]);
    for len in [0, 1, 2, 13, 100].into_iter().chain(around).chain([whole.len()]) {
        let input = &whole[..len];
        for codec in Compression::ALL {
            let mut packed = Vec::new();
            compressor.compress(codec, input, &mut packed).unwrap();
            let unpacked = decompressor.decompress(codec, &packed, len);
            assert_eq!(unpacked, Ok(input), "{codec} {len}");
        }
    }
}

#[test]
fn a_payload_at_the_limit_unpacks_and_one_byte_less_room_is_refused() {
    for len in [1, 1000, 32 << 10, 64 << 10, 200_000] {
        let input = text(len);
        for codec in Compression::ALL {
            let packed = pack(codec, &input);
            let mut decompressor = Decompressor::default();
            let mut out = Vec::new();
            assert_eq!(decompressor.decompress_into(codec, &packed, len, &mut out), Ok(()));
            let refused = decompressor.decompress_into(codec, &packed, len - 1, &mut out);
            let bytes_max = len - 1;
            assert_eq!(refused, Err(Error::PayloadTooLarge { bytes_max }), "{codec} {len}");
        }
    }
}

#[test]
fn a_short_payload_after_a_long_one_shows_nothing_of_it() {
    let mut decompressor = Decompressor::default();
    for codec in Compression::ALL {
        let long = pack(codec, &text(100_000));
        let short = pack(codec, b"short");
        assert_eq!(decompressor.decompress(codec, &long, BYTES_MAX).unwrap().len(), 100_000);
        assert_eq!(decompressor.decompress(codec, &short, BYTES_MAX), Ok(&b"short"[..]));
    }
}

#[test]
fn a_context_works_after_a_damaged_payload() {
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let input = text(50_000);
        let packed = pack(codec, &input);
        let mut decompressor = Decompressor::default();
        for cut in [0, 1, 9, 20, packed.len() / 2, packed.len() - 1] {
            let damaged = decompressor.decompress(codec, &packed[..cut], BYTES_MAX);
            let is_corrupt = matches!(damaged, Err(Error::CorruptPayload { .. }));
            let is_empty_zstd = codec == Compression::Zstd && cut == 0;
            assert!(is_corrupt || is_empty_zstd, "{codec} {cut}: {damaged:?}");
            assert_eq!(decompressor.decompress(codec, &packed, BYTES_MAX), Ok(&input[..]));
        }
    }
}

#[test]
fn gzip_members_with_all_header_fields_and_several_of_them_unpack() {
    let mut member = flate2::GzBuilder::new()
        .extra(vec![1, 2, 3])
        .filename("name")
        .comment("comment")
        .mtime(7)
        .write(Vec::new(), flate2::Compression::fast());
    member.write_all(b"one ").unwrap();
    let mut packed = member.finish().unwrap();
    let mut member = GzEncoder::new(Vec::new(), flate2::Compression::best());
    member.write_all(b"two").unwrap();
    packed.extend(member.finish().unwrap());
    packed.extend(pack(Compression::Gzip, b" three"));
    assert_eq!(unpack(Compression::Gzip, &packed), Ok(b"one two three".to_vec()));
}

#[test]
fn a_damaged_gzip_checksum_is_corrupt() {
    let mut packed = pack(Compression::Gzip, b"some bytes");
    let at = packed.len() - 8;
    packed[at] ^= 1;
    assert!(matches!(unpack(Compression::Gzip, &packed), Err(Error::CorruptPayload { .. })));
}

#[test]
fn raw_snappy_and_streams_one_after_the_other_unpack() {
    let input = text(100_000);
    let raw = snap::raw::Encoder::new().compress_vec(&input).unwrap();
    assert_eq!(unpack(Compression::Snappy, &raw), Ok(input.clone()));
    let twice = [pack(Compression::Snappy, &input), pack(Compression::Snappy, b"tail")].concat();
    assert_eq!(unpack(Compression::Snappy, &twice), Ok([&input[..], b"tail"].concat()));
}

#[test]
fn a_snappy_block_that_claims_gigabytes_costs_no_memory() {
    let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    let measured = allocation_counter::measure(|| {
        let refused = unpack(Compression::Snappy, &claim);
        assert!(matches!(refused, Err(Error::CorruptPayload { .. })));
    });
    assert_eq!(measured.bytes_total, 0);
}

#[test]
fn lz4_frames_of_every_kind_that_java_reads_unpack() {
    let input = text(300_000);
    let pack = |info| {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&input).unwrap();
        encoder.finish().unwrap()
    };
    for block_size in
        [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB]
    {
        for checksums in [false, true] {
            let info = FrameInfo::new()
                .block_size(block_size)
                .block_checksums(checksums)
                .content_checksum(checksums)
                .content_size(checksums.then_some(input.len() as u64));
            let packed = pack(info.clone());
            assert_eq!(unpack(Compression::Lz4, &packed).as_deref(), Ok(&input[..]));
            let twice = [&packed[..], &packed].concat();
            let linked = pack(info.block_mode(BlockMode::Linked));
            for unreadable in [twice, linked] {
                assert!(unpack(Compression::Lz4, &unreadable).is_err());
            }
        }
    }
}

#[test]
fn another_reader_unpacks_our_lz4_frames() {
    for input in [text(300_000), (0..200_000).map(|_| fastrand::u8(..)).collect()] {
        let packed = pack(Compression::Lz4, &input);
        let mut unpacked = Vec::new();
        std::io::copy(&mut FrameDecoder::new(&packed[..]), &mut unpacked).unwrap();
        assert_eq!(unpacked, input);
    }
}

#[test]
fn damaged_lz4_checksums_are_corrupt() {
    let info = FrameInfo::new().block_checksums(true).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&text(1000)).unwrap();
    let packed = encoder.finish().unwrap();
    // Header checksum, block bytes, content checksum.
    for at in [6, 20, packed.len() - 1] {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x10;
        let refused = unpack(Compression::Lz4, &damaged);
        assert!(matches!(refused, Err(Error::CorruptPayload { .. })), "byte {at}");
    }
}

#[test]
fn zstd_streams_without_content_size_and_several_frames_unpack() {
    let input = text(700_000);
    let mut packed = Vec::new();
    for part in input.chunks(300_000) {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 19).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(part).unwrap();
        packed.extend(encoder.finish().unwrap());
    }
    packed.extend([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    assert_eq!(unpack(Compression::Zstd, &packed), Ok(input));
}

#[test]
fn contexts_and_builders_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Compressor::default());
    is_send(&Decompressor::default());
    is_send(&moldau_records::BatchBuilder::new(moldau_records::BatchOptions::default()));
}
