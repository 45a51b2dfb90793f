//! Arbitrary changes to a checkpoint, with right checksums over header and pages.

#![no_main]

mod directory;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    directory::damage("/data/checkpoint", data, |bytes| directory::mend_paged(bytes, 4096));
});
