//! The search for a ceiling: which rate is tried next, and what the trials so far say.
//!
//! Near its ceiling a system sustains a rate in one trial and misses it in the next, since what it
//! can do varies from minute to minute. A plain bisection believes each trial and ends wherever one
//! of them misled it. This one halves what is still plausible: every trial, also those far from the
//! ceiling and those that contradict each other, moves the odds of every possible ceiling, and the
//! next trial is where the odds are even (Watson and Pelli 1983, "QUEST: a Bayesian adaptive
//! psychometric method"). So trials gather near the knee, all of them make the estimate, and the
//! interval is what the odds leave.
//!
//! The model of a trial: at rate `r` it is sustained if what the system can do in it exceeds `r`;
//! that is the ceiling times a factor, log-normal around 1. How far it scatters is not known, so
//! that the odds are of ceiling and scatter together. A trial that goes wrong by itself, as by a
//! stop of a moment, is possible at any rate.
//!
//! Where response times alone decided and were near what is demanded of them, they tell more than
//! the side on which they were: near the ceiling they rise with some power of the rate, so that
//! their distance is one of rates. Which power is not known either, and part of the odds. And where
//! a system stopped for longer than is demanded of responses, what it did between its stops counts.
//! Where it was late in one short time alone, as by its disk, every other trial is taken to be
//! missed whatever its rate.
//!
//! Repeats of a search share a [`Machine`], whose speed wanders: each trial is one of a ceiling and
//! of what the machine is at the moment.

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use moldau_measure::statistics::{Interval, NORMAL_975, float};

/// Trials of a search, that at full speed included.
pub const TRIALS: usize = 12;

/// How far the ceiling may lie below full speed.
const BELOW_FULL_SPEED: f64 = 1.0 / 32.0;

/// How far it may lie above, since a client that sends what it can may disturb what it sends to.
const ABOVE_FULL_SPEED: f64 = 2.0;

/// How far once the trials say so: others had the machine while full speed was found. Room for
/// this from the first trial on would spend trials where ceilings hardly ever lie.
const FAR_ABOVE_FULL_SPEED: f64 = 8.0;

/// The share of [`ABOVE_FULL_SPEED`] that the estimate reaches when they do.
const FAR_FROM: f64 = 0.55;

/// Where it usually lies, in relation to full speed, and how far around (the half width of a
/// Cauchy distribution, which leaves room for surprises).
const USUAL_SHARE: f64 = 0.9;
const USUAL_SPREAD: f64 = 0.2;

/// Distance of the ceilings that are held against the trials, as a share.
pub(super) const GRID_STEP: f64 = 0.0025;

/// Scatters of what a system can do from trial to trial, as standard deviations of logarithms.
const SCATTERS: [f64; 6] = [0.004, 0.008, 0.016, 0.03, 0.06, 0.12];

/// Powers of the rate with which response times may rise where they are near the demanded one.
const RISES: [f64; 4] = [2.0, 6.0, 18.0, 54.0];

/// What may be behind a ceiling: each scatter with each power.
const SHAPES: usize = SCATTERS.len() * RISES.len();

/// Odds that a trial is missed whatever its rate.
const MISHAP: f64 = 0.04;

/// The same where what was late was so for a moment.
const MISHAP_OF_MOMENT: f64 = 0.5;

/// Odds that one is sustained by luck whatever its rate.
const LUCK: f64 = 0.01;

/// Speeds of the machine with lower odds are out of the question.
const NO_ODDS: f64 = 1e-6;

/// Response times within these factors of the demanded one are near it. What they do further away
/// differs from system to system, so that no more is read into them: below, they soon are what they
/// are at any low rate, which is half of what is demanded as well as a tenth.
const NEAR_ABOVE: f64 = 2.0;
const NEAR_BELOW: f64 = 1.7;

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The rate was sustained.
    Sustained,
    /// It was not.
    Missed,
    /// The rate was missed by what a stop of the system made late, and sustained between its stops.
    Stopped,
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
            Self::Stopped => "stopped",
            Self::Disturbed => "disturbed",
        }
    }
}

/// What a trial says of the ceiling.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// What came of it.
    pub outcome: Outcome,
    /// Its response time in relation to the demanded one, where nothing else decided.
    pub lateness: Option<f64>,
    /// Whether the system stopped for longer than is demanded of responses and nobody knows what it
    /// did beside that, or all that was late was so in one short time.
    pub is_momentary: bool,
}

