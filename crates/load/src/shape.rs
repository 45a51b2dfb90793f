//! How the records of a load differ: in size, in key, and in what they take from a file of the
//! user.
//!
//! Everything follows from the seed of the run, the producer and the number of the record, so that
//! what is slow or refused changes nothing of what comes after it.

mod draw;
mod files;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use moldau_measure::Error;
use moldau_measure::statistics::{float, normal_cdf};

pub use draw::{Body, Choice, Choices, Dealer, key_text};
pub use files::{Corpus, FILE_BYTES_MAX, Trace};

/// Largest record where sizes differ: what Kafka takes by default, less room for the batch.
pub const SHAPED_BYTES_MAX: usize = 1_000_000;

/// Most keys: so many have eight digits, and drawing one stays in a processor's cache.
pub const KEYS_MAX: u32 = 1 << 20;

/// Widest spread of sizes: one in six is more than 148 times the median, and beyond it these few
/// digits do not determine the mean.
const SIGMA_MAX: f64 = 5.0;

/// Most sizes of a table.
const SIZES_MAX: usize = 1_024;

/// How the records of a load differ. By default they have one size and no keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shape {
    /// Their sizes. The mean is `record_bytes` of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Their keys, which decide their partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
    /// The file that their values are made of, in place of seeded content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusUse>,
    /// The file that says when they are due, and perhaps how large they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceUse>,
}

/// How large records are: bytes of a value, payload header included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// Every size from `min` to `max` as often as any other.
    Uniform {
        /// The smallest.
        min: usize,
        /// The largest.
        max: usize,
    },
    /// The logarithm is normally distributed, as sizes of messages and files often are; what is
    /// above `max` or below the header counts as that.
    Lognormal {
        /// Half are smaller.
        median: usize,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// The largest.
        max: usize,
    },
    /// Each of a few sizes with its weight.
    Table(Vec<SizeShare>),
}

/// A size and how often it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// The size.
    pub bytes: usize,
    /// How often it comes, in relation to the weights of the others.
    pub weight: u32,
}

/// Which keys records have: text of eight digits, from `00000000` on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Keys {
    /// One after the other; producers begin at different ones.
    RoundRobin {
        /// How many there are.
        count: u32,
    },
    /// Each as often as any other.
    Uniform {
        /// How many there are.
        count: u32,
    },
    /// The n-th in proportion to `1 / n^exponent`.
    Zipf {
        /// How many there are.
        count: u32,
        /// 0 is uniform; words of a language have about 1.
        exponent: f64,
    },
}

/// A file that values are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusUse {
    /// Its path, as given.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Its CRC32C.
    pub crc32c: u32,
    /// Whether each line is a value; otherwise values are cut from the file one after the other.
    pub lines: bool,
    /// What it holds; empty where a result is read.
    #[serde(skip)]
    pub content: Arc<Corpus>,
}

/// A file that says when records are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceUse {
    /// Its path, as given.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Its CRC32C.
    pub crc32c: u32,
    /// How many times faster than in the file its instants come.
    pub speed: f64,
    /// What it holds; empty where a result is read.
    #[serde(skip)]
    pub content: Arc<Trace>,
}

