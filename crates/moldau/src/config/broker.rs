//! The broker's configuration file and arguments.

mod consumer_groups;
mod file;
mod share_groups;
mod streams_groups;
mod telemetry;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use moldau_broker::{
    AuthorizationSettings, Config, Durability, GroupSettings, ListenerConfig, MEMORY_BYTES_MIN,
    QuotaWindow, STANDARD_AUTHORIZER, TopicDefaults, TransactionSettings, Unpacking,
};
use moldau_net::{ConnectionLimits, ListenerLimits, Principal};

pub(crate) use self::file::File;
#[cfg(test)]
pub(crate) use self::telemetry::Keys as TelemetryKeys;
use super::listeners::{self, Listeners};
use super::problem::{At, nowhere};
use super::{Problem, Sources, at_least_one};
use crate::arguments::{BrokerOptions, DurabilityChoice};

/// Reads the file, if there is one, and lets the arguments replace its values.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load(options: &BrokerOptions, sources: &mut Sources) -> anyhow::Result<Config> {
    let make = |file: File, sources: &mut Sources| config(with_arguments(file, options)?, sources);
    match &options.config {
        Some(path) => super::load(path, sources, make),
        // An argument has no place in a file.
        None => make(File::default(), sources).map_err(|problem| anyhow!("{problem:#}")),
    }
}

/// As [`load`], without certificates and users, for a command that only reads the data directory.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load_without_listeners(options: &BrokerOptions) -> anyhow::Result<Config> {
    let make = |file: File, sources: &mut Sources| {
        let mut file = with_arguments(file, options)?;
        (file.listeners, file.advertised_listeners) = (None, None);
        config(file, sources)
    };
    match &options.config {
        Some(path) => super::load(path, &mut Sources::default(), make),
        None => Ok(load(options, &mut Sources::default())?),
    }
}

/// Checks what a broker of a cluster cannot have.
///
/// # Errors
/// Names the key.
pub(crate) fn check_clustered(config: &Config) -> anyhow::Result<()> {
    // Other brokers tell clients of one address.
    let [listener] = config.listeners.as_slice() else {
        return Err(anyhow!("listeners: a broker of a cluster has one listener"));
    };
    if listener.advertised.is_none() && listener.address.ip().is_unspecified() {
        return Err(anyhow!(
            "advertised.listeners: a broker of a cluster that listens on all addresses needs it, \
             for clients of other brokers"
        ));
    }
    let of_journal = ["log.dirs", "durability", "commit_delay_ms", "journal_file_mib"];
    let given = |name: &&str| config.file_keys.iter().any(|key| key.name == *name && key.is_given);
    match of_journal.iter().find(|name| given(name)) {
        Some(name) => Err(anyhow!("{name}: a broker of a cluster has no data directory")),
        None => Ok(()),
    }
}

/// The keys of `next` that a running broker, started with `in_force`, cannot take.
pub(crate) fn waiting(in_force: &Config, next: &Config) -> Vec<&'static str> {
    let Config {
        data_dir,
        listeners,
        authorization,
        admin,
        durability,
        commit_delay,
        memory_bytes,
        tail_cache_bytes,
        journal_file_bytes,
        disk_reserve_bytes,
        scrub_rate,
        network_threads,
        auto_create_topics,
        partitions_default,
        topic_defaults,
        groups,
        unpacking,
        transactions,
        quota_window,
        telemetry,
        request_bytes_max,
        connections_max_idle,
        log_retention_check_interval,
        log_cleaner_backoff,
        drain_timeout,
        file_keys: _,
        loggers: _,
    } = in_force;
    let stays = |of: &[ListenerConfig]| -> Vec<_> {
        of.iter().map(|it| (it.name.clone(), it.address, it.limits.clone())).collect()
    };
    let checkup_interval = next.log_retention_check_interval;
    let differs = [
        ("log.dirs", *data_dir != next.data_dir),
        ("listeners", stays(listeners) != stays(&next.listeners)),
        ("authorizer.class.name or super.users", *authorization != next.authorization),
        ("admin", *admin != next.admin),
        ("durability", *durability != next.durability),
        ("commit_delay_ms", *commit_delay != next.commit_delay),
        ("memory.max.bytes", *memory_bytes != next.memory_bytes),
        ("tail_cache_mib", *tail_cache_bytes != next.tail_cache_bytes),
        ("journal_file_mib", *journal_file_bytes != next.journal_file_bytes),
        ("disk_reserve_mib", *disk_reserve_bytes != next.disk_reserve_bytes),
        ("scrub_mib_per_second", *scrub_rate != next.scrub_rate),
        ("num.network.threads", *network_threads != next.network_threads),
        ("auto.create.topics.enable", *auto_create_topics != next.auto_create_topics),
        ("num.partitions", *partitions_default != next.partitions_default),
        ("defaults of topics", *topic_defaults != next.topic_defaults),
        ("settings of groups and offsets", *groups != next.groups),
        ("check_compressed_records", *unpacking != next.unpacking),
        ("settings of transactions", *transactions != next.transactions),
        ("settings of quotas", *quota_window != next.quota_window),
        ("telemetry or telemetry.max.bytes", *telemetry != next.telemetry),
        ("socket.request.max.bytes", *request_bytes_max != next.request_bytes_max),
        ("connections.max.idle.ms", *connections_max_idle != next.connections_max_idle),
        ("log.retention.check.interval.ms", *log_retention_check_interval != checkup_interval),
        ("log.cleaner.backoff.ms", *log_cleaner_backoff != next.log_cleaner_backoff),
        ("drain_timeout_ms", *drain_timeout != next.drain_timeout),
    ];
    differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

