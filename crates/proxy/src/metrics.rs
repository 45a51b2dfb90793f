//! What the admin port reports.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_net::{MemoryReading, MemoryUse, NetworkHandle, Refusal};
use moldau_protocol::messages::ApiKey;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::filter::FilterMetric;
use crate::latency::Series;
use crate::traffic::{Bytes, Traffic};

/// The two sides of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// The client.
    Downstream,
    /// The cluster.
    Upstream,
}

/// How sessions ended by one side.
#[derive(Debug, Default)]
pub(crate) struct SideMetrics {
    pub(crate) frames_malformed: AtomicU64,
    pub(crate) frames_truncated: AtomicU64,
}

/// Counters that sessions add to.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) traffic: Traffic,
    downstream: SideMetrics,
    upstream: SideMetrics,
    pub(crate) upstream_connects: AtomicU64,
    pub(crate) upstream_connect_errors: AtomicU64,
    pub(crate) broker_port_errors: AtomicU64,
    pub(crate) answers_rewritten: AtomicU64,
    pub(crate) hints_neutralised: AtomicU64,
    pub(crate) record_bytes_passed: AtomicU64,
    pub(crate) record_bytes_touched: AtomicU64,
    pub(crate) unknown_hosts: AtomicU64,
    pub(crate) handshake_failures: AtomicU64,
    pub(crate) authentications: AtomicU64,
    pub(crate) authentication_failures: AtomicU64,
    pub(crate) sasl_sessions_expired: AtomicU64,
    pub(crate) upstream_renewals: AtomicU64,
    pub(crate) sessions_idle: AtomicU64,
    pub(crate) sessions_slow_reader: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) reload_failures: AtomicU64,
    pub(crate) spans_sent: AtomicU64,
    pub(crate) spans_dropped: AtomicU64,
}

/// Adds to a counter that orders nothing else.
#[inline(never)]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

impl Metrics {
    pub(crate) fn side(&self, side: Side) -> &SideMetrics {
        match side {
            Side::Downstream => &self.downstream,
            Side::Upstream => &self.upstream,
        }
    }
}

