//! The file of `moldau broker --cluster`: where the records and the metadata of a cluster are, and
//! which of its brokers this one is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use moldau_broker::ClusterSettings;
use moldau_cluster::{Addressing, BucketSettings, Credentials, ReaderOptions, WriterOptions};
use serde::Deserialize;

use super::problem::{At, Problem};
use super::{Sources, at_least_one};

/// The keys of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Id of this broker, which no other has. Default: that of the command line.
    #[serde(rename = "broker.id")]
    broker_id: Option<At<i32>>,
    /// Where this broker runs. Default: nothing is said.
    #[serde(rename = "broker.rack")]
    broker_rack: Option<At<String>>,
    /// The database.
    postgres: At<PostgresKeys>,
    /// The object store.
    bucket: At<BucketKeys>,
    /// How long batches are collected. Default 250.
    linger_ms: Option<At<u64>>,
    /// An object of so many MiB is written at once. Default 8.
    object_mib: Option<At<usize>>,
    /// MiB of memory for objects that were read. Default 512.
    read_cache_mib: Option<At<usize>>,
}

/// The key `postgres`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostgresKeys {
    /// A URL or connection string with libpq's parameters, as far as they are supported.
    url: Option<At<String>>,
    /// A file with the connection string in its one line.
    url_file: Option<At<PathBuf>>,
    /// Most connections of this broker. Default 8.
    connections_max: Option<At<usize>>,
    /// A request without an answer for so long is asked again. Default 5000.
    timeout_ms: Option<At<u64>>,
}

/// The key `bucket`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BucketKeys {
    /// Its name.
    name: At<String>,
    /// Address of the store. Default: that of AWS in the region.
    endpoint: Option<At<String>>,
    /// Region. Default `us-east-1`.
    region: Option<At<String>>,
    /// Folder in the bucket, for this cluster alone. Default: none.
    prefix: Option<At<String>>,
    /// How requests name the bucket. Default `path`.
    addressing: Option<AddressingKey>,
    /// Authorities of the store's certificate, in PEM. Default: the system's.
    trust_file: Option<At<PathBuf>>,
    /// A file of AWS with access keys. Default: the variables of AWS, or the role of the machine.
    credentials_file: Option<At<PathBuf>>,
    /// The profile in that file. Default `default`.
    profile: Option<At<String>>,
    /// A request without an answer for so long is asked again. Default 5000.
    timeout_ms: Option<At<u64>>,
}

/// How requests name a bucket.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AddressingKey {
    /// As the first part of the path.
    Path,
    /// As the first part of the host.
    VirtualHost,
}

/// Reads the file.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load(
    path: &Path,
    broker_id: Option<i32>,
    sources: &mut Sources,
) -> anyhow::Result<ClusterSettings> {
    super::load(path, sources, |file, sources| {
        settings(file, broker_id, sources, |name| std::env::var(name).ok())
    })
}

/// The same for a command that is for the whole cluster, so that no broker's id matters.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load_shared(
    path: &Path,
    command: &str,
    sources: &mut Sources,
) -> anyhow::Result<ClusterSettings> {
    let mut settings = load(path, Some(0), sources)?;
    command.clone_into(&mut settings.postgres.application_name);
    Ok(settings)
}

/// Whether the file names its broker.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn names_broker(path: &Path) -> anyhow::Result<bool> {
    super::load(path, &mut Sources::default(), |file: File, _| Ok(file.broker_id.is_some()))
}

/// Whether the text is such a file: no other has these keys.
pub(crate) fn is_likely(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("postgres:") || line.starts_with("bucket:"))
}

