//! Which records are opened, and how damaged ones are handled.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use moldau_encryption::{Damage, MARKER_KEY};
use moldau_records::{BatchOptions, Compression, Error};

use crate::editors::{Failure, Opened};
use crate::sample::{
    Bytes, Keys, Sample, build, data_key, edek, open, open_with, plain, read, seal,
};

const MARKER: &[u8] = MARKER_KEY.as_bytes();

/// A wrapper of any parcel.
fn wrap(parcel: &[u8], seed: u8) -> Bytes {
    let key = UnboundKey::new(&AES_256_GCM, data_key(seed).bytes()).unwrap();
    let nonce = [7; 12];
    let mut sealed = parcel.to_vec();
    LessSafeKey::new(key)
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
        .unwrap();
    [&[0, 89][..], &edek(seed).0, &[0], &nonce, &sealed].concat()
}

fn sealed(parcel: &[u8]) -> Sample {
    Sample::of_value(&wrap(parcel, 1)).with_header(MARKER, Some(&[2]))
}

/// Reasons to refuse a record with the marker of a sealed one.
fn damage_of(sample: Sample) -> Damage {
    let options = BatchOptions { base_offset: 100, ..Default::default() };
    let bytes = build(options, &[Sample::of_value(b"clear"), sample], Compression::None);
    let (opened, out) = open_with(false, &bytes, &Keys::of(&[1]));
    let Err(Failure::Damaged { offset: 101, damage }) = opened else { panic!("{opened:?}") };
    assert_eq!(out, b"");
    let (opened, out) = open_with(true, &bytes, &Keys::of(&[1]));
    let first_passed = Some((101, damage));
    assert_eq!(opened.unwrap(), Opened { passed: 1, first_passed, ..Opened::default() });
    assert_eq!(out, b"");
    damage
}

#[test]
fn a_batch_without_a_marker_stays_as_it_is() {
    for codec in Compression::ALL {
        let clear = Sample::of_value(b"value").with_header(b"kroxylicious.io", Some(&[2]));
        let bytes = build(BatchOptions::default(), &[clear, Sample::tombstone()], codec);
        let (opened, out) = open_with(false, &bytes, &Keys::of(&[]));
        assert_eq!((opened.unwrap(), &*out), (Opened::default(), &b""[..]));
    }
}

#[test]
fn a_sealed_batch_with_a_wrong_crc_is_refused() {
    let mut bytes = seal(&plain(&[Sample::of_value(b"value")]), 1);
    bytes[17] ^= 1;
    let (opened, out) = open_with(true, &bytes, &Keys::of(&[1]));
    let Err(Failure::Batch(Error::CrcMismatch { .. })) = opened else { panic!("{opened:?}") };
    assert_eq!(out, b"");
}

#[test]
fn the_marker_counts_at_any_place_and_goes_only_from_the_first() {
    let value = wrap(b"\x0ahello\x03", 1);
    let first = Sample::of_value(&value).with_header(MARKER, Some(&[2])).with_header(b"h", None);
    let second = Sample::of_value(&value).with_header(b"h", None).with_header(MARKER, Some(&[2]));
    let opened = read(&open(&plain(&[first, second]), 1));
    let hello = Sample::of_value(b"hello").with_header(b"h", None);
    assert_eq!(opened, [hello.clone(), hello.with_header(MARKER, Some(&[2]))]);
}

#[test]
fn a_marker_that_is_not_version_2_is_damage() {
    let value = wrap(b"\x0ahello\x03", 1);
    let marked = |marker| Sample::of_value(&value).with_header(MARKER, marker);
    assert_eq!(damage_of(marked(Some(&[1][..]))), Damage::Version(1));
    assert_eq!(damage_of(marked(Some(&[3]))), Damage::Version(3));
    assert_eq!(damage_of(marked(Some(&[]))), Damage::Marker);
    assert_eq!(damage_of(marked(Some(&[2, 2]))), Damage::Marker);
    assert_eq!(damage_of(marked(None)), Damage::Marker);
}

