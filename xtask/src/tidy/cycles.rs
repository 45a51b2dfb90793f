//! Import circles between the modules of a crate, at every level of the module tree.
//!
//! Siblings are compared, each with all modules inside it. What a module and its own submodules
//! take from each other makes no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::scan::is_word;
use super::tree::File;

/// Which siblings a module imports from, by their paths.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Modules whose submodules still import each other in circles. A module leaves this list when its
/// circles are gone; none may be added.
const KNOWN: [&str; 1] = ["crates/moldau/src/config"];

/// Circles in every crate of `files`. What only tests import does not count.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut packages: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.package().is_empty()) {
        packages.entry(file.package()).or_default().push(file);
    }
    packages.iter().flat_map(|(package, files)| circles_of(package, files)).collect()
}

fn circles_of(package: &str, files: &[&File]) -> Vec<Finding> {
    let mut imports = Imports::new();
    let modules: BTreeSet<Vec<String>> = files
        .iter()
        .filter_map(|file| module_of(file))
        .flat_map(|path| (1..=path.len()).map(|length| path[..length].to_vec()).collect::<Vec<_>>())
        .collect();
    for file in files.iter().filter(|file| !is_test(file)) {
        let Some(own) = module_of(file) else { continue };
        for path in referenced(file) {
            let lengths = (1..=path.len()).rev();
            let Some(length) =
                lengths.into_iter().find(|length| modules.contains(&path[..*length]))
            else {
                continue;
            };
            let common = own.iter().zip(&path[..length]).take_while(|(a, b)| a == b).count();
            if common < own.len() && common < length {
                let siblings = [&own, &path].map(|path| path[..=common].join("::"));
                let [from, to] = siblings;
                imports.entry(from).or_default().insert(to);
            }
        }
    }
    circles(&imports)
        .into_iter()
        .filter(|circle| !is_known(package, circle))
        .map(|circle| {
            Finding::new("import-circle", &format!("{package}/src"), None, &circle.join(" -> "))
        })
        .collect()
}

fn is_test(file: &File) -> bool {
    file.path.ends_with("tests.rs") || file.path.contains("/tests/")
}

fn is_known(package: &str, circle: &[String]) -> bool {
    let parent = circle.first().and_then(|module| module.rsplit_once("::"));
    let parent = parent.map_or("", |(parent, _)| parent).replace("::", "/");
    KNOWN.contains(&format!("{package}/src/{parent}").as_str())
}

/// The path of the module that a file holds; none for the roots of crates and binaries.
fn module_of(file: &File) -> Option<Vec<String>> {
    let parts = path_in_crate(file);
    match parts.first().copied() {
        None | Some("lib" | "main" | "bin") => None,
        Some(_) => Some(parts.into_iter().map(str::to_owned).collect()),
    }
}

/// The module path of a file: `src/api/fetch.rs` is `api`, `fetch`.
fn path_in_crate(file: &File) -> Vec<&str> {
    let path = file.path.get(file.package().len() + "/src/".len()..).unwrap_or_default();
    let path = path.trim_end_matches(".rs");
    path.trim_end_matches("/mod").split('/').filter(|part| !part.is_empty()).collect()
}

/// The paths that follow `crate::`, `self::` or a chain of `super::`, from the root of the crate.
fn referenced(file: &File) -> Vec<Vec<String>> {
    // One string, since an import of several names spans lines.
    let code: String = file
        .lines
        .iter()
        .filter(|line| !line.test)
        .flat_map(|line| [line.code.as_str(), "\n"])
        .collect();
    let own: Vec<String> = path_in_crate(file).into_iter().map(str::to_owned).collect();
    let mut found = Vec::new();
    for prefix in ["crate::", "self::", "super::"] {
        for (position, _) in code.match_indices(prefix) {
            let before = code[..position].chars().next_back();
            if before.is_some_and(|character| is_word(character) || character == ':') {
                continue;
            }
            let chain = &code[position..];
            let supers = (0..).take_while(|n| chain[n * "super::".len()..].starts_with("super::"));
            let supers = supers.count();
            let (base, rest) = match prefix {
                "crate::" => (&own[..0], &chain["crate::".len()..]),
                "self::" => (&own[..], &chain["self::".len()..]),
                _ => (&own[..own.len().saturating_sub(supers)], &chain["super::".len() * supers..]),
            };
            for path in paths(rest) {
                found.push([base, &path].concat());
            }
        }
    }
    found
}

/// The paths of a use tree: `a::b`, or `{a::{b, c}, d}`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        return parts_of(group).into_iter().flat_map(paths).collect();
    }
    let name: String = text.chars().take_while(|&character| is_word(character)).collect();
    if name.is_empty() {
        return Vec::new();
    }
    let Some(rest) = text[name.len()..].strip_prefix("::") else { return vec![vec![name]] };
    let mut inner = paths(rest);
    if inner.is_empty() {
        inner.push(Vec::new());
    }
    inner.into_iter().map(|path| [vec![name.clone()], path].concat()).collect()
}

/// The parts of a group, up to the bracket that closes it.
fn parts_of(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 1, 0);
    for (position, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (character == ',' && depth == 1) {
            parts.push(&group[start..position]);
            start = position + 1;
        }
        if depth == 0 {
            break;
        }
    }
    parts
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
    fn a_circle_inside_a_module_is_found() {
        let found = circles_in(&[
            ("crates/a/src/report.rs", "mod grid;\nmod html;\nuse grid::Grid;"),
            ("crates/a/src/report/grid.rs", "use super::{Page, html::{escape, tag}};"),
            ("crates/a/src/report/html.rs", "use crate::report::grid::Grid;"),
        ]);
        assert_eq!(found, ["report::grid -> report::html -> report::grid"]);
    }

    #[test]
    fn a_module_and_its_own_submodules_make_no_circle() {
        let found = circles_in(&[
            ("crates/a/src/report.rs", "mod grid;\nuse self::grid::Grid;"),
            ("crates/a/src/report/grid.rs", "use super::Page;\nuse crate::report::Row;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
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
