//! The broker's configuration file and arguments.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use moldau_broker::{AuthorizationSettings, Config, Durability, ListenerConfig};
use moldau_net::Principal;
use serde::Deserialize;

use super::problem::{At, nowhere};
use super::{Problem, Sources, listeners};
use crate::arguments::{BrokerOptions, DurabilityChoice};

/// The keys of the file. Each may be left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// Directory of the journal. Default `./moldau-data`.
    data_dir: PathBuf,
    /// Where Kafka clients connect, without security. Default `127.0.0.1:9092`.
    listen: Option<At<SocketAddr>>,
    /// `host:port` that clients are told. Default: the address that each came by.
    advertised: Option<At<String>>,
    /// Where Kafka clients connect and how they are secured, in place of the two before.
    listeners: Option<At<Vec<listeners::Keys>>>,
    /// Where the admin pages are. Default `127.0.0.1:9644`.
    admin: SocketAddr,
    /// Whether access control lists are enforced, and how. Default: everyone may do everything.
    authorization: Option<Authorization>,
    /// `fsync` or `os`. Default `fsync`.
    durability: DurabilityChoice,
    /// Milliseconds that a flush waits for more; for slow network disks. Default 0.
    commit_delay_ms: u64,
    /// MiB of recent data kept in memory for readers. Default 256.
    tail_cache_mib: usize,
    /// MiB of a journal file, 1 to 1024; space is allocated and given back in such pieces, and no
    /// batch can be larger. Default 256.
    journal_file_mib: At<u64>,
    /// MiB that records leave free on the disk, so that topics and committed offsets can still be
    /// written when it is full; of use from the size of a journal file on. Default 256.
    disk_reserve_mib: u64,
    /// MiB a second that are read back to find damage on the disk, once a day; 0 for none. Default
    /// 4.
    scrub_mib_per_second: u64,
    /// Threads that serve connections. Default: one for each core.
    network_threads: Option<At<usize>>,
    /// Whether asking for a topic creates it. Default `true`.
    auto_create_topics: bool,
    /// Partitions of a topic that does not say how many. Default 1.
    partitions_default: At<u32>,
    /// Milliseconds that the first member of a group waits for others. Default 500.
    group_initial_rebalance_delay_ms: u64,
    /// Milliseconds between two looks for records that retention deletes. Kafka waits five minutes;
    /// a look at an index in memory is cheap, and space comes back sooner. Default 30000.
    log_retention_check_interval_ms: At<u64>,
    /// Milliseconds between two looks for compacted logs that are due. Default 15000.
    log_cleaner_backoff_ms: At<u64>,
    /// Milliseconds that requests in flight may take after SIGTERM. Default 10000.
    drain_timeout_ms: u64,
}

/// How access control lists are enforced. Each key may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Authorization {
    /// Principals that may do everything, such as `User:admin`. Default: none.
    super_users: Vec<At<String>>,
    /// Whether everyone may use a resource that no list is about. Default `false`.
    allow_everyone_if_no_acl_found: bool,
}

impl Default for File {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("moldau-data"),
            listen: None,
            advertised: None,
            listeners: None,
            admin: SocketAddr::from(([127, 0, 0, 1], 9644)),
            authorization: None,
            durability: DurabilityChoice::Fsync,
            commit_delay_ms: 0,
            tail_cache_mib: 256,
            journal_file_mib: nowhere(256),
            disk_reserve_mib: 256,
            scrub_mib_per_second: 4,
            network_threads: None,
            auto_create_topics: true,
            partitions_default: nowhere(1),
            group_initial_rebalance_delay_ms: 500,
            log_retention_check_interval_ms: nowhere(30_000),
            log_cleaner_backoff_ms: nowhere(15_000),
            drain_timeout_ms: 10_000,
        }
    }
}

/// Reads the file, if there is one, and lets the arguments replace what it says.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load(options: &BrokerOptions, sources: &mut Sources) -> anyhow::Result<Config> {
    let make = |file: File, sources: &mut Sources| config(with_arguments(file, options), sources);
    match &options.config {
        Some(path) => super::load(path, sources, make),
        // Without a file there are only arguments to blame, which have no place.
        None => make(File::default(), sources).map_err(|problem| anyhow!("{problem:#}")),
    }
}

