//! Differences between two systems, with intervals that hold for a handful of runs.
//!
//! The replicate is the run, never a window inside one: windows of a run share its luck and make
//! nearly every comparison look significant. Runs come in pairs that stand next to each other in
//! time, and each pair gives one difference. The interval of their mean is a percentile bootstrap
//! with the two remedies for small samples of Hesterberg (2015, "What Teachers Should Know About
//! the Bootstrap"): resampled values are smoothed by noise of variance `s^2 / n`, which restores
//! the variance that resampling loses, and the percentiles are those that Student's t implies.
//! The plain percentile bootstrap of five pairs misses the truth three times as often as it says.
//! Three or four values make so few sums that no resample lies where these percentiles are: their
//! interval reaches at least as far as Student's own.

mod distributions;
pub mod least_squares;
pub mod slope;
mod unpaired;

use serde::{Deserialize, Serialize};

pub use distributions::{normal_cdf, student_t_quantile};
pub use unpaired::{UnpairedEffect, unpaired_effect};

/// Fewest pairs that give an interval.
pub const PAIRS_MIN: usize = 3;

/// Resamples of the bootstrap: the widened percentiles of five pairs lie near 0.003, which leaves
/// 30 resamples beyond them.
const RESAMPLES: usize = 10_000;

/// Fewest values whose widened percentiles lie where resamples do.
const RESAMPLED_MIN: usize = 5;

/// Power at which the minimum detectable effect is stated.
const POWER: f64 = 0.8;

/// A count, a time in ns or a size as a figure.
#[expect(clippy::cast_precision_loss, reason = "figures of a measurement stay below 2^53")]
pub fn float(value: u64) -> f64 {
    value as f64
}

/// The middle value; the mean of the two middle ones for an even count, 0 for none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        at(half)
    } else {
        f64::midpoint(at(half.saturating_sub(1)), at(half))
    }
}

/// A range of plausible values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the interval lies wholly above or below `value`.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    /// Whether the whole interval lies within `bound` of 0: with a 90 % interval this is the
    /// two one-sided tests of equivalence at 5 %.
    #[must_use]
    pub fn is_within(&self, bound: f64) -> bool {
        -bound < self.low && self.high < bound
    }

    /// This interval of the mean of so many `values`, or where these are too few for resamples the
    /// hull of it and of Student's, which is all within `reach` of the mean.
    fn or_students(self, values: usize, mean: f64, reach: f64) -> Self {
        if values >= RESAMPLED_MIN {
            return self;
        }
        Self { low: self.low.min(mean - reach), high: self.high.max(mean + reach) }
    }
}

/// The 95 % interval of resampled values, its percentiles those that Student's t with so many
/// `degrees` of freedom implies; 0 to 0 for none.
#[must_use]
pub fn interval_of(mut values: Vec<f64>, degrees: f64) -> Interval {
    let tail = normal_cdf(-student_t_quantile(0.975, degrees));
    values.sort_by(f64::total_cmp);
    Interval { low: sorted_quantile(&values, tail), high: sorted_quantile(&values, 1.0 - tail) }
}

/// The mean of paired differences and what can be said about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedEffect {
    /// Pairs.
    pub pairs: usize,
    /// Mean of the differences.
    pub mean: f64,
    /// Interval of the mean at 95 %.
    pub interval_95: Interval,
    /// Interval of the mean at 90 %, for statements of equivalence.
    pub interval_90: Interval,
    /// The smallest true effect that as many pairs of this spread show with a probability of 80 %.
    pub detectable: f64,
}

