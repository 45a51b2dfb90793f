//! What the admin port of a cluster's broker reports of its steps: batches that are collected, put
//! and committed, reads through the cache, the services and their failures.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_cluster::{Durations, DurationsRead, Service};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::cluster_health::ClusterHealth;
use crate::metric_families::{Reported, encode_counters, encode_gauges};

/// Adds the metrics of a cluster.
///
/// # Errors
/// The encoder's own.
pub(crate) fn encode(
    health: &ClusterHealth,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    encode_durations(health, encoder)?;
    encode_failures(health, encoder)?;
    encode_reached(health, encoder)?;
    encode_counters(encoder, &counters(health))?;
    encode_gauges(encoder, &gauges(health))
}

fn encode_durations(
    health: &ClusterHealth,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let (writer, requests) = (&health.writer, &health.requests);
    let histograms: [(&str, &str, &Durations); 5] = [
        (
            "cluster_collect",
            "Seconds from the arrival of a batch to the PUT of its object",
            &writer.collects,
        ),
        ("cluster_put", "Seconds of PUTs that succeeded", &requests.put_durations),
        (
            "cluster_commit",
            "Seconds of commits of objects in PostgreSQL, repeated requests included",
            &writer.commits,
        ),
        ("cluster_append", "Seconds from the arrival of a batch to its offset", &writer.appends),
        (
            "cluster_get",
            "Seconds of GETs that succeeded, repeated requests included",
            &requests.get_durations,
        ),
    ];
    for (name, help, durations) in histograms {
        let (unit, kind) = (Some(&Unit::Seconds), MetricType::Histogram);
        let mut metric = encoder.encode_descriptor(name, help, unit, kind)?;
        let DurationsRead { buckets, sum_seconds, count } = durations.read();
        metric.encode_histogram::<NoLabelSet>(sum_seconds, count, &buckets, None)?;
    }
    Ok(())
}

fn encode_failures(
    health: &ClusterHealth,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let requests = &health.requests;
    let failures = [
        ("put", read(&requests.put_failures)),
        ("get", read(&requests.get_failures)),
        ("delete", read(&requests.delete_failures)),
        ("list", read(&requests.list_failures)),
        ("database", health.database.failures()),
    ];
    let help = "Requests that were not answered or were refused, by request";
    let kind = MetricType::Counter;
    let mut family = encoder.encode_descriptor("cluster_failures", help, None, kind)?;
    for (request, count) in failures {
        ConstCounter::new(count).encode(family.encode_family(&[("request", request)])?)?;
    }
    Ok(())
}

fn encode_reached(
    health: &ClusterHealth,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let help = "1 if the service answers, else 0";
    let kind = MetricType::Gauge;
    let mut family = encoder.encode_descriptor("cluster_service_reached", help, None, kind)?;
    for service in health.services() {
        let name = match service.service() {
            Service::PostgreSql => "postgresql",
            Service::ObjectStore { .. } => "object_store",
        };
        let is_reached = i64::from(service.away_for().is_none());
        ConstGauge::new(is_reached).encode(family.encode_family(&[("service", name)])?)?;
    }
    Ok(())
}

fn counters(health: &ClusterHealth) -> [Reported<u64>; 9] {
    let (requests, reader) = (&health.requests, &health.reader);
    [
        ("cluster_objects_put", "Objects put", requests.put_durations.read().count),
        ("cluster_put_bytes", "Bytes of objects put", read(&requests.put_bytes)),
        ("cluster_gets", "Ranges of objects read", requests.get_durations.read().count),
        ("cluster_get_bytes", "Bytes of objects read", read(&requests.get_bytes)),
        ("cluster_objects_deleted", "Objects deleted", read(&requests.deleted)),
        (
            "cluster_ranges_sorted",
            "Byte ranges of objects replaced by those of a sorted object",
            read(&health.ranges_sorted),
        ),
        ("cluster_cache_hits", "Ranges of objects found in the cache", read(&reader.hits)),
        ("cluster_cache_misses", "Ranges of objects not found in the cache", read(&reader.misses)),
        (
            "cluster_damaged_reads",
            "Reads that found an object damaged or lost",
            read(&reader.damaged),
        ),
    ]
}

fn gauges(health: &ClusterHealth) -> [Reported<i64>; 9] {
    let signed = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let (writer, reader, database) = (&health.writer, &health.reader, &health.database);
    let epoch = health.submissions.epoch();
    [
        (
            "cluster_waiting_bytes",
            "Bytes of batches that wait for their offsets",
            signed(writer.waiting_bytes()),
        ),
        (
            "cluster_waiting_limit_bytes",
            "Limit of the bytes of batches that wait for their offsets",
            signed(writer.waiting_bytes_max()),
        ),
        (
            "cluster_cache_bytes",
            "Memory used by ranges of objects",
            signed(reader.cached_bytes.load(Ordering::Relaxed)),
        ),
        (
            "cluster_cache_limit_bytes",
            "Limit of the memory used by ranges of objects",
            signed(reader.cached_bytes_max),
        ),
        (
            "cluster_database_connections",
            "Connections to PostgreSQL in use by requests",
            signed(database.connections()),
        ),
        (
            "cluster_database_connections_limit",
            "Limit of the connections to PostgreSQL for requests",
            signed(database.connections_max()),
        ),
        (
            "cluster_controller",
            "1 if this broker is the controller, else 0",
            i64::from(epoch.is_some()),
        ),
        (
            "cluster_controller_epoch",
            "Epoch of this broker as the controller, else 0",
            epoch.unwrap_or(0),
        ),
        (
            "cluster_metadata_position",
            "Position in the metadata log up to which this broker follows it",
            health.submissions.forwards.position(),
        ),
    ]
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