#[test]
fn a_forged_marker_on_any_value_is_damage() {
    let marked = |value: &[u8]| Sample::of_value(value).with_header(MARKER, Some(&[2]));
    assert_eq!(damage_of(marked(b"")), Damage::Wrapper);
    assert_eq!(damage_of(marked(b"\x01plain text")), Damage::Cipher(1));
    assert_eq!(damage_of(marked(b"plain text")), Damage::Cipher(b'p'));
    assert_eq!(damage_of(marked(b"\0\xff\xff\xff\xff\x0f")), Damage::Wrapper);
    assert_eq!(damage_of(marked(b"\0\xff\xff\xff\xff\xff\xff")), Damage::Wrapper);
    let long_edek = [&[0, 0x81, 0x80, 1][..], &[0; 20_000]].concat();
    assert_eq!(damage_of(marked(&long_edek)), Damage::Wrapper);
    let mut value = wrap(b"\x0ahello\x03", 1);
    value[91] = 1;
    assert_eq!(damage_of(marked(&value)), Damage::Aad(1));
}

#[test]
fn a_null_value_passes_whatever_its_marker_says() {
    let forged = [Some(&[2][..]), Some(&[9]), None];
    let tombstones = forged.map(|marker| Sample::tombstone().with_header(MARKER, marker));
    let bytes = build(BatchOptions::default(), &tombstones, Compression::None);
    let (opened, out) = open_with(false, &bytes, &Keys::of(&[1]));
    assert_eq!((opened.unwrap(), &*out), (Opened::default(), &b""[..]));
}

#[test]
fn a_value_cut_anywhere_or_changed_anywhere_is_damage() {
    let value = wrap(b"\x0ahello\x03", 1);
    let marked = |value: &[u8]| Sample::of_value(value).with_header(MARKER, Some(&[2]));
    for len in 0..value.len() {
        let damage = damage_of(marked(&value[..len]));
        let is_wrapper = len < 2 + 89 + 1 + 12 + 16;
        let expected = match len {
            _ if is_wrapper => Damage::Wrapper,
            120 => Damage::Parcel,
            _ => Damage::Authentication,
        };
        assert_eq!(damage, expected, "{len}");
    }
    for at in 92..value.len() {
        let mut value = value.clone();
        value[at] ^= 0x40;
        assert_eq!(damage_of(marked(&value)), Damage::Authentication, "{at}");
    }
}

#[test]
fn a_value_of_another_key_under_the_same_edek_does_not_authenticate() {
    let value = [&[0, 89][..], &edek(1).0, &wrap(b"\x0ahello\x03", 2)[91..]].concat();
    let marked = Sample::of_value(&value).with_header(MARKER, Some(&[2]));
    assert_eq!(damage_of(marked), Damage::Authentication);
}

#[test]
fn parcels_with_headers_replace_those_of_the_record() {
    let opened = |parcel: &[u8]| {
        let record = sealed(parcel).with_header(b"clear", Some(b"1"));
        let [opened] = &read(&open(&plain(&[record]), 1))[..] else { panic!("one record") };
        (opened.value.clone(), opened.headers.clone())
    };
    let (value, headers) = opened(b"\x0chi -n\n\x02\x06hello\n\x0cthere\n");
    assert_eq!(value.as_deref(), Some(&b"hi -n\n"[..]));
    assert_eq!(headers, [(b"hello\n".to_vec(), Some(b"there\n".to_vec()))]);
    let (value, headers) = opened(b"\x0chi -n\n\x04\x06hello\n\x01\x00\x00");
    assert_eq!(value.as_deref(), Some(&b"hi -n\n"[..]));
    assert_eq!(headers, [(b"hello\n".to_vec(), None), (Vec::new(), Some(Vec::new()))]);
    assert_eq!(opened(b"\x01\x00"), (None, Vec::new()));
    assert_eq!(opened(b"\x01\x01"), (None, Vec::new()));

    let clear = vec![(b"clear".to_vec(), Some(b"1".to_vec()))];
    assert_eq!(opened(b"\x01\x03"), (None, clear.clone()));
    assert_eq!(opened(b"\x00\x03"), (Some(Vec::new()), clear.clone()));
    let wrapper = wrap(b"\x03\x03", 1);
    assert_eq!(opened(b"\x03\x03"), (Some(wrapper), clear));
}

