//! Batches whose records an editor replaces.

use moldau_records::{
    Attributes, BatchOptions, BatchView, Compression, Edit, Error, RawRecord, RecordEditor,
    RewriteLimits, Rewriter, varint,
};
use proptest::prelude::*;

use crate::sample::{Bytes, Sample, build, codecs, plain, read, samples};

const LIMITS: RewriteLimits = RewriteLimits {
    unpacked_bytes_max: 8 << 20,
    records_bytes_max: 8 << 20,
    batch_bytes_max: 8 << 20,
};

/// Repeats the values that `is_meant` chooses.
struct Repeats<F> {
    is_meant: F,
    times: usize,
    codec: Option<Compression>,
    seen: Vec<i32>,
}

impl<F: Fn(&[u8]) -> bool> Repeats<F> {
    fn new(times: usize, is_meant: F) -> Self {
        Self { is_meant, times, codec: None, seen: Vec::new() }
    }
}

impl<F: Fn(&[u8]) -> bool> RecordEditor for Repeats<F> {
    type Error = Error;

    fn begin(&mut self, batch: &BatchView<'_>) -> Result<Compression, Error> {
        Ok(self.codec.unwrap_or(batch.compression()?))
    }

    fn record(
        &mut self,
        index: i32,
        record: &RawRecord<'_>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Error> {
        self.seen.push(index);
        let value = record.value().unwrap_or_default();
        if !(self.is_meant)(value) {
            return Ok(());
        }
        let value = value.repeat(self.times);
        edit.replace(|out| {
            let mut body = record.before_value().to_vec();
            varint::write_i32(&mut body, value.len() as i32);
            body.extend_from_slice(&value);
            varint::write_i32(&mut body, record.headers_count() as i32);
            body.extend_from_slice(record.headers());
            varint::write_i32(out, body.len() as i32);
            out.extend_from_slice(&body);
            Ok(())
        })
    }
}

/// What is appended of a batch, and whether anything is.
fn rewrite(
    bytes: &[u8],
    editor: &mut impl RecordEditor<Error = Error>,
    limits: RewriteLimits,
) -> Result<Option<Bytes>, Error> {
    let batch = BatchView::parse(bytes).unwrap();
    let mut out = b"before".to_vec();
    let prepare = |out: &mut Vec<u8>| out.extend_from_slice(b"between");
    let is_rewritten = Rewriter::default().rewrite(&batch, editor, limits, &mut out, prepare)?;
    if !is_rewritten {
        assert_eq!(out, b"before");
        return Ok(None);
    }
    assert!(out.starts_with(b"beforebetween"));
    Ok(Some(out.split_off(b"beforebetween".len())))
}

fn three(codec: Compression) -> Bytes {
    plain(&[&b"a"[..], b"bb", b"ccc"].map(Sample::of_value), codec)
}

fn values(bytes: &[u8]) -> Vec<Bytes> {
    let batch = BatchView::parse(bytes).unwrap();
    batch.check_crc().unwrap();
    read(&batch).unwrap().into_iter().map(|sample| sample.value.unwrap()).collect()
}

#[test]
fn a_batch_in_which_nothing_is_replaced_is_not_written() {
    for codec in Compression::ALL {
        let mut editor = Repeats::new(2, |_: &[u8]| false);
        assert_eq!(rewrite(&three(codec), &mut editor, LIMITS), Ok(None));
        assert_eq!(editor.seen, [0, 1, 2]);
    }
}

