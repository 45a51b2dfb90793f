//! Weighted least squares with coefficients that are not negative, for a handful of columns.
//!
//! Rows are summed into normal equations, whose size does not grow with them: what a bootstrap or a
//! fit without one case needs is a sum of parts. The solution is Lawson and Hanson's active set
//! method ("Solving Least Squares Problems", 1974, chapter 23). Columns are scaled to length 1
//! before anything is solved or judged, so that units do not matter.

/// Normal equations of rows with `N` columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalEquations<const N: usize> {
    /// Sums of products of columns.
    gram: [[f64; N]; N],
    /// Sums of products of columns and targets.
    moment: [f64; N],
    /// Sum of the squares of targets.
    squares: f64,
    /// Sum of the weights.
    weight: f64,
}

impl<const N: usize> Default for NormalEquations<N> {
    fn default() -> Self {
        Self { gram: [[0.0; N]; N], moment: [0.0; N], squares: 0.0, weight: 0.0 }
    }
}

impl<const N: usize> NormalEquations<N> {
    /// Adds a row.
    pub fn add(&mut self, row: &[f64; N], target: f64, weight: f64) {
        for i in 0..N {
            for j in 0..N {
                self.gram[i][j] += weight * row[i] * row[j];
            }
            self.moment[i] += weight * row[i] * target;
        }
        self.squares += weight * target * target;
        self.weight += weight;
    }

    /// Adds all rows of `other`, their weights multiplied by `weight`.
    pub fn add_all(&mut self, other: &Self, weight: f64) {
        for i in 0..N {
            for j in 0..N {
                self.gram[i][j] += weight * other.gram[i][j];
            }
            self.moment[i] += weight * other.moment[i];
        }
        self.squares += weight * other.squares;
        self.weight += weight * other.weight;
    }

    /// Makes coefficients `i` and `j` alike: their difference counts as an error, `strength` times
    /// what it makes in all rows.
    pub fn draw_together(&mut self, i: usize, j: usize, strength: f64) {
        let size = strength * f64::midpoint(self.gram[i][i], self.gram[j][j]);
        for (a, b, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
            self.gram[a][b] += sign * size;
        }
    }

    /// Variance of the errors that `solution` leaves, by the rows that it did not use up.
    #[must_use]
    pub fn variance_left(&self, solution: &[f64; N]) -> f64 {
        let gradient = self.gradient(solution);
        let fitted: f64 = (0..N).map(|i| solution[i] * (self.moment[i] + gradient[i])).sum();
        let used = solution.iter().filter(|value| **value > 0.0).fold(0.0, |sum, _| sum + 1.0);
        (self.squares - fitted).max(0.0) / (self.weight - used).max(1.0)
    }

    /// The coefficients, none negative, that come nearest to the targets. A column of zeros has the
    /// coefficient 0.
    #[must_use]
    pub fn solve_non_negative(&self) -> [f64; N] {
        let lengths = self.lengths();
        let scaled = self.scaled(&lengths);
        let solution = scaled.active_set();
        std::array::from_fn(|i| if lengths[i] > 0.0 { solution[i] / lengths[i] } else { 0.0 })
    }

    fn lengths(&self) -> [f64; N] {
        std::array::from_fn(|i| self.gram[i][i].sqrt())
    }

    fn scaled(&self, lengths: &[f64; N]) -> Self {
        let by = |value: f64, length: f64| if length > 0.0 { value / length } else { 0.0 };
        Self {
            gram: std::array::from_fn(|i| {
                std::array::from_fn(|j| by(by(self.gram[i][j], lengths[i]), lengths[j]))
            }),
            moment: std::array::from_fn(|i| by(self.moment[i], lengths[i])),
            ..*self
        }
    }

    /// Lawson and Hanson: columns enter the solution one by one, where the gradient is steepest,
    /// and leave it where the unbounded solution of those inside would be negative.
    fn active_set(&self) -> [f64; N] {
        let mut solution = [0.0; N];
        let mut inside = [false; N];
        let mut barred = [false; N];
        let steepness = self.moment.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        // Every entry lowers the sum of squares, so no set of columns comes twice; rounding is what
        // the bound is for.
        for _ in 0..10 * N {
            let gradient = self.gradient(&solution);
            let entering = (0..N)
                .filter(|i| !inside[*i] && !barred[*i] && gradient[*i] > steepness * TOLERANCE)
                .max_by(|a, b| gradient[*a].total_cmp(&gradient[*b]));
            let Some(entering) = entering else { break };
            inside[entering] = true;
            let mut is_first = true;
            loop {
                let found = self.solve(&inside).filter(|found| !is_first || found[entering] > 0.0);
                let Some(found) = found else {
                    // It is a sum of columns inside, or its gradient was mere rounding.
                    inside[entering] = false;
                    barred[entering] = true;
                    break;
                };
                is_first = false;
                let leaving = (0..N)
                    .filter(|i| inside[*i] && found[*i] <= 0.0)
                    .map(|i| (i, step_to_zero(solution[i], found[i])))
                    .min_by(|(_, a), (_, b)| a.total_cmp(b));
                let step = leaving.map_or(1.0, |(_, step)| step);
                for i in (0..N).filter(|i| inside[*i]) {
                    solution[i] += step * (found[i] - solution[i]);
                }
                let Some((leaving, _)) = leaving else {
                    barred = [false; N];
                    break;
                };
                (inside[leaving], solution[leaving]) = (false, 0.0);
            }
        }
        solution.map(|value| value.max(0.0))
    }

    /// Half the negative gradient of the sum of squares.
    fn gradient(&self, solution: &[f64; N]) -> [f64; N] {
        std::array::from_fn(|i| {
            let fitted: f64 = (0..N).map(|j| self.gram[i][j] * solution[j]).sum();
            self.moment[i] - fitted
        })
    }

    /// The unbounded solution in the columns of `inside`, by Cholesky's decomposition; `None` where
    /// they depend on one another.
    fn solve(&self, inside: &[bool; N]) -> Option<[f64; N]> {
        let mut lower = [[0.0; N]; N];
        let mut forward = [0.0; N];
        for i in (0..N).filter(|i| inside[*i]) {
            for j in (0..=i).filter(|j| inside[*j]) {
                let sum: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
                let rest = self.gram[i][j] - sum;
                if i == j {
                    if rest <= SMALLEST_EIGENVALUE {
                        return None;
                    }
                    lower[i][i] = rest.sqrt();
                } else {
                    lower[i][j] = rest / lower[j][j];
                }
            }
            let sum: f64 = (0..i).map(|k| lower[i][k] * forward[k]).sum();
            forward[i] = (self.moment[i] - sum) / lower[i][i];
        }
        let mut solution = [0.0; N];
        for i in (0..N).rev().filter(|i| inside[*i]) {
            let sum: f64 = (i + 1..N).map(|k| lower[k][i] * solution[k]).sum();
            solution[i] = (forward[i] - sum) / lower[i][i];
        }
        Some(solution)
    }
}

/// The part of the way from a coefficient to one that is not positive at which it is 0.
fn step_to_zero(from: f64, to: f64) -> f64 {
    if from > 0.0 { from / (from - to) } else { 0.0 }
}

/// Gradients below this share of the largest moment are rounding.
const TOLERANCE: f64 = 1e-12;

/// Columns of length 1 whose independent part is below the square root of this are dependent.
const SMALLEST_EIGENVALUE: f64 = 1e-12;

#[cfg(test)]
mod tests;