impl From<Outcome> for Evidence {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, lateness: None, is_momentary: false }
    }
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    /// Rates as on the machine as it usually is.
    trials: Vec<(f64, Outcome)>,
    possible: Vec<Possible>,
    /// As many of these as are held for possible so far.
    near: usize,
}

/// A ceiling that may be, and its odds in relation to all others: with each of [`SCATTERS`], for
/// each of [`RISES`].
#[derive(Clone, Copy, Debug)]
struct Possible {
    ln: f64,
    odds: [f64; SHAPES],
}

/// What a trial shows of what its system can do.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// On which side of its rate that is.
    Side { is_sustained: bool },
    /// Which response time it has, as the logarithm of its relation to the demanded one.
    Lateness(f64),
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The rate that is sustained as often as missed.
    pub rate: f64,
    /// 95 % of what is plausible.
    pub interval_95: Interval,
    /// From the lowest rate that was missed to the highest that was sustained, where these
    /// overlap: rates at which trials disagree.
    pub unstable: Option<Interval>,
    /// Which outcomes there were.
    pub bounds: Bounds,
}

/// Whether a ceiling was seen from both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bounds {
    /// Rates were sustained and missed.
    Both,
    /// No rate that high was missed: the ceiling is higher.
    Above,
    /// No rate that low was sustained: the ceiling is lower.
    Below,
    /// No trial tells: all were disturbed.
    Neither,
}

impl Found {
    /// The standard deviation of the logarithm of the rate that the interval stands for.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.interval_95.high / self.interval_95.low).ln() / (2.0 * NORMAL_975)
    }
}

impl Search {
    /// A search that begins with what the system took at full speed, per second, which is its first
    /// trial.
    #[must_use]
    pub fn new(full_speed: f64) -> Self {
        let full_speed = full_speed.max(1.0);
        let usual = (full_speed * USUAL_SHARE).ln();
        let end = (full_speed * FAR_ABOVE_FULL_SPEED).ln();
        let lowest = (full_speed * BELOW_FULL_SPEED).ln();
        let possible = |ln: f64| {
            let odds = 1.0 / (1.0 + ((ln - usual) / USUAL_SPREAD).powi(2));
            Possible { ln, odds: [odds; SHAPES] }
        };
        let rates = std::iter::successors(Some(lowest), |ln| Some(ln + GRID_STEP));
        let possible: Vec<Possible> = rates.take_while(|ln| *ln <= end).map(possible).collect();
        let near_end = (full_speed * ABOVE_FULL_SPEED).ln();
        let near = possible.partition_point(|possible| possible.ln <= near_end);
        Self { trials: Vec::new(), possible, near }
    }

    /// The rate to try next on a machine as it is now; `None` once the search has ended.
    #[must_use]
    pub fn next_rate(&self, machine: &Machine) -> Option<f64> {
        let speed = machine.expected().map_or(1.0, f64::exp);
        (self.trials.len() + 1 < TRIALS).then(|| self.quantile(0.5) * speed)
    }

    /// Adds what came of a trial, which tells of the machine too, and goes on to the next.
    pub fn note(&mut self, rate: f64, evidence: impl Into<Evidence>, machine: &mut Machine) {
        let Evidence { outcome, lateness, is_momentary } = evidence.into();
        self.trials.push((machine.usual_rate(rate), outcome));
        let speeds: Vec<(usize, f64)> = machine.held().collect();
        let mut seen = vec![0.0; speeds.len()];
        let shown = match (outcome, lateness) {
            (Outcome::Disturbed, _) => {
                seen.fill(1.0);
                return machine.go_on(&seen);
            }
            (_, Some(lateness)) => Shown::Lateness(lateness.ln()),
            (outcome, None) => Shown::Side { is_sustained: outcome != Outcome::Missed },
        };
        let mishap = if is_momentary { MISHAP_OF_MOMENT } else { MISHAP };
        let lowest = self.held().first().map_or(0.0, |possible| possible.ln) - rate.ln();
        let lowest = lowest - GRID_STEP * float(machine.reach() as u64);
        let shapes = RISES.iter().flat_map(|rise| SCATTERS.map(|scatter| (*rise, scatter)));
        for (shape, (rise, scatter)) in shapes.enumerate() {
            let places = (self.possible.len() + 2 * machine.reach()) as u64;
            let likely: Vec<f64> = (0..places)
                .map(|at| lowest + GRID_STEP * float(at))
                .map(|above| shown.likelihood(above, rise, scatter, mishap))
                .collect();
            for (at, possible) in self.possible.iter_mut().enumerate() {
                let odds = possible.odds[shape];
                let of_machine = if at < self.near { odds } else { 0.0 };
                let mut all = 0.0;
                for ((faster, speed), seen) in speeds.iter().zip(&mut seen) {
                    if *speed > NO_ODDS {
                        let likely = likely[at + faster];
                        all += speed * likely;
                        *seen += of_machine * likely;
                    }
                }
                possible.odds[shape] = odds * all;
            }
        }
        machine.go_on(&seen);
        let highest = self.held().last().map_or(0.0, |possible| possible.ln.exp());
        if self.quantile(0.5) >= FAR_FROM * highest {
            self.near = self.possible.len();
        }
    }

