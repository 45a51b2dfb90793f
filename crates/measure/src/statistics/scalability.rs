//! The universal scalability law: what each further producer, connection or thread still adds.
//!
//! Gunther ("Guerrilla Capacity Planning", 2007, chapter 5) describes throughput by concurrency as
//! `X(N) = rate * N / (1 + contention * (N - 1) + coherence * N * (N - 1))`. Contention is the
//! share of the work that only one can do at a time, and bends the curve towards a plateau;
//! coherence is what each pair costs, and bends it down again behind a peak.
//!
//! Read as `N / X`, the law is linear in three coefficients that are not negative, so no starting
//! values and no iteration are needed. Errors count in relation to what was measured: otherwise
//! only the highest throughput would be looked at. Intervals resample the relative errors of the
//! fit, so that they tell of noise as well as of a law that does not hold. What the fit leaves of
//! the errors of four points says next to nothing of them, so that points may come with errors of
//! their own: these are resampled then, widened by as much as the law misses the points by more
//! (Birge 1932, "The calculation of errors by the method of least squares").

use serde::{Deserialize, Serialize};

use super::least_squares::NormalEquations;
use super::{
    Interval, NORMAL_975, count, median, middle_of, normal_cdf, standard_normal, student_t_quantile,
};

/// Fewest concurrencies that tell the three coefficients apart.
pub const LEVELS_MIN: usize = 3;

/// Resamples of the bootstrap: 50 lie beyond each end of an interval.
const RESAMPLES: usize = 2_000;

/// Coefficients of the law.
const COEFFICIENTS: usize = 3;

/// Below this share a coefficient is an error of the arithmetic.
const SHOWN_MIN: f64 = 1e-9;

/// What one run gave at one concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Producers, connections or threads at once, at least 1.
    pub concurrency: u32,
    /// Throughput of all of them together, in any unit.
    pub throughput: f64,
    /// How uncertain that is, as the standard deviation of its logarithm, where that is known.
    pub error: Option<f64>,
}

impl Point {
    /// One of several whose distances from the law tell how uncertain they are.
    #[must_use]
    pub fn measured(concurrency: u32, throughput: f64) -> Self {
        Self { concurrency, throughput, error: None }
    }
}

/// The law that runs follow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scalability {
    /// Throughput of one alone, in the unit of the points.
    pub rate: Coefficient,
    /// Share of the work that only one does at a time.
    pub contention: Coefficient,
    /// Share of the work of one that each pair costs.
    pub coherence: Coefficient,
    /// Median distance of the points from the law, as a share of it.
    pub error: f64,
}

/// One coefficient of the law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// The value that fits best, never negative.
    pub value: f64,
    /// Its interval at 95 %.
    pub interval_95: Interval,
}

impl Coefficient {
    /// Whether its whole interval lies above nothing.
    fn is_shown(&self) -> bool {
        self.interval_95.low > SHOWN_MIN
    }
}

impl Scalability {
    /// The law behind `points`, which may hold several runs of one concurrency. `None` with fewer
    /// than [`LEVELS_MIN`] concurrencies, no more points than coefficients (and where nobody knows
    /// how far they are off, fewer than three more), or values that are not positive.
    #[must_use]
    pub fn fit(points: &[Point], seed: u64) -> Option<Self> {
        let is_sound = |point: &Point| point.throughput.is_finite() && point.throughput > 0.0;
        let mut levels: Vec<u32> = points.iter().map(|point| point.concurrency).collect();
        levels.sort_unstable();
        levels.dedup();
        let is_enough = levels.len() >= LEVELS_MIN && points.len() > COEFFICIENTS;
        if !is_enough || levels.first() == Some(&0) || !points.iter().all(is_sound) {
            return None;
        }
        let law = Law::fit(points)?;
        let freedom = count(points.len() - COEFFICIENTS);
        let errors: Option<Vec<f64>> = points.iter().map(|point| point.error).collect();
        if errors.is_none() && freedom < FREEDOM_MIN {
            return None;
        }
        let draws = match &errors {
            Some(errors) => law.redrawn(points, errors, seed),
            None => law.resampled(points, seed),
        };
        // Errors that are known need no Student, and those that are not have had theirs.
        let tail = match &errors {
            Some(_) => 0.025,
            None => normal_cdf(-student_t_quantile(0.975, freedom)),
        };
        let coefficient = |of: fn(&Law) -> f64| Coefficient {
            value: of(&law),
            interval_95: middle_of(draws.iter().map(of).collect(), tail),
        };
        let errors: Vec<f64> = law.errors(points).map(f64::abs).collect();
        Some(Self {
            rate: coefficient(|law| law.rate),
            contention: coefficient(|law| law.contention),
            coherence: coefficient(|law| law.coherence),
            error: median(&errors),
        })
    }

