//! Fitting the model: coefficients, their intervals, and how well it predicts what it has not seen.
//!
//! Each case counts the same, and errors count in relation to the processor time of their case:
//! without that the fit would only look at the heaviest. Intervals come from a bootstrap over the
//! replicate runs of each case. Of n runs n - 1 are drawn, which restores the variance that drawing
//! n of a few loses (Hesterberg 2015, "What Teachers Should Know About the Bootstrap").
//!
//! A batch, record or byte costs similar work on its way in and on its way out. So the fit pulls
//! the two prices together as far as the cases leave them open: hardly if the model fits every
//! case, and more if cases lie far from it. Otherwise a single case may decide a price, and every
//! prediction that uses it.

use super::{Observation, Rates, TERMS, Term};
use moldau_measure::statistics::least_squares::NormalEquations;
use moldau_measure::statistics::{Interval, interval_of, median};

/// Processor time below which errors are not counted in relation to it: half a thousandth of a
/// core, which is what one look at an idle process varies by.
const CORES_MIN: f64 = 5e-4;

/// Prices of producing and of consuming the same thing.
const ALIKE: [(Term, Term); 3] = [
    (Term::ProducedBatches, Term::ConsumedBatches),
    (Term::ProducedRecords, Term::ConsumedRecords),
    (Term::ProducedBytes, Term::ConsumedBytes),
];

/// How far two such prices are expected to lie apart, as the share of a case's processor time that
/// their difference makes.
const APART: f64 = 0.4;

/// Resamples of the bootstrap: 25 lie beyond each end of an interval.
const RESAMPLES: usize = 1_000;

/// Fewest cases that determine a price. Only cases that differ in its term do, so a price has few
/// degrees of freedom.
const CASES_PER_TERM: f64 = 4.0;

/// Fewest cases with a load that are fitted.
const CASES_MIN: usize = 3;

/// The model of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// By term, in ns per count; the idle term in ns per second.
    pub estimates: [Estimate; TERMS],
    /// The cases with a load, each as predicted from all others.
    pub held_out: Vec<HeldOut>,
    /// Degrees of freedom behind a coefficient.
    pub(super) degrees: f64,
    /// Coefficients of each resample.
    pub(super) draws: Vec<[f64; TERMS]>,
}

/// One coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The term.
    pub term: Term,
    /// ns per count.
    pub value: f64,
    /// 95 % interval over the replicate runs.
    pub interval: Interval,
    /// Whether any run has it.
    pub is_measured: bool,
}

/// A case as predicted from all others.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// The case.
    pub case: String,
    /// Mean counts of its runs.
    pub rates: Rates,
    /// Cores that it took, mean of its runs, which is what the model is fitted to.
    pub measured: f64,
    /// What the model says without it.
    pub predicted: f64,
    /// What the reference case's processor time per MB says; absent for the reference itself.
    pub by_reference: Option<f64>,
}

impl HeldOut {
    /// Relative error of the model.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// Relative error of the reference case's one coefficient.
    #[must_use]
    pub fn reference_error(&self) -> Option<f64> {
        Some(self.by_reference? / self.measured - 1.0)
    }
}

/// The median and the largest of some relative errors, without their signs.
#[must_use]
pub fn errors(relative: impl Iterator<Item = f64>) -> (f64, f64) {
    let sizes: Vec<f64> = relative.map(f64::abs).collect();
    (median(&sizes), sizes.iter().copied().fold(0.0, f64::max))
}

impl Fit {
    /// Fits the runs of one arm; `None` with fewer than three cases that have a load.
    #[must_use]
    pub fn of(observations: &[&Observation], reference: &str, seed: u64) -> Option<Self> {
        let cases = Case::all(observations);
        if cases.iter().filter(|case| case.is_loaded).count() < CASES_MIN {
            return None;
        }
        let values = solve(&summed(&cases, |_| true));
        let draws = resampled(&cases, seed);
        let runs = cases.iter().map(|case| case.runs.len()).min().unwrap_or(0);
        let degrees = CASES_PER_TERM * (count(runs) - 1.0).max(1.0);
        let estimate = |term: Term| {
            let column = term.index();
            Estimate {
                term,
                value: values[column],
                interval: interval_of(draws.iter().map(|draw| draw[column]).collect(), degrees),
                is_measured: cases.iter().any(|case| case.rates.of(term) > 0.0),
            }
        };
        Some(Self {
            estimates: Term::ALL.map(estimate),
            held_out: held_out(&cases, reference),
            degrees,
            draws,
        })
    }