#[test]
fn a_malformed_parcel_is_damage() {
    let long_key = b"\x01\x02\xff\xff\xff\xff\x0f\x01";
    let parcels: [&[u8]; 10] = [
        b"\x0a",
        b"\x0ahell",
        b"\x0ahello",
        b"\x0ahello\x05",
        b"\x05\x03",
        b"\x0ahello\x03\x03",
        b"\x0ahello\x04\x00\x01",
        b"\x01\x02\x00\x03",
        b"\x01\xfe\xff\xff\xff\x0f",
        long_key,
    ];
    for parcel in parcels {
        assert_eq!(damage_of(sealed(parcel)), Damage::Parcel, "{parcel:?}");
    }
}

#[test]
fn an_edek_that_the_service_refuses_is_damage() {
    let bytes = seal(&plain(&[Sample::of_value(b"value")]), 1);
    let (opened, _) = open_with(false, &bytes, &Keys::of(&[2]));
    assert_eq!(opened, Err(Failure::Damaged { offset: 0, damage: Damage::Edek }));
    let (opened, _) = open_with(true, &bytes, &Keys::of(&[2]));
    assert_eq!(opened.unwrap().first_passed, Some((0, Damage::Edek)));
}

/// What a compacted topic holds once its data key was rotated: records of two keys in one batch.
fn of_two_keys(codec: Compression) -> Bytes {
    let old = seal(&plain(&[Sample::of_value(b"a"), Sample::of_value(b"b")]), 1);
    let young = seal(&plain(&[Sample::of_value(b"c")]), 2);
    let mut samples = [read(&old), read(&young), read(&old)].concat();
    samples.insert(2, Sample::of_value(b"clear"));
    build(BatchOptions::default(), &samples, codec)
}

#[test]
fn records_of_several_keys_in_a_batch_open() {
    for codec in Compression::ALL {
        let (opened, out) = open_with(false, &of_two_keys(codec), &Keys::of(&[1, 2]));
        assert_eq!(opened.unwrap(), Opened { is_rewritten: true, opened: 5, ..Opened::default() });
        let values = read(&out).into_iter().map(|sample| sample.value.unwrap());
        let clear: [&[u8]; 6] = [b"a", b"b", b"clear", b"c", b"a", b"b"];
        assert_eq!(values.collect::<Vec<_>>(), clear);
    }
}

#[test]
fn damaged_records_pass_among_opened_ones_where_they_may() {
    let mut samples = read(&of_two_keys(Compression::None));
    samples[1].value.as_mut().unwrap()[110] ^= 1;
    samples[3].value = Some(b"plain text".to_vec());
    let options = BatchOptions { base_offset: 50, ..Default::default() };
    for codec in Compression::ALL {
        let bytes = build(options, &samples, codec);
        let (opened, out) = open_with(true, &bytes, &Keys::of(&[1]));
        let first_passed = Some((51, Damage::Authentication));
        let expected = Opened { is_rewritten: true, opened: 3, passed: 2, first_passed };
        assert_eq!(opened.unwrap(), expected);
        let records = read(&out);
        assert_eq!((&records[1], &records[3]), (&samples[1], &samples[3]));
        assert_eq!(records[4].value.as_deref(), Some(&b"a"[..]));
    }
}

#[test]
fn control_batches_and_those_without_records_need_no_key() {
    let attributes = moldau_records::Attributes::default().with_control(true);
    let control = BatchOptions { attributes, ..Default::default() };
    let without_records = BatchOptions { last_offset_delta: Some(4), ..Default::default() };
    let marked = Sample::of_value(b"x").with_header(MARKER, Some(&[2]));
    let batches = [
        build(control, &[marked], Compression::None),
        build(without_records, &[], Compression::None),
    ];
    for bytes in batches {
        let (opened, _) = open_with(false, &bytes, &Keys::of(&[]));
        assert_eq!(opened.unwrap(), Opened::default());
    }
}
