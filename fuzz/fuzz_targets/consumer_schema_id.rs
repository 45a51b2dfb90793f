//! Arbitrary bytes as a value of a Schema Registry: what has an id is that id, written out, and the
//! rest of the value.

#![no_main]

use moldau_consumer::schema_registry::SchemaId;

libfuzzer_sys::fuzz_target!(|value: &[u8]| {
    let Ok((id, rest)) = SchemaId::read(value) else { return };
    let prefix: Vec<u8> = match &id {
        SchemaId::Id(id) => [0].into_iter().chain(id.to_be_bytes()).collect(),
        SchemaId::Guid(guid) => {
            assert_eq!(guid.len(), 36);
            let digits: Vec<u8> = guid.bytes().filter(|byte| *byte != b'-').collect();
            let byte = |pair: &[u8]| {
                let text = std::str::from_utf8(pair).expect("hexadecimal digits");
                u8::from_str_radix(text, 16).expect("hexadecimal digits")
            };
            [1].into_iter().chain(digits.chunks(2).map(byte)).collect()
        }
    };
    assert_eq!([prefix.as_slice(), rest].concat(), value);
});
