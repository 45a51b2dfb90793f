//! Known answers, the conditions of the best solution, and what columns have in common.

use proptest::prelude::*;

use super::*;

fn of<const N: usize>(rows: &[([f64; N], f64)]) -> NormalEquations<N> {
    let mut equations = NormalEquations::default();
    for (row, target) in rows {
        equations.add(row, *target, 1.0);
    }
    equations
}

fn near(found: &[f64], exact: &[f64], bound: f64) -> bool {
    found.iter().zip(exact).all(|(found, exact)| (found - exact).abs() <= bound)
}

/// A value between -1 and 1.
fn noise(random: &mut fastrand::Rng) -> f64 {
    2.0 * random.f64() - 1.0
}

#[test]
fn exact_rows_give_their_coefficients_back() {
    let rows = [([1.0, 2.0], 8.0), ([3.0, 1.0], 9.0), ([1.0, 1.0], 5.0)];
    assert!(near(&of(&rows).solve_non_negative(), &[2.0, 3.0], 1e-12));
}

#[test]
fn a_coefficient_that_would_be_negative_is_zero_and_the_others_make_up_for_it() {
    // The unbounded solution is (2, -1); with the second at 0, the first is 5 / 6.
    let rows = [([1.0, 1.0], 1.0), ([1.0, 2.0], 0.0), ([2.0, 2.0], 2.0)];
    assert!(near(&of(&rows).solve_non_negative(), &[5.0 / 6.0, 0.0], 1e-12));
    let all_negative = [([1.0, 0.0], -1.0), ([1.0, 1.0], -2.0)];
    assert!(near(&of(&all_negative).solve_non_negative(), &[0.0, 0.0], 0.0));
}

#[test]
fn residual_variance_is_the_sum_of_squares_by_degrees_of_freedom() {
    // The best line through 1, 2, 4 is 5/6 + 3/2 x: it misses by 1/6, -1/3, 1/6.
    let equations = of(&[([1.0, 0.0], 1.0), ([1.0, 1.0], 2.0), ([1.0, 2.0], 4.0)]);
    let solution = equations.solve_non_negative();
    assert!((equations.variance_left(&solution) - 1.0 / 6.0).abs() < 1e-12);
    let exact = of(&[([1.0, 0.0], 1.0), ([1.0, 1.0], 2.0), ([1.0, 2.0], 3.0)]);
    assert!(exact.variance_left(&exact.solve_non_negative()) < 1e-12);
}

#[test]
fn coefficients_that_are_drawn_together_meet_in_the_middle() {
    let rows = [([1.0, 0.0], 1.0), ([0.0, 1.0], 3.0)];
    let drawn = |strength| {
        let mut equations = of(&rows);
        equations.draw_together(0, 1, strength);
        equations.solve_non_negative()
    };
    assert!(near(&drawn(0.0), &[1.0, 3.0], 1e-12));
    // Half the squared difference and both errors are least at a difference of one.
    assert!(near(&drawn(0.5), &[1.5, 2.5], 1e-12));
    assert!(near(&drawn(1e6), &[2.0, 2.0], 1e-5));
}

#[test]
fn a_column_that_entered_leaves_again() {
    // The first column alone points best to the target, and is in the way of the other two.
    let rows = [([1.0, 1.0, 0.0], 10.0), ([1.0, 0.0, 1.0], 10.0), ([0.4, 0.0, 0.0], 0.0)];
    let found = of(&rows).solve_non_negative();
    assert!(near(&found, &[0.0, 10.0, 10.0], 1e-9), "{found:?}");
}

#[test]
fn columns_of_zeros_and_twins_do_not_break_the_fit() {
    let zeros = [([1.0, 0.0], 3.0), ([2.0, 0.0], 6.0)];
    assert!(near(&of(&zeros).solve_non_negative(), &[3.0, 0.0], 1e-12));
    let twins = [([1.0, 2.0], 4.0), ([2.0, 4.0], 8.0)];
    let [first, second] = of(&twins).solve_non_negative();
    assert!(first >= 0.0 && second >= 0.0 && (first + 2.0 * second - 4.0).abs() < 1e-9);
    let none = NormalEquations::<3>::default().solve_non_negative();
    assert!(near(&none, &[0.0; 3], 0.0));
}