/// Everything in the OpenMetrics text format.
///
/// # Errors
/// The encoder's own; writing to a string does not fail.
pub(crate) fn open_metrics(
    own: &Arc<Metrics>,
    net: &NetworkHandle,
    clusters: Vec<ClusterReading>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("moldau_proxy");
    let memory = MemoryUse::ALL.map(|of| (of.name(), net.memory().read(of)));
    let net = Arc::clone(net.metrics());
    let reading = Reading { own: Arc::clone(own), net, memory, clusters };
    registry.register_collector(Box::new(reading));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// Reads every counter when the page is asked for.
#[derive(Debug)]
struct Reading {
    own: Arc<Metrics>,
    net: Arc<moldau_net::Metrics>,
    memory: [(&'static str, MemoryReading); MemoryUse::ALL.len()],
    clusters: Vec<ClusterReading>,
}

/// Metrics of one virtual cluster.
#[derive(Debug)]
pub(crate) struct ClusterReading {
    pub(crate) name: String,
    /// What its filters counted.
    pub(crate) filters: Vec<FilterMetric>,
    pub(crate) latencies: Vec<Series>,
    /// Whether the cluster has answered since the start.
    pub(crate) was_reached: bool,
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_requests(&mut encoder)?;
        self.encode_refusals(&mut encoder)?;
        self.encode_memory(&mut encoder)?;
        self.encode_sides(&mut encoder)?;
        self.encode_filters(&mut encoder)?;
        self.encode_latencies(&mut encoder)?;
        self.encode_reached(&mut encoder)?;
        for (name, help, value) in self.counters().into_iter().chain(self.spans()) {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(
                name,
                help,
                None,
                counter.metric_type(),
            )?)?;
        }
        let open = self.net.connections_open.load(Ordering::Relaxed);
        let gauge = ConstGauge::new(i64::try_from(open).unwrap_or(i64::MAX));
        let help = "Open connections of clients";
        gauge.encode(encoder.encode_descriptor(
            "connections_open",
            help,
            None,
            gauge.metric_type(),
        )?)
    }
}

type Reported = (&'static str, &'static str, u64);

impl Reading {
    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0_u64).metric_type();
        let help = "Requests relayed, by API";
        let mut family = encoder.encode_descriptor("requests", help, None, kind)?;
        let [by_api @ .., unknown] = self.own.traffic.read().requests;
        for (key, count) in by_api.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let api = i16::try_from(key).ok().and_then(|key| ApiKey::try_from(key).ok());
            let name = api.map_or_else(|| key.to_string(), |api| api.name().to_owned());
            ConstCounter::new(count).encode(family.encode_family(&[("api", name)])?)?;
        }
        ConstCounter::new(unknown).encode(family.encode_family(&[("api", "unknown")])?)
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

    fn encode_memory(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        type Field = fn(&MemoryReading) -> u64;
        let gauges: [(&str, &str, Field); 3] = [
            ("memory_limit_bytes", "Memory limit of sessions, by use", |it| it.limit as u64),
            ("memory_used_bytes", "Memory held by sessions, by use", |it| it.used as u64),
            ("memory_waiting", "Memory reservations waiting, by use", |it| it.waiting as u64),
        ];
        for (name, help, field) in gauges {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (of, reading) in &self.memory {
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
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (of, reading) in &self.memory {
                let counter = ConstCounter::new(field(reading));
                counter.encode(family.encode_family(&[("use", *of)])?)?;
            }
        }
        Ok(())
    }

    fn encode_sides(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        type Pick = fn(&Bytes<u64>, &SideMetrics) -> u64;
        let families: [(&str, &str, Pick); 4] = [
            ("received_bytes", "Bytes received", |bytes, _| bytes.received),
            ("sent_bytes", "Bytes sent", |bytes, _| bytes.sent),
            ("frames_malformed", "Malformed frames; each ended its session", |_, side| {
                side.frames_malformed.load(Ordering::Relaxed)
            }),
            ("frames_truncated", "Frames cut short by a closed connection", |_, side| {
                side.frames_truncated.load(Ordering::Relaxed)
            }),
        ];
        let counted = self.own.traffic.read();
        let sides = [
            ("downstream", counted.downstream, &self.own.downstream),
            ("upstream", counted.upstream, &self.own.upstream),
        ];
        let kind = ConstCounter::new(0_u64).metric_type();
        for (name, help, pick) in families {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (label, bytes, side) in sides {
                let counter = ConstCounter::new(pick(&bytes, side));
                counter.encode(family.encode_family(&[("side", label)])?)?;
            }
        }
        Ok(())
    }

    /// Filters of one kind in several virtual clusters share their families.
    fn encode_filters(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut families: BTreeMap<&str, Vec<(&str, &FilterMetric)>> = BTreeMap::new();
        for ClusterReading { name, filters, .. } in &self.clusters {
            for metric in filters {
                families.entry(metric.name).or_default().push((name, metric));
            }
        }
        for (name, metrics) in families {
            let help = metrics.first().map_or("", |(_, metric)| metric.help);
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (cluster, metric) in metrics {
                let mut labels = vec![("virtual_cluster", cluster)];
                labels.extend(metric.labels.iter().map(|(name, value)| (*name, value.as_str())));
                ConstCounter::new(metric.value).encode(family.encode_family(&&labels[..])?)?;
            }
        }
        Ok(())
    }

    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Durations of answered requests in seconds, by part";
        let kind = MetricType::Histogram;
        let unit = Some(&Unit::Seconds);
        let mut family = encoder.encode_descriptor("request_duration", help, unit, kind)?;
        for ClusterReading { name, latencies, .. } in &self.clusters {
            for Series { principal, api, part, buckets, sum_seconds, count } in latencies {
                let labels = [
                    ("virtual_cluster", name.as_str()),
                    ("api", api),
                    ("principal", principal),
                    ("part", part.name()),
                ];
                let mut metric = family.encode_family(&labels)?;
                metric.encode_histogram::<NoLabelSet>(*sum_seconds, *count, buckets, None)?;
            }
        }
        Ok(())
    }

    fn encode_reached(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "1 once the cluster has answered, else 0";
        let kind = MetricType::Gauge;
        let mut family = encoder.encode_descriptor("cluster_reached", help, None, kind)?;
        for ClusterReading { name, was_reached, .. } in &self.clusters {
            let labels = [("virtual_cluster", name.as_str())];
            ConstGauge::new(i64::from(*was_reached)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn spans(&self) -> [Reported; 2] {
        let own = &self.own;
        [
            ("spans_sent", "Spans sent to the collector", own.spans_sent.load(Ordering::Relaxed)),
            (
                "spans_dropped",
                "Spans dropped because the queue was full or the collector refused them",
                own.spans_dropped.load(Ordering::Relaxed),
            ),
        ]
    }

    fn counters(&self) -> [Reported; 19] {
        let own = &self.own;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("connections", "Connections accepted", read(&self.net.connections_total)),
            (
                "connections_refused",
                "Connections refused above the connection limit",
                self.net.refused(Refusal::ConnectionLimit),
            ),
            ("upstream_connects", "Connections made to the cluster", read(&own.upstream_connects)),
            (
                "upstream_connect_errors",
                "Failed connection attempts to the cluster",
                read(&own.upstream_connect_errors),
            ),
            (
                "broker_port_errors",
                "Brokers left out of a response because no port was free",
                read(&own.broker_port_errors),
            ),
            ("answers_rewritten", "Responses rewritten", read(&own.answers_rewritten)),
            (
                "hints_neutralised",
                "Leader hints removed from streamed fetch responses",
                read(&own.hints_neutralised),
            ),
            (
                "record_bytes_passed",
                "Bytes of produce requests and fetched records relayed without parsing",
                read(&own.record_bytes_passed),
            ),
            (
                "record_bytes_touched",
                "Bytes of records copied from the receive buffer",
                read(&own.record_bytes_touched),
            ),
            ("unknown_hosts", "Clients that asked for an unknown host", read(&own.unknown_hosts)),
            ("handshake_failures", "Failed TLS handshakes", read(&own.handshake_failures)),
            ("authentications", "Clients authenticated by the proxy", read(&own.authentications)),
            (
                "authentication_failures",
                "Clients refused by the proxy's authentication",
                read(&own.authentication_failures),
            ),
            (
                "sasl_sessions_expired",
                "Sessions ended because the client did not authenticate again",
                read(&own.sasl_sessions_expired),
            ),
            (
                "upstream_renewals",
                "Repeated authentications of the proxy to the cluster",
                read(&own.upstream_renewals),
            ),
            (
                "sessions_idle",
                "Sessions ended because the client was idle",
                read(&own.sessions_idle),
            ),
            (
                "sessions_slow_reader",
                "Sessions ended because the client did not read its responses",
                read(&own.sessions_slow_reader),
            ),
            ("reloads", "Configurations reloaded", read(&own.reloads)),
            ("reload_failures", "Configuration reloads refused", read(&own.reload_failures)),
        ]
    }
}
