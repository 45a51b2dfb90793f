//! Which crate may depend on which.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Finding;

/// Every crate of the workspace with the crates of the workspace that it may use, in tests or
/// not. Dependencies point strictly downward: a row names only rows above it, and the products
/// (broker, proxy, lab) never name each other.
const EDGES: &[(&str, &[&str])] = &[
    ("threads", &[]),
    ("records", &[]),
    ("protocol", &[]),
    ("storage", &["threads", "records"]),
    ("coordinator", &["protocol"]),
    ("net", &["threads", "protocol"]),
    ("encryption", &["net", "records"]),
    ("client", &["net", "protocol", "records"]),
    ("cluster", &["net", "records"]),
    ("broker", &["threads", "cluster", "net", "protocol", "records", "storage", "coordinator"]),
    ("consumer", &["client", "encryption", "net", "records"]),
    ("proxy", &["threads", "net", "protocol", "records"]),
    ("filters", &["net", "protocol", "records", "encryption", "proxy"]),
    ("checker", &[]),
    ("disk", &[]),
    ("measure", &[]),
    ("load", &["client", "net", "protocol", "records", "measure"]),
    ("lab", &["client", "net", "protocol", "records", "checker", "disk", "measure", "load"]),
    (
        "moldau",
        &[
            "threads",
            "records",
            "encryption",
            "protocol",
            "storage",
            "cluster",
            "coordinator",
            "net",
            "client",
            "broker",
            "consumer",
            "proxy",
            "filters",
            "checker",
            "disk",
            "measure",
            "load",
            "lab",
        ],
    ),
    ("conformance", &["protocol"]),
    ("xtask", &["conformance"]),
];

/// Edges of tests, and of what helps tests: optional dependencies or those of development.
const TEST_EDGES: &[(&str, &str)] = &[
    ("consumer", "broker"),
    ("consumer", "consumer"),
    ("consumer", "filters"),
    ("consumer", "protocol"),
    ("consumer", "proxy"),
];

/// The most third-party crates that the workspace may name in all.
const THIRD_PARTY_MAX: usize = 62;

/// A package as `cargo metadata` describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or nothing.
    kind: Option<String>,
    optional: bool,
    /// Only crates of the workspace have one.
    path: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// The packages of the workspace at `root`.
pub(super) fn read(root: &Path) -> Result<Vec<Package>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages)
}

/// Edges beside the table, and too many crates of others.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut third_party = BTreeSet::new();
    for package in packages {
        let name = short(&package.name);
        let Some((_, allowed)) = EDGES.iter().find(|(listed, _)| *listed == name) else {
            findings.push(edge(format!("the crate {name} is not in the table")));
            continue;
        };
        for dependency in &package.dependencies {
            let used = short(&dependency.name);
            if dependency.path.is_none() {
                third_party.insert(used);
            } else if !allowed.contains(&used) && !dependency.is_for_tests(name, used) {
                findings.push(edge(format!("{name} must not use {used}")));
            }
        }
    }
    if third_party.len() > THIRD_PARTY_MAX {
        let detail = format!("{} third-party crates, {THIRD_PARTY_MAX} allowed", third_party.len());
        findings.push(edge(detail));
    }
    findings
}

impl Dependency {
    /// Whether only tests make `name` use it, and may.
    fn is_for_tests(&self, name: &str, used: &str) -> bool {
        let is_left_out = self.optional || self.kind.as_deref() == Some("dev");
        is_left_out && TEST_EDGES.contains(&(name, used))
    }
}

fn edge(detail: String) -> Finding {
    Finding::new("crate-edge", "Cargo.toml", None, &detail)
}

fn short(name: &str) -> &str {
    name.strip_prefix("moldau-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        let dependencies = uses
            .iter()
            .map(|name| Dependency {
                name: (*name).to_owned(),
                kind: None,
                optional: false,
                path: Some(String::new()),
            })
            .collect();
        Package { name: name.to_owned(), dependencies }
    }

    #[test]
    fn the_table_points_downward() {
        for (row, (name, uses)) in EDGES.iter().enumerate() {
            for used in *uses {
                let above = EDGES[..row].iter().any(|(earlier, _)| earlier == used);
                assert!(above, "{name} uses {used}, which does not stand above it");
            }
        }
    }

    #[test]
    fn a_planted_edge_is_found() {
        let found = check(&[package("moldau-storage", &["moldau-records", "moldau-protocol"])]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].detail, "storage must not use protocol");
    }

    #[test]
    fn the_broker_is_an_edge_of_tests_alone() {
        let mut consumer = package("moldau-consumer", &["moldau-broker"]);
        assert_eq!(check(std::slice::from_ref(&consumer)).len(), 1);
        consumer.dependencies[0].optional = true;
        assert_eq!(check(&[consumer]).len(), 0);
    }

    #[test]
    fn an_unlisted_crate_is_found() {
        assert_eq!(check(&[package("moldau-helpers", &[])]).len(), 1);
        assert_eq!(check(&[package("moldau-client", &["moldau-net"])]).len(), 0);
    }
}
