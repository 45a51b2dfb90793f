//! Arbitrary bytes as the start of a connection: a header is found whole, in whatever pieces it
//! arrives, and what we write is read back.

#![no_main]

use std::net::SocketAddr;

use moldau_net::proxy_protocol::{encode_v2, parse};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(Some(header)) = parse(data) else { return };
    assert!(0 < header.header_bytes && header.header_bytes <= data.len());
    for length in 0..header.header_bytes {
        assert!(matches!(parse(&data[..length]), Ok(None)), "a part of {length} bytes");
    }
    let alone = parse(&data[..header.header_bytes]);
    assert_eq!(alone.expect("it was read before"), Some(header));
    if let Some(source) = header.source {
        for destination in ["192.0.2.1:9092", "[2001:db8::1]:9092"] {
            let destination: SocketAddr = destination.parse().expect("an address");
            let written = encode_v2(source, destination);
            let read = parse(&written).expect("our own").expect("and whole");
            assert_eq!(read.header_bytes, written.len());
            let read = read.source.expect("it names one");
            assert_eq!(read.ip().to_canonical(), source.ip().to_canonical());
            assert_eq!(read.port(), source.port());
        }
    }
});
