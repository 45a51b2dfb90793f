//! The slope of a course, whose neighbouring points are alike.

use super::{Interval, count, student_t_quantile};

/// Fewest points that determine a slope.
pub const POINTS_MIN: usize = 5;

/// By how much a figure rises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// In the figure's unit, by the unit of the course.
    pub rise: f64,
    /// Its interval at 95 %.
    pub interval_95: Interval,
}

impl Slope {
    /// The slope of points `(x, y)` in their order, by least squares. What is left after the line
    /// follows the point before it with a correlation of `c`, so that n points count as
    /// `n (1 - c) / (1 + c)`. The line takes some of that with it: on average `(2 + 4 c) / n` is
    /// missing from what is left. `None` with fewer than [`POINTS_MIN`].
    #[must_use]
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < POINTS_MIN {
            return None;
        }
        let n = count(points.len());
        let sums = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (x_mean, y_mean) = (sums.0 / n, sums.1 / n);
        let spread: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        let rise = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>() / spread;
        let rest: Vec<f64> = points.iter().map(|(x, y)| y - y_mean - rise * (x - x_mean)).collect();
        let squares: f64 = rest.iter().map(|rest| rest * rest).sum();
        let follows: f64 = rest.iter().zip(rest.iter().skip(1)).map(|(a, b)| a * b).sum();
        let seen = follows / squares.max(f64::MIN_POSITIVE);
        let correlation = ((n * seen + 2.0) / (n - 4.0)).clamp(0.0, 0.95);
        let degrees = (n * (1.0 - correlation) / (1.0 + correlation) - 2.0).max(1.0).floor();
        let error = (squares / degrees / spread).sqrt();
        let reach = student_t_quantile(0.975, degrees) * error;
        Some(Self { rise, interval_95: Interval { low: rise - reach, high: rise + reach } })
    }
}
