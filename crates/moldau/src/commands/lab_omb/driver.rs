//! A driver file of the OpenMessaging Benchmark for Kafka: how its clients are set.

use std::num::NonZeroU16;

use moldau_lab::experiments::survey::Settings;
use moldau_load::workload::{Acks, Codec};
use serde::Deserialize;

use super::properties::{Property, properties};
use crate::config::{self, At, Problem, nearest};

/// Largest batch, Kafka's default limit of a message.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The driver for Kafka, and that of Redpanda's fork, which has the same keys.
const DRIVERS: [&str; 2] = [".kafka.KafkaBenchmarkDriver", ".redpanda.RedpandaBenchmarkDriver"];

/// What a driver file comes to here.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Driver {
    pub(super) name: Option<String>,
    /// The first of its brokers.
    pub(super) bootstrap: Option<String>,
    pub(super) settings: Settings,
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    name: Option<String>,
    driver_class: At<String>,
    replication_factor: Option<i64>,
    /// Deletes all topics of the cluster beforehand.
    #[serde(rename = "reset")]
    _reset: Option<bool>,
    topic_config: Option<At<String>>,
    common_config: Option<At<String>>,
    producer_config: Option<At<String>>,
    consumer_config: Option<At<String>>,
}

/// What a property comes to.
enum Effect {
    /// A setting of the load.
    Taken,
    /// Nothing, since the client here is made otherwise: a remark.
    Idle,
}

type Outcome = Result<Effect, String>;

/// Reads a driver.
///
/// # Errors
/// The problem of the parser, or everything that has no equal here.
pub(super) fn parse(text: &str) -> Result<Driver, Vec<Problem>> {
    let file: File = config::parse(text).map_err(|problem| vec![problem])?;
    let mut driver = Driver { name: file.name.clone(), ..Driver::default() };
    let mut problems = Vec::new();
    if !DRIVERS.iter().any(|driver| file.driver_class.value.ends_with(driver)) {
        problems.push(Problem::at(
            &file.driver_class,
            format!("driverClass: {} is not the driver for Kafka", file.driver_class.value),
        ));
    }
    let mut idle: Vec<String> = Vec::new();
    let mut read = |block: &Option<At<String>>, take: &mut dyn FnMut(&Property<'_>) -> Outcome| {
        let Some(block) = block else { return };
        for property in properties(block, text) {
            match take(&property) {
                Ok(Effect::Taken) => {}
                Ok(Effect::Idle) => idle.push(format!("{}={}", property.key, property.value)),
                Err(reason) => problems.push(Problem::in_line(property.line, reason)),
            }
        }
    };
    read(&file.topic_config, &mut topic);
    read(&file.common_config, &mut |property| common(property, &mut driver));
    read(&file.producer_config, &mut |property| producer(property, &mut driver));
    read(&file.consumer_config, &mut |property| consumer(property, &mut driver));
    if !problems.is_empty() {
        return Err(problems);
    }
    if let Some(factor) = file.replication_factor.filter(|factor| *factor > 1) {
        driver.remarks.push(format!(
            "replicationFactor {factor}: topics had the default of the system, which is 1 for a \
             single broker."
        ));
    }
    if !idle.is_empty() {
        driver.remarks.push(format!("Ignored: {}.", idle.join(", ")));
    }
    Ok(driver)
}

/// `min.insync.replicas` asks for replicas that a single broker does not have.
fn topic(property: &Property<'_>) -> Outcome {
    match property.key {
        "min.insync.replicas" => Ok(Effect::Idle),
        "flush.messages" | "flush.ms" => Err(format!(
            "{}: topics have the defaults of the system; --system moldau flushes before it \
             acknowledges",
            property.key
        )),
        other => Err(unknown(other, &["min.insync.replicas", "flush.messages", "flush.ms"])),
    }
}

fn common(property: &Property<'_>, driver: &mut Driver) -> Outcome {
    if property.key == "bootstrap.servers" {
        let first = property.value.split(',').next().unwrap_or_default().trim();
        if !first.contains(':') {
            return Err(format!("bootstrap.servers: {first:?} is not HOST:PORT"));
        }
        driver.bootstrap = Some(first.to_owned());
        return Ok(Effect::Taken);
    }
    shared(property, &[])
}