impl PairedEffect {
    /// Whether the data speak of a difference at all.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.interval_95.excludes(0.0)
    }

    /// The smallest bound within which the two systems are equivalent at the 5 % level.
    #[must_use]
    pub fn equivalence_bound(&self) -> f64 {
        self.interval_90.low.abs().max(self.interval_90.high.abs())
    }

    /// What is to be said of a ratio, of whose logarithm this is the effect.
    #[must_use]
    pub fn likeness(&self) -> Likeness {
        let is_within = |percent: &u32| {
            let bound = (f64::from(*percent) / 100.0).ln_1p();
            self.interval_90.is_within(bound)
        };
        match MARGINS_PERCENT.into_iter().find(is_within) {
            Some(percent) => Likeness::Equivalent { percent },
            None if self.is_different() => Likeness::Different,
            None => Likeness::Open { detectable_percent: self.detectable.exp_m1() * 100.0 },
        }
    }
}

/// How alike two systems are in a figure, as a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Likeness {
    /// Equivalent at the 5 % level within a margin of so many percent, the smallest of those that
    /// are stated. A difference may be shown as well, and is smaller than that.
    Equivalent {
        /// The margin.
        percent: u32,
    },
    /// A difference is shown that may be larger than all margins.
    Different,
    /// Neither is shown.
    Open {
        /// The smallest true difference that as many pairs show with a probability of 80 %.
        detectable_percent: f64,
    },
}

/// Margins within which equivalence is stated, percent: what hardly anybody would change a system
/// for, and what few would.
pub const MARGINS_PERCENT: [u32; 2] = [5, 10];

/// The effect behind paired `differences`, or `None` with fewer than [`PAIRS_MIN`] of them or
/// values that are not finite.
#[must_use]
pub fn paired_effect(differences: &[f64], seed: u64) -> Option<PairedEffect> {
    resampled_effect(differences, seed, RESAMPLES)
}

fn resampled_effect(differences: &[f64], seed: u64, resamples: usize) -> Option<PairedEffect> {
    if differences.len() < PAIRS_MIN || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let means = resampled_means(differences, seed, resamples);
    let n = count(differences.len());
    let (middle, error) = (mean(differences), standard_deviation(differences) / n.sqrt());
    let interval = |confidence: f64| {
        let t = student_t_quantile(f64::midpoint(1.0, confidence), n - 1.0);
        let tail = normal_cdf(-t);
        let [low, high] = [tail, 1.0 - tail].map(|tail| sorted_quantile(&means, tail));
        Interval { low, high }.or_students(differences.len(), middle, t * error)
    };
    let t_sum = student_t_quantile(0.975, n - 1.0) + student_t_quantile(POWER, n - 1.0);
    Some(PairedEffect {
        pairs: differences.len(),
        mean: middle,
        interval_95: interval(0.95),
        interval_90: interval(0.90),
        detectable: t_sum * error,
    })
}

/// The differences `second - first` of the pairs.
#[must_use]
pub fn differences(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(first, second)| second - first).collect()
}

/// The natural logarithms of `second / first`: an effect on them is a ratio.
#[must_use]
pub fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(first, second)| (second / first).ln()).collect()
}

fn resampled_means(values: &[f64], seed: u64, resamples: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let n = count(values.len());
    // The mean of n independent noises of variance s^2 / n is one noise of variance (s / n)^2.
    let noise_of_mean = standard_deviation(values) / n;
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let sum: f64 =
                values.iter().map(|_| random.choice(values).copied().unwrap_or(0.0)).sum();
            sum / n + noise_of_mean * standard_normal(&mut random)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

/// Box and Muller's transformation of two uniform values.
pub fn standard_normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// The value at `quantile` of sorted values, interpolated.
fn sorted_quantile(sorted: &[f64], quantile: f64) -> f64 {
    let at = quantile.clamp(0.0, 1.0) * (count(sorted.len()) - 1.0).max(0.0);
    let below = index(at.floor());
    let low = sorted.get(below).copied().unwrap_or(0.0);
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * at.fract()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

/// Sample standard deviation; NaN of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count(values.len()) - 1.0)).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "a number of runs or resamples")]
fn count(length: usize) -> f64 {
    length as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position in a slice, at least 0; beyond the end the slice gives none"
)]
fn index(at: f64) -> usize {
    at as usize
}

#[cfg(test)]
mod tests;