fn with_arguments(mut file: File, options: &BrokerOptions) -> Result<File, Problem> {
    file.data_dir = options.data_dir.clone().map(nowhere).or(file.data_dir);
    file.admin = options.admin.map(nowhere).or(file.admin);
    file.durability = options.durability.map(nowhere).or(file.durability);
    if let Some(listeners) = &file.listeners
        && listeners.value.is_list()
        && (options.listen.is_some() || options.advertised.is_some())
    {
        let text = "listeners: --listen and --advertised do not replace a list of listeners";
        return Err(Problem::at(listeners, text));
    }
    if let Some(listen) = options.listen {
        file.listeners = Some(nowhere(Listeners::Plain(format!("PLAINTEXT://{listen}"))));
    }
    if let Some(advertised) = &options.advertised {
        let name = match &file.listeners {
            Some(At { value: Listeners::Plain(urls), .. }) => urls.split("://").next(),
            _ => None,
        };
        let url = format!("{}://{advertised}", name.unwrap_or("PLAINTEXT"));
        file.advertised_listeners = Some(nowhere(url));
    }
    Ok(file)
}

/// Turns the keys of a file into the broker's settings.
///
/// # Errors
/// Names the key.
pub(crate) fn config(file: File, sources: &mut Sources) -> Result<Config, Problem> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let admin = file.admin.as_ref().map_or(ADMIN, |admin| admin.value);
    let mib = |value: &Option<At<u64>>, default| or(value, default).saturating_mul(1 << 20);
    let journal_file_bytes = within(&file.journal_file_mib, "journal_file_mib", 1..=1024)?
        .map_or(256 << 20, |mib| mib << 20);
    let request_bytes_max = positive(&file.socket_request_max_bytes, "socket.request.max.bytes")?;
    let idle = positive(&file.connections_max_idle_ms, "connections.max.idle.ms")?;
    let limits = ConnectionLimits::default();
    let memory_bytes = super::memory(&file.memory_max_bytes, "memory.max.bytes", MEMORY_BYTES_MIN)?;
    // Without a pause one search would follow the other.
    let retention =
        positive(&file.log_retention_check_interval_ms, "log.retention.check.interval.ms")?;
    let cleaner = positive(&file.log_cleaner_backoff_ms, "log.cleaner.backoff.ms")?;
    Ok(Config {
        file_keys: file.described(),
        loggers: None,
        listeners: listeners(&file, memory_bytes, admin, sources)?,
        authorization: authorization(&file)?,
        topic_defaults: topic_defaults(&file)?,
        groups: groups(&file)?,
        unpacking: match or(&file.check_compressed_records, true) {
            true => Unpacking::Always,
            false => Unpacking::WhereNeeded,
        },
        transactions: transactions(&file)?,
        quota_window: quota_window(&file)?,
        telemetry: telemetry::settings(&file.telemetry_max_bytes, &file.telemetry, sources)?,
        admin: Some(admin),
        durability: match file.durability.as_ref().map(|it| it.value) {
            None | Some(DurabilityChoice::Fsync) => Durability::Fsync,
            Some(DurabilityChoice::Os) => Durability::Os,
        },
        commit_delay: Duration::from_millis(or(&file.commit_delay_ms, 0)),
        memory_bytes,
        tail_cache_bytes: tail_cache(&file, memory_bytes)?,
        journal_file_bytes,
        disk_reserve_bytes: mib(&file.disk_reserve_mib, 256),
        scrub_rate: mib(&file.scrub_mib_per_second, 4),
        network_threads: positive(&file.network_threads, "num.network.threads")?.unwrap_or(cores),
        request_bytes_max: request_bytes_max.unwrap_or(limits.frame_bytes_max),
        connections_max_idle: idle.map_or(limits.idle_timeout, Duration::from_millis),
        auto_create_topics: or(&file.auto_create_topics, true),
        partitions_default: positive(&file.partitions_default, "num.partitions")?.unwrap_or(1),
        log_retention_check_interval: Duration::from_millis(retention.unwrap_or(30_000)),
        log_cleaner_backoff: Duration::from_millis(cleaner.unwrap_or(15_000)),
        drain_timeout: Duration::from_millis(or(&file.drain_timeout_ms, 10_000)),
        data_dir: file.data_dir.map_or_else(|| PathBuf::from("moldau-data"), |it| it.value),
    })
}

