//! The latency histograms of a run, in nanoseconds with three significant digits.
//!
//! Four durations are kept apart, because each hides what the next one shows: how late the
//! generator was, how long the target took once it was asked, how long the user of an operation
//! waited since its intended time, and how long a record took to reach its reader. Samples of
//! zero or below (which only clocks can cause) are counted and recorded as 1 ns, never dropped.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Longest distinct duration: samples above it are recorded as this, one hour.
const NANOS_MAX: u64 = 3_600_000_000_000;

const SIGNIFICANT_DIGITS: u8 = 3;

/// Bytes of a deflated histogram ahead of the stream, and of an inflated one ahead of its counts.
const DEFLATED_HEADER_BYTES: usize = 8;
const INFLATED_HEADER_BYTES: usize = 40;

/// Largest histogram: ten times one with a count for each value up to an hour.
const INFLATED_BYTES_MAX: u64 = 4 << 20;

/// How far neighbouring values of a histogram may lie apart, as a share: smaller differences of
/// durations are none.
pub const RESOLUTION: f64 = 1e-3;

/// Durations of one kind.
#[derive(Clone, Debug)]
pub struct Durations {
    histogram: Histogram<u64>,
    not_positive: u64,
}

impl Default for Durations {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, NANOS_MAX, SIGNIFICANT_DIGITS)
            .expect("the bounds and the precision are constants that the histogram accepts");
        Self { histogram, not_positive: 0 }
    }
}

impl Durations {
    /// Records the time from `from_ns` to `to_ns`, `count` times.
    pub fn record(&mut self, from_ns: u64, to_ns: u64, count: u64) {
        let nanos = to_ns.saturating_sub(from_ns);
        if nanos == 0 {
            self.not_positive += count;
        }
        self.histogram.saturating_record_n(nanos.max(1), count);
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.not_positive += other.not_positive;
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The duration in ns that a share `quantile` of the samples does not exceed.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile)
    }

    /// The mean duration in ns; 0 without samples.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }

    /// The figures that tables show.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count(),
            not_positive: self.not_positive,
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p999_ns: self.quantile_ns(0.999),
            max_ns: self.histogram.max(),
        }
    }

    /// The document form: HdrHistogram's V2 format, deflated, as base64.
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn to_record(&self) -> Result<HistogramRecord, Error> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .map_err(|error| Error::Document(error.to_string()))?;
        Ok(HistogramRecord { summary: self.summary(), hdr_v2_deflate: BASE64.encode(bytes) })
    }
}

/// The usual figures of a histogram. All are 0 where there was no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Samples.
    pub count: u64,
    /// Samples of zero or less, recorded as 1 ns.
    pub not_positive: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p999_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// A histogram as the result document holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramRecord {
    /// The usual figures.
    pub summary: Summary,
    /// Every count, readable by any HdrHistogram library.
    pub hdr_v2_deflate: String,
}

impl HistogramRecord {
    /// The histogram behind the record.
    ///
    /// # Errors
    /// [`Error::Document`] when the text is not what [`Durations::to_record`] writes.
    pub fn durations(&self) -> Result<Durations, Error> {
        let bytes = BASE64
            .decode(&self.hdr_v2_deflate)
            .map_err(|error| Error::Document(format!("histogram: {error}")))?;
        let bytes =
            inflated(&bytes).map_err(|error| Error::Document(format!("histogram: {error}")))?;
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| Error::Document(format!("histogram: {error}")))?;
        let mut durations =
            Durations { not_positive: self.summary.not_positive, ..Durations::default() };
        durations
            .histogram
            .add(read)
            .map_err(|error| Error::Document(format!("histogram: {error}")))?;
        Ok(durations)
    }
}

/// The histogram in its deflated form, which has a cookie and its own length ahead of it. It states
/// the length of its counts, and readers allocate that much, so the stated length must be the real
/// one.
fn inflated(deflated: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let deflated = deflated.get(DEFLATED_HEADER_BYTES..).unwrap_or_default();
    ZlibDecoder::new(deflated).take(INFLATED_BYTES_MAX).read_to_end(&mut bytes)?;
    let counts_bytes =
        bytes.get(4..8).and_then(|field| Some(u32::from_be_bytes(*field.first_chunk()?)));
    let counts_bytes = counts_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    if counts_bytes != bytes.len().checked_sub(INFLATED_HEADER_BYTES) {
        return Err(std::io::Error::other("it is not as long as it says"));
    }
    Ok(bytes)
}