#[test]
fn a_replacement_that_fails_leaves_the_record() {
    struct Fails;
    impl RecordEditor for Fails {
        type Error = Error;
        fn record(&mut self, at: i32, _: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Error> {
            let replaced = edit.replace(|out| {
                out.extend_from_slice(b"\x0e\0\0\x02\x01\x02d\0");
                if at == 1 { Ok(()) } else { Err(Error::FormatOverflow) }
            });
            assert_eq!(replaced.is_ok(), at == 1);
            Ok(())
        }
    }
    for codec in Compression::ALL {
        let written = rewrite(&three(codec), &mut Fails, LIMITS).unwrap().unwrap();
        assert_eq!(values(&written), [&b"a"[..], b"d", b"ccc"]);
    }
}

#[test]
fn control_batches_and_those_without_records_are_not_looked_at() {
    let attributes = Attributes::default().with_control(true);
    let control = BatchOptions { attributes, ..Default::default() };
    let without_records = BatchOptions { last_offset_delta: Some(4), ..Default::default() };
    let batches = [
        build(control, &[Sample::of_value(b"x")], Compression::None),
        build(without_records, &[], Compression::None),
    ];
    for bytes in batches {
        let mut editor = Repeats::new(2, |_: &[u8]| true);
        assert_eq!(rewrite(&bytes, &mut editor, LIMITS), Ok(None));
        assert!(editor.seen.is_empty());
        let batch = BatchView::parse(&bytes).unwrap();
        let read = Rewriter::default().read(&batch, 100, |_| panic!("it has none"));
        assert_eq!(read, Ok(()));
    }
}

#[test]
fn a_damaged_batch_is_not_written() {
    for codec in Compression::ALL {
        let mut bytes = three(codec);
        *bytes.last_mut().unwrap() ^= 1;
        let mut editor = Repeats::new(2, |_: &[u8]| true);
        let rewritten = rewrite(&bytes, &mut editor, LIMITS);
        assert!(matches!(rewritten, Err(Error::CrcMismatch { .. })), "{rewritten:?}");
        assert!(editor.seen.is_empty());
    }
}

#[test]
fn what_outgrows_its_limits_is_not_written() {
    let too_large = |bytes_max| Err(Error::RewrittenTooLarge { bytes_max });
    let grown = |codec, limits| {
        rewrite(&three(codec), &mut Repeats::new(10, |_: &[u8]| true), limits).map(|_| ())
    };
    let size = BatchView::parse(&three(Compression::None)).unwrap().payload().len() + 9 * 6;
    for codec in Compression::ALL {
        let exact = RewriteLimits { records_bytes_max: size, ..LIMITS };
        assert_eq!(grown(codec, exact), Ok(()), "{codec}");
        let less = RewriteLimits { records_bytes_max: size - 1, ..LIMITS };
        assert_eq!(grown(codec, less), too_large(size - 1), "{codec}");
    }
    let batch = |batch_bytes_max| RewriteLimits { batch_bytes_max, ..LIMITS };
    assert_eq!(grown(Compression::None, batch(61 + size)), Ok(()));
    assert_eq!(grown(Compression::None, batch(61 + size - 1)), too_large(size - 1));
    assert_eq!(grown(Compression::Gzip, batch(61)), too_large(61));
    let small = RewriteLimits { unpacked_bytes_max: 20, ..LIMITS };
    let unpacked = rewrite(&three(Compression::Lz4), &mut Repeats::new(1, |_: &[u8]| true), small);
    assert_eq!(unpacked, Err(Error::PayloadTooLarge { bytes_max: 20 }));
}

#[test]
fn a_failed_unpacking_counts_as_all_that_it_may_have_cost() {
    let mut rewriter = Rewriter::default();
    let large = plain(&[Sample::of_value(&[0; 9999])], Compression::Zstd);
    let batch = BatchView::parse(&large).unwrap();
    assert!(rewriter.read(&batch, 9000, |_| {}).is_err());
    assert_eq!(rewriter.unpacked_bytes(), 9000);
    assert!(rewriter.read(&batch, 20_000, |_| {}).is_ok());
    assert!((9999..10_050).contains(&rewriter.unpacked_bytes()));
}

proptest! {
    #[test]
    fn records_that_stay_are_the_same_and_so_is_the_header(
        samples in samples(), codec in codecs(), written in codecs(), bit in 0_u8..8,
    ) {
        let options = BatchOptions { base_offset: 77, ..BatchOptions::default() };
        let bytes = build(options, &samples, codec);
        let is_meant = |value: &[u8]| value.first().is_some_and(|byte| byte >> bit & 1 == 1);
        let mut editor = Repeats { codec: Some(written), ..Repeats::new(3, is_meant) };
        let out = rewrite(&bytes, &mut editor, LIMITS).unwrap();
        let mut expected = samples.clone();
        for value in expected.iter_mut().filter_map(|sample| sample.value.as_mut()) {
            if is_meant(value) {
                *value = value.repeat(3);
            }
        }
        prop_assert_eq!(out.is_some(), expected != samples);
        let Some(out) = out else { return Ok(()) };
        let (came, after) = (BatchView::parse(&bytes).unwrap(), BatchView::parse(&out).unwrap());
        prop_assert_eq!(after.bytes().len(), out.len());
        prop_assert_eq!(after.check_crc(), Ok(()));
        prop_assert_eq!(after.compression(), Ok(written));
        prop_assert_eq!(after.base_offset(), 77);
        prop_assert_eq!(after.records_count(), came.records_count());
        prop_assert_eq!(read(&after).unwrap(), expected);
    }
}
