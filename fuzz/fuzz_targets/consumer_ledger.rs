//! Arbitrary text as metadata of a commit: it is ignored, or says the same when committed again.

#![no_main]

use moldau_consumer::Ledger;

libfuzzer_sys::fuzz_target!(|input: (i64, &str)| {
    let (offset, metadata) = input;
    let ledger = Ledger::restore(offset, metadata);
    assert_eq!(ledger.base(), offset);
    let commit = ledger.committable();
    assert_eq!(Ledger::restore(commit.offset, &commit.metadata), ledger);
});
