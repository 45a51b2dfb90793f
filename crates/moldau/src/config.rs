//! Configuration files: one YAML file per process, parsed once into the plain structs of the crate
//! that it configures.
//!
//! A key that is not known is refused, with the place and the nearest key that is.

pub(crate) mod broker;
pub(crate) mod proxy;
mod record_encryption;

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde::de::DeserializeOwned;
use serde_saphyr::Error;

/// Largest configuration file that is read: a mistaken path must not fill the memory.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads and parses a configuration file.
///
/// # Errors
/// Names the file and the line.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let length = std::fs::metadata(path).with_context(|| format!("{}", path.display()))?.len();
    if length > FILE_BYTES_MAX {
        bail!("{}: larger than a configuration file can be", path.display());
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    parse(&text).map_err(|problem| anyhow!("{}{problem}", path.display()))
}

/// Parses a configuration; a problem is told as `:line:column: what`.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let place = error
            .location()
            .map(|at| format!(":{}:{}", at.line(), at.column()))
            .unwrap_or_default();
        format!("{place}: {}", describe(error))
    })
}

fn describe(error: &Error) -> String {
    let Error::SerdeUnknownField { field, expected, .. } = error else {
        return error.to_string();
    };
    match nearest(field, expected) {
        Some(key) => format!("unknown key {field:?}; did you mean {key:?}?"),
        None => format!("unknown key {field:?}; known are {}", expected.join(", ")),
    }
}

/// The known key that differs least from `field`, if it is at all alike.
fn nearest<'a>(field: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, key) =
        known.iter().map(|key| (edit_distance(field, key), *key)).min_by_key(|(it, _)| *it)?;
    (distance <= field.len().max(key.len()) / 2).then_some(key)
}

/// Levenshtein's distance in bytes, by rows.
fn edit_distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, own) in left.bytes().enumerate() {
        let mut diagonal = index;
        let mut previous = index + 1;
        if let Some(first) = row.first_mut() {
            *first = previous;
        }
        for (cell, other) in row.iter_mut().skip(1).zip(right.bytes()) {
            let substituted = diagonal + usize::from(own != other);
            diagonal = *cell;
            *cell = substituted.min(previous + 1).min(diagonal + 1);
            previous = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only parsed")]
        data_dir: String,
        #[expect(dead_code, reason = "only parsed")]
        count: Option<u32>,
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_and_the_nearest_key() {
        let problem = parse::<Sample>("data_dir: x\ncuont: 3\n").unwrap_err();
        assert_eq!(problem, ":2:1: unknown key \"cuont\"; did you mean \"count\"?");
    }

    #[test]
    fn a_wrong_type_is_refused_with_its_place() {
        let problem = parse::<Sample>("data_dir: x\ncount: many\n").unwrap_err();
        assert!(problem.starts_with(":2:8: "), "{problem}");
    }

    /// The keys that a file may have, from the refusal of one that is like none of them.
    fn known_keys<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> Vec<String> {
        let problem = parse::<T>(text).unwrap_err();
        let (_, keys) = problem.split_once("known are ").expect("nothing is like this key");
        keys.split(", ").map(str::to_owned).collect()
    }

    /// The keys of the tables under a heading of the page that describes them.
    fn documented_keys(heading: &str) -> Vec<String> {
        let page = include_str!("../../../docs/configuration.md");
        let (_, section) = page.split_once(heading).expect("the page has the heading");
        let section = section.split("\n## ").next().unwrap_or_default();
        let keys = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        keys.map(str::to_owned).collect()
    }

    #[test]
    fn every_key_is_documented_and_every_documented_key_exists() {
        let broker = known_keys::<broker::File>("'0': 1");
        assert_eq!(broker, documented_keys("## `moldau broker"));
        let mut proxy = known_keys::<proxy::File>("'0': 1");
        proxy.extend(known_keys::<proxy::File>("virtual_clusters: [{'0': 1}]"));
        let mut documented = documented_keys("## `moldau proxy");
        proxy.sort();
        documented.sort();
        assert_eq!(proxy, documented);
        let mut filter = known_keys::<record_encryption::Settings>("'0': 1");
        filter.extend(known_keys::<record_encryption::OfKeyFile>("'0': 1"));
        filter.extend(known_keys::<record_encryption::OfVault>("'0': 1"));
        filter.extend(known_keys::<record_encryption::OfAws>("'0': 1"));
        filter.extend(known_keys::<record_encryption::OfMemory>("'0': 1"));
        filter.extend(known_keys::<record_encryption::OfMemoryKek>("'0': 1"));
        assert_eq!(filter, documented_keys("## `record_encryption`"));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(edit_distance("listen", "listen"), 0);
        assert_eq!(edit_distance("lisen", "listen"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
