//! Where the workspace is.

use std::path::Path;

/// The root of the checkout that this program was built from.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands in the workspace")
}
