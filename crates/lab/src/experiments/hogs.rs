//! Processes that do nothing but take the processor.

use std::path::{Path, PathBuf};

use crate::systems::{NEVER, Process, ProcessSpec};
use moldau_measure::Error;

/// Ends by itself some minutes after a lab that was killed and could not end it.
const HOG: &str = "i=0; while [ $i -lt 200000000 ]; do i=$((i+1)); done";

/// Starts so many of them; dropping them ends them.
///
/// # Errors
/// [`Error::Machine`] when one cannot be started.
pub(super) fn hogs(count: usize, log_directory: &Path) -> Result<Vec<Process>, Error> {
    let spec = ProcessSpec {
        role: "hog".into(),
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".into(), HOG.into()],
        env: Vec::new(),
        ready: NEVER,
    };
    (0..count).map(|_| Process::launch(&spec, log_directory)).collect()
}
