//! One result of a client program or a tool.

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
    fn output_without_a_check_is_an_error() {
        assert!(Check::parse_lines("").is_err());
        assert!(Check::parse_lines("Traceback (most recent call last):").is_err());
    }
}