    /// Throughput at a concurrency.
    #[must_use]
    pub fn throughput(&self, concurrency: f64) -> f64 {
        self.law().throughput(concurrency)
    }

    /// The concurrency beyond which throughput falls; `None` where no coherence is shown, by its
    /// whole interval, so that it may never fall.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        let (contention, coherence) = (self.contention.value, self.coherence.value);
        let peak = || ((1.0 - contention).max(0.0) / coherence).sqrt().max(1.0);
        self.coherence.is_shown().then(peak)
    }

    /// The most that any concurrency gives; `None` where neither contention nor coherence is shown,
    /// by its whole interval: what bounds the throughput was not reached.
    #[must_use]
    pub fn throughput_max(&self) -> Option<f64> {
        match self.peak() {
            Some(peak) => Some(self.throughput(peak)),
            None if self.contention.is_shown() => Some(self.rate.value / self.contention.value),
            None => None,
        }
    }

    fn law(&self) -> Law {
        Law {
            rate: self.rate.value,
            contention: self.contention.value,
            coherence: self.coherence.value,
        }
    }
}

#[derive(Clone, Copy)]
struct Law {
    rate: f64,
    contention: f64,
    coherence: f64,
}

impl Law {
    /// `None` where one alone would be infinitely fast.
    fn fit(points: &[Point]) -> Option<Self> {
        let mut equations = NormalEquations::default();
        for point in points {
            let n = f64::from(point.concurrency);
            let scale = point.throughput / n;
            let row = [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * scale);
            equations.add(&row, 1.0, 1.0);
        }
        let [time, serial, pairwise] = equations.solve_non_negative();
        let law = Self { rate: 1.0 / time, contention: serial / time, coherence: pairwise / time };
        (time > 0.0).then_some(law)
    }

    fn throughput(&self, n: f64) -> f64 {
        self.rate * n / (1.0 + self.contention * (n - 1.0) + self.coherence * n * (n - 1.0))
    }

    /// How far each point lies from the law, as a share of it.
    fn errors<'a>(&'a self, points: &'a [Point]) -> impl Iterator<Item = f64> + 'a {
        points
            .iter()
            .map(|point| point.throughput / self.throughput(f64::from(point.concurrency)) - 1.0)
    }

    /// The laws of points that differ from this one by their own `errors`, see [`Point::error`].
    fn redrawn(&self, points: &[Point], errors: &[f64], seed: u64) -> Vec<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        let freedom = count(points.len() - COEFFICIENTS);
        let misses = self.errors(points).zip(errors);
        let misses = misses.map(|(miss, error)| (miss.ln_1p() / error.max(SHOWN_MIN)).powi(2));
        let birge = (misses.sum::<f64>() / freedom).sqrt();
        // What a few misses say of the errors behind them is itself uncertain.
        let student = student_t_quantile(0.975, freedom) / NORMAL_975;
        let widening = if birge > 1.0 { birge * student } else { 1.0 };
        let mut redraw = || {
            let drawn = points.iter().zip(errors).map(|(point, error)| {
                let off = (widening * error * standard_normal(&mut random)).exp();
                Point { throughput: self.throughput(f64::from(point.concurrency)) * off, ..*point }
            });
            Self::fit(&drawn.collect::<Vec<Point>>())
        };
        (0..RESAMPLES).filter_map(|_| redraw()).collect()
    }

    /// The laws of points that differ from this one as the measured points do. Errors of a fit are
    /// smaller than those behind it, by the degrees of freedom that it took.
    fn resampled(&self, points: &[Point], seed: u64) -> Vec<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        let freedom = count(points.len() - COEFFICIENTS);
        let widening = (count(points.len()) / freedom).sqrt();
        let errors: Vec<f64> = self.errors(points).map(|error| error * widening).collect();
        let mut resample = || {
            let drawn: Vec<Point> = points
                .iter()
                .map(|point| {
                    let error = random.choice(&errors).copied().unwrap_or(0.0).max(ERROR_MIN);
                    let throughput = self.throughput(f64::from(point.concurrency)) * (1.0 + error);
                    Point { throughput, ..*point }
                })
                .collect();
            Self::fit(&drawn)
        };
        (0..RESAMPLES).filter_map(|_| resample()).collect()
    }
}

/// Points beyond the coefficients from which alone is told how far they are off: what fewer tell
/// of it is worth no interval, as all their resamples lie within a few of its widths.
const FREEDOM_MIN: f64 = 3.0;

/// A widened error that would make a throughput negative is cut here.
const ERROR_MIN: f64 = -0.9;

#[cfg(test)]
mod tests;
