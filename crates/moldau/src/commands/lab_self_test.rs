//! The arguments of `moldau lab selftest`.

use std::path::PathBuf;

use anyhow::ensure;
use moldau_lab::self_test::SelfTest;

use crate::arguments::{SelftestChoice, SelftestOptions};

/// The promise that is put to the test.
pub(super) fn promise(choice: SelftestChoice) -> SelfTest {
    match choice {
        SelftestChoice::Stall => SelfTest::Stall,
        SelftestChoice::Drivers => SelfTest::Drivers,
    }
}

/// Python with confluent-kafka, for the test that needs it.
///
/// # Errors
/// Says how to get it where it is neither named nor in the cache.
pub(super) fn python(
    options: &SelftestOptions,
    cache_directory: impl FnOnce() -> anyhow::Result<PathBuf>,
) -> anyhow::Result<Option<PathBuf>> {
    if options.test != SelftestChoice::Drivers || options.python.is_some() {
        return Ok(options.python.clone());
    }
    let python = cache_directory()?.join("moldau/python/bin/python");
    ensure!(
        python.is_file(),
        "Python with confluent-kafka is not in {}; install it with: cargo xtask peers, or name \
         another by --python",
        python.display()
    );
    Ok(Some(python))
}
