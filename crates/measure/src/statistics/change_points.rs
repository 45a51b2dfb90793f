//! Where a series changes for good: divisive segmentation by the energy statistic of Matteson and
//! James (2014, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate
//! Data"), each split tested by permutations.
//!
//! The statistic of a split compares the distances between its two sides with those inside of each,
//! so it takes no distribution for granted; how often as large a one comes about by chance is seen
//! by putting the same values in other orders. Of few values there are few orders, and with them a
//! probability below which no split can lie, however clear it is.

/// Fewest values on either side of a change: a single outlier is none.
pub const SIDE_MIN: usize = 3;

/// Most values of a series that are looked at, the newest: a test takes their square times the
/// permutations.
pub const VALUES_MAX: usize = 250;

/// Permutations by which a split is tested, for each that may be as extreme by chance. More of them
/// tell better on which side of the level a split lies, which matters where few values leave little
/// room below it; of many values a permutation takes long.
const PERMUTATIONS_PER_CHANCE: [f64; 2] = [2.0, 10.0];

/// Values times permutations for each chance, between these bounds.
const VALUES_BY_PERMUTATIONS: f64 = 200.0;

/// Fewest and most permutations of a test.
const PERMUTATIONS_MIN: f64 = 999.0;
const PERMUTATIONS_MAX: f64 = 9_999_999.0;

/// Statistics that lie closer together than this share are those of the same two sides in other
/// orders, whose sums are rounded otherwise.
const ROUNDING: f64 = 1e-9;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value after it.
    pub at: usize,
    /// How often as clear a split comes about by chance.
    pub p: f64,
}

/// How seldom, at best, a change of so many values comes about by chance: in the middle, with sides
/// that nothing joins. 1 of fewer values than two sides take.
#[must_use]
pub fn smallest_p(values: usize) -> f64 {
    let values = values.min(VALUES_MAX);
    smallest_p_at(values, values / 2)
}

/// The same of a change at a place: the values of either side may have any order among themselves,
/// and either side may come first.
fn smallest_p_at(values: usize, at: usize) -> f64 {
    let smaller = at.min(values.saturating_sub(at));
    if smaller < SIDE_MIN {
        return 1.0;
    }
    let choices: f64 = (0..smaller).map(|it| float(values - it) / float(it + 1)).product();
    (2.0 / choices).max(1.0 / (PERMUTATIONS_MAX + 1.0))
}

/// The changes of a series, in their order, each tested at `level`.
#[must_use]
pub fn change_points(values: &[f64], level: f64, seed: u64) -> Vec<ChangePoint> {
    let skipped = values.len().saturating_sub(VALUES_MAX);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut found = Vec::new();
    let mut open = vec![(skipped, values.len())];
    while let Some((start, end)) = open.pop() {
        let Some(segment) = values.get(start..end) else { continue };
        if let Some(ChangePoint { at, p }) = change(segment, level, &mut random) {
            found.push(ChangePoint { at: start + at, p });
            open.extend([(start, start + at), (start + at, end)]);
        }
    }
    found.sort_by_key(|change| change.at);
    found
}

/// The clearest change of a segment, if it is one.
fn change(segment: &[f64], level: f64, random: &mut fastrand::Rng) -> Option<ChangePoint> {
    let (at, statistic) = best_split(segment)?;
    if smallest_p_at(segment.len(), at) > level {
        return None;
    }
    let permutations = permutations(segment.len(), level);
    let p_of = |as_extreme: f64| (as_extreme + 1.0) / (permutations + 1.0);
    let extreme = statistic - ROUNDING * statistic.abs();
    let mut shuffled = segment.to_vec();
    let mut as_extreme = 0.0;
    for _ in 0..super::index(permutations) {
        random.shuffle(&mut shuffled);
        let (_, by_chance) = best_split(&shuffled)?;
        if by_chance >= extreme {
            as_extreme += 1.0;
            if p_of(as_extreme) > level {
                return None;
            }
        }
    }
    let p = p_of(as_extreme);
    (p <= level).then_some(ChangePoint { at, p })
}

/// Permutations by which a split of so many values is tested at `level`. A series without a change
/// takes few of them, since it leaves once too many are as extreme.
fn permutations(values: usize, level: f64) -> f64 {
    let [least, most] = PERMUTATIONS_PER_CHANCE;
    let per_chance = (VALUES_BY_PERMUTATIONS / float(values)).clamp(least, most);
    (per_chance / level).clamp(PERMUTATIONS_MIN, PERMUTATIONS_MAX).floor()
}

