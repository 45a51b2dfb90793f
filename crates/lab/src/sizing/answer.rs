//! How many cores a load takes, and why.

use serde::Serialize;

use super::{Fit, Kind, Load, Observation, Packing, Rates, TERMS, Term};
use moldau_measure::statistics::{Interval, interval_of};

/// Share of its cores that a proxy should keep busy at most: what waits for a processor waits about
/// `u / (1 - u)` times its own processor time at utilisation `u` (M/M/1), 2.3 times at 70 % and 9
/// times at 90 %; and load comes in bursts that an average does not show.
pub const UTILISATION_MAX: f64 = 0.7;

/// Counts this far above the largest that was measured are beyond the measurement.
const BEYOND_RATIO: f64 = 1.1;

/// A lever that saves less is none.
const SAVING_MIN: f64 = 0.03;

/// The answer for one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Cores that the proxy keeps busy.
    pub cores: f64,
    /// 95 % interval: the replicate runs, and the error on held-out cases.
    pub interval: Interval,
    /// Cores to plan, so that the upper end keeps [`UTILISATION_MAX`] of them busy.
    pub planned: u32,
    /// How batches travel together.
    pub packing: Packing,
    /// What it is made of, in the order of terms.
    pub parts: Vec<Part>,
    /// What would save most, if anything saves.
    pub lever: Option<Lever>,
    /// In which counts it lies beyond what was measured.
    pub beyond: Vec<Beyond>,
}

/// Part of the processor time of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Its term.
    pub term: Term,
    /// Cores.
    pub cores: f64,
    /// Share of all, 0 to 1.
    pub share: f64,
}

/// Something that an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lever {
    /// What.
    pub action: Action,
    /// Share of the processor time that it saves, 0 to 1.
    pub saving: f64,
}

/// What an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Batches twice as large.
    DoubleBatches,
    /// Twice as many batches in each produce request.
    DoubleProduceRequests,
    /// Twice as many batches in each answer to a fetch.
    DoubleFetches,
}

impl Action {
    /// What to do, in the words of a client's configuration.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::DoubleBatches => "batches twice as large (batch.size, linger.ms)",
            Self::DoubleProduceRequests => {
                "twice as many batches in each produce request (linger.ms)"
            }
            Self::DoubleFetches => {
                "twice as many batches in each fetch (fetch.min.bytes, fetch.max.wait.ms)"
            }
        }
    }
}

/// A count of a load that lies beyond what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beyond {
    /// What is counted.
    pub what: String,
    /// How much the load has.
    pub load: f64,
    /// The nearest that was measured.
    pub measured: f64,
}

impl Beyond {
    /// How far beyond it is, more than 1.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        (self.load / self.measured).max(self.measured / self.load)
    }
}

impl Answer {
    /// What `fit`, which was made of `observations`, says of a load.
    #[must_use]
    pub fn of(fit: &Fit, observations: &[&Observation], load: &Load) -> Self {
        let packing = load.packing(observations);
        let rates = load.rates(&packing);
        let cores = rates.cores(&fit.coefficients());
        let interval = interval(fit, &rates);
        Self {
            cores,
            interval,
            planned: planned(interval.high),
            parts: parts(fit, &rates, cores),
            lever: lever(fit, load, &packing),
            beyond: beyond(observations, load, &rates),
            packing,
        }
    }

    /// The kinds of work by their share, largest first.
    #[must_use]
    pub fn kinds(&self) -> Vec<(Kind, f64)> {
        let share = |kind: Kind| {
            let of_kind = self.parts.iter().filter(|part| part.term.kind() == kind);
            (kind, of_kind.map(|part| part.share).sum::<f64>())
        };
        let mut kinds = Kind::ALL.map(share).to_vec();
        kinds.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        kinds
    }
}

/// Each resample of the runs predicts, and misses as one of the held-out cases was missed: a model
/// that fits its own runs well can still be wrong about a load that it has not seen.
fn interval(fit: &Fit, rates: &Rates) -> Interval {
    let misses: Vec<f64> = fit.held_out.iter().map(|case| case.measured / case.predicted).collect();
    let each = |draw: &[f64; TERMS]| {
        let predicted = rates.cores(draw);
        misses.iter().map(move |miss| predicted * miss)
    };
    interval_of(fit.draws.iter().flat_map(each).collect(), fit.degrees)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded up and not negative; the cast saturates"
)]
fn planned(cores: f64) -> u32 {
    (cores / UTILISATION_MAX).ceil().max(1.0) as u32
}

fn parts(fit: &Fit, rates: &Rates, cores: f64) -> Vec<Part> {
    let part = |term: Term| {
        let own = rates.of(term) * fit.of_term(term).value / 1e9;
        Part { term, cores: own, share: if cores > 0.0 { own / cores } else { 0.0 } }
    };
    Term::ALL.map(part).to_vec()
}

/// The action that saves most.
fn lever(fit: &Fit, load: &Load, packing: &Packing) -> Option<Lever> {
    let before = load.rates(packing).cores(&fit.coefficients());
    let saving = |action: Action| {
        let (mut load, mut packing) = (*load, packing.clone());
        match action {
            Action::DoubleBatches => load.batch_bytes = load.batch_bytes.saturating_mul(2),
            Action::DoubleProduceRequests => packing.batches_per_request *= 2.0,
            Action::DoubleFetches => packing.batches_per_fetch *= 2.0,
        }
        let after = load.rates(&packing).cores(&fit.coefficients());
        Lever { action, saving: 1.0 - after / before }
    };
    let actions = [Action::DoubleBatches, Action::DoubleProduceRequests, Action::DoubleFetches];
    let best = actions.map(saving).into_iter().max_by(|a, b| a.saving.total_cmp(&b.saving))?;
    (best.saving >= SAVING_MIN).then_some(best)
}

fn beyond(observations: &[&Observation], load: &Load, rates: &Rates) -> Vec<Beyond> {
    let mut beyond = Vec::new();
    let measured: Vec<Rates> = observations.iter().map(|run| run.rates()).collect();
    for term in Term::ALL {
        let most = measured.iter().map(|rates| rates.of(term)).fold(0.0, f64::max);
        if rates.of(term) > most * BEYOND_RATIO {
            let what = format!("{} per second", term.label());
            beyond.push(Beyond { what, load: rates.of(term), measured: most });
        }
    }
    let produced = || measured.iter().filter(|rates| rates.of(Term::ProducedRecords) > 0.0);
    for (what, size, count) in [
        ("bytes of a record", load.record_bytes, Term::ProducedRecords),
        ("bytes of a batch", load.batch_bytes, Term::ProducedBatches),
    ] {
        let of = |rates: &Rates| rates.of(Term::ProducedBytes) / rates.of(count).max(1e-9);
        let least = produced().map(of).fold(f64::INFINITY, f64::min);
        let most = produced().map(of).fold(0.0, f64::max);
        let size = super::float(size);
        let what = what.to_string();
        if size * BEYOND_RATIO < least {
            beyond.push(Beyond { what, load: size, measured: least });
        } else if size > most * BEYOND_RATIO {
            beyond.push(Beyond { what, load: size, measured: most });
        }
    }
    beyond
}
