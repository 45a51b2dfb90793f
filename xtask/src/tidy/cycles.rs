//! Import circles between the top-level modules of a crate.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::scan::is_word;
use super::tree::File;

/// Which modules a module imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Circles in every crate of `files`. What only tests import does not count.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut packages: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.package().is_empty()) {
        packages.entry(file.package()).or_default().push(file);
    }
    packages.iter().flat_map(|(package, files)| circles_of(package, files)).collect()
}

fn circles_of(package: &str, files: &[&File]) -> Vec<Finding> {
    let modules: BTreeSet<String> = files.iter().filter_map(|file| module_of(file)).collect();
    let mut imports = Imports::new();
    for file in files.iter().filter(|file| !file.path.ends_with("tests.rs")) {
        let Some(module) = module_of(file) else { continue };
        let found = referenced(file).into_iter().filter(|name| modules.contains(name));
        imports.entry(module.clone()).or_default().extend(found.filter(|name| *name != module));
    }
    circles(&imports)
        .into_iter()
        .map(|circle| {
            Finding::new("import-circle", &format!("{package}/src"), None, &circle.join(" -> "))
        })
        .collect()
}

/// The top-level module that a file belongs to; none for the roots of crates and binaries.
fn module_of(file: &File) -> Option<String> {
    let parts = path_in_crate(file);
    match parts.first().copied() {
        None | Some("lib" | "main" | "bin") => None,
        Some(module) => Some(module.to_owned()),
    }
}

/// The module path of a file: `src/api/fetch.rs` is `api`, `fetch`.
fn path_in_crate(file: &File) -> Vec<&str> {
    let path = file.path.get(file.package().len() + "/src/".len()..).unwrap_or_default();
    let path = path.trim_end_matches(".rs");
    path.trim_end_matches("/mod").split('/').filter(|part| !part.is_empty()).collect()
}

/// The names that follow `crate::`, or a chain of `super::` that reaches the root.
fn referenced(file: &File) -> BTreeSet<String> {
    // One string, since an import of several names spans lines.
    let code: String = file
        .lines
        .iter()
        .filter(|line| !line.test)
        .flat_map(|line| [line.code.as_str(), "\n"])
        .collect();
    let to_root = "super::".repeat(path_in_crate(file).len());
    let mut names = BTreeSet::new();
    for prefix in ["crate::", to_root.as_str()] {
        for (position, _) in code.match_indices(prefix) {
            let before = code[..position].chars().next_back();
            if !before.is_some_and(|character| is_word(character) || character == ':') {
                names.extend(first_names(&code[position + prefix.len()..]));
            }
        }
    }
    names
}

/// The first names of `a::b` or of each part of `{a::b, c}`.
fn first_names(text: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|&character| is_word(character)).collect()
    };
    let Some(group) = text.strip_prefix('{') else { return vec![name(text)] };
    let mut names = vec![name(group)];
    let mut depth = 1;
    for (position, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&group[position + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// The shortest circle through each import that lies on one, each circle once.
fn circles(imports: &Imports) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for (from, targets) in imports {
        for to in targets {
            if let Some(mut circle) = path(imports, to, from) {
                let first = circle.iter().min().and_then(|m| circle.iter().position(|x| x == m));
                circle.rotate_left(first.unwrap_or(0));
                circle.push(circle[0].clone());
                found.insert(circle);
            }
        }
    }
    found
}

/// The shortest way from one module to another.
fn path(imports: &Imports, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::from([from.to_owned()]);
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        let last = &way[way.len() - 1];
        if last == to {
            return Some(way);
        }
        for module in imports.get(last).into_iter().flatten() {
            if seen.insert(module.clone()) {
                ways.push([way.clone(), vec![module.clone()]].concat());
            }
        }
        next += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_in(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        check(&files).into_iter().map(|finding| finding.detail).collect()
    }

    #[test]
    fn a_planted_circle_is_found() {
        let found = circles_in(&[
            ("crates/a/src/lib.rs", "mod log;\nmod index;\nmod cache;\nuse crate::log::Log;"),
            ("crates/a/src/log.rs", "use crate::{\n    cache::Cache,\n    error::Error,\n};"),
            ("crates/a/src/cache.rs", "use super::index;"),
            ("crates/a/src/index/entry.rs", "use super::super::log::Log;"),
        ]);
        assert_eq!(found, ["cache -> index -> log -> cache"]);
    }

    #[test]
    fn imports_in_one_direction_are_fine() {
        let found = circles_in(&[
            ("crates/a/src/log.rs", "use crate::index::Index;"),
            ("crates/a/src/index.rs", "// crate::log\nlet a = \"crate::log\";"),
            ("crates/b/src/index.rs", "use crate::log::Log;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn what_tests_import_makes_no_circle() {
        let found = circles_in(&[
            ("crates/a/src/log.rs", "use crate::index::Index;"),
            ("crates/a/src/index.rs", "#[cfg(test)]\nmod tests {\n    use crate::log::Log;\n}"),
            ("crates/a/src/index/tests.rs", "use crate::log::Log;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
