//! The highest rate that a system sustains: what is demanded of a rate, and what searches found.
//!
//! | module | what it holds |
//! |---|---|
//! | `search` | which rate is tried next, and what the trials say of the ceiling |
//! | `trial` | whether a run sustained its rate, and why not |

pub mod search;
mod trial;

use serde::{Deserialize, Serialize};

use moldau_load::run::RunRecord;
use moldau_measure::statistics::scalability::{Point, Scalability};
use moldau_measure::statistics::{PairedEffect, furthest, log_ratios, median, paired_effect};
use search::{Bounds, Found, Outcome, TRIALS};

pub use trial::{Growth, Miss, Trial};

/// What is demanded of a rate beside that it is reached, that its backlog does not grow, and that
/// nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Longest 99th percentile of response times, counted from the intended time, ms.
    pub p99_ms: f64,
}

/// What a search for ceilings found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CeilingRecord {
    /// What was demanded.
    pub demand: Demand,
    /// One per system and number of producers.
    pub searches: Vec<SearchRecord>,
}

/// The search for the ceiling of one system under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    /// Name of the arm.
    pub arm: String,
    /// Producers, each over a connection of its own.
    pub producers: u16,
    /// Bytes of a record's value.
    pub record_bytes: u64,
    /// Records per second at full speed, which was the first trial.
    pub full_speed: f64,
    /// The others, in their order.
    pub trials: Vec<Trial>,
    /// What they say, in records per second.
    pub found: Found,
}

/// Trials at a rate that may say nothing of it: with more of them, a search does not either.
const SILENT_MAX: usize = (TRIALS - 1) / 3;

impl SearchRecord {
    /// Trials at a rate with this outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.trials.iter().filter(|trial| trial.outcome == outcome).count()
    }

    /// Whether enough of its trials say something.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        self.count(Outcome::Disturbed) <= SILENT_MAX
    }
}

/// A number of producers, in words.
pub(crate) fn producers_in_words(count: u16) -> String {
    format!("{count} producer{}", if count == 1 { "" } else { "s" })
}

/// Searches of one system under one load, of which each is a replicate.
#[derive(Clone, Debug)]
pub struct Repeats<'a> {
    /// At least as many as an interval takes, each with a ceiling, in their order.
    pub searches: Vec<&'a SearchRecord>,
    /// The mean of the logarithms of their rates.
    pub ln_rate: PairedEffect,
}

impl<'a> Repeats<'a> {
    /// What so many searches say together; `None` of too few, and where one has no ceiling.
    fn of(searches: Vec<&'a SearchRecord>, seed: u64) -> Option<Self> {
        let is_bounded = |search: &&SearchRecord| search.found.bounds == Bounds::Both;
        let ln_rates: Vec<f64> = searches.iter().map(|search| search.found.rate.ln()).collect();
        let ln_rate = paired_effect(&ln_rates, seed).filter(|_| searches.iter().all(is_bounded))?;
        Some(Self { searches, ln_rate })
    }

    /// Whether a search is one of these.
    #[must_use]
    pub fn has(&self, search: &SearchRecord) -> bool {
        self.searches.iter().any(|of_these| std::ptr::eq(*of_these, search))
    }

    /// The lowest and the highest of their rates, per second.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        let ends = (f64::INFINITY, 0.0);
        self.rates().fold(ends, |(low, high), rate| (low.min(rate), high.max(rate)))
    }

    /// How far the furthest of their rates is from the median of them, as a share.
    #[must_use]
    pub fn apart(&self) -> f64 {
        let rates: Vec<f64> = self.rates().collect();
        furthest(&rates, median(&rates))
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        self.searches.iter().map(|search| search.found.rate)
    }

    /// The logarithm of the ratio of their rates to those of `others`, each to that which was
    /// searched beside it; `None` where there are not as many.
    #[must_use]
    pub fn ln_ratio(&self, others: &Self, seed: u64) -> Option<PairedEffect> {
        let pairs: Vec<(f64, f64)> = others.rates().zip(self.rates()).collect();
        let are_as_many = self.searches.len() == others.searches.len();
        are_as_many.then(|| paired_effect(&log_ratios(&pairs), seed)).flatten()
    }
}

