//! One result of a client program or a tool.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A statement that held or did not.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Check {
    /// The statement, such as `a later member resumes from the commit`.
    #[serde(rename = "check")]
    pub name: String,
    /// Whether it held.
    pub ok: bool,
    /// What was found instead; empty where it held.
    #[serde(default)]
    pub detail: String,
}

impl Check {
    /// A statement with its outcome; `detail` is kept only where it did not hold.
    pub fn new(name: &str, ok: bool, detail: &str) -> Self {
        let detail = if ok { String::new() } else { detail.to_owned() };
        Self { name: name.to_owned(), ok, detail }
    }

    /// Parses a program's output: one line of JSON per check, and at least one of them.
    pub fn parse_lines(output: &str) -> Result<Vec<Self>> {
        let checks = output
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| serde_json::from_str(line).with_context(|| format!("not a check: {line}")))
            .collect::<Result<Vec<Self>>>()?;
        ensure!(!checks.is_empty(), "the program made no check");
        Ok(checks)
    }
}

/// Counts what held and what did not, and prints the latter.
#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Adds the outcome of a program; one that could not be run has failed.
    pub fn add(&mut self, program: &str, checks: Result<Vec<Check>>) {
        let checks = checks.unwrap_or_else(|error| {
            vec![Check::new("the program runs", false, &format!("{error:#}"))]
        });
        let held = checks.iter().filter(|check| check.ok).count();
        println!("{program}: {held} of {} checks", checks.len());
        for check in checks.iter().filter(|check| !check.ok) {
            println!("  {}: {}", check.name, check.detail);
        }
        self.passed += held;
        self.failed += checks.len() - held;
    }

    /// Whether something did not hold.
    pub fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// Prints the sums, which `cargo xtask test` reads.
    pub fn finish(self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_is_a_check() {
        let checks = Check::parse_lines(
            "{\"check\": \"a\", \"ok\": true}\n\n{\"check\":\"b\",\"ok\":false,\"detail\":\"c\"}\n",
        )
        .unwrap();
        assert_eq!(checks, [Check::new("a", true, "dropped"), Check::new("b", false, "c")]);
    }

    #[test]
    fn a_program_that_cannot_run_has_failed() {
        let mut tally = Tally::default();
        tally.add("one", Ok(vec![Check::new("a", true, "")]));
        assert!(!tally.has_failed());
        tally.add("another", Err(anyhow::anyhow!("no such file")));
        assert!(tally.has_failed());
    }

    #[test]
    fn output_without_a_check_is_an_error() {
        assert!(Check::parse_lines("").is_err());
        assert!(Check::parse_lines("Traceback (most recent call last):").is_err());
    }
}
