//! The files of the checkout, read once.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::scan::{self, Line};

/// A text file with its path from the root.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    /// The lines of a Rust file, split into code and comments; empty for others.
    pub(super) lines: Vec<Line>,
}

impl File {
    /// A file as if it were in the tree.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let lines = if path.ends_with(".rs") { scan::lines(text) } else { Vec::new() };
        Self { path: path.to_owned(), text: text.to_owned(), lines }
    }

    /// Whether it is Rust written by hand.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The part of the path that names a crate, such as `crates/net` or `xtask`.
    pub(super) fn package(&self) -> &str {
        match self.path.find("/src/") {
            Some(end) => &self.path[..end],
            None => "",
        }
    }

    /// Whether all of the file is tests, benches or the crates that only development uses.
    pub(super) fn is_development(&self) -> bool {
        let parts = ["/tests/", "/benches/", "/examples/", "/tests.rs", "build.rs"];
        let roots = ["xtask/", "fuzz/", "crates/conformance/"];
        parts.iter().any(|part| self.path.contains(part))
            || self.path.ends_with("_tests.rs")
            || roots.iter().any(|root| self.path.starts_with(root))
    }

    /// Whether line `number` is code that a product contains.
    pub(super) fn is_product(&self, number: usize) -> bool {
        !self.is_development() && !self.lines[number].test
    }
}

/// Reads every text file that git tracks or would track; of files that others wrote, the name.
pub(super) fn read(root: &Path) -> Result<Vec<File>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot start git")?;
    ensure!(output.status.success(), "git cannot list the files of {}", root.display());
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in names.split('\0').filter(|path| !path.is_empty()) {
        // A deleted file is listed still, and golden files are not text.
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            files.push(File::new(path, if is_exempt(path) { "" } else { &text }));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

/// Files that other programs or other people wrote.
fn is_exempt(path: &str) -> bool {
    let parts = ["/generated/", "/vendor/", "/assets/", "Cargo.lock", "go.sum", "LICENSE"];
    parts.iter().any(|part| path.contains(part))
}