#[test]
fn weights_and_sums_of_parts_are_as_repeated_rows() {
    let (heavy, light) = (([1.0, 0.5], 2.0), ([0.3, 1.0], 1.0));
    let repeated = of(&[heavy, heavy, heavy, light]);
    let mut parts = of(&[light]);
    parts.add_all(&of(&[heavy]), 3.0);
    let mut weighted = of(&[light]);
    weighted.add(&heavy.0, heavy.1, 3.0);
    let all = [repeated, parts, weighted].map(|e| e.solve_non_negative());
    assert!(near(&all[0], &all[1], 1e-12) && near(&all[0], &all[2], 1e-12));
}

#[test]
fn units_do_not_matter() {
    let rows = [([1.0, 3.0], 7.0), ([2.0, 1.0], 4.5), ([4.0, 1.5], 9.0), ([1.0, 1.0], 3.0)];
    let small = rows.map(|([a, b], target)| ([a * 1e-9, b * 1e6], target));
    let [a, b] = of(&rows).solve_non_negative();
    let [small_a, small_b] = of(&small).solve_non_negative();
    assert!(near(&[small_a / 1e9, small_b * 1e6], &[a, b], 1e-9));
}

#[test]
fn coefficients_are_recovered_through_noise() {
    let exact = [0.5, 20.0, 0.0, 3.0, 0.001];
    let mut random = fastrand::Rng::with_seed(7);
    let mut equations = NormalEquations::default();
    for _ in 0..4_000 {
        let row = [1.0, random.f64(), random.f64(), random.f64() * 4.0, random.f64() * 5_000.0];
        let clean: f64 =
            row.iter().zip(exact).map(|(value, coefficient)| value * coefficient).sum();
        equations.add(&row, clean + 0.5 * noise(&mut random), 1.0);
    }
    let found = equations.solve_non_negative();
    assert!(near(&found, &exact, 0.06), "{found:?}");
    assert!((found[4] - exact[4]).abs() < 1e-4, "{found:?}");
}

proptest! {
    /// Karush, Kuhn and Tucker: nothing is negative, the gradient vanishes where a coefficient is
    /// positive, and points outwards where it is zero.
    #[test]
    fn the_solution_cannot_be_improved(seed in any::<u64>(), rows in 1_usize..30) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut equations = NormalEquations::<6>::default();
        for _ in 0..rows {
            let row = std::array::from_fn(|_| noise(&mut random));
            equations.add(&row, 5.0 * noise(&mut random), random.f64());
        }
        let found = equations.solve_non_negative();
        let gradient = equations.gradient(&found);
        let scale = equations.moment.iter().fold(1.0_f64, |most, value| most.max(value.abs()));
        for (coefficient, slope) in found.iter().zip(gradient) {
            prop_assert!(*coefficient >= 0.0);
            prop_assert!(slope <= 1e-6 * scale, "{found:?} {gradient:?}");
            prop_assert!(*coefficient == 0.0 || slope >= -1e-6 * scale, "{found:?} {gradient:?}");
        }
    }

    #[test]
    fn exact_data_of_positive_coefficients_are_fitted_exactly(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let exact: [f64; 5] = std::array::from_fn(|_| 0.1 + random.f64());
        let mut equations = NormalEquations::default();
        for _ in 0..20 {
            let row: [f64; 5] = std::array::from_fn(|_| random.f64());
            let target = row.iter().zip(exact).map(|(a, b)| a * b).sum();
            equations.add(&row, target, 1.0);
        }
        prop_assert!(near(&equations.solve_non_negative(), &exact, 1e-6));
    }
}
