use proptest::prelude::*;

use super::*;

fn source(bytes: &[u8]) -> Option<SocketAddr> {
    let header = parse(bytes).unwrap().expect("the header is whole");
    assert_eq!(header.header_bytes, bytes.len());
    header.source
}

#[test]
fn headers_of_the_specification_are_read() {
    let line = "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n";
    assert_eq!(source(line.as_bytes()), Some("192.168.0.1:56324".parse().unwrap()));
    let longest = "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
                   ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    assert!(source(longest.as_bytes()).is_some());
    assert_eq!(source(b"PROXY UNKNOWN\r\n"), None);
    assert_eq!(source(b"PROXY UNKNOWN whatever it says\r\n"), None);
    // LOCAL with a family that is to be ignored, then a TLV.
    let local = [&V2_SIGNATURE[..], &[0x20, 0x11, 0, 4, 4, 0, 1, 9]].concat();
    assert_eq!(source(&local), None);
    let unix = [&V2_SIGNATURE[..], &[0x21, 0x31, 0, 2, 0, 0]].concat();
    assert_eq!(source(&unix), None);
}

#[test]
fn broken_headers_are_refused() {
    let v2 = |rest: &[u8]| [&V2_SIGNATURE[..], rest].concat();
    for bytes in [
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324\r\n".to_vec(),
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\n".to_vec(),
        b"PROXY TCP4 ::1 ::1 1 2\r\n".to_vec(),
        b"PROXY TCP4 192.168.0.1 nowhere 1 2\r\n".to_vec(),
        b"PROXY TCP4 192.168.0.1 192.168.0.11 65536 443\r\n".to_vec(),
        b"PROXY TCP6 ::1 ::1 1 -2\r\n".to_vec(),
        b"POST / HTTP/1.1".to_vec(),
        [b'P'; V1_BYTES_MAX].to_vec(),
        [b"PROXY ".to_vec(), vec![b' '; V1_BYTES_MAX]].concat(),
        b"\r\n\r\nhello".to_vec(),
        v2(&[0x31, 0x11, 0, 0]),
        v2(&[0x22, 0x11, 0, 0]),
        v2(&[0x21, 0x11, 0, 11, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0]),
        v2(&[0x21, 0x21, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2]),
        v2(&[0x21, 0x11, 0xff, 0xff]),
    ] {
        let parsed = parse(&bytes);
        assert!(matches!(parsed, Err(ProxyProtocolError::Malformed(_))), "{bytes:?}: {parsed:?}");
    }
    assert!(matches!(parse(&[0, 0, 0, 9]), Err(ProxyProtocolError::Missing)));
}

proptest! {
    #[test]
    fn encoded_header_is_read_back_however_it_is_cut(
        from: SocketAddr,
        to: SocketAddr,
        behind in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let header = encode_v2(from, to);
        for length in 0..header.len() {
            prop_assert!(parse(&header[..length]).unwrap().is_none());
        }
        let parsed = parse(&[&header[..], &behind[..]].concat()).unwrap().unwrap();
        let expected = SocketAddr::new(from.ip().to_canonical(), from.port());
        prop_assert_eq!(parsed.source, Some(expected));
        prop_assert_eq!(parsed.header_bytes, header.len());
    }

    #[test]
    fn arbitrary_bytes_never_claim_more_than_there_is(
        version in 0..3,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let start: &[u8] = match version {
            0 => b"",
            1 => V1_PREFIX,
            _ => &V2_SIGNATURE,
        };
        let bytes = [start, &bytes].concat();
        if let Ok(Some(header)) = parse(&bytes) {
            prop_assert!(header.header_bytes <= bytes.len());
        }
    }
}
