//! What comments may not say: history, alarm, promises, and code that is not compiled.

use super::Finding;
use super::scan::{is_word, word_position};
use super::tree::File;

/// Words of a diary; what a thing was belongs to the commit and the changelog.
const HISTORY: &[&str] = &[
    "used to be",
    "was previously",
    "were previously",
    "no longer needed",
    "formerly",
    "refactored",
    "for now.",
    "for now,",
    "new version",
    "old version",
];

const SHOUTS: &[&str] =
    &["CRITICAL", "IMPORTANT", "WARNING", "NEVER", "ALWAYS", "NEW", "OLD", "FIXED", "NOTE"];

const PROMISES: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

const SPEED: &[&str] = &["faster", "slower", "speedup", "speed-up"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines.iter().enumerate() {
        let comment = line.comment.as_str();
        let mut add = |rule, bad| {
            if bad {
                findings.push(Finding::new(rule, &file.path, Some(number), comment));
            }
        };
        let lower = without_names(comment).to_lowercase();
        let has =
            |words: &[&str], text: &str| words.iter().any(|w| word_position(text, w).is_some());
        add("history", has(HISTORY, &lower) || names_own_version(&lower));
        add("shouting", has(SHOUTS, comment));
        add("promise", has(PROMISES, comment));
        add("speed-claim", has(SPEED, &lower) && comment.chars().any(|c| c.is_ascii_digit()));
        add("code-in-comment", is_code(comment));
    }
    for (number, line) in file.text.lines().enumerate() {
        if line.chars().any(is_emoji) {
            findings.push(Finding::new("emoji", &file.path, Some(number), line));
        }
    }
    findings
}

/// The comment without what stands between backticks.
fn without_names(comment: &str) -> String {
    comment.split('`').step_by(2).collect()
}

/// Whether the text names a version such as `v1.2.3`, a `phase 2` or a `priority 3`.
fn names_own_version(text: &str) -> bool {
    let version = text.split(|c: char| !is_word(c) && c != '.').any(|word| {
        let numbers = word.strip_prefix('v').map(|rest| rest.trim_end_matches('.').split('.'));
        numbers.is_some_and(|mut numbers| {
            numbers.clone().count() == 3 && numbers.all(|n| n.parse::<u32>().is_ok())
        })
    });
    let stage = ["phase ", "priority "].iter().any(|stage| {
        text.match_indices(stage).any(|(at, _)| {
            text[at + stage.len()..].chars().next().is_some_and(|c| c.is_ascii_digit())
        })
    });
    version || stage
}

/// Whether a plain comment reads as a statement of Rust.
fn is_code(comment: &str) -> bool {
    let Some(text) = comment.strip_prefix("// ") else { return false };
    let text = text.trim();
    let starts = ["let ", "pub ", "fn ", "use ", "mod ", "if ", "for ", "}", "self."];
    let ends = [";", "{", "}"];
    starts.iter().any(|start| text.starts_with(start)) && ends.iter().any(|end| text.ends_with(end))
}

fn is_emoji(character: char) -> bool {
    matches!(u32::from(character), 0x1_F000..=0x1_FAFF | 0x2600..=0x27BF | 0x2B50..=0x2B55)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(comment: &str) -> Vec<&'static str> {
        let file = File::new("crates/a/src/b.rs", &format!("fn a() {{}} {comment}\n"));
        check(&[file]).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn each_kind_of_bad_comment_is_found() {
        assert_eq!(rules("// This used to be a list."), ["history"]);
        assert_eq!(rules("// Since v1.2.3 the header is longer."), ["history"]);
        assert_eq!(rules("// Phase 2 adds the index."), ["history"]);
        assert_eq!(
            rules(&format!("// {}: the order matters.", ["IMPOR", "TANT"].concat())),
            ["shouting"]
        );
        assert_eq!(rules(&format!("// {}: check the length.", ["TO", "DO"].concat())), ["promise"]);
        assert_eq!(rules("// It is 3 times faster."), ["speed-claim"]);
        assert_eq!(rules("// let a = b;"), ["code-in-comment"]);
        assert_eq!(rules("// Done \u{1F389}"), ["emoji"]);
    }

    #[test]
    fn plain_sentences_pass() {
        for comment in [
            "// The batch is of magic 2, since Kafka 4.3.1 refuses others (KIP-896).",
            "/// Used to wake the fetches that wait.",
            "// A fixed number of files; `let` is fine in prose.",
            "// Kafka v2 records.",
        ] {
            assert_eq!(rules(comment), [""; 0], "{comment}");
        }
        let text = File::new("crates/a/src/b.rs", "let a = \"NEVER used to be\";\n");
        assert_eq!(check(&[text]), []);
    }
}
