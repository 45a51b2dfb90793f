//! Configuration files: one YAML file per process, parsed once into the plain structs of the crate
//! that it configures.
//!
//! A mistake is reported with its line and column: by the parser, or by [`Problem`]. Values that
//! the second checks stand as [`At`] in the structs of the files.

mod admin;
pub(crate) mod broker;
pub(crate) mod client;
pub(crate) mod cluster;
mod filters;
mod gateway;
pub(crate) mod kafka;
mod limits;
pub(crate) mod listeners;
mod ports;
mod problem;
pub(crate) mod proxy;
mod sasl;
mod sources;
mod tls;
mod traces;
mod upstream;
pub(crate) mod users;
pub(crate) mod worker;

use std::path::Path;

use anyhow::anyhow;
use serde::de::DeserializeOwned;

pub(crate) use problem::{At, Problem, nearest, none_of};
pub(crate) use sources::{Mark, Sources, mark};

use crate::memory::planned_bytes;

/// Reads a configuration file, parses it, and makes settings of its keys.
///
/// # Errors
/// Names the file, the line and the column.
pub(crate) fn load<F: DeserializeOwned, C>(
    path: &Path,
    sources: &mut Sources,
    make: impl FnOnce(F, &mut Sources) -> Result<C, Problem>,
) -> anyhow::Result<C> {
    sources.add(path);
    let text = text(path)?;
    let settings = parse(&text).and_then(|file| make(file, sources));
    settings.map_err(|problem| anyhow!("{}{problem}", path.display()))
}

/// Reads and parses a file.
///
/// # Errors
/// Names the file, the line and the column.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    parse(&text(path)?).map_err(|problem| anyhow!("{}{problem}", path.display()))
}

/// The text of a configuration file.
///
/// # Errors
/// Names the file and says why.
pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = sources::read(path).map_err(anyhow::Error::msg)?;
    let text = std::str::from_utf8(&bytes).map(str::to_owned);
    text.map_err(|_| anyhow!("{}: is not UTF-8 text", path.display()))
}

/// Parses a configuration.
///
/// # Errors
/// The first problem.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_saphyr::from_str(text).map_err(|error| Problem::of_parser(&error, text))
}

/// Host and port of an address that may have a name.
///
/// # Errors
/// Names the key.
fn host_port(key: &str, text: &At<String>) -> Result<(String, u16), Problem> {
    let split = text.value.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| (host.to_owned(), port))
    });
    let is_not = || Problem::at(text, format_args!("{key}: {:?} is not HOST:PORT", text.value));
    split.ok_or_else(is_not)
}

/// The memory to plan with, at least `least` bytes.
fn memory(value: &Option<At<usize>>, key: &str, least: usize) -> Result<usize, Problem> {
    match value {
        Some(value) if value.value < least => {
            Err(Problem::at(value, format_args!("{key}: must be at least {least}")))
        }
        Some(value) => Ok(value.value),
        None => Ok(planned_bytes().max(least)),
    }
}