/// The four durations of a run.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Intended time to the moment the generator took the operation up.
    pub lag: Durations,
    /// Hand-over to the target until its acknowledgement.
    pub service: Durations,
    /// Intended time to acknowledgement.
    pub response: Durations,
    /// Intended time to delivery at the consumer.
    pub end_to_end: Durations,
}

impl Latencies {
    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.lag.merge(&other.lag);
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.end_to_end.merge(&other.end_to_end);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn uniform(count: u64, step_ns: u64) -> Durations {
        let mut durations = Durations::default();
        for n in 1..=count {
            durations.record(0, n * step_ns, 1);
        }
        durations
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let summary = uniform(10_000, 1_000).summary();
        let near = |found: u64, exact: u64| found.abs_diff(exact) * 1_000 <= exact;
        assert!(near(summary.p50_ns, 5_000_000), "{summary:?}");
        assert!(near(summary.p99_ns, 9_900_000), "{summary:?}");
        assert!(near(summary.p999_ns, 9_990_000), "{summary:?}");
        assert!(near(summary.max_ns, 10_000_000), "{summary:?}");
    }

    #[test]
    fn merging_equals_recording_together() {
        let mut merged = uniform(100, 7);
        merged.merge(&uniform(50, 900));
        let mut together = uniform(100, 7);
        for n in 1..=50 {
            together.record(0, n * 900, 1);
        }
        assert_eq!(merged.summary(), together.summary());
        assert_eq!(merged.quantile_ns(0.77), together.quantile_ns(0.77));
    }

    #[test]
    fn a_histogram_with_an_overstated_length_is_refused() {
        let record = uniform(100, 7).to_record().unwrap();
        assert_eq!(record.durations().unwrap().count(), 100);
        let whole = inflated(&BASE64.decode(&record.hdr_v2_deflate).unwrap()).unwrap();
        let claiming = |counts_bytes: u32| {
            let mut bytes = whole.clone();
            bytes[4..8].copy_from_slice(&counts_bytes.to_be_bytes());
            let mut stream =
                ZlibEncoder::new(vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0], Compression::fast());
            stream.write_all(&bytes).unwrap();
            let hdr_v2_deflate = BASE64.encode(stream.finish().unwrap());
            HistogramRecord { hdr_v2_deflate, ..record.clone() }.durations()
        };
        let right = u32::try_from(whole.len() - INFLATED_HEADER_BYTES).unwrap();
        assert_eq!(claiming(right).unwrap().summary(), record.summary);
        for wrong in [0, right - 1, right + 1, u32::MAX] {
            assert!(matches!(claiming(wrong), Err(Error::Document(_))), "{wrong}");
        }
        let empty = HistogramRecord { hdr_v2_deflate: String::new(), ..record };
        assert!(matches!(empty.durations(), Err(Error::Document(_))));
    }

    #[test]
    fn zero_and_negative_samples_are_counted() {
        let mut durations = Durations::default();
        durations.record(5, 5, 2);
        durations.record(9, 5, 1);
        durations.record(0, 10, 1);
        let summary = durations.summary();
        assert_eq!((summary.count, summary.not_positive), (4, 3));
    }

    #[test]
    fn a_record_gives_the_histogram_back() {
        let mut durations = uniform(5_000, 333);
        durations.record(9, 1, 4);
        let record = durations.to_record().unwrap();
        let back = record.durations().unwrap();
        assert_eq!(back.summary(), durations.summary());
        assert_eq!(back.quantile_ns(0.123), durations.quantile_ns(0.123));
    }

    #[test]
    fn damaged_text_is_refused() {
        let mut record = uniform(10, 5).to_record().unwrap();
        record.hdr_v2_deflate.truncate(9);
        assert!(matches!(record.durations(), Err(Error::Document(_))));
        record.hdr_v2_deflate = "!".into();
        assert!(matches!(record.durations(), Err(Error::Document(_))));
    }
}
