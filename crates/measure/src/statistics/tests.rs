//! Simulated experiments with a known truth: how often intervals, differences and equivalence are
//! wrong, and how often a planted effect is found.

use super::*;

/// Simulated experiments per cell; the standard error of a rate of 5 % is then 1 %.
const EXPERIMENTS: u64 = 500;

/// A standard normal value as the sum of twelve uniform ones, less six.
fn noise(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Pairs whose second member is better by `effect`, with a drift that both members share.
fn pairs(random: &mut fastrand::Rng, pairs: usize, effect: f64) -> Vec<(f64, f64)> {
    (0..pairs)
        .map(|_| {
            let shared = 100.0 + 20.0 * noise(random);
            (shared + noise(random), shared + effect + noise(random))
        })
        .collect()
}

fn effects(seed: u64, count: usize, effect: f64) -> Vec<PairedEffect> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..EXPERIMENTS)
        .map(|n| {
            let pairs = pairs(&mut random, count, effect);
            resampled_effect(&differences(&pairs), n, 2_000).unwrap()
        })
        .collect()
}

/// So many times as many experiments on few pairs, with fewer resamples: what few values reach,
/// they reach with those.
fn effects_of_few(seed: u64, count: usize) -> Vec<PairedEffect> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..8 * EXPERIMENTS)
        .map(|n| {
            let pairs = pairs(&mut random, count, 0.0);
            resampled_effect(&differences(&pairs), n, 500).unwrap()
        })
        .collect()
}

fn share(effects: &[PairedEffect], holds: impl Fn(&PairedEffect) -> bool) -> f64 {
    count(effects.iter().filter(|effect| holds(effect)).count()) / count(effects.len())
}

#[test]
fn two_equal_systems_differ_significantly_about_once_in_twenty() {
    for pairs in [5, 8] {
        let wrong = share(&effects(1, pairs, 0.0), PairedEffect::is_different);
        assert!((0.02..0.085).contains(&wrong), "{pairs} pairs: {wrong}");
    }
    // Of 4,000 experiments, with a standard error of 0.35 and 0.47 %.
    for pairs in [3, 4] {
        let effects = effects_of_few(21, pairs);
        let wrong = share(&effects, PairedEffect::is_different);
        assert!((0.03..0.061).contains(&wrong), "{pairs} pairs: {wrong}");
        let wrong = share(&effects, |effect| effect.interval_90.excludes(0.0));
        assert!((0.07..0.112).contains(&wrong), "{pairs} pairs: {wrong} at 90 %");
    }
}

#[test]
fn the_interval_of_three_or_four_values_reaches_as_far_as_students() {
    // Quantiles of Student's t with two and three degrees of freedom.
    let few: [(&[f64], [f64; 2]); 2] =
        [(&[1.0, 2.0, 3.0], [4.302, 2.919]), (&[1.0, 2.0, 3.0, 4.0], [3.182, 2.353])];
    for (values, quantiles) in few {
        let effect = paired_effect(values, 1).unwrap();
        let error = standard_deviation(values) / count(values.len()).sqrt();
        for (interval, t) in [effect.interval_95, effect.interval_90].iter().zip(quantiles) {
            let (low, high) = (effect.mean - t * error, effect.mean + t * error);
            assert!(interval.low < low && high < interval.high, "{interval:?} of {values:?}");
        }
    }
}

#[test]
fn the_interval_covers_the_truth_as_often_as_it_says() {
    for (pairs, effect) in [(5, 3.0), (10, 0.5)] {
        let covered =
            share(&effects(2, pairs, effect), |found| !found.interval_95.excludes(effect));
        assert!((0.915..0.98).contains(&covered), "{pairs} pairs: {covered}");
    }
}

#[test]
fn a_planted_effect_is_found_though_the_machine_drifts() {
    let found = share(&effects(3, 6, 4.0), PairedEffect::is_different);
    assert!(found > 0.95, "{found}");
}

#[test]
fn the_detectable_effect_is_detected_four_times_in_five() {
    let mut random = fastrand::Rng::with_seed(4);
    let spread = differences(&pairs(&mut random, 2_000, 0.0));
    let sigma = standard_deviation(&spread);
    let n = 10.0_f64;
    let effect =
        (student_t_quantile(0.975, n - 1.0) + student_t_quantile(0.8, n - 1.0)) * sigma / n.sqrt();
    let found = share(&effects(5, 10, effect), PairedEffect::is_different);
    assert!((0.72..0.9).contains(&found), "{found}");
}

#[test]
fn equivalence_is_claimed_falsely_at_most_one_time_in_twenty() {
    let bound = 2.0;
    let claimed = share(&effects(6, 8, bound), |effect| effect.interval_90.is_within(bound));
    assert!(claimed < 0.075, "{claimed}");
    let justly = share(&effects(7, 8, 0.0), |effect| effect.interval_90.is_within(bound));
    assert!(justly > 0.8, "{justly}");
}