/// As [`load`], for who reads the directory and serves nobody: neither certificates nor users are
/// read.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load_without_listeners(options: &BrokerOptions) -> anyhow::Result<Config> {
    let make = |file: File, sources: &mut Sources| {
        let file = File { listeners: None, ..with_arguments(file, options) };
        config(file, sources)
    };
    match &options.config {
        Some(path) => super::load(path, &mut Sources::default(), make),
        None => Ok(load(options, &mut Sources::default())?),
    }
}

/// The keys of `next` that a broker which was started with `in_force` cannot take as it runs.
pub(crate) fn waiting(in_force: &Config, next: &Config) -> Vec<&'static str> {
    let Config {
        data_dir,
        listeners,
        authorization,
        admin,
        durability,
        commit_delay,
        tail_cache_bytes,
        journal_file_bytes,
        disk_reserve_bytes,
        scrub_rate,
        network_threads,
        auto_create_topics,
        partitions_default,
        group_initial_rebalance_delay,
        log_retention_check_interval,
        log_cleaner_backoff,
        drain_timeout,
    } = in_force;
    let stays = |of: &[ListenerConfig]| -> Vec<_> {
        of.iter().map(|it| (it.name.clone(), it.address, it.limits.clone())).collect()
    };
    let checkup_interval = next.log_retention_check_interval;
    let rebalance_delay = next.group_initial_rebalance_delay;
    let differs = [
        ("data_dir", *data_dir != next.data_dir),
        ("listeners", stays(listeners) != stays(&next.listeners)),
        ("authorization", *authorization != next.authorization),
        ("admin", *admin != next.admin),
        ("durability", *durability != next.durability),
        ("commit_delay_ms", *commit_delay != next.commit_delay),
        ("tail_cache_mib", *tail_cache_bytes != next.tail_cache_bytes),
        ("journal_file_mib", *journal_file_bytes != next.journal_file_bytes),
        ("disk_reserve_mib", *disk_reserve_bytes != next.disk_reserve_bytes),
        ("scrub_mib_per_second", *scrub_rate != next.scrub_rate),
        ("network_threads", *network_threads != next.network_threads),
        ("auto_create_topics", *auto_create_topics != next.auto_create_topics),
        ("partitions_default", *partitions_default != next.partitions_default),
        ("group_initial_rebalance_delay_ms", *group_initial_rebalance_delay != rebalance_delay),
        ("log_retention_check_interval_ms", *log_retention_check_interval != checkup_interval),
        ("log_cleaner_backoff_ms", *log_cleaner_backoff != next.log_cleaner_backoff),
        ("drain_timeout_ms", *drain_timeout != next.drain_timeout),
    ];
    differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

fn with_arguments(mut file: File, options: &BrokerOptions) -> File {
    file.data_dir = options.data_dir.clone().unwrap_or(file.data_dir);
    file.listen = options.listen.map(nowhere).or(file.listen);
    file.advertised = options.advertised.clone().map(nowhere).or(file.advertised);
    file.admin = options.admin.unwrap_or(file.admin);
    file.durability = options.durability.unwrap_or(file.durability);
    file
}

/// Turns the keys of a file into the broker's settings.
///
/// # Errors
/// Names the key.
pub(crate) fn config(file: File, sources: &mut Sources) -> Result<Config, Problem> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    super::at_least_one(&file.partitions_default, "partitions_default")?;
    if !(1..=1024).contains(&file.journal_file_mib.value) {
        let text = "journal_file_mib: must lie between 1 and 1024";
        return Err(Problem::at(&file.journal_file_mib, text));
    }
    let network_threads = super::threads(file.network_threads)?.unwrap_or(cores);
    // Without a pause a look would follow a look.
    super::at_least_one(&file.log_retention_check_interval_ms, "log_retention_check_interval_ms")?;
    super::at_least_one(&file.log_cleaner_backoff_ms, "log_cleaner_backoff_ms")?;
    Ok(Config {
        listeners: match &file.listeners {
            None => vec![listeners::plain(file.listen.as_ref(), file.advertised.as_ref())?],
            Some(keys) => {
                if let Some(stray) = &file.listen {
                    return Err(Problem::at(stray, "listen: stands beside listeners"));
                }
                if let Some(stray) = &file.advertised {
                    return Err(Problem::at(stray, "advertised: stands beside listeners"));
                }
                listeners::secured(keys, file.admin, sources)?
            }
        },
        data_dir: file.data_dir,
        authorization: file.authorization.map(authorization).transpose()?,
        admin: Some(file.admin),
        durability: match file.durability {
            DurabilityChoice::Fsync => Durability::Fsync,
            DurabilityChoice::Os => Durability::Os,
        },
        commit_delay: Duration::from_millis(file.commit_delay_ms),
        tail_cache_bytes: file.tail_cache_mib.saturating_mul(1 << 20),
        journal_file_bytes: file.journal_file_mib.value.saturating_mul(1 << 20),
        disk_reserve_bytes: file.disk_reserve_mib.saturating_mul(1 << 20),
        scrub_rate: file.scrub_mib_per_second.saturating_mul(1 << 20),
        network_threads,
        auto_create_topics: file.auto_create_topics,
        partitions_default: file.partitions_default.value,
        group_initial_rebalance_delay: Duration::from_millis(file.group_initial_rebalance_delay_ms),
        log_retention_check_interval: Duration::from_millis(
            file.log_retention_check_interval_ms.value,
        ),
        log_cleaner_backoff: Duration::from_millis(file.log_cleaner_backoff_ms.value),
        drain_timeout: Duration::from_millis(file.drain_timeout_ms),
    })
}

