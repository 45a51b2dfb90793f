//! Bytes that other implementations write and read.

use moldau_encryption::{DataKey, Field, MARKER_KEY, OpeningKey, Parcel, Wrapper};
use moldau_records::{BatchView, HeaderView, Rewriter};
use zeroize::Zeroizing;

use crate::editors::OpenAll;
use crate::sample::{Sample, plain, read};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A record's value as a JCE writes it: KEK 00..1f, its UUID 00112233-4455-6677-8899-aabbccddeeff,
/// nonce of the wrapping a0..ab, DEK 20..3f, nonce of the record 00..0b, value "hello".
const SEALED_VALUE: &str = "
    004e
    800ca0a1a2a3a4a5a6a7a8a9aaab00112233445566778899aabbccddeeff
    c6395e0e61ee24984a4cadf82b57eef1409d6b23a682745ba4371cbd43964b3e
    4d1b9a3a0cd4dfc848ae78ece84cf3c2
    00 000102030405060708090a0b
    563a38cb265ae827c6105de80023ad475347f46377e67a";

fn published_key() -> OpeningKey {
    let mut bytes = Zeroizing::new([0; 32]);
    bytes.iter_mut().zip(0x20..).for_each(|(byte, value)| *byte = value);
    OpeningKey::new(&DataKey::new(bytes))
}

#[test]
fn the_published_record_opens() {
    let value = hex(SEALED_VALUE);
    assert_eq!(value.len(), 116);
    let wrapper = Wrapper::parse(&value).unwrap();
    assert_eq!(wrapper.edek.len(), 78);
    assert_eq!(wrapper.nonce, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);

    let sealed = Sample::of_value(&value).with_header(MARKER_KEY.as_bytes(), Some(&[2]));
    let bytes = plain(&[sealed.with_header(b"other", None)]);
    let (key, mut out) = (published_key(), Vec::new());
    let lookup = |edek: &[u8]| {
        assert_eq!(edek, &value[2..80]);
        Some(&key)
    };
    let batch = BatchView::parse(&bytes).unwrap();
    let opened = OpenAll::new(lookup, false).open(&mut Rewriter::default(), &batch, &mut out);
    assert_eq!(opened.unwrap().opened, 1);
    assert_eq!(out, plain(&[Sample::of_value(b"hello").with_header(b"other", None)]));
    assert_eq!(read(&out)[0].value.as_deref(), Some(&b"hello"[..]));
}

/// The parcels in Kroxylicious's own test resources: value "hi -n\n", header "hello\n: there\n".
#[test]
fn the_published_parcels_read() {
    let read = |text: &str| {
        let bytes = hex(text);
        let Parcel { value, headers } = Parcel::parse(&bytes).unwrap();
        let value = match value {
            Field::Present(value) => Field::Present(value.to_vec()),
            Field::Null => Field::Null,
            Field::Absent => Field::Absent,
        };
        let owned =
            |header: HeaderView<'_>| (header.key.to_vec(), header.value.map(<[u8]>::to_vec));
        let headers = match headers {
            Field::Present(headers) => Field::Present(headers.map(owned).collect::<Vec<_>>()),
            Field::Null => Field::Null,
            Field::Absent => Field::Absent,
        };
        (value, headers)
    };
    let value = Field::Present(b"hi -n\n".to_vec());
    let there = (b"hello\n".to_vec(), Some(b"there\n".to_vec()));
    let null = (b"hello\n".to_vec(), None);
    assert_eq!(read("0c 6869202d6e0a 03"), (value.clone(), Field::Absent));
    let both = read("0c 6869202d6e0a 02 06 68656c6c6f0a 0c 74686572650a");
    assert_eq!(both, (value.clone(), Field::Present(vec![there])));
    let null_header = read("0c 6869202d6e0a 02 06 68656c6c6f0a 01");
    assert_eq!(null_header, (value, Field::Present(vec![null])));
    assert_eq!(read("01 00"), (Field::Null, Field::Present(Vec::new())));
    assert_eq!(read("03 03"), (Field::Absent, Field::Absent));
}
