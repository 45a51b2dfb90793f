//! Arbitrary text as the output of another tool: it is read, with figures that are some, or refused
//! by the name of its file, and nothing panics.

#![no_main]

use moldau_lab::imported::read;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match read("output", text) {
        Ok(output) => {
            assert!(output.figures.iter().all(|it| it.value.is_finite() && it.value >= 0.0));
        }
        Err(error) => assert!(error.to_string().starts_with("output:")),
    }
});
