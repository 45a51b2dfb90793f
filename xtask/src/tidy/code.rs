//! What code may not do: by crate, by file, and in tests.

use super::Finding;
use super::scan::{Line, word_position};
use super::tree::File;

/// The only file that may hold `unsafe`.
const UNSAFE_FILE: &str = "crates/storage/src/io.rs";

/// The only product that reads arguments and the environment, prints, and uses `anyhow`.
const BINARY: &str = "crates/moldau/";

/// Names that say nothing about what a file holds.
const VAGUE_NAMES: &[&str] = &[
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "misc",
    "types",
    "legacy",
    "old",
    "new",
    "fix",
    "tmp",
    "temp",
    "improved",
    "enhanced",
    "optimized",
    "extended",
    "unified",
    "integrated",
    "v2",
];

/// Text that no library holds, with the rule that it breaks.
const NOT_IN_LIBRARIES: &[(&str, &str)] = &[
    ("anyhow", "anyhow::"),
    ("environment", "env::var"),
    ("environment", "env::args"),
    ("print", "print!("),
    ("print", "println!("),
    ("print", "dbg!("),
];

/// Text that no product holds.
const NOT_IN_PRODUCTS: &[(&str, &str)] = &[
    ("unbounded", "unbounded_channel"),
    ("unbounded", "mpsc::unbounded"),
    ("unbounded", "mpsc::channel()"),
    ("unfinished", "todo!("),
    ("unfinished", "unimplemented!("),
];

/// The handlers of the broker, which know its storage by `broker::logs` alone.
const HANDLERS: &str = "crates/broker/src/api/";
const STORAGE: &str = "moldau_storage";

/// Programs that stand beside those of others, and are no tests.
const PEERS: &str = "xtask/peers/";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if file.is_rust() {
            findings.extend(file.lines.iter().enumerate().filter_map(|(number, line)| {
                let (rule, found) = broken_rule(file, number, line)?;
                Some(Finding::new(rule, &file.path, Some(number), found))
            }));
        }
        findings.extend(vague_name(file));
        findings.extend(missing_lints(file));
    }
    findings
}

/// The first rule that a line breaks, and what of it does.
fn broken_rule<'a>(file: &File, number: usize, line: &'a Line) -> Option<(&'static str, &'a str)> {
    let code = line.code.as_str();
    let contains = |rules: &'static [(&str, &str)]| {
        rules.iter().find(|(_, text)| code.contains(text)).map(|(rule, _)| *rule)
    };
    let is_library = file.is_product(number) && !file.path.starts_with(BINARY);
    let rule = if is_library && contains(NOT_IN_LIBRARIES).is_some() {
        contains(NOT_IN_LIBRARIES)?
    } else if file.is_product(number) && contains(NOT_IN_PRODUCTS).is_some() {
        contains(NOT_IN_PRODUCTS)?
    } else if file.is_product(number) && swallows(&file.lines, number) {
        "swallowed-error"
    } else if file.path.starts_with(HANDLERS) && word_position(code, STORAGE).is_some() {
        "storage-in-handler"
    } else if code.contains("#[ignore") {
        "ignored-test"
    } else if !file.is_product(number) && !file.path.starts_with(PEERS) && code.contains("sleep(") {
        "sleep-in-test"
    } else if word_position(code, "unsafe").is_some() && !is_justified(file, number) {
        "unsafe"
    } else {
        return None;
    };
    Some((rule, code))
}

/// Whether a result is thrown away, on the line or at its end, without a comment close above it.
fn swallows(lines: &[Line], number: usize) -> bool {
    let ends = |line: &Line| line.code.is_empty() || line.code.ends_with([';', '{', '}', ',']);
    let above = lines[..number].iter().rev().take_while(|line| !ends(line)).count();
    let first = number - above;
    let statement = lines[first].code.as_str();
    let keeps = statement.contains(" = ") || statement.trim_start().starts_with("return ");
    let code = lines[number].code.as_str();
    let drops = code.contains("let _ = ") || code.contains(".ok();") && !keeps;
    let explained = lines[first.saturating_sub(3)..=number].iter().any(|l| !l.comment.is_empty());
    drops && !explained
}

/// Whether `unsafe` stands in the one file that may have it, under its reason.
fn is_justified(file: &File, number: usize) -> bool {
    let near = &file.lines[number.saturating_sub(6)..=number];
    file.path == UNSAFE_FILE
        && near
            .iter()
            .any(|line| line.comment.contains("SAFETY") || line.comment.contains("# Safety"))
}