    /// The ceilings that are held for possible.
    fn held(&self) -> &[Possible] {
        &self.possible[..self.near]
    }

    /// What the trials so far say.
    #[must_use]
    pub fn found(&self) -> Found {
        let rates = |wanted: fn(Outcome) -> bool| {
            let of = self.trials.iter().filter(move |(_, outcome)| wanted(*outcome));
            of.map(|(rate, _)| *rate)
        };
        let missed = || rates(|outcome| outcome == Outcome::Missed);
        let sustained = || rates(|it| matches!(it, Outcome::Sustained | Outcome::Stopped));
        let ends = missed().reduce(f64::min).zip(sustained().reduce(f64::max));
        let unstable = ends.filter(|(low, high)| low <= high);
        let interval_95 = Interval { low: self.quantile(0.025), high: self.quantile(0.975) };
        // A trial on the other side of the interval, as after a mishap, bounds nothing.
        let from_above = missed().any(|rate| rate >= interval_95.low);
        let from_below = sustained().any(|rate| rate <= interval_95.high);
        Found {
            rate: self.quantile(0.5),
            interval_95,
            unstable: unstable.map(|(low, high)| Interval { low, high }),
            bounds: match (from_above, from_below) {
                (true, true) => Bounds::Both,
                (true, false) => Bounds::Below,
                (false, true) => Bounds::Above,
                (false, false) => Bounds::Neither,
            },
        }
    }

    /// The rate below which the ceiling lies with these odds, which may fall between two of the
    /// grid.
    fn quantile(&self, share: f64) -> f64 {
        let weight = |possible: &Possible| possible.odds.iter().sum::<f64>();
        let wanted = share * self.held().iter().map(weight).sum::<f64>();
        let mut sum = 0.0;
        for possible in self.held() {
            let next = sum + weight(possible);
            if next >= wanted {
                let part = (wanted - sum) / (next - sum).max(f64::MIN_POSITIVE);
                return (possible.ln + GRID_STEP * (part - 0.5)).exp();
            }
            sum = next;
        }
        self.held().last().map_or(0.0, |possible| possible.ln.exp())
    }
}

impl Shown {
    /// How likely that is, where the ceiling lies `above` the rate, as a logarithm, and `mishap`
    /// are the odds that the trial is missed whatever its rate.
    fn likelihood(self, above: f64, rise: f64, scatter: f64, mishap: f64) -> f64 {
        let own = 1.0 - LUCK - mishap;
        let lateness = match self {
            Self::Side { is_sustained: true } => return LUCK + own * logistic(above / scatter),
            Self::Side { is_sustained: false } => return mishap + own * logistic(-above / scatter),
            Self::Lateness(lateness) => lateness,
        };
        // Far ones say only that: what response times do there differs from system to system.
        let (expected, scatter) = (-rise * above, rise * scatter);
        let (late, early) = (NEAR_ABOVE.ln(), NEAR_BELOW.ln());
        if lateness >= late {
            0.5 * mishap + own * logistic((expected - late) / scatter)
        } else if lateness <= -early {
            0.5 * LUCK + own * logistic((-early - expected) / scatter)
        } else {
            let stray = if lateness > 0.0 { mishap / late } else { LUCK / early };
            let below = logistic((lateness - expected) / scatter);
            own * LOGISTIC_SCALE * below * (1.0 - below) / scatter + 0.5 * stray
        }
    }
}

/// At this scale the logistic distribution is nearest to the normal one.
const LOGISTIC_SCALE: f64 = 1.702;

/// The logistic distribution of deviation 1 or nearly so.
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-LOGISTIC_SCALE * x).exp())
}

#[cfg(test)]
mod tests;
