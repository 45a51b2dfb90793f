//! Normal and Student's t distributions, to about ten digits.

use std::f64::consts::PI;

/// Probability that a standard normal value is at most `x`: the series
/// `1/2 + density(x) * (x + x^3/3 + x^5/(3*5) + ...)`, which converges for every `x`.
#[must_use]
pub fn normal_cdf(x: f64) -> f64 {
    /// Beyond eight standard deviations the remainder is below the precision of the result.
    const TAIL: f64 = 8.0;
    if x.abs() > TAIL {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > f64::EPSILON * sum.abs() {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}

/// The value that Student's t with `degrees` of freedom does not exceed with `probability`.
#[must_use]
pub fn student_t_quantile(probability: f64, degrees: f64) -> f64 {
    /// Halvings of the bracket: enough for the last bit of a value below the bracket's end.
    const STEPS: u32 = 100;
    let (mut low, mut high) = (-1e4, 1e4);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if student_t_cdf(middle, degrees) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// For whole degrees of freedom the distribution is a finite sum (Abramowitz and Stegun 26.7.3
/// and 26.7.4); others do not occur, since the degrees are a number of pairs less one.
fn student_t_cdf(t: f64, degrees: f64) -> f64 {
    let theta = (t / degrees.sqrt()).atan();
    let (sine, cosine) = theta.sin_cos();
    let is_odd = degrees % 2.0 == 1.0;
    let (mut term, mut sum, mut k) = if is_odd { (cosine, 0.0, 1.0) } else { (1.0, 0.0, 0.0) };
    while k < degrees - 1.0 {
        sum += term;
        term *= (k + 1.0) / (k + 2.0) * cosine * cosine;
        k += 2.0;
    }
    let two_sided = if is_odd { (theta + sine * sum) * 2.0 / PI } else { sine * sum };
    0.5 + two_sided / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_matches_its_tables() {
        for (x, probability) in
            [(0.0, 0.5), (1.0, 0.841_344_746), (-1.959_963_985, 0.025), (3.0, 0.998_650_102)]
        {
            assert!((normal_cdf(x) - probability).abs() < 1e-8, "{x}: {}", normal_cdf(x));
        }
        assert!(normal_cdf(-9.0).abs() < 1e-12);
    }

    #[test]
    fn student_quantiles_match_their_tables() {
        for (probability, degrees, t) in [
            (0.975, 1.0, 12.706_2),
            (0.975, 2.0, 4.302_65),
            (0.975, 4.0, 2.776_45),
            (0.975, 5.0, 2.570_58),
            (0.95, 9.0, 1.833_11),
            (0.8, 4.0, 0.940_96),
            (0.975, 30.0, 2.042_27),
        ] {
            let found = student_t_quantile(probability, degrees);
            assert!((found / t - 1.0).abs() < 1e-4, "{probability} {degrees}: {found}");
        }
    }
}