/// Turns the keys into settings. `variable` looks up variables of the environment.
fn settings(
    file: File,
    broker_id: Option<i32>,
    sources: &mut Sources,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ClusterSettings, Problem> {
    if let Some(id) = file.broker_id.as_ref().filter(|id| id.value < 0) {
        return Err(Problem::at(id, "broker.id: must be 0 or more"));
    }
    let broker_id = broker_id.or(file.broker_id.map(|id| id.value));
    if let Some(rack) = file.broker_rack.as_ref().filter(|rack| rack.value.is_empty()) {
        return Err(Problem::at(rack, "broker.rack: is empty"));
    }
    let linger = file.linger_ms.as_ref().map_or(LINGER_MS, |linger| linger.value);
    if let Some(at) = file.linger_ms.as_ref().filter(|at| !(10..=1_000).contains(&at.value)) {
        return Err(Problem::at(at, "linger_ms: must lie between 10 and 1000"));
    }
    if let Some(at) = file.object_mib.as_ref().filter(|at| !(1..=256).contains(&at.value)) {
        return Err(Problem::at(at, "object_mib: must lie between 1 and 256"));
    }
    file.read_cache_mib.as_ref().map_or(Ok(()), |at| at_least_one(at, "read_cache_mib"))?;
    let (writer, reader) = (WriterOptions::default(), ReaderOptions::default());
    let mib =
        |at: &Option<At<usize>>, or| at.as_ref().map_or(or, |at| at.value.saturating_mul(1 << 20));
    let broker_id = broker_id.ok_or_else(|| Problem::in_line(1, NO_ID))?;
    Ok(ClusterSettings {
        broker_id,
        rack: file.broker_rack.map(|rack| rack.value),
        postgres: postgres(&file.postgres, format!("moldau broker {broker_id}"), sources)?,
        bucket: bucket(&file.bucket, sources, variable)?,
        writer: WriterOptions {
            collect: Duration::from_millis(linger),
            object_bytes: mib(&file.object_mib, writer.object_bytes),
            ..writer
        },
        reader: ReaderOptions {
            cache_bytes: mib(&file.read_cache_mib, reader.cache_bytes),
            ..reader
        },
    })
}

fn postgres(
    keys: &At<PostgresKeys>,
    application_name: String,
    sources: &mut Sources,
) -> Result<moldau_cluster::Settings, Problem> {
    let PostgresKeys { url, url_file, connections_max, timeout_ms } = &keys.value;
    let wrong = |error| match (url, url_file) {
        (Some(url), _) => Problem::at(url, format_args!("url: {error}")),
        (None, Some(file)) => Problem::at(file, format_args!("url_file: {error}")),
        (None, None) => Problem::at(keys, error),
    };
    let connection = match (url, url_file) {
        (Some(url), None) => url.value.clone(),
        (None, Some(file)) => sources.secret(file)?.to_string(),
        (Some(_), Some(file)) => {
            return Err(Problem::at(file, "url_file: stands beside url; only one of them can be"));
        }
        (None, None) => return Err(Problem::at(keys, "postgres: needs url or url_file")),
    };
    connections_max.as_ref().map_or(Ok(()), |at| at_least_one(at, "connections_max"))?;
    let settings = moldau_cluster::Settings {
        connection,
        application_name,
        connections_max: connections_max.as_ref().map_or(CONNECTIONS_MAX, |at| at.value),
        timeout: timeout(timeout_ms.as_ref())?,
    };
    settings.check().map_err(wrong)?;
    Ok(settings)
}

fn bucket(
    keys: &At<BucketKeys>,
    sources: &mut Sources,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<BucketSettings, Problem> {
    let of = &keys.value;
    let credentials = match (&of.credentials_file, &of.profile) {
        (Some(file), profile) => {
            let profile = profile.as_ref().map_or("default", |profile| profile.value.as_str());
            let text = sources.text(file)?;
            Credentials::of_file(&text, profile).map_err(|error| Problem::at(file, error))?
        }
        (None, Some(profile)) => {
            return Err(Problem::at(profile, "profile: needs credentials_file"));
        }
        (None, None) => {
            Credentials::of_environment(variable).map_err(|error| Problem::at(keys, error))?
        }
    };
    let text = |at: &Option<At<String>>, or: &str| {
        at.as_ref().map_or(or.to_owned(), |at| at.value.clone())
    };
    let timeout = timeout(of.timeout_ms.as_ref())?;
    let trust = of.trust_file.as_ref().map(|file| sources.bytes(file)).transpose()?;
    let settings = BucketSettings {
        endpoint: of.endpoint.as_ref().map(|endpoint| endpoint.value.clone()),
        region: text(&of.region, REGION),
        bucket: of.name.value.clone(),
        addressing: match of.addressing {
            None | Some(AddressingKey::Path) => Addressing::Path,
            Some(AddressingKey::VirtualHost) => Addressing::VirtualHost,
        },
        prefix: text(&of.prefix, ""),
        trust: trust.map(|trust| trust.to_vec()),
        credentials,
        timeout,
        deadline: timeout.saturating_mul(TRIES),
    };
    settings.check().map_err(|error| Problem::at(keys, format_args!("bucket: {error}")))?;
    Ok(settings)
}

fn timeout(value: Option<&At<u64>>) -> Result<Duration, Problem> {
    value.map_or(Ok(()), |at| at_least_one(at, "timeout_ms"))?;
    Ok(Duration::from_millis(value.map_or(TIMEOUT_MS, |at| at.value)))
}

const LINGER_MS: u64 = 250;
/// Commits follow one another, and lookups are short.
const NO_ID: &str = "broker.id: is missing, and --broker-id is not given";
const CONNECTIONS_MAX: usize = 8;
const TIMEOUT_MS: u64 = 5_000;
/// A read is given up after so many timeouts.
const TRIES: u32 = 6;
const REGION: &str = "us-east-1";

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        "broker.id: 3\npostgres: {url: postgresql://db/moldau}\nbucket: {name: a}\n";

    fn made(text: &str) -> Result<ClusterSettings, String> {
        made_with(text, None)
    }

    fn made_with(text: &str, id: Option<i32>) -> Result<ClusterSettings, String> {
        let file = super::super::parse::<File>(text);
        let variable = |name: &str| name.starts_with("AWS_").then(|| "KEY".to_owned());
        let settings = file.and_then(|file| settings(file, id, &mut Sources::default(), variable));
        settings.map_err(|problem| problem.to_string())
    }

    #[test]
    fn three_keys_are_enough() {
        assert!(is_likely(LEAST));
        let settings = made(LEAST).unwrap();
        assert_eq!((settings.broker_id, settings.rack), (3, None));
        assert_eq!(settings.postgres.connection, "postgresql://db/moldau");
        assert_eq!((settings.bucket.bucket, settings.bucket.region), ("a".into(), REGION.into()));
        assert_eq!(settings.writer.collect, Duration::from_millis(250));
        assert_eq!(settings.writer.object_bytes, 8 << 20);
    }

    #[test]
    fn the_id_of_the_command_line_counts_before_that_of_the_file() {
        let id = |text: &str, id| made_with(text, id).map(|settings| settings.broker_id);
        let without = LEAST.strip_prefix("broker.id: 3\n").unwrap();
        assert_eq!(id(LEAST, Some(5)), Ok(5));
        assert_eq!(id(without, Some(5)), Ok(5));
        assert_eq!(id(without, None), Err(format!(":1:1: {NO_ID}")));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        for (more, problem) in [
            ("linger_ms: 5\n", ":4:12: linger_ms: must lie between 10 and 1000"),
            ("object_mib: 257\n", ":4:13: object_mib: must lie between 1 and 256"),
            ("broker.rack: ''\n", ":4:14: broker.rack: is empty"),
            ("lingr_ms: 50\n", ":4:1: unknown key \"lingr_ms\"; did you mean \"linger_ms\"?"),
        ] {
            assert_eq!(made(&format!("{LEAST}{more}")).err().as_deref(), Some(problem));
        }
        let both = LEAST.replace("url:", "url_file: /none, url:");
        assert!(made(&both).err().unwrap().contains("only one of them"));
        let endpoint = LEAST.replace("name: a", "name: a, endpoint: s3.example.org");
        assert!(made(&endpoint).err().unwrap().contains("begins with http:// or https://"));
        let url = LEAST.replace("db/moldau", "db/moldau?sslmode=verify&sslcrl=a");
        assert!(made(&url).err().unwrap().contains("url: the address of the database: "));
        let trust = LEAST.replace("name: a", "name: a, trust_file: /dev/null");
        assert!(made(&trust).err().unwrap().contains("trust_file holds no certificates"));
        let profile = LEAST.replace("name: a", "name: a, profile: b");
        assert!(made(&profile).err().unwrap().contains("needs credentials_file"));
    }
}