impl CeilingRecord {
    /// The loads of a system that were searched again and again, each with all its searches.
    #[must_use]
    pub fn repeats(&self, seed: u64) -> Vec<Repeats<'_>> {
        let mut groups: Vec<Vec<&SearchRecord>> = Vec::new();
        for search in &self.searches {
            let is_of = |group: &&mut Vec<&SearchRecord>| {
                group.first().is_some_and(|first| {
                    (&first.arm, first.producers) == (&search.arm, search.producers)
                })
            };
            match groups.iter_mut().find(is_of) {
                Some(group) => group.push(search),
                None => groups.push(vec![search]),
            }
        }
        groups.into_iter().filter_map(|group| Repeats::of(group, seed)).collect()
    }

    /// Of `runs`, those of the highest rates that were sustained, one for each search that
    /// sustained any. Each search has its trials' runs in their order, behind that at full speed.
    #[must_use]
    pub fn highest(&self, runs: &[RunRecord]) -> Vec<RunRecord> {
        let of_search = |search: &SearchRecord| {
            let sustained = (1_u32..).zip(&search.trials);
            let sustained = sustained.filter(|(_, trial)| trial.outcome == Outcome::Sustained);
            let (pair, _) = sustained.max_by(|one, other| one.1.rate.total_cmp(&other.1.rate))?;
            let is_it = |run: &&RunRecord| {
                let is_of = run.arm == search.arm && run.workload.producers == search.producers;
                is_of && run.pair == pair
            };
            runs.iter().find(is_it).cloned()
        };
        self.searches.iter().filter_map(of_search).collect()
    }

    /// How the ceilings of a system follow its producers; `None` where too few numbers of them
    /// have one.
    #[must_use]
    pub fn scalability(&self, arm: &str, seed: u64) -> Option<Scalability> {
        let of_arm = self.searches.iter().filter(|search| search.arm == arm);
        let bounded = of_arm.filter(|search| search.found.bounds == Bounds::Both);
        let points: Vec<Point> = bounded
            .map(|search| Point {
                concurrency: search.producers.into(),
                throughput: search.found.rate,
                error: Some(search.found.error()),
            })
            .collect();
        Scalability::fit(&points, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_run_of_the_highest_rate_that_was_sustained_is_found() {
        let search = sample::search("moldau", 1);
        let like = sample::result().runs.swap_remove(0);
        let number = |count: usize| u32::try_from(count).unwrap();
        let runs = (0..=number(search.trials.len())).map(|pair| {
            let mut run = RunRecord { arm: "moldau".into(), pair, ..like.clone() };
            run.workload.producers = 1;
            run
        });
        let runs: Vec<RunRecord> = runs.collect();
        let demand = Demand { p99_ms: 50.0 };
        let mut record = CeilingRecord { demand, searches: vec![search] };
        let [found] = record.highest(&runs).try_into().unwrap();
        let trials = &record.searches[0].trials;
        let of_found = &trials[usize::try_from(found.pair).unwrap() - 1];
        assert_eq!(of_found.outcome, Outcome::Sustained);
        let is_higher = |it: &&Trial| it.rate > of_found.rate;
        assert!(trials.iter().filter(is_higher).all(|it| it.outcome == Outcome::Missed));
        record.searches[0].trials.iter_mut().for_each(|trial| trial.outcome = Outcome::Missed);
        assert_eq!(record.highest(&runs), []);
    }

    #[test]
    fn searches_of_one_load_are_replicates() {
        let with = |arm: &str, factor: f64| {
            let mut search = sample::search(arm, 2);
            search.found.rate = 100_000.0 * factor;
            search
        };
        let factors = [0.99, 1.02, 1.0, 0.98, 1.01];
        let pairs = factors.iter().flat_map(|it| [with("moldau", *it), with("kafka", it / 2.0)]);
        let searches: Vec<SearchRecord> =
            pairs.chain([sample::search("moldau", 4), sample::search("moldau", 4)]).collect();
        let mut record = CeilingRecord { demand: Demand { p99_ms: 50.0 }, searches };
        let repeats = record.repeats(1);
        let [moldau, kafka] = &repeats[..] else { panic!("two searches are no repeats") };
        assert_eq!(moldau.searches.len(), 5);
        assert!(moldau.has(&record.searches[2]) && !moldau.has(&record.searches[1]));
        assert_eq!(moldau.ends(), (98_000.0, 102_000.0));
        assert!((moldau.apart() - 0.02).abs() < 1e-9);
        let rates = moldau.ln_rate.interval_95;
        assert!(rates.low > 97_000_f64.ln() && rates.high < 103_000_f64.ln(), "{rates:?}");
        // What moves both alike is not between them.
        let ratio = moldau.ln_ratio(kafka, 1).unwrap();
        assert!((ratio.mean - 2_f64.ln()).abs() < 1e-9);
        assert!(ratio.interval_95.high - ratio.interval_95.low < 1e-9);
        record.searches[2].found.bounds = Bounds::Above;
        let arms: Vec<String> =
            record.repeats(1).iter().map(|group| group.searches[0].arm.clone()).collect();
        assert_eq!(arms, ["kafka"], "one of moldau's has no ceiling");
    }

    #[test]
    fn a_search_tells_something_while_at_most_a_third_of_its_trials_are_disturbed() {
        let with_disturbed = |count: usize| {
            let mut search = sample::search("moldau", 1);
            assert_eq!(search.trials.len(), 11);
            let disturbed = search.trials.iter_mut().take(count);
            disturbed.for_each(|trial| trial.outcome = Outcome::Disturbed);
            search
        };
        assert!(with_disturbed(3).is_telling());
        // 4 of 11 are 36 %.
        assert!(!with_disturbed(4).is_telling());
    }
}
