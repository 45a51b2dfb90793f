//! What the admin port reports: counters of the broker, of its connections, and of its journal or
//! its cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_net::{MemoryReading, MemoryUse, Refusal};
use moldau_storage::MetricsSnapshot;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::clock::wall_clock_ms;
use crate::cluster_metrics;
use crate::metric_families::{Reported, encode_counters, encode_gauges};
use crate::state::State;

/// Everything in the OpenMetrics text format.
///
/// # Errors
/// The encoder's own; writing to a string does not fail.
pub(crate) fn open_metrics(
    state: &Arc<State>,
    net: &Arc<moldau_net::Metrics>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry
        .sub_registry_with_prefix("moldau")
        .register_collector(Box::new(Reading { state: Arc::clone(state), net: Arc::clone(net) }));
    registry.register_collector(Box::new(Pushed(Arc::clone(state))));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// What clients pushed, under the names that they gave it.
struct Pushed(Arc<State>);

impl fmt::Debug for Pushed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pushed")
    }
}

impl Collector for Pushed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.telemetry.encode(&mut encoder, wall_clock_ms())
    }
}

/// Reads every counter when the page is asked for.
struct Reading {
    state: Arc<State>,
    net: Arc<moldau_net::Metrics>,
}

impl fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reading")
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_requests(&mut encoder)?;
        self.encode_refusals(&mut encoder)?;
        self.encode_throttles(&mut encoder)?;
        self.encode_memory(&mut encoder)?;
        self.encode_groups(&mut encoder)?;
        encode_counters(&mut encoder, &self.counters())?;
        encode_counters(&mut encoder, &self.telemetry())?;
        encode_gauges(&mut encoder, &self.gauges())?;
        if let Some(journal) = self.state.storage.journal() {
            encode_counters(&mut encoder, &journal_counters(&journal.metrics()))?;
            encode_gauges(&mut encoder, &journal_gauges(journal))?;
        }
        match &self.state.cluster {
            Some(health) => cluster_metrics::encode(health, &mut encoder),
            None => Ok(()),
        }
    }
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Reading {
    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0u64).metric_type();
        let help = "Requests served, by API";
        let mut family = encoder.encode_descriptor("requests", help, None, kind)?;
        for (key, count) in self.state.counters.by_api() {
            let count = count.load(Ordering::Relaxed);
            if count == 0 {
                continue;
            }
            let labels = [("api", key.name())];
            let counter = ConstCounter::new(count);
            counter.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_refusals(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0_u64).metric_type();
        let help = "Connections refused or closed, by cause";
        let mut family = encoder.encode_descriptor("refusals", help, None, kind)?;
        for (cause, count) in self.net.refusals().into_iter().filter(|(_, count)| *count > 0) {
            let counter = ConstCounter::new(count);
            counter.encode(family.encode_family(&[("cause", cause)])?)?;
        }
        Ok(())
    }

    fn encode_throttles(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0_u64).metric_type();
        let help = "Requests and connections throttled, by quota";
        let mut family = encoder.encode_descriptor("throttles", help, None, kind)?;
        for (quota, count) in self.state.quotas.throttles() {
            let counter = ConstCounter::new(count);
            counter.encode(family.encode_family(&[("quota", quota.name())])?)?;
        }
        Ok(())
    }

    fn encode_memory(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let readings = MemoryUse::ALL.map(|of| (of.name(), self.state.memory.read(of)));
        type Field = fn(&MemoryReading) -> u64;
        let gauges: [(&str, &str, Field); 3] = [
            ("memory_limit_bytes", "Memory limit of connections, by use", |it| it.limit as u64),
            ("memory_used_bytes", "Memory held by connections, by use", |it| it.used as u64),
            ("memory_waiting", "Memory reservations waiting, by use", |it| it.waiting as u64),
        ];
        for (name, help, field) in gauges {
            let kind = ConstGauge::new(0_i64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (of, reading) in &readings {
                let gauge = ConstGauge::new(i64::try_from(field(reading)).unwrap_or(i64::MAX));
                gauge.encode(family.encode_family(&[("use", *of)])?)?;
            }
        }
        let counters: [(&str, &str, Field); 2] = [
            ("memory_waits", "Memory reservations that had to wait, by use", |it| it.waits),
            (
                "memory_exceeded",
                "Memory reservations refused because of their size, by use",
                |it| it.exceeded,
            ),
        ];
        for (name, help, field) in counters {
            let kind = ConstCounter::new(0_u64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (of, reading) in &readings {
                let counter = ConstCounter::new(field(reading));
                counter.encode(family.encode_family(&[("use", *of)])?)?;
            }
        }
        Ok(())
    }

    fn encode_groups(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut counts: BTreeMap<_, (i64, i64)> = BTreeMap::new();
        self.state.groups.view(|groups| {
            for (group_type, state, members) in groups.sizes() {
                let (groups, all_members) =
                    counts.entry((group_type.name(), state.name())).or_default();
                *groups += 1;
                *all_members += i64::try_from(members).unwrap_or(i64::MAX);
            }
        });
        let kind = ConstGauge::new(0_i64).metric_type();
        let help = "Groups, by protocol and state";
        let mut family = encoder.encode_descriptor("groups", help, None, kind)?;
        for ((protocol, state), (groups, _)) in &counts {
            let gauge = ConstGauge::new(*groups);
            let labels = [("protocol", *protocol), ("state", *state)];
            gauge.encode(family.encode_family(&labels)?)?;
        }
        let help = "Members of groups, by protocol and state of their group";
        let mut family = encoder.encode_descriptor("group_members", help, None, kind)?;
        for ((protocol, state), (_, members)) in &counts {
            let gauge = ConstGauge::new(*members);
            let labels = [("protocol", *protocol), ("state", *state)];
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters(&self) -> [Reported<u64>; 13] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let own = &self.state.counters;
        [
            ("produced_bytes", "Bytes of record batches appended", read(&own.produced_bytes)),
            ("produced_records", "Records appended", read(&own.produced_records)),
            ("fetched_bytes", "Bytes of record batches served", read(&own.fetched_bytes)),
            ("received_bytes", "Bytes received from clients", read(&self.net.bytes_in)),
            ("sent_bytes", "Bytes sent to clients", read(&self.net.bytes_out)),
            ("connections", "Connections accepted", read(&self.net.connections_total)),
            (
                "connections_refused",
                "Connections refused above the connection limit",
                self.net.refused(Refusal::ConnectionLimit),
            ),
            (
                "frames_malformed",
                "Malformed frames; each closed its connection",
                self.frames_malformed(),
            ),
            ("denials", "Operations denied by access control", read(&self.state.security.denials)),
            ("compacted_logs", "Compaction runs of a log", read(&own.compacted_logs)),
            ("compacted_records", "Records removed by compaction", read(&own.compacted_records)),
            ("reloads", "Configurations reloaded", read(&own.reloads)),
            ("reload_failures", "Configuration reloads refused", read(&own.reload_failures)),
        ]
    }

    fn telemetry(&self) -> [Reported<u64>; 7] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let telemetry = &self.state.telemetry;
        let (_, dropped) = telemetry.series();
        [
            ("telemetry_pushes", "Pushes of metrics accepted", read(&telemetry.pushes)),
            (
                "telemetry_throttles",
                "Requests for metrics before their interval had passed",
                read(&telemetry.throttles),
            ),
            (
                "telemetry_unknown_subscriptions",
                "Pushes for a subscription that has changed",
                read(&telemetry.unknown_subscriptions),
            ),
            ("telemetry_errors", "Pushes that could not be read", read(&telemetry.errors)),
            ("telemetry_series_dropped", "Pushed values not shown", dropped),
            (
                "telemetry_sent",
                "Pushes that the collector received",
                read(&telemetry.forwarder.sent),
            ),
            (
                "telemetry_send_failures",
                "Pushes that the collector did not receive",
                read(&telemetry.forwarder.dropped),
            ),
        ]
    }

    fn frames_malformed(&self) -> u64 {
        let causes = [
            Refusal::FrameNegative,
            Refusal::FrameEmpty,
            Refusal::FrameOversized,
            Refusal::FrameRefused,
        ];
        causes.map(|cause| self.net.refused(cause)).iter().sum()
    }

    fn gauges(&self) -> [Reported<i64>; 7] {
        let open = self.net.connections_open.load(Ordering::Relaxed);
        let topics = self.state.catalog.all();
        let partitions = topics.iter().map(|topic| i64::from(topic.partitions)).sum();
        [
            ("connections_open", "Open connections", i64::try_from(open).unwrap_or(i64::MAX)),
            (
                "quota_meters",
                "Users and clients measured by quotas",
                signed(self.state.quotas.meters()),
            ),
            ("fetch_sessions", "Incremental fetch sessions", signed(self.state.sessions.len())),
            (
                "telemetry_instances",
                "Clients with a telemetry subscription",
                signed(self.state.telemetry.instances()),
            ),
            ("telemetry_series", "Pushed values shown", signed(self.state.telemetry.series().0)),
            ("topics", "Topics", signed(topics.len())),
            ("partitions", "Partitions of all topics", partitions),
        ]
    }
}

/// What a broker with a journal counts beside that.
fn journal_counters(journal: &MetricsSnapshot) -> [Reported<u64>; 14] {
    [
        ("journal_flushes", "Flushes of the journal", journal.flushes),
        (
            "journal_flush_nanoseconds",
            "Nanoseconds of journal writes and flushes",
            journal.flush_nanos,
        ),
        ("journal_bytes", "Bytes written to the journal", journal.frame_bytes),
        ("tail_batches", "Batches served from the tail cache", journal.tail_batches),
        ("cold_batches", "Batches served from disk", journal.cold_batches),
        ("disk_read_bytes", "Bytes read from disk", journal.chunk_read_bytes),
        ("appends_disk_full", "Appends refused because the disk is full", journal.disk_full),
        ("scrubbed_bytes", "Bytes verified by the scrub", journal.scrubbed_bytes),
        ("scrub_damaged", "Damaged blocks and frames found by the scrub", journal.scrub_damaged),
        ("storage_defects", "Disk reads aborted by a defect of the program", journal.defects),
        ("journal_files_retired", "Journal files freed", journal.files_retired),
        ("checkpoints", "Checkpoints written", journal.checkpoints),
        ("segments_written", "Sorted segments written", journal.segments_written),
        ("segments_removed", "Sorted segments removed", journal.segments_removed),
    ]
}

fn journal_gauges(journal: &moldau_storage::Storage) -> [Reported<i64>; 4] {
    let (tail, read_back) = journal.cached_bytes();
    let (appended, read) = journal.memory_bytes();
    [
        ("tail_cache_bytes", "Memory used by recent batches", signed(tail)),
        ("read_cache_bytes", "Memory used by batches read from disk", signed(read_back)),
        (
            "journal_memory_bytes",
            "Memory of appended batches, including batches held by responses",
            signed(appended),
        ),
        (
            "read_memory_bytes",
            "Memory of batches read from disk, including batches held by responses",
            signed(read),
        ),
    ]
}
