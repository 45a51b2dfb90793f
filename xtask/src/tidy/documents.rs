//! The root of the tree, the documents, and what no file may name.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::File;

const ROOT_ENTRIES_MAX: usize = 20;

/// Documents with the lines that they may have at most.
const DOCUMENT_LINES: &[(&str, usize)] = &[("README.md", 150), ("ARCHITECTURE.md", 400)];

/// Names of documents that report or plan; the tree holds neither.
const STATUS_NAMES: &[&str] =
    &["ROADMAP", "REPORT", "SUMMARY", "STATUS", "PLAN", "NOTES", "INVESTIGATION", "PROGRESS"];

/// Addresses of registries and paths of machines. Joined from parts, so that this file does not
/// break its own rule.
const FOREIGN: &[&[&str]] = &[
    &["registry", ".npmjs.org"],
    &["repo.maven", ".apache.org"],
    &["repo1.maven", ".org"],
    &["py", "pi.org/"],
    &["files.python", "hosted.org"],
    &["proxy.golang", ".org"],
    &["static.crates", ".io"],
    &["/ro", "ot/"],
    &["/wo", "rk/"],
    &["/ho", "me/"],
];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings = Vec::new();
    findings.extend(root_entries(&paths));
    for file in files {
        findings.extend(document_size(file));
        findings.extend(foreign(file));
        if file.path.ends_with(".md") {
            findings.extend(dead_links(file, &paths));
            findings.extend(missing_tests(file, files));
            findings.extend(status_name(file));
        }
    }
    findings
}

fn root_entries(paths: &BTreeSet<&str>) -> Option<Finding> {
    let entries: BTreeSet<&str> = paths
        .iter()
        .filter_map(|path| path.split('/').next())
        .filter(|entry| !entry.starts_with('.'))
        .collect();
    let detail = format!("{} entries, {ROOT_ENTRIES_MAX} at most", entries.len());
    (entries.len() > ROOT_ENTRIES_MAX).then(|| Finding::new("root-entries", ".", None, &detail))
}

fn document_size(file: &File) -> Option<Finding> {
    let (_, most) = DOCUMENT_LINES.iter().find(|(path, _)| *path == file.path)?;
    let lines = file.text.lines().count();
    let detail = format!("{lines} lines, {most} at most");
    (lines > *most).then(|| Finding::new("document-size", &file.path, None, &detail))
}

fn status_name(file: &File) -> Option<Finding> {
    let name = file.path.rsplit('/').next()?.to_uppercase();
    let words = name.trim_end_matches(".MD").split(['-', '_', ' ', '.']).collect::<Vec<_>>();
    words.iter().any(|word| STATUS_NAMES.contains(word)).then(|| {
        Finding::new("status-document", &file.path, None, "plans and reports live elsewhere")
    })
}

fn foreign(file: &File) -> Vec<Finding> {
    let names: Vec<String> = FOREIGN.iter().map(|parts| parts.concat()).collect();
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| names.iter().any(|name| names_foreign(line, name)))
        .map(|(number, line)| Finding::new("foreign-place", &file.path, Some(number), line))
        .collect()
}

/// Whether the line holds `name`; a path counts only where it begins.
fn names_foreign(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !name.starts_with('/')
            || !before.is_some_and(|c| c.is_alphanumeric() || "._~-}".contains(c))
    })
}

/// Links to files that do not exist; links to other sites are not followed.
fn dead_links(file: &File, paths: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let Some((target, _)) = line[at + 2..].split_once(')') else { continue };
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = resolve(&file.path, target);
            let is_directory = paths.iter().any(|known| known.starts_with(&format!("{path}/")));
            if !paths.contains(path.as_str()) && !is_directory && !path.is_empty() {
                findings.push(Finding::new("dead-link", &file.path, Some(number), target));
            }
        }
    }
    findings
}

/// Code such as `apps.rs::name` that names a test which no file of that name has.
fn missing_tests(document: &File, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in document.text.lines().enumerate() {
        let spans = line.split('`').skip(1).step_by(2);
        for (path, test) in spans.filter_map(|span| span.split_once(".rs::")) {
            let (own, suffix) = (format!("{path}.rs"), format!("/{path}.rs"));
            let function = format!("fn {test}(");
            let has = |file: &File| {
                (file.path == own || file.path.ends_with(&suffix)) && file.text.contains(&function)
            };
            if !files.iter().any(has) {
                findings.push(Finding::new("missing-test", &document.path, Some(number), test));
            }
        }
    }
    findings
}

/// The path from the root that `target` means in the document `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> Vec<&'static str> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        check(&files).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_dead_link_is_found() {
        let text = "[a](docs/b.md) [c](docs/) [d](https://example.com) [e](#f)";
        assert_eq!(rules(&[("README.md", text), ("docs/b.md", "[r](../README.md)")]), [""; 0]);
        assert_eq!(rules(&[("README.md", "[a](docs/b.md)")]), ["dead-link"]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let text = "| a | `b.rs::it_works` | `c` |";
        let test = ("tests/it/b.rs", "fn it_works() {}");
        assert_eq!(rules(&[("docs/a.md", text), test]), [""; 0]);
        let other = ("tests/it/b.rs", "fn it_works_well() {}");
        assert_eq!(rules(&[("docs/a.md", text), other]), ["missing-test"]);
    }

    #[test]
    fn long_documents_and_reports_are_found() {
        assert_eq!(rules(&[("README.md", &"line\n".repeat(151))]), ["document-size"]);
        assert_eq!(rules(&[("docs/status_report.md", "")]), ["status-document"]);
    }

    #[test]
    fn places_of_one_machine_or_registry_are_found() {
        for place in FOREIGN {
            let line = format!("path = \"{}x\"", place.concat());
            assert_eq!(rules(&[("a.toml", &line)]), ["foreign-place"], "{line}");
        }
        let workspace = ["crates", "/wo", "rk/x"].concat();
        assert_eq!(rules(&[("a.toml", &workspace)]), [""; 0]);
    }

    #[test]
    fn a_crowded_root_is_found() {
        let names: Vec<String> = (0..21).map(|number| format!("file{number}")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(rules(&files), ["root-entries"]);
    }
}
