//! Sizes of files, functions and lines.

use super::Finding;
use super::scan;
use super::tree::File;

const FILE_LINES_MAX: usize = 1000;
/// A file above this needs a row in `LONG_FILES`.
const FILE_LINES_USUAL: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;
/// A module of this size opens with its documentation.
const MODULE_DOC_LINES: usize = 100;

/// Files above the usual size, with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Functions above the limit: path, name, the lines that they may have at most, the reason.
const LONG_FUNCTIONS: &[(&str, &str, usize, &str)] = &[];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = stale(files);
    for file in files {
        if file.is_rust() {
            findings.extend(file_size(file));
            findings.extend(long_functions(file));
            findings.extend(module_doc(file));
        }
        if [".rs", ".py", ".js", ".java"].iter().any(|end| file.path.ends_with(end)) {
            findings.extend(long_lines(file));
        }
    }
    findings
}

fn file_size(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let listed = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    let detail = if lines > FILE_LINES_MAX {
        format!("{lines} lines, {FILE_LINES_MAX} at most")
    } else if lines > FILE_LINES_USUAL && !listed {
        format!("{lines} lines; above {FILE_LINES_USUAL} it needs a reason in LONG_FILES")
    } else {
        return None;
    };
    Some(Finding::new("file-size", &file.path, None, &detail))
}

fn long_functions(file: &File) -> Vec<Finding> {
    scan::functions(&file.lines)
        .into_iter()
        .filter(|function| function.lines() > lines_allowed(file, &function.name))
        .map(|function| {
            let detail = format!("{} has {} lines", function.name, function.lines());
            Finding::new("function-size", &file.path, Some(function.first), &detail)
        })
        .collect()
}

fn lines_allowed(file: &File, function: &str) -> usize {
    LONG_FUNCTIONS
        .iter()
        .find(|(path, name, _, _)| *path == file.path && *name == function)
        .map_or(FUNCTION_LINES_MAX, |(_, _, lines, _)| *lines)
}

/// Rows of the tables that nothing needs.
fn stale(files: &[File]) -> Vec<Finding> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let mut findings = Vec::new();
    for (path, _) in LONG_FILES {
        if find(path).is_none_or(|file| file.text.lines().count() <= FILE_LINES_USUAL) {
            findings.push(Finding::new("stale-exemption", path, None, "its LONG_FILES row"));
        }
    }
    for (path, name, _, _) in LONG_FUNCTIONS {
        let long = |file: &File| {
            scan::functions(&file.lines)
                .iter()
                .any(|f| f.name == *name && f.lines() > FUNCTION_LINES_MAX)
        };
        if !find(path).is_some_and(long) {
            findings.push(Finding::new("stale-exemption", path, None, name));
        }
    }
    findings
}

fn module_doc(file: &File) -> Option<Finding> {
    let needs = file.lines.len() > MODULE_DOC_LINES;
    let has = file.lines.iter().take(10).any(|line| line.comment.starts_with("//!"));
    (needs && !has).then(|| {
        Finding::new("module-doc", &file.path, None, "a long module opens with its documentation")
    })
}

/// Lines that are too long; an address cannot be broken, so it may be.
fn long_lines(file: &File) -> Vec<Finding> {
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.chars().count() > LINE_COLUMNS_MAX && !line.contains("://"))
        .map(|(number, line)| Finding::new("line-length", &file.path, Some(number), line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let found = check(&[File::new(path, text)]);
        let of_file = found.into_iter().filter(|finding| finding.path == path);
        of_file.map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_planted_long_function_is_found() {
        let body = "    call();\n".repeat(69);
        let long = format!("//! Doc.\nfn long() {{\n{body}}}\n");
        assert_eq!(rules("crates/a/src/b.rs", &long), ["function-size"]);
        let fits = long.replacen("    call();\n", "", 1);
        assert_eq!(rules("crates/a/src/b.rs", &fits), [""; 0]);
    }

    #[test]
    fn a_planted_long_file_is_found() {
        let of = |lines: usize| format!("//! Doc.\n{}", "const A: u8 = 1;\n".repeat(lines));
        assert_eq!(rules("crates/a/src/b.rs", &of(700)), ["file-size"]);
        assert_eq!(rules("crates/a/src/b.rs", &of(1200)), ["file-size"]);
        assert_eq!(rules("crates/a/src/b.rs", &of(500)), [""; 0]);
    }

    #[test]
    fn a_long_module_without_documentation_is_found() {
        let text = "const A: u8 = 1;\n".repeat(101);
        assert_eq!(rules("crates/a/src/b.rs", &text), ["module-doc"]);
    }

    #[test]
    fn a_long_line_is_found_unless_it_is_an_address() {
        let long = format!("// {}\n", "word ".repeat(20));
        assert_eq!(rules("crates/a/src/b.rs", &long), ["line-length"]);
        let address = format!("// https://{}\n", "a".repeat(100));
        assert_eq!(rules("crates/a/src/b.rs", &address), [""; 0]);
    }
}