/// Where the admin pages are unless the operator chooses.
const ADMIN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9644);

fn or<T: Copy>(value: &Option<At<T>>, default: T) -> T {
    value.as_ref().map_or(default, |it| it.value)
}

fn positive<T: Copy + Default + PartialEq>(
    value: &Option<At<T>>,
    key: &str,
) -> Result<Option<T>, Problem> {
    value.as_ref().map_or(Ok(()), |value| at_least_one(value, key))?;
    Ok(value.as_ref().map(|it| it.value))
}

fn within<T: Copy + PartialOrd + std::fmt::Display>(
    value: &Option<At<T>>,
    key: &str,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, Problem> {
    match value {
        Some(value) if !range.contains(&value.value) => {
            let (from, to) = range.into_inner();
            Err(Problem::at(value, format_args!("{key}: must lie between {from} and {to}")))
        }
        value => Ok(value.as_ref().map(|it| it.value)),
    }
}

fn tail_cache(file: &File, memory_bytes: usize) -> Result<Option<usize>, Problem> {
    let Some(mib) = &file.tail_cache_mib else { return Ok(None) };
    let bytes = mib.value.saturating_mul(1 << 20);
    if bytes > memory_bytes / 2 {
        let half = memory_bytes >> 21;
        let text = format!(
            "tail_cache_mib: must not exceed half of memory.max.bytes, which is \
             {half} MiB"
        );
        return Err(Problem::at(mib, text));
    }
    Ok(Some(bytes))
}

fn listeners(
    file: &File,
    memory_bytes: usize,
    admin: SocketAddr,
    sources: &mut Sources,
) -> Result<Vec<ListenerConfig>, Problem> {
    let limits = super::limits::listener(
        &ListenerLimits::within(memory_bytes),
        ("max.connections", file.max_connections.as_ref()),
        ("max.connections.per.ip", file.max_connections_per_ip.as_ref()),
        None,
    )?;
    let advertised = file.advertised_listeners.as_ref();
    match &file.listeners {
        Some(list @ At { value: Listeners::Secured(keys), .. }) => {
            if let Some(stray) = advertised {
                let text =
                    "advertised.listeners: use the key `advertised` of each listener in a list";
                return Err(Problem::at(stray, text));
            }
            listeners::secured(&list.with(keys.as_slice()), admin, &limits, sources)
        }
        Some(list @ At { value: Listeners::Plain(urls), .. }) => {
            listeners::plain(&list.with(urls.as_str()), advertised, admin, &limits)
        }
        None => listeners::plain(&nowhere(listeners::DEFAULT), advertised, admin, &limits),
    }
}

/// How access control lists are enforced; `None` lets everyone do everything.
fn authorization(file: &File) -> Result<Option<AuthorizationSettings>, Problem> {
    let class = file.authorizer.as_ref().filter(|class| !class.value.is_empty());
    let Some(class) = class else {
        let needs =
            |key: &str| format!("{key}: needs authorizer.class.name: {STANDARD_AUTHORIZER}");
        return match (&file.super_users, &file.allow_everyone) {
            (Some(users), _) => Err(Problem::at(users, needs("super.users"))),
            (None, Some(allow)) => Err(Problem::at(allow, needs("allow.everyone.if.no.acl.found"))),
            (None, None) => Ok(None),
        };
    };
    if class.value != STANDARD_AUTHORIZER {
        let text = format!("authorizer.class.name: the only class is {STANDARD_AUTHORIZER}");
        return Err(Problem::at(class, text));
    }
    let mut super_users = Vec::new();
    if let Some(users) = &file.super_users {
        for user in users.value.split(';').map(str::trim).filter(|user| !user.is_empty()) {
            let refused = |error| Problem::at(users, format_args!("super.users: {error}"));
            super_users.push(user.parse::<Principal>().map_err(refused)?);
        }
    }
    let allow_everyone_if_no_acl_found = or(&file.allow_everyone, false);
    Ok(Some(AuthorizationSettings { super_users, allow_everyone_if_no_acl_found }))
}

fn topic_defaults(file: &File) -> Result<TopicDefaults, Problem> {
    file.topic_defaults().try_fold(TopicDefaults::default(), |defaults, (name, value)| {
        defaults.with(name, &value.value).map_err(|problem| Problem::at(value, problem))
    })
}

fn groups(file: &File) -> Result<GroupSettings, Problem> {
    let defaults = GroupSettings::default();
    let ms = |value: &Option<At<u64>>, key: &str, default: i32| {
        let value = within(value, key, 0..=i32::MAX.unsigned_abs().into())?;
        Ok::<_, Problem>(value.map_or(default, |ms| i32::try_from(ms).unwrap_or(i32::MAX)))
    };
    let (min, max) = (&file.group_min_session_timeout_ms, &file.group_max_session_timeout_ms);
    let session_timeout_ms_min =
        ms(min, "group.min.session.timeout.ms", defaults.session_timeout_ms_min)?;
    let session_timeout_ms_max =
        ms(max, "group.max.session.timeout.ms", defaults.session_timeout_ms_max)?;
    if let Some(at_fault) = min.as_ref().or(max.as_ref())
        && session_timeout_ms_min > session_timeout_ms_max
    {
        let text = format!(
            "group.min.session.timeout.ms: {session_timeout_ms_min} is above \
             group.max.session.timeout.ms, which is {session_timeout_ms_max}"
        );
        return Err(Problem::at(at_fault, text));
    }
    let size = within(&file.group_max_size, "group.max.size", 1..=GROUP_SIZE_MAX)?;
    let metadata = &file.offset_metadata_max_bytes;
    let metadata = within(metadata, "offset.metadata.max.bytes", 0..=OFFSET_METADATA_BYTES_MAX)?;
    let minutes = &file.offsets_retention_minutes;
    let minutes = within(minutes, "offsets.retention.minutes", 1..=i32::MAX.unsigned_abs().into())?;
    let interval = &file.offsets_retention_check_interval_ms;
    let interval = positive(interval, "offsets.retention.check.interval.ms")?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Ok(GroupSettings {
        initial_rebalance_delay_ms: ms(
            &file.group_initial_rebalance_delay_ms,
            "group.initial.rebalance.delay.ms",
            INITIAL_REBALANCE_DELAY_MS,
        )?,
        session_timeout_ms_min,
        session_timeout_ms_max,
        group_size_max: size.unwrap_or(defaults.group_size_max),
        offset_metadata_bytes_max: metadata.unwrap_or(defaults.offset_metadata_bytes_max),
        offsets_retention_ms: minutes
            .map_or(defaults.offsets_retention_ms, |it| signed(it).saturating_mul(60_000)),
        offsets_retention_check_interval_ms: interval
            .map_or(defaults.offsets_retention_check_interval_ms, signed),
        consumer: consumer_groups::parse(file)?,
        share: share_groups::parse(file)?,
        streams: streams_groups::parse(file)?,
        ..defaults
    })
}

fn quota_window(file: &File) -> Result<QuotaWindow, Problem> {
    let defaults = QuotaWindow::default();
    let num = within(&file.quota_window_num, "quota.window.num", 1..=QUOTA_WINDOWS_MAX)?;
    let size = &file.quota_window_size_seconds;
    let size = within(size, "quota.window.size.seconds", 1..=i32::MAX.unsigned_abs())?;
    Ok(QuotaWindow {
        num: num.unwrap_or(defaults.num),
        size_seconds: size.unwrap_or(defaults.size_seconds),
    })
}

/// Most windows: each user and client that is measured keeps a sum for every window.
const QUOTA_WINDOWS_MAX: u32 = 1_000;

fn transactions(file: &File) -> Result<TransactionSettings, Problem> {
    let defaults = TransactionSettings::default();
    let timeout = &file.transaction_max_timeout_ms;
    let timeout =
        within(timeout, "transaction.max.timeout.ms", 1..=i32::MAX.unsigned_abs().into())?;
    let expiration =
        positive(&file.transactional_id_expiration_ms, "transactional.id.expiration.ms")?;
    Ok(TransactionSettings {
        timeout_ms_max: timeout
            .map_or(defaults.timeout_ms_max, |ms: u64| i32::try_from(ms).unwrap_or(i32::MAX)),
        id_expiration_ms: expiration
            .map_or(defaults.id_expiration_ms, |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX)),
        ..defaults
    })
}

/// Milliseconds that the first member of a group waits for others. Kafka waits 3000; for a client
/// that starts alone most of that is wasted.
const INITIAL_REBALANCE_DELAY_MS: i32 = 500;

/// Most members of a group: a rebalance holds the metadata and assignments of all at once.
pub(crate) const GROUP_SIZE_MAX: usize = 10_000;

/// Longest text that a commit may carry: a string of Kafka's protocol cannot be longer.
pub(crate) const OFFSET_METADATA_BYTES_MAX: usize = 32_767;

#[cfg(test)]
mod tests;
