//! Metrics without labels, as the admin port encodes them.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Name, help and value of a metric.
pub(crate) type Reported<T> = (&'static str, &'static str, T);

pub(crate) fn encode_counters(
    encoder: &mut DescriptorEncoder<'_>,
    counters: &[Reported<u64>],
) -> Result<(), fmt::Error> {
    for (name, help, value) in counters {
        let counter = ConstCounter::new(*value);
        let kind = counter.metric_type();
        counter.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
    }
    Ok(())
}

pub(crate) fn encode_gauges(
    encoder: &mut DescriptorEncoder<'_>,
    gauges: &[Reported<i64>],
) -> Result<(), fmt::Error> {
    for (name, help, value) in gauges {
        let gauge = ConstGauge::new(*value);
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
    }
    Ok(())
}
