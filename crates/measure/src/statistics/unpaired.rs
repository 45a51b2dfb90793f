//! Differences between two sets of runs that were not made in turns, as those of two results are.
//!
//! Drift between the two sittings is part of the difference, and no interval over the runs of each
//! can separate it.

use super::{
    Interval, PAIRS_MIN, POWER, RESAMPLES, count, interval_of, mean, standard_deviation,
    standard_normal, student_t_quantile,
};

/// The difference of two means and what can be said about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnpairedEffect {
    /// Second mean less the first.
    pub mean: f64,
    /// Interval of it at 95 %: the smoothed bootstrap of either side, its percentiles those of
    /// Student's t with Welch's degrees of freedom, and with three or four runs on a side no
    /// narrower than Welch's own.
    pub interval_95: Interval,
    /// The smallest true difference that as many runs of this spread show four times in five.
    pub detectable: f64,
    error: f64,
    degrees: f64,
}

impl UnpairedEffect {
    /// Whether the difference is there at the 5 % level when it is one of `figures` that are looked
    /// at together (Bonferroni, by Welch's test: no bootstrap has resamples so far out).
    #[must_use]
    pub fn is_shown_among(&self, figures: usize) -> bool {
        let t = student_t_quantile(1.0 - 0.025 / count(figures.max(1)), self.degrees);
        self.mean.abs() > t * self.error
    }
}

/// The effect between two sets of values, or `None` with fewer than [`PAIRS_MIN`] of either or
/// values that are not finite.
#[must_use]
pub fn unpaired_effect(first: &[f64], second: &[f64], seed: u64) -> Option<UnpairedEffect> {
    let sides = [first, second];
    let is_usable =
        |values: &[f64]| values.len() >= PAIRS_MIN && values.iter().all(|value| value.is_finite());
    if !sides.iter().all(|values| is_usable(values)) {
        return None;
    }
    // The variance of each mean.
    let [one, other] = sides.map(|values| standard_deviation(values).powi(2) / count(values.len()));
    let error = (one + other).sqrt();
    let freedom = |variance: f64, values: &[f64]| variance.powi(2) / (count(values.len()) - 1.0);
    let least = count(first.len().min(second.len())) - 1.0;
    let welch = (one + other).powi(2) / (freedom(one, first) + freedom(other, second));
    // Without any spread there is nothing to divide by.
    let degrees = if welch.is_finite() { welch.floor().max(least) } else { least };
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resampled = |values: &[f64]| {
        let sum: f64 = values.iter().map(|_| random.choice(values).copied().unwrap_or(0.0)).sum();
        let n = count(values.len());
        sum / n + standard_deviation(values) / n * standard_normal(&mut random)
    };
    let means = (0..RESAMPLES).map(|_| resampled(second) - resampled(first)).collect();
    let difference = mean(second) - mean(first);
    let fewest = first.len().min(second.len());
    let t = student_t_quantile(0.975, degrees);
    Some(UnpairedEffect {
        mean: difference,
        interval_95: interval_of(means, degrees).or_students(fewest, difference, t * error),
        detectable: (t + student_t_quantile(POWER, degrees)) * error,
        error,
        degrees,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(random: &mut fastrand::Rng, n: usize, mean: f64) -> Vec<f64> {
        (0..n).map(|_| mean + standard_normal(random)).collect()
    }

    #[test]
    fn equal_sides_differ_significantly_as_often_as_the_level() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut by_interval, mut among_ten) = (0, 0);
        for seed in 0..300 {
            let first = normals(&mut random, 5, 10.0);
            let second = normals(&mut random, 5, 10.0);
            let effect = unpaired_effect(&first, &second, seed).unwrap();
            by_interval += u32::from(effect.interval_95.excludes(0.0));
            among_ten += u32::from(effect.is_shown_among(10));
        }
        // 15 of 300 are expected of the first, with a standard deviation of 3.8.
        assert!((4..=27).contains(&by_interval), "{by_interval}");
        assert!(among_ten <= 6, "{among_ten}");
    }

    #[test]
    fn a_difference_of_the_detectable_size_is_found_four_times_in_five() {
        let mut random = fastrand::Rng::with_seed(8);
        let detectable = unpaired_effect(
            &[9.0, 10.0, 11.0, 8.5, 11.5, 10.0],
            &[9.0, 10.0, 11.0, 8.5, 11.5, 10.0],
            1,
        );
        let spread = detectable.unwrap().detectable / 1.14;
        let mut found = 0;
        for seed in 0..200 {
            let first = normals(&mut random, 6, 10.0);
            let second = normals(&mut random, 6, 10.0 + spread);
            let effect = unpaired_effect(&first, &second, seed).unwrap();
            found += u32::from(effect.interval_95.excludes(0.0));
        }
        assert!((135..=185).contains(&found), "{found}");
    }

    #[test]
    fn three_runs_of_a_side_have_no_narrower_interval_than_welchs() {
        // Of a side without any spread, so that the other's two degrees of freedom are all.
        let effect = unpaired_effect(&[2.0; 3], &[1.0, 2.0, 3.0], 1).unwrap();
        let reach = 4.302 * (1.0_f64 / 3.0).sqrt();
        let Interval { low, high } = effect.interval_95;
        assert!(low < -reach && reach < high, "{low} {high}");
        // Sides alike have four degrees, and a hull is no shift.
        let effect = unpaired_effect(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 1).unwrap();
        let Interval { low, high } = effect.interval_95;
        assert!(low < -2.26 && 2.26 < high && high < 3.0, "{low} {high}");
    }

    #[test]
    fn too_few_runs_and_no_numbers_have_no_effect() {
        assert_eq!(unpaired_effect(&[1.0, 2.0], &[1.0, 2.0, 3.0], 1), None);
        assert_eq!(unpaired_effect(&[1.0, 2.0, f64::NAN], &[1.0, 2.0, 3.0], 1), None);
        let still = unpaired_effect(&[1.0; 3], &[2.0; 3], 1).unwrap();
        assert!(still.is_shown_among(100) && still.interval_95.excludes(0.0));
    }
}
