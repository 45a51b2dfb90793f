//! The file of `moldau run`. A key that Kafka's consumer has too has Kafka's name.
//!
//! ```yaml
//! bootstrap.servers: 127.0.0.1:9092
//! group.id: billing
//! routes:
//!   - topics: orders
//!     order: key
//!     retry: {attempts_max: 5}
//!     dead_letters: orders.dead
//!     handler: {command: [python3, worker.py], processes: 2}
//! ```

mod handler;
mod route;
mod share;

use std::collections::HashSet;
use std::time::Duration;

use moldau_client::{
    ClusterOptions, ConnectionOptions, FetcherOptions, GroupProtocol, Isolation, MembershipOptions,
    Reset,
};
use moldau_consumer::{AppOptions, Workers};
use serde::Deserialize;

use super::problem::At;
use super::{Problem, Sources, client, sasl, tls};
use crate::arguments::Protocol;
#[cfg(test)]
pub(super) use handler::Keys as HandlerKeys;
pub(crate) use handler::{HandlerKind, HandlerSettings};
#[cfg(test)]
pub(super) use route::{FilterKeys, Keys as RouteKeys, RetryKeys, RetryTopicKeys};
pub(crate) use route::{Layers, RouteSettings, Source};
pub(crate) use share::GroupType;

/// The keys of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Bootstrap servers, each `host:port`: separated by commas, or a list.
    #[serde(rename = "bootstrap.servers")]
    bootstrap_servers: At<OneOrMore>,
    /// The group.
    #[serde(rename = "group.id")]
    group_id: At<String>,
    /// Whether it is a `consumer` or a `share` group (KIP-932). Default `consumer`.
    #[serde(rename = "group.type", default)]
    group_type: GroupType,
    /// `classic` or `consumer` (KIP-848). Default `classic`.
    #[serde(rename = "group.protocol")]
    group_protocol: Option<At<Protocol>>,
    /// Makes the member static. Default: none.
    #[serde(rename = "group.instance.id")]
    group_instance_id: Option<At<String>>,
    /// Where a group without offsets begins: `earliest` or `latest`. Default `earliest`.
    #[serde(rename = "auto.offset.reset")]
    auto_offset_reset: Option<At<OffsetReset>>,
    /// `read_uncommitted` or `read_committed`. Default `read_uncommitted`.
    #[serde(rename = "isolation.level")]
    isolation_level: Option<At<IsolationLevel>>,
    /// Milliseconds between commits. Default 1000.
    #[serde(rename = "auto.commit.interval.ms")]
    auto_commit_interval_ms: Option<At<u64>>,
    /// Milliseconds without a heartbeat after which the group gives the partitions to others, in
    /// the classic protocol. Default 45000.
    #[serde(rename = "session.timeout.ms")]
    session_timeout_ms: Option<At<u64>>,
    /// Milliseconds between heartbeats, in the classic protocol. Default 3000.
    #[serde(rename = "heartbeat.interval.ms")]
    heartbeat_interval_ms: Option<At<u64>>,
    /// Milliseconds that a rebalance waits for this member. Default 300000.
    #[serde(rename = "max.poll.interval.ms")]
    max_poll_interval_ms: Option<At<u64>>,
    /// Bytes of one partition in one fetch. Default 1048576.
    #[serde(rename = "max.partition.fetch.bytes")]
    max_partition_fetch_bytes: Option<At<i32>>,
    /// TLS towards the cluster. Default: none.
    tls: Option<At<tls::Client>>,
    /// Credentials. Default: none.
    sasl: Option<At<sasl::Client>>,
    /// Makes what handlers produce, dead letters and offsets one transaction; another one for each
    /// process of the group. Default: no transactions.
    #[serde(rename = "transactional.id")]
    transactional_id: Option<At<String>>,
    /// The share of the keys that this process handles, in a group of its own. Default: all.
    segment: Option<At<SegmentKeys>>,
    /// Records or batches with handlers at a time, over all routes; `auto` follows the load.
    /// Default: 256, or what the handlers take at a time if that is more.
    workers: Option<At<WorkersChoice>>,
    /// Milliseconds that handlers may take for their current records at the end, or when a
    /// partition is revoked. Default 30000.
    drain_timeout_ms: Option<At<u64>>,
    /// What handles which topics. At least one.
    routes: At<Vec<route::Keys>>,
}

