//! The search for a ceiling: a bisection between a rate that is sustained and one that is missed.
//!
//! Near its ceiling a system sustains a rate in one trial and misses it in the next, so one trial
//! decides nothing: each rate is tried until [`AGREEING`] trials agree. Only rates that were
//! offered are published, never computed ones.

use serde::{Deserialize, Serialize};

use moldau_measure::statistics::Interval;

/// Trials of a search, that at full speed included.
pub const TRIALS: usize = 12;

/// Trials with the same outcome that decide about a rate.
pub const AGREEING: usize = 2;

/// The first rate, as a share of full speed: a client that sends all it can gets more through than
/// one that waits for its schedule.
const FIRST_SHARE: f64 = 0.8;

/// Steps while only one side of the ceiling is known.
const RISE: f64 = 1.25;
const FALL: f64 = 0.6;

/// The search ends once its two sides are this close.
const CLOSE: f64 = 1.02;

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The rate was sustained.
    Sustained,
    /// It was not.
    Missed,
    /// Something else took the machine meanwhile: the trial says nothing, but it was one.
    Disturbed,
}

impl Outcome {
    /// In tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sustained => "sustained",
            Self::Missed => "missed",
            Self::Disturbed => "disturbed",
        }
    }
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    full_speed: f64,
    trials: Vec<(f64, Outcome)>,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The highest rate that was sustained; without one the lowest that was tried.
    pub rate: f64,
    /// From that rate to the lowest above it that was missed.
    pub bracket: Interval,
    /// From the lowest rate that was missed once to the highest that was sustained once, where
    /// these overlap: rates at which trials disagree.
    pub unstable: Option<Interval>,
    /// From which sides the ceiling was seen.
    pub bounds: Bounds,
}

/// From which sides a ceiling was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bounds {
    /// Rates were sustained and missed.
    Both,
    /// No rate above the highest sustained one was missed: the ceiling is higher.
    Above,
    /// No rate was sustained: the ceiling is lower.
    Below,
    /// About no rate did enough trials agree.
    Neither,
}

impl Search {
    /// A search that begins with the rate at full speed, per second. That run is its first trial.
    #[must_use]
    pub fn new(full_speed: f64) -> Self {
        Self { full_speed: full_speed.max(1.0), trials: Vec::new() }
    }

    /// The rate to try next; `None` once the search has ended.
    #[must_use]
    pub fn next_rate(&self) -> Option<f64> {
        if self.trials.len() + 1 >= TRIALS {
            return None;
        }
        if let Some((rate, _)) = self.trials.last()
            && self.decided(*rate).is_none()
        {
            return Some(*rate);
        }
        match self.sides() {
            (None, None) => Some(self.full_speed * FIRST_SHARE),
            (Some(low), None) => Some(low * RISE),
            (None, Some(high)) => Some(high * FALL),
            (Some(low), Some(high)) => (high / low > CLOSE).then(|| (low * high).sqrt()),
        }
    }

    /// Adds what came of a trial.
    pub fn note(&mut self, rate: f64, outcome: Outcome) {
        self.trials.push((rate, outcome));
    }

    /// What the trials so far say.
    #[must_use]
    pub fn found(&self) -> Found {
        let rates = |wanted: Outcome| {
            let of = self.trials.iter().filter(move |(_, outcome)| *outcome == wanted);
            of.map(|(rate, _)| *rate)
        };
        let missed = rates(Outcome::Missed).reduce(f64::min);
        let ends = missed.zip(rates(Outcome::Sustained).reduce(f64::max));
        let tried = self.trials.iter().map(|(rate, _)| *rate);
        let lowest = tried.reduce(f64::min).unwrap_or(self.full_speed);
        let (rate, high, bounds) = match self.sides() {
            (Some(low), Some(high)) => (low, high, Bounds::Both),
            (Some(low), None) => (low, low, Bounds::Above),
            (None, Some(high)) => (lowest, high, Bounds::Below),
            (None, None) => (lowest, lowest, Bounds::Neither),
        };
        Found {
            rate,
            bracket: Interval { low: rate, high },
            unstable: ends
                .filter(|(low, high)| low <= high)
                .map(|(low, high)| Interval { low, high }),
            bounds,
        }
    }