fn vague_name(file: &File) -> Option<Finding> {
    let stem = file.path.rsplit('/').next()?.strip_suffix(".rs")?;
    let parent = file.path.rsplit('/').nth(1).unwrap_or_default();
    let name = if stem == "mod" { parent } else { stem };
    let vague = name.split('_').any(|word| VAGUE_NAMES.contains(&word));
    vague.then(|| Finding::new("vague-name", &file.path, None, name))
}

fn missing_lints(file: &File) -> Option<Finding> {
    let is_package = file.path.ends_with("Cargo.toml")
        && file.text.contains("[package]")
        && !file.path.starts_with("fuzz/")
        && !file.path.starts_with(PEERS);
    let lints = "[lints]\nworkspace = true";
    (is_package && !file.text.contains(lints))
        .then(|| Finding::new("lints", &file.path, None, "[lints] workspace = true is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&[File::new(path, text)]).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn each_planted_fault_is_found_in_a_library() {
        let of = |code: &str| rules("crates/net/src/listener.rs", &format!("fn a() {{ {code} }}"));
        assert_eq!(of("anyhow::bail!(1)"), ["anyhow"]);
        assert_eq!(of("std::env::var(a)"), ["environment"]);
        assert_eq!(of("println!(a)"), ["print"]);
        assert_eq!(of("tokio::sync::mpsc::unbounded_channel()"), ["unbounded"]);
        assert_eq!(of("todo!()"), ["unfinished"]);
        assert_eq!(of("let _ = send();"), ["swallowed-error"]);
        assert_eq!(of("unsafe { a() }"), ["unsafe"]);
    }

    #[test]
    fn a_result_may_be_kept_or_thrown_away_with_a_reason() {
        let of =
            |code: &str| rules("crates/net/src/listener.rs", &format!("fn a() {{\n{code}\n}}"));
        assert_eq!(of("    send().ok();"), ["swallowed-error"]);
        assert_eq!(of("    send()\n        .ok();"), ["swallowed-error"]);
        assert_eq!(of("    let a = send()\n        .ok();"), [""; 0]);
        assert_eq!(of("    // The peer may be gone.\n    send().ok();"), [""; 0]);
    }

    #[test]
    fn the_binary_and_tests_may_print() {
        assert_eq!(rules("crates/moldau/src/main.rs", "fn a() { println!(b) }"), [""; 0]);
        let test = "#[cfg(test)]\nmod tests {\n    fn a() { println!(b) }\n}";
        assert_eq!(rules("crates/net/src/listener.rs", test), [""; 0]);
    }

    #[test]
    fn ignored_and_sleeping_tests_are_found() {
        assert_eq!(rules("crates/net/tests/it/main.rs", "#[ignore]\nfn a() {}"), ["ignored-test"]);
        let sleeps = "#[cfg(test)]\nmod tests {\n    fn a() { thread::sleep(b) }\n}";
        assert_eq!(rules("crates/net/src/listener.rs", sleeps), ["sleep-in-test"]);
    }

    #[test]
    fn handlers_do_not_name_the_storage() {
        let uses = "use moldau_storage::Log;";
        assert_eq!(rules("crates/broker/src/api/produce/appends.rs", uses), ["storage-in-handler"]);
        assert_eq!(rules("crates/broker/src/logs.rs", uses), [""; 0]);
    }

    #[test]
    fn unsafe_needs_its_reason_even_where_it_may_stand() {
        assert_eq!(rules(UNSAFE_FILE, "fn a() { unsafe { b() } }"), ["unsafe"]);
        let justified = "// SAFETY: the pointer is aligned.\nfn a() { unsafe { b() } }";
        assert_eq!(rules(UNSAFE_FILE, justified), [""; 0]);
    }

    #[test]
    fn vague_names_and_missing_lints_are_found() {
        assert_eq!(rules("crates/net/src/utils.rs", ""), ["vague-name"]);
        assert_eq!(rules("crates/net/src/frame_helpers/mod.rs", ""), ["vague-name"]);
        assert_eq!(rules("crates/net/Cargo.toml", "[package]\nname = \"a\"\n"), ["lints"]);
        let inherits = "[package]\n\n[lints]\nworkspace = true\n";
        assert_eq!(rules("crates/net/Cargo.toml", inherits), [""; 0]);
    }
}
