//! Simulated sweeps whose law is known.

use super::*;

/// 1 to 16 in doublings, three runs each, every run off by up to `noise`.
fn sweep(law: &Law, noise: f64, seed: u64) -> Vec<Point> {
    let mut random = fastrand::Rng::with_seed(seed);
    let levels = [1, 2, 4, 8, 16].into_iter();
    let runs = levels.flat_map(|concurrency| [concurrency; 3]);
    runs.map(|concurrency| {
        let off = 1.0 + noise * (2.0 * random.f64() - 1.0);
        Point { concurrency, throughput: law.throughput(f64::from(concurrency)) * off }
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
        .map(|(concurrency, throughput)| Point { concurrency, throughput });
    let found = Scalability::fit(&points, 1).unwrap();
    assert!(found.contention.value >= 0.0 && found.coherence.value >= 0.0);
    assert!(found.error > 0.0 && found.peak().is_none_or(|peak| peak > 8.0), "{found:?}");
}

#[test]
fn intervals_cover_the_law_about_as_often_as_they_say() {
    const SWEEPS: u32 = 100;
    let mut covered = [0; COEFFICIENTS];
    for seed in 0..SWEEPS {
        let found = Scalability::fit(&sweep(&LAW, 0.05, seed.into()), 7).unwrap();
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
    for broken in [
        Point { concurrency: 0, throughput: 1.0 },
        Point { concurrency: 1, throughput: 0.0 },
        Point { concurrency: 1, throughput: f64::NAN },
    ] {
        let points = [&points[..], &[broken]].concat();
        assert!(Scalability::fit(&points, 1).is_none(), "{broken:?}");
    }
}
