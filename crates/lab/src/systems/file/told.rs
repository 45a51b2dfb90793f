//! What the plan of an experiment tells of a process.

use std::fmt;

use super::ProcessFile;
use crate::profile::sha256;

impl fmt::Debug for ProcessFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, role, files, prepare, command, environment, ready, stop } = self;
        let [files, environment] = [files, environment].map(|texts| {
            let hashed = texts.iter().map(|(name, text)| (name, sha256(text.as_bytes())));
            hashed.collect::<Vec<_>>()
        });
        let told = (name, role, files, prepare, command, environment, ready, stop);
        f.debug_tuple("ProcessFile").field(&told).finish()
    }
}
