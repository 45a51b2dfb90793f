//! The figures of an app in the OpenMetrics text format; `docs/consumer.md` lists them.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::figures::Sampled;
use crate::status::{PartitionStatus, RouteStatus, Status};

/// What is reported.
#[derive(Clone)]
pub(super) struct Reading {
    pub(super) status: Status,
    /// The samples of each route.
    pub(super) sampled: Vec<Sampled>,
    pub(super) is_member: bool,
    pub(super) heartbeat_age: Option<Duration>,
}

/// Everything as text.
///
/// # Errors
/// The encoder's own; writing to a string does not fail.
pub(super) fn open_metrics(reading: Reading) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("moldau_consumer");
    registry.register_collector(Box::new(reading));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reading")
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_app(&mut encoder)?;
        self.encode_routes(&mut encoder)?;
        self.encode_share(&mut encoder)?;
        self.encode_handlers(&mut encoder)?;
        self.encode_partitions(&mut encoder)?;
        self.encode_paused(&mut encoder)
    }
}

/// Name, help, and how it is read.
type Reported<Of, T> = (&'static str, &'static str, fn(&Of) -> T);

impl Reading {
    fn encode_app(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let partitions = self.partitions().count();
        let mut gauges = vec![
            (
                "member",
                "1 while the app is a member of its group, else 0",
                i64::from(self.is_member),
            ),
            ("partitions", "Partitions that the app reads", whole(partitions)),
        ];
        if let Some(age) = self.heartbeat_age {
            let help = "Milliseconds since the coordinator last accepted a heartbeat";
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            gauges.push(("heartbeat_age_milliseconds", help, age));
        }
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }

    fn encode_routes(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0_u64).metric_type();
        let counters: [Reported<RouteStatus, u64>; 2] = [
            ("handled_records", "Records that are done, by topic of the route", |it| it.handled),
            ("dead_letters", "Records sent to a topic of dead letters", |it| it.dead_letters),
        ];
        for (name, help, of) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for route in &self.status.routes {
                let labels = [("topic", route.topic.as_str())];
                ConstCounter::new(of(route)).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Failed attempts, by kind of failure";
        let mut family = encoder.encode_descriptor("failures", help, None, kind)?;
        for route in &self.status.routes {
            for (kind, count) in &route.failed {
                let labels = [("topic", route.topic.as_str()), ("kind", kind)];
                ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// Records of share groups; nothing in an app without one.
    fn encode_share(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let routes = self.status.routes.iter();
        let shared: Vec<_> = routes.filter_map(|it| Some((&*it.topic, it.share?))).collect();
        if shared.is_empty() {
            return Ok(());
        }
        let help = "Records that are locked for this member of the share group";
        let kind = ConstGauge::new(0_i64).metric_type();
        let mut family = encoder.encode_descriptor("share_held_records", help, None, kind)?;
        for (topic, share) in &shared {
            let held = i64::try_from(share.held).unwrap_or(i64::MAX);
            ConstGauge::new(held).encode(family.encode_family(&[("topic", *topic)])?)?;
        }
        let help = "Records of the share group, by what became of them";
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut family = encoder.encode_descriptor("share_records", help, None, kind)?;
        for (topic, share) in shared {
            let outcomes = [
                ("accepted", share.accepted),
                ("released", share.released),
                ("rejected", share.rejected),
                ("lost", share.lost),
            ];
            for (outcome, count) in outcomes {
                let labels = [("topic", topic), ("outcome", outcome)];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// Samples of calls of handlers.
    fn encode_handlers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let routes = || self.status.routes.iter().map(|it| &*it.topic).zip(&self.sampled);
        let help = "Durations of sampled calls of the handler in seconds";
        let unit = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("handler_duration", help, unit, MetricType::Histogram)?;
        for (topic, sampled) in routes() {
            histogram(family.encode_family(&[("topic", topic)])?, sampled)?;
        }
        let kind = ConstCounter::new(0_u64).metric_type();
        let counters: [Reported<Sampled, u64>; 2] = [
            ("sampled_cpu_nanoseconds", "CPU time of sampled calls of the handler", |it| {
                u64::try_from(it.cpu.as_nanos()).unwrap_or(u64::MAX)
            }),
            ("sampled_records", "Records of sampled calls of the handler", |it| it.records),
        ];
        for (name, help, of) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (topic, sampled) in routes() {
                let labels = [("topic", topic)];
                ConstCounter::new(of(sampled)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_partitions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauges: [Reported<PartitionStatus, Option<i64>>; 8] = [
            ("lag_records", "Records that are not done", |it| it.lag),
            ("done_offset", "First offset that is not done", |it| it.done_to),
            ("position_offset", "Offset after the last record queued", |it| it.position),
            ("queued_records", "Records that wait for their handler or are handled", |it| {
                Some(whole(it.queued_records))
            }),
            ("queued_bytes", "Their bytes", |it| Some(whole(it.queued_bytes))),
            ("running", "Records or batches that are handled", |it| Some(whole(it.running))),
            ("retrying_records", "Failed records that wait for their next attempt", |it| {
                Some(whole(it.retrying))
            }),
            ("delayed_records", "Records that a layer lets wait", |it| Some(whole(it.delayed))),
        ];
        let kind = ConstGauge::new(0_i64).metric_type();
        for (name, help, of) in gauges {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for partition in self.partitions() {
                let Some(value) = of(partition) else { continue };
                let number = partition.partition.to_string();
                let labels = [("topic", partition.topic.as_str()), ("partition", &number)];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_paused(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstGauge::new(0_i64).metric_type();
        let help = "1 for a partition that is not read on, by cause";
        let mut family = encoder.encode_descriptor("paused", help, None, kind)?;
        for partition in self.partitions() {
            let Some(paused) = partition.paused else { continue };
            let number = partition.partition.to_string();
            let labels = [
                ("topic", partition.topic.as_str()),
                ("partition", &number),
                ("cause", paused.name()),
            ];
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn partitions(&self) -> impl Iterator<Item = &PartitionStatus> {
        self.status.routes.iter().flat_map(|route| &route.partitions)
    }
}

fn histogram(mut metric: MetricEncoder<'_>, sampled: &Sampled) -> Result<(), fmt::Error> {
    let bounds = BUCKETS_MICROS.map(|bound| Duration::from_micros(bound).as_secs_f64());
    let mut buckets: Vec<(f64, u64)> = bounds.into_iter().map(|bound| (bound, 0)).collect();
    buckets.push((f64::INFINITY, 0));
    for value in sampled.micros.iter_recorded() {
        let bucket = BUCKETS_MICROS.partition_point(|bound| *bound < value.value_iterated_to());
        if let Some((_, count)) = buckets.get_mut(bucket) {
            *count += value.count_since_last_iteration();
        }
    }
    let count = sampled.micros.len();
    metric.encode_histogram::<NoLabelSet>(sampled.total.as_secs_f64(), count, &buckets, None)
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Bounds of the histogram: from a handler that computes a little to one that waits for another
/// service that is slow.
const BUCKETS_MICROS: [u64; 12] = [
    10, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 30_000_000,
];