    /// The coefficients, ns per count.
    #[must_use]
    pub fn coefficients(&self) -> [f64; TERMS] {
        self.estimates.map(|estimate| estimate.value)
    }

    /// The estimate of a term.
    #[must_use]
    pub fn of_term(&self, term: Term) -> &Estimate {
        &self.estimates[term.index()]
    }
}

/// Coefficients are in ns, and processor time is in seconds per second.
const TARGET_SCALE: f64 = 1e9;

/// The runs of a case, ready to be summed.
struct Case {
    name: String,
    is_loaded: bool,
    /// Mean of the runs.
    cores: f64,
    rates: Rates,
    /// Each run by itself, in relation to the processor time of the case.
    runs: Vec<NormalEquations<TERMS>>,
}

impl Case {
    fn all(observations: &[&Observation]) -> Vec<Self> {
        let mut names: Vec<&str> = Vec::new();
        for observation in observations {
            if !names.contains(&observation.case.as_str()) {
                names.push(&observation.case);
            }
        }
        let of = |name: &str| {
            observations.iter().copied().filter(|run| run.case == name).collect::<Vec<_>>()
        };
        names.into_iter().map(|name| Self::of(name, &of(name))).collect()
    }

    fn of(name: &str, observations: &[&Observation]) -> Self {
        let share = 1.0 / count(observations.len());
        let cores = observations.iter().map(|run| run.cores() * share).sum::<f64>();
        let mut rates = [0.0; TERMS];
        for run in observations {
            for (sum, rate) in rates.iter_mut().zip(run.rates().0) {
                *sum += rate * share;
            }
        }
        let scale = 1.0 / cores.max(CORES_MIN);
        let runs = observations.iter().map(|run| {
            let mut equations = NormalEquations::default();
            let row = run.rates().0.map(|rate| rate * scale);
            equations.add(&row, run.cores() * TARGET_SCALE * scale, 1.0);
            equations
        });
        Self {
            name: name.to_string(),
            is_loaded: observations.iter().any(|run| run.is_loaded()),
            cores,
            rates: Rates(rates),
            runs: runs.collect(),
        }
    }

    /// Processor time per byte, s.
    fn per_byte(&self) -> f64 {
        self.cores / self.rates.bytes()
    }
}

fn summed(cases: &[Case], is_in: impl Fn(&Case) -> bool) -> NormalEquations<TERMS> {
    let mut sum = NormalEquations::default();
    for case in cases.iter().filter(|case| is_in(case)) {
        for run in &case.runs {
            sum.add_all(run, 1.0 / count(case.runs.len()));
        }
    }
    sum
}

/// The coefficients, those of [`ALIKE`] drawn together by what is left in doubt.
fn solve(equations: &NormalEquations<TERMS>) -> [f64; TERMS] {
    let apart = equations.solve_non_negative();
    let doubt = equations.variance_left(&apart) / (TARGET_SCALE * TARGET_SCALE);
    let mut together = *equations;
    for (produced, consumed) in ALIKE {
        let strength = doubt / (APART * APART);
        together.draw_together(produced.index(), consumed.index(), strength);
    }
    together.solve_non_negative()
}

fn resampled(cases: &[Case], seed: u64) -> Vec<[f64; TERMS]> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = || {
        let mut sum = NormalEquations::default();
        for case in cases {
            let drawn = case.runs.len().saturating_sub(1).max(1);
            for _ in 0..drawn {
                if let Some(run) = random.choice(&case.runs) {
                    sum.add_all(run, 1.0 / count(drawn));
                }
            }
        }
        solve(&sum)
    };
    (0..RESAMPLES).map(|_| resample()).collect()
}

fn held_out(cases: &[Case], reference: &str) -> Vec<HeldOut> {
    let per_byte = cases.iter().find(|case| case.name == reference).map(Case::per_byte);
    let loaded = || cases.iter().filter(|case| case.is_loaded);
    let held_out = |case: &Case| {
        let coefficients = solve(&summed(cases, |other| other.name != case.name));
        HeldOut {
            case: case.name.clone(),
            rates: case.rates,
            measured: case.cores,
            predicted: case.rates.cores(&coefficients),
            by_reference: per_byte
                .filter(|_| case.name != reference)
                .map(|each| each * case.rates.bytes()),
        }
    };
    loaded().map(held_out).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a number of runs")]
fn count(length: usize) -> f64 {
    length as f64
}
