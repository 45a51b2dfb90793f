//! Arbitrary and changed sealed values, parcels and batches into all that reads them; the crate's
//! tests run the same entry on seeded bytes.

#![no_main]

use std::cell::RefCell;

#[path = "../../crates/encryption/tests/it/editors.rs"]
mod editors;
#[path = "../../crates/encryption/tests/it/open_any.rs"]
mod open_any;

thread_local! {
    static WORLD: RefCell<open_any::World> = RefCell::default();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| WORLD.with_borrow_mut(|world| world.read(data)));