fn authorization(keys: Authorization) -> Result<AuthorizationSettings, Problem> {
    let principal = |text: &At<String>| {
        let refused = |error| Problem::at(text, format!("super_users: {error}"));
        text.value.parse::<Principal>().map_err(refused)
    };
    Ok(AuthorizationSettings {
        super_users: keys.super_users.iter().map(principal).collect::<Result<_, _>>()?,
        allow_everyone_if_no_acl_found: keys.allow_everyone_if_no_acl_found,
    })
}

#[cfg(test)]
mod tests {
    use moldau_broker::Advertised;

    use super::*;

    #[test]
    fn an_empty_file_gives_the_defaults() {
        let file = crate::config::parse("{}").unwrap();
        let config = config(file, &mut Sources::default()).unwrap();
        assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:9092");
        assert_eq!(config.durability, Durability::Fsync);
        assert_eq!(config.listeners[0].advertised, None);
    }

    #[test]
    fn arguments_replace_what_the_file_says() {
        let options = BrokerOptions {
            durability: Some(DurabilityChoice::Os),
            advertised: Some("kafka.example:19092".to_owned()),
            ..BrokerOptions::default()
        };
        let config = load(&options, &mut Sources::default()).unwrap();
        assert_eq!(config.durability, Durability::Os);
        let advertised = Advertised { host: "kafka.example".to_owned(), port: 19_092 };
        assert_eq!(config.listeners[0].advertised, Some(advertised));
    }

    #[test]
    fn a_look_for_old_records_that_never_pauses_is_refused() {
        for key in ["log_retention_check_interval_ms", "log_cleaner_backoff_ms"] {
            let with = |value: u64| {
                let file = crate::config::parse(&format!("{key}: {value}")).unwrap();
                config(file, &mut Sources::default())
            };
            let place = format!(":1:{}: ", key.len() + 3);
            let problem = format!("{place}{key}: must be at least 1");
            assert_eq!(with(0).unwrap_err().to_string(), problem);
            assert!(with(1).is_ok());
        }
    }

    #[test]
    fn authorization_is_off_until_it_is_configured() {
        let with =
            |text: &str| config(crate::config::parse(text).unwrap(), &mut Sources::default());
        assert_eq!(with("{}").unwrap().authorization, None);
        let settings = with("authorization: {super_users: [User:admin]}").unwrap().authorization;
        let settings = settings.unwrap();
        assert_eq!(settings.super_users[0].to_string(), "User:admin");
        assert!(!settings.allow_everyone_if_no_acl_found);
        let refused = with("authorization: {super_users: [admin]}").unwrap_err();
        assert!(refused.to_string().contains("super_users"), "{refused}");
    }

    #[test]
    fn an_argument_that_listens_does_not_stand_beside_listeners() {
        let text = "listeners: [{name: A, address: '127.0.0.1:0'}]";
        let with = |options: BrokerOptions| {
            let file = with_arguments(crate::config::parse(text).unwrap(), &options);
            config(file, &mut Sources::default())
        };
        assert_eq!(with(BrokerOptions::default()).unwrap().listeners[0].name, "A");
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let refused = with(BrokerOptions { listen: Some(address), ..BrokerOptions::default() });
        assert_eq!(refused.unwrap_err().to_string(), ": listen: stands beside listeners");
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        for text in ["kafka", "kafka:", ":9092", "kafka:99999"] {
            let file = crate::config::parse(&format!("advertised: '{text}'")).unwrap();
            assert!(config(file, &mut Sources::default()).is_err(), "{text}");
        }
    }
}
