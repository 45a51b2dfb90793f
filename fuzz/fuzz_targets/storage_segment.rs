//! Arbitrary changes to a sorted segment, with right checksums over header and footer.

#![no_main]

mod directory;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    directory::damage("/data/segments/0000000001.segment", data, |bytes| {
        directory::mend_paged(bytes, 4096)
    });
});
