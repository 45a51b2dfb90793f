//! The rank-sum test of Mann and Whitney ("On a Test of Whether one of Two Random Variables is
//! Stochastically Larger than the Other", 1947), as others use it on windows of single runs.

use super::{count, normal_cdf};

/// Fewest values of a side for which the normal distribution stands for that of the rank sum.
const VALUES_MIN: usize = 8;

/// The probability that two samples of one distribution differ at least so much in their ranks; in
/// both directions, by the normal approximation with its correction for ties. `None` with fewer
/// than 8 values on a side, or where all are equal.
#[must_use]
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.len().min(second.len()) < VALUES_MIN {
        return None;
    }
    let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, true)).collect();
    all.extend(second.iter().map(|value| (*value, false)));
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut rank_sum, mut ties, mut before) = (0.0, 0.0, 0.0);
    for tied in all.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq()) {
        let size = count(tied.len());
        let rank = before + f64::midpoint(1.0, size);
        rank_sum += rank * count(tied.iter().filter(|(_, is_first)| *is_first).count());
        ties += size.powi(3) - size;
        before += size;
    }
    let (n, m) = (count(first.len()), count(second.len()));
    let u = rank_sum - n * (n + 1.0) / 2.0;
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    (variance > 0.0).then(|| 2.0 * normal_cdf(-(u - n * m / 2.0).abs() / variance.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: u32, to: u32) -> Vec<f64> {
        (from..to).map(f64::from).collect()
    }

    #[test]
    fn samples_apart_have_the_probability_of_their_rank_sum() {
        // U is 0 of 100, 50 expected, the standard deviation is the root of 10 * 10 * 21 / 12.
        let found = mann_whitney(&numbers(0, 10), &numbers(10, 20)).unwrap();
        assert!((found - 0.000_157_05).abs() < 1e-6, "{found}");
        let other_way = mann_whitney(&numbers(10, 20), &numbers(0, 10)).unwrap();
        assert!((found - other_way).abs() < 1e-12);
    }

    #[test]
    fn samples_that_interleave_are_alike() {
        let [even, odd] = [0, 1].map(|first| numbers(0, 20).split_off(first));
        let every_other = |all: Vec<f64>| all.into_iter().step_by(2).collect::<Vec<f64>>();
        assert!(mann_whitney(&every_other(even), &every_other(odd)).unwrap() > 0.7);
        let same = numbers(0, 30);
        assert!((mann_whitney(&same, &same).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn ties_narrow_the_distribution() {
        // Of 8 and 8 values that are 0 or 1, with 2 and 6 ones: U is 16 of 64, and the ties take
        // 16 * 17 / 2 * ... down to a variance of 64 / 12 * (17 - 1008 / 240).
        let ones = |count: usize| (0..8).map(|at| f64::from(u8::from(at < count))).collect();
        let (few, many): (Vec<f64>, Vec<f64>) = (ones(2), ones(6));
        let deviation = (64.0_f64 / 12.0 * (17.0 - 1_008.0 / 240.0)).sqrt();
        let expected = 2.0 * normal_cdf(-16.0 / deviation);
        assert!((mann_whitney(&few, &many).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn few_values_and_equal_ones_say_nothing() {
        assert_eq!(mann_whitney(&numbers(0, 7), &numbers(0, 100)), None);
        assert_eq!(mann_whitney(&[1.0; 20], &[1.0; 20]), None);
    }
}
