//! Arbitrary changes to a journal file, with right checksums: it is opened or refused, and what it
//! then holds can be read, compacted and kept.

#![no_main]

mod directory;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    directory::damage("/data/journal/0000000001.journal", data, directory::mend_journal);
});