/// The split of the largest statistic, with it; `None` for fewer values than two sides take.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    if n < 2 * SIDE_MIN {
        return None;
    }
    // Sums of distances inside the left, inside the right and between them, while one value after
    // the other goes from right to left.
    let distances = |value: f64, to: &[f64]| to.iter().map(|it| (it - value).abs()).sum::<f64>();
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = 0.0;
    for (index, value) in values.iter().enumerate() {
        right += distances(*value, values.get(index + 1..).unwrap_or_default());
    }
    let mut best: Option<(usize, f64)> = None;
    for (index, value) in values.iter().enumerate() {
        let to_left = distances(*value, values.get(..index).unwrap_or_default());
        let to_right = distances(*value, values.get(index + 1..).unwrap_or_default());
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        let at = index + 1;
        if at < SIDE_MIN || n - at < SIDE_MIN {
            continue;
        }
        let (m, k) = (float(at), float(n - at));
        let energy =
            2.0 * between / (m * k) - 2.0 * left / (m * (m - 1.0)) - 2.0 * right / (k * (k - 1.0));
        let statistic = m * k / (m + k) * energy;
        if best.is_none_or(|(_, largest)| statistic > largest) {
            best = Some((at, statistic));
        }
    }
    best
}

fn float(count: usize) -> f64 {
    super::count(count)
}

#[cfg(test)]
mod tests {
    use super::super::standard_normal;
    use super::*;

    /// 100, and 1 % of noise.
    fn noise(random: &mut fastrand::Rng, n: usize) -> Vec<f64> {
        (0..n).map(|_| 100.0 + standard_normal(random)).collect()
    }

    #[test]
    fn series_without_a_change_have_one_as_often_as_the_level_says() {
        let mut random = fastrand::Rng::with_seed(3);
        let has_one = |seed: u64| {
            let series = noise(&mut random, 40);
            !change_points(&series, 0.05, seed).is_empty()
        };
        let alarms = (0..200).map(has_one).filter(|it| *it).count();
        // 10 are expected, with a standard deviation of 3.
        assert!((2..=20).contains(&alarms), "{alarms}");
    }

    #[test]
    fn a_step_of_three_percent_is_found_within_five_values() {
        let mut random = fastrand::Rng::with_seed(4);
        let finds = |seed: u64| {
            let mut series = noise(&mut random, 30);
            series.extend(noise(&mut random, 5).into_iter().map(|value| value * 1.03));
            let found = change_points(&series, 0.01, seed);
            found.iter().any(|change| (29..=31).contains(&change.at))
        };
        let found = (0..50).map(finds).filter(|it| *it).count();
        // Four times in five.
        assert!(found >= 40, "{found} of 50");
    }

    #[test]
    fn several_changes_are_found_in_their_order() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut series = noise(&mut random, 12);
        series.extend(noise(&mut random, 12).into_iter().map(|value| value * 1.2));
        series.extend(noise(&mut random, 12).into_iter().map(|value| value * 0.9));
        let places: Vec<usize> =
            change_points(&series, 0.01, 1).iter().map(|change| change.at).collect();
        assert_eq!(places, [12, 24]);
    }

    /// Calls `visit` with every order of the values from `from` on.
    fn orders(values: &mut [f64], from: usize, visit: &mut dyn FnMut(&[f64])) {
        if from == values.len() {
            visit(values);
        }
        for at in from..values.len() {
            values.swap(from, at);
            orders(values, from + 1, visit);
            values.swap(from, at);
        }
    }

    #[test]
    fn no_order_of_few_values_is_rarer_than_the_smallest_probability() {
        let mut values = [1.0, 2.0, 3.0, 11.0, 12.0, 13.0];
        let (_, clearest) = best_split(&values).unwrap();
        let (mut all, mut as_extreme) = (0.0, 0.0);
        orders(&mut values, 0, &mut |order: &[f64]| {
            let (_, statistic) = best_split(order).unwrap();
            all += 1.0;
            as_extreme += if statistic >= clearest { 1.0 } else { 0.0 };
        });
        let found = [as_extreme / all, smallest_p(6), smallest_p(7), smallest_p(8), smallest_p(5)];
        let exact = [0.1, 0.1, 2.0 / 35.0, 2.0 / 70.0, 1.0];
        for (found, exact) in found.into_iter().zip(exact) {
            assert!((found / exact - 1.0).abs() < 1e-12, "{found} {exact}");
        }
        assert!(smallest_p(VALUES_MAX) > 0.0 && smallest_p(VALUES_MAX) < 1e-6);
    }

    #[test]
    fn seven_values_show_no_change_and_eight_do() {
        let step = |n: usize| -> Vec<f64> {
            (0..n).map(|at| float(at) + if at < n / 2 { 0.0 } else { 1_000.0 }).collect()
        };
        assert_eq!(change_points(&step(7), 0.05, 1), []);
        let places: Vec<usize> =
            change_points(&step(8), 0.05, 1).iter().map(|change| change.at).collect();
        assert_eq!(places, [4]);
    }

    #[test]
    fn one_outlier_and_short_series_are_no_change() {
        let mut series = noise(&mut fastrand::Rng::with_seed(6), 20);
        series[10] = 150.0;
        assert_eq!(change_points(&series, 0.01, 1), []);
        assert_eq!(change_points(&[1.0, 1.0, 9.0, 9.0, 9.0], 0.05, 1), []);
        assert_eq!(change_points(&[], 0.05, 1), []);
    }
}
