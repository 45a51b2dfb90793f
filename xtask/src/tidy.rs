//! `cargo xtask tidy`: the rules of the house that no other tool checks.
//!
//! Each rule is a pure function from the files (or the packages) to its findings, so that a
//! planted fault in its tests shows that it can fail. An exemption is a row of a table beside its
//! rule, with its reason; a row that nothing needs is a finding as well.

mod code;
mod comments;
mod cycles;
mod documents;
mod edges;
mod scan;
mod sizes;
mod tree;

use std::fmt;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::workspace;

/// A place where a rule is broken.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Finding {
    path: String,
    /// Counted from 1; none where the whole file or crate is meant.
    line: Option<usize>,
    rule: &'static str,
    detail: String,
}

impl Finding {
    /// `line` is counted from 0.
    fn new(rule: &'static str, path: &str, line: Option<usize>, detail: &str) -> Self {
        let detail = detail.trim().chars().take(120).collect();
        Self { path: path.to_owned(), line: line.map(|line| line + 1), rule, detail }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(f, "{}{line}: {}: {}", self.path, self.rule, self.detail)
    }
}

/// Prints every finding; an error where there is one.
pub(crate) fn run() -> Result<()> {
    let findings = findings(workspace::root())?;
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "{} places are not tidy", findings.len());
    println!("tidy");
    Ok(())
}

fn findings(root: &Path) -> Result<Vec<Finding>> {
    let files = tree::read(root)?;
    let packages = edges::read(root)?;
    let mut findings = edges::check(&packages);
    for rule in [cycles::check, sizes::check, comments::check, code::check, documents::check] {
        findings.extend(rule(&files));
    }
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = findings(workspace::root()).unwrap();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