impl Shape {
    /// Whether records differ in anything but their content.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let has_lines = self.corpus.as_ref().is_some_and(|corpus| corpus.lines);
        let has_sizes = self.trace.as_ref().is_some_and(|trace| trace.content.has_sizes());
        self.sizes.is_none() && self.keys.is_none() && !has_lines && !has_sizes
    }

    /// The mean size of a record, where this decides it; `bytes_min` is that of one without
    /// filler.
    #[must_use]
    pub fn record_bytes(&self, bytes_min: usize) -> Option<usize> {
        let lines = self.corpus.as_ref().filter(|corpus| corpus.lines);
        let of_lines = lines.map(|it| float(bytes_min as u64) + it.content.line_bytes_mean());
        let of_trace = self.trace.as_ref().and_then(|it| it.content.bytes_mean(bytes_min));
        let of_sizes = self.sizes.as_ref().map(|sizes| sizes.mean(bytes_min));
        of_lines.or(of_trace).or(of_sizes).map(whole)
    }

    /// The largest record, where this decides it.
    #[must_use]
    pub fn record_bytes_max(&self, bytes_min: usize) -> Option<usize> {
        let lines = self.corpus.as_ref().filter(|corpus| corpus.lines);
        let of_lines = lines.map(|it| bytes_min + it.content.line_bytes_max());
        let of_trace = self.trace.as_ref().and_then(|it| it.content.bytes_max());
        let of_sizes = self.sizes.as_ref().map(Sizes::max);
        of_lines.or(of_trace).or(of_sizes)
    }

    /// Refuses what cannot be drawn.
    ///
    /// # Errors
    /// [`Error::Plan`] and [`Error::RecordTooSmall`].
    pub fn check(&self, bytes_min: usize) -> Result<(), Error> {
        if let Some(sizes) = &self.sizes {
            sizes.check(bytes_min)?;
        }
        if let Some(keys) = self.keys {
            keys.check()?;
        }
        if let Some(CorpusUse { file, content, .. }) = &self.corpus
            && content.is_empty()
        {
            return refuse(format!("{file}: is empty, or was not read"));
        }
        if let Some(TraceUse { file, content, speed, .. }) = &self.trace {
            if content.instants_ns().is_empty() {
                return refuse(format!("{file}: has no instants, or was not read"));
            }
            if !(speed.is_finite() && *speed > 0.0) {
                return refuse(format!("{file}: speed is above 0"));
            }
        }
        let lines = self.corpus.as_ref().is_some_and(|corpus| corpus.lines);
        let traced = self.trace.as_ref().is_some_and(|trace| trace.content.has_sizes());
        if usize::from(lines) + usize::from(traced) + usize::from(self.sizes.is_some()) > 1 {
            return refuse(
                "record_sizes, the lines of a file and the bytes of a trace each say how large \
                 records are; only one of them can",
            );
        }
        match self.record_bytes_max(bytes_min) {
            Some(bytes) if bytes > SHAPED_BYTES_MAX => {
                refuse(format!("a record of {bytes} bytes is above {SHAPED_BYTES_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

impl TraceUse {
    /// Records per second from the first instant to the last.
    #[must_use]
    pub fn per_second(&self) -> u64 {
        let records = float(self.content.instants_ns().len() as u64);
        let span = float(self.span_ns().max(1)) / 1e9;
        whole(records / span).max(1) as u64
    }

    /// From the first instant to the last at its speed, ns.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        Trace::scaled(self.content.span_ns(), self.speed)
    }
}

impl Sizes {
    fn check(&self, bytes_min: usize) -> Result<(), Error> {
        let least = match self {
            Self::Uniform { min, .. } => Some(*min),
            Self::Lognormal { median, .. } => Some(*median),
            Self::Table(shares) => shares.iter().map(|share| share.bytes).min(),
        };
        if let Some(bytes) = least.filter(|bytes| *bytes < bytes_min) {
            return Err(Error::RecordTooSmall { bytes, bytes_min });
        }
        match self {
            Self::Uniform { min, max } if min > max => {
                refuse(format!("record_sizes.uniform: {min} is above {max}"))
            }
            Self::Lognormal { median, sigma, max } => {
                if median > max {
                    return refuse(format!("record_sizes.lognormal: {median} is above {max}"));
                }
                if !(*sigma > 0.0 && *sigma <= SIGMA_MAX) {
                    return refuse(format!("record_sizes.lognormal.sigma: 0 to {SIGMA_MAX}"));
                }
                Ok(())
            }
            Self::Table(shares) => {
                if !(1..=SIZES_MAX).contains(&shares.len()) {
                    return refuse(format!("record_sizes.table: 1 to {SIZES_MAX} sizes"));
                }
                if shares.iter().all(|share| share.weight == 0) {
                    return refuse("record_sizes.table: a weight above 0");
                }
                Ok(())
            }
            Self::Uniform { .. } => Ok(()),
        }
    }

    fn max(&self) -> usize {
        match self {
            Self::Uniform { max, .. } | Self::Lognormal { max, .. } => *max,
            Self::Table(shares) => shares.iter().map(|share| share.bytes).max().unwrap_or(0),
        }
    }

    fn mean(&self, bytes_min: usize) -> f64 {
        match self {
            Self::Uniform { min, max } => f64::midpoint(float(*min as u64), float(*max as u64)),
            Self::Lognormal { median, sigma, max } => {
                let [low, median, high] = [bytes_min, *median, *max].map(|it| float(it as u64));
                lognormal_mean(median, *sigma, low, high)
            }
            Self::Table(shares) => {
                let weights: f64 = shares.iter().map(|share| f64::from(share.weight)).sum();
                let weighed = |it: &SizeShare| float(it.bytes as u64) * f64::from(it.weight);
                shares.iter().map(weighed).sum::<f64>() / weights.max(1.0)
            }
        }
    }
}

impl Keys {
    /// How many there are.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::RoundRobin { count } | Self::Uniform { count } | Self::Zipf { count, .. } => {
                count
            }
        }
    }

    fn check(self) -> Result<(), Error> {
        if !(1..=KEYS_MAX).contains(&self.count()) {
            return refuse(format!("keys.count: 1 to {KEYS_MAX}"));
        }
        match self {
            Self::Zipf { exponent, .. } if !(exponent.is_finite() && exponent >= 0.0) => {
                refuse("keys.zipf.exponent: 0 or above")
            }
            _ => Ok(()),
        }
    }
}

/// The mean of a lognormal value that counts as `low` below it and as `high` above it.
fn lognormal_mean(median: f64, sigma: f64, low: f64, high: f64) -> f64 {
    let [from, to] = [low, high].map(|end| (end / median).ln() / sigma);
    let between = normal_cdf(to - sigma) - normal_cdf(from - sigma);
    let inside = median * (sigma * sigma / 2.0).exp() * between;
    low * normal_cdf(from) + inside + high * normal_cdf(-to)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size below SHAPED_BYTES_MAX; the cast saturates"
)]
fn whole(bytes: f64) -> usize {
    bytes.round() as usize
}

fn refuse(text: impl Into<String>) -> Result<(), Error> {
    Err(Error::Plan(text.into()))
}

#[cfg(test)]
mod tests;
