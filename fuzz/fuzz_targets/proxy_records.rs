//! Changed messages and records through the record encryption of a session; the
//! crate's tests run the same entry on seeded bytes.

#![no_main]

use std::cell::RefCell;

#[path = "../../crates/filters/tests/it/filter_any.rs"]
mod filter_any;

thread_local! {
    static WORLD: RefCell<filter_any::World> = RefCell::default();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| WORLD.with_borrow(|world| world.read(data)));