/// One text, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The keys of `segment`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentKeys {
    /// Number of this segment, from 0 on.
    index: u32,
    /// Number of segments.
    count: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "must be a number or auto")]
enum WorkersChoice {
    Number(usize),
    Word(Auto),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Auto {
    Auto,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OffsetReset {
    Earliest,
    Latest,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
}

/// What a file says.
pub(crate) struct Settings {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) group: String,
    pub(crate) group_type: GroupType,
    pub(crate) options: AppOptions,
    pub(crate) transactional_id: Option<String>,
    /// Index and count.
    pub(crate) segment: Option<(u32, u32)>,
    pub(crate) routes: Vec<RouteSettings>,
}

impl OneOrMore {
    /// The texts; one text may hold several, separated by commas.
    pub(super) fn texts(&self) -> Vec<String> {
        match self {
            Self::One(text) => text.split(',').map(|it| it.trim().to_owned()).collect(),
            Self::More(texts) => texts.clone(),
        }
    }
}

/// Whether a text is such a file rather than one of a broker, a proxy or a client tool.
pub(crate) fn is_likely(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("routes:"))
}

/// Turns the keys of a file into settings.
///
/// # Errors
/// Names the key.
pub(crate) fn settings(mut file: File, sources: &mut Sources) -> Result<Settings, Problem> {
    let bootstrap = file.bootstrap_servers.value.texts();
    for server in &bootstrap {
        super::host_port("bootstrap.servers", &file.bootstrap_servers.with(server.clone()))?;
    }
    if bootstrap.is_empty() {
        let text = "bootstrap.servers: at least one server is needed";
        return Err(Problem::at(&file.bootstrap_servers, text));
    }
    if file.group_id.value.is_empty() {
        return Err(Problem::at(&file.group_id, "group.id: is empty"));
    }
    if file.routes.value.is_empty() {
        return Err(Problem::at(&file.routes, "routes: at least one is needed"));
    }
    if file.group_type == GroupType::Share {
        share::check(&file)?;
    }
    let keys = client::File { tls: file.tls.take(), sasl: file.sasl.take() };
    let security = client::security(keys, sources)?;
    let connection = ConnectionOptions { security, ..ConnectionOptions::default() };
    let mut options = AppOptions {
        cluster: ClusterOptions { connection, ..ClusterOptions::default() },
        ..AppOptions::default()
    };
    set_membership(&mut options.membership, &file)?;
    set_fetcher(&mut options.fetcher, &file)?;
    if let Some(interval) = &file.auto_commit_interval_ms {
        options.commit_interval = Duration::from_millis(interval.value);
    }
    set_duration(&mut options.drain_timeout, &file.drain_timeout_ms, "drain_timeout_ms")?;
    if let Some(timeout) = &file.drain_timeout_ms
        && file.group_type == GroupType::Consumer
        && options.drain_timeout >= options.membership.rebalance_timeout
    {
        let text = "drain_timeout_ms: must be less than max.poll.interval.ms";
        return Err(Problem::at(timeout, text));
    }
    let routes: Result<Vec<_>, _> =
        file.routes.value.into_iter().map(|keys| keys.settings(file.group_type, sources)).collect();
    let routes = routes?;
    check_sources(&routes)?;
    let at_a_time: usize = routes.iter().map(|route| route.handler.requests_max()).sum();
    options.workers = workers(file.workers.as_ref(), options.workers, at_a_time)?;
    if let Some(id) = &file.transactional_id
        && id.value.is_empty()
    {
        return Err(Problem::at(id, "transactional.id: is empty"));
    }
    if let Some(segment) = &file.segment
        && segment.value.index >= segment.value.count
    {
        return Err(Problem::at(segment, "segment: index must be less than count"));
    }
    Ok(Settings {
        bootstrap,
        group: file.group_id.value,
        group_type: file.group_type,
        options,
        transactional_id: file.transactional_id.map(|id| id.value),
        segment: file.segment.map(|segment| (segment.value.index, segment.value.count)),
        routes,
    })
}

