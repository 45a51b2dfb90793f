//! Arbitrary bytes between a coordinator and a worker: nothing panics, nothing that was not sealed
//! is a message, and what was sealed comes whole however its bytes come.

#![no_main]

use bytes::BytesMut;
use moldau_load::workers::Token;
use moldau_load::workers::frames::{HELLO_BYTES, Hello, Side, ends};
use zeroize::Zeroizing;

libfuzzer_sys::fuzz_target!(|input: (usize, &[u8])| {
    let (at, bytes) = input;
    if let Some(hello) = bytes.first_chunk::<HELLO_BYTES>()
        && let Ok(read) = Hello::read(hello)
    {
        assert_eq!(read.to_bytes(), *hello);
    }
    let token = Token::new(Zeroizing::new("0".repeat(32))).expect("it is long enough");
    let hello = Hello { random: [0; 32] };
    let opener = || ends(&token, hello, hello, Side::Worker).1;
    let found = opener().open(&mut BytesMut::from(bytes));
    assert!(matches!(found, Ok(None) | Err(_)));
    let frames = ends(&token, hello, hello, Side::Coordinator).0.seal(bytes);
    let mut opener = opener();
    let (first, rest) = frames.split_at(at % frames.len());
    let mut came = BytesMut::from(first);
    assert_eq!(opener.open(&mut came), Ok(None));
    came.extend_from_slice(rest);
    assert_eq!(opener.open(&mut came), Ok(Some(bytes.to_vec())));
});