#[test]
fn a_ratio_is_an_effect_on_logarithms() {
    let pairs: Vec<(f64, f64)> = [(10.0, 11.0), (20.0, 22.1), (30.0, 32.9), (5.0, 5.5)].to_vec();
    let effect = paired_effect(&log_ratios(&pairs), 1).unwrap();
    assert!((effect.mean.exp() - 1.1).abs() < 0.01);
    assert!(effect.is_different());
}

#[test]
fn few_or_broken_values_give_no_interval() {
    assert_eq!(paired_effect(&[1.0, 2.0], 1), None);
    assert_eq!(paired_effect(&[1.0, 2.0, f64::NAN], 1), None);
}

#[test]
fn the_median_is_the_middle() {
    assert_eq!(median(&[3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]).to_bits(), 2.5_f64.to_bits());
    assert_eq!(median(&[]).to_bits(), 0.0_f64.to_bits());
}

/// The mean of the windows of a run: each run has an effect of its own, and each window is like
/// the one before.
fn windows(random: &mut fastrand::Rng, run_spread: f64) -> Vec<f64> {
    const CORRELATION: f64 = 0.5;
    let of_run = 100.0 + run_spread * noise(random);
    let mut state = noise(random);
    let fresh = (1.0 - CORRELATION * CORRELATION).sqrt();
    let mut next = || {
        state = CORRELATION * state + fresh * noise(random);
        of_run + state
    };
    (0..30).map(|_| next()).collect()
}

/// Whether Welch's t says that two sets of windows differ, which takes windows for replicates.
fn windows_differ(first: &[f64], second: &[f64]) -> bool {
    let variance = |values: &[f64]| standard_deviation(values).powi(2) / count(values.len());
    let error = (variance(first) + variance(second)).sqrt();
    let t = (mean(first) - mean(second)).abs() / error;
    t > student_t_quantile(0.975, count(first.len() + second.len() - 2))
}

#[test]
fn equal_runs_differ_significantly_as_rarely_as_the_level_but_their_windows_often() {
    const COMPARISONS: u32 = 1_000;
    const PAIRS: usize = 6;
    for (seed, run_spread) in [(11, 0.0), (12, 0.5), (13, 2.0)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut by_pairs, mut by_windows) = (0_u32, 0_u32);
        for comparison in 0..COMPARISONS {
            let mut pair = || [windows(&mut random, run_spread), windows(&mut random, run_spread)];
            let pairs: Vec<[Vec<f64>; 2]> = (0..PAIRS).map(|_| pair()).collect();
            let means: Vec<(f64, f64)> = pairs.iter().map(|[a, b]| (mean(a), mean(b))).collect();
            let effect = resampled_effect(&log_ratios(&means), comparison.into(), 2_000).unwrap();
            by_pairs += u32::from(effect.is_different());
            by_windows += u32::from(pairs.first().is_some_and(|[a, b]| windows_differ(a, b)));
        }
        // 5 % of 1,000 with 99.9 % of the binomial distribution around it.
        assert!((28..=73).contains(&by_pairs), "{by_pairs} of {COMPARISONS}, spread {run_spread}");
        assert!(by_windows > 3 * by_pairs, "{by_windows} by windows, {by_pairs} by pairs");
    }
}

#[test]
fn a_planted_twentieth_is_found_four_times_in_five() {
    let mut random = fastrand::Rng::with_seed(14);
    let pairs = |random: &mut fastrand::Rng| -> Vec<(f64, f64)> {
        let run = |random: &mut fastrand::Rng| mean(&windows(random, 3.0));
        (0..12).map(|_| (run(random), 1.05 * run(random))).collect()
    };
    let found = (0..400_u32).filter(|seed| {
        let pairs = pairs(&mut random);
        let effect = resampled_effect(&log_ratios(&pairs), u64::from(*seed), 2_000).unwrap();
        effect.is_different() && effect.mean > 0.0
    });
    let found = found.count();
    assert!(found >= 320, "{found} of 400");
}

#[test]
fn a_ratio_is_equivalent_different_or_open() {
    let likeness = |ratios: [f64; 4]| {
        let logs = ratios.map(f64::ln);
        paired_effect(&logs, 1).unwrap().likeness()
    };
    assert_eq!(likeness([1.01, 0.99, 1.0, 1.005]), Likeness::Equivalent { percent: 5 });
    // Shown to be larger by a fiftieth, and by no more than a twentieth.
    assert_eq!(likeness([1.021, 1.02, 1.019, 1.02]), Likeness::Equivalent { percent: 5 });
    assert_eq!(likeness([1.05, 1.06, 1.055, 1.06]), Likeness::Equivalent { percent: 10 });
    assert_eq!(likeness([1.3, 1.31, 1.29, 1.3]), Likeness::Different);
    let Likeness::Open { detectable_percent } = likeness([0.7, 1.5, 1.2, 0.9]) else { panic!() };
    assert!(detectable_percent > 50.0, "{detectable_percent}");
}
