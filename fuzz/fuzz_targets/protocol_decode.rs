//! Arbitrary bytes into every decoder of the protocol crate; the crate's tests run the same entry
//! on seeded bytes.

#![no_main]

#[path = "../../crates/protocol/tests/it/decode.rs"]
mod decode;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decode::decode(data));