    /// What the trials at a rate agree on.
    fn decided(&self, rate: f64) -> Option<Outcome> {
        [Outcome::Sustained, Outcome::Missed].into_iter().find(|outcome| {
            let agree = self.trials.iter().filter(|trial| **trial == (rate, *outcome));
            agree.count() >= AGREEING
        })
    }

    /// The highest rate that is decided to be sustained, and the lowest above it to be missed.
    fn sides(&self) -> (Option<f64>, Option<f64>) {
        let decided = |wanted: Outcome| {
            let rates = self.trials.iter().map(|(rate, _)| *rate);
            rates.filter(move |rate| self.decided(*rate) == Some(wanted))
        };
        let low = decided(Outcome::Sustained).reduce(f64::max);
        let is_above = |rate: &f64| low.is_none_or(|low| *rate > low);
        (low, decided(Outcome::Missed).filter(is_above).reduce(f64::min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search against a system that sustains what `sustains` says, and its trials.
    fn search(full_speed: f64, mut sustains: impl FnMut(f64) -> Outcome) -> (Found, usize) {
        let mut search = Search::new(full_speed);
        while let Some(rate) = search.next_rate() {
            search.note(rate, sustains(rate));
        }
        (search.found(), search.trials.len())
    }

    fn below(ceiling: f64) -> impl Fn(f64) -> Outcome {
        move |rate| if rate <= ceiling { Outcome::Sustained } else { Outcome::Missed }
    }

    #[test]
    fn a_steady_ceiling_lies_in_the_bracket_wherever_full_speed_was() {
        for share in [0.3, 0.5, 0.7, 0.81, 0.9, 1.0, 1.3, 1.9] {
            let (found, trials) = search(100_000.0, below(100_000.0 * share));
            let Interval { low, high } = found.bracket;
            assert_eq!(found.bounds, Bounds::Both, "{share}");
            assert!(low <= 100_000.0 * share && high >= 100_000.0 * share, "{share}: {found:?}");
            assert!(high / low < 1.3 && trials < TRIALS, "{share}: {found:?}");
            assert_eq!((found.rate, found.unstable), (low, None));
        }
    }

    #[test]
    fn a_trial_that_misleads_decides_nothing() {
        let mut trials = 0;
        let (found, _) = search(100_000.0, |rate| {
            trials += 1;
            // The first trial of all is missed by chance.
            if trials == 1 { Outcome::Missed } else { below(90_000.0)(rate) }
        });
        let Interval { low, high } = found.bracket;
        assert!(low <= 90_000.0 && high >= 90_000.0, "{found:?}");
        assert_eq!(found.unstable, Some(Interval { low: 80_000.0, high: found.rate }));
    }

    #[test]
    fn disturbed_trials_decide_nothing_and_end_in_time() {
        let (found, trials) = search(100_000.0, |_| Outcome::Disturbed);
        assert_eq!((found.bounds, trials), (Bounds::Neither, TRIALS - 1));
        let mut turn = 0;
        let (found, _) = search(100_000.0, |rate| {
            turn += 1;
            if turn % 4 == 0 { Outcome::Disturbed } else { below(90_000.0)(rate) }
        });
        assert_eq!(found.bounds, Bounds::Both);
    }

    #[test]
    fn a_ceiling_seen_from_one_side_is_said_to_be() {
        let (found, _) = search(1_000.0, |_| Outcome::Sustained);
        assert_eq!((found.bounds, found.bracket.low), (Bounds::Above, found.rate));
        assert!(found.rate > 1_500.0);
        let (found, _) = search(1_000.0, |_| Outcome::Missed);
        assert_eq!(found.bounds, Bounds::Below);
        assert!(found.rate < 200.0);
    }
}
