//! Simulated sweeps whose law is known.

use super::*;

/// 1 to 16 in doublings, three runs each, every run off by up to `noise`.
fn sweep(law: &Law, noise: f64, seed: u64) -> Vec<Point> {
    let mut random = fastrand::Rng::with_seed(seed);
    let levels = [1, 2, 4, 8, 16].into_iter();
    let runs = levels.flat_map(|concurrency| [concurrency; 3]);
    runs.map(|concurrency| {
        let off = 1.0 + noise * (2.0 * random.f64() - 1.0);
        Point::measured(concurrency, law.throughput(f64::from(concurrency)) * off)
    })
    .collect()
}

const LAW: Law = Law { rate: 1_000.0, contention: 0.05, coherence: 0.004 };

fn near(found: f64, exact: f64) -> bool {
    (found - exact).abs() <= 1e-6 * exact.abs().max(1e-3)
}

#[test]
fn a_sweep_without_noise_gives_its_law_back() {
    let found = Scalability::fit(&sweep(&LAW, 0.0, 1), 1).unwrap();
    assert!(near(found.rate.value, 1_000.0) && near(found.contention.value, 0.05), "{found:?}");
    assert!(near(found.coherence.value, 0.004) && found.error < 1e-9, "{found:?}");
    let peak = (0.95_f64 / 0.004).sqrt();
    assert!(near(found.peak().unwrap(), peak));
    assert!(near(found.throughput_max().unwrap(), LAW.throughput(peak)));
    assert!(found.throughput(peak) > found.throughput(peak * 1.2));
}

#[test]
fn what_scales_without_loss_has_neither_peak_nor_plateau() {
    let linear = Law { rate: 10.0, contention: 0.0, coherence: 0.0 };
    let found = Scalability::fit(&sweep(&linear, 0.0, 1), 1).unwrap();
    assert!(near(found.throughput(100.0), 1_000.0), "{found:?}");
    assert_eq!((found.peak(), found.throughput_max()), (None, None));
    let plateau = Law { contention: 0.2, ..linear };
    let found = Scalability::fit(&sweep(&plateau, 0.0, 1), 1).unwrap();
    assert!(found.peak().is_none() && near(found.throughput_max().unwrap(), 50.0), "{found:?}");
    assert!(found.coherence.value < 1e-9 && near(found.throughput(1e9), 50.0), "{found:?}");
}

#[test]
fn an_end_that_only_noise_promises_is_not_told() {
    let linear = Law { rate: 10.0, contention: 0.0, coherence: 0.0 };
    let ends = (0..20).filter_map(|seed| {
        Scalability::fit(&sweep(&linear, 0.02, seed), 1).unwrap().throughput_max()
    });
    let ends: Vec<f64> = ends.collect();
    // The contention of one draw in forty is above nothing by chance, and its end is far.
    assert!(ends.len() <= 4 && ends.iter().all(|most| *most > 16.0 * 10.0), "{ends:?}");
}

#[test]
fn what_grows_faster_than_its_concurrency_has_no_negative_coefficient() {
    let points = [(1, 1.0), (2, 2.2), (4, 4.6), (8, 9.4)]
        .map(|(concurrency, throughput)| Point::measured(concurrency, throughput));
    assert!(Scalability::fit(&points, 1).is_none(), "one point alone tells no error");
    let points = [points, points].concat();
    let found = Scalability::fit(&points, 1).unwrap();
    assert!(found.contention.value >= 0.0 && found.coherence.value >= 0.0);
    assert!(found.error > 0.0 && found.peak().is_none_or(|peak| peak > 8.0), "{found:?}");
}

/// One search for each of 1, 2, 4 and 8, each off by `error` and known to be.
fn searches(law: &Law, error: f64, seed: u64) -> Vec<Point> {
    searches_that_say(law, error, error, seed)
}

/// The same where they are off by another `error` than they say.
fn searches_that_say(law: &Law, error: f64, said: f64, seed: u64) -> Vec<Point> {
    let mut random = fastrand::Rng::with_seed(seed);
    let search = |concurrency: u32| {
        let off = (error * standard_normal(&mut random)).exp();
        let throughput = law.throughput(f64::from(concurrency)) * off;
        Point { concurrency, throughput, error: Some(said) }
    };
    [1, 2, 4, 8].map(search).into()
}

#[test]
fn intervals_cover_the_law_about_as_often_as_they_say() {
    covers(|seed| sweep(&LAW, 0.05, seed));
}

#[test]
fn four_points_with_errors_of_their_own_cover_the_law_as_often() {
    covers(|seed| searches(&LAW, 0.02, seed));
}

#[test]
fn errors_that_are_thrice_what_points_say_are_covered_as_often() {
    covers(|seed| searches_that_say(&LAW, 0.02, 0.02 / 3.0, seed));
}

#[test]
fn four_points_hardly_ever_promise_a_peak_that_is_not_there() {
    let law = Law { coherence: 0.0, ..LAW };
    // By the errors that points say, and by half of them.
    for (said, most) in [(0.02, 12), (0.01, 16)] {
        let points = |seed| searches_that_say(&law, 0.02, said, seed);
        let found = (0..200).filter_map(|seed| Scalability::fit(&points(seed), 7));
        let peaks = found.filter(|law| law.peak().is_some()).count();
        assert!(peaks <= most, "{said}: {peaks} of 200");
    }
}

#[test]
fn points_that_miss_the_law_by_more_than_their_errors_widen_its_intervals() {
    let width = |off: f64| {
        let mut points = searches(&LAW, 0.0, 1);
        points.iter_mut().for_each(|point| point.error = Some(0.005));
        points[2].throughput *= off;
        let Interval { low, high } = Scalability::fit(&points, 7).unwrap().contention.interval_95;
        high - low
    };
    assert!(width(1.1) > 3.0 * width(1.0), "{} {}", width(1.1), width(1.0));
}

fn covers(points: impl Fn(u64) -> Vec<Point>) {
    const SWEEPS: u32 = 100;
    let mut covered = [0; COEFFICIENTS];
    for seed in 0..SWEEPS {
        let found = Scalability::fit(&points(seed.into()), 7).unwrap();
        let holds = [
            (found.rate, LAW.rate),
            (found.contention, LAW.contention),
            (found.coherence, LAW.coherence),
        ];
        for (count, (coefficient, exact)) in covered.iter_mut().zip(holds) {
            *count += u32::from(!coefficient.interval_95.excludes(exact));
        }
    }
    assert!(covered.iter().all(|count| (88..=100).contains(count)), "{covered:?} of {SWEEPS}");
}

#[test]
fn too_few_concurrencies_or_impossible_figures_give_no_law() {
    let points = sweep(&LAW, 0.0, 1);
    assert!(Scalability::fit(&points[..6], 1).is_none());
    assert!(Scalability::fit(&points[..9], 1).is_some());
    let distinct: Vec<Point> = points.iter().copied().step_by(3).take(3).collect();
    assert!(Scalability::fit(&distinct, 1).is_none());
    for broken in [Point::measured(0, 1.0), Point::measured(1, 0.0), Point::measured(1, f64::NAN)] {
        let points = [&points[..], &[broken]].concat();
        assert!(Scalability::fit(&points, 1).is_none(), "{broken:?}");
    }
}