/// Refuses what must not be 0.
fn at_least_one<T: Default + PartialEq>(value: &At<T>, key: &str) -> Result<(), Problem> {
    match value.value == T::default() {
        true => Err(Problem::at(value, format_args!("{key}: must be at least 1"))),
        false => Ok(()),
    }
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
        let problem = parse::<Sample>("data_dir: x\ncuont: 3\n").unwrap_err().to_string();
        assert_eq!(problem, ":2:1: unknown key \"cuont\"; did you mean \"count\"?");
    }

    #[test]
    fn wrong_type_is_refused_with_its_place() {
        let problem = parse::<Sample>("data_dir: x\ncount: many\n").unwrap_err().to_string();
        assert!(problem.starts_with(":2:8: "), "{problem}");
    }

    /// The keys that a file may have, from the refusal of one that is like none of them.
    fn known_keys<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> Vec<String> {
        let problem = parse::<T>(text).unwrap_err().to_string();
        let (_, keys) = problem.split_once("known keys: ").expect("nothing is like this key");
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

    fn of_header() -> Vec<String> {
        let mut keys = known_keys::<filters::header::Keys>("'0': 1");
        keys.extend(known_keys::<filters::header::RuleKeys>("'0': 1"));
        keys.extend(known_keys::<filters::header::AddKeys>("'0': 1"));
        keys
    }

    fn of_mask() -> Vec<String> {
        let mut keys = known_keys::<filters::mask::Keys>("'0': 1");
        keys.extend(known_keys::<filters::mask::RuleKeys>("'0': 1"));
        keys
    }

    fn of_record_validation() -> Vec<String> {
        let mut keys = known_keys::<filters::record_validation::Keys>("'0': 1");
        keys.extend(known_keys::<filters::record_validation::RuleKeys>("'0': 1"));
        keys.extend(known_keys::<filters::record_validation::FieldKeys>("'0': 1"));
        keys
    }

    fn of_quota() -> Vec<String> {
        let mut keys = known_keys::<filters::quota::Keys>("'0': 1");
        keys.extend(known_keys::<filters::quota::LimitKeys>("'0': 1"));
        keys
    }

    fn of_chaos() -> Vec<String> {
        let mut keys = known_keys::<filters::chaos::Keys>("'0': 1");
        keys.extend(known_keys::<filters::chaos::RuleKeys>("'0': 1"));
        keys
    }

    fn of_record_encryption() -> Vec<String> {
        use filters::record_encryption::{
            OfAws, OfKeyFile, OfMemory, OfMemoryKek, OfVault, Settings,
        };
        let mut keys = known_keys::<Settings>("'0': 1");
        keys.extend(known_keys::<OfKeyFile>("'0': 1"));
        keys.extend(known_keys::<OfVault>("'0': 1"));
        keys.extend(known_keys::<OfAws>("'0': 1"));
        keys.extend(known_keys::<OfMemory>("'0': 1"));
        keys.extend(known_keys::<OfMemoryKek>("'0': 1"));
        keys
    }

    #[test]
    fn every_key_is_documented_and_every_documented_key_exists() {
        let keys = [
            known_keys::<broker::File>("'0': 1"),
            known_keys::<listeners::Keys>("'0': 1"),
            known_keys::<limits::Keys>("'0': 1"),
            known_keys::<broker::TelemetryKeys>("'0': 1"),
        ];
        assert_eq!(keys.concat(), documented_keys("## `moldau broker"));
        let keys = [
            known_keys::<cluster::File>("'0': 1"),
            known_keys::<cluster::PostgresKeys>("'0': 1"),
            known_keys::<cluster::BucketKeys>("'0': 1"),
        ];
        assert_eq!(keys.concat(), documented_keys("## `--cluster`"));
        let keys = [
            known_keys::<proxy::File>("'0': 1"),
            known_keys::<admin::Keys>("'0': 1"),
            known_keys::<traces::Keys>("'0': 1"),
            known_keys::<proxy::File>("virtual_clusters: [{'0': 1}]"),
            known_keys::<gateway::Ports>("'0': 1"),
            known_keys::<gateway::Sni>("'0': 1"),
            known_keys::<upstream::Keys>("'0': 1"),
            known_keys::<proxy::LimitKeys>("'0': 1"),
        ];
        assert_eq!(keys.concat(), documented_keys("## `moldau proxy"));
        let keys = [known_keys::<tls::Server>("'0': 1"), known_keys::<tls::Client>("'0': 1")];
        assert_eq!(keys.concat(), documented_keys("## `tls`"));
        let keys = [
            known_keys::<sasl::Downstream>("'0': 1"),
            known_keys::<sasl::Server>("'0': 1"),
            known_keys::<sasl::Tokens>("'0': 1"),
            known_keys::<sasl::Client>("'0': 1"),
        ];
        assert_eq!(keys.concat(), documented_keys("## `sasl`"));
        let keys = [
            known_keys::<worker::File>("'0': 1"),
            known_keys::<worker::RouteKeys>("'0': 1"),
            known_keys::<worker::RetryKeys>("'0': 1"),
            known_keys::<worker::RetryTopicKeys>("'0': 1"),
            known_keys::<worker::SegmentKeys>("'0': 1"),
            known_keys::<worker::FilterKeys>("'0': 1"),
            known_keys::<worker::HandlerKeys>("'0': 1"),
        ];
        assert_eq!(keys.concat(), documented_keys("## `moldau run"));
        assert_eq!(known_keys::<client::File>("'0': 1"), documented_keys("## `--security"));
        let tenants = known_keys::<filters::multi_tenant::Keys>("'0': 1");
        assert_eq!(tenants, documented_keys("## `multi_tenant`"));
        let rules = known_keys::<filters::authorization::Keys>("'0': 1");
        assert_eq!(rules, documented_keys("## `authorization`"));
        let policies = [
            ("header", of_header()),
            ("mask", of_mask()),
            ("record_validation", of_record_validation()),
            ("quota", of_quota()),
            ("audit", known_keys::<filters::audit::Keys>("'0': 1")),
            ("chaos", of_chaos()),
        ];
        for (name, keys) in policies {
            assert_eq!(keys, documented_keys(&format!("## `{name}`")));
        }
        assert_eq!(of_record_encryption(), documented_keys("## `record_encryption`"));
    }
}