fn producer(property: &Property<'_>, driver: &mut Driver) -> Outcome {
    let Property { key, value, .. } = *property;
    let settings = &mut driver.settings;
    let no_number = || format!("{key}: {value} is not a whole number");
    match key {
        "acks" => {
            settings.acks = Some(match value {
                "all" | "-1" => Acks::All,
                "1" => Acks::Leader,
                "0" => {
                    return Err("acks: 0 is not supported; the audit needs responses".into());
                }
                other => return Err(config::none_of(other, &["all", "-1", "1", "0"])),
            });
        }
        "linger.ms" => {
            let ms: u64 = value.parse().map_err(|_| no_number())?;
            settings.linger_us = Some(ms.saturating_mul(1_000));
        }
        "batch.size" => {
            let bytes: usize = value.parse().map_err(|_| no_number())?;
            if bytes > BATCH_BYTES_MAX {
                return Err(format!("batch.size: {bytes} is above {BATCH_BYTES_MAX}"));
            }
            settings.batch_bytes = Some(bytes);
        }
        "compression.type" => {
            settings.compression = match value {
                "none" => None,
                "gzip" => Some(Codec::Gzip),
                "snappy" => Some(Codec::Snappy),
                "lz4" => Some(Codec::Lz4),
                "zstd" => Some(Codec::Zstd),
                other => {
                    let known = ["none", "gzip", "snappy", "lz4", "zstd"];
                    return Err(format!("compression.type: {}", config::none_of(other, &known)));
                }
            };
        }
        "max.in.flight.requests.per.connection" => {
            let most: NonZeroU16 = value.parse().map_err(|_| {
                format!("{key}: {value} is not a whole number from 1 to {}", u16::MAX)
            })?;
            settings.in_flight_max = Some(most.get());
        }
        "transactional.id" => {
            return Err(
                "transactional.id: not supported; use transaction_records in a survey".into()
            );
        }
        "partitioner.class" => {
            return Err("partitioner.class: not supported; batches go to partitions in turn".into());
        }
        _ => return shared(property, &PRODUCER_KEYS),
    }
    Ok(Effect::Taken)
}

fn consumer(property: &Property<'_>, driver: &mut Driver) -> Outcome {
    let settings = &mut driver.settings;
    let number = || {
        let no_number = || format!("{}: {} is not a whole number", property.key, property.value);
        property.value.parse().map_err(|_| no_number())
    };
    match property.key {
        "fetch.min.bytes" => {
            settings.fetch_min_bytes = Some(number()?);
            Ok(Effect::Taken)
        }
        "fetch.max.wait.ms" => {
            settings.fetch_max_wait_ms = Some(number()?);
            Ok(Effect::Taken)
        }
        "isolation.level" if property.value != "read_uncommitted" => {
            Err("isolation.level: not supported; without transactions all records are read".into())
        }
        "group.protocol" => Err("group.protocol: not supported; consumers are in no group".into()),
        _ => shared(property, &CONSUMER_KEYS),
    }
}

/// What all clients know.
fn shared(property: &Property<'_>, others: &[&str]) -> Outcome {
    let Property { key, .. } = *property;
    let is_security = ["security.", "sasl.", "ssl."].iter().any(|it| key.starts_with(it));
    if is_security {
        return Err(format!(
            "{key}: not supported in a driver; use `security` in a system file, with --system"
        ));
    }
    if COMMON_KEYS.contains(&key) || others.contains(&key) {
        return Ok(Effect::Idle);
    }
    let all = COMMON_KEYS.iter().chain(others).chain(&TAKEN_KEYS).copied();
    // What is known elsewhere is not what was meant here.
    let known: Vec<&str> = all.filter(|known| *known != key).collect();
    Err(unknown(key, &known))
}

fn unknown(key: &str, known: &[&str]) -> String {
    match nearest(key, known) {
        Some(other) => format!("unknown property {key:?}; did you mean {other:?}?"),
        None => format!("unknown property {key:?}"),
    }
}

/// Properties that change the load.
const TAKEN_KEYS: [&str; 8] = [
    "bootstrap.servers",
    "acks",
    "linger.ms",
    "batch.size",
    "compression.type",
    "max.in.flight.requests.per.connection",
    "fetch.min.bytes",
    "fetch.max.wait.ms",
];

/// Properties of every Kafka client that change nothing here.
const COMMON_KEYS: [&str; 17] = [
    "client.id",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "enable.metrics.push",
    "interceptor.classes",
    "metadata.max.age.ms",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.sample.window.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.ms",
    "send.buffer.bytes",
];

/// Properties of producers that change nothing here: with acks=all and 5 requests in flight at most
/// they are idempotent.
const PRODUCER_KEYS: [&str; 8] = [
    "buffer.memory",
    "delivery.timeout.ms",
    "enable.idempotence",
    "key.serializer",
    "max.block.ms",
    "max.request.size",
    "metadata.max.idle.ms",
    "value.serializer",
];

/// Properties of consumers that change nothing here: they read from the start, without a group, and
/// ask for up to a MiB of each partition.
const CONSUMER_KEYS: [&str; 15] = [
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "check.crcs",
    "enable.auto.commit",
    "fetch.max.bytes",
    "group.id",
    "heartbeat.interval.ms",
    "isolation.level",
    "key.deserializer",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "session.timeout.ms",
    "value.deserializer",
];