/// Those that the file chooses, or enough for what the handlers take at a time.
fn workers(
    choice: Option<&At<WorkersChoice>>,
    default: Workers,
    at_a_time: usize,
) -> Result<Workers, Problem> {
    let Some(choice) = choice else {
        return Ok(match default {
            Workers::Fixed(workers) => Workers::Fixed(workers.max(at_a_time)),
            Workers::Auto => Workers::Auto,
        });
    };
    match choice.value {
        WorkersChoice::Word(Auto::Auto) => Ok(Workers::Auto),
        WorkersChoice::Number(workers) => {
            super::at_least_one(&choice.with(workers), "workers")?;
            Ok(Workers::Fixed(workers))
        }
    }
}

/// No two routes may read the same, and a process is either assigned its partitions or names them.
fn check_sources(routes: &[RouteSettings]) -> Result<(), Problem> {
    let mut topics = HashSet::new();
    for topic in routes.iter().flat_map(|route| route.source.topics()) {
        if !topics.insert(topic.value.clone()) {
            let text = format!("topics: {:?} is in another route", topic.value);
            return Err(Problem::at(topic, text));
        }
    }
    let (mut direct, mut assigned) = (None, false);
    for route in routes {
        match &route.source {
            Source::Partitions(_, partitions) => direct = Some(partitions),
            Source::Topics(_) | Source::Pattern(_) => assigned = true,
        }
    }
    match direct {
        Some(partitions) if assigned => {
            let text = "partitions: all routes of a process need them, or none";
            Err(Problem::at(partitions, text))
        }
        _ => Ok(()),
    }
}

fn set_membership(options: &mut MembershipOptions, file: &File) -> Result<(), Problem> {
    options.protocol = match file.group_protocol.as_ref().map(|protocol| protocol.value) {
        None | Some(Protocol::Classic) => GroupProtocol::Classic,
        Some(Protocol::Consumer) => GroupProtocol::Consumer,
    };
    options.instance_id = file.group_instance_id.as_ref().map(|id| id.value.clone());
    let MembershipOptions { session_timeout, heartbeat_interval, rebalance_timeout, .. } = options;
    set_duration(session_timeout, &file.session_timeout_ms, "session.timeout.ms")?;
    set_duration(heartbeat_interval, &file.heartbeat_interval_ms, "heartbeat.interval.ms")?;
    set_duration(rebalance_timeout, &file.max_poll_interval_ms, "max.poll.interval.ms")
}

fn set_fetcher(options: &mut FetcherOptions, file: &File) -> Result<(), Problem> {
    options.reset = match file.auto_offset_reset.as_ref().map(|reset| reset.value) {
        None | Some(OffsetReset::Earliest) => Reset::Earliest,
        Some(OffsetReset::Latest) => Reset::Latest,
    };
    options.isolation = match file.isolation_level.as_ref().map(|level| level.value) {
        None | Some(IsolationLevel::ReadUncommitted) => Isolation::ReadUncommitted,
        Some(IsolationLevel::ReadCommitted) => Isolation::ReadCommitted,
    };
    if let Some(bytes) = &file.max_partition_fetch_bytes {
        if bytes.value < 1 {
            return Err(Problem::at(bytes, "max.partition.fetch.bytes: must be at least 1"));
        }
        options.partition_bytes_max = bytes.value;
    }
    Ok(())
}

/// Sets a duration that must not be 0.
fn set_duration(
    duration: &mut Duration,
    given: &Option<At<u64>>,
    key: &str,
) -> Result<(), Problem> {
    if let Some(ms) = given {
        super::at_least_one(ms, key)?;
        *duration = Duration::from_millis(ms.value);
    }
    Ok(())
}

/// A time that must not be 0.
fn time(given: &Option<At<u64>>, default: Duration, key: &str) -> Result<Duration, Problem> {
    let mut duration = default;
    set_duration(&mut duration, given, key)?;
    Ok(duration)
}
