//! The files that a configuration names: read once for each time that it is loaded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use zeroize::Zeroizing;

use super::filters::Made;
use super::filters::audit::Writer;
use super::problem::{At, Problem};

/// Largest file that a configuration may name: a mistaken path must not fill the memory.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What tells one state of a file from another: inode, size, and when the inode was changed, which
/// no program sets back, in seconds and nanoseconds. `None` while there is no such file.
pub(crate) type Mark = Option<(u64, u64, i64, i64)>;

/// The state of a file, at the end of all links.
pub(crate) fn mark(path: &Path) -> Mark {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec()))
}

/// What was read while a configuration was made of its file.
#[derive(Default)]
pub(crate) struct Sources {
    /// The files that were read, each in the state before that; a change of one of them is a
    /// change of the configuration.
    pub(crate) files: BTreeMap<PathBuf, Mark>,
    /// Warnings for the operator; they do not prevent a start.
    pub(crate) warnings: Vec<Problem>,
    /// Work beside the process's own for as long as the configuration is in force.
    pub(crate) background: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Writers of audit lines, to be started once the configuration is in force.
    pub(crate) writers: Vec<Writer>,
    /// Filters of the configuration, which the next one may keep.
    pub(super) filters: Vec<Made>,
    /// Those of the configuration before that were not taken yet.
    before: Vec<Made>,
}

impl Sources {
    /// For a configuration that takes the place of the one that was made of these, and may keep
    /// filters of it.
    pub(crate) fn next(&self) -> Self {
        Self { before: self.filters.clone(), ..Self::default() }
    }

    /// The configuration is in force; nothing more of the one before is kept.
    pub(crate) fn in_force(self) -> Self {
        Self { before: Vec::new(), ..self }
    }

    /// Takes a filter of the configuration before.
    pub(super) fn take_kept(&mut self, is_it: impl FnMut(&Made) -> bool) -> Option<Made> {
        let place = self.before.iter().position(is_it)?;
        Some(self.before.remove(place))
    }

    /// The contents of a file, which may be secret.
    ///
    /// # Errors
    /// Says why it cannot be read, at the key that names it.
    pub(crate) fn bytes(&mut self, path: &At<PathBuf>) -> Result<Zeroizing<Vec<u8>>, Problem> {
        self.add(&path.value);
        read(&path.value).map_err(|problem| Problem::at(path, problem))
    }

    /// The contents of a text file, which may be secret.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), or it is not UTF-8.
    pub(crate) fn text(&mut self, path: &At<PathBuf>) -> Result<Zeroizing<String>, Problem> {
        let bytes = self.bytes(path)?;
        let text = std::str::from_utf8(&bytes);
        let text = text.map_err(|_| Problem::at(path, is_not(path, "a text in UTF-8")))?;
        Ok(Zeroizing::new(text.to_owned()))
    }

    /// A secret that a file holds in its one line.
    ///
    /// # Errors
    /// As [`text`](Self::text), or the file holds no line or several.
    pub(crate) fn secret(&mut self, path: &At<PathBuf>) -> Result<Zeroizing<String>, Problem> {
        let text = self.text(path)?;
        let secret = text.trim_end_matches(['\n', '\r']);
        if secret.is_empty() || secret.contains('\n') {
            return Err(Problem::at(path, is_not(path, "one line with the secret")));
        }
        Ok(Zeroizing::new(secret.to_owned()))
    }

    /// Counts a file as read. One that cannot be read counts too: the mistake may be mended there.
    pub(crate) fn add(&mut self, path: &Path) {
        self.files.entry(path.to_owned()).or_insert_with(|| mark(path));
    }

    /// Counts files as read, each in this state.
    pub(super) fn add_all(&mut self, files: &BTreeMap<PathBuf, Mark>) {
        for (path, mark) in files {
            self.files.entry(path.clone()).or_insert(*mark);
        }
    }

    /// The files that were not read before, or in another state.
    pub(crate) fn changed_since(&self, before: &BTreeMap<PathBuf, Mark>) -> Vec<String> {
        let changed = self.files.iter().filter(|(path, mark)| before.get(*path) != Some(*mark));
        changed.map(|(path, _)| path.display().to_string()).collect()
    }

    /// Keeps what an operator should know.
    pub(crate) fn warn(&mut self, problem: Problem) {
        self.warnings.push(problem);
    }
}

/// Reads a file that is not unreasonably large.
///
/// # Errors
/// Names the file and says why.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(format!("{}: is larger than 16 MiB", path.display())),
        false => Ok(bytes),
    }
}

fn is_not(path: &At<PathBuf>, what: &str) -> String {
    format!("{}: is not {what}", path.value.display())
}
